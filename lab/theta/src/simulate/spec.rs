//! What a simulated run is to be: the scenario file.

use super::law::Law;
use crate::algorithm::AlgorithmForm;
use crate::faults::FaultSpec;
use ffclock_sim::scenario::{Fraction, Length};
use ffclock_units::{Rate, Span};
use serde::Deserialize;

fn micros(value: i64) -> Length {
    Length(Span::from_nanos(i128::from(value) * 1000))
}

/// A whole scenario. Everything has a default.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spec {
    /// n.
    pub n: u32,
    /// f.
    pub f: u32,
    /// Processes send no later round.
    pub rounds: u64,
    /// D.
    pub delay: Length,
    /// Which algorithm.
    pub form: AlgorithmForm,
    /// Processes start at times uniform from 0 to this.
    pub start_spread: Length,
    /// Where processes live; without it, each has a host of its own.
    pub hosts: Option<u32>,
    /// From one host to another.
    pub link: LinkSpec,
    /// To oneself.
    pub self_reception: Law,
    /// At the receiver, one message after the other.
    pub receiver: ReceiverSpec,
    /// What else the network and the processors do.
    pub load: LoadSpec,
    /// What measures.
    pub clock: ClockSpec,
    /// What goes wrong.
    #[serde(rename = "fault")]
    pub faults: Vec<FaultSpec>,
}

impl Default for Spec {
    fn default() -> Self {
        Spec {
            n: 4,
            f: 1,
            rounds: 1000,
            delay: micros(0),
            form: AlgorithmForm::Repaired,
            start_spread: micros(100),
            hosts: None,
            link: LinkSpec::default(),
            self_reception: Law::Exponential { min: micros(8), mean: micros(2) },
            receiver: ReceiverSpec::default(),
            load: LoadSpec::default(),
            clock: ClockSpec::default(),
            faults: Vec::new(),
        }
    }
}

/// Links.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkSpec {
    /// Of every link that is not named.
    pub law: Law,
    /// A link to a process of higher number takes so many times as long: asymmetry.
    pub upward: f64,
    /// A broadcast is sent to one after the other, so far apart.
    pub gap: Length,
    /// Links with a law of their own.
    pub special: Vec<SpecialLink>,
}

impl Default for LinkSpec {
    fn default() -> Self {
        let law = Law::Exponential { min: micros(23), mean: micros(12) };
        LinkSpec { law, upward: 1.0, gap: micros(0), special: Vec::new() }
    }
}

/// Links with a law of their own: from each of some to each of others.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecialLink {
    /// Senders.
    pub from: Vec<u32>,
    /// Receivers.
    pub to: Vec<u32>,
    /// The law.
    pub law: Law,
}

/// The receiver's queue.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReceiverSpec {
    /// How long a message takes to be processed; the next ones wait.
    pub service: Law,
    /// From this load of its network on, the receiver's kernel polls; above 1 it never does.
    pub polling_from: f64,
    /// How far apart it polls.
    pub polling_period: Length,
}

impl Default for ReceiverSpec {
    fn default() -> Self {
        ReceiverSpec { service: Law::Constant { value: micros(1) }, polling_from: 2.0, polling_period: micros(100) }
    }
}

/// How the load goes over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Always `high`.
    #[default]
    Constant,
    /// From `low` to `high` within `period`, again and again.
    Ramp,
    /// `low` and `high` in turn, each for `period`.
    Jumps,
    /// Uniform between `low` and `high`, anew each `period`.
    Random,
}

/// What the load is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadKind {
    /// Packets: messages wait before the link and after it.
    #[default]
    Network,
    /// Interrupts: processing takes longer.
    Processor,
    /// Both.
    Both,
}

/// Load.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoadSpec {
    /// What it is made of.
    pub kind: LoadKind,
    /// How it goes.
    pub pattern: Pattern,
    /// The lower level, 0 to 0.99.
    pub low: f64,
    /// The higher level, 0 to 0.99.
    pub high: f64,
    /// See the pattern.
    pub period: Length,
    /// How much the hosts share: in each period a host has the common level with this probability, otherwise one of its own.
    pub correlation: f64,
    /// How long a foreign packet occupies the network.
    pub packet: Length,
    /// How long an interrupt occupies the processor.
    pub interrupt: Length,
}

impl Default for LoadSpec {
    fn default() -> Self {
        LoadSpec {
            kind: LoadKind::Network,
            pattern: Pattern::Constant,
            low: 0.0,
            high: 0.0,
            period: micros(10_000),
            correlation: 1.0,
            packet: micros(12),
            interrupt: micros(20),
        }
    }
}

/// The hosts' counters and what is known of them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClockSpec {
    /// Ticks a second.
    pub hertz: f64,
    /// The counters' true rates differ by up to this from that; the clocks know it.
    pub skew: Fraction,
    /// The clocks' errors stay within this: 0 for perfect clocks.
    pub bound: Length,
    /// The errors change no faster.
    pub drift: Fraction,
    /// How often a clock is looked at.
    pub period: Length,
}

impl Default for ClockSpec {
    fn default() -> Self {
        ClockSpec {
            hertz: 2.5e9,
            skew: Fraction(Rate::from_ppm(30.0)),
            bound: micros(0),
            drift: Fraction(Rate::from_ppm(0.05)),
            period: micros(1_000_000),
        }
    }
}
