//! The scenario file: the description of a simulated run.

use super::law::MessageDelayLaw;
use crate::algorithm::AlgorithmForm;
use crate::faults::PlannedFault;
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
    /// The number of processes, n.
    pub n: u32,
    /// The number of processes that may be Byzantine, f.
    pub f: u32,
    /// Processes send no later round.
    pub rounds: u64,
    /// The delay before an advance, D.
    pub delay: Length,
    /// The form of the algorithm.
    pub form: AlgorithmForm,
    /// Processes start at times uniform from 0 to this.
    pub start_spread: Length,
    /// Where processes live; without it, each has a host of its own.
    pub hosts: Option<u32>,
    /// Links between hosts.
    pub link: LinkSpec,
    /// The delay from a process to itself.
    pub self_reception: MessageDelayLaw,
    /// The queue of a receiver.
    pub receiver: ReceiverSpec,
    /// Other load of the network and the processors.
    pub load: LoadSpec,
    /// The clocks that measure.
    pub clock: ClockSpec,
    /// Injected faults.
    #[serde(rename = "fault")]
    pub faults: Vec<PlannedFault>,
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
            self_reception: MessageDelayLaw::Exponential { min: micros(8), mean: micros(2) },
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
    pub law: MessageDelayLaw,
    /// The factor by which a link to a process of higher number takes longer: asymmetry.
    pub upward: f64,
    /// A broadcast is sent to one receiver after the other, with this gap.
    pub gap: Length,
    /// Links with a law of their own.
    pub special: Vec<SpecialLink>,
}

impl Default for LinkSpec {
    fn default() -> Self {
        let law = MessageDelayLaw::Exponential { min: micros(23), mean: micros(12) };
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
    pub law: MessageDelayLaw,
}

/// The receiver's queue.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReceiverSpec {
    /// The time to process a message; the next ones wait.
    pub service: MessageDelayLaw,
    /// From this load of its network on, the receiver's kernel polls; above 1 it never does.
    pub polling_from: f64,
    /// The polling period.
    pub polling_period: Length,
}

impl Default for ReceiverSpec {
    fn default() -> Self {
        ReceiverSpec {
            service: MessageDelayLaw::Constant { value: micros(1) },
            polling_from: 2.0,
            polling_period: micros(100),
        }
    }
}

/// The load over time.
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
    /// Uniform between `low` and `high`, drawn again each `period`.
    Random,
}

/// The kind of load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadKind {
    /// Packets: messages wait before the link and after it.
    #[default]
    Network,
    /// Interrupts: processing takes longer.
    Processor,
    /// Network and processor.
    Both,
}

/// Load.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoadSpec {
    /// Its kind.
    pub kind: LoadKind,
    /// Its pattern.
    pub pattern: Pattern,
    /// The lower level, 0 to 0.99.
    pub low: f64,
    /// The higher level, 0 to 0.99.
    pub high: f64,
    /// See the pattern.
    pub period: Length,
    /// The correlation between hosts: in each period a host has the common level with this probability, otherwise one
    /// of its own.
    pub correlation: f64,
    /// The time for which another packet occupies the network.
    pub packet: Length,
    /// The time for which an interrupt occupies the processor.
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

/// The counters and clocks of the hosts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClockSpec {
    /// Ticks per second.
    pub hertz: f64,
    /// The counters' true rates differ by up to this from that; the clocks know it.
    pub skew: Fraction,
    /// The clocks' errors stay within this: 0 for perfect clocks.
    pub bound: Length,
    /// The errors change no faster.
    pub drift: Fraction,
    /// The time between two samples of a clock.
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
