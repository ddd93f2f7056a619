//! When requests came: the kernel's stamps, by the system clock, as readings of the counter.
//!
//! One pair (counter, system clock) for each batch. A packet came `age` before the pair, and the counter was as much
//! smaller then. The age is rounded down by all that the system clock may have been slewed, so the time that we state
//! is never before the packet came: what is too late counts as delay of the network, which the client knows how to
//! bound. Where the clock ran faster or slower than that since the pair before, as it does while a program slews it by
//! the tick, the packets count as come when they were read. A stamp that lies after the pair, or before the socket was
//! last seen empty, cannot be true (the system clock was stepped): then the packet came when it was read. So did every
//! packet that may have been stamped before a step which the kernel reports or a pair shows. It may have waited in the
//! socket meanwhile, so stamps serve again once the socket was seen empty after the step.

use ffclock_counter::CounterId;
use ffclock_sys::{Pair, PairReader, SystemPairs, Watch};
use ffclock_units::{Counter, Period, Ticks};

/// How far the system clock may run from the nominal period: 500 ppm of slewing and 100 ppm of error of that period.
const SLEW: f64 = 600e-6;

/// A stamp of leaving that is older is not used [ns]: by then the slewing of the system clock makes more than 6 us.
const OLDEST_NS: i64 = 10_000_000;

/// Turns stamps into readings of one counter.
pub struct Arrivals {
    counter: CounterId,
    pairs: SystemPairs,
    ticks_per_ns: f64,
    /// Stamps of packets that may have passed before this reading are not used: the system clock was not steady.
    steady_since: Counter,
    /// The counter and the system clock [ns since 1970] of the latest pair.
    pair: (Counter, i64),
    /// The whole width of the pair.
    width: Ticks,
    /// Every packet of this batch came after it.
    floor: Counter,
    /// Every packet of the next batch came after it, if this one left none behind.
    next_floor: Counter,
}

/// When a packet came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivedAt {
    /// The reading of the counter: never before it came.
    pub counter: Counter,
    /// Whether it is the kernel's stamp.
    pub by_kernel: bool,
}

impl Arrivals {
    /// For this counter.
    pub fn new(counter: CounterId) -> Self {
        let mut pairs = SystemPairs::new(counter);
        let now = pairs.read_counter();
        Arrivals {
            counter,
            pairs,
            ticks_per_ns: 0.0,
            steady_since: now,
            pair: (now, 0),
            width: Ticks::ZERO,
            floor: now,
            next_floor: now,
        }
    }

    /// The counter.
    pub fn counter(&self) -> CounterId {
        self.counter
    }

    /// Reads the counter.
    pub fn now(&mut self) -> Counter {
        self.pairs.read_counter()
    }

    /// Counts with this period from now on; without one every packet came when it was read.
    pub fn set_period(&mut self, period: Option<Period>) {
        self.ticks_per_ns = period.map_or(0.0, |period| 1e-9 / period.as_seconds());
    }

    /// A batch was taken over, by a call that began after the counter was read as `before`.
    pub fn take_batch(&mut self, before: Counter, left: Left) {
        self.turn_floor(before, left);
        self.take_pair();
    }

    fn turn_floor(&mut self, before: Counter, left: Left) {
        self.floor = self.next_floor;
        if left == Left::None {
            self.next_floor = before;
        }
    }

    /// Compares the clocks: stamps that follow are turned into readings by this pair.
    pub fn take_pair(&mut self) {
        let read = self.pairs.read_pair();
        let watch = self.pairs.watch();
        self.judge(read, watch);
    }

    /// Takes the pair, and judges the system clock since the one before.
    fn judge(&mut self, read: Pair, watch: Watch) {
        let pair = (read.counter, i64::try_from(read.system.since_origin().as_nanos()).unwrap_or(0));
        if watch != Watch::Quiet || !self.runs_steadily_until(pair, read.width) {
            // The step may have come after the pair.
            self.steady_since = self.pairs.read_counter();
        }
        (self.pair, self.width) = (pair, read.width);
    }

    /// Whether the stamp of a packet may be used that passed after this reading.
    fn may_stamp_since(&self, earliest: Counter) -> bool {
        self.ticks_per_ns > 0.0 && !self.steady_since.is_after(earliest)
    }

    /// Whether the system clock kept its rate since the pair before, as far as two pairs and a period show it. Nothing
    /// came before the first one.
    fn runs_steadily_until(&self, (counter, system_ns): (Counter, i64), width: Ticks) -> bool {
        let (before, before_ns) = self.pair;
        let expected = system_ns.wrapping_sub(before_ns) as f64 * self.ticks_per_ns;
        let reading = (self.width + width).as_f64() + self.ticks_per_ns;
        let apart = ((counter - before).as_f64() - expected).abs();
        before_ns == 0 || self.ticks_per_ns == 0.0 || apart <= expected.abs() * SLEW + reading
    }

    /// When a packet left that was sent after the counter was read as `before`, and that the kernel stamped with this
    /// time [ns since 1970]: never after it left. `None` if the stamp cannot be true, or is too old for the pair.
    pub fn left(&self, stamped_ns: i64, before: Counter) -> Option<Counter> {
        let (counter, system_ns) = self.pair;
        let age = Some(system_ns.wrapping_sub(stamped_ns)).filter(|age| (0..OLDEST_NS).contains(age))?;
        if !self.may_stamp_since(before) {
            return None;
        }
        let ticks = age as f64 * self.ticks_per_ns * (1.0 + SLEW);
        let left = counter - self.width - Ticks::from_raw(ticks.ceil() as i64);
        let earliest = before - self.width - self.width - Ticks::from_raw(1);
        left.is_after(earliest).then_some(if left.is_after(before) { left } else { before })
    }

    /// When a packet of the batch came, which the kernel stamped with this time [ns since 1970].
    pub fn at(&self, stamped_ns: Option<i64>) -> ArrivedAt {
        let (counter, system_ns) = self.pair;
        let age =
            stamped_ns.filter(|_| self.may_stamp_since(self.floor)).map(|stamped| system_ns.wrapping_sub(stamped));
        let mapped = age.filter(|age| *age >= 0).map(|age| {
            let ticks = age as f64 * self.ticks_per_ns * (1.0 - SLEW);
            counter + self.width - Ticks::from_raw(ticks as i64)
        });
        match mapped.filter(|mapped| mapped.is_after(self.floor)) {
            Some(counter) => ArrivedAt { counter, by_kernel: true },
            None => ArrivedAt { counter, by_kernel: false },
        }
    }
}

/// Whether packets may have been left in the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// There was room for more than came.
    None,
    /// The batch was full.
    Perhaps,
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_sys::system_utc_now;
    use ffclock_units::{Moment, Span};

    /// At 1 GHz: a tick is a nanosecond.
    #[test]
    fn a_clock_that_is_slewed_by_the_tick_is_no_clock_for_stamps() {
        let mut arrivals = Arrivals::new(CounterId::MonotonicRaw);
        arrivals.set_period(Period::from_seconds(1e-9));
        arrivals.pair = (Counter::from_raw(0), 1_000_000_000);
        arrivals.width = Ticks::from_raw(40);
        let steady = |ticks: u64, ns: i64| {
            arrivals.runs_steadily_until((Counter::from_raw(ticks), 1_000_000_000 + ns), Ticks::from_raw(40))
        };
        assert!(steady(1_000_000, 1_000_000) && steady(1_000_000, 1_000_500) && steady(1_000_000, 999_500));
        assert!(!steady(1_000_000, 1_083_333) && !steady(1_000_000, 916_667), "chronyd's 83,333 ppm");
        assert!(!steady(1_000_000, 1_001_000), "1000 ppm");
        assert!(steady(100, 130), "two readings this close show nothing");
    }

    /// A packet that waited in the socket during a step is read after it, with a pair and a watch that know nothing of
    /// the step any more.
    #[test]
    fn a_step_takes_their_stamps_from_all_that_may_have_come_before_it() {
        let mut arrivals = Arrivals::new(CounterId::MonotonicRaw);
        arrivals.set_period(Period::from_seconds(1e-9));
        let start = arrivals.now();
        // What the system clock shows [ns], with a step.
        let shown = |at: Counter, step: i64| 1_700_000_000_000_000_000 + (at - start).raw() + step;
        let pair = |counter: Counter, step| {
            let system = Moment::from_origin(Span::from_nanos(shown(counter, step).into()));
            Pair { counter, width: Ticks::from_raw(40), system }
        };
        let empty = start - Ticks::from_raw(10_000_000);
        (arrivals.steady_since, arrivals.next_floor) = (empty, empty);
        let (sent, came) = (arrivals.now(), arrivals.now());
        arrivals.turn_floor(empty, Left::None);
        arrivals.judge(pair(came, 0), Watch::Quiet);
        assert!(arrivals.at(Some(shown(came, 0))).by_kernel);

        let (waiting, step) = (shown(arrivals.now(), 0), 1_000_000);
        let stepped = arrivals.now();
        arrivals.judge(pair(stepped, step), Watch::Set);
        for before in [sent, arrivals.now(), arrivals.now()] {
            let read = arrivals.now();
            arrivals.turn_floor(before, Left::None);
            arrivals.judge(pair(read, step), Watch::Quiet);
            assert_eq!(arrivals.at(Some(waiting)).counter, read, "it came when it was read");
            let is_empty_since = arrivals.floor.is_after(stepped);
            assert_eq!(arrivals.at(Some(shown(read, step))).by_kernel, is_empty_since);
        }
        assert!(arrivals.floor.is_after(stepped));
    }

    #[test]
    fn stamps_become_readings_and_impossible_ones_do_not() {
        let mut arrivals = Arrivals::new(CounterId::MonotonicRaw);
        let before = arrivals.now();
        let stamped = i64::try_from(system_utc_now().since_origin().as_nanos()).unwrap();
        let after = arrivals.now();
        arrivals.set_period(Period::from_seconds(1e-9));
        arrivals.take_batch(before, Left::None);
        let end = arrivals.now();
        if arrivals.pairs.watch() == Watch::Blind {
            println!("SKIP: the kernel does not report steps of the system clock");
            return;
        }
        let at = arrivals.at(Some(stamped));
        assert!(at.by_kernel && at.counter.is_after(before) && !at.counter.is_after(end + arrivals.width), "{at:?}");
        assert!((at.counter - after).raw().abs() < 10_000_000, "{at:?} {after:?}");
        let second = 1_000_000_000;
        for impossible in [Some(stamped + second), Some(stamped - second), None] {
            assert!(!arrivals.at(impossible).by_kernel, "{impossible:?}");
        }
        let left = arrivals.left(stamped, before).unwrap();
        assert!(!before.is_after(left) && !left.is_after(after), "{left:?}");
        for impossible in [stamped + second, stamped - second] {
            assert_eq!(arrivals.left(impossible, before), None);
        }
        assert_eq!(arrivals.left(stamped, end), None, "it was sent later than that");
    }
}
