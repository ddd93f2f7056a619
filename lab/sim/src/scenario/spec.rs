//! The keys of a scenario file. Every key is listed here and in docs/sim.md; any other key is an error.

use super::Tag;
use super::measures::{Fraction, Length};
use super::several::{ServerEntry, SharedSpec};
use crate::counter::CounterKind;
use ffclock_units::{Direction, Rate, Span};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

const fn seconds(seconds: i64) -> Length {
    Length(Span::from_secs(seconds))
}

const fn micros(micros: i64) -> Length {
    Length(Span::from_micros(micros))
}

/// One world, and the checks of the clocks in it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The subject, in one line.
    pub about: String,
    /// The kinds of world that it belongs to.
    #[serde(default)]
    pub tags: BTreeSet<Tag>,
    /// How long it lasts.
    #[serde(default = "Scenario::default_duration")]
    pub duration: Length,
    /// When the statistics begin.
    #[serde(default = "Scenario::default_from")]
    pub from: Length,
    /// Time between two requests.
    #[serde(default = "Scenario::default_poll")]
    pub poll: Length,
    /// The uncertainty that polls are chosen to keep; `poll` then only says how often the clocks are read.
    pub keep_noise: Option<Length>,
    /// The shortest poll that is chosen.
    #[serde(default = "Scenario::default_poll")]
    pub poll_min: Length,
    /// The longest one.
    #[serde(default = "Scenario::default_poll_max")]
    pub poll_max: Length,
    /// Requests in the burst at the start.
    #[serde(default = "Scenario::default_burst")]
    pub burst: u32,
    /// How ntpd is tuned, where a model of it so tuned runs beside the one with its defaults.
    pub ntpd: Option<NtpdSpec>,
    /// Whether ffclockd asks in the interleaved mode of NTP: each exchange is complete when the next reply has come.
    #[serde(default)]
    pub interleaved: bool,
    /// Times in which the models of ntpd and chrony choose their polls of several servers.
    #[serde(default)]
    pub relax: Vec<RelaxSpec>,
    /// The mean time between two readings of the clocks; if left out, a quarter of `poll`, within 4 s to 64 s.
    pub reading: Option<Length>,
    /// What an earlier run has left with the clocks; left out: nothing.
    pub start: Option<StartSpec>,
    /// The model of chrony leaves out what is late by this many deviations: its option of that name.
    #[serde(default = "Scenario::default_maxdelaydevratio")]
    pub maxdelaydevratio: f64,
    /// The counter of the host.
    #[serde(default)]
    pub counter: CounterKind,
    /// The oscillator under it.
    #[serde(default)]
    pub oscillator: OscillatorSpec,
    /// Where the host takes its stamps.
    #[serde(default)]
    pub host: HostSpec,
    /// The path to the server and back.
    #[serde(default)]
    pub path: PathSpec,
    /// The server.
    #[serde(default)]
    pub server: ServerSpec,
    /// The servers of `[[server]]`. Empty where there is only the one of `path` and `server`; otherwise these two are
    /// those of the first.
    #[serde(skip)]
    pub servers: Vec<ServerEntry>,
    /// A master of PTP in place of a server: `poll` is the time between two of its Syncs.
    pub ptp: Option<PtpSpec>,
    /// Pulses of a reference at this host in place of a server: one each second.
    pub pulses: Option<PulsesSpec>,
    /// What the ways to several servers have in common.
    #[serde(default)]
    pub shared: Vec<SharedSpec>,
    /// Parts of the time with statistics of their own: name = [begin, end].
    #[serde(default)]
    pub windows: BTreeMap<String, [Length; 2]>,
    /// What must hold: name = expression.
    #[serde(default)]
    pub checks: BTreeMap<String, String>,
}

impl Scenario {
    fn default_duration() -> Length {
        seconds(86_400)
    }
    fn default_from() -> Length {
        seconds(7_200)
    }
    fn default_poll() -> Length {
        seconds(16)
    }
    fn default_poll_max() -> Length {
        seconds(1024)
    }
    fn default_burst() -> u32 {
        8
    }
    pub(super) fn default_maxdelaydevratio() -> f64 {
        10.0
    }
}

/// What an earlier run has left, as drift files, the memory of ffclockd and the kernel keep it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartSpec {
    /// The rate of the oscillator as they have it; positive: fast.
    pub rate: Fraction,
    /// How far ahead of true time the system clocks are when the world begins.
    #[serde(default)]
    pub ahead: Length,
}

/// Options of ntpd (`tinker`, ntp.conf(5)).
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NtpdSpec {
    /// How long it remembers the smallest delay, by what is more than which it corrects an offset.
    pub huffpuff: Length,
    /// From which offset on it steps the clock.
    pub step: Length,
    /// For how long such an offset must last where the clock was synchronised.
    pub stepout: Length,
}

/// Time in which daemons choose their polls, between that of the scenario and a longer one.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelaxSpec {
    /// When the time of relaxed polls begins, s since the world began.
    pub at: Length,
    /// When it ends, likewise.
    pub until: Length,
    /// The longest poll.
    pub poll_max: Length,
}

/// An oscillator; levels are Allan deviations. Left out, it is that of a normal room without temperature waves.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OscillatorSpec {
    /// Its relative rate error; positive: fast.
    pub skew: Fraction,
    /// The change of its rate in a day.
    pub ageing_per_day: Fraction,
    /// White phase noise at 1 s.
    pub white_phase_at_1_s: f64,
    /// Flicker phase noise at 1 s.
    pub flicker_phase_at_1_s: f64,
    /// White frequency noise at 1 s.
    pub white_frequency_at_1_s: f64,
    /// Flicker frequency noise at any interval.
    pub flicker_frequency: f64,
    /// Random-walk frequency noise at 10,000 s.
    pub walk_frequency_at_10000_s: f64,
    /// Temperature waves, each with a phase of chance.
    pub wave: Vec<WaveSpec>,
    /// Steps of temperature, as under load.
    pub step: Vec<StepSpec>,
}

impl Default for OscillatorSpec {
    fn default() -> Self {
        OscillatorSpec {
            skew: Fraction(Rate::from_ppm(50.0)),
            white_frequency_at_1_s: 1e-9,
            flicker_frequency: 3e-9,
            walk_frequency_at_10000_s: 1e-8,
            ..OscillatorSpec::silent()
        }
    }
}

impl OscillatorSpec {
    /// One without any error.
    pub fn silent() -> Self {
        OscillatorSpec {
            skew: Fraction(Rate::ZERO),
            ageing_per_day: Fraction(Rate::ZERO),
            white_phase_at_1_s: 0.0,
            flicker_phase_at_1_s: 0.0,
            white_frequency_at_1_s: 0.0,
            flicker_frequency: 0.0,
            walk_frequency_at_10000_s: 0.0,
            wave: Vec::new(),
            step: Vec::new(),
        }
    }
}

/// A temperature wave.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaveSpec {
    /// The largest deviation of the rate.
    pub peak: Fraction,
    /// Its period.
    pub period: Length,
}

/// A step of temperature.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// When it begins.
    pub at: Length,
    /// When it ends; never, if left out.
    pub until: Option<Length>,
    /// Where the rate settles.
    pub change: Fraction,
    /// The thermal time constant.
    pub settling: Length,
}

/// Where stamps are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Location {
    /// On the wire: no delay. The laboratory's own reference.
    #[default]
    Wire,
    /// In the driver.
    Driver,
    /// At the packet tap of the kernel.
    Tap,
    /// At the socket.
    Socket,
    /// In user space, around the system call.
    User,
}

/// The host.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostSpec {
    /// Where stamps are taken.
    pub stamps: Location,
    /// Delays of chance between wire and stamp: scheduling, coalesced interrupts. `forward` is sending.
    pub noise: Vec<QueueSpec>,
    /// Times asleep.
    pub suspend: Vec<SuspendSpec>,
}

/// The host sleeps: it sends no request, takes no reply, and no clock is read.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuspendSpec {
    /// When it begins, from the beginning of the run.
    pub at: Length,
    /// When it ends.
    pub until: Length,
    /// What the counter does meanwhile.
    pub counter: Asleep,
}

/// A counter in suspend. Whatever it does, the daemon sees that the host was suspended and begins a new epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asleep {
    /// It runs on.
    Runs,
    /// It stops and goes on from there, as the kernel's raw clock does.
    Stops,
    /// It restarts at zero, as the counter of a processor may that lost its power.
    Resets,
}

/// Stamps of Sync and Delay_Req, alike at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PtpSpec {
    /// What takes them, and so by which of their defaults the servos go.
    #[serde(default)]
    pub stamps: PtpStamps,
    /// Deviation of the noise of each stamp, normal.
    pub noise: Length,
    /// What the stamping clock counts in: a stamp is the last whole step.
    pub step: Length,
}

/// What stamps the messages of PTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PtpStamps {
    /// The network card.
    #[default]
    Hardware,
    /// The kernel.
    Software,
}

/// Pulses each second.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PulsesSpec {
    /// Deviation of the noise of each pulse where it is stamped, normal.
    pub jitter: Length,
    /// The largest error that the operator states of them.
    pub error: Length,
}

/// The ways there and back.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathSpec {
    /// The smallest delay to the server.
    pub forward: Length,
    /// The smallest delay back.
    pub backward: Length,
    /// The standard deviation of forward minus backward over their sum. The difference is drawn once for each seed.
    #[serde(default)]
    pub asymmetry: f64,
    /// What adds to it.
    #[serde(default)]
    pub queue: Vec<QueueSpec>,
    /// The share of packets lost, each way.
    #[serde(default)]
    pub loss: f64,
    /// The share of packets that arrive twice, each way.
    #[serde(default)]
    pub duplicate: f64,
    /// The share of packets held back by a second and more, so that they arrive out of order or too late.
    #[serde(default)]
    pub straggle: f64,
    /// Changes of the route.
    #[serde(default)]
    pub route: Vec<RouteSpec>,
    /// A second route of equal cost, taken packet by packet.
    #[serde(default)]
    pub flap: Option<FlapSpec>,
    /// Times without any path.
    #[serde(default)]
    pub outage: Vec<OutageSpec>,
    /// A path that is there for a part of each period only.
    #[serde(default)]
    pub intermittent: Option<IntermittentSpec>,
}

/// Which directions something applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// Both, independently.
    #[default]
    Both,
    /// To the server only.
    Forward,
    /// Back only.
    Backward,
}

impl Directions {
    /// Whether a packet in this direction is concerned.
    pub fn holds(self, direction: Direction) -> bool {
        match self {
            Directions::Both => true,
            Directions::Forward => direction == Direction::Outgoing,
            Directions::Backward => direction == Direction::Incoming,
        }
    }
}

/// The laws of delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// Memoryless.
    #[default]
    Exponential,
    /// Many short waits one after the other.
    Gamma,
    /// Stretched (shape below 1) or compressed.
    Weibull,
    /// Heavy tail from zero on (Lomax); `shape` is the exponent, above 1.
    Pareto,
    /// Anything up to twice the mean: what waits for the next turn of something periodic, such as a coalesced
    /// interrupt.
    Uniform,
    /// The same delay each time.
    Constant,
}

/// A delay of chance.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Its law.
    #[serde(default)]
    pub law: Law,
    /// Its mean.
    pub mean: Length,
    /// The shape of the law.
    #[serde(default = "one")]
    pub shape: f64,
    /// The share of packets that it hits.
    #[serde(default = "one")]
    pub share: f64,
    /// The direction.
    #[serde(default)]
    pub direction: Directions,
    /// The times at which it queues; always, if left out.
    #[serde(default)]
    pub when: When,
}

fn one() -> f64 {
    1.0
}

/// When a delay is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum When {
    /// All the time.
    #[default]
    Always,
    /// In spells of chance, exponential lengths: Markov-modulated congestion.
    Markov(Spells),
    /// In spells with heavy-tailed lengths (Pareto, exponent 1.5): self-similar load.
    SelfSimilar(Spells),
    /// For a part of each period.
    Periodic(Periodic),
    /// Once.
    Between(Between),
}

/// Mean lengths of spells.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spells {
    /// Without.
    pub calm: Length,
    /// With.
    pub busy: Length,
}

/// A part of each period.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Periodic {
    /// The period.
    pub every: Length,
    /// The part at its beginning.
    pub lasts: Length,
}

/// A piece of time.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Between {
    /// Its beginning.
    pub at: Length,
    /// Its end.
    pub until: Length,
}

/// A change of the route.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSpec {
    /// When it changes, from the beginning of the run.
    pub at: Length,
    /// When it ends; never, if left out.
    pub until: Option<Length>,
    /// Added to the way there.
    #[serde(default)]
    pub forward: Length,
    /// Added to the way back.
    #[serde(default)]
    pub backward: Length,
}

/// A second route of equal cost.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlapSpec {
    /// The share of packets that take it.
    pub share: f64,
    /// How much longer it is, there.
    pub forward: Length,
    /// And back.
    pub backward: Length,
}

/// Time without a path.
pub type OutageSpec = Between;

/// A path that is there for a part of each period.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntermittentSpec {
    /// The period.
    pub every: Length,
    /// The part at its beginning in which packets pass.
    pub up: Length,
}

/// The server.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSpec {
    /// Deviation of the noise of each of its stamps, normal.
    pub noise: Length,
    /// The mean time between receipt and answer.
    pub residence: Length,
    /// The dispersion it claims.
    pub root_dispersion: Length,
    /// What goes wrong.
    pub fault: Vec<FaultSpec>,
}

impl Default for ServerSpec {
    fn default() -> Self {
        ServerSpec { noise: micros(0), residence: micros(20), root_dispersion: micros(50), fault: Vec::new() }
    }
}

/// A fault of the server. Only `claims` is about what it says of itself; the others lie.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FaultSpec {
    /// Its time is off by a constant.
    Wrong(Wrong),
    /// Its time runs off, and comes back at the end.
    Drift(Drift),
    /// It smears: its time moves by `by` and stays there.
    Smear(Smear),
    /// It claims another dispersion.
    Claims(Claims),
    /// It restarts: it answers that it is not synchronised.
    Restart(Between),
    /// It announces a leap second at the end of the first day, and inserts it.
    Leap(Leaps),
    /// It refuses requests that follow one another too soon.
    RateLimit(RateLimit),
}

/// A wrong time.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wrong {
    /// When it begins, from the beginning of the run.
    pub at: Length,
    /// When it ends; never, if left out.
    pub until: Option<Length>,
    /// The error; positive: ahead.
    pub by: Length,
}

/// A time that moves away slowly, for good.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smear {
    /// When it begins, from the beginning of the run.
    pub at: Length,
    /// The error in the end; positive: ahead.
    pub by: Length,
}

/// A time that runs off.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// When it begins, from the beginning of the run.
    pub at: Length,
    /// When it ends.
    pub until: Length,
    /// How fast.
    pub rate: Fraction,
}

/// A claim.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// When it begins, from the beginning of the run.
    pub at: Length,
    /// When it ends.
    pub until: Length,
    /// The dispersion claimed.
    pub root_dispersion: Length,
}

/// An announced leap second.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaps {
    /// From when it is announced.
    pub at: Length,
}

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// The shortest time between two requests that it answers.
    pub shortest: Length,
}
