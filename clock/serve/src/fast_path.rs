//! The fast path: plain requests are answered in the driver, by the program of `ffclock_xdp`, with the face that the
//! sockets' replies have and the rules that the sockets judge by. What the program passes on, and everything while it
//! has no line, is answered by the sockets as if it were not there.
//!
//! It is attached before the rights are given up. A thread of its own then renews the line, follows the policy and
//! the device's addresses, and reads the counts. Where it cannot be had, or ends, the reason is logged and reported,
//! and the server goes on without.

mod report;
mod rules;

use crate::face::{FaceOptions, ReplyMoments, ServedFace, timestamp};
use crate::options::ServeConfig;
use crate::policy::{Policy, PolicyBoard};
use crate::served_clock::ServedClock;
use ffclock::Snapshot;
use ffclock_control::serve::FastPathReport;
use ffclock_counter::CounterId;
use ffclock_sys::{addresses_of, device_index};
use ffclock_units::{Counter, Span};
use ffclock_wire::Packet;
use ffclock_xdp::{BootPair, FastOutcome, FastPath, FastPathError, FastPathPlace, LineMaker, NoLine};
use report::FastPathBoard;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A line is served for this number of renewals, so that one which comes late does no harm.
const RENEWALS: i128 = 4;
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

/// Attaches the program where the configuration names a device, for sockets with these addresses. Where it cannot be
/// had, the reason is logged, and the sockets answer alone.
pub fn attach(config: &ServeConfig, listen: Vec<SocketAddr>) -> Option<Result<AttachedFastPath, String>> {
    let attached = attach_to(config.xdp.name()?, config, listen);
    match &attached {
        Ok(path) => tracing::info!(at = path.describe(), "plain requests are answered in the driver"),
        Err(reason) => tracing::warn!(%reason, "no fast path; the sockets answer alone"),
    }
    Some(attached)
}

fn attach_to(device: &str, config: &ServeConfig, mut listen: Vec<SocketAddr>) -> Result<AttachedFastPath, String> {
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
    Ok(AttachedFastPath { path, device: device.to_owned(), index: device_index(device), listen })
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
pub struct FastPathParts {
    /// The page.
    pub page: PathBuf,
    /// The policies.
    pub board: Arc<PolicyBoard>,
    /// When set, it ends.
    pub stop: Arc<AtomicBool>,
}

/// The thread of the fast path, which may end before the server does. Nothing where none is wanted.
#[derive(Debug, Default)]
pub struct FastPathThread {
    report: Option<Arc<FastPathBoard>>,
    thread: Option<JoinHandle<()>>,
}

impl FastPathThread {
    /// Starts it where the program is attached.
    ///
    /// # Errors
    /// The thread cannot be had.
    pub fn start(
        attached: Option<Result<AttachedFastPath, String>>,
        config: &ServeConfig,
        parts: FastPathParts,
    ) -> io::Result<Self> {
        let Some(attached) = attached else { return Ok(FastPathThread::default()) };
        let described = attached.as_ref().map(AttachedFastPath::describe).map_err(Clone::clone);
        let report = Arc::new(FastPathBoard::new(described));
        let mut started = FastPathThread { report: Some(Arc::clone(&report)), thread: None };
        if let Ok(attached) = attached {
            let stop = Arc::clone(&parts.stop);
            let mut keeper = FastPathKeeper::new(attached, config, (parts, report));
            let renewal = Duration::from_secs_f64(config.xdp_renewal.as_seconds());
            let thread = thread::Builder::new().name("fast-path".to_owned());
            started.thread = Some(thread.spawn(move || keeper.run(renewal, &stop))?);
        }
        Ok(started)
    }

    /// What is known of it; `None` where none is wanted.
    pub fn report(&self) -> Option<FastPathReport> {
        self.report.as_ref().map(|report| report.read())
    }

    /// Waits for its end, with which the program leaves the device.
    pub fn end(self) {
        if self.thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the fast path panicked");
        }
    }
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
    fn new(
        attached: AttachedFastPath,
        config: &ServeConfig,
        (parts, report): (FastPathParts, Arc<FastPathBoard>),
    ) -> Self {
        let longest = Span::from_units(config.xdp_renewal.units().saturating_mul(RENEWALS));
        let fresh = LineMaker::new(longest, config.xdp_slew);
        FastPathKeeper {
            attached,
            addresses: Vec::new(),
            board: parts.board,
            policy: None,
            generation: 0,
            page: parts.page,
            maker: (CounterId::CPU, fresh.clone()),
            fresh,
            report,
        }
    }

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
        // The program leaves the device with its counts.
        if let Ok(counts) = self.attached.path.counts() {
            let replied = counts.of(FastOutcome::Replied);
            tracing::info!(replied, passed_on = counts.passed(), "the fast path ends");
        }
    }

    /// A new line, or none, by the policy in force.
    fn renew(&mut self, clock: &mut ServedClock) -> Result<(), String> {
        let policy = self.follow_policy()?;
        let line = match clock.snapshot() {
            Some(snapshot) => self
                .line(&snapshot, &policy.face)
                .and_then(|line| clock.undisrupted(Some(&snapshot)).map_or(Err(NoLine::Unsynchronised), |_| Ok(line))),
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
        self.report.counted(&self.attached.path.counts().map_err(in_words)?);
        Ok(())
    }
}

/// What the sockets would answer to a plain request that came and left at this counter reading.
fn reply_at(snapshot: &Snapshot, counter: Counter, options: &FaceOptions) -> Option<Packet> {
    let face = ServedFace::of(snapshot, &ReplyMoments::at(counter), options);
    face.standing.ok()?;
    let packet = Packet::decode(face.template.header()).ok()?;
    Some(Packet { transmit: timestamp(snapshot, counter, options)?, ..packet })
}
