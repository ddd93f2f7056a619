//! Each kind of reference: how it is opened, when it is read, and what is found.

use super::machine::Machine;
use super::{Finding, Note, Reference, Said};
use crate::config::{ReferenceConfig, ReferenceInput};
use crate::peer::Context;
use ffclock_phc::{PhcChange, PhcLine, PhcReading};
use ffclock_reference::{
    ForeignSample, HardwareTime, Judged, Pulse, PulseEvent, PulseTrain, SOCK_BYTES, ShmRefused, ShmWords, SockSample,
};
use ffclock_sys::{
    ClockSource, HardwareClock, PulseDevice, PulseSource, SharedTime, StampDiscarded, Stamper, private_datagram_socket,
};
use ffclock_units::{Bound, Leap, Moment, Mono, Period, Span, Stamp, StampLocation, Utc};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// A reference that is open, or none.
#[derive(Debug)]
pub(super) enum Input {
    Closed,
    Pulses { source: Box<dyn PulseSource>, train: PulseTrain },
    Clock { clock: Box<dyn ClockSource>, line: PhcLine },
    Shared { memory: SharedTime, last: Option<ForeignSample> },
    Socket { socket: SampleSocket, last: Option<Moment<Mono>> },
    Machine(Machine),
}

/// A pulse, or a sample in memory, is looked for this long after it should have come.
const AFTER_PULSE: Span = Span::from_millis(1);
/// What did not come is looked for again after this time.
const LOOK_AGAIN: Span = Span::from_millis(40);
/// The same where nothing has come for long.
const LOOK_SELDOM: Span = Span::from_millis(250);
/// A writer at work is done after this time.
pub(super) const TORN_AGAIN: Span = Span::from_millis(5);
/// Samples from a socket that follow each other more closely are a flood.
const FLOOD: Span = Span::from_millis(50);
/// The most datagrams taken at once.
const MOST_DATAGRAMS: usize = 64;
const SECOND: Span = Span::from_secs(1);

impl Input {
    /// Opens what is configured. The error is in words.
    pub(super) fn open(config: &ReferenceConfig, nominal: Period, stamper: &Stamper) -> Result<Self, String> {
        let text = |error: io::Error| error.to_string();
        match &config.input {
            ReferenceInput::Unset => Ok(Input::Closed),
            ReferenceInput::Pulses(path) => {
                let device = PulseDevice::open(path, config.edge.into()).map_err(text)?;
                Ok(Input::of_pulses(Box::new(device), nominal))
            }
            ReferenceInput::Clock(number) => {
                let (counter, period) = stamper.counter();
                let clock = HardwareClock::open(*number, counter, period).map_err(text)?;
                Ok(Input::of_clock(Box::new(clock), nominal))
            }
            ReferenceInput::Shared(unit) => {
                let memory = SharedTime::attach(*unit).map_err(|error| error.to_string())?;
                Ok(Input::Shared { memory, last: None })
            }
            ReferenceInput::Socket(path) => {
                Ok(Input::Socket { socket: SampleSocket::bind(path).map_err(text)?, last: None })
            }
            ReferenceInput::Machine(path) => {
                let (counter, _) = stamper.counter();
                Machine::open(path, counter).map(Input::Machine)
            }
        }
    }

    /// Pulses from a device or a test.
    pub(super) fn of_pulses(source: Box<dyn PulseSource>, nominal: Period) -> Self {
        Input::Pulses { source, train: PulseTrain::new(nominal) }
    }

    /// A hardware clock, or a test's.
    pub(super) fn of_clock(clock: Box<dyn ClockSource>, nominal: Period) -> Self {
        Input::Clock { clock, line: PhcLine::new(nominal) }
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Input::Socket { socket, .. } => Some(socket.socket.as_fd()),
            _ => None,
        }
    }

    /// Forgets what rests on earlier readings of the counter. A hardware clock and the page of the host are
    /// opened again: the counter may be another one.
    pub(super) fn forget(&mut self, nominal: Period) {
        match self {
            Input::Closed | Input::Socket { .. } | Input::Shared { .. } => {}
            Input::Pulses { train, .. } => *train = PulseTrain::new(nominal),
            Input::Clock { .. } | Input::Machine(_) => *self = Input::Closed,
        }
    }
}

impl Reference {
    /// Reads what is open.
    pub(super) fn read(&mut self, context: &mut Context) -> Vec<Finding> {
        self.counts.looks += 1;
        let found = match &self.input {
            Input::Closed => Ok(None),
            Input::Pulses { .. } => self.read_pulse(context),
            Input::Clock { .. } => self.read_clock(context.now),
            Input::Shared { .. } => self.read_shared(context),
            Input::Machine(_) => self.read_machine(context),
            Input::Socket { .. } => return self.read_socket(context),
        };
        match found {
            Ok(found) => found.into_iter().collect(),
            Err(error) => {
                self.close(error, context.now);
                Vec::new()
            }
        }
    }

    fn read_pulse(&mut self, context: &mut Context) -> io::Result<Option<Finding>> {
        let Input::Pulses { source, train } = &mut self.input else { return Ok(None) };
        let seen = source.latest()?;
        if seen.sequence == 0 {
            self.look_again(context.now);
            return Ok(None);
        }
        let stamp = match context.stamper.place(seen.shown) {
            Ok(stamp) => stamp,
            // The pulse of an earlier look, too.
            Err(discarded) => {
                self.look_again(context.now);
                self.refuse_stamp(discarded);
                return Ok(None);
            }
        };
        let judged = train.take(Pulse { sequence: seen.sequence, stamp });
        let Some(Judged { is_in_time, event }) = judged else {
            self.look_again(context.now);
            return Ok(None);
        };
        self.follow_phase(seen.shown, context.now);
        self.note_pulses(event);
        if !is_in_time {
            self.refuse("out-of-time");
            return Ok(None);
        }
        Ok(Some(Finding { stamp, said: Said::SecondBegan(Span::ZERO), claim: Bound::ZERO, leap: Leap::None }))
    }

    fn note_pulses(&mut self, event: Option<PulseEvent>) {
        let note = match event {
            None => return,
            Some(PulseEvent::Doubled) => Note::warning("there are more pulses than seconds", ""),
            Some(PulseEvent::Missed(_)) if self.poll > SECOND => return,
            Some(PulseEvent::Missed(count)) => Note::warning("pulses are missing", count),
            Some(PulseEvent::Slipped(by)) => {
                Note::warning("the pulses slipped", format!("by {:+.6} s", by.as_seconds()))
            }
            Some(PulseEvent::Restarted) => Note::warning("the device counts its pulses from the beginning again", ""),
        };
        self.notes.push(note);
    }

    /// The next look is when the next sample has come, given what the system clock showed at this one.
    fn follow_phase(&mut self, shown: Moment<Utc>, now: Moment<Mono>) {
        let age = (ffclock_sys::system_utc_now() - shown).max(Span::ZERO);
        let wait = (self.poll.max(SECOND) - age + AFTER_PULSE).max(LOOK_AGAIN);
        self.next = now + wait;
    }

    pub(super) fn look_again(&mut self, now: Moment<Mono>) {
        let is_late = now - self.alive > self.poll + SECOND + SECOND;
        self.next = now + if is_late { LOOK_SELDOM } else { LOOK_AGAIN };
    }

    fn refuse_stamp(&mut self, discarded: StampDiscarded) {
        self.refuse(match discarded {
            StampDiscarded::ClockStepped => "clock-stepped",
            StampDiscarded::AfterReading => "in-the-future",
            _ => "too-old",
        });
    }

    fn read_clock(&mut self, now: Moment<Mono>) -> io::Result<Option<Finding>> {
        self.next = now + self.poll;
        let Input::Clock { clock, line } = &mut self.input else { return Ok(None) };
        let readings = clock.read()?;
        let changes: Vec<PhcChange> = readings.iter().filter_map(|reading| line.add(reading)).collect();
        let is_stepped = changes.iter().any(|change| matches!(change, PhcChange::Stepped(_)));
        for change in changes {
            self.note_change(change);
        }
        if is_stepped {
            // Of this series some readings may be from before; and none forms a pair with one from before.
            self.pair_anew();
            self.refuse("clock-stepped");
            return Ok(None);
        }
        let Some(narrowest) = readings.iter().min_by_key(|reading| reading.width) else {
            self.refuse("clock-stepped");
            return Ok(None);
        };
        let PhcReading { counter, width, shown } = *narrowest;
        let Some(time) = HardwareTime(shown).tai(self.config.scale.into(), &self.leaps) else {
            self.refuse("not-on-time");
            return Ok(None);
        };
        let stamp = Stamp { counter, width, location: StampLocation::Hardware };
        Ok(Some(Finding { stamp, said: Said::Time(time), claim: Bound::ZERO, leap: Leap::None }))
    }

    fn note_change(&mut self, change: PhcChange) {
        let (weight, kind, detail) = match change {
            PhcChange::Stepped(by) => (
                crate::journal::Weight::Warning,
                "the hardware clock was stepped by another program",
                format!("by {:+.3e} s", by.as_seconds()),
            ),
            // The program that keeps it on time does so.
            PhcChange::Steered(by) => (
                crate::journal::Weight::Detail,
                "the hardware clock was steered by another program",
                format!("by {:+.1} ppb", by.as_ppb()),
            ),
        };
        self.notes.push(Note::new(weight, kind, detail));
    }

    fn read_shared(&mut self, context: &mut Context) -> io::Result<Option<Finding>> {
        let Input::Shared { memory, last } = &mut self.input else { return Ok(None) };
        let (first, second) = (ShmWords(memory.copy()), ShmWords(memory.copy()));
        let sample = match first.sample(&second) {
            Ok(sample) if *last != Some(sample) => sample,
            Ok(_) | Err(ShmRefused::NotValid) => {
                if !memory.is_current() {
                    return Err(io::Error::other("the segment was removed"));
                }
                context.stamper.look();
                self.look_again(context.now);
                return Ok(None);
            }
            Err(refused) => {
                self.look_again(context.now);
                if refused == ShmRefused::Torn {
                    self.next = context.now + TORN_AGAIN;
                }
                self.refuse(refused.name());
                return Ok(None);
            }
        };
        *last = Some(sample);
        self.follow_phase(sample.received, context.now);
        Ok(self.place(&sample, context))
    }

    /// Where a sample of another program is on the counter.
    fn place(&mut self, sample: &ForeignSample, context: &mut Context) -> Option<Finding> {
        match context.stamper.place(sample.received) {
            Ok(stamp) => {
                let time = self.leaps.tai_from_utc(sample.time);
                Some(Finding { stamp, said: Said::Time(time), claim: Bound::ZERO, leap: sample.leap })
            }
            Err(discarded) => {
                self.refuse_stamp(discarded);
                None
            }
        }
    }

    fn read_socket(&mut self, context: &mut Context) -> Vec<Finding> {
        let mut findings = Vec::new();
        for _ in 0..MOST_DATAGRAMS {
            let Input::Socket { socket, .. } = &mut self.input else { break };
            match socket.receive() {
                Ok(Some(datagram)) => findings.extend(self.take_datagram(&datagram, context)),
                Ok(None) => break,
                Err(error) => {
                    self.close(error, context.now);
                    return findings;
                }
            }
        }
        // Between samples a mark is made now and then, so that a sample has one before it; and the file is looked at.
        if context.now >= self.next {
            context.stamper.look();
            self.next = context.now + self.poll;
            if matches!(&self.input, Input::Socket { socket, .. } if !socket.is_in_place()) {
                self.close("the socket's file was removed", context.now);
            }
        }
        findings
    }

    fn take_datagram(&mut self, datagram: &[u8], context: &mut Context) -> Option<Finding> {
        let read = match SockSample::parse(datagram) {
            Ok(read) => read,
            Err(refused) => {
                self.refuse(refused.name());
                return None;
            }
        };
        let Input::Socket { last, .. } = &mut self.input else { return None };
        if last.is_some_and(|last| context.now - last < FLOOD) {
            self.notes.push(Note::warning("samples come in a flood: the rest is refused", ""));
            self.refuse("flood");
            return None;
        }
        *last = Some(context.now);
        let finding = self.place(&read.sample, context)?;
        if !read.is_pulse {
            return Some(finding);
        }
        let since = read.sample.time.since_origin();
        let ago = Span::from_units(since.units().rem_euclid(SECOND.units()));
        Some(Finding { said: Said::SecondBegan(ago), ..finding })
    }
}

/// The socket that samples come in by. Only root and the own user may write to it; its file is removed with it.
#[derive(Debug)]
pub(super) struct SampleSocket {
    socket: UnixDatagram,
    path: PathBuf,
}

impl SampleSocket {
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        match std::fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path)?,
            Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "what is there is not a socket")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let made = SampleSocket { socket: private_datagram_socket(path)?, path: path.to_owned() };
        made.socket.set_nonblocking(true)?;
        Ok(made)
    }

    fn is_in_place(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok_and(|found| found.file_type().is_socket())
    }

    /// A datagram, cut off one octet after the length of a sample, so that its length shows.
    fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut buffer = [0; SOCK_BYTES + 1];
        match self.socket.recv(&mut buffer) {
            Ok(length) => Ok(Some(buffer.get(..length).unwrap_or_default().to_vec())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for SampleSocket {
    fn drop(&mut self) {
        // It may have been removed already.
        let _ = std::fs::remove_file(&self.path);
    }
}
