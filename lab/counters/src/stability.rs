//! How steadily counters run: against one another and against a reference.
//!
//! Every counter is read between two readings of the CPU's own, the base, so that all are known at moments of one
//! scale. Against a reference with a time of its own (the published clock, a PTP hardware clock, pulses, a file) the
//! base is compared directly, and every other counter through it. Figures: the mean rate, the rate from sample to
//! sample (figures 2 and 13 of the papers), Allan deviation (figures 1 and 12).

mod allan;
mod analysis;
mod pulse_events;
mod pulses;
mod reference;

pub use allan::{Deviation, allan_deviation, deviations, modified_allan_deviation};
pub use analysis::{Curve, Steadiness, analyse, with_reference};
pub use pulses::{PulseClock, PulseStamps};
pub use reference::{ReferenceClock, ReferenceError, check_file, points_of_file};

use crate::beside::BracketedReading;
use crate::followed::{Followed, Unfollowed};
use crate::ways::CounterWay;
use ffclock_units::Period;
use serde::{Deserialize, Serialize};

/// All counters once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountersSample {
    /// Seconds since the beginning.
    pub t: f64,
    /// Number of the phase.
    pub phase: usize,
    /// One for each counter, in the order of the header.
    pub points: Vec<BracketedReading>,
    /// Of the reference, where there is one and it had something new.
    pub reference: Option<BracketedReading>,
}

/// What a recording says about the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StabilityAbout {
    /// Nominal ticks per second of the base.
    pub base_hertz: f64,
    /// The counters.
    pub counters: Vec<CounterAbout>,
    /// What the reference is, where there is one.
    pub reference: Option<String>,
    /// What stamps the pulses of the reference, where it has pulses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pulses: Option<PulseStamps>,
    /// Seconds between samples.
    pub every_s: f64,
}

/// One counter of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterAbout {
    /// Name and access.
    pub name: String,
    /// Nominal ticks per second.
    pub hertz: f64,
}

/// Why stability cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum StabilityError {
    /// A counter that was there is gone, or its values started again.
    #[error(transparent)]
    Unfollowed(#[from] Unfollowed),
    /// A frequency that no counter has.
    #[error(
        "{name} claims {hertz} Hz, which no counter has: leave it out with --only, and report it to the maker of its driver"
    )]
    AbsurdFrequency {
        /// The name of the counter.
        name: String,
        /// What it claims.
        hertz: f64,
    },
    /// The reference failed.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
}

/// Slower than a coarse tick and faster than light goes a centimetre: no counter.
const PLAUSIBLE_HERTZ: core::ops::Range<f64> = 10.0..1e11;

/// A measurement under way.
#[derive(Debug)]
pub struct Stability {
    followed: Followed,
    reference: Option<ReferenceClock>,
    period: Period,
}

impl Stability {
    /// Prepares to compare `ways` with the CPU's counter of `period`.
    ///
    /// # Errors
    /// [`StabilityError::AbsurdFrequency`].
    pub fn new(
        ways: Vec<CounterWay>,
        reference: Option<ReferenceClock>,
        period: Period,
    ) -> Result<Self, StabilityError> {
        match ways.iter().find(|way| !PLAUSIBLE_HERTZ.contains(&way.hertz())) {
            Some(way) => Err(StabilityError::AbsurdFrequency { name: way.name(), hertz: way.hertz() }),
            None => Ok(Stability { followed: Followed::new(ways), reference, period }),
        }
    }

    /// What a recording says about the run.
    pub fn about(&self, every_s: f64) -> StabilityAbout {
        let ways = self.followed.ways();
        let counters = ways.iter().map(|way| CounterAbout { name: way.name(), hertz: way.hertz() }).collect();
        let reference = self.reference.as_ref().map(|reference| reference.name().to_owned());
        let pulses = self.reference.as_ref().and_then(ReferenceClock::pulse_stamps);
        StabilityAbout { base_hertz: self.period.as_hertz(), counters, reference, pulses, every_s }
    }

    /// Reads everything once.
    ///
    /// # Errors
    /// A counter or the reference is gone.
    pub fn sample(&mut self, phase: usize, t: f64) -> Result<CountersSample, StabilityError> {
        let points = self.followed.points()?;
        let reference = self.reference.as_mut().map(ReferenceClock::point).transpose()?.flatten();
        Ok(CountersSample { t, phase, points, reference })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posix_clock::PosixClock;
    use crate::ways::vdso;
    use ffclock_counter::{CounterId, nominal};

    #[test]
    fn a_counter_is_read_within_its_range() {
        let period = nominal(CounterId::CPU).unwrap().period;
        let mut stability = Stability::new(vec![vdso(PosixClock::MonotonicRaw)], None, period).unwrap();
        let first = stability.sample(0, 0.0).unwrap();
        let second = stability.sample(0, 0.1).unwrap();
        assert!(second.points[0].base > first.points[0].base && second.points[0].value > first.points[0].value);
        assert!(first.points[0].width > 0 && first.reference.is_none());
        assert_eq!(stability.about(1.0).counters[0].name, "monotonic-raw vDSO");
    }

    #[test]
    fn a_counter_that_vanishes_is_named_with_a_remedy() {
        let mut stability =
            Stability::new(vec![CounterWay::vanished()], None, Period::from_hertz(1e9).unwrap()).unwrap();
        let error = stability.sample(0, 0.0).unwrap_err().to_string();
        assert!(error.contains("ptp7 clock_gettime cannot be read any more") && error.contains("--only"), "{error}");
    }

    #[test]
    fn absurd_frequencies_are_refused() {
        let period = Period::from_hertz(1e9).unwrap();
        let ways = crate::ways::cpu_ways(3e15);
        let error = Stability::new(ways, None, period).unwrap_err();
        assert!(error.to_string().contains("which no counter has"), "{error}");
        assert!(Stability::new(crate::ways::cpu_ways(f64::NAN), None, period).is_err());
    }
}
