//! A stream of requests to one server. Every counter stamps each packet.

use crate::beside::BracketedReading;
use crate::followed::{Followed, Unfollowed};
use crate::ways::CounterWay;
use ffclock_counter::CounterId;
use ffclock_sys::{
    DriverStamps, Interest, SocketEvent, StampMode, StampedSocket, Stamper, mono_now, poll, random_nonce,
};
use ffclock_units::{Direction, Moment, Mono, Period, Span, Stamp, Ticks};
use ffclock_wire::{NtpTimestamp, Packet, Version};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use thiserror::Error;

/// A reply that takes longer is lost.
const PATIENCE: Span = Span::from_millis(200);
/// A reply with its IPv4 and UDP headers.
const IP_BYTES: usize = 76;
/// A reading of the base right where the packet passes.
const PASSAGE_WIDTH: Ticks = Ticks::from_raw(64);

/// Why an exchange failed for good.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// A counter can no longer be followed.
    #[error(transparent)]
    Unfollowed(#[from] Unfollowed),
    /// The socket or the clock failed.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// One exchange, as every counter saw it.
#[derive(Clone, Debug)]
pub struct Exchanged {
    /// What the server said.
    pub reply: Packet,
    /// By the base, in user space.
    pub user: [Stamp; 2],
    /// By the base, in the kernel; `None` where it gave none.
    pub socket: Option<[Stamp; 2]>,
    /// By the base itself at the driver, from each of the further sources, where it found both packets.
    pub driver: Vec<Option<[Stamp; 2]>>,
    /// What each counter showed right before the request was handed over and right after the reply was taken over.
    pub shown: [Vec<u64>; 2],
    /// Each counter beside the base, before and after everything.
    pub around: [Vec<BracketedReading>; 2],
}

/// Where stamps come from that the raw counter takes at the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverSource {
    /// The kernel's tracepoints with the trace clock x86-tsc.
    Trace,
    /// The module ffcounter.
    Module,
}

/// The stream of requests.
pub struct RequestStream {
    socket: StampedSocket,
    stamper: Stamper,
    drivers: Vec<(DriverSource, DriverStamps)>,
    missing: Vec<String>,
    followed: Followed,
    turn: usize,
}

impl RequestStream {
    /// A socket to the server at `address`, and every source of stamps that this host has. `period` is that of the
    /// base.
    ///
    /// # Errors
    /// The socket cannot be made. A source of stamps that is not there is no error: [`RequestStream::missing`].
    pub fn connect(address: SocketAddr, period: Period, ways: Vec<CounterWay>) -> io::Result<Self> {
        let socket = StampedSocket::connect(address, StampMode::Kernel)?;
        let stamper = Stamper::new(CounterId::CPU, period);
        let followed = Followed::new(ways);
        let mut packets =
            RequestStream { socket, stamper, drivers: Vec::new(), missing: Vec::new(), followed, turn: 0 };
        let hertz = period.as_hertz();
        packets.add_driver(DriverSource::Trace, DriverStamps::trace(CounterId::CPU, hertz));
        packets.add_driver(DriverSource::Module, DriverStamps::module(CounterId::CPU, &[address.port()], hertz));
        Ok(packets)
    }

    fn add_driver(&mut self, source: DriverSource, opened: io::Result<DriverStamps>) {
        match opened {
            Ok(stamps) => self.drivers.push((source, stamps)),
            Err(error) => self.missing.push(format!("{source:?} stamps: {error}").to_lowercase()),
        }
    }

    /// The sources of stamps at the driver that this host has.
    pub fn driver_sources(&self) -> Vec<DriverSource> {
        self.drivers.iter().map(|(source, _)| *source).collect()
    }

    /// Why the others are not there.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// The counters.
    pub fn ways(&self) -> &[CounterWay] {
        self.followed.ways()
    }

    /// One request and its reply; `None` when none came in time, or the server does not listen yet.
    ///
    /// # Errors
    /// [`ExchangeError`].
    pub fn exchange(&mut self) -> Result<Option<Exchanged>, ExchangeError> {
        self.turn += 1;
        let nonce = NtpTimestamp::from_raw(random_nonce()?);
        let before = self.beside_base()?;
        let shown_before = self.shown()?;
        let sent = match self.socket.send(&Packet::request(Version::V4, nonce).encode(), &mut self.stamper) {
            Ok(sent) => sent,
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let Some(heard) = self.listen(nonce, mono_now() + PATIENCE)? else { return Ok(None) };
        let after = self.beside_base()?;
        let socket = heard.sent.zip(heard.kernel).map(|(sent, received)| [sent, received]);
        Ok(Some(Exchanged {
            reply: heard.reply,
            user: [sent.user, heard.user],
            socket,
            driver: self.refined(socket),
            shown: [shown_before, heard.shown],
            around: [before, after],
        }))
    }

    fn listen(&mut self, nonce: NtpTimestamp, deadline: Moment<Mono>) -> Result<Option<Heard>, ExchangeError> {
        let mut buffer = [0; 256];
        let mut sent = None;
        while mono_now() < deadline {
            poll(&mut [Interest::readable(self.socket.as_fd())], Some(deadline))?;
            while let Some(event) = self.socket.next_event(&mut buffer, &mut self.stamper)? {
                match event {
                    SocketEvent::Transmitted(stamp) => sent = stamp.stamp.ok(),
                    SocketEvent::Unreachable(_) => return Ok(None),
                    SocketEvent::Received(received) => {
                        let shown = self.shown()?;
                        let reply =
                            Packet::decode(&buffer[..received.length]).ok().filter(|reply| reply.origin == nonce);
                        let Some(reply) = reply else { continue };
                        return Ok(Some(Heard {
                            reply,
                            user: received.user,
                            kernel: received.kernel.ok(),
                            sent,
                            shown,
                        }));
                    }
                }
            }
        }
        Ok(None)
    }

    /// The passages of both packets, found with the help of the stamps of the socket.
    fn refined(&mut self, socket: Option<[Stamp; 2]>) -> Vec<Option<[Stamp; 2]>> {
        let of = |(_, driver): &mut (DriverSource, DriverStamps)| {
            let [sent, received] = socket?;
            let found = [
                (sent, driver.refine(Direction::Outgoing, sent, None)?),
                (received, driver.refine(Direction::Incoming, received, Some(IP_BYTES))?),
            ];
            Some(found.map(|(stamp, counter)| Stamp { counter, width: PASSAGE_WIDTH, ..stamp }))
        };
        self.drivers.iter_mut().map(of).collect()
    }

    /// Every counter beside the base now.
    ///
    /// # Errors
    /// One of them can no longer be followed.
    pub fn beside_base(&mut self) -> Result<Vec<BracketedReading>, ExchangeError> {
        Ok(self.followed.points()?)
    }

    /// Every counter once; another one is the first each time, so that none is always nearest to the packet.
    fn shown(&mut self) -> Result<Vec<u64>, ExchangeError> {
        let count = self.ways().len();
        let mut shown = vec![0; count];
        for number in 0..count {
            let place = (number + self.turn) % count;
            shown[place] = self.followed.read(place)?;
        }
        Ok(shown)
    }
}

/// A reply, and the stamps of both packets.
struct Heard {
    reply: Packet,
    user: Stamp,
    kernel: Option<Stamp>,
    sent: Option<Stamp>,
    shown: Vec<u64>,
}
