//! The packets: a server of our own on loopback, and requests that every counter stamps.

use crate::failure::Failure;
use crate::lab::truth::Truth;
use crate::lab::worker::{Network, Rights, Task, Worker};
use ffclock_counter::CounterKind;
use ffclock_counters::beside::BracketedReading;
use ffclock_counters::followed::{Followed, Unfollowed};
use ffclock_counters::ways::Way;
use ffclock_sys::{
    DriverStamps, Interest, Mapper, Side, SocketEvent, StampMode, StampedSocket, mono_now, poll, random_nonce,
};
use ffclock_units::{Moment, Mono, Period, Span, Stamp, Ticks};
use ffclock_wire::{NtpTimestamp, Packet, Version};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::path::PathBuf;

/// A reply that takes longer is lost.
const PATIENCE: Span = Span::from_millis(200);
/// A reply with its IPv4 and UDP headers.
const IP_BYTES: usize = 76;
/// A reading of the base right where the packet passes.
const PASSAGE_WIDTH: Ticks = Ticks::from_raw(64);
/// The server listens by then.
const SERVER_PATIENCE: Span = Span::from_secs(5);

/// One exchange, as every counter saw it.
#[derive(Clone, Debug)]
pub(super) struct Exchanged {
    /// What the server said.
    pub(super) reply: Packet,
    /// By the base, in user space.
    pub(super) user: [Stamp; 2],
    /// By the base, in the kernel; `None` where it gave none.
    pub(super) socket: Option<[Stamp; 2]>,
    /// By the base itself at the driver, from each of the further sources, where it found both packets.
    pub(super) driver: Vec<Option<[Stamp; 2]>>,
    /// What each counter showed right before the request was handed over and right after the reply was taken over.
    pub(super) shown: [Vec<u64>; 2],
    /// Each counter beside the base, before and after everything.
    pub(super) around: [Vec<BracketedReading>; 2],
}

/// Where stamps come from that the raw counter takes at the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DriverSource {
    /// The kernel's tracepoints with the trace clock x86-tsc.
    Trace,
    /// The module ffcounter.
    Module,
}

/// The stream of requests.
pub(super) struct Packets {
    server: Worker,
    socket: StampedSocket,
    mapper: Mapper,
    drivers: Vec<(DriverSource, DriverStamps)>,
    missing: Vec<String>,
    followed: Followed,
    turn: usize,
    log: PathBuf,
}

impl Packets {
    /// Starts the server and finds that it answers.
    pub(super) fn begin(truth: &Truth, period: Period, ways: Vec<Way>) -> Result<Self, Failure> {
        let address = free_address()?;
        let ourselves = std::env::current_exe()?.display().to_string();
        let listen = ["lab", "server", "--listen"].map(str::to_owned);
        let words = std::iter::once(ourselves).chain(listen).chain([address.to_string()]).chain(truth.as_arguments());
        let command: Vec<String> = words.collect();
        let log = std::env::temp_dir().join(format!("ffclock-counters-server-{}.log", std::process::id()));
        let task = Task { name: "the server", command: &command, log: &log, rights: Rights::None };
        let mut server = Worker::prepare(&task, Network::Shared)?;
        server.release()?;
        let socket = StampedSocket::connect(address, StampMode::Kernel)?;
        let mapper = Mapper::system(CounterKind::Tsc, period);
        let (drivers, missing) = (Vec::new(), Vec::new());
        let followed = Followed::new(ways);
        let mut packets = Packets { server, socket, mapper, drivers, missing, followed, turn: 0, log };
        packets.wait_for_server()?;
        let hertz = period.as_hertz();
        packets.add_driver(DriverSource::Trace, DriverStamps::trace(CounterKind::Tsc, hertz));
        packets.add_driver(DriverSource::Module, DriverStamps::module(CounterKind::Tsc, &[address.port()], hertz));
        Ok(packets)
    }

    fn add_driver(&mut self, source: DriverSource, opened: std::io::Result<DriverStamps>) {
        match opened {
            Ok(stamps) => self.drivers.push((source, stamps)),
            Err(error) => self.missing.push(format!("{source:?} stamps: {error}").to_lowercase()),
        }
    }

    /// The sources of stamps at the driver that this host has.
    pub(super) fn driver_sources(&self) -> Vec<DriverSource> {
        self.drivers.iter().map(|(source, _)| *source).collect()
    }

    /// Why the others are not there.
    pub(super) fn missing(&self) -> &[String] {
        &self.missing
    }

    fn wait_for_server(&mut self) -> Result<(), Failure> {
        let deadline = mono_now() + SERVER_PATIENCE;
        while mono_now() < deadline {
            if self.exchange()?.is_some() {
                return Ok(());
            }
        }
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        Err(format!("the server does not answer on loopback: {}", crate::text::printable(said.trim())).into())
    }

    /// The counters.
    pub(super) fn ways(&self) -> &[Way] {
        self.followed.ways()
    }

    /// One request and its reply; `None` when none came in time.
    pub(super) fn exchange(&mut self) -> Result<Option<Exchanged>, Failure> {
        self.server.check_alive()?;
        self.turn += 1;
        let nonce = NtpTimestamp::from_raw(random_nonce()?);
        let before = self.beside_base()?;
        let shown_before = self.shown()?;
        let sent = match self.socket.send(&Packet::request(Version::V4, nonce).encode(), &mut self.mapper) {
            Ok(sent) => sent,
            // Nobody listens yet.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => return Ok(None),
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

    fn listen(&mut self, nonce: NtpTimestamp, deadline: Moment<Mono>) -> Result<Option<Heard>, Failure> {
        let mut buffer = [0; 256];
        let mut sent = None;
        while mono_now() < deadline {
            poll(&mut [Interest::readable(self.socket.as_fd())], Some(deadline))?;
            while let Some(event) = self.socket.next_event(&mut buffer, &mut self.mapper)? {
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
                (sent, driver.refine(Side::Sent, sent, None)?),
                (received, driver.refine(Side::Received, received, Some(IP_BYTES))?),
            ];
            Some(found.map(|(stamp, counter)| Stamp { counter, width: PASSAGE_WIDTH, ..stamp }))
        };
        self.drivers.iter_mut().map(of).collect()
    }

    /// Every counter beside the base now.
    pub(super) fn beside_base(&mut self) -> Result<Vec<BracketedReading>, Failure> {
        self.followed.points().map_err(unfollowed)
    }

    /// Every counter once; another one is the first each time, so that none is always nearest to the packet.
    fn shown(&mut self) -> Result<Vec<u64>, Failure> {
        let count = self.ways().len();
        let mut shown = vec![0; count];
        for number in 0..count {
            let place = (number + self.turn) % count;
            shown[place] = self.followed.read(place).map_err(unfollowed)?;
        }
        Ok(shown)
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        // Nothing is lost with it: the server is ours, and it has answered.
        let _ = std::fs::remove_file(&self.log);
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

fn unfollowed(why: Unfollowed) -> Failure {
    why.to_string().into()
}

/// A port that is free now; should somebody take it before the server does, the server says so.
fn free_address() -> Result<SocketAddr, Failure> {
    Ok(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
