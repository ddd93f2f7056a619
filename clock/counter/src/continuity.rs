//! Notices that the run of a counter was interrupted, so that an epoch ends and nothing is computed across the gap.
//!
//! Three witnesses are compared between one observation and the next: the counter, another clock of the kernel that is
//! never stepped (`CLOCK_MONOTONIC_RAW` beside the CPU counter; `CLOCK_MONOTONIC`, which is slewed and so a coarse
//! witness, beside the raw clock itself), and the lead of `CLOCK_BOOTTIME` over `CLOCK_MONOTONIC`, which is the time
//! spent in suspend. The name of the kernel's clocksource is watched too, since the raw clock changes its rate with it.
//! So is the kernel's opinion of the counter: the kernel may stop trusting a counter that it does not use itself.
//!
//! A pause of a virtual machine in which all witnesses ran on, or all stood still, cannot be seen from inside and does
//! no harm to intervals.

use crate::CpuDisagreement;
use crate::clocks::RAW_IS_SLEWED;
use crate::clocksource::{current as current_clocksource, trust_by_list};
use crate::ffcounter::{layout, shared};
use crate::{ClockReading, CounterId, HostClock, Nominal, read_narrowest};
use core::fmt;
use ffclock_units::{Counter, MachineMark, Period, Rate, Span, Ticks};

/// What the witnesses showed at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The counter.
    pub counter: Counter,
    /// The whole width of the range in which `counter` and `witness` were read.
    pub width: Ticks,
    /// The other clock, since its origin.
    pub witness: Span,
    /// The time spent in suspend so far (and an arbitrary constant): at least the first, at most the second; `None`
    /// where it is unknown.
    pub suspended: Option<(Span, Span)>,
}

/// Where the readings come from: the host, or a test.
pub trait Readings {
    /// Reads the witnesses.
    fn observe(&mut self) -> Observation;
    /// The kernel's clocksource, where it is known.
    fn clocksource(&mut self) -> Option<String>;
    /// The epoch that the counter itself states; `None` for one that knows none.
    ///
    /// # Errors
    /// Why the counter cannot be read.
    fn stated_epoch(&mut self) -> Result<Option<u32>, String> {
        Ok(None)
    }
    /// Whether the kernel trusts the counter; `None` where that is unknown now.
    fn trust(&mut self) -> Option<Trust> {
        None
    }
}

/// What the kernel thinks of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// It found nothing wrong with it.
    Trusted,
    /// It found it unsteady; how that shows.
    Lost(String),
}

/// The readings of this host.
#[derive(Clone, Copy, Debug)]
pub struct HostReadings {
    kind: CounterId,
}

impl HostReadings {
    /// The witnesses of this counter.
    pub const fn new(kind: CounterId) -> Self {
        HostReadings { kind }
    }
}

/// Why the run of a counter ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Break {
    /// The host was suspended.
    Suspended {
        /// For at least this long.
        by: Span,
    },
    /// The counter disagrees with the other clock.
    CounterJumped {
        /// Its excess over the other clock (negative: it fell behind, or went backwards).
        by: Span,
    },
    /// The counter did not move.
    CounterStalled {
        /// While the other clock advanced by this.
        over: Span,
    },
    /// The counter can no longer be read.
    CounterVanished {
        /// As the kernel says it, with the remedy.
        why: String,
    },
    /// The counter itself states that a new epoch began.
    EpochEnded {
        /// The epoch before, `None` where the counter could not be read then.
        from: Option<u32>,
        /// The epoch now.
        to: u32,
    },
    /// The kernel no longer trusts the counter.
    TrustLost {
        /// How that shows.
        why: String,
    },
    /// The counters of two CPUs do not agree.
    CpusDisagree(CpuDisagreement),
    /// The virtual machine was restored, migrated or copied, as its VMClock shows.
    Disrupted {
        /// What it showed before.
        from: MachineMark,
        /// What it shows now.
        to: MachineMark,
    },
    /// The kernel counts time by another clocksource.
    ClocksourceChanged {
        /// What it used before.
        from: String,
        /// What it uses now.
        to: String,
    },
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Break::Suspended { by } => write!(f, "the host was suspended for {by}"),
            Break::CounterJumped { by } => write!(f, "the counter jumped by {by}"),
            Break::CounterStalled { over } => write!(f, "the counter stood still for {over}"),
            Break::CounterVanished { why } => write!(f, "the counter cannot be read: {why}"),
            Break::EpochEnded { from: None, to } => write!(f, "the counter is back, in its epoch {to}"),
            Break::EpochEnded { from: Some(from), to } => write!(f, "the counter's epoch {from} ended, now it is {to}"),
            Break::TrustLost { why } => write!(f, "the kernel trusts the counter no more: {why}"),
            Break::CpusDisagree(seen) => seen.fmt(f),
            Break::Disrupted { from, to } => {
                write!(f, "the virtual machine was restored, migrated or copied: its marker was {from} and is {to}")
            }
            Break::ClocksourceChanged { from, to } => write!(f, "the kernel's clocksource changed from {from} to {to}"),
        }
    }
}

impl std::error::Error for Break {}

/// How far the witness may stray from the counter: a part of the interval, and a constant.
#[derive(Clone, Copy, Debug)]
struct Tolerance {
    rate: Rate,
    constant: Span,
}

/// The witness is slewed with the system clock: by 500 ppm through the frequency, and by 10 % through the length of the
/// tick (Linux) or 5000 ppm through adjtime(2) (FreeBSD).
const SLEWED: Tolerance =
    Tolerance { rate: Rate::from_ppm(if RAW_IS_SLEWED { 6_000.0 } else { 101_000.0 }), constant: Span::from_millis(1) };
/// Before the ratio of the two is known; the error of the nominal period comes on top.
const UNKNOWN_RATIO: Tolerance = Tolerance { rate: Rate::from_ppm(1000.0), constant: Span::from_millis(1) };
/// Once the ratio is known: two crystals wander apart by a few ppm, one crystal not at all.
const KNOWN_RATIO: Tolerance = Tolerance { rate: Rate::from_ppm(50.0), constant: Span::from_micros(200) };
/// The ratio counts as known from this length of an epoch on.
const RATIO_AFTER: Span = Span::from_secs(10);
/// A shorter suspend cannot be distinguished from the time that reading the clocks takes.
const SHORTEST_SUSPEND: Span = Span::from_millis(1);
/// How often the clocksource is asked for: the file costs a few microseconds.
const CLOCKSOURCE_EVERY: Span = Span::from_secs(1);

/// Watches one counter.
#[derive(Debug)]
pub struct Continuity<R = HostReadings> {
    readings: R,
    nominal: Nominal,
    witness_is_slewed: bool,
    first: Observation,
    last: Observation,
    stated_epoch: Option<u32>,
    clocksource: Option<String>,
    clocksource_read: Span,
    trust: Option<Trust>,
}

impl Continuity {
    /// Begins to watch a counter of this host.
    pub fn start(kind: CounterId, nominal: Nominal) -> Self {
        Self::with_readings(HostReadings::new(kind), kind, nominal)
    }
}

impl<R: Readings> Continuity<R> {
    /// Begins to watch through other readings.
    pub fn with_readings(mut readings: R, kind: CounterId, nominal: Nominal) -> Self {
        let clocksource = readings.clocksource();
        let first = readings.observe();
        let witness_is_slewed = kind == CounterId::MonotonicRaw || RAW_IS_SLEWED;
        let clocksource_read = first.witness;
        let stated_epoch = readings.stated_epoch().ok().flatten();
        let trust = readings.trust();
        Continuity {
            readings,
            nominal,
            witness_is_slewed,
            first,
            last: first,
            stated_epoch,
            clocksource,
            clocksource_read,
            trust,
        }
    }

    /// Looks whether the counter ran on undisturbed since the last call. After a break a new run begins with this call.
    ///
    /// # Errors
    /// The break, where there was one; the likeliest cause where several explain it.
    pub fn observe(&mut self) -> Result<(), Break> {
        let now = self.readings.observe();
        let found = self.judge(&now);
        if found.is_err() {
            self.first = now;
        }
        self.last = now;
        found
    }

    fn judge(&mut self, now: &Observation) -> Result<(), Break> {
        let by = self.suspended_for(now);
        if by > SHORTEST_SUSPEND {
            return Err(Break::Suspended { by });
        }
        self.check_stated_epoch()?;
        let moved = self.compare(now);
        // A changed clocksource explains a disagreement, so it is asked for at once when there is one.
        if moved.is_err() || (now.witness - self.clocksource_read).abs() >= CLOCKSOURCE_EVERY {
            self.clocksource_read = now.witness;
            // Both are asked: a kernel that gives its clocksource up takes it off its list, and that is one break.
            let trusted = self.check_trust();
            self.check_clocksource()?;
            trusted?;
        }
        moved
    }

    fn suspended_for(&self, now: &Observation) -> Span {
        match (self.last.suspended, now.suspended) {
            (Some((_, before_at_most)), Some((now_at_least, _))) => now_at_least - before_at_most,
            _ => Span::ZERO,
        }
    }

    fn check_stated_epoch(&mut self) -> Result<(), Break> {
        let stated = self.readings.stated_epoch().map_err(|why| {
            self.stated_epoch = None;
            Break::CounterVanished { why }
        })?;
        let before = std::mem::replace(&mut self.stated_epoch, stated);
        match stated {
            Some(to) if before != stated => Err(Break::EpochEnded { from: before, to }),
            _ => Ok(()),
        }
    }

    /// A counter that was distrusted from the beginning was chosen in spite of it. An unknown opinion counts as
    /// unchanged.
    fn check_trust(&mut self) -> Result<(), Break> {
        let Some(now) = self.readings.trust() else { return Ok(()) };
        match (self.trust.replace(now.clone()), now) {
            (Some(Trust::Trusted), Trust::Lost(why)) => Err(Break::TrustLost { why }),
            _ => Ok(()),
        }
    }

    fn check_clocksource(&mut self) -> Result<(), Break> {
        // Where it cannot be read for once (no descriptor left to open the file), the last known name still counts.
        let Some(current) = self.readings.clocksource() else { return Ok(()) };
        match self.clocksource.replace(current.clone()) {
            Some(from) if from != current => Err(Break::ClocksourceChanged { from, to: current }),
            _ => Ok(()),
        }
    }

    fn compare(&self, now: &Observation) -> Result<(), Break> {
        let ticks = now.counter - self.last.counter;
        let passed = now.witness - self.last.witness;
        let (period, tolerance) = self.expectation();
        let widths = period * (now.width + self.last.width);
        let counted = period * ticks;
        let longer = passed.abs().max(counted.abs());
        let share = Span::from_seconds(longer.as_seconds() * tolerance.rate.as_fraction());
        let allowed = tolerance.constant + widths + share;
        let by = counted - passed;
        if by.abs() <= allowed {
            Ok(())
        } else if ticks == Ticks::ZERO {
            Err(Break::CounterStalled { over: passed })
        } else {
            Err(Break::CounterJumped { by })
        }
    }

    /// The length of a tick as the witness sees it, and how well it is known.
    fn expectation(&self) -> (Period, Tolerance) {
        let nominal = self.nominal.period;
        if self.witness_is_slewed {
            return (nominal, Tolerance { rate: SLEWED.rate + self.nominal.error, ..SLEWED });
        }
        let (ticks, passed) = (self.last.counter - self.first.counter, self.last.witness - self.first.witness);
        match Period::from_seconds(passed.as_seconds() / ticks.as_f64()) {
            Some(seen) if passed >= RATIO_AFTER => (seen, KNOWN_RATIO),
            _ => (nominal, Tolerance { rate: UNKNOWN_RATIO.rate + self.nominal.error, ..UNKNOWN_RATIO }),
        }
    }
}

impl Readings for HostReadings {
    fn observe(&mut self) -> Observation {
        let witness = match self.kind {
            CounterId::MonotonicRaw => HostClock::Monotonic,
            CounterId::Tsc | CounterId::ArmVirtual | CounterId::Module(_) => HostClock::MonotonicRaw,
        };
        let pair = read_narrowest(self.kind, 5, || witness.read());
        let shown = pair.value.map_or(Span::ZERO, ClockReading::since_origin);
        Observation { counter: pair.middle(), width: pair.width(), witness: shown, suspended: read_suspended() }
    }

    fn clocksource(&mut self) -> Option<String> {
        current_clocksource()
    }

    fn stated_epoch(&mut self) -> Result<Option<u32>, String> {
        let CounterId::Module(counter) = self.kind else { return Ok(None) };
        shared::sample(counter).map(|sample| Some(sample.epoch)).map_err(|error| error.to_string())
    }

    fn trust(&mut self) -> Option<Trust> {
        match self.kind {
            CounterId::Tsc | CounterId::ArmVirtual => trust_by_list(),
            CounterId::MonotonicRaw => None,
            CounterId::Module(counter) => {
                let is_doubted = shared::sample(counter).ok()?.has(layout::UNTRUSTED);
                let lost = || Trust::Lost(format!("the module ffcounter says so of module:{counter}"));
                Some(if is_doubted { lost() } else { Trust::Trusted })
            }
        }
    }
}

/// How long the machine has been suspended since it was started: at least, and at most. `CLOCK_BOOTTIME` is read
/// between two readings of `CLOCK_MONOTONIC`, the narrowest of five, so that a delay in between is no suspend. `None`
/// where the clocks cannot be read.
pub fn read_suspended() -> Option<(Span, Span)> {
    let bracket = || {
        let readings = [HostClock::Monotonic.read()?, HostClock::Boottime.read()?, HostClock::Monotonic.read()?];
        let [before, boottime, after] = readings.map(ClockReading::since_origin);
        Some((boottime - after, boottime - before))
    };
    (0..5).filter_map(|_| bracket()).min_by_key(|(at_least, at_most)| *at_most - *at_least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NominalSource, nominal};
    use core::cell::RefCell;
    use std::rc::Rc;

    /// A host whose witnesses a test moves at will; the counter has a period of 1 ns and the witness runs `off` slow
    /// against it.
    #[derive(Clone, Debug)]
    struct Host {
        counter: Counter,
        witness: Span,
        suspended: Option<Span>,
        clocksource: Option<String>,
        stated_epoch: Result<Option<u32>, String>,
        trust: Option<Trust>,
        off: Rate,
    }

    #[derive(Clone, Debug)]
    struct Scripted(Rc<RefCell<Host>>);

    impl Readings for Scripted {
        fn observe(&mut self) -> Observation {
            let host = self.0.borrow();
            let jitter = Span::from_nanos(200);
            let suspended = host.suspended.map(|by| (by - jitter, by + jitter));
            Observation { counter: host.counter, width: Ticks::from_raw(60), witness: host.witness, suspended }
        }
        fn clocksource(&mut self) -> Option<String> {
            self.0.borrow().clocksource.clone()
        }
        fn stated_epoch(&mut self) -> Result<Option<u32>, String> {
            self.0.borrow().stated_epoch.clone()
        }
        fn trust(&mut self) -> Option<Trust> {
            self.0.borrow().trust.clone()
        }
    }

    impl Host {
        fn run(&mut self, span: Span) {
            self.counter = self.counter + Ticks::from_raw(span.as_nanos() as i64);
            self.witness += Span::from_seconds(span.as_seconds() * (1.0 - self.off.as_fraction()));
        }

        fn jump(&mut self, ticks: Ticks) {
            self.counter = self.counter + ticks;
        }
    }

    fn watched(kind: CounterId, off: Rate) -> (Rc<RefCell<Host>>, Continuity<Scripted>) {
        let counter = Counter::from_raw(u64::MAX - 1_000_000_000);
        let clocksource = Some("tsc".to_owned());
        let (witness, suspended, stated_epoch) = (Span::from_secs(100), Some(Span::ZERO), Ok(Some(7)));
        let trust = Some(Trust::Trusted);
        let host = Host { counter, witness, suspended, clocksource, stated_epoch, trust, off };
        let host = Rc::new(RefCell::new(host));
        let period = Period::from_seconds(1e-9).unwrap();
        let nominal = Nominal { period, error: Rate::from_ppm(100.0), source: NominalSource::Crystal };
        let watcher = Continuity::with_readings(Scripted(host.clone()), kind, nominal);
        (host, watcher)
    }

    #[test]
    fn a_counter_that_is_off_by_hundreds_of_ppm_runs_on() {
        for off in [-900.0, 0.0, 900.0] {
            let (host, mut watcher) = watched(CounterId::CPU, Rate::from_ppm(off));
            for seconds in [0, 1, 16, 1, 1024, 0, 86_400, 3] {
                host.borrow_mut().run(Span::from_secs(seconds));
                assert_eq!(watcher.observe(), Ok(()), "{off} ppm, {seconds} s");
            }
        }
    }

    #[test]
    fn suspend_is_reported_by_its_length() {
        let (host, mut watcher) = watched(CounterId::CPU, Rate::ZERO);
        host.borrow_mut().run(Span::from_secs(5));
        host.borrow_mut().suspended = Some(Span::from_secs(3600));
        let Err(Break::Suspended { by }) = watcher.observe() else { panic!("not seen") };
        assert!((Span::from_secs(3600) - by).abs() < Span::from_micros(1));
        host.borrow_mut().run(Span::from_secs(5));
        assert_eq!(watcher.observe(), Ok(()));
    }

    #[test]
    fn jumps_are_reported_with_their_sign() {
        for jump in [Span::from_millis(30), -Span::from_millis(30), Span::from_secs(3600), -Span::from_secs(3600)] {
            let (host, mut watcher) = watched(CounterId::CPU, Rate::ZERO);
            host.borrow_mut().run(Span::from_secs(16));
            host.borrow_mut().jump(Ticks::from_raw(jump.as_nanos() as i64));
            let Err(Break::CounterJumped { by }) = watcher.observe() else { panic!("{jump} not seen") };
            assert!((by - jump).abs() < Span::from_micros(1), "{jump}: {by}");
            assert_eq!(watcher.observe(), Ok(()), "a new run begins after the break");
        }
    }

    #[test]
    fn a_known_ratio_shows_smaller_jumps() {
        let (host, mut watcher) = watched(CounterId::CPU, Rate::from_ppm(300.0));
        host.borrow_mut().run(Span::from_secs(16));
        assert_eq!(watcher.observe(), Ok(()));
        host.borrow_mut().run(Span::from_secs(1));
        host.borrow_mut().jump(Ticks::from_raw(400_000));
        assert!(matches!(watcher.observe(), Err(Break::CounterJumped { .. })));
    }

    #[test]
    fn a_counter_that_stands_still_is_stalled() {
        let (host, mut watcher) = watched(CounterId::CPU, Rate::ZERO);
        host.borrow_mut().witness += Span::from_secs(2);
        assert_eq!(watcher.observe(), Err(Break::CounterStalled { over: Span::from_secs(2) }));
    }

    #[test]
    fn a_counter_that_states_another_epoch_is_believed() {
        let (host, mut watcher) = watched(CounterId::CPU, Rate::ZERO);
        host.borrow_mut().run(Span::from_millis(10));
        host.borrow_mut().stated_epoch = Ok(Some(8));
        assert_eq!(watcher.observe(), Err(Break::EpochEnded { from: Some(7), to: 8 }));
        assert_eq!(watcher.observe(), Ok(()));
    }

    #[test]
    fn a_counter_that_vanishes_is_reported_with_the_reason_until_it_is_back() {
        let (host, mut watcher) = watched(CounterId::CPU, Rate::ZERO);
        host.borrow_mut().stated_epoch = Err("the module was removed".to_owned());
        for _ in 0..2 {
            let Err(Break::CounterVanished { why }) = watcher.observe() else { panic!("not seen") };
            assert!(why.contains("module"), "{why}");
        }
        host.borrow_mut().stated_epoch = Ok(Some(9));
        assert_eq!(watcher.observe(), Err(Break::EpochEnded { from: None, to: 9 }));
        assert_eq!(watcher.observe(), Ok(()));
    }

    /// As when the kernel marks the TSC unstable that it does not use itself.
    #[test]
    fn a_counter_that_loses_the_kernels_trust_is_reported_once() {
        let (host, mut watcher) = watched(CounterId::CPU, Rate::ZERO);
        let lost = Trust::Lost("it offers hpet".to_owned());
        let course = [(None, false), (Some(Trust::Trusted), false), (Some(lost.clone()), true), (None, false)];
        for (trust, seen) in course.into_iter().chain([(Some(lost), false)]) {
            host.borrow_mut().trust.clone_from(&trust);
            host.borrow_mut().run(Span::from_secs(2));
            assert_eq!(matches!(watcher.observe(), Err(Break::TrustLost { .. })), seen, "{trust:?}");
        }
    }

    #[test]
    fn a_clocksource_that_the_kernel_gives_up_is_one_break() {
        let (host, mut watcher) = watched(CounterId::CPU, Rate::ZERO);
        host.borrow_mut().trust = Some(Trust::Lost("it offers hpet".to_owned()));
        host.borrow_mut().clocksource = Some("hpet".to_owned());
        host.borrow_mut().run(Span::from_secs(2));
        assert!(matches!(watcher.observe(), Err(Break::ClocksourceChanged { .. })));
        host.borrow_mut().run(Span::from_secs(2));
        assert_eq!(watcher.observe(), Ok(()));
    }

    #[test]
    fn a_changed_clocksource_explains_a_disagreement() {
        let (host, mut watcher) = watched(CounterId::CPU, Rate::ZERO);
        host.borrow_mut().witness += Span::from_millis(20);
        host.borrow_mut().clocksource = Some("hpet".to_owned());
        let (from, to) = ("tsc".to_owned(), "hpet".to_owned());
        assert_eq!(watcher.observe(), Err(Break::ClocksourceChanged { from, to }));
        host.borrow_mut().run(Span::from_secs(2));
        assert_eq!(watcher.observe(), Ok(()));
    }

    #[test]
    fn a_changed_clocksource_ends_the_epoch_of_the_raw_clock_too() {
        let (host, mut watcher) = watched(CounterId::MonotonicRaw, Rate::ZERO);
        host.borrow_mut().clocksource = Some("hpet".to_owned());
        host.borrow_mut().run(Span::from_millis(500));
        assert_eq!(watcher.observe(), Ok(()), "the file is not read at every observation");
        host.borrow_mut().run(Span::from_millis(500));
        assert!(matches!(watcher.observe(), Err(Break::ClocksourceChanged { .. })));
    }

    #[test]
    fn a_change_is_seen_across_a_moment_in_which_the_clocksource_is_unknown() {
        let (host, mut watcher) = watched(CounterId::MonotonicRaw, Rate::ZERO);
        for (current, seen) in [(None, false), (Some("hpet"), true), (Some("hpet"), false)] {
            host.borrow_mut().clocksource = current.map(str::to_owned);
            host.borrow_mut().run(Span::from_secs(2));
            assert_eq!(watcher.observe().is_err(), seen, "{current:?}");
        }
    }

    #[test]
    fn the_raw_clock_is_not_blamed_for_a_slewed_witness() {
        let (host, mut watcher) = watched(CounterId::MonotonicRaw, Rate::from_ppm(100_500.0));
        host.borrow_mut().run(Span::from_secs(16));
        assert_eq!(watcher.observe(), Ok(()));
        host.borrow_mut().witness += Span::from_secs(10);
        assert!(matches!(watcher.observe(), Err(Break::CounterStalled { .. })));
    }

    #[test]
    fn a_host_without_suspend_or_clocksource_is_watched_all_the_same() {
        let (host, mut watcher) = watched(CounterId::CPU, Rate::ZERO);
        host.borrow_mut().suspended = None;
        host.borrow_mut().clocksource = None;
        host.borrow_mut().run(Span::from_secs(16));
        assert_eq!(watcher.observe(), Ok(()));
    }

    #[test]
    fn this_host_runs_on() {
        for kind in [CounterId::CPU, CounterId::MonotonicRaw] {
            let mut watcher = Continuity::start(kind, nominal(kind).unwrap());
            for _ in 0..20 {
                std::thread::sleep(core::time::Duration::from_millis(5));
                assert_eq!(watcher.observe(), Ok(()));
            }
        }
    }
}
