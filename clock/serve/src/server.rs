//! The server as a whole: sockets, threads, and the main thread, which waits for signals and never for packets.

use crate::access::AccessList;
use crate::face::FaceOptions;
use crate::fast_path::{self, AttachedFastPath, FastPathBoard, FastPathParts};
use crate::following::{self, Following, reference_of};
use crate::limit::LimitOptions;
use crate::options::ServeConfig;
use crate::policy::{Policy, PolicyBoard};
use crate::tally::Tally;
use crate::worker::{Worker, WorkerParts};
use ffclock_counter::CounterId;
use ffclock_sys::{Interest, Notice, ServedSocket, Signal, Signals, drop_privileges, inherited_sockets, notify, poll};
use ffclock_units::Span;
use ffclock_wire::LogSeconds;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Why the server does not start, or ended.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {error}")]
pub struct ServeError {
    what: String,
    error: io::Error,
}

fn about(what: impl Into<String>) -> impl FnOnce(io::Error) -> ServeError {
    let what = what.into();
    move |error| ServeError { what, error }
}

/// How often ffclockd is asked whom it follows.
const ASK_AGAIN: Duration = Duration::from_secs(8);
/// How long the main thread waits at most before it looks at its threads.
const LOOK: Span = Span::from_secs(1);

/// Serves until a signal ends it. `again` re-reads the configuration for a reload.
///
/// # Errors
/// A required resource could not be had: a socket, a thread; or a socket failed while it served.
pub fn run(config: ServeConfig, again: &dyn Fn() -> Result<ServeConfig, String>) -> Result<(), ServeError> {
    let mut signals = Signals::install().map_err(about("signals"))?;
    let sockets = open_sockets(&config)?;
    let attached = attach_fast_path(&config, &sockets);
    // From here on, in every thread, there is no capability.
    drop_privileges().map_err(about("giving up capabilities"))?;
    let server = Server::start(&config, sockets, attached)?;
    notify_manager(Notice::Ready);
    loop {
        poll(&mut [Interest::readable(signals.as_fd())], Some(ffclock_sys::mono_now() + LOOK)).map_err(about("poll"))?;
        while let Some(signal) = signals.take() {
            match signal {
                Signal::Hangup => server.reload(again),
                Signal::Terminate | Signal::Interrupt => return server.stop(),
            }
        }
        if server.has_ended() {
            return server.stop();
        }
    }
}

/// The sockets that the service manager hands over, each for all threads; or else one for each address and thread.
fn open_sockets(config: &ServeConfig) -> Result<Vec<ServedSocket>, ServeError> {
    let threads = config.threads as usize;
    let mut sockets = Vec::new();
    for inherited in inherited_sockets().map_err(about("sockets of the service manager"))? {
        let socket = ServedSocket::of(inherited).map_err(about("socket of the service manager"))?;
        for _ in 1..threads {
            sockets.push(socket.try_clone().map_err(about("socket of the service manager"))?);
        }
        sockets.push(socket);
    }
    if !sockets.is_empty() {
        return Ok(sockets);
    }
    for address in config.listen.as_slice() {
        let mut address = *address;
        for _ in 0..threads {
            let socket = ServedSocket::bind(address).map_err(about(format!("listening on {address}")))?;
            // Port 0 is one that the kernel chooses, once for all threads.
            address = socket.local_address().map_err(about(format!("listening on {address}")))?;
            sockets.push(socket);
        }
        tracing::info!(%address, threads, "listening");
    }
    Ok(sockets)
}

/// The fast path, where it is wanted. Without it the sockets answer alone, and the log and the status say why.
fn attach_fast_path(
    config: &ServeConfig,
    sockets: &[ServedSocket],
) -> Result<Option<AttachedFastPath>, String> {
    let attached = fast_path::attach(config, sockets);
    match &attached {
        Ok(Some(path)) => tracing::info!(at = path.describe(), "plain requests are answered in the driver"),
        Ok(None) => {}
        Err(reason) => tracing::warn!(%reason, "no fast path; the sockets answer alone"),
    }
    attached
}

/// The running threads.
struct Server {
    board: Arc<PolicyBoard>,
    tallies: Vec<Arc<Tally>>,
    stop: Arc<AtomicBool>,
    workers: Vec<JoinHandle<io::Result<()>>>,
    fast_path: Arc<FastPathBoard>,
    /// The thread of the fast path, which may end before the others.
    fast_thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(
        config: &ServeConfig,
        sockets: Vec<ServedSocket>,
        attached: Result<Option<AttachedFastPath>, String>,
    ) -> Result<Self, ServeError> {
        let board = Arc::new(PolicyBoard::new(policy(config)));
        let stop = Arc::new(AtomicBool::new(false));
        let table_bytes = ((config.rate_memory as usize) << 20) / sockets.len().max(1);
        let described = attached.as_ref().map(|path| path.as_ref().map(AttachedFastPath::describe));
        let fast_path = Arc::new(FastPathBoard::new(&described.map_err(Clone::clone)));
        let mut server =
            Server { board, tallies: Vec::new(), stop, workers: Vec::new(), fast_path, fast_thread: None };
        for (number, socket) in sockets.into_iter().enumerate() {
            let tally = Arc::new(Tally::default());
            server.tallies.push(Arc::clone(&tally));
            let parts =
                WorkerParts { page: config.page.as_path(), board: Arc::clone(&server.board), tally, table_bytes };
            let mut worker = Worker::new(socket, parts).map_err(about("a thread"))?;
            let stop = Arc::clone(&server.stop);
            let thread = thread::Builder::new().name(format!("serve-{number}"));
            server.workers.push(thread.spawn(move || worker.run(&stop)).map_err(about("a thread"))?);
        }
        if let Ok(Some(attached)) = attached {
            let parts = FastPathParts {
                page: config.page.as_path(),
                board: Arc::clone(&server.board),
                report: Arc::clone(&server.fast_path),
                stop: Arc::clone(&server.stop),
            };
            server.fast_thread = Some(fast_path::start(attached, config, parts).map_err(about("a thread"))?);
        }
        if let Some(control) = config.daemon.value() {
            follow(control.as_path(), Arc::clone(&server.board), Arc::clone(&server.stop)).map_err(about("a thread"))?;
        }
        Ok(server)
    }

    /// Whether a thread has ended, which it does by itself only where its socket fails.
    fn has_ended(&self) -> bool {
        self.workers.iter().any(JoinHandle::is_finished)
    }

    fn stop(self) -> Result<(), ServeError> {
        notify_manager(Notice::Stopping);
        self.stop.store(true, Ordering::Relaxed);
        // The program leaves the device with its thread.
        let fast_thread_ended = self.fast_thread.is_none_or(|thread| thread.join().is_ok());
        if !fast_thread_ended {
            tracing::error!("the thread of the fast path panicked");
        }
        for worker in self.workers {
            let ended = worker.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")));
            ended.map_err(about("a thread that serves"))?;
        }
        Ok(())
    }

    fn reload(&self, again: &dyn Fn() -> Result<ServeConfig, String>) {
        notify_manager(Notice::Reloading);
        match again() {
            Ok(config) => {
                self.board.change(|present| Policy {
                    face: FaceOptions { reference_id: present.face.reference_id, ..policy(&config).face },
                    followed: present.followed.clone(),
                    ..policy(&config)
                });
                tracing::info!("the configuration was read again");
            }
            Err(error) => tracing::error!(%error, "the new configuration is refused; the old one stays in force"),
        }
        notify_manager(Notice::Ready);
    }
}

/// Without a service manager there is nothing to notify, and a failure to notify is no reason to stop.
fn notify_manager(notice: Notice<'_>) {
    if let Err(error) = notify(notice) {
        tracing::warn!(%error, "the service manager cannot be notified");
    }
}

/// The policy of a configuration, of a server that does not know yet whom it follows.
pub(crate) fn policy(config: &ServeConfig) -> Policy {
    Policy {
        face: FaceOptions {
            bound: config.bound,
            bound_max: config.serve_bound_max,
            smear: config.smear,
            precision: precision(),
            reference_id: following::reference_of_host(&ffclock_counter::boot_id()),
        },
        access: AccessList::new(&config.allow, &config.deny),
        limit: LimitOptions::new(config.rate_interval.as_seconds(), config.rate_burst),
        leak: u64::from(config.rate_leak),
        kiss: config.kiss,
        unsynchronised: config.unsynchronised,
        followed: Vec::new(),
    }
}

/// How long it takes to read the clock (RFC 5905, section 7.3): the least of some readings, rounded up to a power of
/// two.
fn precision() -> LogSeconds {
    const TRIES: usize = 64;
    let read = || ffclock_counter::read_ordered(CounterId::CPU);
    let period = ffclock_counter::nominal(CounterId::CPU).map_or(1e-9, |nominal| nominal.period.as_seconds());
    let ticks = (0..TRIES).map(|_| -(read() - read()).raw()).filter(|ticks| *ticks > 0).min().unwrap_or(1);
    LogSeconds::from_exponent((ticks as f64 * period).log2().ceil().clamp(-30.0, -10.0) as i8)
}

/// Keeps the policy informed of whom the daemon follows, in a thread that nothing waits for.
fn follow(control: &Path, board: Arc<PolicyBoard>, stop: Arc<AtomicBool>) -> io::Result<()> {
    let control: PathBuf = control.to_owned();
    let mut known = Following::default();
    thread::Builder::new().name("following".to_owned()).spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            if let Ok(found) = following::ask(&control)
                && found != known
            {
                board.change(|present| followed(present, &found));
                known = found;
            }
            thread::sleep(ASK_AGAIN);
        }
    })?;
    Ok(())
}

fn followed(present: &Policy, found: &Following) -> Policy {
    let reference_id = found.selected.map_or(present.face.reference_id, reference_of);
    Policy {
        face: FaceOptions { reference_id, ..present.face },
        followed: found.servers.iter().map(|ip| (crate::access::bits_of(*ip), reference_of(*ip))).collect(),
        ..present.clone()
    }
}
