//! The uncorrected clock `C(T) = p T + K`: continuous, and as steady as the long-term rate.

use ffclock_units::{Counter, Moment, Period, Tai};

/// The clock, anchored at the last exchange so that every product is exact and small.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uncorrected {
    counter: Counter,
    time: Moment<Tai>,
    period: Period,
}

impl Uncorrected {
    pub fn new(counter: Counter, time: Moment<Tai>, period: Period) -> Self {
        Uncorrected { counter, time, period }
    }

    /// Goes on to `counter` and takes `period` from there on: "whenever p changes, K += T_last (p_old - p_new)".
    pub fn advance(&mut self, counter: Counter, period: Period) {
        self.time = self.at(counter);
        (self.counter, self.period) = (counter, period);
    }

    /// The reading at `counter`.
    pub fn at(&self, counter: Counter) -> Moment<Tai> {
        self.time + self.period * (counter - self.counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{Rate, Span};

    /// "Whenever p changes, K += T_last (p_old - p_new), so C is continuous. K changes in no other way."
    #[test]
    fn a_new_period_does_not_move_the_clock() {
        let period = Period::from_hertz(2.9e9).unwrap();
        let mut clock = Uncorrected::new(Counter::from_raw(7), Moment::from_origin(Span::ZERO), period);
        let last = Counter::from_raw(1_000_000_000_007);
        let before = clock.at(last);
        clock.advance(last, period.stretched(Rate::from_ppm(10.0)));
        assert_eq!(clock.at(last), before);
        let later = Counter::from_raw(2_000_000_000_007);
        let ahead = (clock.at(later) - before) - period * (later - last);
        assert!((ahead.as_seconds() / (1e12 / 2.9e9) * 1e6 - 10.0).abs() < 1e-6);
    }
}
