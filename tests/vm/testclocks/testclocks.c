// SPDX-License-Identifier: GPL-2.0
/*
 * For the virtual machine of the tests alone, which has none of these: a PTP
 * hardware clock that runs 100 ppm fast against CLOCK_MONOTONIC_RAW, a PPS source
 * that pulses at each whole second of CLOCK_REALTIME, and a second one whose
 * pulses wander about these seconds by a known noise. Their stamps are exact, as
 * if hardware had taken them: how late a timer of an emulated machine comes is
 * not what is tested.
 *
 * The noise is white frequency noise: from one pulse to the next the phase
 * changes by a whole number of ns, each from -pulse_noise_ns to pulse_noise_ns
 * equally often. So the Allan deviation at an averaging time of tau seconds is
 * sqrt(n (n + 1) / (3 tau)) 1e-9, with n for pulse_noise_ns.
 */
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/pps_kernel.h>
#include <linux/ptp_clock_kernel.h>
#include <linux/timekeeping.h>

static struct ptp_clock *ptp;
static struct pps_device *pps, *noisy_pps;
static struct hrtimer pulse, noisy_pulse;

static unsigned int pulse_noise_ns = 17320;
module_param(pulse_noise_ns, uint, 0444);
static unsigned long long seed = 88172645463325252ULL;
module_param(seed, ullong, 0444);
static s64 phase_ns;
/* After its second, since a stamp of the future would not be believed. */
#define NOISY_AFTER_NS (100 * NSEC_PER_MSEC)

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

static struct pps_source_info noisy_pps_info = {
	.name = "ffclock-noise",
	.mode = PPS_CAPTUREASSERT | PPS_CANWAIT | PPS_TSFMT_TSPEC,
	.owner = THIS_MODULE,
};

/* Xorshift: G. Marsaglia, Journal of Statistical Software 8 (14), 2003. */
static u64 next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static enum hrtimer_restart on_noisy_pulse(struct hrtimer *timer)
{
	u32 range = 2 * pulse_noise_ns + 1;
	struct pps_event_time ts;
	time64_t second;

	phase_ns += (s64)mul_u64_u64_shr(next_random(), range, 64) - pulse_noise_ns;
	pps_get_ts(&ts);
	second = ts.ts_real.tv_sec;
	ts.ts_real = ns_to_timespec64(second * NSEC_PER_SEC + phase_ns);
	pps_event(noisy_pps, &ts, PPS_CAPTUREASSERT, NULL);
	hrtimer_set_expires(timer, ktime_set(second + 1, NOISY_AFTER_NS));
	return HRTIMER_RESTART;
}

static void start(struct hrtimer *timer,
		  enum hrtimer_restart (*function)(struct hrtimer *), s64 after_ns)
{
	hrtimer_init(timer, CLOCK_REALTIME, HRTIMER_MODE_ABS);
	timer->function = function;
	hrtimer_start(timer, ktime_set(ktime_get_real_seconds() + 1, after_ns),
		      HRTIMER_MODE_ABS);
}

static int __init testclocks_init(void)
{
	if (!seed)
		return -EINVAL;
	ptp = ptp_clock_register(&ptp_info, NULL);
	if (IS_ERR_OR_NULL(ptp))
		return ptp ? PTR_ERR(ptp) : -ENODEV;
	pps = pps_register_source(&pps_info, PPS_CAPTUREASSERT);
	if (IS_ERR(pps)) {
		ptp_clock_unregister(ptp);
		return PTR_ERR(pps);
	}
	noisy_pps = pps_register_source(&noisy_pps_info, PPS_CAPTUREASSERT);
	if (IS_ERR(noisy_pps)) {
		pps_unregister_source(pps);
		ptp_clock_unregister(ptp);
		return PTR_ERR(noisy_pps);
	}
	start(&pulse, on_pulse, 0);
	start(&noisy_pulse, on_noisy_pulse, NOISY_AFTER_NS);
	return 0;
}

static void __exit testclocks_exit(void)
{
	hrtimer_cancel(&noisy_pulse);
	hrtimer_cancel(&pulse);
	pps_unregister_source(noisy_pps);
	pps_unregister_source(pps);
	ptp_clock_unregister(ptp);
}

module_init(testclocks_init);
module_exit(testclocks_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A PTP clock and two PPS sources to test with");
