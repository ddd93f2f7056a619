//! One look: the page and the kernel's clocks at the same reading of the counter.

use crate::base::{RawLine, RawPair};
use crate::law::Look;
use crate::leap::{Calendar, LeapMode};
use crate::options::SteerConfig;
use core::fmt;
use ffclock::{Clock, ReadError, Snapshot};
use ffclock_counter::{CounterId, HostClock, read_narrowest, read_suspended, try_read};
use ffclock_sys::{Pair, PairReader, SystemPairs};
use ffclock_units::{CounterEpoch, MachineMark, Span, Status};
use std::path::PathBuf;

/// Why there is nothing to steer by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The page cannot be opened.
    NoPage(String),
    /// The page is not synchronised, was not renewed in time, or has no time.
    Unsynchronised(Status),
    /// The page cannot be read, or not with this host's counter.
    Unreadable(ReadError),
    /// The rate of the kernel's clock is not known yet: two looks show it.
    NoRate,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lost::NoPage(why) => f.write_str(why),
            Lost::Unsynchronised(status) => write!(f, "the page is {}", status.name()),
            Lost::Unreadable(why) => write!(f, "the page cannot be used: {why}"),
            Lost::NoRate => f.write_str("the rate of the kernel's clock is being measured"),
        }
    }
}

impl From<ReadError> for Lost {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NoEstimate => Lost::Unsynchronised(Status::Unsynchronised),
            error => Lost::Unreadable(error),
        }
    }
}

/// What took the machine out of time, so that its clock may show any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// The machine was suspended.
    Slept,
    /// The virtual machine was restored, migrated or copied, as its VMClock shows.
    Restored,
}

impl fmt::Display for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Interruption::Slept => "suspended",
            Interruption::Restored => "restored, migrated or copied",
        })
    }
}

/// What a look showed.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// For the law.
    pub look: Result<(Look, Calendar), Lost>,
    /// What happened to the machine since the look before.
    pub interruption: Option<Interruption>,
}

/// The eyes: the page, the kernel's clocks, and what is remembered of them.
pub struct Eyes {
    page: PathBuf,
    poll: Span,
    leap: LeapMode,
    clock: Option<Clock>,
    pairs: Option<(CounterId, SystemPairs)>,
    raw: RawLine,
    /// What `CLOCK_BOOTTIME` is ahead of `CLOCK_MONOTONIC`: at least, and at most.
    slept: Option<(Span, Span)>,
    /// The epoch of the last page that was read.
    epoch: Option<CounterEpoch>,
    /// The epoch in which the machine slept or was restored: its page is older than that, whatever it says of itself.
    ended: Option<CounterEpoch>,
    /// The last mark of the virtual machine that a page showed.
    machine: Option<MachineMark>,
}

/// Brackets tried for one reading of the raw clock.
const TRIES: usize = 5;
/// The clocks that show and that do not show a suspend are apart by this, and it was one.
const SLEEP: Span = Span::from_millis(50);

impl Eyes {
    /// Nothing was looked at yet.
    pub fn new(config: &SteerConfig) -> Self {
        Eyes {
            page: config.page.as_path().to_owned(),
            poll: config.poll,
            leap: config.leap,
            clock: None,
            pairs: None,
            raw: RawLine::default(),
            slept: None,
            epoch: None,
            ended: None,
            machine: None,
        }
    }

    /// Looks.
    pub fn look(&mut self) -> Sighting {
        let mut interruption = self.has_slept().then_some(Interruption::Slept);
        let before = self.epoch;
        if interruption.is_some() {
            self.ended = before;
        }
        let mut look = self.see();
        if self.is_of_another_machine(&look) {
            // A page with the new mark ends the epoch before it; one that still has the old mark ends with its own.
            let ended = if look == Err(Lost::Unreadable(ReadError::Disrupted)) { self.epoch } else { before };
            if self.ended.is_none() || self.ended != ended {
                interruption.get_or_insert(Interruption::Restored);
                self.ended = ended;
            }
            // The counter and the raw clock need not go on together, nor at the rates that they had.
            self.raw = RawLine::default();
            look = Err(Lost::Unsynchronised(Status::Unsynchronised));
        }
        // A daemon that found its file gone has made another, which a page that stands still does not show.
        if let (Err(Lost::Unsynchronised(Status::Unsynchronised) | Lost::Unreadable(_)), Some(clock)) =
            (&look, &mut self.clock)
            && clock.reopen().is_err()
        {
            self.clock = None;
        }
        Sighting { look, interruption }
    }

    /// Whether the virtual machine, or the page, shows another mark than the pages so far.
    fn is_of_another_machine(&mut self, look: &Result<(Look, Calendar), Lost>) -> bool {
        let shown = self.clock.as_ref().and_then(Clock::machine_mark);
        let is_other = shown.is_some_and(|now| self.machine.is_some_and(|then| !then.holds_at(now)));
        self.machine = shown.or(self.machine);
        is_other || matches!(look, Err(Lost::Unreadable(ReadError::Disrupted)))
    }

    fn has_slept(&mut self) -> bool {
        let Some((least, most)) = read_suspended() else { return false };
        self.slept.replace((least, most)).is_some_and(|(_, before)| least - before > SLEEP)
    }

    fn see(&mut self) -> Result<(Look, Calendar), Lost> {
        let clock = match self.clock.take() {
            Some(clock) => clock,
            None => Clock::open_at(&self.page).map_err(|error| Lost::NoPage(error.to_string()))?,
        };
        let clock = self.clock.insert(clock);
        let snapshot = clock.snapshot().map_err(ReadError::from)?;
        self.epoch = Some(snapshot.epoch());
        if self.ended == self.epoch {
            return Err(Lost::Unsynchronised(Status::Unsynchronised));
        }
        let counter = snapshot.counter_id();
        if try_read(counter).is_err() {
            return Err(Lost::Unreadable(ReadError::OtherCounter(counter)));
        }
        if self.pairs.as_ref().is_none_or(|(of, _)| *of != counter) {
            self.pairs = Some((counter, SystemPairs::new(counter)));
        }
        let Some((_, pairs)) = &mut self.pairs else { return Err(Lost::NoRate) };
        let pair = pairs.read_pair();
        let raw = read_narrowest(counter, TRIES, || HostClock::MonotonicRaw.read());
        // All was read before this: a disruption of the machine up to here shows.
        clock.check_snapshot(&snapshot)?;
        if let Some(shown) = raw.value {
            self.raw.take(RawPair { counter, at: raw.middle(), width: raw.width(), raw: shown.since_origin() });
        }
        self.compare(&snapshot, &pair)
    }

    fn compare(&self, snapshot: &Snapshot, pair: &Pair) -> Result<(Look, Calendar), Lost> {
        let status = snapshot.status_at(pair.counter);
        if status < Status::Holdover {
            return Err(Lost::Unsynchronised(status));
        }
        let period = snapshot.estimate().ok_or(Lost::Unsynchronised(Status::Unsynchronised))?.period;
        let time = snapshot.time_at(pair.counter)?;
        // The errors must hold until the next look.
        let later = snapshot.reading_at(pair.counter + period.ticks_in(self.poll))?;
        let calendar = Calendar::at((time.reading.time, time.tai), snapshot.leap(), self.leap);
        let look = Look {
            offset: calendar.target - pair.system,
            half_width: (period * pair.width).halved(),
            base: self.raw.base_rate(period).ok_or(Lost::NoRate)?,
            status,
            bound: later.bound,
            uncertainty: later.uncertainty,
        };
        Ok((look, calendar))
    }
}
