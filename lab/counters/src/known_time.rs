//! A time that is known everywhere on this machine, because it is a function of the raw counter.
//!
//! The reference server serves this time, and a comparison of a clock with it computes it from the same counter: the
//! shared counter is the external monitor of the papers (case-for-feed-forward, section II-B).

use ffclock_units::{Counter, Moment, Period, Rate, Span, Tai};
use std::f64::consts::TAU;

/// Time as a function of the counter: a constant rate offset and a sinusoidal wander.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownTime {
    /// The reading at which the function starts.
    pub origin: Counter,
    /// The true time at `origin`.
    pub time: Moment<Tai>,
    /// The period without the wander.
    pub period: Period,
    /// The largest deviation of the rate from `period`.
    pub wander: Rate,
    /// How long one swing of the wander takes.
    pub swing: Span,
}

impl KnownTime {
    /// The true time at a reading.
    pub fn at(&self, counter: Counter) -> Moment<Tai> {
        let steady = self.period * (counter - self.origin);
        let swing = self.swing.as_seconds();
        let phase = TAU * steady.as_seconds() / swing;
        // The integral of wander * sin(phase): zero at the origin, never negative, so time still runs forward.
        let wandered = self.wander.as_fraction() * swing / TAU * (1.0 - phase.cos());
        self.time + steady + Span::from_seconds(wandered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth() -> KnownTime {
        KnownTime {
            origin: Counter::from_raw(1_000),
            time: Moment::from_origin(Span::from_secs(1_800_000_000)),
            period: Period::from_hertz(1e9).unwrap().stretched(Rate::from_ppm(40.0)),
            wander: Rate::from_ppm(0.1),
            swing: Span::from_secs(60),
        }
    }

    #[test]
    fn the_rate_offset_shows_after_whole_swings() {
        let truth = truth();
        let later = Counter::from_raw(1_000 + 60_000_000_000);
        let elapsed = truth.at(later) - truth.time;
        assert!((elapsed.as_seconds() - 60.0 * (1.0 + 40e-6)).abs() < 1e-8, "{elapsed:?}");
    }

    #[test]
    fn the_wander_changes_the_rate_by_no_more_than_it_says() {
        let truth = truth();
        for second in 0..60 {
            let at = Counter::from_raw(1_000 + second * 1_000_000_000);
            let next = Counter::from_raw(at.raw() + 1_000_000_000);
            let rate = (truth.at(next) - truth.at(at)).as_seconds() - 1.0;
            assert!((rate - 40e-6).abs() <= 0.1e-6 + 1e-11, "{second}: {rate}");
        }
    }
}
