//! `ffclock-lab probe run`: test packets, stamped at every location.

use super::answer::{MeasuredPhase, ProbeAnswer, corrected};
use super::echo::PORT;
use super::network::{Addressing, TestPath};
use super::table;
use crate::counters::conditions::Conditions;
use crate::failure::Failure;
use crate::{GlobalOptions, waiting_time};
use ffclock_control::calibration::Subject;
use ffclock_counter::{CounterId, nominal};
use ffclock_counters::campaign::{CampaignPhase, Load, Surroundings, UnknownLoad, schedule};
use ffclock_probe::effect::{self, Effect};
use ffclock_probe::findings::Findings;
use ffclock_probe::outcome::ProbeOutcome;
use ffclock_probe::payload::Lengths;
use ffclock_probe::plan::{MOST_PACKETS, PacketTap, ProbePlan, Probes, QueueHook};
use ffclock_probe::record::{ProbeWriter, RecordError};
use ffclock_probe::site::{Site, Sites};
use ffclock_sys::mono_now;
use ffclock_units::{Period, Span};
use serde::Serialize;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Options of `ffclock-lab probe run`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab probe run --netns
  $ ffclock-lab probe run --to 192.0.2.7 --packets 20000 --rate 500
  $ ffclock-lab probe run --netns --stress cpu,io --phase '20 s' --record probe.parquet
  $ ffclock-lab probe run --netns --probe-effect
  $ ffclock-lab probe run --netns --wire --multicast
  $ ffclock-lab probe run --netns --json | jq '.phases[0].findings.asymmetries'

Delays are against the boundary to the driver: location to driver on the way out, driver to location on
the way in. Kernel stamps need root (tracing: CAP_SYS_ADMIN, tap: CAP_NET_RAW); without them user space
and socket remain, and what is missing is named.")]
pub(super) struct Args {
    #[command(flatten)]
    course: TrafficOptions,
    /// Record every stamp into a file: Parquet if its name ends so, JSON lines otherwise (docs/probe.md)
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Measure first what the probes themselves cost, in this many rounds (a few seconds each), and show corrected
    /// figures beside the raw ones
    #[arg(long, value_name = "ROUNDS", num_args = 0..=1, require_equals = true, default_missing_value = "16", value_parser = clap::value_parser!(u16).range(2..=1000))]
    probe_effect: Option<u16>,
}

/// What a measurement does in addition.
#[derive(Clone, Copy, Default)]
pub(super) struct RunExtras<'a> {
    /// Records every stamp into this file.
    record: Option<&'a Path>,
    /// Measures first what the probes cost, in this number of rounds.
    effect_rounds: Option<u16>,
}

/// The options of every measurement with test packets.
#[derive(Clone, clap::Args)]
pub(super) struct TrafficOptions {
    #[command(flatten)]
    target: Target,
    /// The device on the way to the host, where it cannot be found out
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// The number of packets in all phases together
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=MOST_PACKETS))]
    packets: u64,
    /// Packets per second
    #[arg(long, value_name = "R", default_value_t = 1_000.0, value_parser = rate)]
    rate: f64,
    /// Bytes of the smallest payload; lengths vary by 254 bytes, which distinguishes packets in the kernel's events
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    size: usize,
    /// Alternate quiet phases with phases under these loads: io, syscall, ip, cpu, interrupt, memory, network; none
    /// stands for quiet
    #[arg(long, value_name = "LOAD,...", value_delimiter = ',')]
    stress: Vec<StressPhase>,
    /// How long each phase lasts (the paper: 2 h); replaces --packets
    #[arg(long, value_name = "SPAN", value_parser = waiting_time, requires = "stress")]
    phase: Option<Span>,
    /// Leave out a way to stamp: tap, tracing, ebpf, stack (the tracing anywhere but at the driver) or fentry (a kprobe
    /// replaces it)
    #[arg(long, value_name = "PROBE,...", value_delimiter = ',')]
    without: Vec<Probe>,
    /// Stamp outside the host too, at the other end of a virtual link, by the kernel's tracing: of --netns, or this
    /// device, which may be in another network namespace
    #[arg(long, value_name = "DEVICE", num_args = 0..=1, require_equals = true)]
    wire: Option<Option<String>>,
    /// With --netns: send to a multicast group, and stamp the copy that comes back to this host (IP_MULTICAST_LOOP), as
    /// the programs of the paper do; with --to, name a group that `ffclock-lab probe echo --multicast` has joined
    #[arg(long, conflicts_with = "to")]
    multicast: bool,
    /// Stamp by eBPF at XDP as well; it changes how the driver receives, and some drivers stop for a moment to change
    /// over
    #[arg(long)]
    xdp: bool,
}

#[derive(Clone, clap::Args)]
#[group(required = true, multiple = false)]
struct Target {
    /// The host on which `ffclock-lab probe echo` runs, with its port if it is not 8777
    #[arg(long, value_name = "HOST[:PORT]")]
    to: Option<String>,
    /// Use an echo server in a network namespace of its own
    #[arg(long)]
    netns: bool,
}

/// What can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Probe {
    /// The packet tap
    Tap,
    /// The kernel's tracing
    Tracing,
    /// eBPF programs
    Ebpf,
    /// eBPF by fentry
    Fentry,
    /// The kernel's tracing anywhere but at the driver
    Stack,
}

/// A load, or the quiet phase that every run begins with.
#[derive(Clone, Copy, Debug)]
struct StressPhase(Option<Load>);

impl FromStr for StressPhase {
    type Err = UnknownLoad;
    fn from_str(text: &str) -> Result<Self, UnknownLoad> {
        if text == "none" { Ok(StressPhase(None)) } else { text.parse().map(|load| StressPhase(Some(load))) }
    }
}

/// The most packets in a second that one thread sends and receives.
const FASTEST: f64 = 50_000.0;

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if rate.is_finite() && (0.01..=FASTEST).contains(&rate) {
        Ok(rate)
    } else {
        Err(format!("must lie between 0.01 and {FASTEST}"))
    }
}

/// The description of a run.
#[derive(Serialize)]
struct ProbeAbout<'a> {
    way: &'a str,
    device: &'a str,
    driver: String,
    host: String,
    kernel: String,
    counter: &'a str,
    counter_hz: f64,
    rate: f64,
    size: usize,
}

/// All results of a run.
pub(super) struct Whole {
    pub(super) way: TestPath,
    pub(super) phases: Vec<MeasuredPhase>,
    pub(super) effect: Option<Effect>,
    about: serde_json::Value,
}

/// Measures, and prints the tables.
pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let extras = RunExtras { record: args.record.as_deref(), effect_rounds: args.probe_effect };
    let whole = measure(&args.course, extras)?;
    table::print(&whole.answer(), global)
}

impl Whole {
    /// Without the way, which ends here.
    pub(super) fn answer(self) -> ProbeAnswer {
        ProbeAnswer { about: self.about, phases: self.phases, effect: self.effect }
    }
}

/// Sends the packets of all phases and collects their stamps.
pub(super) fn measure(course: &TrafficOptions, extras: RunExtras<'_>) -> Result<Whole, Failure> {
    let counter = ffclock_counter::choose(ffclock_counter::Choice::Auto).kind;
    let nominal = nominal(counter).map_err(|error| format!("the counter cannot be used: {error}"))?;
    let way = course.way()?;
    let phases = course.phases();
    if phases.iter().any(|phase| phase.load == Some(Load::Ip)) && course.target.netns {
        super::network::raise_loopback()?;
    }
    let mut conditions = Conditions::prepare(&phases)?;
    let base = Base { counter, period: nominal.period };
    let about = about(course, &way, base)?;
    let mut record = extras.record.map(|path| RecordFile::begin(path, &about)).transpose()?;
    let effect = match extras.effect_rounds {
        Some(rounds) => course.effect(rounds, &way, base, &mut conditions)?,
        None => None,
    };
    if let Some((record, effect)) = record.as_mut().zip(effect.as_ref()) {
        record.effect(effect)?;
    }
    let begin = mono_now();
    let mut measured = Vec::new();
    for phase in &phases {
        conditions.enter(phase)?;
        let plan = course.plan(&way, base, phase);
        let began_s = (mono_now() - begin).as_seconds();
        let (outcome, flow) = one_phase(&plan, &mut conditions, phase, &phases)?;
        // As it really was.
        let phase = CampaignPhase { begin_s: began_s, length_s: outcome.length_s, ..*phase };
        if let Some(record) = &mut record {
            record.phase(&phase, &outcome)?;
        }
        measured.push(MeasuredPhase::of(phase, outcome, base, effect.as_ref()));
        if flow.is_break() {
            break;
        }
    }
    drop(conditions);
    if let Some(record) = record {
        record.finish()?;
    }
    Ok(Whole { way, phases: measured, effect, about })
}

/// What the answer and the record say of a measurement as a whole.
fn about(course: &TrafficOptions, way: &TestPath, base: Base) -> Result<serde_json::Value, Failure> {
    let subject = Subject::here(&way.device);
    let about = ProbeAbout {
        way: &way.description,
        device: &way.device,
        driver: subject.driver,
        host: subject.host,
        kernel: subject.kernel,
        counter: base.counter.name(),
        counter_hz: base.period.as_hertz(),
        rate: course.rate,
        size: course.size,
    };
    serde_json::to_value(&about).map_err(|error| Failure::from(error.to_string()))
}

impl MeasuredPhase {
    fn of(phase: CampaignPhase, outcome: ProbeOutcome, base: Base, effect: Option<&Effect>) -> Self {
        let findings = Findings::of(&outcome.passages, base.period);
        let corrected = effect.map(|effect| corrected(effect, &findings, &outcome.methods)).unwrap_or_default();
        MeasuredPhase {
            phase,
            findings,
            corrected,
            counts: outcome.counts,
            unavailable: outcome.unavailable,
            length_s: outcome.length_s,
            methods: outcome.methods,
        }
    }
}

/// The counter that stamps, and its nominal period.
#[derive(Clone, Copy)]
struct Base {
    counter: CounterId,
    period: Period,
}

/// One phase, and whether the user wants no further ones.
fn one_phase(
    plan: &ProbePlan,
    conditions: &mut Conditions,
    phase: &CampaignPhase,
    phases: &[CampaignPhase],
) -> Result<(ProbeOutcome, ControlFlow<()>), Failure> {
    let total: f64 = phases.iter().map(|phase| phase.length_s).sum();
    let mut trouble = None;
    let mut wanted = ControlFlow::Continue(());
    let outcome = ffclock_probe::run::run(plan, &mut |sent| {
        let share = (phase.begin_s + sent as f64 / plan.rate) / total;
        match conditions.wait(mono_now(), share.min(1.0)) {
            Ok(flow) => {
                wanted = flow;
                flow
            }
            Err(failure) => {
                trouble = Some(failure);
                ControlFlow::Break(())
            }
        }
    });
    match trouble {
        Some(failure) => Err(failure),
        None => outcome.map(|outcome| (outcome, wanted)).map_err(|error| error.to_string().into()),
    }
}

/// A name or an address, with or without a port.
fn address_of(host: &str) -> Result<SocketAddr, Failure> {
    let bare: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    let whole = bare.map(|address| SocketAddr::new(address, PORT)).or_else(|| host.parse().ok());
    if let Some(address) = whole {
        return Ok(address);
    }
    let with_port = if host.contains(':') { host.to_owned() } else { format!("{host}:{PORT}") };
    let found = with_port.to_socket_addrs().map_err(|error| format!("{host}: {error}"))?.next();
    found.ok_or_else(|| format!("{host}: the name has no address").into())
}

impl TrafficOptions {
    fn way(&self) -> Result<TestPath, Failure> {
        match &self.target.to {
            Some(_) if self.wire == Some(None) => {
                Err(Failure::usage("--wire: name the device at the other end of the link to --to: --wire=DEVICE"))
            }
            Some(host) => TestPath::to(address_of(host)?, self.device.as_deref()),
            None => TestPath::own(if self.multicast { Addressing::Multicast } else { Addressing::Unicast }),
        }
    }

    fn phases(&self) -> Vec<CampaignPhase> {
        let loads: Vec<Load> = self.stress.iter().filter_map(|StressPhase(load)| *load).collect();
        let phases = schedule(&loads, Span::from_secs(1)).len();
        let each = Span::from_seconds(self.packets as f64 / self.rate / phases as f64);
        schedule(&loads, self.phase.unwrap_or(each))
    }

    /// With nothing in the way of packets but the tracing at the boundary to the driver.
    pub(super) fn at_boundary(&self) -> Self {
        let mut course = self.without_ebpf();
        course.without.extend([Probe::Tap, Probe::Stack]);
        course
    }

    /// The device that was named.
    pub(super) fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// Without the second method: what each packet passes is half of it.
    pub(super) fn without_ebpf(&self) -> Self {
        let mut course = self.clone();
        course.without.push(Probe::Ebpf);
        course
    }

    /// What the probes cost; in the quiet of the first phase.
    fn effect(
        &self,
        rounds: u16,
        way: &TestPath,
        base: Base,
        conditions: &mut Conditions,
    ) -> Result<Option<Effect>, Failure> {
        let phases = self.phases();
        let Some(quiet) = phases.first() else { return Ok(None) };
        conditions.enter(quiet)?;
        let mut trouble = None;
        let effect = effect::measure(&self.plan(way, base, quiet), rounds.into(), &mut |share| {
            conditions.wait(mono_now(), share).unwrap_or_else(|failure| {
                trouble = Some(failure);
                ControlFlow::Break(())
            })
        });
        match trouble {
            Some(failure) => Err(failure),
            None => effect.map_err(|error| error.to_string().into()),
        }
    }

    fn plan(&self, way: &TestPath, base: Base, phase: &CampaignPhase) -> ProbePlan {
        let is_wanted = |probe| !self.without.contains(&probe);
        let xdp = if self.xdp { Sites::of(&[Site::XdpIn]) } else { Sites::NONE };
        let probes = Probes {
            tap: if is_wanted(Probe::Tap) { PacketTap::Open } else { PacketTap::LeftOut },
            queue_hook: if is_wanted(Probe::Fentry) { QueueHook::Fentry } else { QueueHook::Kprobe },
            tracing: match (is_wanted(Probe::Tracing), is_wanted(Probe::Stack)) {
                (true, true) => Sites::TRACED,
                (true, false) => Sites::DRIVER,
                (false, _) => Sites::NONE,
            },
            ebpf: if is_wanted(Probe::Ebpf) { Sites::PROGRAMMED.and(xdp) } else { Sites::NONE },
        };
        ProbePlan {
            to: way.to,
            device: way.device.clone(),
            wire: self.wire.as_ref().and_then(|device| device.clone().or_else(|| way.far_device.clone())),
            packets: ((phase.length_s * self.rate).round() as u64).clamp(1, MOST_PACKETS),
            rate: self.rate,
            lengths: Lengths::from(self.size),
            counter: base.counter,
            period: base.period,
            probes,
            burst: 0,
        }
    }
}

/// A record, and its name in error messages.
struct RecordFile<'a> {
    path: &'a Path,
    writer: ProbeWriter,
}

impl<'a> RecordFile<'a> {
    fn begin(path: &'a Path, about: &serde_json::Value) -> Result<Self, Failure> {
        let writer = ProbeWriter::create(path, about).map_err(|error| unwritable(path, &error))?;
        Ok(RecordFile { path, writer })
    }

    fn effect(&mut self, effect: &Effect) -> Result<(), Failure> {
        self.writer.effect(effect).map_err(|error| unwritable(self.path, &error))
    }

    fn phase(&mut self, phase: &CampaignPhase, outcome: &ProbeOutcome) -> Result<(), Failure> {
        self.writer.phase(phase, outcome).map_err(|error| unwritable(self.path, &error))
    }

    fn finish(self) -> Result<(), Failure> {
        self.writer.finish().map_err(|error| unwritable(self.path, &error))
    }
}

fn unwritable(path: &Path, error: &RecordError) -> Failure {
    format!("the record {} cannot be written: it {error}", path.display()).into()
}
