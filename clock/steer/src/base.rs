//! How fast the kernel's clock runs by itself, at the frequency 0.
//!
//! `CLOCK_MONOTONIC_RAW` runs as `CLOCK_REALTIME` does where no program steers it. Pairs (counter, raw clock) give the
//! length of a tick of the counter by the kernel, and the page has its length in seconds: the ratio is the error that
//! the kernel's frequency has to take away. No step of the page and no slew of the kernel's clock is in it.

use ffclock_units::{Counter, CounterId, Period, Rate, Span, Ticks};

/// The raw clock showed `raw` within `at` +- `width` / 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawPair {
    /// The counter.
    pub counter: CounterId,
    /// Its reading.
    pub at: Counter,
    /// The whole width of the range.
    pub width: Ticks,
    /// `CLOCK_MONOTONIC_RAW` since its origin.
    pub raw: Span,
}

/// The recent past of the raw clock: a baseline of one to two times [`BASELINE`].
#[derive(Clone, Copy, Debug, Default)]
pub struct RawLine {
    /// The beginning of the baseline, and the next one.
    anchors: Option<[RawPair; 2]>,
    newest: Option<RawPair>,
}

/// The baseline is renewed this often. Two readings to within 100 ns show a rate to within 3 ppb then.
pub const BASELINE: Span = Span::from_secs(32);
/// A shorter one says nothing.
const SHORTEST: Span = Span::from_millis(90);
/// By more than this part of an interval, the raw clock does not leave its line unless its own counter has changed.
const BREAK: f64 = 20e-6;

impl RawLine {
    /// The next pair. Where the raw clock left its line (another clocksource, a suspend), or the pair is of another
    /// counter, the line begins with it.
    pub fn take(&mut self, pair: RawPair) {
        if self.is_broken_by(&pair) {
            *self = RawLine::default();
        }
        self.anchors = Some(match self.anchors {
            None => [pair, pair],
            Some([_, second]) if pair.raw - second.raw >= BASELINE => [second, pair],
            Some(anchors) => anchors,
        });
        self.newest = Some(pair);
    }

    /// How much faster the kernel's clock runs at the frequency 0 than the time whose seconds are made of ticks of this
    /// period. Positive: the kernel's clock gains. `None` as long as the line is too short.
    pub fn base_rate(&self, period: Period) -> Option<Rate> {
        let per_tick = self.seconds_per_tick()?;
        Some(Rate::from_fraction(per_tick / period.as_seconds() - 1.0))
    }

    fn seconds_per_tick(&self) -> Option<f64> {
        let ([first, _], newest) = (self.anchors?, self.newest?);
        let ticks = (newest.at - first.at).raw();
        (newest.raw - first.raw >= SHORTEST && ticks > 0).then(|| (newest.raw - first.raw).as_seconds() / ticks as f64)
    }

    fn is_broken_by(&self, pair: &RawPair) -> bool {
        let Some(newest) = self.newest else { return false };
        let (ticks, passed) = ((pair.at - newest.at).raw(), (pair.raw - newest.raw).as_seconds());
        if pair.counter != newest.counter || ticks <= 0 || passed < 0.0 {
            return true;
        }
        let Some(per_tick) = self.seconds_per_tick() else { return false };
        let expected = ticks as f64 * per_tick;
        let widths = (pair.width.raw() + newest.width.raw()) as f64 * per_tick;
        // The line itself is as uncertain as its first pair is wide.
        (passed - expected).abs() > expected * BREAK + widths * 4.0 + 1e-6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(ticks: u64, raw: Span) -> RawPair {
        let (counter, at) = (CounterId::CPU, Counter::from_raw(ticks));
        RawPair { counter, at, width: Ticks::from_raw(100), raw }
    }

    /// A counter of 1 GHz, and a raw clock that gains 30 ppm.
    fn gaining(second: u64) -> RawPair {
        pair(second * 1_000_000_000, Span::from_nanos(i128::from(second) * 1_000_030_000))
    }

    #[test]
    fn the_rate_of_the_kernel_is_that_of_its_raw_clock() {
        let mut line = RawLine::default();
        let period = Period::from_hertz(1e9).unwrap();
        assert_eq!(line.base_rate(period), None);
        line.take(gaining(10));
        assert_eq!(line.base_rate(period), None, "one pair is no line");
        for second in 11..200 {
            line.take(gaining(second));
            let base = line.base_rate(period).unwrap().as_ppm();
            assert!((base - 30.0).abs() < 1e-3, "{base}");
        }
    }

    #[test]
    fn a_break_begins_a_new_line() {
        let period = Period::from_hertz(1e9).unwrap();
        let breaks = [
            pair(21_000_000_000, Span::from_secs(40)),
            pair(21_000_000_000, Span::from_secs(20)),
            pair(19_000_000_000, Span::from_secs(21)),
            RawPair { counter: CounterId::MonotonicRaw, ..gaining(21) },
        ];
        for broken in breaks {
            let mut line = RawLine::default();
            (10..=20).for_each(|second| line.take(gaining(second)));
            line.take(broken);
            assert_eq!(line.base_rate(period), None, "{broken:?}");
        }
    }
}
