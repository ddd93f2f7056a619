//! Compares a published clock with the truth, at the very same counter reading.

use super::stage::{DemoStage, TruthSource, page_path};
use super::track::{TimeTrack, TrackPoint};
use crate::failure::Failure;
use ffclock::{Clock, Stamp};
use ffclock_counter::{CounterId, read_narrowest};
use ffclock_replay::{LiveRun, LiveSample};
use ffclock_units::{Bound, ClockError, LeapTable, Moment, Rate, Ticks, Utc};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// Time between two comparisons with the truth.
pub(super) const SAMPLING: Duration = Duration::from_millis(10);
/// The daemons make their pages within this time.
const PAGE_PATIENCE_S: f64 = 10.0;
/// Attempts at reading the system clock between two counter readings; the narrowest counts.
const TRIES: usize = 5;

/// A clock under observation.
pub(super) struct ObservedClock {
    clock: Clock,
    /// All comparisons so far.
    pub(super) run: LiveRun,
    /// The published time and the truth at the same counter readings.
    pub(super) track: TimeTrack,
}

/// The true time at a stamp, and the largest error of the comparison itself.
struct StampTruth {
    stamp: Stamp,
    truth: Moment<Utc>,
    width: Ticks,
}

impl ObservedClock {
    /// Waits until a daemon has made its page, and opens it.
    pub(super) fn open(directory: &Path, name: &'static str, stage: &mut DemoStage) -> Result<Self, Failure> {
        loop {
            match ObservedClock::of_page(&page_path(directory, name), name) {
                Ok(clock) => return Ok(clock),
                Err(failure) if stage.elapsed_s() > PAGE_PATIENCE_S => {
                    // What the daemon itself says is a better reason.
                    stage.check()?;
                    return Err(failure);
                }
                Err(_) => sleep(SAMPLING),
            }
        }
    }

    /// Opens a page that is there.
    pub(super) fn of_page(page: &Path, name: &'static str) -> Result<Self, Failure> {
        let clock = Clock::open_at(page).map_err(|error| error.to_string())?;
        let run = LiveRun { name, samples: Vec::new(), refused: 0 };
        Ok(ObservedClock { clock, run, track: TimeTrack::default() })
    }

    /// Whether there is an estimate already.
    pub(super) fn shows_a_time(&self) -> bool {
        self.clock.now().is_ok()
    }

    /// Takes one sample. Before the first estimate there is nothing to compare.
    pub(super) fn sample(&mut self, t_s: f64, reference: &TruthSource) {
        let look = self.look(reference);
        let estimate = self.clock.snapshot().ok().and_then(|snapshot| snapshot.estimate());
        let (Ok(voted), Some(estimate)) = (self.clock.time_of(look.stamp), estimate) else {
            self.run.refused += u64::from(!self.run.samples.is_empty());
            return;
        };
        let reading = voted.reading;
        let error = reading.time - look.truth;
        let blur = Bound::of(estimate.difference_period * look.width.halved());
        let contains = |bound: Bound| (bound + blur).contains(ClockError::new(error));
        self.run.samples.push(LiveSample {
            t_s,
            error_s: error.as_seconds(),
            bound_s: reading.bound.as_seconds(),
            bound_strict_s: voted.strict.as_seconds(),
            uncertainty_s: reading.uncertainty.as_seconds(),
            noise_s: voted.noise.as_seconds(),
            contained: contains(reading.bound),
            contained_strict: contains(voted.strict),
            status: reading.status,
            rate_error_ppm: reference.rate_error(estimate.difference_period).map(Rate::as_ppm),
        });
        self.track.push(TrackPoint { counter: look.stamp.counter(), published: reading.time, truth: look.truth });
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

    /// The latest comparison in words.
    pub(super) fn state(&self) -> String {
        match self.latest() {
            None => "no estimate yet".to_owned(),
            Some(sample) => format!(
                "error {:>+9.3} us  uncertainty {:>8.3} us  bound {:>9.3} us  {}",
                sample.error_s * 1e6,
                sample.uncertainty_s * 1e6,
                sample.bound_s * 1e6,
                sample.status.name()
            ),
        }
    }
}
