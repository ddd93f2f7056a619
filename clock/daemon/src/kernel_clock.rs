//! Drives the feed-forward clock that FreeBSD's kernel can keep: hands it the published estimate at regular intervals
//! (docs/freebsd.md).

use ffclock_freebsd::{KernelEstimate, LeapBase};
use ffclock_units::{Counter, Estimate, LeapTable, Moment, Mono, Span};
use std::io;

/// A clock of the kernel that follows the estimates it is given.
pub(crate) trait KernelClock {
    /// Gives it an estimate.
    ///
    /// # Errors
    /// The kernel refuses it, and the error says why.
    fn follow(&mut self, estimate: &KernelEstimate) -> io::Result<()>;
}

/// The kernel of this machine.
#[cfg(target_os = "freebsd")]
pub(crate) struct ThisKernel;

#[cfg(target_os = "freebsd")]
impl KernelClock for ThisKernel {
    fn follow(&mut self, estimate: &KernelEstimate) -> io::Result<()> {
        ffclock_freebsd::kernel::set_estimate(estimate)
    }
}

/// The time between two hand-overs. The kernel removes the error of its monotonic time within the interval between the
/// last two estimates, and continues at that rate until the next one. If estimates come at uneven intervals, as
/// exchanges with several servers do, that time swings.
pub(crate) const PACE: Span = Span::from_secs(16);

/// An estimate is handed over as of this long ago: the kernel takes it to be older than its present tick, and a tick
/// began up to 10 ms ago.
const BEHIND: Span = Span::from_millis(100);

/// The last estimate handed to the kernel's clock, and when the next is due.
pub(crate) struct KernelClockDriver {
    clock: Box<dyn KernelClock>,
    pub(crate) pace: Span,
    next: Moment<Mono>,
    /// Set at the first estimate.
    base: Option<LeapBase>,
    /// The estimate that the kernel's clock follows; `None` while it is left alone.
    followed: Option<KernelEstimate>,
    /// The reading of the latest estimate handed over, kept after a release.
    latest: Option<Counter>,
}

impl KernelClockDriver {
    pub(crate) fn new(clock: Box<dyn KernelClock>, now: Moment<Mono>) -> Self {
        KernelClockDriver { clock, pace: PACE, next: now, base: None, followed: None, latest: None }
    }

    /// When the next estimate is due.
    pub(crate) fn due(&self) -> Moment<Mono> {
        self.next
    }

    /// Postpones the hand-over, since there is no estimate yet.
    pub(crate) fn wait(&mut self, now: Moment<Mono>) {
        self.next = now + Span::from_secs(1).min(self.pace);
    }

    /// Hands over an estimate at the reading `counter`. Returns whether the kernel's clock was left alone before.
    ///
    /// # Errors
    /// The kernel refuses it, and the error says why.
    pub(crate) fn hand_over(
        &mut self,
        estimate: &Estimate,
        counter: Counter,
        leaps: &LeapTable,
        now: Moment<Mono>,
    ) -> io::Result<bool> {
        let is_late = now >= self.next + self.pace.halved();
        self.next = if is_late { now } else { self.next } + self.pace;
        let counter = counter - estimate.period.ticks_in(BEHIND);
        if self.latest.is_some_and(|latest| !counter.is_after(latest)) {
            return Err(io::Error::other("its counter has not advanced since the last estimate"));
        }
        let tai = estimate.at(counter).time;
        let base = *self.base.get_or_insert_with(|| LeapBase::beginning_at(tai, leaps));
        let handed = KernelEstimate::of(estimate, counter, leaps, base).map_err(io::Error::other)?;
        let is_first = self.followed.is_none();
        self.give(&if is_first { handed.first() } else { handed })?;
        self.followed = Some(handed);
        Ok(is_first)
    }

    /// Marks the kernel's clock as unsynchronised: no daemon drives it from now on, and it continues with its last
    /// estimate.
    ///
    /// # Errors
    /// The kernel refuses it, and the error says why.
    pub(crate) fn let_go(&mut self) -> io::Result<()> {
        self.followed.take().map_or(Ok(()), |followed| self.give(&followed.last()))
    }

    fn give(&mut self, estimate: &KernelEstimate) -> io::Result<()> {
        self.clock.follow(estimate)?;
        self.latest = Some(estimate.reading());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{Bound, GrowthRate, Period, StandardUncertainty, Status, Ticks};
    use std::cell::RefCell;
    use std::rc::Rc;

    const SECOND: u64 = 1_000_000_000;

    /// A model of FreeBSD's kernel following estimates (`ffclock_windup` in kern_tc.c), for a counter of 1 GHz whose
    /// time is its count.
    #[derive(Default)]
    struct Kernel {
        estimates: Vec<KernelEstimate>,
        /// The error of its monotonic time at the last estimate [s].
        off: f64,
        /// The correction in progress [s/s].
        correction: f64,
        largest: f64,
    }

    impl Kernel {
        fn off_at(&self, counter: Counter) -> f64 {
            let passed = self.estimates.last().map_or(0.0, |last| (counter - last.reading()).as_f64() * 1e-9);
            self.off + self.correction * passed
        }
    }

    #[derive(Clone, Default)]
    struct StandIn(Rc<RefCell<Kernel>>);

    impl KernelClock for StandIn {
        fn follow(&mut self, estimate: &KernelEstimate) -> io::Result<()> {
            let mut kernel = self.0.borrow_mut();
            let reading = estimate.reading();
            let error = (estimate.time_at(reading).0 - time_at(reading)).as_seconds();
            let is_set = estimate.raw().status == 2;
            let off = kernel.off_at(reading);
            let before = kernel.estimates.last().map_or(Ticks::from_raw(1), |last| reading - last.reading());
            let gap = if is_set { 0.0 } else { error - off };
            assert!(before > Ticks::ZERO || gap == 0.0, "the kernel divides by the ticks in between");
            let seconds = before.as_f64() * 1e-9;
            let capped = gap.abs().min(5e-3 * seconds.floor()).copysign(gap);
            kernel.correction = capped / seconds;
            kernel.off = if is_set { error } else { off };
            kernel.largest = kernel.largest.max(kernel.off.abs());
            kernel.estimates.push(*estimate);
            Ok(())
        }
    }

    /// An estimate that is wrong by `error` s.
    fn estimate(counter: Counter, error: f64) -> Estimate {
        let period = Period::from_hertz(1e9).unwrap();
        Estimate {
            counter,
            time: Moment::from_origin(Span::from_nanos(counter.raw().into()) + Span::from_seconds(error)),
            period,
            uncertainty: StandardUncertainty::ZERO,
            noise: StandardUncertainty::ZERO,
            uncertainty_growth: GrowthRate::default(),
            bound: Bound::of(Span::from_micros(50)),
            bound_growth: GrowthRate::default(),
            difference_period: period,
            difference_bound: GrowthRate::default(),
            difference_uncertainty: GrowthRate::default(),
            status: Status::Synchronised,
        }
    }

    /// The kernel's time at a reading: UTC at the beginning, when TAI was 10 s ahead.
    fn time_at(counter: Counter) -> Span {
        Span::from_nanos(counter.raw().into()) - Span::from_secs(10)
    }

    /// Exchanges with two servers every 16 s, 1.5 s apart, that differ by 20 us. Returns the number of estimates handed
    /// over, and the largest error of the kernel's monotonic time [s].
    fn driven(is_due: impl Fn(&KernelClockDriver, Moment<Mono>, u64) -> bool) -> (usize, f64) {
        let kernel = StandIn::default();
        let mut driver = KernelClockDriver::new(Box::new(kernel.clone()), Moment::from_origin(Span::ZERO));
        let mut latest = estimate(Counter::from_raw(SECOND), 0.0);
        for tenth in 10..20_000_u64 {
            let (counter, now) =
                (Counter::from_raw(tenth * SECOND / 10), Moment::from_origin(Span::from_millis(100 * tenth as i64)));
            match tenth % 160 {
                0 => latest = estimate(counter, 10e-6),
                15 => latest = estimate(counter, -10e-6),
                _ => {}
            }
            if is_due(&driver, now, tenth) {
                driver.hand_over(&latest, counter, &LeapTable::built_in(), now).unwrap();
            }
        }
        let kernel = kernel.0.borrow();
        (kernel.estimates.len(), kernel.largest)
    }

    #[test]
    fn the_kernels_monotonic_time_does_not_swing_with_uneven_exchanges() {
        let (count, largest) = driven(|driver, now, _| driver.due() <= now);
        assert!((120..=126).contains(&count) && largest < 25e-6, "{count} estimates, off by {largest} s");
        // At each exchange, at uneven intervals.
        let (_, largest) = driven(|_, _, tenth| tenth % 160 == 0 || tenth % 160 == 15);
        assert!(largest > 1e-3, "it swings: {largest} s");
    }

    #[test]
    fn an_end_stops_the_correction_and_the_next_start_is_a_step() {
        let kernel = StandIn::default();
        let mut driver = KernelClockDriver::new(Box::new(kernel.clone()), Moment::from_origin(Span::ZERO));
        let mut hand_over = |seconds: u64, error: f64| {
            let (counter, now) =
                (Counter::from_raw(seconds * SECOND), Moment::from_origin(Span::from_secs(seconds as i64)));
            driver.hand_over(&estimate(counter, error), counter, &LeapTable::built_in(), now).unwrap()
        };
        assert!(hand_over(1, 0.5), "it was left alone before");
        assert!(!hand_over(17, 10e-6));
        assert!(kernel.0.borrow().correction.abs() > 1e-6, "half a second and 10 us are being corrected");
        driver.let_go().unwrap();
        assert_eq!(kernel.0.borrow().correction, 0.0);
        let again = Counter::from_raw(18 * SECOND);
        let now = Moment::from_origin(Span::from_secs(18));
        assert!(driver.hand_over(&estimate(again, 3e-6), again, &LeapTable::built_in(), now).unwrap());
        assert!((kernel.0.borrow().off - 3e-6).abs() < 1e-9, "{}", kernel.0.borrow().off);
    }

    #[test]
    fn a_reading_that_is_not_after_the_last_one_is_kept_from_the_kernel() {
        let kernel = StandIn::default();
        let mut driver = KernelClockDriver::new(Box::new(kernel.clone()), Moment::from_origin(Span::ZERO));
        let counter = Counter::from_raw(5 * SECOND);
        let now = Moment::from_origin(Span::from_secs(5));
        driver.hand_over(&estimate(counter, 0.0), counter, &LeapTable::built_in(), now).unwrap();
        for counter in [counter, Counter::from_raw(0)] {
            assert!(driver.hand_over(&estimate(counter, 0.0), counter, &LeapTable::built_in(), now).is_err());
        }
        assert_eq!(kernel.0.borrow().estimates.len(), 1);
    }
}
