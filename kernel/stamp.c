// SPDX-License-Identifier: GPL-2.0
/*
 * Stamps of packets at the boundary to the driver.
 *
 * The tracepoints net_dev_start_xmit and netif_receive_skb stand right before
 * the driver takes a packet and right after it delivers one. While an open file
 * asks for stamps, a probe on each finds UDP packets of the requested ports and
 * puts the counter, and enough of the packet to identify it, into a ring.
 */
#include <linux/ipv6.h>
#include <linux/kfifo.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <linux/udp.h>
#include <net/ip.h>
#include "ffcounter.h"

#define RING 256	/* records; a power of two */

struct ffc_ring {
	struct list_head list;
	DECLARE_KFIFO(fifo, struct ffcounter_stamp, RING);
	spinlock_t lock;		/* everything below and the fifo */
	wait_queue_head_t waiting;
	struct ffcounter_stamping want;
	u32 lost;
};

static LIST_HEAD(rings);		/* rings of files that ask for stamps */
static DEFINE_MUTEX(rings_mutex);
static u32 wanted;			/* a bit for each counter that they ask for */
static struct tracepoint *sending, *receiving;

/* The counters at the moment of a packet. */
struct ffc_moment {
	struct ffcounter_sample samples[FFCOUNTER_COUNT];
	u32 known;			/* a bit for each that was read */
};

/*
 * First thing in a probe: what is done before adds its own time, and the spread
 * of that time, to the stamp.
 */
static void read_wanted(struct ffc_moment *moment)
{
	u32 id, bits = READ_ONCE(wanted);

	moment->known = 0;
	for (id = 0; id < FFCOUNTER_COUNT; id++)
		if (bits & BIT(id) && !ffcounter_read(id, &moment->samples[id]))
			moment->known |= BIT(id);
}

static bool is_wanted(const struct ffcounter_stamping *want, u16 one, u16 other)
{
	u32 i;

	for (i = 0; i < want->count; i++)
		if (want->ports[i] == one || want->ports[i] == other)
			return true;
	return false;
}

/* Reads the headers into stamp; false for anything but UDP. */
static bool describe(struct sk_buff *skb, int at, struct ffcounter_stamp *stamp)
{
	struct ipv6hdr room6, *ip6;
	struct udphdr room, *udp;
	struct iphdr room4, *ip4;

	if (skb->protocol == htons(ETH_P_IP)) {
		ip4 = skb_header_pointer(skb, at, sizeof(room4), &room4);
		if (!ip4 || ip4->protocol != IPPROTO_UDP ||
		    ip4->frag_off & htons(IP_OFFSET))
			return false;
		stamp->family = 4;
		memcpy(stamp->source, &ip4->saddr, 4);
		memcpy(stamp->destination, &ip4->daddr, 4);
		at += ip4->ihl * 4;
	} else if (skb->protocol == htons(ETH_P_IPV6)) {
		ip6 = skb_header_pointer(skb, at, sizeof(room6), &room6);
		if (!ip6 || ip6->nexthdr != IPPROTO_UDP)
			return false;
		stamp->family = 6;
		memcpy(stamp->source, &ip6->saddr, 16);
		memcpy(stamp->destination, &ip6->daddr, 16);
		at += sizeof(room6);
	} else {
		return false;
	}
	udp = skb_header_pointer(skb, at, sizeof(room), &room);
	if (!udp || ntohs(udp->len) < sizeof(room))
		return false;
	stamp->source_port = udp->source;
	stamp->destination_port = udp->dest;
	stamp->length = ntohs(udp->len) - sizeof(room);
	stamp->head_length = min_t(u16, stamp->length, FFCOUNTER_HEAD);
	return !skb_copy_bits(skb, at + sizeof(room), stamp->head,
			      stamp->head_length);
}

static void keep(struct ffc_ring *ring, const struct ffc_moment *moment,
		 struct ffcounter_stamp *stamp)
{
	unsigned long flags;
	u32 id;

	spin_lock_irqsave(&ring->lock, flags);
	id = ring->want.id;
	if (is_wanted(&ring->want, ntohs(stamp->source_port),
		      ntohs(stamp->destination_port)) &&
	    moment->known & BIT(id)) {
		stamp->value = moment->samples[id].value;
		stamp->epoch = moment->samples[id].epoch;
		stamp->id = moment->samples[id].id;
		/* A late reader gets the newest stamps. */
		if (kfifo_is_full(&ring->fifo)) {
			kfifo_skip(&ring->fifo);
			ring->lost++;
		}
		stamp->lost = ring->lost;
		kfifo_put(&ring->fifo, *stamp);
	}
	spin_unlock_irqrestore(&ring->lock, flags);
	wake_up_interruptible(&ring->waiting);
}

static void note(struct sk_buff *skb, int at, u8 direction)
{
	struct ffcounter_stamp stamp;
	struct ffc_moment moment;
	struct ffc_ring *ring;

	read_wanted(&moment);
	stamp = (struct ffcounter_stamp) { .direction = direction };
	if (!describe(skb, at, &stamp))
		return;
	stamp.ifindex = skb->dev ? skb->dev->ifindex : 0;
	rcu_read_lock();
	list_for_each_entry_rcu(ring, &rings, list)
		keep(ring, &moment, &stamp);
	rcu_read_unlock();
}

static void on_send(void *unused, struct sk_buff *skb,
		    const struct net_device *device)
{
	note(skb, skb_network_offset(skb), FFCOUNTER_SENT);
}

/* The data begin with the network header; its offset is not set yet. */
static void on_receive(void *unused, struct sk_buff *skb)
{
	note(skb, 0, FFCOUNTER_RECEIVED);
}

static void look_at(struct tracepoint *point, void *unused)
{
	if (!strcmp(point->name, "net_dev_start_xmit"))
		sending = point;
	else if (!strcmp(point->name, "netif_receive_skb"))
		receiving = point;
}

static void unplug(void)
{
	tracepoint_probe_unregister(sending, on_send, NULL);
	tracepoint_probe_unregister(receiving, on_receive, NULL);
	tracepoint_synchronize_unregister();
}

static int plug_in(void)
{
	int error;

	for_each_kernel_tracepoint(look_at, NULL);
	if (!sending || !receiving)
		return -EOPNOTSUPP;
	error = tracepoint_probe_register(sending, on_send, NULL);
	if (error)
		return error;
	error = tracepoint_probe_register(receiving, on_receive, NULL);
	if (error) {
		tracepoint_probe_unregister(sending, on_send, NULL);
		tracepoint_synchronize_unregister();
	}
	return error;
}

static void note_wanted(void)
{
	struct ffc_ring *ring;
	u32 bits = 0;

	list_for_each_entry(ring, &rings, list)
		bits |= BIT(ring->want.id);
	WRITE_ONCE(wanted, bits);
}

static void leave(struct ffc_ring *ring)
{
	if (list_empty(&ring->list))
		return;
	list_del_rcu(&ring->list);
	note_wanted();
	synchronize_rcu();
	INIT_LIST_HEAD(&ring->list);
	if (list_empty(&rings))
		unplug();
}

int ffc_ring_set(struct ffc_ring *ring, const struct ffcounter_stamping *want)
{
	unsigned long flags;
	int error = 0;

	mutex_lock(&rings_mutex);
	if (want->count && list_empty(&rings))
		error = plug_in();
	if (!error) {
		spin_lock_irqsave(&ring->lock, flags);
		ring->want = *want;
		spin_unlock_irqrestore(&ring->lock, flags);
		if (!want->count)
			leave(ring);
		else if (list_empty(&ring->list))
			list_add_tail_rcu(&ring->list, &rings);
		note_wanted();
	}
	mutex_unlock(&rings_mutex);
	return error;
}

struct ffc_ring *ffc_ring_new(void)
{
	struct ffc_ring *ring = kvzalloc(sizeof(*ring), GFP_KERNEL);

	if (!ring)
		return NULL;
	INIT_LIST_HEAD(&ring->list);
	INIT_KFIFO(ring->fifo);
	spin_lock_init(&ring->lock);
	init_waitqueue_head(&ring->waiting);
	return ring;
}

void ffc_ring_free(struct ffc_ring *ring)
{
	mutex_lock(&rings_mutex);
	leave(ring);
	mutex_unlock(&rings_mutex);
	kvfree(ring);
}

/* Never waits: poll(2) does. One by one, since the oldest may be replaced. */
ssize_t ffc_ring_read(struct ffc_ring *ring, char __user *to, size_t size)
{
	struct ffcounter_stamp stamp;
	size_t copied = 0;

	if (size < sizeof(stamp))
		return -EINVAL;
	while (size - copied >= sizeof(stamp) &&
	       kfifo_out_spinlocked(&ring->fifo, &stamp, 1, &ring->lock)) {
		if (copy_to_user(to + copied, &stamp, sizeof(stamp)))
			return copied ? (ssize_t)copied : -EFAULT;
		copied += sizeof(stamp);
	}
	return copied ? (ssize_t)copied : -EAGAIN;
}

__poll_t ffc_ring_poll(struct ffc_ring *ring, struct file *file,
		       poll_table *wait)
{
	poll_wait(file, &ring->waiting, wait);
	return kfifo_is_empty(&ring->fifo) ? 0 : EPOLLIN | EPOLLRDNORM;
}
