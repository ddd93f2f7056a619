//! The keeper among servers and witnesses that a test controls: breaks of the counter's run, leap seconds, addresses
//! that change.

mod leap_seconds;
mod log_and_record;
mod machine;
mod numbering;
mod polling;
mod pools;
mod rate;
mod remembered;
#[path = "../../tests/common/server.rs"]
mod server;
mod slowdowns;
mod usefulness;
mod voting;

use super::*;
use crate::control::Reporter;
use crate::host_counter::Cpus;
use crate::kernel_clock::KernelClock;
use crate::memory::{Circumstances, RateStore};
use crate::resolve::LookUp;
use ffclock_control::protocol::{Agreement, Algorithm, BeliefReport, QuorumReport, SourceState, StatusReport};
use ffclock_counter::ffcounter::ModuleCounter;
use ffclock_counter::{
    Choice, Chosen, CounterId, CpuDisagreement, HostReadings, Nominal, NominalError, Observation, Readings, Trust,
};
use ffclock_freebsd::{KernelEstimate, KernelStatus};
use ffclock_page::ReadError;
use ffclock_sys::{Interest, SharedPageReader};
use ffclock_trace::TraceReader;
use ffclock_units::{Counter, LeapAnnouncement, LeapStep, Rate, RateMemory, Reading, Ticks};
use ffclock_wire::LeapIndicator;
use server::{TestServer, Truth};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the rig changes in the host's witnesses.
#[derive(Clone, Debug)]
struct Tampering {
    jumped: Ticks,
    stalled_at: Option<Counter>,
    suspended: Span,
    clocksource: String,
    trust: Trust,
    chosen: CounterId,
    disagreement: Option<CpuDisagreement>,
    has_kernel_clock: bool,
    measured: u32,
    handed_to_kernel: Vec<KernelEstimate>,
    /// The addresses of names; other names are the system's.
    names: Arc<Mutex<BTreeMap<String, Vec<IpAddr>>>>,
}

/// The host, except for what a test tampers with.
#[derive(Clone)]
struct Rig(Rc<RefCell<Tampering>>);

struct RigReadings {
    host: HostReadings,
    rig: Rig,
}

impl Readings for RigReadings {
    fn observe(&mut self) -> Observation {
        let seen = self.host.observe();
        let tampering = self.rig.0.borrow();
        let by = tampering.suspended;
        Observation {
            counter: tampering.stalled_at.unwrap_or(seen.counter + tampering.jumped),
            suspended: seen.suspended.map(|(at_least, at_most)| (at_least + by, at_most + by)),
            ..seen
        }
    }

    fn clocksource(&mut self) -> Option<String> {
        Some(self.rig.0.borrow().clocksource.clone())
    }

    fn trust(&mut self) -> Option<Trust> {
        Some(self.rig.0.borrow().trust.clone())
    }
}

impl Host for Rig {
    fn choose(&self, choice: Choice) -> Chosen {
        let kind = match choice {
            Choice::Auto => self.0.borrow().chosen,
            // A kernel whose own counter is the TSC.
            Choice::Fixed(CounterId::Module(ModuleCounter::Active)) => CounterId::CPU,
            Choice::Fixed(kind) => kind,
        };
        Chosen { kind, reason: "the test says so".to_owned(), checks: Vec::new() }
    }

    fn nominal(&self, kind: CounterId) -> Result<Nominal, NominalError> {
        self.tamper(|tampering| tampering.measured += 1);
        ffclock_counter::nominal(kind)
    }

    fn witnesses(&self, kind: CounterId) -> Box<dyn Readings> {
        Box::new(RigReadings { host: HostReadings::new(kind), rig: self.clone() })
    }

    fn cpus(&self, kind: CounterId) -> Option<Box<dyn Cpus>> {
        (kind == CounterId::CPU).then(|| -> Box<dyn Cpus> { Box::new(self.clone()) })
    }

    fn kernel_clock(&self) -> Option<Box<dyn KernelClock>> {
        self.0.borrow().has_kernel_clock.then(|| -> Box<dyn KernelClock> { Box::new(self.clone()) })
    }

    fn look_up(&self) -> LookUp {
        let names = self.0.borrow().names.clone();
        Arc::new(move |name, port| {
            let found = names.lock().unwrap().get(name).cloned().ok_or("the test has no such name")?;
            Ok(found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
        })
    }
}

impl KernelClock for Rig {
    fn follow(&mut self, estimate: &KernelEstimate) -> std::io::Result<()> {
        self.tamper(|tampering| tampering.handed_to_kernel.push(*estimate));
        Ok(())
    }
}

impl Cpus for Rig {
    fn look(&mut self) -> Option<CpuDisagreement> {
        self.0.borrow().disagreement
    }
}

impl Rig {
    fn new() -> Self {
        let (jumped, clocksource) = (Ticks::ZERO, "tsc".to_owned());
        let (chosen, trust) = (CounterId::CPU, Trust::Trusted);
        let (stalled_at, disagreement, suspended) = (None, None, Span::ZERO);
        Rig(Rc::new(RefCell::new(Tampering {
            jumped,
            stalled_at,
            suspended,
            clocksource,
            trust,
            chosen,
            disagreement,
            has_kernel_clock: true,
            measured: 0,
            handed_to_kernel: Vec::new(),
            names: Arc::default(),
        })))
    }

    fn tamper(&self, change: impl FnOnce(&mut Tampering)) {
        change(&mut self.0.borrow_mut());
    }
}

fn same_again() -> Result<Config, String> {
    Err("there is no other configuration".to_owned())
}

static SAME_AGAIN: fn() -> Result<Config, String> = same_again;

/// A keeper, its servers and its rig.
struct Case {
    directory: PathBuf,
    servers: Vec<TestServer>,
    rig: Rig,
    keeper: Keeper<'static>,
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Case {
    fn start(name: &str, servers: Vec<TestServer>, options: &str) -> Self {
        Self::start_remembering(name, servers, options, None)
    }

    fn start_remembering(name: &str, servers: Vec<TestServer>, options: &str, memory: Option<RateMemory>) -> Self {
        let directory = Self::directory(name);
        let rig = Rig::new();
        let options = options.replace("DIRECTORY", &directory.display().to_string());
        let config = Config::parse(&config_text(&directory, &servers, &options)).unwrap();
        if let Some(memory) = memory {
            let (boot, clocksource) = (ffclock_counter::boot_id(), Some("tsc".to_owned()));
            let machine = host_counter::vm_clock(&config.daemon).map(|clock| clock.mark());
            let circumstances = Circumstances { counter: CounterId::CPU, boot, clocksource, machine, suspended: None };
            RateStore::new(&directory.join("state"), circumstances).save(memory).unwrap();
        }
        let keeper = Keeper::start_on(Box::new(rig.clone()), config, &SAME_AGAIN).unwrap();
        Case { directory, servers, rig, keeper }
    }

    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("ffclock-keeper-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        directory
    }

    /// One turn of the event loop.
    fn turn(&mut self) {
        let soon = ffclock_sys::mono_now() + Span::from_millis(20);
        let sockets = self.keeper.peers.iter().flat_map(Peer::descriptors).flatten();
        let descriptors = std::iter::once(self.keeper.resolver.descriptor()).chain(sockets);
        let mut interests: Vec<Interest<'_>> = descriptors.map(Interest::readable).collect();
        ffclock_sys::poll(&mut interests, Some(soon.min(self.keeper.next_timeout()))).unwrap();
        let is_resolved = interests[0].is_ready();
        self.keeper.wake(ffclock_sys::mono_now());
        if is_resolved {
            self.keeper.resolved();
        }
        for server in 0..self.keeper.peers.len() {
            self.keeper.readable(server);
        }
        self.keeper.timeout();
    }

    fn run_until(&mut self, what: &str, pleases: impl Fn(&StatusReport) -> bool) -> StatusReport {
        self.run_until_there_is(what, |keeper| Some(keeper.status()).filter(&pleases))
    }

    fn run_until_there_is<T>(&mut self, what: &str, look: impl Fn(&Keeper<'_>) -> Option<T>) -> T {
        let patience = ffclock_sys::mono_now() + Span::from_secs(20);
        loop {
            self.turn();
            if let Some(found) = look(&self.keeper) {
                return found;
            }
            assert!(ffclock_sys::mono_now() < patience, "never: {what}\n{:#?}", self.keeper.status());
        }
    }

    fn page(&self) -> SharedPageReader {
        SharedPageReader::open(&self.directory.join("page")).unwrap()
    }

    fn reading(&self) -> Result<Reading, ReadError> {
        let counter = self.keeper.host_counter.read();
        Reader::new(self.page().words()).reading_at(counter, self.keeper.host_counter.kind())
    }

    fn leap_step(&self) -> LeapStep {
        Reader::new(self.page().words()).snapshot().unwrap().leap()
    }

    fn recorded(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.directory.join("record")).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    }
}

fn config_text(directory: &Path, servers: &[TestServer], options: &str) -> String {
    let directory = directory.display();
    let mut text = format!(
        "page = \"{directory}/page\"\ncontrol = \"off\"\nstate = \"{directory}/state\"\n{options}\n[source]\npoll = \"125 ms\"\n\
         reply_timeout = \"50 ms\"\nunreachable_after = 4\nburst_count = 0\n"
    );
    for server in servers {
        text += &format!("[[server]]\naddress = \"{}\"\nport = {}\n", server.address.ip(), server.address.port());
    }
    text
}

fn one_server(name: &str, options: &str) -> (Case, Truth) {
    let truth = Truth::beginning_now(CounterId::CPU);
    let servers = vec![TestServer::start("127.0.0.1:0", truth)];
    (Case::start(name, servers, options), truth)
}

fn used(status: &StatusReport) -> u64 {
    status.sources.iter().map(|source| source.used).sum()
}

fn has_event(status: &StatusReport, text: &str) -> bool {
    status.events.iter().any(|event| event.text.contains(text))
}

/// Tampers with the host, and checks what readers and status say before and after the next exchange. Returns what was
/// kept of the rate: 1 ppm was remembered.
fn breaks(name: &str, tamper: impl FnOnce(&Case), said: &str) -> Option<RateMemory> {
    breaks_with("counter = \"tsc\"", name, tamper, said)
}

fn breaks_with(options: &str, name: &str, tamper: impl FnOnce(&Case), said: &str) -> Option<RateMemory> {
    let period = ffclock_counter::nominal(CounterId::CPU).unwrap().period;
    let servers = vec![TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterId::CPU))];
    let memory = Some(RateMemory { period, bound: Rate::from_ppm(1.0), wander: None });
    let mut case = Case::start_remembering(name, servers, options, memory);
    let before = case.run_until("some exchanges", |status| used(status) >= 5);
    assert!(case.keeper.peers[0].memory().is_some(), "the rate was remembered");
    assert!(case.reading().is_ok());
    let old_stamp = case.keeper.host_counter.read();
    tamper(&case);
    case.keeper.wake(ffclock_sys::mono_now());
    assert_eq!(case.reading(), Err(ReadError::NoEstimate), "{name}: no number between break and new estimate");
    let broken = case.keeper.status();
    assert_eq!((broken.counter.epoch, broken.clock.is_none()), (before.counter.epoch + 1, true), "{name}");
    assert!(has_event(&broken, said), "{name}: {:?}", broken.events);
    let kept = case.keeper.peers[0].memory();
    let after = case.run_until("an estimate again", |status| status.clock.is_some());
    assert_eq!(after.counter.epoch, before.counter.epoch + 1, "one break, one epoch");
    assert!(used(&after) > used(&before), "counts go on");
    assert!(case.reading().is_ok());
    let snapshot = Reader::new(case.page().words()).snapshot().unwrap();
    assert_eq!(snapshot.reading_at(old_stamp), Err(ReadError::BeforeEpoch), "{name}");
    kept
}

#[test]
fn the_kernels_clock_shows_what_the_page_says_and_is_unsynchronised_when_it_is_not_driven() {
    let (mut case, _) = one_server("kernel-clock", "kernel_clock = \"drive\"");
    case.keeper.kernel_clock.as_mut().unwrap().pace = Span::from_millis(300);
    let status = case.run_until("some exchanges", |status| used(status) >= 5);
    assert!(has_event(&status, "the kernel's feed-forward clock follows"));
    let rig = case.rig.clone();
    let latest = || rig.0.borrow().handed_to_kernel.last().copied().unwrap();
    let before = latest().reading();
    case.run_until("another hand-over", |_| latest().reading() != before);
    // Nothing was published in between.
    let last = latest();
    for seconds in [0, 1, 16] {
        let at = last.reading() + case.keeper.host_counter.nominal.period.ticks_in(Span::from_secs(seconds));
        let page = Reader::new(case.page().words()).reading_at(at, case.keeper.host_counter.kind()).unwrap();
        let off = last.time_at(at).1 - page.time.since_origin();
        assert!(off.abs() < Span::from_nanos(1 + i128::from(seconds) / 4), "after {seconds} s: {off}");
    }
    let synchronised = KernelStatus::SYNCHRONISED.0;
    case.run_until("regular work", |_| latest().raw().status == synchronised);
    case.rig.tamper(|tampering| tampering.jumped = Ticks::from_raw(1 << 48));
    case.keeper.wake(ffclock_sys::mono_now());
    assert_eq!(latest().raw().status, KernelStatus::UNSYNCHRONISED.0, "the counter's run is broken");
    case.run_until("an estimate again", |_| latest().raw().status != KernelStatus::UNSYNCHRONISED.0);
    case.keeper.stop();
    assert_eq!(latest().raw().status, KernelStatus::UNSYNCHRONISED.0, "it is no longer driven");
}

/// The kernel's own counter has another rate with another clocksource.
#[test]
fn the_kernels_counter_is_measured_again_with_another_clocksource() {
    let (mut case, _) = one_server("kernel-clocksource", "kernel_clock = \"drive\"");
    case.run_until("some exchanges", |status| used(status) >= 3);
    assert_eq!(case.rig.0.borrow().measured, 1);
    case.rig.tamper(|tampering| tampering.clocksource = "hpet".to_owned());
    // The name is read once a second.
    std::thread::sleep(Duration::from_millis(1100));
    case.keeper.wake(ffclock_sys::mono_now());
    assert_eq!(case.rig.0.borrow().measured, 2);
    case.run_until("an estimate again", |status| status.clock.is_some());
}

#[test]
fn a_clock_that_the_kernel_has_not_or_that_counts_otherwise_is_not_driven() {
    for (options, has_kernel_clock, said) in
        [("", false, "only FreeBSD's kernel"), ("counter = \"tsc\"\n", true, "set counter to module:active or auto")]
    {
        let rig = Rig::new();
        rig.tamper(|tampering| tampering.has_kernel_clock = has_kernel_clock);
        let directory = std::env::temp_dir().join(format!("ffclock-keeper-refused-{}", std::process::id()));
        let text = format!(
            "{options}kernel_clock = \"drive\"\npage = \"{}/page\"\ncontrol = \"off\"\nstate = \"off\"\n[[server]]\naddress = \"127.0.0.1\"\n",
            directory.display()
        );
        let refused = Keeper::start_on(Box::new(rig), Config::parse(&text).unwrap(), &SAME_AGAIN);
        let _ = std::fs::remove_dir_all(&directory);
        let error = refused.err().expect("it cannot be driven").to_string();
        assert!(error.starts_with("kernel_clock: ") && error.contains(said), "{error}");
    }
}

/// The host may delay the daemon anywhere, so also between its check of the counter and the publication.
#[test]
fn a_break_right_before_a_publication_is_not_published() {
    let (mut case, _) = one_server("publication", "counter = \"tsc\"");
    case.run_until("some exchanges", |status| used(status) >= 3);
    case.rig.tamper(|tampering| tampering.jumped = Ticks::from_raw(1 << 48));
    case.keeper.publish();
    assert_eq!(case.reading(), Err(ReadError::NoEstimate));
    case.run_until("an estimate again", |status| status.clock.is_some());
}

#[test]
fn a_counter_that_stands_still_has_no_past() {
    let (mut case, _) = one_server("stall", "counter = \"tsc\"");
    case.run_until("some exchanges", |status| used(status) >= 3);
    let last = case.keeper.host_counter.read();
    case.rig.tamper(|tampering| tampering.stalled_at = Some(last));
    std::thread::sleep(Duration::from_millis(20));
    case.keeper.wake(ffclock_sys::mono_now());
    assert_eq!(case.reading(), Err(ReadError::NoEstimate));
    assert!(case.keeper.peers[0].memory().is_none());
    case.rig.tamper(|tampering| tampering.stalled_at = None);
    case.run_until("an estimate again", |status| status.clock.is_some());
}

#[test]
fn another_clocksource_ends_the_epoch_and_the_rate() {
    let change = |case: &Case| {
        case.rig.tamper(|tampering| tampering.clocksource = "hpet".to_owned());
        // The file is read once a second.
        std::thread::sleep(Duration::from_millis(1100));
    };
    assert_eq!(breaks("clocksource", change, "clocksource changed from tsc to hpet"), None);
}

#[test]
fn a_counter_that_the_kernel_gave_up_is_left_where_the_choice_is_free() {
    let (mut case, truth) = one_server("given-up", "counter = \"auto\"");
    case.run_until("some exchanges", |status| used(status) >= 3);
    case.rig.tamper(|tampering| {
        tampering.clocksource = "hpet".to_owned();
        tampering.chosen = CounterId::MonotonicRaw;
    });
    std::thread::sleep(Duration::from_millis(1100));
    // On a busy machine the first round trip may be long.
    let is_good = |status: &StatusReport| status.clock.as_ref().is_some_and(|clock| clock.bound_s < 5e-3);
    let status =
        case.run_until("the other counter", |status| status.counter.name == "monotonic-raw" && is_good(status));
    assert!(has_event(&status, "another counter from now on: monotonic-raw"), "{:?}", status.events);
    let snapshot = Reader::new(case.page().words()).snapshot().unwrap();
    assert_eq!(snapshot.counter_id(), CounterId::MonotonicRaw);
    let now = LeapTable::built_in().utc_from_tai(truth.at(ffclock_counter::read_ordered(CounterId::CPU)));
    let error = case.reading().unwrap().time - now;
    assert!(error.abs() < Span::from_millis(5), "{error}");
}

/// The kernel keeps time with another clocksource all along, and takes the CPU's off its list.
#[test]
fn a_counter_that_the_kernel_does_not_use_and_gave_up_is_left_too() {
    let (mut case, _) = one_server("trust", "counter = \"auto\"");
    case.run_until("some exchanges", |status| used(status) >= 3);
    case.rig.tamper(|tampering| {
        tampering.trust = Trust::Lost("it offers hpet only".to_owned());
        tampering.chosen = CounterId::MonotonicRaw;
    });
    // The list is read once a second.
    std::thread::sleep(Duration::from_millis(1100));
    let status = case.run_until("the other counter", |status| status.counter.name == "monotonic-raw");
    let reason = "the kernel trusts the counter no more: it offers hpet only";
    assert!(has_event(&status, reason), "{:?}", status.events);
}

#[test]
fn each_cpus_own_counter_is_compared_however_it_is_read() {
    use crate::host_counter::ThisHost;
    for kind in ffclock_counter::USABLE {
        assert_eq!(
            ThisHost.cpus(kind).is_some(),
            kind.name().ends_with("tsc") || kind.name().ends_with("kvm-clock"),
            "{kind}"
        );
    }
}

#[test]
fn cpus_that_disagree_are_reported_with_the_evidence_and_the_counter_is_left() {
    let (mut case, _) = one_server("cpus", "counter = \"auto\"");
    case.run_until("some exchanges", |status| used(status) >= 3);
    let readings = [5000, 4400, 5100].map(Counter::from_raw);
    case.rig.tamper(|tampering| {
        tampering.disagreement = Some(CpuDisagreement { cpu: 3, with: 0, readings });
        tampering.chosen = CounterId::MonotonicRaw;
    });
    case.keeper.wake(ffclock_sys::mono_now());
    assert!(case.reading().is_ok(), "the CPUs are compared once a minute");
    case.keeper.next_cpus = ffclock_sys::mono_now();
    case.keeper.wake(ffclock_sys::mono_now());
    assert!(case.reading().is_err(), "no number between break and new estimate");
    let status = case.run_until("the other counter", |status| status.clock.is_some());
    assert_eq!(status.counter.name, "monotonic-raw");
    assert!(has_event(&status, "CPU 3 is at least 600 ticks behind that of CPU 0"), "{:?}", status.events);
}

/// A slow disk must not delay the clock.
#[test]
fn what_is_recorded_is_written_after_the_page_and_at_once() {
    let (mut case, _) = one_server("recorded", "record = \"DIRECTORY/record\"");
    case.run_until("some exchanges", |status| used(status) >= 3);
    let path = case.recorded().remove(0);
    let rows = || TraceReader::open(&path).unwrap().filter(|row| row.as_ref().unwrap().exchange.is_some()).count();
    let used_now = |case: &Case| usize::try_from(used(&case.keeper.status())).unwrap();
    assert_eq!(rows(), used_now(&case), "a reader of the recording finds the latest exchange");
    let before = rows();
    // A turn of the loop, up to the page.
    while used_now(&case) == before {
        case.keeper.wake(ffclock_sys::mono_now());
        case.keeper.take_in(0);
        let now = case.keeper.context.now;
        if case.keeper.peers[0].is_due(now) {
            case.keeper.peers[0].ask(0, &mut case.keeper.context);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    case.keeper.publish();
    assert_eq!(rows(), before, "nothing waits for the disk before the page is written");
    case.keeper.readable(0);
    assert_eq!(rows(), used_now(&case));
    assert!(rows() > before);
}

#[test]
fn a_trace_is_about_one_counter() {
    let (mut case, _) = one_server("traces", "counter = \"auto\"\nrecord = \"DIRECTORY/record\"");
    case.run_until("some exchanges", |status| used(status) >= 3);
    case.rig.tamper(|tampering| {
        tampering.clocksource = "hpet".to_owned();
        tampering.chosen = CounterId::MonotonicRaw;
    });
    std::thread::sleep(Duration::from_millis(1100));
    case.run_until("exchanges with the other counter", |status| {
        status.counter.name == "monotonic-raw" && used(status) >= 6
    });
    case.keeper.stop();
    let counters = |path: &PathBuf| {
        let reader = TraceReader::open(path).unwrap();
        let counter = reader.header().counter.clone().unwrap();
        assert_eq!(reader.header().metadata("asymmetry"), Some("unknown"), "always stated: a calibration must know");
        assert_eq!(reader.header().metadata("stamps"), Some("kernel"));
        assert!(reader.count() > 0, "{counter}");
        counter
    };
    let mut counters: Vec<String> = case.recorded().iter().map(counters).collect();
    counters.sort();
    assert_eq!(counters, ["monotonic-raw", "tsc"]);
}

#[test]
fn packets_on_both_sides_of_a_break_make_no_exchange() {
    for kind in ["kernel", "trace", "user"] {
        let (mut case, _) = one_server(&format!("straddle-{kind}"), &format!("counter = \"tsc\"\nstamps = \"{kind}\""));
        let first_epoch = case.keeper.status().counter.epoch;
        // The first request leaves, its reply comes, and the counter jumps before the daemon looks at it.
        case.keeper.wake(ffclock_sys::mono_now());
        case.keeper.timeout();
        std::thread::sleep(Duration::from_millis(40));
        case.rig.tamper(|tampering| tampering.jumped = Ticks::from_raw(100_000_000));
        case.keeper.readable(0);
        let status = case.keeper.status();
        assert_eq!((status.sources[0].sent, used(&status), status.clock.is_none()), (1, 0, true), "{kind}");
        // The jump is seen while the reply is still under way.
        let silence = |case: &Case, silent| case.servers[0].behave(|behaviour| behaviour.silent = silent);
        silence(&case, true);
        case.run_until("the next request", |status| status.sources[0].sent >= 2);
        case.rig.tamper(|tampering| tampering.jumped = Ticks::from_raw(200_000_000));
        case.keeper.wake(ffclock_sys::mono_now());
        assert_eq!(used(&case.keeper.status()), 0, "{kind}");
        silence(&case, false);
        let status = case.run_until("an exchange", |status| used(status) >= 1);
        assert!(status.sources[0].sent >= 3, "{kind}: an exchange of its own");
        assert_eq!(status.counter.epoch, first_epoch + 2, "{kind}");
    }
}

#[test]
fn a_counter_that_breaks_all_the_time_makes_no_flood_of_requests() {
    let (mut case, _) = one_server("broken", "counter = \"tsc\"");
    let (begin, first_epoch) = (ffclock_sys::mono_now(), case.keeper.status().counter.epoch);
    for _ in 0..300 {
        case.rig.tamper(|tampering| tampering.jumped = tampering.jumped + Ticks::from_raw(100_000_000));
        case.turn();
    }
    let polls = (ffclock_sys::mono_now() - begin).as_seconds() / 0.125;
    let status = case.keeper.status();
    let epochs = status.counter.epoch - first_epoch;
    assert!(epochs > 200, "{epochs}");
    assert!(
        status.sources[0].sent as f64 <= polls + 3.0,
        "{} requests in the time of {polls} polls",
        status.sources[0].sent
    );
}

/// The end of June 2027.
const MIDNIGHT: i64 = 1_814_400_000;
const INSERT: LeapAnnouncement = LeapAnnouncement { utc_second: MIDNIGHT, change: 1 };
const AHEAD: LeapStep = LeapStep { before: 37, after: 38, at: MIDNIGHT + 37 };

/// Servers whose time is this many seconds before the midnight at which June 2027 ends.
fn before_midnight(name: &str, count: usize, seconds: i64) -> (Case, Truth) {
    let truth = Truth::beginning_at(CounterId::CPU, Moment::from_origin(Span::from_secs(MIDNIGHT - seconds)));
    let servers = (0..count).map(|_| TestServer::start("127.0.0.1:0", truth)).collect();
    (Case::start(name, servers, "counter = \"tsc\""), truth)
}

impl Case {
    fn announce(&self, server: usize, leap: LeapIndicator) {
        self.servers[server].behave(|behaviour| behaviour.leap = leap);
    }

    fn run_exchanges(&mut self) {
        let before: Vec<u64> = self.keeper.status().sources.iter().map(|source| source.exchanges).collect();
        self.run_until("an exchange with each server", |status| {
            status.sources.iter().zip(&before).all(|(source, before)| source.exchanges > before + 1)
        });
    }
}

#[test]
fn an_address_that_cannot_be_used_does_not_hide_the_next() {
    let (mut case, _) = one_server("addresses", "counter = \"tsc\"");
    let good = case.servers[0].address;
    case.servers[0].behave(|behaviour| behaviour.silent = true);
    case.run_until("unreachable", |status| status.sources[0].state == SourceState::Unreachable);
    case.servers[0].behave(|behaviour| behaviour.silent = false);
    // A link-local address without its interface cannot be connected to.
    let unusable = "[fe80::1]:123".parse().unwrap();
    case.keeper.peers[0].resolved(vec![unusable, good], &mut case.keeper.context);
    case.run_until("the good address", |status| used(status) >= 1);
}

#[test]
fn another_address_costs_nothing_before_it_answers() {
    let (mut case, _) = one_server("moved", "counter = \"tsc\"");
    case.run_until("an estimate", |status| used(status) >= 3);
    let deaf = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let addresses = vec![deaf.local_addr().unwrap()];
    case.keeper.peers[0].resolved(addresses, &mut case.keeper.context);
    let status = case.run_until("silence", |status| has_event(status, "does not answer"));
    assert_eq!(status.clock.unwrap().status, Status::Holdover);
    assert_eq!(case.reading().unwrap().status, Status::Holdover);
    assert!(case.keeper.peers[0].estimate().is_some());
}

#[test]
fn other_options_make_another_estimator_that_knows_the_rate() {
    let period = ffclock_counter::nominal(CounterId::CPU).unwrap().period;
    let truth = Truth::beginning_now(CounterId::CPU);
    let servers = vec![TestServer::start("127.0.0.1:0", truth)];
    let memory = Some(RateMemory { period, bound: Rate::from_ppm(1.0), wander: None });
    let mut case = Case::start_remembering("options", servers, "counter = \"tsc\"", memory);
    let before = case.run_until("some exchanges", |status| used(status) >= 5);
    // As if the way to the server were 20 ms longer than the way back: the clock moves by half of that.
    let text = config_text(&case.directory, &case.servers, "counter = \"tsc\"");
    let changed = Config::parse(&(text + "asymmetry = \"20 ms\"\n")).unwrap();
    case.keeper.take_over(changed);
    assert!(case.reading().is_ok(), "what is known serves on");
    let after = case.run_until("some more exchanges", |status| used(status) >= used(&before) + 3);
    assert!(has_event(&after, "the estimate starts again with other options"), "{:?}", after.events);
    let counter = case.keeper.host_counter.read();
    let reading = Reader::new(case.page().words()).reading_at(counter, CounterId::Tsc).unwrap();
    let error = reading.time - LeapTable::built_in().utc_from_tai(truth.at(counter));
    assert!((error.abs() - Span::from_millis(10)).abs() < Span::from_millis(2), "{error}");
    assert!(after.clock.unwrap().rate_bound_ppm < 100.0, "the rate is still known");
}

#[test]
fn another_algorithm_begins_with_the_rate_that_is_known() {
    let period = ffclock_counter::nominal(CounterId::CPU).unwrap().period;
    let servers = vec![TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterId::CPU))];
    let memory = Some(RateMemory { period, bound: Rate::from_ppm(1.0), wander: None });
    let mut case = Case::start_remembering("algorithm", servers, "counter = \"tsc\"", memory);
    let before = case.run_until("some exchanges", |status| used(status) >= 5);
    assert_eq!(estimator(&before), (Algorithm::Learned, Agreement::TooLittleData));
    let text = config_text(&case.directory, &case.servers, "counter = \"tsc\"");
    case.keeper.take_over(Config::parse(&(text + "estimator = \"classic\"\n")).unwrap());
    assert!(case.reading().is_ok(), "what is known serves on");
    let after = case.run_until("some more exchanges", |status| used(status) >= used(&before) + 3);
    assert_eq!(estimator(&after), (Algorithm::Classic, Agreement::Alone));
    assert!(after.clock.unwrap().rate_bound_ppm < 100.0, "the rate is still known");
}

fn estimator(status: &StatusReport) -> (Algorithm, Agreement) {
    let source = &status.sources[0];
    (source.estimator, source.agreement)
}

#[test]
fn the_system_clock_is_compared_at_one_moment() {
    let (mut case, _) = one_server("compared", "counter = \"tsc\"");
    case.run_until("an estimate", |status| status.clock.is_some());
    let publication = case.keeper.published.unwrap();
    let mut differences: Vec<f64> = (0..50)
        .map(|_| {
            let behind = case.keeper.status().clock.unwrap().system_clock_behind_s;
            let pair = ffclock_counter::read_narrowest(CounterId::CPU, 20, ffclock_sys::system_utc_now);
            let tai = publication.estimate.at(pair.middle()).time;
            let ours = LeapTable::built_in().utc_from_tai(tai) - pair.value;
            (behind - ours.as_seconds()).abs()
        })
        .collect();
    differences.sort_by(f64::total_cmp);
    assert!(differences[25] < 2e-6, "the median differs by {} s", differences[25]);
}
