//! Compares a published clock with the truth, at the very same counter reading.

use super::stage::Reference;
use crate::failure::Failure;
use ffclock_client::Clock;
use ffclock_units::{ClockError, LeapTable, Moment, Status, Utc};

/// One comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Since the start of the run [s].
    pub(super) t_s: f64,
    /// Published clock - truth [s].
    pub(super) error_s: f64,
    /// The published bound [s].
    pub(super) bound_s: f64,
    /// The published uncertainty [s].
    pub(super) uncertainty_s: f64,
    /// Whether the truth lay within the bound, in exact arithmetic.
    pub(super) contained: bool,
    /// The published status.
    pub(super) status: Status,
    /// Difference clock's period / true period - 1, averaged over the run.
    pub(super) rate_error_ppm: f64,
}

/// A clock under observation.
pub(super) struct Observed {
    /// What it is called in the table.
    pub(super) name: &'static str,
    clock: Clock,
    /// All comparisons so far.
    pub(super) samples: Vec<Sample>,
    /// Readings that the page refused, by the reason.
    pub(super) refused: u64,
}

/// A look at the reference takes two counter readings; a wider pair was interrupted and says nothing.
const WIDEST_PAIR_S: f64 = 2e-6;

impl Observed {
    pub(super) fn new(name: &'static str, clock: Clock) -> Self {
        Observed { name, clock, samples: Vec::new(), refused: 0 }
    }

    /// Takes one sample. Before the first estimate there is nothing to compare.
    pub(super) fn sample(&mut self, t_s: f64, reference: &Reference) -> Result<(), Failure> {
        let first = self.clock.stamp();
        let system_clock: Moment<Utc> = ffclock_sys::system_utc_now();
        let second = self.clock.stamp();
        let (stamp, truth) = match reference {
            Reference::Embedded(truth) => (first, LeapTable::built_in().utc_from_tai(truth.at(first.counter()))),
            Reference::SystemClock => (first.midpoint(second), system_clock),
        };
        let estimate = self.clock.snapshot().ok().and_then(|snapshot| snapshot.estimate());
        let (Ok(reading), Some(estimate)) = (self.clock.at(stamp), estimate) else {
            self.refused += 1;
            return Ok(());
        };
        let pair = estimate.difference_period * (second.counter() - first.counter());
        if *reference == Reference::SystemClock && pair.as_seconds() > WIDEST_PAIR_S {
            return Ok(());
        }
        let error = reading.time - truth;
        self.samples.push(Sample {
            t_s,
            error_s: error.as_seconds(),
            bound_s: reading.bound.as_seconds(),
            uncertainty_s: reading.uncertainty.as_seconds(),
            contained: reading.bound.contains(ClockError::new(error)),
            status: reading.status,
            rate_error_ppm: reference.rate_error(estimate.difference_period).as_ppm(),
        });
        Ok(())
    }

    /// The latest comparison.
    pub(super) fn latest(&self) -> Option<&Sample> {
        self.samples.last()
    }
}
