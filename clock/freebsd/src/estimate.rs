//! Our estimate in the form of FreeBSD's `struct ffclock_estimate` (`sys/timeffc.h`).

use ffclock_units::{Bound, Counter, Estimate, LeapTable, Moment, Period, Span, Status, Tai};

/// `struct ffclock_estimate`, field for field.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawEstimate {
    /// The time at `update_ffcount`, whole seconds: UTC plus all leap seconds seen since the base.
    pub update_time_sec: i64,
    /// Its fraction [2^-64 s].
    pub update_time_frac: u64,
    /// The counter at that time.
    pub update_ffcount: u64,
    /// The counter at the next leap second.
    pub leapsec_next: u64,
    /// The period [2^-64 s].
    pub period: u64,
    /// Bound of the time's error at `update_ffcount` [ns].
    pub errb_abs: u32,
    /// Bound of the rate's error [ps/s].
    pub errb_rate: u32,
    /// `FFCLOCK_STA_UNSYNC` and `FFCLOCK_STA_WARMUP`.
    pub status: u32,
    /// All leap seconds seen since the base.
    pub leapsec_total: i16,
    /// The next leap second: +1, -1, or 0 for none.
    pub leapsec: i8,
    /// Padding, 0.
    pub pad: i8,
}

/// The status bits of the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelStatus(pub u32);

impl KernelStatus {
    /// It follows no source: `FFCLOCK_STA_UNSYNC`.
    pub const UNSYNCHRONISED: KernelStatus = KernelStatus(1);
    /// Its estimate rests on little data: `FFCLOCK_STA_WARMUP`.
    pub const WARMING_UP: KernelStatus = KernelStatus(2);
    /// In regular work.
    pub const SYNCHRONISED: KernelStatus = KernelStatus(0);

    fn of(status: Status) -> Self {
        match status {
            Status::Unsynchronised | Status::Holdover => KernelStatus::UNSYNCHRONISED,
            Status::WarmingUp => KernelStatus::WARMING_UP,
            Status::Synchronised => KernelStatus::SYNCHRONISED,
        }
    }
}

/// The kernel's clock runs on a leap-free scale and subtracts the leap seconds that it was given. The scale begins as
/// UTC when the daemon starts, so that a program which asks for it without the correction is right as long as no leap
/// second passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeapBase {
    /// TAI - UTC [s] at the beginning.
    offset: i32,
}

impl LeapBase {
    /// The base for a daemon that starts at `now`.
    pub fn beginning_at(now: Moment<Tai>, leaps: &LeapTable) -> Self {
        LeapBase { offset: offset_at(now, leaps) }
    }
}

/// TAI - UTC [s].
fn offset_at(now: Moment<Tai>, leaps: &LeapTable) -> i32 {
    let step = leaps.step_around(now);
    if now.whole_seconds() < step.at { step.before } else { step.after }
}

/// A period that the kernel cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the period of the counter is not a whole number of 2^-64 s, nor near one")]
pub struct UnrepresentablePeriod;

/// An estimate in the kernel's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelEstimate(RawEstimate);

/// The period in whole units of 2^-64 s, to the nearest, and the relative error of that in 2^-64 s/s, rounded up.
fn whole_units(period: Period) -> Result<(u64, u64), UnrepresentablePeriod> {
    let (mantissa, shift) = (u128::from(period.mantissa()), u32::from(period.shift()));
    let half = (1_u128 << shift) >> 1;
    let units = (mantissa + half) >> shift;
    let off = mantissa.abs_diff(units << shift);
    let relative = ((off << 64).div_ceil(mantissa)).min(u128::from(u64::MAX));
    let units = u64::try_from(units).map_err(|_| UnrepresentablePeriod)?;
    if units == 0 { Err(UnrepresentablePeriod) } else { Ok((units, relative as u64)) }
}

/// From 2^-64 s/s to ps/s, rounded up; saturates at 4.3 ms/s.
fn picoseconds_per_second(units: u64) -> u32 {
    let picoseconds = (u128::from(units) * 1_000_000_000_000).div_ceil(1 << 64);
    u32::try_from(picoseconds).unwrap_or(u32::MAX)
}

/// The largest bound that the kernel can represent: it computes in 64 bits of 2^-64 s, and of a second or more only the
/// rest would remain.
const LARGEST_BOUND: u32 = 999_999_999;

/// In ns, rounded up; saturates at [`LARGEST_BOUND`].
fn nanoseconds(bound: Bound) -> u32 {
    u32::try_from(bound.as_nanos_up()).map_or(LARGEST_BOUND, |nanoseconds| nanoseconds.min(LARGEST_BOUND))
}

impl KernelEstimate {
    /// The estimate for the kernel, as of the reading `now`.
    ///
    /// It is moved from the reading at which it was made to `now` with our own period, because the kernel's has steps
    /// of 0.16 ppb at 3 GHz: the error of rounding then grows from the last hand-over on, and not from the last
    /// exchange. It enters the bound of the rate. A clock whose bound the kernel cannot represent is not synchronised.
    ///
    /// # Errors
    /// The kernel cannot represent the period.
    pub fn of(
        estimate: &Estimate,
        now: Counter,
        leaps: &LeapTable,
        base: LeapBase,
    ) -> Result<Self, UnrepresentablePeriod> {
        let (period, rounding) = whole_units(estimate.period)?;
        let at = estimate.at(now);
        let tai = at.time;
        let time = tai.since_origin() - Span::from_secs(base.offset.into());
        let units = time.units();
        let growth = estimate.bound_growth.units().saturating_add(rounding);
        let bound = nanoseconds(at.bound);
        let is_known = bound < LARGEST_BOUND;
        let mut raw = RawEstimate {
            update_time_sec: (units >> 64) as i64,
            update_time_frac: units as u64,
            update_ffcount: now.raw(),
            period,
            errb_abs: bound,
            errb_rate: picoseconds_per_second(growth),
            status: if is_known { KernelStatus::of(estimate.status).0 } else { KernelStatus::UNSYNCHRONISED.0 },
            leapsec_total: (offset_at(tai, leaps) - base.offset) as i16,
            ..RawEstimate::default()
        };
        let step = leaps.step_around(tai);
        if step.at > tai.whole_seconds() && leaps.announced().is_some() {
            let left = Span::from_secs(step.at) - tai.since_origin();
            raw.leapsec_next = (now + estimate.period.ticks_in(left)).raw();
            raw.leapsec = (step.after - step.before) as i8;
        }
        Ok(KernelEstimate(raw))
    }

    /// The first of a run of estimates: where the kernel's clock follows no source yet, its monotonic time is set to
    /// this one instead of being slewed towards it at 5000 ppm at most. The kernel does so for an estimate that warms
    /// up, and for no other.
    #[must_use]
    pub fn first(self) -> Self {
        KernelEstimate(RawEstimate { status: self.0.status | KernelStatus::WARMING_UP.0, ..self.0 })
    }

    /// The last of a run of estimates: the clock follows no source from here on, and its monotonic time runs on at the
    /// true rate.
    ///
    /// It is the same line, one tick later. The kernel divides the error of its monotonic time by the ticks since the
    /// previous estimate (by zero for the same one: a panic), and goes on correcting at that rate until the next
    /// estimate; over less than a second it corrects nothing.
    #[must_use]
    pub fn last(self) -> Self {
        let begin = (i128::from(self.0.update_time_sec) << 64) + i128::from(self.0.update_time_frac);
        let time = begin + i128::from(self.0.period);
        KernelEstimate(RawEstimate {
            update_time_sec: (time >> 64) as i64,
            update_time_frac: time as u64,
            update_ffcount: self.0.update_ffcount.wrapping_add(1),
            status: KernelStatus::UNSYNCHRONISED.0,
            ..self.0
        })
    }

    /// The reading at which it was handed over.
    pub fn reading(&self) -> Counter {
        Counter::from_raw(self.0.update_ffcount)
    }

    /// As the kernel takes it.
    pub fn raw(&self) -> &RawEstimate {
        &self.0
    }

    /// What the kernel's clock shows at `counter`: on its leap-free scale, and as UTC.
    ///
    /// This is the kernel's arithmetic (multiplication in units of 2^-64 s, leap seconds taken off), for tests and
    /// to check what the kernel was given.
    pub fn time_at(&self, counter: Counter) -> (Span, Span) {
        let raw = &self.0;
        let ticks = i128::from((counter - Counter::from_raw(raw.update_ffcount)).raw());
        let begin = (i128::from(raw.update_time_sec) << 64) + i128::from(raw.update_time_frac);
        let free = Span::from_units(begin + ticks * i128::from(raw.period));
        let has_passed = raw.leapsec != 0 && counter.is_after(Counter::from_raw(raw.leapsec_next));
        let next = if has_passed { i64::from(raw.leapsec) } else { 0 };
        (free, free - Span::from_secs(i64::from(raw.leapsec_total) + next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{GrowthRate, LeapAnnouncement, Rate, StandardUncertainty, Ticks};

    fn estimate(hertz: f64, tai: i64) -> Estimate {
        let period = Period::from_hertz(hertz).expect("a frequency of a counter");
        Estimate {
            counter: Counter::from_raw(u64::MAX - 5_000),
            time: Moment::from_origin(Span::from_secs(tai) + Span::from_units(12_345_678_901_234_567)),
            period,
            uncertainty: StandardUncertainty::ZERO,
            noise: StandardUncertainty::ZERO,
            uncertainty_growth: GrowthRate::default(),
            bound: Bound::of(Span::from_nanos(1_500)),
            bound_growth: GrowthRate::of(Rate::from_ppm(0.05)),
            difference_period: period,
            difference_bound: GrowthRate::default(),
            difference_uncertainty: GrowthRate::default(),
            status: Status::Synchronised,
        }
    }

    #[test]
    fn the_layout_is_that_of_the_header() {
        // sys/timeffc.h on amd64: a bintime of 16 bytes, three 64-bit words, three 32-bit ones, 2 + 1 + 1 bytes.
        assert_eq!(size_of::<RawEstimate>(), 56);
        assert_eq!(core::mem::offset_of!(RawEstimate, period), 32);
        assert_eq!(core::mem::offset_of!(RawEstimate, leapsec_total), 52);
    }

    #[test]
    fn the_period_is_rounded_to_the_nearest_unit_and_the_rest_is_known() {
        for hertz in [1e9, 2.4e9, 3_187_234_567.0, 14_318_180.0, 3_579_545.0] {
            let period = Period::from_hertz(hertz).expect("in range");
            let (units, relative) = whole_units(period).expect("in range");
            // Exactly: mantissa against units * 2^shift.
            let (mantissa, scaled) = (i128::from(period.mantissa()), i128::from(units) << period.shift());
            assert!(2 * (mantissa - scaled).abs() <= 1 << period.shift(), "{hertz}");
            assert!(i128::from(relative) * mantissa >= (mantissa - scaled).abs() << 64, "{hertz}: rounded up");
        }
        let tiny = Period::from_parts(1 << 63, 59).expect("2^-60 s");
        assert_eq!(whole_units(tiny), Ok((16, 0)));
    }

    #[test]
    fn the_kernel_shows_our_time_within_what_its_period_costs() {
        let (leaps, hertz) = (LeapTable::built_in(), 3_187_234_567.0);
        let ours = estimate(hertz, 1_800_000_037);
        let base = LeapBase::beginning_at(ours.time, &leaps);
        let now = ours.counter + Ticks::from_raw(7_000_000_000);
        let handed = KernelEstimate::of(&ours, now, &leaps, base).expect("a usual period");
        let at_once = ours.at(now).time;
        let (_, utc) = handed.time_at(now);
        assert_eq!(utc, leaps.utc_from_tai(at_once).since_origin(), "to the last bit at the hand-over");
        let later = now + Ticks::from_raw(16 * 3_187_234_567);
        let (_, utc) = handed.time_at(later);
        let off = utc - leaps.utc_from_tai(ours.at(later).time).since_origin();
        assert!(off.abs() < Span::from_nanos(2), "16 s at 0.08 ppb: {off}");
        let rate = Span::from_nanos(i128::from(handed.raw().errb_rate) * 16 / 1000 + 1);
        assert!(off.abs() < rate, "{off} within the bound of the rate");
    }

    #[test]
    fn errors_are_rounded_up_and_saturate() {
        assert_eq!(picoseconds_per_second(0), 0);
        assert_eq!(picoseconds_per_second(1), 1);
        // 0.05 ppm is 50000 ps/s.
        assert_eq!(picoseconds_per_second(GrowthRate::of(Rate::from_ppm(0.05)).units()), 50_001);
        assert_eq!(picoseconds_per_second(u64::MAX), u32::MAX);
        assert_eq!(nanoseconds(Bound::of(Span::from_units(1))), 1);
        assert_eq!(nanoseconds(Bound::of(Span::from_secs(1))), 999_999_999);
        // As the kernel computes it.
        assert!(u64::from(nanoseconds(Bound::of(Span::from_secs(5)))).checked_mul(18_446_744_073).is_some());
    }

    #[test]
    fn a_leap_second_is_announced_ahead_and_counted_afterwards() {
        let utc_second = 1_830_297_600;
        for change in [1_i8, -1] {
            let leaps = LeapTable::with(LeapAnnouncement { utc_second, change });
            let ours = estimate(1e9, utc_second + 37 - 100);
            let base = LeapBase::beginning_at(ours.time, &leaps);
            let before = KernelEstimate::of(&ours, ours.counter, &leaps, base).expect("a usual period");
            assert_eq!((before.raw().leapsec, before.raw().leapsec_total), (change, 0));
            for seconds in [-50_i64, 50] {
                let at = Counter::from_raw(before.raw().leapsec_next) + Ticks::from_raw(seconds * 1_000_000_000);
                let truth = leaps.utc_from_tai(ours.at(at).time).since_origin();
                let (_, utc) = before.time_at(at);
                assert!((utc - truth).abs() < Span::from_nanos(1_000), "{change} {seconds}: {}", utc - truth);
                let again = KernelEstimate::of(&ours, at, &leaps, base).expect("a usual period");
                assert_eq!(again.time_at(at).1, truth, "{change} {seconds}");
                assert_eq!(i8::try_from(again.raw().leapsec_total), Ok(if seconds > 0 { change } else { 0 }));
            }
        }
    }

    #[test]
    fn an_end_is_a_tick_later_on_the_same_line() {
        let (leaps, ours) = (LeapTable::built_in(), estimate(2.4e9, 1_800_000_037));
        let base = LeapBase::beginning_at(ours.time, &leaps);
        let handed = KernelEstimate::of(&ours, ours.counter, &leaps, base).expect("a usual period");
        let last = handed.last();
        assert_eq!((last.reading() - handed.reading()).raw(), 1);
        assert_eq!((last.raw().status, handed.first().raw().status), (1, 2));
        let later = handed.reading() + Ticks::from_raw(1 << 40);
        assert_eq!(last.time_at(later), handed.time_at(later));
    }

    #[test]
    fn a_clock_whose_bound_cannot_be_represented_is_not_synchronised() {
        let (leaps, ours) = (LeapTable::built_in(), estimate(2.4e9, 1_800_000_037));
        let base = LeapBase::beginning_at(ours.time, &leaps);
        let wide = Estimate { bound: Bound::of(Span::from_secs(2)), ..ours };
        let handed = KernelEstimate::of(&wide, wide.counter, &leaps, base).expect("a usual period");
        assert_eq!((handed.raw().errb_abs, handed.raw().status), (999_999_999, 1));
    }

    #[test]
    fn only_regular_work_is_synchronised() {
        assert_eq!(KernelStatus::of(Status::Holdover), KernelStatus::UNSYNCHRONISED);
        assert_eq!(KernelStatus::of(Status::WarmingUp), KernelStatus::WARMING_UP);
        assert_eq!(KernelStatus::of(Status::Synchronised).0, 0);
    }
}
