//! The server as a whole: sockets, threads, and the main thread, which waits for signals and never for packets.

use crate::access::AccessList;
use crate::config::ServeSettings;
use crate::face::{FaceOptions, ReplyMoments, ServedFace, Unserved};
use crate::fast_path::{self, FastPathParts, FastPathThread};
use crate::following::{follow, reference_of_host};
use crate::limit::LimitOptions;
use crate::nts::{NtsConfig, NtsError, NtsParts, NtsPlace, NtsService, port_for_clients};
use crate::options::ServeConfig;
use crate::policy::{Policy, PolicyBoard};
use crate::ptp::{PtpConfig, PtpParts, PtpService, PtpShared};
use crate::report::{claim_report, exposition};
use crate::served_clock::ServedClock;
use crate::smear::SmearWatch;
use crate::tally::{Counted, Tally, total};
use crate::worker::{Worker, WorkerParts};
use ffclock_control::protocol::{Request, parse_request};
use ffclock_control::serve::{ServeAnswer, ServeReport};
use ffclock_counter::{CounterId, try_read};
use ffclock_service::{Answering, ControlSocket, Listener, Rights};
use ffclock_sys::{
    Interest, Notice, ServedSocket, Signal, Signals, drop_privileges, inherited_sockets, mono_now, notify, poll,
    watchdog_interval,
};
use ffclock_units::{Moment, Mono, Span, Status};
use ffclock_wire::LogSeconds;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

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

fn because(error: NtsError) -> ServeError {
    ServeError { what: "[nts]".to_owned(), error: io::Error::other(error) }
}

/// How long the main thread waits at most before it looks at its threads.
const LOOK: Span = Span::from_secs(1);

/// Serves until a signal ends it. `again` re-reads the configuration for a reload.
///
/// # Errors
/// A required resource could not be had: a socket, a thread; or a socket failed while it served.
pub fn run(settings: ServeSettings, again: &dyn Fn() -> Result<ServeSettings, String>) -> Result<(), ServeError> {
    let mut signals = Signals::install().map_err(about("signals"))?;
    let ServeSettings { serve: config, nts, ptp } = settings;
    let sockets = open_sockets(&config)?;
    let nts_parts = NtsParts::open(&nts).map_err(because)?;
    let ptp_parts = PtpParts::open(&ptp).map_err(|text| about("[ptp]")(io::Error::other(text)))?;
    let listen = sockets.iter().flatten().filter_map(|socket| socket.local_address().ok()).collect();
    let attached = fast_path::attach(&config, listen);
    // From here on, in every thread, there is no capability.
    drop_privileges().map_err(about("giving up capabilities"))?;
    let cookies = nts_parts.as_ref().map(|parts| parts.keys(&nts));
    let first = Policy { cookies, ..policy(&config, &ptp) };
    let mut server = Server::start(&config, sockets, again, first)?;
    server.ptp = server.start_ptp(ptp_parts, ptp)?;
    server.fast_path = FastPathThread::start(attached, &config, server.fast_path_parts()).map_err(about("a thread"))?;
    if let Some(parts) = nts_parts {
        server.nts = Some(NtsService::start(parts, nts, &server.place()).map_err(because)?);
    }
    let mut visitors = Visitors::open(&config)?;
    notify_manager(Notice::Ready);
    loop {
        visitors.wait(&signals)?;
        while let Some(signal) = signals.take() {
            match signal {
                Signal::Hangup => {
                    // The refusal is in the log; the old configuration stays in force.
                    let _ = server.reload();
                }
                Signal::Terminate | Signal::Interrupt => return server.stop(),
            }
        }
        server.look_at_leap();
        visitors.serve(&mut server);
        if server.has_ended() {
            return server.stop();
        }
        if let Some(nts) = &server.nts {
            nts.rotate(&server.board);
        }
    }
}

/// Those who ask about the server.
struct Visitors {
    control: Option<ControlSocket>,
    metrics: Option<Listener<TcpListener>>,
    watchdog: Option<Span>,
    next_sign: Moment<Mono>,
}

impl Visitors {
    fn open(config: &ServeConfig) -> Result<Self, ServeError> {
        let bind = |path: &Path| {
            ControlSocket::bind(path, "ffclock-serve").map_err(about(format!("status socket {}", path.display())))
        };
        let listen = |address| Listener::for_metrics(address).map_err(about(format!("metrics on {address}")));
        Ok(Visitors {
            control: config.control.value().map(|path| bind(path.as_path())).transpose()?,
            metrics: config.metrics.value().map(|address| listen(address.address())).transpose()?,
            watchdog: watchdog_interval(),
            next_sign: mono_now(),
        })
    }

    /// Waits for a signal or a visitor, for a second at most.
    fn wait(&self, signals: &Signals) -> Result<(), ServeError> {
        let mut interests = vec![Interest::readable(signals.as_fd())];
        if let Some(control) = &self.control {
            control.listener().interests(&mut |interest| interests.push(interest));
        }
        if let Some(metrics) = &self.metrics {
            metrics.interests(&mut |interest| interests.push(interest));
        }
        poll(&mut interests, Some(mono_now() + LOOK)).map_err(about("poll"))?;
        Ok(())
    }

    fn serve(&mut self, server: &mut Server<'_>) {
        let now = mono_now();
        if let Some(control) = &mut self.control {
            control.listener_mut().serve(now, server);
        }
        if let Some(metrics) = &mut self.metrics {
            metrics.serve(now, server);
        }
        if let Some(every) = self.watchdog.filter(|_| now >= self.next_sign) {
            self.next_sign = now + every;
            notify_manager(Notice::Watchdog);
        }
        let Some(control) = &mut self.control else { return };
        if control.is_missed(now) {
            let path = control.path().to_owned();
            match ControlSocket::bind(&path, "ffclock-serve") {
                Ok(again) => self.control = Some(again),
                Err(error) => tracing::warn!(%error, "the status socket was removed, and cannot be made again"),
            }
        }
    }
}

/// The handles of one socket, one for each thread that reads from it.
type Handles = Vec<ServedSocket>;

/// The sockets that the service manager hands over, each for all threads; or else one for each address and thread.
fn open_sockets(config: &ServeConfig) -> Result<Vec<Handles>, ServeError> {
    let threads = config.threads as usize;
    let mut sockets = Vec::new();
    let handed_over = "socket of the service manager";
    for inherited in inherited_sockets().map_err(about(handed_over))? {
        let socket = ServedSocket::of(inherited).map_err(about(handed_over))?;
        let copies: io::Result<Handles> = (0..threads).map(|_| socket.try_clone()).collect();
        sockets.push(copies.map_err(about(handed_over))?);
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
            sockets.push(vec![socket]);
        }
        tracing::info!(%address, threads, "listening");
    }
    Ok(sockets)
}

/// The running threads, and what is known of them.
struct Server<'a> {
    again: &'a dyn Fn() -> Result<ServeSettings, String>,
    started: Moment<Mono>,
    config: ServeConfig,
    clock: ServedClock,
    smear_watch: SmearWatch,
    /// A handle of each socket, to ask for what the kernel dropped.
    sockets: Vec<ServedSocket>,
    board: Arc<PolicyBoard>,
    tallies: Vec<Arc<Tally>>,
    stop: Arc<AtomicBool>,
    workers: Vec<JoinHandle<io::Result<()>>>,
    nts: Option<NtsService>,
    ptp: PtpService,
    fast_path: FastPathThread,
}

impl<'a> Server<'a> {
    fn start(
        config: &ServeConfig,
        sockets: Vec<Handles>,
        again: &'a dyn Fn() -> Result<ServeSettings, String>,
        policy: Policy,
    ) -> Result<Self, ServeError> {
        let mut server = Server {
            again,
            started: mono_now(),
            config: config.clone(),
            clock: ServedClock::new(config.page.as_path()),
            smear_watch: SmearWatch::default(),
            board: Arc::new(PolicyBoard::new(policy)),
            sockets: Vec::new(),
            tallies: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            workers: Vec::new(),
            nts: None,
            ptp: PtpService::default(),
            fast_path: FastPathThread::default(),
        };
        server.look_at_leap();
        let threads = sockets.iter().map(Vec::len).sum::<usize>();
        let table_bytes = ((config.rate_memory as usize) << 20) / threads.max(1);
        for handles in sockets {
            let shares_socket = handles.len() > 1;
            let first = handles.first().map(ServedSocket::try_clone).transpose();
            server.sockets.extend(first.map_err(about("a socket"))?);
            for socket in handles {
                let tally = Arc::new(Tally::default());
                let (page, board) = (server.config.page.clone(), Arc::clone(&server.board));
                let parts = WorkerParts { page: page.as_path(), board, tally, table_bytes, shares_socket };
                server.start_worker(socket, parts).map_err(about("a thread that serves"))?;
            }
        }
        if let Some(control) = config.daemon.value() {
            follow(control.as_path(), Arc::clone(&server.board), Arc::clone(&server.stop))
                .map_err(about("a thread"))?;
        }
        Ok(server)
    }

    /// Decides for all threads which leap second is smeared.
    fn look_at_leap(&mut self) {
        let now = self.clock.snapshot().and_then(|snapshot| {
            let now = snapshot.time_at(try_read(snapshot.counter_id()).ok()?).ok()?;
            (now.reading.status != Status::Unsynchronised).then_some((now.tai, snapshot.leap()))
        });
        let Some((now, leap)) = now else { return self.clock.renew() };
        let smeared_leap = self.smear_watch.look(now, leap);
        if smeared_leap.is_some() && smeared_leap != self.board.read().face.smeared_leap {
            self.board
                .change(|present| Policy { face: FaceOptions { smeared_leap, ..present.face }, ..present.clone() });
        }
    }

    fn start_worker(&mut self, socket: ServedSocket, parts: WorkerParts<'_>) -> io::Result<()> {
        self.tallies.push(Arc::clone(&parts.tally));
        let address = socket.local_address()?;
        let mut worker = Worker::new(socket, parts)?;
        let stop = Arc::clone(&self.stop);
        let thread = thread::Builder::new().name(format!("serve-{}", self.workers.len()));
        let at_address = move |error: io::Error| io::Error::new(error.kind(), format!("at {address}: {error}"));
        self.workers.push(thread.spawn(move || worker.run(&stop).map_err(at_address))?);
        Ok(())
    }

    fn start_ptp(&self, parts: Option<PtpParts>, config: PtpConfig) -> Result<PtpService, ServeError> {
        let shared = PtpShared {
            page: self.config.page.as_path(),
            board: Arc::clone(&self.board),
            stop: Arc::clone(&self.stop),
            table_bytes: (self.config.rate_memory as usize) << 20,
        };
        PtpService::start(parts, config, &shared).map_err(about("a thread that serves PTP"))
    }

    fn fast_path_parts(&self) -> FastPathParts {
        let (board, stop) = (Arc::clone(&self.board), Arc::clone(&self.stop));
        FastPathParts { page: self.config.page.as_path().to_owned(), board, stop }
    }

    /// Whether a thread has ended, which it does by itself only where its socket fails.
    fn has_ended(&self) -> bool {
        self.workers.iter().any(JoinHandle::is_finished) || self.ptp.has_ended()
    }

    fn stop(self) -> Result<(), ServeError> {
        notify_manager(Notice::Stopping);
        self.stop.store(true, Ordering::Relaxed);
        self.fast_path.end();
        self.ptp.join().map_err(about("a thread that serves PTP"))?;
        for worker in self.workers {
            let ended = worker.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")));
            ended.map_err(about("a thread that serves"))?;
        }
        Ok(())
    }

    /// Reads the configuration again. The threads take it over between two batches.
    fn reload(&mut self) -> Result<(), String> {
        notify_manager(Notice::Reloading);
        let outcome = match (self.again)() {
            Ok(settings) => self.take_over(&settings),
            Err(error) => {
                tracing::error!(%error, "the new configuration is refused; the old one stays in force");
                Err(error)
            }
        };
        notify_manager(Notice::Ready);
        outcome
    }

    fn take_over(&mut self, ServeSettings { serve: config, nts, ptp }: &ServeSettings) -> Result<(), String> {
        self.board.change(|present| Policy {
            face: FaceOptions {
                smeared_leap: present.face.smeared_leap,
                reference_id: present.face.reference_id,
                ..policy(config, ptp).face
            },
            followed: present.followed.clone(),
            cookies: present.cookies.clone(),
            interleaved: present.interleaved,
            ..policy(config, ptp)
        });
        for key in needs_restart(&self.config, config) {
            tracing::warn!("`{key}` was changed, which takes a restart");
        }
        if self.ptp.needs_restart(ptp) {
            tracing::warn!("`[ptp]`: all but priorities, class, bounds and time source takes a restart");
        }
        self.reload_nts(nts)?;
        tracing::info!("the configuration was read again");
        Ok(())
    }

    fn reload_nts(&mut self, config: &NtsConfig) -> Result<(), String> {
        let reloaded = match &mut self.nts {
            Some(nts) => nts.reload(config, &self.board),
            None if config.identity().is_ok_and(|identity| identity.is_none()) => Ok(()),
            None => {
                tracing::warn!("`[nts]` was added, which takes a restart");
                Ok(())
            }
        };
        reloaded.map_err(|error| {
            tracing::error!(%error, "the certificate is not renewed; the old one stays in force");
            format!("the certificate is not renewed, the rest is in force: {error}")
        })
    }

    /// Where NTS is served.
    fn place(&self) -> NtsPlace {
        let listen: Vec<_> = self.sockets.iter().filter_map(|socket| socket.local_address().ok()).collect();
        NtsPlace { board: Arc::clone(&self.board), ntp_port: port_for_clients(&listen) }
    }

    fn report(&mut self) -> ServeReport {
        let policy = self.board.read();
        let face = match self.clock.snapshot() {
            Some(snapshot) => {
                let now = try_read(snapshot.counter_id()).unwrap_or_default();
                ServedFace::of(&snapshot, &ReplyMoments::at(now), &policy.face)
            }
            None => ServedFace::unserved(Unserved::NoPage, &policy.face),
        };
        if face.standing.is_err() {
            self.clock.renew();
        }
        let mut listen: Vec<String> = self.sockets.iter().filter_map(named).collect();
        listen.dedup();
        ServeReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: (mono_now() - self.started).as_seconds(),
            page: self.config.page.to_string(),
            listen,
            threads: self.workers.len(),
            claim: face.standing.ok().map(claim_report),
            unserved: face.standing.err().map(|reason| reason.words().to_owned()),
            smear: policy.face.smear.to_string(),
            kernel_dropped: self.sockets.iter().filter_map(|socket| socket.dropped().ok()).map(u64::from).sum(),
            nts: self.nts.as_ref().map(|nts| nts.report(&policy)),
            fast_path: self.fast_path.report(),
            ptp: self.ptp.report(),
            counts: Counted::ALL.iter().map(|(what, name)| ((*name).to_owned(), self.total(*what))).collect(),
        }
    }

    fn total(&self, what: Counted) -> u64 {
        total(self.tallies.iter().map(Arc::as_ref), what)
    }
}

fn named(socket: &ServedSocket) -> Option<String> {
    socket.local_address().ok().map(|address| address.to_string())
}

/// The keys that differ and that a reload does not change.
fn needs_restart(old: &ServeConfig, new: &ServeConfig) -> Vec<&'static str> {
    let same = [
        ("page", old.page == new.page),
        ("daemon", old.daemon == new.daemon),
        ("listen", old.listen == new.listen),
        ("threads", old.threads == new.threads),
        ("rate_memory", old.rate_memory == new.rate_memory),
        ("interleaved", old.interleaved == new.interleaved),
        ("xdp", old.xdp == new.xdp),
        ("xdp_hook", old.xdp_hook == new.xdp_hook),
        ("xdp_renewal", old.xdp_renewal == new.xdp_renewal),
        ("xdp_slew", old.xdp_slew == new.xdp_slew),
        ("xdp_addresses", old.xdp_addresses == new.xdp_addresses),
        ("control", old.control == new.control),
        ("metrics", old.metrics == new.metrics),
    ];
    same.into_iter().filter(|(_, same)| !same).map(|(key, _)| key).collect()
}

impl Answering for Server<'_> {
    fn answer_line(&mut self, line: &[u8], rights: Rights) -> String {
        let answer = match parse_request(line) {
            Ok(Request::Status) => ServeAnswer::ServeStatus(Box::new(self.report())),
            Ok(Request::Reload) if rights == Rights::Look => ServeAnswer::Error {
                message: "only root and the user that ffclock-serve runs as may ask for a reload".to_owned(),
            },
            Ok(Request::Reload) => match self.reload() {
                Ok(()) => ServeAnswer::Reloaded,
                Err(message) => ServeAnswer::Error { message },
            },
            Err(message) => ServeAnswer::Error { message },
        };
        let text = serde_json::to_string(&answer);
        text.map_or_else(|_| "{\"answer\":\"error\",\"message\":\"no JSON form\"}\n".to_owned(), |text| text + "\n")
    }

    fn metrics(&mut self) -> String {
        exposition(&self.report())
    }
}

/// Without a service manager there is nothing to notify, and a failure to notify is no reason to stop.
fn notify_manager(notice: Notice<'_>) {
    if let Err(error) = notify(notice) {
        tracing::warn!(%error, "the service manager cannot be notified");
    }
}

/// The policy of a configuration, of a server that does not know yet whom it follows.
pub(crate) fn policy(config: &ServeConfig, ptp: &PtpConfig) -> Policy {
    Policy {
        face: FaceOptions {
            bound: config.bound,
            bound_max: config.serve_bound_max,
            smear: config.smear,
            smeared_leap: None,
            precision: precision(),
            reference_id: Some(reference_of_host(&ffclock_counter::boot_id())),
        },
        access: AccessList::new(&config.allow, &config.deny),
        limit: LimitOptions::new(config.rate_interval.as_seconds(), config.rate_burst),
        leak: u64::from(config.rate_leak),
        kiss: config.kiss,
        interleaved: config.interleaved,
        ptp: ptp.policy(),
        unsynchronised: config.unsynchronised,
        followed: Vec::new(),
        cookies: None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_names_what_takes_a_restart() {
        let old = ServeConfig::default();
        let mut new = old.clone();
        new.set("threads", "2").unwrap();
        new.set("rate_burst", "7").unwrap();
        assert_eq!(needs_restart(&old, &new), ["threads"]);
    }
}
