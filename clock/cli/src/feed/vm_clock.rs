//! The page of a VMClock in a file, which guests of this host read: by a device of their hypervisor that shows them the
//! file, or mapped. It gives them the published line with its bound, by the counter that guest and host share.
//!
//! The disruption marker is the number of the page's epoch, so it changes when the counter of this host was disturbed.
//! What happens to one guest alone, such as a snapshot of it, only its hypervisor can show.

use super::{Feed, FeedSample};
use crate::failure::Failure;
use ffclock_client::Clock;
use ffclock_sys::{VmClockFile, VmClockLeap, VmClockLine};
use ffclock_units::{Bound, CounterId, Ticks};
use std::path::{Path, PathBuf};

/// The file.
pub(super) struct VmClockFeed {
    path: PathBuf,
    file: VmClockFile,
    offset: Ticks,
}

impl VmClockFeed {
    /// `offset` is the counter of the guests minus that of this host.
    pub(super) fn create(path: &Path, offset: Ticks) -> Result<Self, Failure> {
        Ok(VmClockFeed { path: path.to_owned(), file: open(path)?, offset })
    }

    fn line(&self, clock: &Clock, sample: &FeedSample) -> Result<VmClockLine, Failure> {
        let failure = |error: &dyn core::fmt::Display| Failure::from(error.to_string());
        let snapshot = clock.snapshot().map_err(|error| failure(&error))?;
        let (stamp, _) = sample.after;
        if stamp.epoch() != snapshot.epoch() {
            return Err(Failure::unsynchronised("the counter's epoch ended"));
        }
        if snapshot.counter_id() != CounterId::CPU {
            let used = snapshot.counter_id();
            return Err(Failure::from(format!("guests share the CPU's counter, and the clock keeps time with {used}")));
        }
        let counter = stamp.counter();
        let estimate = snapshot.estimate().ok_or_else(|| Failure::unsynchronised("the clock is unsynchronised"))?;
        let reading = snapshot.reading_at(counter).map_err(|error| failure(&error))?;
        let time = snapshot.tai_at(counter).map_err(|error| failure(&error))?;
        if reading.bound == Bound::UNKNOWN {
            return Err(Failure::unsynchronised("nothing is known of the time"));
        }
        let line = VmClockLine {
            marker: snapshot.epoch().raw(),
            counter_id: CounterId::CPU,
            counter: counter + self.offset,
            time,
            period: estimate.period,
            uncertainty: (reading.uncertainty, estimate.uncertainty_growth),
            bound: (reading.bound, estimate.bound_growth),
            tai_offset: 0,
            leap: VmClockLeap::None,
            status: reading.status,
        };
        Ok(line.with_leap(snapshot.leap()))
    }
}

impl Feed for VmClockFeed {
    fn give(&mut self, clock: &Clock, sample: &FeedSample) -> Result<(), Failure> {
        let line = self.line(clock, sample);
        // Nothing of it is of another epoch than the page.
        let line = line.and_then(|line| match clock.check_machine() {
            Ok(()) => Ok(line),
            Err(error) => Err(Failure::unsynchronised(error.to_string())),
        });
        if !self.file.is_in_place() {
            self.file = open(&self.path)?;
        }
        match line {
            Ok(line) if self.file.give(&line) => Ok(()),
            Ok(_) => Err(Failure::from(format!("{}: a VMClock cannot hold this time", self.path.display()))),
            Err(failure) => {
                self.file.withhold();
                Err(failure)
            }
        }
    }

    /// In a file that was removed or cut off nothing can be withheld.
    fn withhold(&mut self) {
        if self.file.is_in_place() {
            self.file.withhold();
        }
    }
}

fn open(path: &Path) -> Result<VmClockFile, Failure> {
    VmClockFile::create(path).map_err(|error| Failure::from(error.to_string()))
}
