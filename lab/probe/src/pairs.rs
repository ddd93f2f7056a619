//! From stamps of the system clock to readings of the counter, after the fact: with pairs of both taken before and
//! after.
//!
//! While the run goes on a stamp cannot be mapped yet; afterwards a pair stands on either side of each. Between two
//! pairs the system clock is taken to run evenly. Where two neighbours show that it ran faster or slower than slewing
//! can make it, it was stepped, and what was stamped between them is dropped.
//!
//! The same holds for the kernel's monotonic clock, by which eBPF programs stamp, except that it is never stepped.

use ffclock_counter::{ClockReading, CounterId, HostClock, read_narrowest};
use ffclock_sys::Pair;
use ffclock_units::{Counter, Moment, Mono, Period, Rate, Span, Ticks, Utc};
use serde::{Deserialize, Serialize};

/// The kernel slews by 500 ppm at most, and the nominal period of the counter may be wrong by 100 ppm.
const FASTEST: Rate = Rate::from_ppm(600.0);
/// Reading a pair is never more accurate than this.
const RESOLUTION: Span = Span::from_nanos(200);

/// A pair that leaves open more than this on either side of its middle maps nothing: its reading was interrupted. Two
/// stamps that were mapped contradict each other by less than 1 us then.
const WIDEST_HALF: Span = Span::from_nanos(500);

/// Brackets tried for one pair.
const TRIES: usize = 5;

/// A clock showed `shown` at some moment within `counter` +- `width` / 2.
#[derive(Clone, Copy)]
pub struct ClockPoint<S> {
    counter: Counter,
    width: Ticks,
    shown: Moment<S>,
}

impl From<Pair> for ClockPoint<Utc> {
    fn from(pair: Pair) -> Self {
        ClockPoint { counter: pair.counter, width: pair.width, shown: pair.system }
    }
}

impl ClockPoint<Mono> {
    /// Reads the clock and the counter now.
    pub fn read(counter: CounterId) -> Self {
        let bracket = read_narrowest(counter, TRIES, || HostClock::Monotonic.read());
        let shown = bracket.value.map_or(Span::ZERO, ClockReading::since_origin);
        ClockPoint { counter: bracket.middle(), width: bracket.width(), shown: Moment::from_origin(shown) }
    }
}

/// How wrong a stamp of the other clock can be once it is a reading of the counter: half the widths of the pairs it is
/// mapped by, and what the clock's nanoseconds cut off [ns].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MappingError {
    /// With half of the pairs.
    pub median_ns: f64,
    /// With the widest of the pairs that are used.
    pub worst_ns: f64,
}

/// Pairs in the order of time.
pub struct PairLine<S> {
    pairs: Vec<ClockPoint<S>>,
    period: Period,
}

impl<S> core::fmt::Debug for PairLine<S> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.debug_struct("PairLine").field("pairs", &self.pairs.len()).finish_non_exhaustive()
    }
}

impl<S> PairLine<S> {
    /// No pairs yet; `period` is the nominal period of the counter.
    pub fn new(period: Period) -> Self {
        PairLine { pairs: Vec::new(), period }
    }

    /// Adds a pair that was read after all others.
    pub fn push(&mut self, pair: impl Into<ClockPoint<S>>) {
        self.pairs.push(pair.into());
    }

    /// How wrong what is mapped by these pairs can be; `None` without pairs narrow enough.
    pub fn error(&self) -> Option<MappingError> {
        let narrow = self.pairs.iter().filter(|pair| self.is_narrow(pair));
        let mut halves: Vec<f64> = narrow.map(|pair| (self.period * pair.width).as_seconds() * 5e8 + 1.0).collect();
        halves.sort_by(f64::total_cmp);
        Some(MappingError { median_ns: *halves.get(halves.len() / 2)?, worst_ns: *halves.last()? })
    }

    fn is_narrow(&self, pair: &ClockPoint<S>) -> bool {
        self.period * pair.width <= WIDEST_HALF + WIDEST_HALF
    }

    /// What the counter showed when the other clock showed `stamped`; `None` outside the pairs, where the clock was
    /// stepped, and next to a pair that leaves open more than 500 ns on either side.
    pub fn counter_at(&self, stamped: Moment<S>) -> Option<Counter> {
        let after = self.pairs.partition_point(|pair| pair.shown <= stamped);
        let (before, after) = (self.pairs.get(after.checked_sub(1)?)?, self.pairs.get(after)?);
        if !self.is_narrow(before) || !self.is_narrow(after) {
            return None;
        }
        let (ticks, span) = (after.counter - before.counter, after.shown - before.shown);
        let counted = self.period * ticks;
        let slewed = self.period.stretched(FASTEST) * ticks - counted;
        let slack = slewed + self.period * (before.width + after.width) + RESOLUTION;
        if (span - counted).abs() > slack || span <= Span::ZERO {
            return None;
        }
        let share = (stamped - before.shown).as_seconds() / span.as_seconds();
        Some(before.counter + Ticks::from_raw((share * ticks.as_f64()).round() as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of 1 GHz.
    fn line(points: &[(u64, i64)]) -> PairLine<Utc> {
        let mut line = PairLine::new(Period::from_hertz(1e9).expect("a frequency"));
        for &(counter, system_us) in points {
            let system = Moment::from_origin(Span::from_micros(system_us));
            line.push(Pair { counter: Counter::from_raw(counter), width: Ticks::from_raw(30), system });
        }
        line
    }

    fn at(line: &PairLine<Utc>, system_us: i64) -> Option<u64> {
        line.counter_at(Moment::from_origin(Span::from_micros(system_us))).map(Counter::raw)
    }

    #[test]
    fn between_two_pairs_time_runs_evenly() {
        let line = line(&[(1_000_000, 5_000), (2_000_000, 6_000), (4_000_000, 8_000)]);
        assert_eq!(at(&line, 5_250), Some(1_250_000));
        assert_eq!(at(&line, 7_000), Some(3_000_000));
    }

    #[test]
    fn outside_the_pairs_and_across_a_step_nothing_is_known() {
        let line = line(&[(1_000_000, 5_000), (2_000_000, 6_000), (3_000_000, 9_000), (4_000_000, 10_000)]);
        assert_eq!(at(&line, 4_000), None);
        assert_eq!(at(&line, 10_000), None);
        assert_eq!(at(&line, 7_000), None, "the clock was set by 2 ms");
        assert_eq!(at(&line, 9_500), Some(3_500_000));
    }

    #[test]
    fn next_to_a_pair_that_was_interrupted_nothing_is_known() {
        let mut line = line(&[(1_000_000, 5_000), (2_000_000, 6_000)]);
        for (counter, width, system_us) in [(3_000_000, 1_001, 7_000), (4_000_000, 998, 8_000), (5_000_000, 30, 9_000)]
        {
            let system = Moment::from_origin(Span::from_micros(system_us));
            line.push(Pair { counter: Counter::from_raw(counter), width: Ticks::from_raw(width), system });
        }
        assert_eq!(at(&line, 5_500), Some(1_500_000));
        assert_eq!((at(&line, 6_500), at(&line, 7_500)), (None, None));
        assert_eq!(at(&line, 8_500), Some(4_500_000));
        let error = line.error().expect("most are narrow");
        assert!((error.worst_ns - 500.0).abs() < 1e-6, "{error:?}");
    }

    #[test]
    fn a_clock_set_back_gives_nothing_wrong() {
        let line = line(&[(1_000_000, 5_000), (2_000_000, 6_000), (3_000_000, 2_000), (4_000_000, 3_000)]);
        for us in (0..8_000).step_by(100) {
            if let Some(counter) = at(&line, us) {
                let offset = counter as i64 - us * 1_000;
                assert!(offset == -4_000_000 || offset == 1_000_000, "{us} us gave {counter}");
            }
        }
    }

    #[test]
    fn the_error_is_half_of_what_a_pair_leaves_open() {
        let error = line(&[(1_000_000, 5_000), (2_000_000, 6_000)]).error().expect("there are pairs");
        assert!((error.median_ns - 16.0).abs() < 1e-6 && (error.worst_ns - 16.0).abs() < 1e-6, "{error:?}");
        assert_eq!(line(&[]).error(), None);
    }

    #[test]
    fn the_monotonic_clock_is_mapped_to_the_counter() {
        let counter = CounterId::MonotonicRaw;
        // On a busy machine a pair may be too wide.
        let distance = (0..100).find_map(|_| {
            let mut line = PairLine::new(Period::from_hertz(1e9).expect("a frequency"));
            line.push(ClockPoint::read(counter));
            let stamped = ffclock_sys::mono_now();
            let read = ffclock_counter::read_ordered(counter);
            line.push(ClockPoint::read(counter));
            Some((read - line.counter_at(stamped)?).raw().abs())
        });
        assert!(distance.expect("it lies between narrow pairs") < 1_000_000, "{distance:?}");
    }
}
