//! How far a time is probably off, as a statistic; [`Bound`] is how far it can be off at all.

use crate::{Bound, GrowthRate, Span};

/// A standard uncertainty of a time (coverage factor k = 1): the standard deviation of its error as the estimator
/// judges it. The word is that of the GUM (JCGM 100:2008, 2.3.1).
///
/// It is a statistic, not a limit: of normally distributed errors a third is larger, and a twentieth is larger than
/// twice as much. There are two of them. The *noise* (evaluation of Type A) covers what the exchanges of the clock
/// show: queueing, stamps, the wander of the counter. The *combined* one (GUM, 2.3.4), which is meant where nothing
/// else is said, adds what no exchange shows, by its prior (Type B): the asymmetry of the path, and the error of the
/// server's own clock. The [`Bound`] is how far the time can be off at all, so it and an uncertainty are not two sizes
/// of one thing and cannot be swapped:
/// ```compile_fail,E0308
/// use ffclock_units::{Bound, StandardUncertainty};
/// let _: Bound = StandardUncertainty::ZERO;
/// ```
/// ```compile_fail,E0308
/// use ffclock_units::{Bound, Moment, Reading, Span, StandardUncertainty, Status};
/// let (bound, uncertainty) = (Bound::of(Span::from_micros(50)), StandardUncertainty::of(Span::from_micros(2)));
/// let time = Moment::from_origin(Span::ZERO);
/// let _ = Reading { time, uncertainty: bound, bound: uncertainty, status: Status::Synchronised };
/// ```
/// nor compared:
/// ```compile_fail,E0308
/// use ffclock_units::{Bound, StandardUncertainty};
/// let _ = StandardUncertainty::ZERO < Bound::ZERO;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StandardUncertainty(
    /// The arithmetic of sizes: never negative, rounded up.
    Bound,
);

impl StandardUncertainty {
    /// No error is to be expected.
    pub const ZERO: StandardUncertainty = StandardUncertainty(Bound::ZERO);
    /// Nothing is known.
    pub const UNKNOWN: StandardUncertainty = StandardUncertainty(Bound::UNKNOWN);

    /// The size of `span`, whatever its sign.
    pub const fn of(span: Span) -> Self {
        StandardUncertainty(Bound::of(span))
    }

    /// From seconds as a float, rounded up; negative values and NaN give [`StandardUncertainty::UNKNOWN`].
    pub fn from_seconds(seconds: f64) -> Self {
        StandardUncertainty(Bound::from_seconds(seconds))
    }

    /// As a span.
    pub const fn as_span(self) -> Span {
        self.0.as_span()
    }

    /// In seconds, rounded to the nearest float.
    pub fn as_seconds(self) -> f64 {
        self.0.as_seconds()
    }

    /// In nanoseconds, rounded up.
    pub const fn as_nanos_up(self) -> u128 {
        self.0.as_nanos_up()
    }

    /// This uncertainty after `age` of growth, rounded up. Age counts in both directions from the reference.
    #[must_use]
    #[inline]
    pub fn grown(self, age: Span, growth: GrowthRate) -> Self {
        StandardUncertainty(self.0.grown(age, growth))
    }

    /// No more than `bound`: an error that cannot be has no part in the deviation.
    #[must_use]
    pub fn at_most(self, bound: Bound) -> Self {
        StandardUncertainty(self.0.min(bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rate;

    #[test]
    fn what_makes_no_sense_is_unknown_not_small() {
        assert_eq!(StandardUncertainty::from_seconds(f64::NAN), StandardUncertainty::UNKNOWN);
        assert_eq!(StandardUncertainty::from_seconds(-1.0), StandardUncertainty::UNKNOWN);
    }

    #[test]
    fn it_grows_as_a_bound_does_and_is_never_more_than_one() {
        let (span, age) = (Span::from_micros(3), Span::from_secs(-10));
        let growth = GrowthRate::of(Rate::from_ppm(1.0));
        let grown = StandardUncertainty::of(span).grown(age, growth);
        assert_eq!(grown.as_span(), Bound::of(span).grown(age, growth).as_span());
        assert_eq!(grown.at_most(Bound::of(span)), StandardUncertainty::of(span));
        assert_eq!(grown.at_most(Bound::UNKNOWN), grown);
    }
}
