// SPDX-License-Identifier: GPL-2.0
/*
 * For the virtual machine of the tests alone: two network devices, hp0 and hp1,
 * with a wire between them, which stamp every packet by a PTP hardware clock of
 * their own, as a good network card does. The truth is known: a clock shows
 * CLOCK_MONOTONIC_RAW, at its own rate, with the noise and in the steps that the
 * parameters say, and the wire takes delay_ns.
 *
 * What goes wrong with real cards is done to hp0 alone, at will: stamps that are
 * missing, of the packet before, or exchanged with those of the other direction;
 * and a clock that another program steps (clock_step) or steers (clock_steer).
 * With ptp_only hp0 is one of those that stamp events of PTP alone. `truth` reads
 * both clocks without their noise and steps.
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/net_tstamp.h>
#include <linux/netdevice.h>
#include <linux/ptp_classify.h>
#include <linux/ptp_clock_kernel.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <linux/timekeeping.h>
#include <linux/version.h>

#define PAIR 2
/* Of a rate: parts of 2^40. */
#define RATE_BITS 40
/* TAI - UTC. */
#define TAI_AHEAD 37ULL

struct card {
	struct net_device *dev;
	struct card *peer;
	struct napi_struct napi;
	struct sk_buff_head arrived;
	struct ptp_clock *ptp;
	struct ptp_clock_info info;
	/* Guards what follows. */
	spinlock_t lock;
	u64 base, base_raw;
	s64 own_rate, steered;
	u64 last_sent, last_received;
	unsigned int stamps;
	struct hwtstamp_config config;
};

static struct card *cards[PAIR];

static int ppb[PAIR] = { 20000, -35000 };
module_param_array(ppb, int, NULL, 0444);
MODULE_PARM_DESC(ppb, "how much faster each clock runs than CLOCK_MONOTONIC_RAW");
static unsigned int noise_ns = 20;
module_param(noise_ns, uint, 0644);
MODULE_PARM_DESC(noise_ns, "standard deviation of each stamp and of each reading of a clock");
static unsigned int tick_ns = 8;
module_param(tick_ns, uint, 0644);
MODULE_PARM_DESC(tick_ns, "the steps in which a clock counts");
static unsigned int delay_ns = 1000;
module_param(delay_ns, uint, 0644);
MODULE_PARM_DESC(delay_ns, "how long a packet is on the wire");
static bool cross = true;
module_param(cross, bool, 0444);
MODULE_PARM_DESC(cross, "whether the clocks have PTP_SYS_OFFSET_PRECISE");

static bool on_time;
module_param(on_time, bool, 0444);
MODULE_PARM_DESC(on_time, "whether the clocks begin with TAI, as if they had been set");
static bool ptp_only;
module_param(ptp_only, bool, 0444);
MODULE_PARM_DESC(ptp_only, "whether hp0 stamps events of PTP alone");

static unsigned int lose, stale, swap;
module_param(lose, uint, 0644);
MODULE_PARM_DESC(lose, "of hp0 every n-th stamp is missing");
module_param(stale, uint, 0644);
MODULE_PARM_DESC(stale, "of hp0 every n-th stamp is that of the packet before");
module_param(swap, uint, 0644);
MODULE_PARM_DESC(swap, "of hp0 every n-th stamp is the last one of the other direction");

/* Of standard deviation noise_ns, and almost normal: the sum of twelve. */
static s64 noise(void)
{
	s64 sum = 0;
	int i;

	if (!noise_ns)
		return 0;
	for (i = 0; i < 6; i++) {
		u32 two = get_random_u32();

		sum += (s64)(two & 0xffff) + (s64)(two >> 16) - 0xffff;
	}
	return div_s64(sum * (s64)noise_ns, 0x10000);
}

static s64 gained(u64 passed, s64 rate)
{
	u64 size = mul_u64_u64_shr(passed, rate < 0 ? -rate : rate, RATE_BITS);

	return rate < 0 ? -(s64)size : (s64)size;
}

static u64 exact(struct card *card, u64 raw)
{
	u64 passed = raw - card->base_raw;

	return card->base + passed + gained(passed, card->own_rate + card->steered);
}

/* What the clock showed when CLOCK_MONOTONIC_RAW showed `raw`. */
static u64 shown(struct card *card, u64 raw)
{
	unsigned int tick = tick_ns ? tick_ns : 1;
	unsigned long flags;
	u64 at;

	spin_lock_irqsave(&card->lock, flags);
	at = exact(card, raw);
	spin_unlock_irqrestore(&card->lock, flags);
	at += noise();
	return div_u64(at, tick) * tick;
}

static void change(struct card *card, s64 step, s64 steered)
{
	unsigned long flags;
	u64 raw = ktime_get_raw_ns();

	spin_lock_irqsave(&card->lock, flags);
	card->base = exact(card, raw) + step;
	card->base_raw = raw;
	card->steered = steered;
	spin_unlock_irqrestore(&card->lock, flags);
}

static struct card *card_of(struct ptp_clock_info *info)
{
	return container_of(info, struct card, info);
}

static int adjfine(struct ptp_clock_info *info, long scaled_ppm)
{
	change(card_of(info), 0, div_s64((s64)scaled_ppm << (RATE_BITS - 16), 1000000));
	return 0;
}

static int adjtime(struct ptp_clock_info *info, s64 delta)
{
	struct card *card = card_of(info);

	change(card, delta, card->steered);
	return 0;
}

static int settime(struct ptp_clock_info *info, const struct timespec64 *ts)
{
	struct card *card = card_of(info);
	u64 now;

	now = exact(card, ktime_get_raw_ns());
	change(card, (s64)(timespec64_to_ns(ts) - now), card->steered);
	return 0;
}

static int gettimex(struct ptp_clock_info *info, struct timespec64 *ts,
		    struct ptp_system_timestamp *sts)
{
	u64 raw;

	ptp_read_system_prets(sts);
	raw = ktime_get_raw_ns();
	ptp_read_system_postts(sts);
	*ts = ns_to_timespec64(shown(card_of(info), raw));
	return 0;
}

static int getcrosststamp(struct ptp_clock_info *info,
			  struct system_device_crosststamp *stamp)
{
	struct system_time_snapshot now;

	ktime_get_snapshot(&now);
	stamp->sys_realtime = now.real;
	stamp->sys_monoraw = now.raw;
	stamp->device = ns_to_ktime(shown(card_of(info), ktime_to_ns(now.raw)));
	return 0;
}

static int enable(struct ptp_clock_info *info, struct ptp_clock_request *request, int on)
{
	return -EOPNOTSUPP;
}

static bool is_every(unsigned int n, unsigned int count)
{
	return n && count % n == 0;
}

/* The stamp that a packet gets which passed when its card's clock showed `at`; 0 for none. */
static u64 stamp_of(struct card *card, u64 at, bool is_sent)
{
	u64 *last = is_sent ? &card->last_sent : &card->last_received;
	u64 *other = is_sent ? &card->last_received : &card->last_sent;
	unsigned long flags;
	u64 given = at;

	spin_lock_irqsave(&card->lock, flags);
	if (card == cards[0]) {
		card->stamps++;
		if (is_every(lose, card->stamps))
			given = 0;
		else if (is_every(stale, card->stamps))
			given = *last;
		else if (is_every(swap, card->stamps))
			given = *other;
	}
	*last = at;
	spin_unlock_irqrestore(&card->lock, flags);
	return given;
}

/* Before the header of the frame is taken away. */
static bool is_received_with_stamp(struct card *card, struct sk_buff *skb)
{
	struct ptp_header *header;
	unsigned int class;

	if (card->config.rx_filter != HWTSTAMP_FILTER_PTP_V2_EVENT)
		return card->config.rx_filter == HWTSTAMP_FILTER_ALL;
	skb_reset_mac_header(skb);
	class = ptp_classify_raw(skb);
	header = class == PTP_CLASS_NONE ? NULL : ptp_parse_header(skb, class);
	return header && ptp_get_msgtype(header, class) < 8;
}

static void deliver(struct card *card, struct sk_buff *skb, u64 raw)
{
	struct card *peer = card->peer;
	bool is_stamped = is_received_with_stamp(peer, skb);
	u64 stamp;

	skb_scrub_packet(skb, true);
	skb->protocol = eth_type_trans(skb, peer->dev);
	if (is_stamped) {
		stamp = stamp_of(peer, shown(peer, raw + delay_ns), false);
		skb_hwtstamps(skb)->hwtstamp = ns_to_ktime(stamp);
	}
	peer->dev->stats.rx_packets++;
	peer->dev->stats.rx_bytes += skb->len;
	skb_queue_tail(&peer->arrived, skb);
	napi_schedule(&peer->napi);
}

static netdev_tx_t start_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct card *card = *(struct card **)netdev_priv(dev);
	struct skb_shared_hwtstamps stamp = {};
	bool is_stamped = card->config.tx_type == HWTSTAMP_TX_ON &&
			  (skb_shinfo(skb)->tx_flags & SKBTX_HW_TSTAMP);
	/* Not a clone: the stamp lies in what clones share. */
	struct sk_buff *copy = skb_copy(skb, GFP_ATOMIC);
	u64 raw;

	if (is_stamped)
		skb_shinfo(skb)->tx_flags |= SKBTX_IN_PROGRESS;
	skb_tx_timestamp(skb);
	raw = ktime_get_raw_ns();
	dev->stats.tx_packets++;
	dev->stats.tx_bytes += skb->len;
	if (is_stamped) {
		stamp.hwtstamp = ns_to_ktime(stamp_of(card, shown(card, raw), true));
		if (stamp.hwtstamp)
			skb_tstamp_tx(skb, &stamp);
	}
	if (copy && netif_running(card->peer->dev))
		deliver(card, copy, raw);
	else
		kfree_skb(copy);
	consume_skb(skb);
	return NETDEV_TX_OK;
}

/* Through NAPI, so that a stamp says which device took it (SCM_TIMESTAMPING_PKTINFO). */
static int poll_arrived(struct napi_struct *napi, int budget)
{
	struct card *card = container_of(napi, struct card, napi);
	struct sk_buff *skb;
	int done = 0;

	while (done < budget && (skb = skb_dequeue(&card->arrived))) {
		napi_gro_receive(napi, skb);
		done++;
	}
	if (done < budget && napi_complete_done(napi, done) &&
	    !skb_queue_empty(&card->arrived))
		napi_schedule(napi);
	return done;
}

static int open_card(struct net_device *dev)
{
	struct card *card = *(struct card **)netdev_priv(dev);

	napi_enable(&card->napi);
	netif_carrier_on(dev);
	netif_start_queue(dev);
	return 0;
}

static int stop_card(struct net_device *dev)
{
	struct card *card = *(struct card **)netdev_priv(dev);

	netif_stop_queue(dev);
	napi_disable(&card->napi);
	skb_queue_purge(&card->arrived);
	return 0;
}

static int take_config(struct card *card, int tx_type, int *rx_filter)
{
	bool knows_ptp = ptp_only && card == cards[0];

	if (tx_type != HWTSTAMP_TX_OFF && tx_type != HWTSTAMP_TX_ON)
		return -ERANGE;
	if (knows_ptp && (*rx_filter == HWTSTAMP_FILTER_ALL || *rx_filter == HWTSTAMP_FILTER_NTP_ALL))
		return -ERANGE;
	/* All packets, all events of PTP, or none. */
	if (*rx_filter != HWTSTAMP_FILTER_NONE)
		*rx_filter = knows_ptp ? HWTSTAMP_FILTER_PTP_V2_EVENT : HWTSTAMP_FILTER_ALL;
	card->config.tx_type = tx_type;
	card->config.rx_filter = *rx_filter;
	return 0;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
static int hwtstamp_get(struct net_device *dev, struct kernel_hwtstamp_config *config)
{
	struct card *card = *(struct card **)netdev_priv(dev);

	config->tx_type = card->config.tx_type;
	config->rx_filter = card->config.rx_filter;
	return 0;
}

static int hwtstamp_set(struct net_device *dev, struct kernel_hwtstamp_config *config,
			struct netlink_ext_ack *ack)
{
	return take_config(*(struct card **)netdev_priv(dev), config->tx_type, &config->rx_filter);
}
#else
static int eth_ioctl(struct net_device *dev, struct ifreq *request, int command)
{
	struct card *card = *(struct card **)netdev_priv(dev);
	struct hwtstamp_config config = card->config;
	int error;

	if (command == SIOCSHWTSTAMP) {
		if (copy_from_user(&config, request->ifr_data, sizeof(config)))
			return -EFAULT;
		error = take_config(card, config.tx_type, &config.rx_filter);
		if (error)
			return error;
	} else if (command != SIOCGHWTSTAMP) {
		return -EOPNOTSUPP;
	}
	return copy_to_user(request->ifr_data, &config, sizeof(config)) ? -EFAULT : 0;
}
#endif

static const struct net_device_ops device_ops = {
	.ndo_open = open_card,
	.ndo_stop = stop_card,
	.ndo_start_xmit = start_xmit,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
	.ndo_hwtstamp_get = hwtstamp_get,
	.ndo_hwtstamp_set = hwtstamp_set,
#else
	.ndo_eth_ioctl = eth_ioctl,
#endif
};

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define kernel_ethtool_ts_info ethtool_ts_info
#endif
static int get_ts_info(struct net_device *dev, struct kernel_ethtool_ts_info *info)
{
	struct card *card = *(struct card **)netdev_priv(dev);

	info->so_timestamping = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE |
				SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_TX_HARDWARE |
				SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
	info->phc_index = ptp_clock_index(card->ptp);
	info->tx_types = BIT(HWTSTAMP_TX_OFF) | BIT(HWTSTAMP_TX_ON);
	info->rx_filters = BIT(HWTSTAMP_FILTER_NONE);
	info->rx_filters |= ptp_only && card == cards[0] ? BIT(HWTSTAMP_FILTER_PTP_V2_EVENT) :
							   BIT(HWTSTAMP_FILTER_ALL);
	return 0;
}

static int get_link_ksettings(struct net_device *dev, struct ethtool_link_ksettings *settings)
{
	settings->base.speed = SPEED_1000;
	settings->base.duplex = DUPLEX_FULL;
	return 0;
}

static const struct ethtool_ops tool_ops = {
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = get_link_ksettings,
	.get_ts_info = get_ts_info,
};

/* As another program would: by a file, since the tests have no right to set clocks. */
static int set_step(const char *text, const struct kernel_param *unused)
{
	long long step;
	int error = kstrtoll(text, 0, &step);

	if (!error && cards[0])
		change(cards[0], step, cards[0]->steered);
	return error;
}

static int set_steer(const char *text, const struct kernel_param *unused)
{
	long long rate;
	int error = kstrtoll(text, 0, &rate);

	if (!error && cards[0])
		change(cards[0], 0, div_s64(rate << RATE_BITS, 1000000000));
	return error;
}

/* CLOCK_MONOTONIC_RAW, and what the clock of each card showed at that moment. */
static int get_truth(char *text, const struct kernel_param *unused)
{
	unsigned long flags;
	u64 raw, at[PAIR];
	int i;

	if (!cards[0] || !cards[1])
		return -ENODEV;
	raw = ktime_get_raw_ns();
	for (i = 0; i < PAIR; i++) {
		spin_lock_irqsave(&cards[i]->lock, flags);
		at[i] = exact(cards[i], raw);
		spin_unlock_irqrestore(&cards[i]->lock, flags);
	}
	return sysfs_emit(text, "%llu %llu %llu\n", raw, at[0], at[1]);
}

static const struct kernel_param_ops truth_ops = { .get = get_truth };
module_param_cb(truth, &truth_ops, NULL, 0444);
MODULE_PARM_DESC(truth, "CLOCK_MONOTONIC_RAW and, at that moment, both clocks without noise [ns]");

static const struct kernel_param_ops step_ops = { .set = set_step };
static const struct kernel_param_ops steer_ops = { .set = set_steer };
module_param_cb(clock_step, &step_ops, NULL, 0200);
MODULE_PARM_DESC(clock_step, "steps the clock of hp0 by this number of ns");
module_param_cb(clock_steer, &steer_ops, NULL, 0200);
MODULE_PARM_DESC(clock_steer, "steers the clock of hp0 by this rate, in ppb");

static void setup_card(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &device_ops;
	dev->ethtool_ops = &tool_ops;
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	eth_hw_addr_random(dev);
}

static void remove_card(struct card *card)
{
	if (!card)
		return;
	if (card->dev) {
		if (card->dev->reg_state == NETREG_REGISTERED)
			unregister_netdev(card->dev);
		netif_napi_del(&card->napi);
		free_netdev(card->dev);
	}
	if (!IS_ERR_OR_NULL(card->ptp))
		ptp_clock_unregister(card->ptp);
	kfree(card);
}

static struct card *make_card(int number)
{
	struct card *card = kzalloc(sizeof(*card), GFP_KERNEL);
	char name[IFNAMSIZ];

	if (!card)
		return NULL;
	spin_lock_init(&card->lock);
	skb_queue_head_init(&card->arrived);
	card->own_rate = div_s64((s64)ppb[number] << RATE_BITS, 1000000000);
	card->base_raw = ktime_get_raw_ns();
	card->base = (1000ULL + 777 * number) * NSEC_PER_SEC;
	if (on_time)
		card->base = ktime_get_real_ns() + TAI_AHEAD * NSEC_PER_SEC;
	card->info.owner = THIS_MODULE;
	snprintf(card->info.name, sizeof(card->info.name), "hwpair%d", number);
	card->info.max_adj = 100000000;
	card->info.adjfine = adjfine;
	card->info.adjtime = adjtime;
	card->info.settime64 = settime;
	card->info.gettimex64 = gettimex;
	card->info.getcrosststamp = cross ? getcrosststamp : NULL;
	card->info.enable = enable;
	card->ptp = ptp_clock_register(&card->info, NULL);
	snprintf(name, sizeof(name), "hp%d", number);
	card->dev = alloc_netdev(sizeof(struct card *), name, NET_NAME_PREDICTABLE, setup_card);
	if (IS_ERR_OR_NULL(card->ptp) || !card->dev) {
		remove_card(card);
		return NULL;
	}
	*(struct card **)netdev_priv(card->dev) = card;
	netif_napi_add(card->dev, &card->napi, poll_arrived);
	return card;
}

static void hwpair_exit(void)
{
	int i;

	/* Neither may send to one that is gone. */
	for (i = 0; i < PAIR; i++)
		if (cards[i] && cards[i]->dev->reg_state == NETREG_REGISTERED)
			unregister_netdev(cards[i]->dev);
	for (i = 0; i < PAIR; i++)
		remove_card(cards[i]);
}

static int __init hwpair_init(void)
{
	int i, error = -ENOMEM;

	for (i = 0; i < PAIR; i++) {
		cards[i] = make_card(i);
		if (!cards[i])
			goto failed;
	}
	for (i = 0; i < PAIR; i++)
		cards[i]->peer = cards[PAIR - 1 - i];
	for (i = 0; i < PAIR; i++) {
		error = register_netdev(cards[i]->dev);
		if (error)
			goto failed;
	}
	return 0;
failed:
	hwpair_exit();
	return error;
}

module_init(hwpair_init);
module_exit(hwpair_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A pair of network devices that stamp packets in hardware, to test with");
