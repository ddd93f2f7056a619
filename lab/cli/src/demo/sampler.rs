//! Compares a published clock with the truth, at the very same counter reading.

use super::stage::TruthSource;
use ffclock_client::{Clock, Stamp, VotedTime};
use ffclock_counter::{CounterId, read_narrowest};
use ffclock_replay::{LiveRun, LiveSample};
use ffclock_units::{Bound, ClockError, LeapTable, Moment, Rate, Ticks, Utc};

/// A clock under observation.
pub(super) struct ObservedClock {
    clock: Clock,
    /// All comparisons so far.
    pub(super) run: LiveRun,
}

/// Attempts at reading the system clock between two counter readings; the narrowest counts.
const TRIES: usize = 5;

/// The true time at a stamp, and the largest error of the comparison itself.
struct StampTruth {
    stamp: Stamp,
    truth: Moment<Utc>,
    width: Ticks,
}

impl ObservedClock {
    pub(super) fn new(name: &'static str, clock: Clock) -> Self {
        ObservedClock { clock, run: LiveRun { name, samples: Vec::new(), refused: 0 } }
    }

    /// Takes one sample. Before the first estimate there is nothing to compare.
    pub(super) fn sample(&mut self, t_s: f64, reference: &TruthSource) {
        let look = self.look(reference);
        let estimate = self.clock.snapshot().ok().and_then(|snapshot| snapshot.estimate());
        let (Ok(VotedTime { reading, noise, .. }), Some(estimate)) = (self.clock.time_of(look.stamp), estimate) else {
            self.run.refused += u64::from(!self.run.samples.is_empty());
            return;
        };
        let error = reading.time - look.truth;
        let blur = Bound::of(estimate.difference_period * look.width.halved());
        self.run.samples.push(LiveSample {
            t_s,
            error_s: error.as_seconds(),
            bound_s: reading.bound.as_seconds(),
            uncertainty_s: reading.uncertainty.as_seconds(),
            noise_s: noise.as_seconds(),
            contained: (reading.bound + blur).contains(ClockError::new(error)),
            status: reading.status,
            rate_error_ppm: reference.rate_error(estimate.difference_period).map(Rate::as_ppm),
        });
    }

    fn look(&self, reference: &TruthSource) -> StampTruth {
        let stamp = self.clock.stamp();
        match reference {
            TruthSource::Embedded(truth) => {
                let truth = LeapTable::built_in().utc_from_tai(truth.at(stamp.counter()));
                StampTruth { stamp, truth, width: Ticks::ZERO }
            }
            TruthSource::SystemClock => {
                let pair = read_narrowest(CounterId::CPU, TRIES, ffclock_sys::system_utc_now);
                let stamp = Stamp::from_parts(pair.middle(), stamp.epoch());
                StampTruth { stamp, truth: pair.value, width: pair.width() }
            }
        }
    }

    /// The latest comparison.
    pub(super) fn latest(&self) -> Option<&LiveSample> {
        self.run.samples.last()
    }
}
