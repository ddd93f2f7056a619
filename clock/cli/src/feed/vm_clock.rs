//! The page of a VMClock in a file, which guests of this host read: by a device of their hypervisor that shows them the
//! file, or mapped. It gives them the published line with its bound, by the counter that guest and host share.
//!
//! The disruption marker lives in the file. It becomes another one where the last line there does not hold any longer,
//! so that guests must forget what they measured: the counter of this host was disturbed, or `--counter-offset` is
//! another one. A restart of the daemon, which begins a new epoch of its page, leaves the line true and the marker as
//! it was. What happens to one guest alone, such as a snapshot of it, only its hypervisor can show.

use super::{Feed, FeedSample};
use crate::failure::Failure;
use ffclock::Clock;
use ffclock_sys::{VmClockFile, VmClockLeap, VmClockLine};
use ffclock_units::{Bound, CounterEpoch, CounterId, MachineMark, Span, Ticks};
use std::path::{Path, PathBuf};

/// Lines that agree to within more than this do not show that the counter went on undisturbed.
const AGREEMENT: Span = Span::from_millis(1);

/// Under which the last line was given: the page's epoch, and the mark of the machine that this host may be itself.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Under {
    epoch: CounterEpoch,
    machine: Option<MachineMark>,
}

/// The file.
pub(super) struct VmClockFeed {
    path: PathBuf,
    file: VmClockFile,
    offset: Ticks,
    /// `None` before the first line of this command.
    under: Option<Under>,
}

impl VmClockFeed {
    /// `offset` is the counter of the guests minus that of this host.
    pub(super) fn create(path: &Path, offset: Ticks) -> Result<Self, Failure> {
        Ok(VmClockFeed { path: path.to_owned(), file: open(path)?, offset, under: None })
    }

    fn line(&self, clock: &Clock, sample: &FeedSample) -> Result<(Under, VmClockLine), Failure> {
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
            marker: 0,
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
        let under = Under { epoch: snapshot.epoch(), machine: clock.machine_mark() };
        // Nothing of it is of another epoch than the page.
        clock.check_snapshot(&snapshot).map_err(|error| Failure::unsynchronised(error.to_string()))?;
        Ok((under, VmClockLine { marker: self.marker(under, &line), ..line.with_leap(snapshot.leap()) }))
    }

    /// The marker of this line: that of the file, as long as the line there holds.
    fn marker(&self, under: Under, line: &VmClockLine) -> u64 {
        let Some((marker, last)) = self.file.last() else { return 1 };
        let is_same_epoch = self.under == Some(under);
        let is_same_machine = self.under.map_or(under.machine.is_none(), |before| before.machine == under.machine);
        let holds = is_same_epoch || is_same_machine && last.is_some_and(|last| agree(&last, line));
        if holds { marker } else { marker.wrapping_add(1) }
    }
}

impl Feed for VmClockFeed {
    fn give(&mut self, clock: &Clock, sample: &FeedSample) -> Result<(), Failure> {
        let line = self.line(clock, sample);
        if !self.file.is_in_place() {
            self.file = open(&self.path)?;
        }
        match line {
            Ok((under, line)) if self.file.give(&line) => {
                self.under = Some(under);
                Ok(())
            }
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

/// Whether one line goes on as the other says, by the same counter, within both bounds.
fn agree(last: &VmClockLine, line: &VmClockLine) -> bool {
    let (time, bound) = last.at(line.counter);
    let most = bound.as_span() + line.bound.0.as_span();
    last.counter_id == line.counter_id && most <= AGREEMENT && (line.time - time).abs() <= most
}

fn open(path: &Path) -> Result<VmClockFile, Failure> {
    VmClockFile::create(path).map_err(|error| Failure::from(error.to_string()))
}
