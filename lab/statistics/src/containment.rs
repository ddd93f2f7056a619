//! How often the truth lay inside what a clock promised.

use ffclock_units::{Bound, ClockError};

/// Counts of judged readings: those inside their limit, and those outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Containment {
    readings: u64,
    outside: u64,
}

impl Containment {
    /// Judges one reading: its error against the bound that was published with it.
    pub fn judge(&mut self, error: ClockError, bound: Bound) {
        self.readings += 1;
        self.outside += u64::from(!bound.contains(error));
    }

    /// Judges one reading by numbers of the same unit: the size of its error against the limit for it.
    pub fn judge_size(&mut self, size: f64, limit: f64) {
        let is_inside = size <= limit;
        self.readings += 1;
        self.outside += u64::from(!is_inside);
    }

    /// The number of readings that were judged.
    pub fn readings(&self) -> u64 {
        self.readings
    }

    /// The number of readings with the truth outside their limit.
    pub fn outside(&self) -> u64 {
        self.outside
    }

    /// The share of readings with the truth inside; `None` without readings.
    pub fn share(&self) -> Option<f64> {
        (self.readings > 0).then(|| (self.readings - self.outside) as f64 / self.readings as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Span;

    #[test]
    fn the_bound_itself_is_inside_on_either_side() {
        let mut containment = Containment::default();
        assert_eq!(containment.share(), None);
        for units in [0, 10, -10, 11] {
            containment.judge(ClockError::new(Span::from_units(units)), Bound::of(Span::from_units(10)));
        }
        assert_eq!((containment.readings(), containment.outside(), containment.share()), (4, 1, Some(0.75)));
    }

    #[test]
    fn a_size_that_is_no_number_is_outside() {
        let mut containment = Containment::default();
        [1.0, 2.0, f64::NAN].into_iter().for_each(|size| containment.judge_size(size, 1.0));
        assert_eq!((containment.readings(), containment.outside()), (3, 2));
    }
}
