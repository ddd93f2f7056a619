//! One run: packets out at an even rate, their replies in, and every stamp that the host gives noted.
//!
//! Two threads: this one sends, receives and stamps in user space, and nothing else, so that its stamps are those of a
//! program that has only its packets in mind; the other one empties the tap and the kernel's tracing, and compares the
//! clocks.

use crate::agreement::Methods;
use crate::collect::{Collector, Label};
use crate::error::ProbeError;
use crate::ffi;
use crate::outcome::{PacketCounts, ProbeOutcome};
use crate::passages::{PacketPassages, Placement};
use crate::payload::{Direction, LONGEST, TestPacketId};
use crate::plan::ProbePlan;
use crate::site::Site;
use core::ops::ControlFlow;
use core::time::Duration;
use ffclock_counter::{read_bracketed, read_ordered};
use ffclock_sys::{
    Received, SendId, SocketEvent, StampMode, StampedSocket, Stamper, Transmitted, device_index, mono_now,
};
use ffclock_units::{Moment, Mono, Span, Ticks};
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;

/// A reply that has not come by then is lost.
const PATIENCE: Span = Span::from_secs(1);
/// Packets that may be waiting for the kernel's stamp.
const MOST_IN_FLIGHT: usize = 4096;
/// The interval between two calls of `watch`.
const REPORT_EVERY: Span = Span::from_millis(100);

/// Sends and receives. `watch` gets the number of packets sent, ten times a second, and breaks to end the run early.
///
/// # Errors
/// [`ProbeError`]; what the host merely does not offer is no error but named in the outcome.
pub fn run(plan: &ProbePlan, watch: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<ProbeOutcome, ProbeError> {
    let mut unavailable = Vec::new();
    let mut talk = Talk::open(plan)?;
    if talk.socket.mode() == StampMode::User {
        unavailable.push("socket stamps: the kernel refuses SO_TIMESTAMPING".to_owned());
    }
    let collector = Collector::start(plan, &talk.label()?, &mut unavailable)?;
    let begin = mono_now();
    let ended = talk.hold(watch).and_then(|()| talk.burst());
    // The tap hands a block over only when it is full or some milliseconds old.
    std::thread::sleep(Duration::from_millis(40));
    let collected = collector.finish()?;
    let sends = ended?;
    let mut outcome = ProbeOutcome {
        passages: talk.passages,
        counts: talk.counts,
        unavailable,
        length_s: (mono_now() - begin).as_seconds(),
        sends,
        methods: Methods::default(),
    };
    outcome.take_in(&collected, talk.run);
    outcome.compare(&collected, plan);
    if outcome.counts.received == 0 {
        let foreign = outcome.counts.foreign;
        let reason = match talk.reason {
            none if none.is_empty() && foreign > 0 => format!(" ({foreign} packets came that are no replies to them)"),
            known => known,
        };
        return Err(ProbeError::NoAnswer { sent: outcome.counts.sent, to: plan.to, reason });
    }
    Ok(outcome)
}

/// Whether a later packet may be taken: buffers empty, and a device or a route that went may come back.
fn is_passing(error: &io::Error) -> bool {
    let gone = [libc::ENOBUFS, libc::ENETUNREACH, libc::ENETDOWN, libc::EHOSTUNREACH, libc::ENODEV];
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error().is_some_and(|code| gone.contains(&code))
}

/// The socket that talks, and the one that hears the copies of what goes to a group. The answers to that come from the
/// server's own address, so that the first one is not connected to the group.
fn sockets(plan: &ProbePlan) -> io::Result<(StampedSocket, Option<StampedSocket>)> {
    if !plan.to.ip().is_multicast() {
        return Ok((StampedSocket::connect(plan.to, StampMode::Kernel)?, None));
    }
    let device = device_index(&plan.device).ok_or(io::ErrorKind::NotFound)?;
    let copies = StampedSocket::in_group(plan.to, device, StampMode::Kernel)?;
    let any = (Ipv4Addr::UNSPECIFIED, 0).into();
    Ok((StampedSocket::bind(any, StampMode::Kernel)?, Some(copies)))
}

/// The conversation with the echo server.
struct Talk<'a> {
    plan: &'a ProbePlan,
    run: u64,
    socket: StampedSocket,
    /// Hears what is sent to the group, if that is where requests go.
    copies: Option<StampedSocket>,
    stamper: Stamper,
    passages: PacketPassages,
    counts: PacketCounts,
    in_flight: VecDeque<(SendId, u64)>,
    latest: Option<u64>,
    reason: String,
}

impl<'a> Talk<'a> {
    fn open(plan: &'a ProbePlan) -> Result<Self, ProbeError> {
        let failed = |error| ProbeError::Socket { what: format!("cannot talk to {}", plan.to), error };
        let (socket, copies) = sockets(plan).map_err(failed)?;
        let run = ffclock_sys::random_nonce().map_err(failed)?;
        Ok(Talk {
            plan,
            run,
            socket,
            copies,
            stamper: Stamper::new(plan.counter, plan.period),
            passages: PacketPassages::new(read_ordered(plan.counter)),
            counts: PacketCounts::default(),
            in_flight: VecDeque::new(),
            latest: None,
            reason: String::new(),
        })
    }

    /// What identifies this conversation to the kernel.
    fn label(&self) -> Result<Label, ProbeError> {
        let failed = |error| ProbeError::Socket { what: "cannot find out the port".to_owned(), error };
        Ok(Label {
            run: self.run,
            own_port: self.socket.local_address().map_err(failed)?.port(),
            thread: ffclock_sys::thread_in_events(),
        })
    }

    fn hold(&mut self, watch: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<(), ProbeError> {
        let begin = mono_now();
        let mut next_report = begin;
        for sequence in 0..self.plan.packets {
            self.receive_until(begin + Span::from_seconds(sequence as f64 / self.plan.rate))?;
            self.send(sequence)?;
            if mono_now() >= next_report {
                next_report = next_report + REPORT_EVERY;
                if watch(self.counts.sent).is_break() {
                    break;
                }
            }
        }
        let end = mono_now() + PATIENCE;
        while self.counts.received < self.counts.sent && mono_now() < end {
            self.receive_until(mono_now() + Span::from_millis(10))?;
        }
        Ok(())
    }

    /// Sends without a pause and asks for no reply, by a socket that takes no stamps.
    fn burst(&self) -> Result<Vec<Ticks>, ProbeError> {
        if self.plan.burst == 0 {
            return Ok(Vec::new());
        }
        let failed = |error| ProbeError::Socket { what: format!("cannot send to {}", self.plan.to), error };
        let any = if self.plan.to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).and_then(|socket| socket.connect(self.plan.to).map(|()| socket));
        let socket = socket.map_err(failed)?;
        let (mut buffer, mut sends) = ([0; LONGEST], Vec::new());
        for number in 0..self.plan.burst {
            let bytes = TestPacketId::write_unanswered(self.run, u64::MAX - number, &mut buffer, self.plan.lengths);
            let sent = read_bracketed(self.plan.counter, || socket.send(bytes));
            // What the queue does not take costs something else.
            if sent.value.is_ok() {
                sends.push(sent.width());
            }
        }
        Ok(sends)
    }

    fn send(&mut self, sequence: u64) -> Result<(), ProbeError> {
        let mut buffer = [0; LONGEST];
        let identity = TestPacketId { run: self.run, sequence, direction: Direction::Outgoing };
        let bytes = identity.write(self.plan.lengths, &mut buffer);
        self.counts.sent += 1;
        let sent = match self.copies {
            Some(_) => self.socket.send_to(bytes, self.plan.to, &mut self.stamper),
            None => self.socket.send(bytes, &mut self.stamper),
        };
        match sent {
            Ok(sent) => {
                self.passages.send(sent.user.counter);
                if self.in_flight.len() == MOST_IN_FLIGHT {
                    self.in_flight.pop_front();
                }
                self.in_flight.push_back((sent.id, sequence));
                Ok(())
            }
            Err(error) if is_passing(&error) => {
                self.passages.send(read_ordered(self.plan.counter));
                self.counts.refused += 1;
                self.reason = format!(" ({error})");
                Ok(())
            }
            Err(error) => Err(ProbeError::Socket { what: format!("cannot send to {}", self.plan.to), error }),
        }
    }

    /// Receives packets until `deadline`.
    fn receive_until(&mut self, deadline: Moment<Mono>) -> Result<(), ProbeError> {
        loop {
            self.drain()?;
            let rest = deadline - mono_now();
            if rest <= Span::ZERO {
                return Ok(());
            }
            ffi::wait_readable(self.socket.as_fd(), rest)
                .map_err(|error| ProbeError::Socket { what: "cannot wait for packets".to_owned(), error })?;
        }
    }

    fn drain(&mut self) -> Result<(), ProbeError> {
        self.drain_copies()?;
        let mut buffer = [0; LONGEST + 1];
        loop {
            let event = self.socket.next_event(&mut buffer, &mut self.stamper);
            match event.map_err(|error| ProbeError::Socket { what: "cannot receive".to_owned(), error })? {
                None => return Ok(()),
                Some(SocketEvent::Transmitted(sent)) => self.take_sent(&sent),
                Some(SocketEvent::Received(received)) => {
                    self.take_reply(&received, buffer.get(..received.length).unwrap_or(&[]));
                }
                Some(SocketEvent::Unreachable(error)) => {
                    self.counts.unreachable += 1;
                    self.reason = format!(" ({})", error.kind);
                }
            }
        }
    }

    /// Notes when the copies of our requests were received.
    fn drain_copies(&mut self) -> Result<(), ProbeError> {
        let Some(copies) = &mut self.copies else { return Ok(()) };
        let failed = |error| ProbeError::Socket { what: "cannot receive copies".to_owned(), error };
        let mut buffer = [0; LONGEST + 1];
        while let Some(event) = copies.next_event(&mut buffer, &mut self.stamper).map_err(failed)? {
            let SocketEvent::Received(received) = event else { continue };
            let identity = TestPacketId::read(buffer.get(..received.length).unwrap_or(&[]));
            let ours = |identity: &TestPacketId| identity.run == self.run && identity.direction == Direction::Outgoing;
            let Some(identity) = identity.filter(ours) else { continue };
            match received.kernel {
                Ok(stamp) => drop(self.passages.note(identity.sequence, Site::LoopOut, stamp.counter)),
                Err(_) => self.counts.socket_stamps_discarded += 1,
            }
        }
        Ok(())
    }

    fn take_sent(&mut self, sent: &Transmitted) {
        let Some(place) = self.in_flight.iter().position(|(id, _)| *id == sent.id) else { return };
        let Some((_, sequence)) = self.in_flight.remove(place) else { return };
        match sent.stamp {
            Ok(stamp) => drop(self.passages.note(sequence, Site::SocketOut, stamp.counter)),
            Err(_) => self.counts.socket_stamps_discarded += 1,
        }
    }

    fn take_reply(&mut self, received: &Received, bytes: &[u8]) {
        let ours = |identity: &TestPacketId| identity.run == self.run && identity.direction == Direction::Incoming;
        let Some(identity) = TestPacketId::read(bytes).filter(ours) else {
            self.counts.foreign += 1;
            return;
        };
        let sequence = identity.sequence;
        match self.passages.note(sequence, Site::UserReceive, received.user.counter) {
            Placement::First => self.counts.received += 1,
            Placement::Again => {
                self.counts.duplicated += 1;
                return;
            }
            Placement::Nowhere => {
                self.counts.foreign += 1;
                return;
            }
        }
        self.counts.reordered += u64::from(self.latest > Some(sequence));
        self.latest = self.latest.max(Some(sequence));
        match received.kernel {
            Ok(stamp) => drop(self.passages.note(sequence, Site::SocketIn, stamp.counter)),
            Err(_) => self.counts.socket_stamps_discarded += 1,
        }
    }
}
