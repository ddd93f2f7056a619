// SPDX-License-Identifier: GPL-2.0
/*
 * ffcounter: cumulative 64-bit counters over the hardware counters of a
 * machine, and over whatever the kernel keeps time with.
 *
 * A counter narrower than 64 bits is extended by adding up the distance
 * between its readings, which are taken every QUARTER jiffies at least, also on
 * an idle machine without ticks: the timer behind the work is not deferrable.
 * If a reading comes so late that half a turn has passed by the TSC, a turn may
 * be lost, and a new epoch begins. A new epoch also begins with another
 * clocksource (for FFCOUNTER_ACTIVE) and with a suspend (for all: some counters
 * stop there, some are reset, and none can be followed). From the moment a
 * suspend is prepared until it is over, readings fail with -EAGAIN.
 *
 * The length of half a turn by the TSC is measured, not computed: the kernel's
 * figure for the frequency of the TSC may be far off in a virtual machine that
 * was held up while it booted.
 *
 * What the kernel keeps time with is one of the counters that the module reads
 * itself, or it is found out: its rate by the kernel's raw clock, which is made
 * from it, and its width where it turns for the first time. Until its rate is
 * known, FFCOUNTER_ACTIVE is not there.
 *
 * Where this says TSC, other architectures have the counter that each of their
 * CPUs has of its own.
 *
 * Nothing here sets or steers a clock.
 */
#include <linux/bits.h>
#include <linux/clocksource.h>
#include <linux/delay.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/seqlock.h>
#include <linux/slab.h>
#include <linux/suspend.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include "ffcounter.h"
#include "hardware.h"

#define QUARTER (HZ / 4)
#define NO_LIMIT S64_MAX
/*
 * A new epoch of a narrow counter begins so far beyond the last one that its
 * values cannot be taken for later values of that epoch: a reader that does not
 * know of it yet finds its estimate a month or years old, and not a time that
 * is a little off.
 */
#define EPOCHS_APART BIT_ULL(48)

struct ffc {
	raw_spinlock_t lock;		/* held to change the fields below */
	seqcount_raw_spinlock_t seq;
	u64 (*read)(void);		/* the hardware; NULL for ACTIVE */
	struct ffcounter_sample base;	/* at last; width 0: no counter */
	u64 last;
	u64 tsc;			/* before last was read */
	s64 limit;			/* half a turn, TSC cycles */
	int error;			/* reason that it is unreadable now */
	u8 cs_seq;			/* ACTIVE: switches of clocksource */
	bool is_unknown;		/* ACTIVE: no counter that is read here */
	u64 first;			/* ACTIVE: where its epoch began, */
	s64 first_ns;			/* and the raw clock there */
	struct ffcounter_page *page;	/* NULL: no page */
};

/* As if the machine had no hardware that is known here: for the tests. */
static bool blind;
module_param(blind, bool, 0444);
/* How long the raw clock is compared: its ns make the rate good to 1e-8 then. */
#define RATE_TAKES_NS (90 * NSEC_PER_MSEC)

static struct ffc counters[FFCOUNTER_COUNT];

static u64 read_hardware(const struct ffc *c, struct system_time_snapshot *snap)
{
	if (c->read)
		return c->read();
	ktime_get_snapshot(snap);
	return snap->cycles;
}

/* Signed for narrow counters: a reading a little older than last is no turn. */
static s64 distance(const struct ffc *c, u64 now)
{
	int shift = 64 - c->base.width;

	return (s64)((now - c->last) << shift) >> shift;
}

/*
 * A counter whose width is not known yet has turned: it shows less than half of
 * what it showed. (A reading of another CPU may be a little less.)
 */
static bool has_turned(const struct ffc *c, u64 now)
{
	return c->is_unknown && c->base.width == 64 && now < c->last / 2;
}

/*
 * The narrowest width that has room for what it showed last, if the time that
 * the raw clock measured fits.
 */
static void find_width(struct ffc *c, const struct system_time_snapshot *snap)
{
	u32 width = fls64(c->last);
	u64 passed = (snap->cycles - c->last) & GENMASK_ULL(width - 1, 0);
	u64 since_first = c->last - c->first + passed;
	u64 expected = mul_u64_u64_div_u64(ktime_to_ns(snap->raw) - c->first_ns,
					   c->base.frequency_millihertz,
					   1000000000000ULL);

	/* The rate is known to 1e-8, and a turn is no small part of the whole. */
	if (max(since_first, expected) - min(since_first, expected) <
	    BIT_ULL(width) / 8)
		c->base.width = width;
}

static bool is_fresh(const struct ffc *c, const struct system_time_snapshot *snap)
{
	if (!c->read && snap->cs_was_changed_seq != c->cs_seq)
		return false;
	return c->limit == NO_LIMIT ||
		(s64)(ffc_cycles() - c->tsc) < c->limit;
}

/*
 * The cycles were counted from before the first reading until after the second,
 * and a lost turn makes the distance smaller: each measurement is too long or
 * right, and the shortest is the best. Taking an eighth off makes up for the
 * excess that is left. A reading that was wrong by itself makes it too short, but
 * not below four ticks.
 */
static void learn_limit(struct ffc *c, u64 passed, s64 cycles)
{
	u64 half = BIT_ULL(c->base.width - 1);
	u64 limit;

	if (c->base.width == 64 || passed < half >> 11 || cycles <= 0)
		return;
	limit = div64_u64((u64)cycles << 10, passed) * ((half - half / 8) >> 10);
	limit = max_t(u64, limit, ffc_cycles_khz() * 1000);
	c->limit = ffc_cycles_are_unsteady() ? NO_LIMIT : min_t(u64, c->limit, limit);
}

/* The hardware that the kernel reads: its readings surround the kernel's own. */
static int identify(struct system_time_snapshot *snap)
{
	u64 before, after;
	int id, tries;

	ktime_get_snapshot(snap);
	for (id = FFCOUNTER_TSC; id < FFCOUNTER_COUNT; id++) {
		struct ffc *c = &counters[id];

		for (tries = 0; c->read && tries < 4; tries++) {
			u64 mask = GENMASK_ULL(c->base.width - 1, 0);

			before = c->read();
			ktime_get_snapshot(snap);
			after = c->read();
			if (((snap->cycles - before) & mask) >
			    ((after - before) & mask))
				break;
		}
		if (tries == 4)
			return id;
	}
	return -ENODEV;
}

static void write_page(struct ffc *c)
{
	struct ffcounter_page *page = c->page;

	if (!page)
		return;
	WRITE_ONCE(page->sequence, page->sequence + 1);
	smp_wmb();	/* odd before anything changes */
	WRITE_ONCE(page->state, !c->error && c->base.underlying == FFCOUNTER_TSC ?
		   FFCOUNTER_PAGE_TSC : FFCOUNTER_PAGE_CLOSED);
	WRITE_ONCE(page->epoch, c->base.epoch);
	WRITE_ONCE(page->frequency_millihertz, c->base.frequency_millihertz);
	smp_wmb();	/* even after everything has changed */
	WRITE_ONCE(page->sequence, page->sequence + 1);
}

static u32 flags_of(const struct ffc *c)
{
	u32 under = c->base.underlying, flags = 0;

	if (!c->read || READ_ONCE(counters[FFCOUNTER_ACTIVE].base.underlying) == under)
		flags |= FFCOUNTER_F_ACTIVE;
	if (under == FFCOUNTER_TSC)
		flags |= ffc_cycles_are_unsteady() ?
			FFCOUNTER_F_UNTRUSTED : FFCOUNTER_F_PAGE;
	return flags;
}

/* Under the lock, within a write section, like every call from change(). */
static void begin_epoch(struct ffc *c)
{
	struct system_time_snapshot snap = {};

	c->base.epoch++;
	c->error = 0;
	if (!c->read) {
		int id = identify(&snap);
		const struct ffc *under = &counters[max(id, 0)];

		c->cs_seq = snap.cs_was_changed_seq;
		c->is_unknown = id < 0;
		c->error = min(id, 0);
		c->base.underlying = max(id, 0);
		c->base.width = id < 0 ? 64 : under->base.width;
		c->base.frequency_millihertz =
			id < 0 ? 0 : under->base.frequency_millihertz;
		c->limit = id < 0 ? NO_LIMIT : READ_ONCE(under->limit);
	}
	c->tsc = ffc_cycles();
	c->last = read_hardware(c, &snap);
	c->first = c->last;
	c->first_ns = c->read ? 0 : ktime_to_ns(snap.raw);
	/* A counter that never wraps is its own cumulative value. */
	c->base.value = c->base.width == 64 && !c->is_unknown ? c->last :
		(round_up(c->base.value, EPOCHS_APART) + EPOCHS_APART) & S64_MAX;
	c->base.flags = flags_of(c);
	write_page(c);
}

/* The rate of a counter that is not known, once enough time has passed. */
static void find_rate(struct ffc *c, const struct system_time_snapshot *snap)
{
	s64 since_ns = ktime_to_ns(snap->raw) - c->first_ns;

	if (since_ns < RATE_TAKES_NS)
		return;
	c->base.frequency_millihertz =
		mul_u64_u64_div_u64(snap->cycles - c->first, 1000000000000ULL,
				    since_ns);
	c->error = 0;
}

static void advance(struct ffc *c)
{
	struct system_time_snapshot snap = {};
	u64 before, now;
	s64 passed;

	if (c->error == -EAGAIN)	/* asleep */
		return;
	before = ffc_cycles();
	now = read_hardware(c, &snap);
	if (has_turned(c, now) && !c->error)
		find_width(c, &snap);
	passed = distance(c, now);
	if (!is_fresh(c, &snap) || has_turned(c, now)) {
		begin_epoch(c);
		return;
	}
	if (c->is_unknown && c->error)
		find_rate(c, &snap);
	c->base.flags = flags_of(c);
	if (passed > 0) {
		learn_limit(c, passed, ffc_cycles() - c->tsc);
		c->base.value += passed;
		c->last = now;
		c->tsc = before;
	}
}

static void change(struct ffc *c, void (*how)(struct ffc *c))
{
	unsigned long flags;

	raw_spin_lock_irqsave(&c->lock, flags);
	write_seqcount_begin(&c->seq);
	how(c);
	write_seqcount_end(&c->seq);
	raw_spin_unlock_irqrestore(&c->lock, flags);
}

static void fall_asleep(struct ffc *c)
{
	c->error = -EAGAIN;
	write_page(c);
}

static void change_all(void (*how)(struct ffc *c))
{
	int id;

	for (id = 0; id < FFCOUNTER_COUNT; id++)
		if (counters[id].base.width)
			change(&counters[id], how);
}

static int get(struct ffc *c, struct ffcounter_sample *out,
	       struct system_time_snapshot *snap)
{
	unsigned int seq;
	bool fresh;
	int error;
	u64 now;

	if (!c->base.width)
		return -ENODEV;
	for (;;) {
		do {
			seq = read_seqcount_begin(&c->seq);
			error = c->error;
			*out = c->base;
			now = read_hardware(c, snap);
			out->value += distance(c, now);
			fresh = is_fresh(c, snap) && !has_turned(c, now);
		} while (read_seqcount_retry(&c->seq, seq));
		if (error == -EAGAIN || (error && fresh))
			return error;
		if (fresh)
			return 0;
		change(c, advance);
	}
}

int ffcounter_read(u32 id, struct ffcounter_sample *sample)
{
	struct system_time_snapshot snap;

	if (id >= FFCOUNTER_COUNT)
		return -ENODEV;
	return get(&counters[id], sample, &snap);
}
EXPORT_SYMBOL_GPL(ffcounter_read);

static int get_pair(struct ffc *c, struct ffcounter_pair *pair)
{
	struct system_time_snapshot snap, after;
	struct ffcounter_sample later;
	int error;

	/* If an epoch ends in between, the two readings do not belong together. */
	do {
		error = get(c, &pair->sample, &snap);
		if (error)
			return error;
		later = pair->sample;
		if (c->read) {
			ktime_get_snapshot(&snap);
			error = get(c, &later, &after);
			if (error)
				return error;
		}
	} while (later.epoch != pair->sample.epoch);
	pair->value_after = later.value;
	pair->realtime_ns = ktime_to_ns(snap.real);
	pair->monotonic_raw_ns = ktime_to_ns(snap.raw);
	return 0;
}

static int get_latency(struct ffc *c, struct ffcounter_latency *out)
{
	struct ffcounter_sample sample;
	struct system_time_snapshot snap;
	int error = c->base.width ? 0 : -ENODEV;

	if (error)
		return error;
	preempt_disable();
	out->tsc[0] = ffc_cycles();
	out->tsc[1] = ffc_cycles();
	read_hardware(c, &snap);
	out->tsc[2] = ffc_cycles();
	error = get(c, &sample, &snap);
	out->tsc[3] = ffc_cycles();
	preempt_enable();
	out->id = c->base.id;
	out->epoch = sample.epoch;
	return error;
}

static int ffc_open(struct inode *inode, struct file *file)
{
	file->private_data = ffc_ring_new();
	return file->private_data ? nonseekable_open(inode, file) : -ENOMEM;
}

static int ffc_release(struct inode *inode, struct file *file)
{
	ffc_ring_free(file->private_data);
	return 0;
}

static int set_stamping(struct file *file, const void __user *from)
{
	struct ffcounter_stamping want;

	if (!capable(CAP_NET_RAW))
		return -EPERM;
	if (copy_from_user(&want, from, sizeof(want)))
		return -EFAULT;
	if (want.count > FFCOUNTER_MAX_PORTS)
		return -EINVAL;
	if (want.id >= FFCOUNTER_COUNT || !counters[want.id].base.width)
		return -ENODEV;
	return ffc_ring_set(file->private_data, &want);
}

static long other_ioctl(struct file *file, unsigned int cmd, void __user *to)
{
	u32 id = _IOC_NR(cmd) & 0xf;
	union {
		struct ffcounter_pair pair;
		struct ffcounter_latency latency;
		__u32 version;
	} answer;
	int error = 0;

	if (cmd == FFCOUNTER_SET_STAMPING)
		return set_stamping(file, to);
	if (id >= FFCOUNTER_COUNT)
		return -ENODEV;
	if (cmd == FFCOUNTER_PAIR(id))
		error = get_pair(&counters[id], &answer.pair);
	else if (cmd == FFCOUNTER_LATENCY(id))
		error = get_latency(&counters[id], &answer.latency);
	else if (cmd == FFCOUNTER_GET_VERSION)
		answer.version = FFCOUNTER_VERSION;
	else
		error = -ENOTTY;
	if (error)
		return error;
	return copy_to_user(to, &answer, _IOC_SIZE(cmd)) ? -EFAULT : 0;
}

/* The usual request has a short path: a copy of known size, and no check. */
static long ffc_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct ffcounter_sample sample;
	u32 id = _IOC_NR(cmd) & 0xf;
	u64 __user *to = (void __user *)arg;
	const u64 *from = (void *)&sample;
	int error;

	if (cmd != FFCOUNTER_READ(id))
		return other_ioctl(file, cmd, (void __user *)arg);
	error = ffcounter_read(id, &sample);
	if (error)
		return error;
	BUILD_BUG_ON(sizeof(sample) != 32);
	if (!user_write_access_begin(to, sizeof(sample)))
		return -EFAULT;
	unsafe_put_user(from[0], to, fault);
	unsafe_put_user(from[1], to + 1, fault);
	unsafe_put_user(from[2], to + 2, fault);
	unsafe_put_user(from[3], to + 3, fault);
	user_write_access_end();
	return 0;
fault:
	user_write_access_end();
	return -EFAULT;
}

static ssize_t ffc_read(struct file *file, char __user *to, size_t size,
			loff_t *position)
{
	return ffc_ring_read(file->private_data, to, size);
}

static __poll_t ffc_poll(struct file *file, poll_table *wait)
{
	return ffc_ring_poll(file->private_data, file, wait);
}

static int ffc_mmap(struct file *file, struct vm_area_struct *vma)
{
	unsigned long id = vma->vm_pgoff;

	if (id >= FFCOUNTER_COUNT || !counters[id].page)
		return -ENODEV;
	if (vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	/* Neither now nor, by mprotect(2), later. */
	if (vma->vm_flags & (VM_WRITE | VM_MAYWRITE))
		return -EACCES;
	return vm_insert_page(vma, vma->vm_start,
			      virt_to_page(counters[id].page));
}

static const struct file_operations ffc_operations = {
	.owner = THIS_MODULE,		/* no unloading while it is open */
	.open = ffc_open,
	.release = ffc_release,
	.unlocked_ioctl = ffc_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.read = ffc_read,
	.poll = ffc_poll,
	.mmap = ffc_mmap,
};

/* A udev rule gives it to a group: see 70-ffcounter.rules. */
static struct miscdevice ffc_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "ffcounter",
	.mode = 0440,
	.fops = &ffc_operations,
};

static void tick(struct work_struct *work);
static DECLARE_DELAYED_WORK(ticking, tick);

static void tick(struct work_struct *work)
{
	change_all(advance);
	queue_delayed_work(system_highpri_wq, &ticking, QUARTER);
}

static int power_event(struct notifier_block *block, unsigned long event,
		       void *unused)
{
	switch (event) {
	case PM_SUSPEND_PREPARE:
	case PM_HIBERNATION_PREPARE:
	case PM_RESTORE_PREPARE:
		change_all(fall_asleep);
		break;
	case PM_POST_SUSPEND:
	case PM_POST_HIBERNATION:
	case PM_POST_RESTORE:
		change_all(begin_epoch);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block power_notifier = { .notifier_call = power_event };

static void add(u16 id, u64 (*read)(void), u16 width, u64 millihertz)
{
	counters[id].read = read;
	counters[id].base.width = width;
	counters[id].base.frequency_millihertz = millihertz;
}

static int make_page(u16 id)
{
	struct ffcounter_page *page = (void *)get_zeroed_page(GFP_KERNEL);

	if (!page)
		return -ENOMEM;
	page->version = FFCOUNTER_VERSION;
	counters[id].page = page;
	return 0;
}

static void let_go(void)
{
	ffc_release_hardware();
	free_page((unsigned long)counters[FFCOUNTER_ACTIVE].page);
	free_page((unsigned long)counters[FFCOUNTER_TSC].page);
}

static int __init ffc_init(void)
{
	int id, error;

	for (id = 0; id < FFCOUNTER_COUNT; id++) {
		struct ffc *c = &counters[id];

		raw_spin_lock_init(&c->lock);
		seqcount_raw_spinlock_init(&c->seq, &c->lock);
		/* Different from the epochs of earlier loads of the module. */
		c->base.epoch = ktime_get_boottime_seconds();
		c->base.id = id;
		c->base.underlying = id;
		c->limit = NO_LIMIT;
	}
	error = make_page(FFCOUNTER_ACTIVE) ?: make_page(FFCOUNTER_TSC);
	if (error)
		goto fail;
	if (!blind)
		ffc_find_hardware(add);
	add(FFCOUNTER_ACTIVE, NULL, 64, 0);
	change_all(begin_epoch);
	/* Before the first reader: long enough to learn the limits. */
	msleep(100);
	change_all(advance);
	error = register_pm_notifier(&power_notifier);
	if (error)
		goto fail;
	queue_delayed_work(system_highpri_wq, &ticking, QUARTER);
	error = misc_register(&ffc_device);
	if (!error)
		return 0;
	cancel_delayed_work_sync(&ticking);
	unregister_pm_notifier(&power_notifier);
fail:
	let_go();
	return error;
}

static void __exit ffc_exit(void)
{
	misc_deregister(&ffc_device);
	cancel_delayed_work_sync(&ticking);
	unregister_pm_notifier(&power_notifier);
	let_go();
}

module_init(ffc_init);
module_exit(ffc_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Cumulative 64-bit counters for feed-forward clocks");
MODULE_VERSION("0.1.0");
