// SPDX-License-Identifier: GPL-2.0
/*
 * For the virtual machine of the tests alone, which has none of these: a PTP
 * hardware clock that runs 100 ppm fast against CLOCK_MONOTONIC_RAW, a PPS source
 * that pulses at each whole second of CLOCK_REALTIME, and a second one whose
 * pulses wander about these seconds by a known noise. Their stamps are exact, as
 * if hardware had taken them: how late a timer of an emulated machine comes is
 * not what is tested. With pulse_in_time the second one does what a driver does
 * whose stamps are the interrupt's: each pulse is handed over at its own moment,
 * with a stamp of that moment.
 *
 * What goes wrong with receivers is done to the first source at will: jitter, of
 * this standard deviation (pulse_jitter_ns), pulses that do not come
 * (pulse_stop), come twice in a second (pulse_double), or late (pulse_slip_ns).
 *
 * The noise of the second one is white frequency noise: from one pulse to the next the phase
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
static bool pulse_in_time;
module_param(pulse_in_time, bool, 0444);
static s64 phase_ns;
/* A timer is late, so it is set this long before the pulse, which is then awaited. */
#define AWAITED_NS (50 * NSEC_PER_USEC)
/* After its second, since a stamp of the future would not be believed. */
#define NOISY_AFTER_NS (100 * NSEC_PER_MSEC)
#define PULSE_AFTER_NS (200 * NSEC_PER_USEC)

static unsigned int pulse_jitter_ns;
module_param(pulse_jitter_ns, uint, 0644);
static bool pulse_stop, pulse_double;
module_param(pulse_stop, bool, 0644);
module_param(pulse_double, bool, 0644);
static unsigned int pulse_slip_ns;
module_param(pulse_slip_ns, uint, 0644);

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

/* Xorshift: G. Marsaglia, Journal of Statistical Software 8 (14), 2003. */
static u64 next_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Of standard deviation pulse_jitter_ns, and almost normal: the sum of twelve. */
static s64 jitter(void)
{
	static u64 state = 88172645463325252ULL;
	s64 sum = 0;
	int i;

	for (i = 0; i < 12; i++)
		sum += (s64)(next_random(&state) & 0xffff) - 0x8000;
	return div_s64(sum * (s64)pulse_jitter_ns, 0x10000);
}

/* A pulse each half second, of which the second one is seldom wanted. */
static enum hrtimer_restart on_pulse(struct hrtimer *timer)
{
	unsigned int slip = pulse_slip_ns % (NSEC_PER_SEC / 4);
	struct pps_event_time ts;
	u64 half;

	pps_get_ts(&ts);
	half = div_u64(timespec64_to_ns(&ts.ts_real) - slip, NSEC_PER_SEC / 2);
	ts.ts_real = ns_to_timespec64(half * (NSEC_PER_SEC / 2) + slip + jitter());
	if (!pulse_stop && (half % 2 == 0 || pulse_double))
		pps_event(pps, &ts, PPS_CAPTUREASSERT, NULL);
	hrtimer_set_expires(timer, ns_to_ktime((half + 1) * (NSEC_PER_SEC / 2) +
					       slip + PULSE_AFTER_NS));
	return HRTIMER_RESTART;
}

static struct pps_source_info noisy_pps_info = {
	.name = "ffclock-noise",
	.mode = PPS_CAPTUREASSERT | PPS_CANWAIT | PPS_TSFMT_TSPEC,
	.owner = THIS_MODULE,
};

static s64 next_phase(void)
{
	u32 range = 2 * pulse_noise_ns + 1;

	phase_ns += (s64)mul_u64_u64_shr(next_random(&seed), range, 64) - pulse_noise_ns;
	return phase_ns;
}

static enum hrtimer_restart on_noisy_pulse(struct hrtimer *timer)
{
	struct pps_event_time ts;
	time64_t second;

	pps_get_ts(&ts);
	second = ts.ts_real.tv_sec;
	ts.ts_real = ns_to_timespec64(second * NSEC_PER_SEC + next_phase());
	pps_event(noisy_pps, &ts, PPS_CAPTUREASSERT, NULL);
	hrtimer_set_expires(timer, ktime_set(second + 1, NOISY_AFTER_NS));
	return HRTIMER_RESTART;
}

static enum hrtimer_restart on_pulse_in_time(struct hrtimer *timer)
{
	static s64 second, moment_ns;
	struct pps_event_time ts;

	if (second) {
		while (ktime_get_real_ns() < moment_ns)
			cpu_relax();
		pps_get_ts(&ts);
		pps_event(noisy_pps, &ts, PPS_CAPTUREASSERT, NULL);
		second++;
	} else {
		second = ktime_get_real_seconds() + 2;
	}
	moment_ns = second * NSEC_PER_SEC + next_phase();
	hrtimer_set_expires(timer, ns_to_ktime(moment_ns - AWAITED_NS));
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
	start(&pulse, on_pulse, PULSE_AFTER_NS);
	start(&noisy_pulse, pulse_in_time ? on_pulse_in_time : on_noisy_pulse, NOISY_AFTER_NS);
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
