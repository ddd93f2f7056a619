//! The clock as a program has it.

use crate::machine::{Machine, SeenWords};
use crate::open;
use crate::stamp::NO_EPOCH;
use crate::{OpenError, Stamp};
use core::time::Duration;
use ffclock_counter::{CounterId, USABLE, read_ordered, read_unordered};
use ffclock_page::{Interval, Mark, PageError, ReadError, Reader, Snapshot, Verified, VotedTime};
use ffclock_sys::{SharedHistoryReader, SharedPageReader, VmClockError};
use ffclock_units::{Bound, Counter, MachineMark, Reading, Status};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

/// How often [`Clock::wait_until`] looks.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// The clock that a daemon publishes. It can be shared between threads; none ever waits for another, nor for the
/// daemon.
///
/// A restarted daemon continues in the same page. Only if the file was removed does the daemon create a new one, which
/// this clock does not see: its readings then become [`Status::Unsynchronised`] after a while, and
/// [`reopen`](Self::reopen) finds the new file.
#[derive(Debug)]
pub struct Clock {
    page: SharedPageReader,
    /// The lines of the past, where the daemon keeps any.
    history: Option<SharedHistoryReader>,
    path: PathBuf,
    /// The counter of the page when it was opened; readings are quick as long as it is the same.
    counter: CounterId,
    verified: Verified,
    /// The virtual machine, where it can be watched.
    machine: Option<Machine>,
}

/// The clock did not become good enough in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the clock did not come within the bound in time")]
pub struct WaitError {
    /// The last look at it.
    pub last: Result<Reading, ReadError>,
}

impl Clock {
    /// Opens the page named by `$FFCLOCK_PAGE`; else `/run/ffclock/page`; else `$XDG_RUNTIME_DIR/ffclock/page`.
    ///
    /// # Errors
    /// As [`open_at`](Self::open_at).
    pub fn open() -> Result<Self, OpenError> {
        Self::open_at(&open::default_page())
    }

    /// Opens the page at `path`. It may still be empty: [`wait_until`](Self::wait_until) waits for the first estimate.
    ///
    /// # Errors
    /// Where the file is missing, forbidden, of a wrong size, of another version, damaged or of an earlier boot, and
    /// where its counter is one of the kernel's that this program may not read.
    pub fn open_at(path: &Path) -> Result<Self, OpenError> {
        let page = open::open_page(path)?;
        let published = Reader::new(page.words()).mark().map(|mark| mark.counter_id);
        let counter = published.filter(|counter| USABLE.contains(counter)).unwrap_or(CounterId::CPU);
        open::check_counter(path, counter)?;
        let history = open::open_history(path);
        let machine = Machine::watch(&open::vm_clock(), Reader::new(page.words())).ok();
        Ok(Clock { page, history, path: path.to_owned(), counter, verified: Verified::none(), machine })
    }

    /// Watches the VMClock at `path` in place of the one that `$FFCLOCK_VMCLOCK` names, or else the kernel's device.
    ///
    /// # Errors
    /// There is none, or it may not be read.
    pub fn watching(self, path: &Path) -> Result<Self, VmClockError> {
        let machine = Some(Machine::watch(path, self.reader())?);
        Ok(Clock { machine, ..self })
    }

    /// Opens the page at the same path again. Without success the clock stays as it was.
    ///
    /// # Errors
    /// As [`open_at`](Self::open_at).
    pub fn reopen(&mut self) -> Result<(), OpenError> {
        *self = Self::open_at(&self.path)?;
        Ok(())
    }

    /// Where the page is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The present time with its bound and status, the counter being read after everything that the program did before.
    ///
    /// # Errors
    /// [`ReadError::NoEstimate`] or [`ReadError::Page`]; other errors where the page is about a counter that this
    /// machine has not, or that this program cannot read.
    #[inline(always)]
    pub fn now(&self) -> Result<Reading, ReadError> {
        // The kernel's counter has its own way: a call would make the registers of this one spill.
        let (mut taken, seen) = (None, self.seen());
        let read = || *taken.insert(read_ordered(CounterId::CPU));
        if self.counter == CounterId::CPU
            && let Some(reading) = self.reader().plain_reading(&self.verified, read)
            && self.is_undisrupted(seen)
        {
            return Ok(reading);
        }
        self.careful_now(taken)
    }

    /// The present time as [`now`](Self::now) gives it, but for the order: the CPU may read the counter some tens of ns
    /// before or after what stands around this call in the program. For logs and the like; not for what is measured in
    /// ns, nor between threads.
    ///
    /// # Errors
    /// As [`now`](Self::now).
    #[inline(always)]
    pub fn now_unordered(&self) -> Result<Reading, ReadError> {
        let (mut taken, seen) = (None, self.seen());
        let read = || *taken.insert(read_unordered(CounterId::CPU));
        if self.counter == CounterId::CPU
            && let Some(reading) = self.reader().plain_reading(&self.verified, read)
            && self.is_undisrupted(seen)
        {
            return Ok(reading);
        }
        self.careful_now(taken)
    }

    /// The time where something is to be considered: a new publication, the kernel's counter, a leap second, a dead
    /// daemon, a counter that the daemon has changed to. `taken` is the counter where it was read already.
    #[cold]
    #[inline(never)]
    fn careful_now(&self, taken: Option<Counter>) -> Result<Reading, ReadError> {
        let seen = self.look_at_machine()?;
        // A counter that was read before this look may be of an epoch before it.
        let taken = taken.filter(|_| self.machine.is_none());
        let counter = taken.map_or_else(|| open::read_counter(self.counter), Ok);
        // What is wrong with the page comes first, as for a counter that can be read.
        let at = counter.unwrap_or_default();
        let reading = match self.reader().verified_reading((at, self.counter), &self.verified) {
            Err(ReadError::OtherCounter(id)) => self.now_by(id),
            result => counter.and(result),
        };
        if self.is_undisrupted(seen) { reading } else { Err(ReadError::Disrupted) }
    }

    fn now_by(&self, id: CounterId) -> Result<Reading, ReadError> {
        self.reader().reading_at(open::read_counter(id)?, id)
    }

    /// What the virtual machine shows, as the page rests on it or on something later.
    fn look_at_machine(&self) -> Result<SeenWords, ReadError> {
        self.machine.as_ref().map_or_else(|| Ok(SeenWords::default()), |machine| machine.compare(self.reader()))
    }

    /// What was seen of the virtual machine before anything is read; nothing where none is watched.
    #[inline(always)]
    fn seen(&self) -> SeenWords {
        self.machine.as_ref().map_or_else(SeenWords::default, Machine::seen)
    }

    /// Whether, as far as can be seen, the counter readings since `seen` are of the epoch of the publications since.
    #[inline(always)]
    fn is_undisrupted(&self, seen: SeenWords) -> bool {
        self.machine.as_ref().is_none_or(|machine| machine.is_as_seen(seen))
    }

    /// Looks whether the virtual machine was restored, migrated or copied, and the daemon has not noticed it yet.
    ///
    /// # Errors
    /// [`ReadError::Disrupted`].
    pub fn check_machine(&self) -> Result<(), ReadError> {
        self.look_at_machine().map(drop)
    }

    /// Looks whether a [`snapshot`](Self::snapshot) that a program keeps is still of the counter's epoch. A program
    /// that converts readings of the counter by it asks this after it read the counter: a virtual machine may have been
    /// restored, and the daemon may have noticed, in between.
    ///
    /// # Errors
    /// [`ReadError::Disrupted`]; [`ReadError::NoEstimate`] and [`ReadError::OtherEpoch`] where the epoch of the
    /// snapshot has ended; [`ReadError::Page`].
    pub fn check_snapshot(&self, snapshot: &Snapshot) -> Result<(), ReadError> {
        // The machine first: a page that rests on another mark by now shows that its epoch has ended.
        self.check_machine()?;
        let present = self.snapshot()?;
        let is_withdrawn = |snapshot: &Snapshot| snapshot.published_status() == Status::Unsynchronised;
        match (present.epoch() == snapshot.epoch(), is_withdrawn(&present) && !is_withdrawn(snapshot)) {
            (false, _) => Err(ReadError::OtherEpoch),
            (true, true) => Err(ReadError::NoEstimate),
            (true, false) => Ok(()),
        }
    }

    /// Whether a disruption of the virtual machine is seen in every reading, and not only at the daemon's next look.
    pub fn watches_machine(&self) -> bool {
        self.machine.is_some() && self.reader().machine().is_some()
    }

    /// What the virtual machine shows of its past, as the publications rest on it; `None` where the daemon watches no
    /// VMClock.
    pub fn machine_mark(&self) -> Option<MachineMark> {
        self.reader().machine()
    }

    /// The present time as [`now`](Self::now) gives it, but for the bound: this one holds although a minority of the
    /// servers is false in whatever way, as many as [`Snapshot::vote`] says are tolerated.
    ///
    /// # Errors
    /// As [`now`](Self::now), and [`ReadError::OtherEpoch`] where the epoch ended during this call.
    pub fn now_strict(&self) -> Result<Reading, ReadError> {
        let snapshot = self.snapshot()?;
        let counter = open::read_counter(snapshot.counter_id())?;
        self.check_snapshot(&snapshot)?;
        snapshot.strict_reading_at(counter)
    }

    /// Reads the counter, after everything that the program did before, and notes its epoch; converts nothing.
    ///
    /// A stamp taken while the page was empty or damaged, or after a disruption of the virtual machine that the daemon
    /// has not noticed yet, is of no epoch, and refused later. One of a kernel's counter
    /// that could not be read is refused as well; [`now`](Self::now) says why.
    #[inline]
    pub fn stamp(&self) -> Stamp {
        match &self.machine {
            None => self.stamp_unless(|| false),
            Some(machine) => {
                let seen = machine.seen();
                self.stamp_unless(|| !machine.is_as_seen(seen))
            }
        }
    }

    #[inline(always)]
    fn stamp_unless(&self, is_disrupted: impl FnOnce() -> bool) -> Stamp {
        let counter = read_ordered(self.counter);
        match self.reader().mark() {
            Some(mark) if mark.counter_id == self.counter && !is_disrupted() => Stamp::from_parts(counter, mark.epoch),
            mark => self.careful_stamp(mark),
        }
    }

    #[cold]
    #[inline(never)]
    fn careful_stamp(&self, mark: Option<Mark>) -> Stamp {
        let mark = mark.filter(|mark| USABLE.contains(&mark.counter_id));
        let counter = read_ordered(mark.map_or(self.counter, |mark| mark.counter_id));
        let epoch = mark.filter(|_| self.check_machine().is_ok()).map_or(NO_EPOCH, |mark| mark.epoch);
        Stamp::from_parts(counter, epoch)
    }

    /// The time of a stamp, of up to a day ago: by the lines around it, which the daemon keeps, or by the newest line
    /// where it was taken since.
    ///
    /// # Errors
    /// [`ReadError::OtherEpoch`], [`ReadError::BeforeEpoch`], [`ReadError::NoEstimate`], [`ReadError::Page`].
    #[inline]
    pub fn at(&self, stamp: Stamp) -> Result<Reading, ReadError> {
        self.past_reader().reading_of(stamp.counter(), stamp.epoch())
    }

    /// The same on both scales, with both bounds and with the noise in its uncertainty.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub fn time_of(&self, stamp: Stamp) -> Result<VotedTime, ReadError> {
        self.past_reader().voted_time_of(stamp.counter(), stamp.epoch())
    }

    /// The time of a stamp as [`at`](Self::at) gives it, with the bound of [`now_strict`](Self::now_strict).
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub fn at_strict(&self, stamp: Stamp) -> Result<Reading, ReadError> {
        self.time_of(stamp).map(|VotedTime { reading, strict, .. }| Reading { bound: strict, ..reading })
    }

    /// From one stamp to another: by the difference clock, or by two conversions where these are better, as they are
    /// for intervals beyond the critical scale of some minutes ([`Snapshot::critical_scale`]).
    ///
    /// # Errors
    /// [`ReadError::OtherEpoch`], [`ReadError::BeforeEpoch`], [`ReadError::NoEstimate`], [`ReadError::Page`].
    #[inline]
    pub fn elapsed(&self, first: Stamp, second: Stamp) -> Result<Interval, ReadError> {
        if first.epoch() != second.epoch() {
            return Err(ReadError::OtherEpoch);
        }
        self.past_reader().elapsed_of([first.counter(), second.counter()], first.epoch())
    }

    /// Waits until the clock is not [`Status::Unsynchronised`] and its bound is at most `bound`; gives the reading that
    /// says so.
    ///
    /// # Errors
    /// [`WaitError`] with the last look at the clock, after `timeout`.
    pub fn wait_until(&self, bound: Bound, timeout: Duration) -> Result<Reading, WaitError> {
        let begin = Instant::now();
        loop {
            let last = self.now();
            if let Ok(reading) = last
                && reading.status != Status::Unsynchronised
                && reading.bound <= bound
            {
                return Ok(reading);
            }
            match timeout.checked_sub(begin.elapsed()) {
                Some(rest) if !rest.is_zero() => thread::sleep(rest.min(PAUSE)),
                _ => return Err(WaitError { last }),
            }
        }
    }

    /// The present status; [`Status::Unsynchronised`] also where there is no reading.
    pub fn status(&self) -> Status {
        self.now().map_or(Status::Unsynchronised, |reading| reading.status)
    }

    /// All that the page says at present. Before a later use of it, [`check_snapshot`](Self::check_snapshot).
    ///
    /// # Errors
    /// [`PageError::Empty`], [`PageError::Torn`], [`PageError::Corrupt`].
    pub fn snapshot(&self) -> Result<Snapshot, PageError> {
        self.reader().snapshot()
    }

    /// For what may lie in the past.
    #[inline]
    fn past_reader(&self) -> Reader<'_> {
        self.reader().with_history(self.history.as_ref().map(SharedHistoryReader::words))
    }

    #[inline]
    fn reader(&self) -> Reader<'_> {
        Reader::new(self.page.words())
    }
}
