// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0 OR MIT)
//
// Stamps of test packets at the kernel's tracepoints, where the socket takes them, at tc and at XDP: the second way to
// take them, beside the kernel's own tracing. The kernel takes its helpers for reading memory and clocks from
// GPL-compatible programs only.
//
// Every program reads the clock first, before it looks at the packet. What it hands over is a `passage`; what the
// buffer cannot take is counted in `lost`.
//
// The kernel's structures are declared here with the few fields that are read; CO-RE finds them in the running kernel
// by its BTF.
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
	unsigned int len;
	unsigned int data_len;
	u16 transport_header;
	u16 network_header;
	unsigned char *head;
	unsigned char *data;
} __attribute__((preserve_access_index));

struct sock_common {
	unsigned short skc_family;
	u16 skc_num;
	__be16 skc_dport;
	possible_net_t skc_net;
} __attribute__((preserve_access_index));

struct sock {
	struct sock_common __sk_common;
} __attribute__((preserve_access_index));

// The places where programs stamp. ebpf/place.rs maps each to its site by name.
enum place {
	PLACE_QUEUE,
	PLACE_START,
	PLACE_DONE,
	PLACE_GRO,
	PLACE_RX,
	PLACE_RECEIVE_ENTRY,
	PLACE_RECEIVE,
	PLACE_SOCKET_QUEUE,
	PLACE_COPY,
	PLACE_READ,
	PLACE_TC_OUT,
	PLACE_TC_IN,
	PLACE_XDP,
};

// What identifies the packet.
enum known {
	// `number` is the sequence of the packet.
	KNOWN_IDENTITY,
	// The payload is not at hand; `number` is how long it is [bytes].
	KNOWN_LENGTH,
	// Only the address of its buffer is known: the packet that was handed to the driver there before.
	KNOWN_BUFFER,
};

struct passage {
	u64 time_ns; // CLOCK_MONOTONIC
	u64 number;
	u64 buffer;
	enum place place;
	enum known known;
};

// So that the skeleton has the type of what is handed over, and the program that reads it need not know where its
// fields lie.
struct passage layout = {};

// What to look for, written before the programs are loaded.
struct wanted_packets {
	u64 run;
	u32 device; // by index
	u32 network; // inode of its namespace
	u16 server_port;
	u16 own_port;
	u16 shortest; // payload [bytes]
	u16 longest;
};

const volatile struct wanted_packets wanted = {};

// Passages that the buffer could not take.
u64 lost = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20); /* as the program that loads it says */
} passages SEC(".maps");

enum direction { OUTGOING, INCOMING };

#define MAGIC 0x666670726f626531ULL /* "ffprobe1" */
#define UDP 17
#define UDP_HEADER 8
#define IDENTITY 32
#define LINK_HEADER 64

static __always_inline int hand_over(u64 now, enum place place, enum known known, u64 number, u64 buffer)
{
	struct passage *passage = bpf_ringbuf_reserve(&passages, sizeof(*passage), 0);

	if (!passage) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	passage->time_ns = now;
	passage->number = number;
	passage->buffer = buffer;
	passage->place = place;
	passage->known = known;
	// The reader comes by every few milliseconds; waking it would cost a microsecond here.
	bpf_ringbuf_submit(passage, BPF_RB_NO_WAKEUP);
	return 0;
}

// The beginning of a packet, from its IP header on.
struct start {
	u8 bytes[20 + UDP_HEADER + IDENTITY];
};

// Ours, by its identity and its direction? Then its number is in `sequence`.
static __always_inline int identify(const u8 *identity, enum direction direction, u64 *sequence)
{
	u64 words[4];

	__builtin_memcpy(words, identity, sizeof(words));
	if (words[0] != bpf_cpu_to_be64(MAGIC) || words[1] != bpf_cpu_to_be64(wanted.run))
		return 0;
	// 0 a request, 1 a reply, 2 a request that wants none.
	u8 mark = identity[24];
	if ((mark == 1) != (direction == INCOMING))
		return 0;
	*sequence = bpf_be64_to_cpu(words[2]);
	return 1;
}

static __always_inline int is_long_enough(u32 length)
{
	return length >= wanted.shortest + 28 && length <= wanted.longest + 48 + LINK_HEADER;
}

static __always_inline int is_wanted_device(struct net_device *device)
{
	return (u32)device->ifindex == wanted.device && device->nd_net.net->ns.inum == wanted.network;
}

// `network` is the IP header, with `linear` bytes at hand from there on, and `whole` bytes in all.
static __always_inline int look(u64 now, enum place place, enum direction direction, const u8 *network,
				u32 linear, u32 whole, u64 buffer)
{
	u8 identity[IDENTITY];
	struct start start;
	u64 sequence = 0;
	u32 offset, length;
	u8 protocol;

	if (linear < 28 || bpf_probe_read_kernel(&start, linear < sizeof(start) ? 28 : sizeof(start), network))
		return 0;
	if (start.bytes[0] == 0x45) {
		offset = 28;
		protocol = start.bytes[9];
	} else if (start.bytes[0] >> 4 == 4) {
		offset = (start.bytes[0] & 15) * 4 + UDP_HEADER;
		protocol = start.bytes[9];
	} else {
		offset = 48;
		protocol = start.bytes[6];
	}
	if (protocol != UDP || whole < offset)
		return 0;
	length = whole - offset;
	if (length < wanted.shortest || length > wanted.longest)
		return 0;
	if (linear < offset + IDENTITY)
		return hand_over(now, place, KNOWN_LENGTH, length, buffer);
	if (offset == 28) {
		if (!identify(start.bytes + 28, direction, &sequence))
			return 0;
	} else {
		if (bpf_probe_read_kernel(identity, sizeof(identity), network + offset))
			return 0;
		if (!identify(identity, direction, &sequence))
			return 0;
	}
	return hand_over(now, place, KNOWN_IDENTITY, sequence, buffer);
}

// On the way out: `data` is the link header, if there is one yet, and the IP header has its place in the buffer.
static __always_inline int outgoing(u64 now, const struct sk_buff *skb, enum place place)
{
	if (!is_long_enough(skb->len) || !is_wanted_device(skb->dev))
		return 0;
	const u8 *network = skb->head + skb->network_header;
	u32 link = network - skb->data;

	if (link > LINK_HEADER)
		return 0;
	return look(now, place, OUTGOING, network, skb->len - skb->data_len - link, skb->len - link, (u64)skb);
}

// On the way in the link header has been taken off.
static __always_inline int incoming(u64 now, const struct sk_buff *skb, enum place place)
{
	if (!is_long_enough(skb->len) || !is_wanted_device(skb->dev))
		return 0;
	return look(now, place, INCOMING, skb->data, skb->len - skb->data_len, skb->len, (u64)skb);
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(net_dev_queue, struct sk_buff *skb)
{
	u64 now = bpf_ktime_get_ns();

	return outgoing(now, skb, PLACE_QUEUE);
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(net_dev_start_xmit, const struct sk_buff *skb, const struct net_device *device)
{
	u64 now = bpf_ktime_get_ns();

	return outgoing(now, skb, PLACE_START);
}

// The buffer may be gone already: only its address is looked at.
SEC("tp_btf/net_dev_xmit")
int BPF_PROG(net_dev_xmit, struct sk_buff *skb, int code, struct net_device *device, unsigned int length)
{
	u64 now = bpf_ktime_get_ns();

	if (code != 0 || !is_long_enough(length) || !is_wanted_device(device))
		return 0;
	return hand_over(now, PLACE_DONE, KNOWN_BUFFER, 0, (u64)skb);
}

SEC("tp_btf/napi_gro_receive_entry")
int BPF_PROG(napi_gro_receive_entry, const struct sk_buff *skb)
{
	u64 now = bpf_ktime_get_ns();

	return incoming(now, skb, PLACE_GRO);
}

SEC("tp_btf/netif_rx_entry")
int BPF_PROG(netif_rx_entry, const struct sk_buff *skb)
{
	u64 now = bpf_ktime_get_ns();

	return incoming(now, skb, PLACE_RX);
}

SEC("tp_btf/netif_receive_skb_entry")
int BPF_PROG(netif_receive_skb_entry, const struct sk_buff *skb)
{
	u64 now = bpf_ktime_get_ns();

	return incoming(now, skb, PLACE_RECEIVE_ENTRY);
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(netif_receive_skb, struct sk_buff *skb)
{
	u64 now = bpf_ktime_get_ns();

	return incoming(now, skb, PLACE_RECEIVE);
}

// Our socket, by its two ports and its network.
static __always_inline int is_our_socket(struct sock *sk)
{
	return sk->__sk_common.skc_num == wanted.own_port &&
	       sk->__sk_common.skc_dport == bpf_htons(wanted.server_port) &&
	       sk->__sk_common.skc_net.net->ns.inum == wanted.network;
}

// What user space gets is read; `result` is the payload's length.
SEC("tp_btf/sock_recv_length")
int BPF_PROG(sock_recv_length, struct sock *sk, int result, int flags)
{
	u64 now = bpf_ktime_get_ns();

	if (result < wanted.shortest || result > wanted.longest || !is_our_socket(sk))
		return 0;
	return hand_over(now, PLACE_READ, KNOWN_LENGTH, result, 0);
}

// `length` bytes of payload begin at `data`, `linear` of them at hand.
static __always_inline int in_socket(u64 now, enum place place, unsigned char *data, u32 length, u32 linear)
{
	u8 identity[IDENTITY];
	u64 sequence = 0;

	if (length < wanted.shortest || length > wanted.longest)
		return 0;
	if (linear < sizeof(identity) || bpf_probe_read_kernel(identity, sizeof(identity), data))
		return 0;
	if (!identify(identity, INCOMING, &sequence))
		return 0;
	return hand_over(now, place, KNOWN_IDENTITY, sequence, 0);
}

// UDP has taken its header off when it put the packet into the queue: the payload begins at `data`.
SEC("tp_btf/skb_copy_datagram_iovec")
int BPF_PROG(skb_copy_datagram_iovec, const struct sk_buff *skb, int length)
{
	u64 now = bpf_ktime_get_ns();

	return in_socket(now, PLACE_COPY, skb->data, length, skb->len - skb->data_len);
}

// The packet is put into the queue of its socket.
SEC("fentry/__udp_enqueue_schedule_skb")
int BPF_PROG(socket_queue_fentry, struct sock *sk, struct sk_buff *skb)
{
	u64 now = bpf_ktime_get_ns();

	return in_socket(now, PLACE_SOCKET_QUEUE, skb->data, skb->len, skb->len - skb->data_len);
}

SEC("kprobe/__udp_enqueue_schedule_skb")
int BPF_KPROBE(socket_queue_kprobe, struct sock *sk, struct sk_buff *skb)
{
	u64 now = bpf_ktime_get_ns();
	u32 length = BPF_CORE_READ(skb, len);

	return in_socket(now, PLACE_SOCKET_QUEUE, BPF_CORE_READ(skb, data), length, length - BPF_CORE_READ(skb, data_len));
}

// TCX_NEXT of newer headers, which is TC_ACT_UNSPEC for the older hook: the next program decides.
#define GO_ON (-1)

static __always_inline int at_tc(u64 now, struct __sk_buff *skb, enum place place, enum direction direction)
{
	struct start start;
	u64 sequence = 0;
	u32 whole = skb->len;

	if (!is_long_enough(whole) ||
	    bpf_skb_load_bytes_relative(skb, 0, &start, sizeof(start), BPF_HDR_START_NET))
		return GO_ON;
	if (start.bytes[0] == 0x45) {
		if (start.bytes[9] == UDP && identify(start.bytes + 28, direction, &sequence))
			hand_over(now, place, KNOWN_IDENTITY, sequence, 0);
	} else if (start.bytes[0] >> 4 == 6 && start.bytes[6] == UDP) {
		u8 identity[IDENTITY];

		if (!bpf_skb_load_bytes_relative(skb, 48, identity, sizeof(identity), BPF_HDR_START_NET) &&
		    identify(identity, direction, &sequence))
			hand_over(now, place, KNOWN_IDENTITY, sequence, 0);
	}
	return GO_ON;
}

SEC("tcx/egress")
int tc_out(struct __sk_buff *skb)
{
	u64 now = bpf_ktime_get_ns();

	return at_tc(now, skb, PLACE_TC_OUT, OUTGOING);
}

SEC("tcx/ingress")
int tc_in(struct __sk_buff *skb)
{
	u64 now = bpf_ktime_get_ns();

	return at_tc(now, skb, PLACE_TC_IN, INCOMING);
}

SEC("xdp")
int xdp_in(struct xdp_md *context)
{
	u64 now = bpf_ktime_get_ns();
	const u8 *data = (const u8 *)(long)context->data, *end = (const u8 *)(long)context->data_end;
	const u8 *identity;
	u64 sequence = 0;

	// Ethernet without tags, IPv4 without options or IPv6 without extensions.
	if (data + 14 + 28 + IDENTITY > end)
		return XDP_PASS;
	if (data[14] == 0x45 && data[14 + 9] == UDP)
		identity = data + 14 + 28;
	else if (data[14] >> 4 == 6 && data[14 + 6] == UDP && data + 14 + 48 + IDENTITY <= end)
		identity = data + 14 + 48;
	else
		return XDP_PASS;
	if (identify(identity, INCOMING, &sequence))
		hand_over(now, PLACE_XDP, KNOWN_IDENTITY, sequence, 0);
	return XDP_PASS;
}
