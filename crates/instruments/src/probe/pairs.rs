//! From stamps of the system clock to readings of the counter, after the fact: with pairs of both taken before and after.
//!
//! Nobody knows yet what a stamp is worth while the run goes on; afterwards a pair stands on either side of each. Between two pairs the
//! system clock is taken to run evenly. Where two neighbours say that it ran faster or slower than slewing can make it, somebody stepped
//! it, and what was stamped between them is dropped.

use ffclock_sys::Pair;
use ffclock_units::{Counter, Moment, Period, Rate, Span, Utc};

/// The kernel slews by 500 ppm at most, and the nominal period of the counter may be wrong by 100 ppm.
const FASTEST: Rate = Rate::from_ppm(600.0);
/// Reading a pair is never more accurate than this.
const RESOLUTION: Span = Span::from_nanos(200);

/// Pairs in the order of time.
#[derive(Debug)]
pub struct PairLine {
    pairs: Vec<Pair>,
    period: Period,
}

impl PairLine {
    /// No pairs yet; `period` is the nominal period of the counter.
    pub fn new(period: Period) -> Self {
        PairLine { pairs: Vec::new(), period }
    }

    /// Adds a pair that was read after all others.
    pub fn push(&mut self, pair: Pair) {
        self.pairs.push(pair);
    }

    /// What the counter showed when the system clock showed `stamped`; `None` outside the pairs and where the clock was stepped.
    pub fn counter_at(&self, stamped: Moment<Utc>) -> Option<Counter> {
        let after = self.pairs.partition_point(|pair| pair.system <= stamped);
        let (before, after) = (self.pairs.get(after.checked_sub(1)?)?, self.pairs.get(after)?);
        let (ticks, span) = (after.counter - before.counter, after.system - before.system);
        let counted = self.period * ticks;
        let slewed = self.period.stretched(FASTEST) * ticks - counted;
        let slack = slewed + self.period * (before.width + after.width) + RESOLUTION;
        if (span - counted).abs() > slack || span <= Span::ZERO {
            return None;
        }
        let share = (stamped - before.system).as_seconds() / span.as_seconds();
        Some(before.counter + ffclock_units::Ticks::from_raw((share * ticks.as_f64()).round() as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Ticks;

    /// A counter of 1 GHz.
    fn line(points: &[(u64, i64)]) -> PairLine {
        let mut line = PairLine::new(Period::from_hertz(1e9).expect("a frequency"));
        for &(counter, system_us) in points {
            let system = Moment::from_origin(Span::from_micros(system_us));
            line.push(Pair { counter: Counter::from_raw(counter), width: Ticks::from_raw(30), system });
        }
        line
    }

    fn at(line: &PairLine, system_us: i64) -> Option<u64> {
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
    fn a_clock_set_back_gives_nothing_wrong() {
        let line = line(&[(1_000_000, 5_000), (2_000_000, 6_000), (3_000_000, 2_000), (4_000_000, 3_000)]);
        for us in (0..8_000).step_by(100) {
            if let Some(counter) = at(&line, us) {
                let offset = counter as i64 - us * 1_000;
                assert!(offset == -4_000_000 || offset == 1_000_000, "{us} us gave {counter}");
            }
        }
    }
}
