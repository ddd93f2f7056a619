//! One session of a run: starts the server and the contestants, watches them, and ends them. A run has one session, or
//! several where it was broken off and resumed.

use super::contestant::{Contestant, Post, chosen, server_command};
use super::interposer::{self, OwnClock};
use super::monitor::{Watched, truth_ns};
use super::oscillator_file::{OscillatorStart, SampledOscillator};
use super::plan::{LivePlan, PathChange};
use super::record::{LookedAt, RunRecord, SampleFile, note};
use super::{clock_file, network};
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
    watched: Watched,
    worker: Worker,
    is_alive: bool,
}

/// What does not change during a session.
struct SessionPlan {
    directory: PathBuf,
    peers: PathBuf,
    library: PathBuf,
    record: RunRecord,
    plan: LivePlan,
    session: u32,
    /// What earlier sessions have watched [s].
    watched_s: f64,
}

/// Runs the next session of a run, until its time is over.
pub(super) fn run(directory: &Path, peers: &Path) -> Result<(), Failure> {
    let directory = fs::canonicalize(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let _lock = lock(&directory)?;
    let record = RunRecord::read(&directory)?;
    let samples = record.samples(&directory)?;
    let last = samples.last();
    let plan = SessionPlan {
        library: interposer::build(&directory)?,
        plan: LivePlan::named(&record.plan)?,
        session: last.map_or(0, |last| last.session + 1),
        watched_s: last.map_or(0.0, |last| last.t_s),
        peers: peers.to_owned(),
        record,
        directory,
    };
    if plan.watched_s >= plan.record.duration_s {
        return Ok(());
    }
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

    fn left(&self) -> Span {
        Span::from_seconds(self.record.duration_s - self.watched_s)
    }

    /// Makes the clock of a contestant; one that it has already goes on. All have the same realisation of the
    /// oscillator, so that they are compared on the same noise.
    fn make_clock(&self, own: &OwnClock, spec: &OscillatorSpec) -> Result<(), Failure> {
        let host_ns = truth_ns()?;
        let earlier = own.oscillator.exists().then(|| SampledOscillator::read(&own.oscillator)).transpose()?;
        let raw_ns = earlier.map_or(RAW_BEGIN_NS, |earlier| earlier.raw_at(host_ns));
        let seed = self.record.seed.wrapping_add(u64::from(self.session) << 32);
        let length = self.left() + Span::from_secs(60);
        let start = OscillatorStart { host_ns, raw_ns };
        SampledOscillator::sample(Oscillator::new(spec, seed), start, length).write(&own.oscillator)?;
        if own.clock.exists() { Ok(()) } else { clock_file::create(&own.clock, raw_ns, host_ns + START_ERROR_NS) }
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
    running: Vec<Running>,
    begun: Instant,
    path: PathChange,
    /// The host's clock less its monotonic clock.
    host_offset: Span,
}

impl<'a> Session<'a> {
    fn start(plan: &'a SessionPlan) -> Result<Self, Failure> {
        plan.note(plan.watched_s, &format!("session {} begins", plan.session))?;
        let directory = plan.own_directory("server")?;
        let command = server_command(&directory, &plan.peers)?;
        let log = directory.join("log");
        let rights = WorkerRights::AllButTheClock;
        let task = Task { name: "the server", command: &command, log: &log, rights };
        let server = Worker::prepare(&task, WorkerNetwork::Own)?;
        let (host_offset, begun) = (host_offset(), Instant::now());
        let mut session = Session { plan, server, running: Vec::new(), begun, path: PathChange::Join, host_offset };
        for (number, contestant) in chosen(&plan.record.contestants)?.into_iter().enumerate() {
            match session.prepare(contestant, number) {
                Ok(running) => session.running.push(running),
                Err(failure) => plan.note(plan.watched_s, &format!("{} is left out: {failure}", contestant.name))?,
            }
        }
        session.server.release()?;
        sleep(SERVER_START);
        session.running.iter_mut().try_for_each(|running| running.worker.release())?;
        session.begun = Instant::now();
        Ok(session)
    }

    fn prepare(&self, contestant: Contestant, number: usize) -> Result<Running, Failure> {
        let directory = self.plan.own_directory(contestant.name)?;
        let own = OwnClock::within(&directory);
        let spec = OscillatorSpec::default();
        self.plan.make_clock(&own, &spec)?;
        let page = contestant.page(&directory);
        // A page of an earlier session would be taken for this one's.
        if let Some(page) = page.as_ref().filter(|page| page.exists()) {
            fs::remove_file(page)?;
        }
        let server = network::server_address(number);
        let post = Post { directory: &directory, server, plan: self.plan.plan, peers: &self.plan.peers };
        let command = contestant.prepare(&post, spec.skew.fraction() * 1e6)?;
        let command = own.command(&self.plan.library, command);
        let log = directory.join("log");
        let task = Task { name: contestant.name, command: &command, log: &log, rights: contestant.rights() };
        let worker = Worker::prepare(&task, WorkerNetwork::Own)?;
        network::join(&self.server, &worker, number)?;
        let watched = Watched::open(&own, page)?;
        Ok(Running { number, watched, worker, is_alive: true })
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
        self.plan.note(self.t_s(), &format!("session {} is complete", self.plan.session))
    }

    fn follow_timetable(&mut self) -> Result<(), Failure> {
        let length = Span::from_seconds(self.plan.record.duration_s);
        let wanted = self.plan.plan.state_at(Span::from_seconds(self.t_s()), length);
        if wanted == self.path {
            return Ok(());
        }
        for running in &self.running {
            network::change(&self.server, running.number, wanted)?;
        }
        self.path = wanted;
        self.plan.note(self.t_s(), wanted.words())
    }

    fn look(&mut self) -> Result<Vec<LookedAt>, Failure> {
        let (session, t_s) = (self.plan.session, self.t_s());
        let mut looks = Vec::new();
        for running in self.running.iter_mut().filter(|running| running.is_alive) {
            let Some(seen) = running.watched.look()? else { continue };
            let (error_ns, bound_ns) = (seen.error_ns, seen.bound_ns);
            looks.push(LookedAt { session, t_s, contestant: running.number, error_ns, bound_ns });
        }
        Ok(looks)
    }

    /// A contestant that ended is left out from then on; without the server nothing can go on, nor with a host whose
    /// clock, the truth, was set.
    fn check(&mut self) -> Result<(), Failure> {
        let t_s = self.t_s();
        for running in self.running.iter_mut().filter(|running| running.is_alive) {
            if let Err(failure) = running.worker.check_alive() {
                running.is_alive = false;
                self.plan.note(t_s, &failure.to_string())?;
            }
        }
        self.server.check_alive()?;
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
        self.running.iter_mut().filter(|running| running.is_alive).for_each(|running| running.worker.terminate());
    }
}

/// The host's clock less its monotonic clock: it changes where the clock is set, not where it is slewed.
fn host_offset() -> Span {
    let offset = || {
        let before = ffclock_sys::mono_now().since_origin();
        let now = ffclock_sys::system_utc_now().since_origin();
        let after = ffclock_sys::mono_now().since_origin();
        (after - before, now - before)
    };
    let narrowest = (0..5).map(|_| offset()).min_by_key(|(width, _)| *width);
    narrowest.map_or(Span::ZERO, |(_, offset)| offset)
}
