//! One session of a run: starts the server and the contestants, watches them, and ends them. A run has one session, or
//! several where it was broken off and resumed.

use super::clock_file::{self, ClockStart};
use super::contestant::{Contestant, Post, chosen, master_command, server_command};
use super::interposer::{self, OwnClock};
use super::monitor::{Watched, truth_ns};
use super::netem::Timetable;
use super::network;
use super::oscillator_file::{OscillatorStart, SampledOscillator};
use super::path_file::{self, PathTime};
use super::plan::{LivePath, LivePlan, Load, PathChange};
use super::record::{LookedAt, RunRecord, SampleFile, note};
use super::relay::{self, Relay};
use super::router::{GuestRoute, Router, RouterKind};
use super::witness::{Witness, WitnessKind, Witnesses};
use crate::failure::Failure;
use crate::lab::worker::{Task, Worker, WorkerNetwork, WorkerRights, namespaces_permitted};
use ffclock_sim::Oscillator;
use ffclock_sim::scenario::OscillatorSpec;
use ffclock_units::Span;
use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Between two looks at all clocks.
const SAMPLING: Duration = Duration::from_millis(250);
/// Between two lines of progress, and between two looks whether all run.
const PROGRESS: Duration = Duration::from_secs(10);
/// The server listens by then.
const SERVER_START: Duration = Duration::from_millis(400);
/// What a raw counter shows at the begin of a run: its machine was switched on a while ago.
const RAW_BEGIN_NS: i64 = 1_000_000_000_000;
/// How wrong a system clock is at the begin of a run: as a battery-backed clock and a quick first setting leave it.
const START_ERROR_NS: i64 = 1_000_000;
/// The host's clock against its monotonic clock moves by more only where it was set.
const SET_BY: Duration = Duration::from_millis(1);

/// A contestant that runs, or has run.
struct Running {
    number: usize,
    name: &'static str,
    /// One end of each link on the way to the server, and the process whose network it is in.
    links: Vec<(u32, String)>,
    watched: Watched,
    worker: Worker,
    /// The host between it and the server, where there is one.
    relay: Option<Worker>,
    follows_master: bool,
    /// Who watches its clock as it does itself, to see how wrong the monitor is.
    witness: Option<Witness>,
    is_alive: bool,
}

impl Running {
    /// Fails when it cannot be watched any more.
    fn check(&mut self) -> Result<(), Failure> {
        self.relay.as_mut().map_or(Ok(()), Worker::check_alive)?;
        self.worker.check_alive()?;
        match self.links.iter().find(|(host, device)| !network::has_device(*host, device)) {
            Some((_, device)) => Err(format!("{} ended: its link {device} is gone", self.name).into()),
            None => Ok(()),
        }
    }
}

/// What does not change during a session.
struct SessionPlan {
    directory: PathBuf,
    peers: PathBuf,
    /// What boots a guest.
    guest: PathBuf,
    library: PathBuf,
    record: RunRecord,
    plan: LivePlan,
    session: u32,
    /// What earlier sessions have watched [s].
    watched_s: f64,
    begun: Instant,
}

/// Runs the next session of a run, until its time is over.
pub(super) fn run(directory: &Path, peers: &Path, guest: &Path) -> Result<(), Failure> {
    let begun = Instant::now();
    let directory = fs::canonicalize(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let _lock = lock(&directory)?;
    let record = RunRecord::read(&directory)?;
    let samples = record.samples(&directory)?;
    if record.is_watched_by(&samples) {
        return Ok(());
    }
    let last = samples.last();
    let plan = SessionPlan {
        library: interposer::build(&directory)?,
        plan: LivePlan::named(&record.plan)?.polled(record.poll_log2),
        session: last.map_or(0, |last| last.session + 1),
        watched_s: last.map_or(0.0, |last| last.t_s),
        peers: peers.to_owned(),
        guest: guest.to_owned(),
        record,
        directory,
        begun,
    };
    namespaces_permitted()?;
    let ended = Session::start(&plan).and_then(|mut session| session.watch());
    if let Err(failure) = &ended {
        let said = note(&plan.directory, plan.watched_s, &format!("session {} failed: {failure}", plan.session));
        said.map_err(|second| format!("{failure}; {second}"))?;
    }
    ended
}

/// Two sessions of one run would write into each other's files.
fn lock(directory: &Path) -> Result<File, Failure> {
    let file = File::open(directory.join("run.json"))
        .map_err(|error| format!("{}: {error}; there is no run here", directory.join("run.json").display()))?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| format!("{}: this run is going on in another process", directory.display()))?;
    Ok(file)
}

impl SessionPlan {
    /// The directory of the server or of a contestant, closed to others, as chronyd demands.
    fn own_directory(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.directory.join(name);
        if !path.exists() {
            fs::DirBuilder::new().mode(0o750).create(&path)?;
        }
        Ok(path)
    }

    /// The same before its daemon starts. What a session that was killed left there as its number may be another
    /// program's by now, and a daemon that looks for itself would find that. No other process runs this run.
    fn post_directory(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.own_directory(name)?;
        let is_number = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "pid");
        fs::read_dir(&path)?.flatten().map(|entry| entry.path()).filter(is_number).try_for_each(fs::remove_file)?;
        Ok(path)
    }

    fn left(&self) -> Span {
        Span::from_seconds(self.record.duration_s - self.watched_s)
    }

    /// Makes the clock of a host; one that it has already goes on. Those of the same seed have the same realisation of
    /// the oscillator, so that they are compared on the same noise.
    fn make_clock(&self, own: &OwnClock, seed: u64, frequency: f64) -> Result<(), Failure> {
        let host_ns = truth_ns()?;
        let earlier = own.oscillator.exists().then(|| SampledOscillator::read(&own.oscillator)).transpose()?;
        let raw_ns = earlier.map_or(RAW_BEGIN_NS, |earlier| earlier.raw_at(host_ns));
        let seed = seed.wrapping_add(u64::from(self.session) << 32);
        let length = self.left() + Span::from_secs(60);
        let start = OscillatorStart { host_ns, raw_ns };
        SampledOscillator::sample(Oscillator::new(&OscillatorSpec::default(), seed), start, length)
            .write(&own.oscillator)?;
        if own.clock.exists() {
            return clock_file::forget_lock(&own.clock);
        }
        clock_file::create(&own.clock, ClockStart { raw_ns, shown_ns: host_ns + START_ERROR_NS, frequency })
    }

    /// The router of the plan, where it has one; its devices are still to be made.
    fn prepare_router(&self) -> Result<Option<(Worker, Router)>, Failure> {
        let netem = self.record.netem.as_deref();
        if self.plan.path == LivePath::Direct && netem.is_none() {
            return Ok(None);
        }
        let directory = self.own_directory("router")?;
        let time =
            PathTime { length: Span::from_seconds(self.record.duration_s), begin: Span::from_seconds(self.watched_s) };
        let seed = self.record.seed;
        let router = match self.record.router {
            RouterKind::Own => path_file::prepare(&directory, &self.plan, time, seed)?.map(Router::Program),
            RouterKind::Uml => Timetable::chosen(netem, &self.plan, time.length, seed)?
                .map(|timetable| GuestRoute::prepare(&directory, &self.guest, timetable, time.begin))
                .transpose()?
                .map(Router::Guest),
        };
        let Some(router) = router else { return Ok(None) };
        let (command, log) = (router.command(self.record.contestants.len())?, directory.join("log"));
        let rights = WorkerRights::AllButTheClock;
        let task = Task { name: "the router", command: &command, log: &log, rights };
        Ok(Some((Worker::prepare(&task, WorkerNetwork::Own)?, router)))
    }

    /// Starts the load of the run.
    fn start_burners(&self) -> Result<Vec<Worker>, Failure> {
        let mut burners = Vec::new();
        for load in &self.record.load {
            let directory = self.own_directory(Load::DIRECTORY)?;
            let (script, count) = load.burner();
            let command = ["sh", "-c", script].map(str::to_owned);
            let command: Vec<String> = command.into_iter().chain([directory.display().to_string()]).collect();
            let log = directory.join("log");
            for _ in 0..count {
                let task = Task { name: "a burner", command: &command, log: &log, rights: WorkerRights::None };
                let mut burner = Worker::prepare(&task, WorkerNetwork::Shared)?;
                burner.release()?;
                burners.push(burner);
            }
        }
        Ok(burners)
    }

    fn note(&self, t_s: f64, what: &str) -> Result<(), Failure> {
        eprintln!("{t_s:>8.1} s  {what}");
        note(&self.directory, t_s, what)
    }
}

/// Everything that runs in a session.
struct Session<'a> {
    plan: &'a SessionPlan,
    server: Worker,
    /// The master of PTP beside the server, where it has followers.
    master: Option<Worker>,
    /// What lies between the server and the contestants, where the links are not direct.
    router: Option<(Worker, Router)>,
    /// What burns on the host.
    burners: Vec<Worker>,
    running: Vec<Running>,
    begun: Instant,
    /// All clocks were read once.
    is_ready: bool,
    path: PathChange,
    has_second_server: bool,
    /// The host's clock less its monotonic clock.
    host_offset: Span,
}

impl<'a> Session<'a> {
    fn start(plan: &'a SessionPlan) -> Result<Self, Failure> {
        plan.note(plan.watched_s, &format!("session {} begins", plan.session))?;
        let directory = plan.post_directory("server")?;
        let command = server_command(&directory, &plan.peers)?;
        let log = directory.join("log");
        let rights = WorkerRights::AllButTheClock;
        let task = Task { name: "the server", command: &command, log: &log, rights };
        let server = Worker::prepare(&task, WorkerNetwork::Own)?;
        let mut session = Session {
            plan,
            server,
            master: None,
            router: plan.prepare_router()?,
            burners: Vec::new(),
            running: Vec::new(),
            begun: Instant::now(),
            is_ready: false,
            path: PathChange::Join,
            has_second_server: false,
            host_offset: host_offset(),
        };
        for (number, contestant) in chosen(&plan.record.contestants)?.into_iter().enumerate() {
            match session.prepare(contestant, number) {
                Ok(running) => session.running.push(running),
                Err(failure) => plan.note(plan.watched_s, &format!("{} is left out: {failure}", contestant.name))?,
            }
        }
        if let Some((worker, router)) = &mut session.router {
            router.write_path()?;
            worker.release()?;
            router.wait_until_ready(|| worker.check_alive())?;
        }
        session.server.release()?;
        session.master = session.start_master()?;
        sleep(SERVER_START);
        session.running.iter_mut().filter_map(|running| running.relay.as_mut()).try_for_each(Worker::release)?;
        session.running.iter_mut().try_for_each(|running| running.worker.release())?;
        session.burners = plan.start_burners()?;
        let wanted = plan.record.witnesses.map(|kind| (kind == WitnessKind::Guest).then_some(plan.guest.as_path()));
        let witnesses = wanted.map(|boot| Witnesses::prepare(&plan.library, SAMPLING, boot)).transpose()?;
        session.begin()?;
        witnesses.map_or(Ok(()), |witnesses| session.place(&witnesses))?;
        Ok(session)
    }

    /// The time of the session begins: that of the looks, which witnesses expect from now on, and that of the path.
    fn begin(&mut self) -> Result<(), Failure> {
        self.begun = Instant::now();
        self.router.as_ref().map_or(Ok(()), |(_, router)| router.begin())
    }

    /// Places those who see how wrong the monitor is.
    fn place(&mut self, witnesses: &Witnesses) -> Result<(), Failure> {
        for running in &mut self.running {
            let directory = self.plan.own_directory(running.name)?;
            running.witness = Some(witnesses.place(&running.worker, &directory, running.watched.clock_read())?);
        }
        Ok(())
    }

    /// The master of PTP, on the links of those who follow it.
    fn start_master(&self) -> Result<Option<Worker>, Failure> {
        let followers = self.running.iter().filter(|running| running.follows_master);
        let devices: Vec<String> = followers.map(|running| network::server_end(running.number)).collect();
        if devices.is_empty() {
            return Ok(None);
        }
        let directory = self.plan.own_directory("server")?;
        let post = Post { directory: &directory, servers: Vec::new(), plan: self.plan.plan, peers: &self.plan.peers };
        let command = master_command(&post, &devices)?;
        let log = directory.join("ptp4l-log");
        let rights = WorkerRights::AllButTheClock;
        Worker::beside(&self.server, &Task { name: "the master of PTP", command: &command, log: &log, rights })
            .map(Some)
    }

    fn prepare(&self, contestant: Contestant, number: usize) -> Result<Running, Failure> {
        let directory = self.plan.post_directory(contestant.name)?;
        let own = OwnClock::within(&directory);
        let skew_ppm = OscillatorSpec::default().skew.fraction() * 1e6;
        self.plan.make_clock(&own, self.plan.record.seed, contestant.frequency_left(skew_ppm))?;
        let page = contestant.page(&directory);
        // A page of an earlier session would be taken for this one's.
        if let Some(page) = page.as_ref().filter(|page| page.exists()) {
            fs::remove_file(page)?;
        }
        let relay = contestant.behind.map(|relay| self.prepare_relay(relay, &contestant, number)).transpose()?;
        let link = if relay.is_some() { network::behind_relay(number) } else { number };
        let has_second = self.has_second_link(relay.as_ref());
        let second = has_second.then(|| network::second_address(number));
        let servers = [network::server_address(link)].into_iter().chain(second).collect();
        let post = Post { directory: &directory, servers, plan: self.plan.plan, peers: &self.plan.peers };
        let command = contestant.prepare(&post, skew_ppm)?;
        let command = own.command(&self.plan.library, command);
        let log = directory.join("log");
        let task = Task { name: contestant.name, command: &command, log: &log, rights: contestant.rights() };
        let worker = Worker::prepare(&task, WorkerNetwork::Own)?;
        match &relay {
            Some(relay) => network::join(relay, &worker, link)?,
            None => self.join(&worker, link)?,
        }
        if has_second {
            network::join_second(&self.server, &worker, number)?;
        }
        let links = self.links(relay.as_ref(), number);
        let watched = Watched::open(&own, page)?.bounded(contestant.bound(&directory));
        let (name, follows_master) = (contestant.name, contestant.follows_master());
        Ok(Running { number, name, links, watched, worker, relay, follows_master, witness: None, is_alive: true })
    }

    /// Whether a contestant reaches the second server of the plan: one behind a relay asks that alone.
    fn has_second_link(&self, relay: Option<&Worker>) -> bool {
        relay.is_none() && self.plan.plan.second_server.is_some()
    }

    /// The links between a contestant and the server, each by one of its ends: a link that loses one loses both.
    fn links(&self, relay: Option<&Worker>, number: usize) -> Vec<(u32, String)> {
        let routed = self.router.as_ref().map(|(router, _)| (router.pid(), network::router_end(number)));
        let relayed = relay.map(|relay| (relay.pid(), network::server_end(network::behind_relay(number))));
        let first = (self.server.pid(), network::server_end(number));
        let second = self.has_second_link(relay).then(|| (self.server.pid(), network::second_end(number)));
        let tapped = self.router.as_ref().filter(|(_, router)| router.needs_taps());
        let bridges = tapped.iter().flat_map(|(worker, _)| network::bridges(number).map(|name| (worker.pid(), name)));
        [Some(first), second, routed, relayed].into_iter().flatten().chain(bridges).collect()
    }

    /// The relay before a contestant, joined to the server.
    fn prepare_relay(&self, relay: Relay, contestant: &Contestant, number: usize) -> Result<Worker, Failure> {
        let name = format!("{}/{}", contestant.name, Relay::DIRECTORY);
        let directory = self.plan.post_directory(&name)?;
        let own = OwnClock::within(&directory);
        self.plan.make_clock(&own, self.plan.record.seed.wrapping_add(relay::OWN_SEED), 0.0)?;
        let servers = vec![network::server_address(number)];
        let post = Post { directory: &directory, servers, plan: self.plan.plan, peers: &self.plan.peers };
        let command = relay.prepare(&post, network::behind_relay(number))?;
        let command = own.command(&self.plan.library, command);
        let log = directory.join("log");
        // To serve, it needs the port.
        let task = Task { name: &name, command: &command, log: &log, rights: WorkerRights::AllButTheClock };
        let worker = Worker::prepare(&task, WorkerNetwork::Own)?;
        self.join(&worker, number)?;
        Ok(worker)
    }

    /// Joins a host to the server, by the path of the plan.
    fn join(&self, worker: &Worker, number: usize) -> Result<(), Failure> {
        match &self.router {
            Some((router, kind)) => {
                network::join_by(router, &self.server, worker, number)?;
                if kind.needs_taps() { network::add_taps(router, number) } else { Ok(()) }
            }
            None => network::join(&self.server, worker, number),
        }
    }

    /// Since the begin of the run.
    fn t_s(&self) -> f64 {
        self.plan.watched_s + self.begun.elapsed().as_secs_f64()
    }

    /// Watches until the run's time is over.
    fn watch(&mut self) -> Result<(), Failure> {
        let mut samples = SampleFile::append(&self.plan.directory, &self.plan.record)?;
        let (mut next_look, mut next_line) = (Duration::ZERO, PROGRESS);
        while self.t_s() < self.plan.record.duration_s {
            self.follow_timetable()?;
            let looks = self.look()?;
            samples.write(&looks)?;
            if self.begun.elapsed() >= next_line {
                self.check()?;
                self.show(&looks);
                next_line += PROGRESS;
            }
            next_look += SAMPLING;
            sleep(next_look.saturating_sub(self.begun.elapsed()));
        }
        // What ended since the last look must not count as having run to the end.
        self.check()?;
        self.plan.note(self.t_s(), &format!("session {} is complete", self.plan.session))
    }

    fn follow_timetable(&mut self) -> Result<(), Failure> {
        let [length, now] = [self.plan.record.duration_s, self.t_s()].map(Span::from_seconds);
        let wanted = self.plan.plan.state_at(now, length);
        if wanted != self.path {
            self.change_links(network::server_end, wanted)?;
            self.path = wanted;
            self.plan.note(self.t_s(), wanted.words())?;
        }
        if self.plan.plan.has_second_server_at(now, length) && !self.has_second_server {
            self.change_links(network::second_end, PathChange::Join)?;
            self.has_second_server = true;
            self.plan.note(self.t_s(), "the second server is there")?;
        }
        Ok(())
    }

    /// Changes one link of each contestant that runs: that whose end at the server has the name that its number gives.
    fn change_links(&mut self, end: fn(usize) -> String, change: PathChange) -> Result<(), Failure> {
        // Who ended took its link away.
        self.check()?;
        let alive = self.running.iter().filter(|running| running.is_alive);
        let ends = alive.flat_map(|running| running.links.iter().filter(|(_, device)| *device == end(running.number)));
        ends.into_iter().try_for_each(|(_, end)| network::change(&self.server, end, change))
    }

    fn look(&mut self) -> Result<Vec<LookedAt>, Failure> {
        let (plan, session, t_s) = (self.plan, self.plan.session, self.t_s());
        let mut looks = Vec::new();
        for running in self.running.iter_mut().filter(|running| running.is_alive) {
            let seen = match running.watched.look() {
                Ok(Some(seen)) => seen,
                Ok(None) => continue,
                // Its program may have been killed in the middle of a change of its clock.
                Err(failure) => {
                    running.is_alive = false;
                    plan.note(t_s, &format!("{} ended: {failure}", running.name))?;
                    continue;
                }
            };
            running.witness.iter_mut().try_for_each(|witness| witness.hear(&seen))?;
            let (error_ns, bound_ns) = (seen.error_ns, seen.bound_ns);
            looks.push(LookedAt { session, t_s, contestant: running.number, error_ns, bound_ns });
        }
        if !self.is_ready && looks.len() == self.running.len() {
            self.is_ready = true;
            let took_s = self.plan.begun.elapsed().as_secs_f64();
            self.plan.note(t_s, &format!("all clocks are read ({}), {took_s:.1} s after the command", looks.len()))?;
        }
        Ok(looks)
    }

    /// A contestant that ended, or that has no link any more, is left out from then on; without the server nothing can
    /// go on, nor with a host whose clock, the truth, was set.
    fn check(&mut self) -> Result<(), Failure> {
        let t_s = self.t_s();
        self.server.check_alive()?;
        let router = self.router.as_mut().map(|(router, _)| router);
        let mut others = self.master.as_mut().into_iter().chain(router).chain(&mut self.burners);
        others.try_for_each(Worker::check_alive)?;
        for running in self.running.iter_mut().filter(|running| running.is_alive) {
            if let Err(failure) = running.check() {
                running.is_alive = false;
                self.plan.note(t_s, &failure.to_string())?;
            }
            if let Some(Err(failure)) = running.witness.as_mut().map(Witness::check_alive) {
                running.witness = None;
                self.plan.note(t_s, &format!("{}: {failure}", running.name))?;
            }
        }
        if !self.running.iter().any(|running| running.is_alive) {
            return Err("no contestant is left".into());
        }
        let moved = (host_offset() - self.host_offset).abs();
        if moved > Span::from_nanos(SET_BY.as_nanos() as i128) {
            return Err(format!("the host's clock was set, by {} s", moved.as_seconds()).into());
        }
        Ok(())
    }

    fn show(&self, looks: &[LookedAt]) {
        let name = |number: usize| self.plan.record.contestants.get(number).map_or("", String::as_str);
        let cells =
            looks.iter().map(|look| format!("{} {:+.2} us", name(look.contestant), look.error_ns as f64 * 1e-3));
        eprintln!("{:>8.1} s  {}", self.t_s(), cells.collect::<Vec<_>>().join("  "));
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // Cleanly, so that drift files are written; what does not end is killed with its worker.
        self.running.iter_mut().filter(|running| running.is_alive).for_each(|running| {
            running.worker.terminate();
            running.relay.iter_mut().for_each(Worker::terminate);
        });
        // The host gets its disk back; a session that is killed leaves the file to the next.
        self.burners.clear();
        let _ = fs::remove_file(self.plan.directory.join(Load::DIRECTORY).join(Load::FILE));
        if let Some((worker, router)) = &mut self.router {
            if worker.check_alive().is_ok() {
                router.leave();
            }
            worker.terminate();
            let said = router.said(&self.plan.directory.join("router"));
            // That a note cannot be written does not change what was measured.
            let _ = self.plan.note(self.t_s(), &format!("the router: {said}"));
        }
    }
}

/// The host's clock less its monotonic clock: it changes where the clock is set, not where it is slewed.
pub(super) fn host_offset() -> Span {
    let offset = || {
        let before = ffclock_sys::mono_now().since_origin();
        let now = ffclock_sys::system_utc_now().since_origin();
        let after = ffclock_sys::mono_now().since_origin();
        (after - before, now - before)
    };
    let narrowest = (0..5).map(|_| offset()).min_by_key(|(width, _)| *width);
    narrowest.map_or(Span::ZERO, |(_, offset)| offset)
}
