// SPDX-License-Identifier: GPL-2.0
/*
 * For the virtual machine of the tests alone, which has neither: a PTP hardware
 * clock that runs 100 ppm fast against CLOCK_MONOTONIC_RAW, and a PPS source
 * that pulses at each whole second of CLOCK_REALTIME. Its stamps are exact, as if
 * hardware had taken them: how late a timer of an emulated machine comes is not
 * what is tested.
 */
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/pps_kernel.h>
#include <linux/ptp_clock_kernel.h>
#include <linux/timekeeping.h>

static struct ptp_clock *ptp;
static struct pps_device *pps;
static struct hrtimer pulse;

static int read_ptp(struct ptp_clock_info *unused, struct timespec64 *ts)
{
	u64 raw = ktime_get_raw_ns();

	*ts = ns_to_timespec64(raw + div_u64(raw, 10000));
	return 0;
}

static struct ptp_clock_info ptp_info = {
	.owner = THIS_MODULE,
	.name = "ffclock test clock",
	.gettime64 = read_ptp,
};

static struct pps_source_info pps_info = {
	.name = "ffclock-test",
	.mode = PPS_CAPTUREASSERT | PPS_CANWAIT | PPS_TSFMT_TSPEC,
	.owner = THIS_MODULE,
};

static enum hrtimer_restart on_pulse(struct hrtimer *timer)
{
	struct pps_event_time ts;

	pps_get_ts(&ts);
	ts.ts_real.tv_nsec = 0;
	pps_event(pps, &ts, PPS_CAPTUREASSERT, NULL);
	hrtimer_set_expires(timer, ktime_set(ts.ts_real.tv_sec + 1, 0));
	return HRTIMER_RESTART;
}

static int __init testclocks_init(void)
{
	ptp = ptp_clock_register(&ptp_info, NULL);
	if (IS_ERR_OR_NULL(ptp))
		return ptp ? PTR_ERR(ptp) : -ENODEV;
	pps = pps_register_source(&pps_info, PPS_CAPTUREASSERT);
	if (IS_ERR(pps)) {
		ptp_clock_unregister(ptp);
		return PTR_ERR(pps);
	}
	hrtimer_init(&pulse, CLOCK_REALTIME, HRTIMER_MODE_ABS);
	pulse.function = on_pulse;
	hrtimer_start(&pulse, ktime_set(ktime_get_real_seconds() + 1, 0),
		      HRTIMER_MODE_ABS);
	return 0;
}

static void __exit testclocks_exit(void)
{
	hrtimer_cancel(&pulse);
	pps_unregister_source(pps);
	ptp_clock_unregister(ptp);
}

module_init(testclocks_init);
module_exit(testclocks_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A PTP clock and a PPS source to test with");
