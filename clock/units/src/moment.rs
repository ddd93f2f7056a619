//! Points in time, each on a named timescale.

use crate::Span;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::ops::{Add, Sub};

/// A scale on which moments are counted.
pub trait Timescale {
    /// The name that people know it by.
    const NAME: &'static str;
}

macro_rules! timescale {
    ($(#[$story:meta])* $scale:ident, $name:literal) => {
        $(#[$story])*
        #[derive(Clone, Copy, Debug)]
        pub enum $scale {}
        impl Timescale for $scale {
            const NAME: &'static str = $name;
        }
    };
}

timescale!(
    /// Coordinated Universal Time as POSIX counts it: seconds since 1970-01-01 without leap seconds, so one label
    /// repeats when a second is inserted.
    Utc, "UTC"
);
timescale!(
    /// International Atomic Time, seconds since 1970-01-01 00:00:00 TAI; continuous. The algorithm runs on this scale.
    Tai, "TAI"
);
timescale!(
    /// What a server calls UTC: not yet believed, and with the server's own leap seconds.
    Server, "server"
);
timescale!(
    /// A monotonic scale of this host with an arbitrary origin, for deadlines only.
    Mono, "monotonic"
);
timescale!(
    /// What the clock of one network card shows (a PTP hardware clock): free-running as far as this host is concerned,
    /// with an arbitrary origin.
    Phc, "PHC"
);

/// A point in time: 2^-64 s since the origin of the scale `S`.
///
/// Moments of one scale subtract to a span; moments of different scales do not mix:
/// ```compile_fail
/// use ffclock_units::{Moment, Span, Tai, Utc};
/// let _ = Moment::<Utc>::from_origin(Span::ZERO) - Moment::<Tai>::from_origin(Span::ZERO);
/// ```
/// and two moments have no sum:
/// ```compile_fail
/// use ffclock_units::{Moment, Span, Tai};
/// let _ = Moment::<Tai>::from_origin(Span::ZERO) + Moment::<Tai>::from_origin(Span::ZERO);
/// ```
pub struct Moment<S> {
    since_origin: Span,
    scale: PhantomData<S>,
}

impl<S> Moment<S> {
    /// Before every other moment.
    pub const EARLIEST: Self = Moment::from_origin(Span::from_units(i128::MIN));
    /// After every other moment.
    pub const LATEST: Self = Moment::from_origin(Span::MAX);

    /// The moment `since_origin` after the origin of the scale.
    pub const fn from_origin(since_origin: Span) -> Self {
        Moment { since_origin, scale: PhantomData }
    }

    /// The span since the origin of the scale.
    pub const fn since_origin(self) -> Span {
        self.since_origin
    }

    /// The whole seconds since the origin of the scale, rounded down.
    pub const fn whole_seconds(self) -> i64 {
        (self.since_origin.units() >> 64) as i64
    }

    /// Year, month and day of the proleptic Gregorian calendar. Years are counted from March, so that the leap day is
    /// the last of its year; 400 such years always have 146 097 days.
    pub fn civil_date(self) -> (i64, i64, i64) {
        let from_march_0000 = self.whole_seconds().div_euclid(86_400) + 719_468;
        let era = from_march_0000.div_euclid(146_097);
        let day_of_era = from_march_0000.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        (era * 400 + year_of_era + i64::from(month <= 2), month, day)
    }

    /// The moment in the middle between two, exact to 2^-64 s.
    #[must_use]
    pub fn midpoint(self, other: Self) -> Self {
        self + (other - self).halved()
    }
}

impl<S> Clone for Moment<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Moment<S> {}

impl<S> PartialEq for Moment<S> {
    fn eq(&self, other: &Self) -> bool {
        self.since_origin == other.since_origin
    }
}

impl<S> Eq for Moment<S> {}

impl<S> PartialOrd for Moment<S> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<S> Ord for Moment<S> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.since_origin.cmp(&other.since_origin)
    }
}

impl<S> Hash for Moment<S> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.since_origin.hash(state);
    }
}

impl<S: Timescale> fmt::Debug for Moment<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ns", S::NAME, self.since_origin.as_nanos())
    }
}

impl<S> Sub for Moment<S> {
    type Output = Span;
    fn sub(self, earlier: Self) -> Span {
        self.since_origin - earlier.since_origin
    }
}

impl<S> Add<Span> for Moment<S> {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Moment::from_origin(self.since_origin + span)
    }
}

impl<S> Sub<Span> for Moment<S> {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Moment::from_origin(self.since_origin - span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_midpoint_lies_between() {
        let a = Moment::<Tai>::from_origin(Span::from_secs(10));
        let b = a + Span::from_millis(4);
        assert_eq!(a.midpoint(b), a + Span::from_millis(2));
        assert_eq!(b.midpoint(a), a + Span::from_millis(2));
    }

    #[test]
    fn whole_seconds_round_down_before_the_origin_too() {
        assert_eq!(Moment::<Utc>::from_origin(Span::from_millis(-1)).whole_seconds(), -1);
        assert_eq!(Moment::<Utc>::from_origin(Span::from_millis(1999)).whole_seconds(), 1);
    }
}
