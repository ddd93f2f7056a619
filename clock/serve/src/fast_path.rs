//! The fast path: plain requests are answered in the driver, by the program of `ffclock_xdp`, with the face that the
//! sockets' replies have and the rules that the sockets judge by. What the program passes on, and everything while it
//! has no line, is answered by the sockets as if it were not there.
//!
//! It is attached before the rights are given up. A thread of its own then renews the line, follows the policy and the
//! device's addresses, and reads the counts. Where it cannot be had, or ends, the reason is logged and reported, and the
//! server goes on without.

mod report;
mod rules;

use crate::face::{FaceOptions, ServedFace, timestamp};
use crate::options::ServeConfig;
use crate::policy::{Policy, PolicyBoard};
use crate::served_clock::ServedClock;
use ffclock_client::Snapshot;
use ffclock_counter::CounterId;
use ffclock_sys::{ServedSocket, addresses_of, device_index};
use ffclock_units::{Counter, Span};
use ffclock_wire::Packet;
use ffclock_xdp::{BootPair, FastPath, FastPathError, FastPathPlace, LineMaker, NoLine};
pub use report::{FastPathBoard, FastPathReport};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A line is served for this number of renewals, so that one which comes late does no harm.
const RENEWALS: i64 = 4;
/// How often counts are read, and addresses looked at.
const LOOK: Duration = Duration::from_millis(500);

/// The program at its place, before its thread runs.
pub struct AttachedFastPath {
    path: FastPath,
    device: String,
    index: Option<u32>,
    /// The addresses of the sockets.
    listen: Vec<SocketAddr>,
}

/// Attaches the program where the configuration names a device.
///
/// # Errors
/// It cannot be had, for this reason.
pub fn attach(config: &ServeConfig, sockets: &[ServedSocket]) -> Result<Option<AttachedFastPath>, String> {
    let Some(device) = config.xdp.name() else { return Ok(None) };
    let mut listen: Vec<SocketAddr> = sockets.iter().filter_map(|socket| socket.local_address().ok()).collect();
    listen.sort_unstable();
    listen.dedup();
    let reachable = listen.iter().filter(|address| !address.ip().is_loopback());
    let mut ports: Vec<u16> = reachable.map(SocketAddr::port).collect();
    ports.dedup();
    let port = match ports.as_slice() {
        [port] => *port,
        [] => return Err("the server listens on no address that a device could have".to_owned()),
        _ => return Err("the server listens on several ports, and a fast path serves one".to_owned()),
    };
    let place = FastPathPlace {
        device: device.to_owned(),
        hook: config.xdp_hook.wanted(),
        port,
        addresses_remembered: config.xdp_addresses,
    };
    let path = FastPath::open(&place).map_err(|error| error.to_string())?;
    listen.retain(|address| address.port() == port);
    Ok(Some(AttachedFastPath { path, device: device.to_owned(), index: device_index(device), listen }))
}

impl AttachedFastPath {
    /// Where it is, for people.
    pub fn describe(&self) -> String {
        format!("{} ({})", self.device, rules::hook_name(self.path.hook()))
    }

    /// The addresses that are served: those of the sockets, and the device's own for a socket that listens on all.
    fn addresses(&self) -> Vec<IpAddr> {
        let own = addresses_of(&self.device);
        let mut served: Vec<IpAddr> = self
            .listen
            .iter()
            .flat_map(|address| match address.ip() {
                any if any.is_unspecified() => own.iter().copied().filter(|ip| ip.is_ipv4() == any.is_ipv4()).collect(),
                one => vec![one],
            })
            .collect();
        served.sort_unstable();
        served.dedup();
        served
    }
}

/// What the thread of the fast path is given by the server.
pub struct FastPathParts<'a> {
    /// The page.
    pub page: &'a Path,
    /// The policies.
    pub board: Arc<PolicyBoard>,
    /// Where it reports.
    pub report: Arc<FastPathBoard>,
    /// When set, it ends.
    pub stop: Arc<AtomicBool>,
}

/// Starts the thread of the fast path.
///
/// # Errors
/// The thread cannot be had.
pub fn start(attached: AttachedFastPath, config: &ServeConfig, parts: FastPathParts<'_>) -> io::Result<JoinHandle<()>> {
    let longest = Span::from_units(config.xdp_renewal.units().saturating_mul(RENEWALS.into()));
    let mut keeper = FastPathKeeper {
        addresses: Vec::new(),
        attached,
        board: parts.board,
        policy: None,
        generation: 0,
        page: parts.page.to_owned(),
        maker: (CounterId::CPU, LineMaker::new(longest, config.xdp_slew)),
        fresh: LineMaker::new(longest, config.xdp_slew),
        report: parts.report,
    };
    let renewal = Duration::from_secs_f64(config.xdp_renewal.as_seconds());
    let stop = parts.stop;
    thread::Builder::new().name("fast-path".to_owned()).spawn(move || keeper.run(renewal, &stop))
}

/// Keeps the program up to date.
struct FastPathKeeper {
    attached: AttachedFastPath,
    addresses: Vec<IpAddr>,
    board: Arc<PolicyBoard>,
    policy: Option<Arc<Policy>>,
    generation: u64,
    page: PathBuf,
    /// The lines of the page's counter.
    maker: (CounterId, LineMaker),
    /// What to begin with when the counter is another one.
    fresh: LineMaker,
    report: Arc<FastPathBoard>,
}

impl FastPathKeeper {
    fn run(&mut self, renewal: Duration, stop: &AtomicBool) {
        let mut clock = ServedClock::new(&self.page);
        let looks = (LOOK.as_secs_f64() / renewal.as_secs_f64()).ceil().max(1.0) as u32;
        let mut round = 0_u32;
        while !stop.load(Ordering::Relaxed) {
            let done = self.renew(&mut clock).and_then(|()| match round.is_multiple_of(looks) {
                true => self.look(),
                false => Ok(()),
            });
            if let Err(reason) = done {
                tracing::error!(%reason, "the fast path ends; the sockets answer alone");
                return self.report.ended(reason);
            }
            round = round.wrapping_add(1);
            thread::sleep(renewal);
        }
        // The last counts, for those who read the status meanwhile.
        let _ = self.look();
    }

    /// A new line, or none, by the policy in force.
    fn renew(&mut self, clock: &mut ServedClock) -> Result<(), String> {
        let policy = self.follow_policy()?;
        let line = match clock.snapshot() {
            Some(snapshot) => self.line(&snapshot, &policy.face),
            None => Err(NoLine::Unsynchronised),
        };
        let done = match &line {
            Ok(line) => self.attached.path.publish(line),
            Err(reason) => {
                if *reason == NoLine::Unsynchronised {
                    clock.renew();
                }
                self.attached.path.withdraw()
            }
        };
        self.report.line(line.err());
        done.map_err(|error| error.to_string())
    }

    fn line(&mut self, snapshot: &Snapshot, face: &FaceOptions) -> Result<ffclock_xdp::Line, NoLine> {
        let counter = snapshot.counter_id();
        if counter != self.maker.0 {
            self.maker = (counter, self.fresh.clone());
        }
        let pair = BootPair::read(counter).ok_or(NoLine::Begins)?;
        self.maker.1.make(pair, |at| reply_at(snapshot, at, face))
    }

    /// The policy in force, with the rules that follow from it in the driver.
    fn follow_policy(&mut self) -> Result<Arc<Policy>, String> {
        let mut policy = self.policy.clone().unwrap_or_else(|| self.board.read());
        let before = self.generation;
        self.board.renew(&mut policy, &mut self.generation);
        if before != self.generation {
            self.attached.path.rule(&rules::of(&policy)).map_err(|error| error.to_string())?;
            self.policy = Some(Arc::clone(&policy));
        }
        Ok(policy)
    }

    /// Follows the device, and reads the counts.
    fn look(&mut self) -> Result<(), String> {
        if device_index(&self.attached.device) != self.attached.index {
            return Err(format!("{} is gone; a restart attaches to a new one", self.attached.device));
        }
        let in_words = |error: FastPathError| error.to_string();
        let addresses = self.attached.addresses();
        if addresses != self.addresses {
            self.attached.path.serve(&addresses).map_err(in_words)?;
            self.addresses = addresses;
        }
        self.report.counted(self.attached.path.counts().map_err(in_words)?);
        Ok(())
    }
}

/// What the sockets would answer to a plain request that came and left at this counter reading.
fn reply_at(snapshot: &Snapshot, counter: Counter, options: &FaceOptions) -> Option<Packet> {
    let face = ServedFace::of(snapshot, [counter, counter], options);
    face.standing.ok()?;
    let packet = Packet::decode(face.template.header()).ok()?;
    Some(Packet { transmit: timestamp(snapshot, counter, options.smear)?, ..packet })
}
