//! The records that one room hands to the next.

use crate::{Bound, Counter, LeapTable, Moment, Period, Rate, Span, StandardUncertainty, Tai, Ticks, Utc};

/// Where in the host a packet was stamped; the closer to the wire, the less the host's own delays enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StampLocation {
    /// In user space, around the system call.
    User,
    /// In the kernel, at the boundary to the driver.
    Kernel,
    /// In the network card, at its boundary to the wire.
    Hardware,
    /// Not known: a trace that does not say, or a simulation.
    Unknown,
}

/// When a packet passed a point of this host, by the raw counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The middle of the range in which the packet passed.
    pub counter: Counter,
    /// The whole width of that range: the packet passed within `counter` +- `width` / 2.
    pub width: Ticks,
    /// Where it was taken.
    pub location: StampLocation,
}

/// The leap indicator of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Leap {
    /// No leap second at the end of this month.
    #[default]
    None,
    /// The last minute of the month has 61 seconds.
    Insert,
    /// The last minute of the month has 59 seconds.
    Delete,
}

/// Who the server says it is following: when this changes, it is in effect another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ServerIdentity {
    /// Distance from a primary source, 1..15.
    pub stratum: u8,
    /// The reference identifier as it stands in the packet.
    pub reference_id: u32,
}

/// What a server claims about its own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ServerQuality {
    /// Who it follows.
    pub identity: ServerIdentity,
    /// Whether it announces a leap second.
    pub leap: Leap,
    /// Half its root delay + its root dispersion + its precision: its own claim of its largest error.
    pub root_distance: Bound,
}

/// One request and its reply. `sent` and `received` are ours (Ta, Tf of the papers), the rest is the server's claim
/// (Tb, Te) on the leap-free scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Ta: our request leaves.
    pub sent: Stamp,
    /// Tb: the request reaches the server.
    pub server_in: Moment<Tai>,
    /// Te: the reply leaves the server.
    pub server_out: Moment<Tai>,
    /// Tf: the reply reaches us.
    pub received: Stamp,
    /// The server's claim about itself at the time of the reply.
    pub server: ServerQuality,
}

/// How far an estimate, or a reading made of it, may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// There is no estimate: nothing was heard, or the counter's epoch ended.
    Unsynchronised,
    /// Right within its bound, but the rate rests on little data.
    WarmingUp,
    /// The server is lost or not believed; the clock runs on at its last rate and the bound grows.
    Holdover,
    /// In regular work.
    Synchronised,
}

impl Status {
    /// Every status, the worst first.
    pub const ALL: [Status; 4] = [Status::Unsynchronised, Status::WarmingUp, Status::Holdover, Status::Synchronised];

    /// The name in logs, the control protocol, files and the answers of commands. Programs compare the status, not
    /// this.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Unsynchronised => "unsynchronised",
            Status::WarmingUp => "warming-up",
            Status::Holdover => "holdover",
            Status::Synchronised => "synchronised",
        }
    }

    /// The status of a name. `free-running` is what holdover was called before.
    pub fn from_name(name: &str) -> Option<Status> {
        let name = if name == "free-running" { Status::Holdover.name() } else { name };
        Status::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// What the estimator knows after an exchange: everything needed to turn a counter reading into a time
/// ([`Estimate::at`]) and an interval into seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The counter reading at which the rest holds.
    pub counter: Counter,
    /// The absolute clock at `counter`.
    pub time: Moment<Tai>,
    /// The rate of the absolute clock away from `counter`.
    pub period: Period,
    /// The combined standard uncertainty at `counter`: the noise, and what no exchange shows.
    pub uncertainty: StandardUncertainty,
    /// The noise at `counter`: the part of `uncertainty` that exchanges show. Not above `uncertainty`.
    pub noise: StandardUncertainty,
    /// How fast both grow away from `counter`.
    pub uncertainty_growth: GrowthRate,
    /// The largest possible error at `counter`, as long as the claims that it rests on are true (the server's own, or,
    /// of several servers, those of the believed ones) and the counter's rate moves no more than was assumed
    /// (`wander`, `nominal_error`).
    pub bound: Bound,
    /// How fast `bound` grows away from `counter`. Before `counter` that holds as long as the mean rate between the two
    /// lay in the range that is proven for the present one (docs/algorithm/classic.md, "Before the last exchange").
    pub bound_growth: GrowthRate,
    /// The long-term period: the difference clock measures intervals with it.
    pub difference_period: Period,
    /// The largest relative error of `difference_period` over an interval.
    pub difference_bound: GrowthRate,
    /// The standard uncertainty of `difference_period`, relative, for an interval of the recent past.
    pub difference_uncertainty: GrowthRate,
    /// How far this may be trusted.
    pub status: Status,
}

impl Estimate {
    /// The bound and its growth.
    pub const fn growing_bound(&self) -> GrowingBound {
        GrowingBound { bound: self.bound, growth: self.bound_growth }
    }

    /// This estimate with another bound; an uncertainty beyond it is cut off.
    #[must_use]
    pub fn bounded_by(self, GrowingBound { bound, growth }: GrowingBound) -> Self {
        Estimate {
            bound,
            bound_growth: growth,
            uncertainty: self.uncertainty.at_most(bound),
            noise: self.noise.at_most(bound),
            uncertainty_growth: self.uncertainty_growth.min(growth),
            ..self
        }
    }

    /// This estimate as it is at another reading of the same epoch, its errors as they have grown until then.
    #[must_use]
    pub fn carried_to(&self, counter: Counter) -> Self {
        let TaiReading { time, uncertainty, noise, bound, .. } = self.at(counter);
        Estimate { counter, time, uncertainty, noise, bound, ..*self }
    }

    /// The clock at the reading `counter`, of the same epoch: `time + period * (counter - self.counter)`.
    ///
    /// This is the one place where an estimate becomes a time. The error figures grow with the distance, in both
    /// directions.
    /// ```
    /// # use ffclock_units::*;
    /// # let period = Period::from_hertz(1e9).unwrap();
    /// let estimate = Estimate {
    ///     counter: Counter::from_raw(1_000_000_000),
    ///     time: Moment::from_origin(Span::from_secs(100)),
    ///     bound: Bound::of(Span::from_micros(50)),
    ///     bound_growth: GrowthRate::of(Rate::from_ppm(0.5)),
    /// #   period,
    /// #   uncertainty: StandardUncertainty::ZERO,
    /// #   noise: StandardUncertainty::ZERO,
    /// #   uncertainty_growth: GrowthRate::default(),
    /// #   difference_period: period,
    /// #   difference_bound: GrowthRate::default(),
    /// #   difference_uncertainty: GrowthRate::default(),
    ///     status: Status::Synchronised,
    ///     // ...
    /// };
    /// // Two seconds later, at 1 GHz.
    /// let later = estimate.at(Counter::from_raw(3_000_000_000));
    /// assert!((later.time - estimate.time - Span::from_secs(2)).abs() < Span::from_nanos(1));
    /// assert!(later.bound >= Bound::of(Span::from_micros(51)));
    /// ```
    #[inline]
    pub fn at(&self, counter: Counter) -> TaiReading {
        let age = self.period * (counter - self.counter);
        TaiReading {
            time: self.time + age,
            uncertainty: self.uncertainty.grown(age, self.uncertainty_growth),
            noise: self.noise.grown(age, self.uncertainty_growth),
            bound: self.bound.grown(age, self.bound_growth),
            status: self.status,
        }
    }
}

/// An estimate at one counter reading, on the scale of the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaiReading {
    /// The time.
    pub time: Moment<Tai>,
    /// The combined standard uncertainty of `time`.
    pub uncertainty: StandardUncertainty,
    /// The part of it that is noise.
    pub noise: StandardUncertainty,
    /// The largest possible error of `time`, on the premises of the estimate's bound.
    pub bound: Bound,
    /// How far this may be trusted.
    pub status: Status,
}

impl TaiReading {
    /// The same reading in UTC.
    pub fn to_utc(self, leaps: &LeapTable) -> Reading {
        let TaiReading { time, uncertainty, bound, status, .. } = self;
        Reading { time: leaps.utc_from_tai(time), uncertainty, bound, status }
    }
}

/// A non-negative rate in whole units of 2^-64 s per s, rounded up when made: exact in a page and comparable.
///
/// One type for the growth of a bound and that of a standard uncertainty: the second is never published above the
/// first, so that the two are compared, and what may not be swapped is what they are added to, which has two types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GrowthRate(u64);

impl GrowthRate {
    /// From a rate, rounded up; the sign is dropped. Anything at or above 1 s/s, and NaN, saturates.
    pub fn of(rate: Rate) -> Self {
        let units = rate.abs().as_fraction() * 18_446_744_073_709_551_616.0;
        if units.is_nan() { GrowthRate(u64::MAX) } else { GrowthRate((units as u64).saturating_add(1)) }
    }

    /// From units of 2^-64 s/s.
    pub const fn from_units(units: u64) -> Self {
        GrowthRate(units)
    }

    /// In units of 2^-64 s/s.
    pub const fn units(self) -> u64 {
        self.0
    }

    /// As a rate, rounded to the nearest float.
    pub fn as_rate(self) -> Rate {
        Rate::from_fraction(self.0 as f64 / 18_446_744_073_709_551_616.0)
    }

    /// How much grows over `age` (in either direction), rounded up. A rate that saturated is not known.
    pub fn over(self, age: Span) -> Bound {
        if self.0 == u64::MAX {
            return Bound::UNKNOWN;
        }
        let age = age.abs().units() as u128;
        let (seconds, fraction) = ((age >> 64) as u64, age as u64);
        let whole = seconds as u128 * self.0 as u128;
        let part = (fraction as u128 * self.0 as u128) >> 64;
        let units = whole.saturating_add(part).saturating_add(1).min(i128::MAX as u128);
        Bound::of(Span::from_units(units as i128))
    }
}

/// A bound and how fast it grows away from the counter reading at which it holds, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrowingBound {
    /// The largest possible error at that reading.
    pub bound: Bound,
    /// How fast `bound` grows away from it.
    pub growth: GrowthRate,
}

impl GrowingBound {
    /// Nothing is known, now and later.
    pub const UNKNOWN: GrowingBound = GrowingBound { bound: Bound::UNKNOWN, growth: GrowthRate(u64::MAX) };

    /// The bound at this distance from the reading, rounded up.
    #[must_use]
    pub fn after(self, age: Span) -> Bound {
        self.bound.grown(age, self.growth)
    }
}

/// A time with its error figures and status, all from one snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The time.
    pub time: Moment<Utc>,
    /// The combined standard uncertainty of `time`.
    pub uncertainty: StandardUncertainty,
    /// The largest possible error, as long as no believed server is false by less than the others can see and the
    /// counter's rate moves no more than was assumed (`wander`, `nominal_error`).
    pub bound: Bound,
    /// How far this may be trusted.
    pub status: Status,
}

impl Reading {
    /// The earliest time it can be: any, while it is [`Status::Unsynchronised`].
    pub fn earliest(&self) -> Moment<Utc> {
        self.half_width().map_or(Moment::EARLIEST, |half| self.time - half)
    }

    /// The latest time it can be: any, while it is [`Status::Unsynchronised`].
    pub fn latest(&self) -> Moment<Utc> {
        self.half_width().map_or(Moment::LATEST, |half| self.time + half)
    }

    /// How far the true time can be from `time` in either direction; `None` where nothing says how far.
    pub fn half_width(&self) -> Option<Span> {
        let is_known = self.status != Status::Unsynchronised && self.bound != Bound::UNKNOWN;
        is_known.then_some(self.bound.as_span())
    }
}

/// What is worth keeping about a counter across a restart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateMemory {
    /// The long-term period.
    pub period: Period,
    /// The largest relative error of `period` that was not excluded when it was kept.
    pub bound: Rate,
    /// The wander that the data showed, if it is larger than the configured one: at least this much is assumed again,
    /// within the limit that holds for learning it.
    pub wander: Option<Rate>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_rounds_up_and_has_no_sign() {
        let growth = GrowthRate::of(Rate::from_ppm(-0.5));
        assert!(growth.as_rate() >= Rate::from_ppm(0.5));
        let over = growth.over(Span::from_secs(-1000));
        assert!(over >= Bound::of(Span::from_micros(500)));
        assert!(over < Bound::of(Span::from_micros(500) + Span::from_nanos(1)));
        assert_eq!(GrowthRate::of(Rate::from_fraction(f64::NAN)).units(), u64::MAX);
    }

    #[test]
    fn an_estimate_takes_another_bound_and_cuts_its_uncertainty_off() {
        let period = crate::Period::from_hertz(1e9).unwrap();
        let growth = |ppm| GrowthRate::of(Rate::from_ppm(ppm));
        let estimate = Estimate {
            counter: Counter::from_raw(0),
            time: Moment::from_origin(Span::from_secs(5)),
            period,
            uncertainty: StandardUncertainty::of(Span::from_micros(30)),
            noise: StandardUncertainty::of(Span::from_micros(10)),
            uncertainty_growth: growth(2.0),
            bound: Bound::of(Span::from_micros(50)),
            bound_growth: growth(3.0),
            difference_period: period,
            difference_bound: growth(3.0),
            difference_uncertainty: growth(1.0),
            status: Status::Synchronised,
        };
        assert_eq!(estimate.bounded_by(estimate.growing_bound()), estimate);
        let narrow = GrowingBound { bound: Bound::of(Span::from_micros(20)), growth: growth(1.0) };
        let bounded = estimate.bounded_by(narrow);
        assert_eq!(bounded.growing_bound(), narrow);
        assert_eq!((bounded.uncertainty.as_span(), bounded.noise), (narrow.bound.as_span(), estimate.noise));
        let tight = estimate.bounded_by(GrowingBound { bound: Bound::of(Span::from_micros(5)), ..narrow });
        assert_eq!((tight.uncertainty, tight.noise.as_span()), (tight.noise, tight.bound.as_span()));
        let later = estimate.at(Counter::from_raw(5_000_000_000));
        let grown = later.noise.as_span() - estimate.noise.as_span();
        assert_eq!(later.uncertainty.as_span() - estimate.uncertainty.as_span(), grown);
        assert!((grown - Span::from_micros(10)).abs() < Span::from_nanos(1), "{grown}");
        assert_eq!((bounded.uncertainty_growth, bounded.difference_bound), (growth(1.0), growth(3.0)));
        assert!(narrow.after(Span::from_secs(-10)) >= Bound::of(Span::from_micros(30)));
        assert_eq!(GrowingBound::UNKNOWN.after(Span::from_secs(1)), Bound::UNKNOWN);
    }

    #[test]
    fn a_status_comes_back_from_its_name_and_from_its_old_one() {
        assert!(Status::ALL.into_iter().all(|status| Status::from_name(status.name()) == Some(status)));
        assert!(Status::ALL.is_sorted());
        assert_eq!(Status::from_name("free-running"), Some(Status::Holdover));
        assert_eq!(Status::from_name("Holdover"), None);
    }

    #[test]
    fn the_interval_of_a_reading_surrounds_it() {
        let time = Moment::from_origin(Span::from_secs(5));
        let bound = Bound::of(Span::from_millis(2));
        let reading = Reading { time, uncertainty: StandardUncertainty::ZERO, bound, status: Status::Synchronised };
        assert_eq!(reading.latest() - reading.earliest(), Span::from_millis(4));
        let unsynchronised = Reading { status: Status::Unsynchronised, ..reading };
        for unknown in [unsynchronised, Reading { bound: Bound::UNKNOWN, ..reading }] {
            assert_eq!((unknown.earliest(), unknown.latest()), (Moment::EARLIEST, Moment::LATEST));
        }
    }
}
