//! The findings of a check, and their text form.

use crate::algorithm::Switches;
use crate::check::CheckWorld;
use serde::Serialize;
use std::fmt;

/// (init, `round`) comes from `from` to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Delivery {
    /// The receiver, a correct process.
    pub to: u32,
    /// The sender; from n - f on it is Byzantine.
    pub from: u32,
    /// What the message carries.
    pub round: u64,
}

/// Something that no correct process may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Violation {
    /// A clock went back.
    WentBack {
        /// The process.
        process: u32,
    },
    /// A process sent the same round twice.
    SentTwice {
        /// The process.
        process: u32,
    },
    /// A process switched though too few correct ones had sent the round: Byzantine ones alone can drive the clocks.
    Forged {
        /// The process.
        process: u32,
        /// The round that the rule counted.
        round: u64,
        /// How many correct processes had sent it.
        senders: u32,
        /// How many there must be.
        least: u32,
    },
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckVerdict {
    /// Everything within the depth was seen, and nothing was wrong.
    Holds,
    /// Nothing was wrong so far, but not everything was seen: the limit of states was reached.
    Unfinished,
    /// The system can stop forever.
    Stops,
    /// A correct process can be made to do what it may not.
    Violated(Violation),
}

/// One step of a witness: some messages come, and the receiver switches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WitnessStep {
    /// The messages that come.
    pub deliveries: Vec<Delivery>,
    /// From which round the receiver goes, if it does.
    pub from: Option<u64>,
    /// To which round the receiver goes, if it does.
    pub to: Option<u64>,
}

impl WitnessStep {
    pub(super) fn new(deliveries: Vec<Delivery>, switches: Switches) -> Self {
        let from = switches.into_iter().next().map(|switch| switch.from);
        WitnessStep { deliveries, from, to: switches.into_iter().last().map(|switch| switch.to) }
    }
}

/// A run that ends badly.
#[derive(Clone, Debug, Serialize)]
pub struct RunWitness {
    /// The number of processes, n.
    pub processes: u32,
    /// The number of Byzantine processes, f; they are the last ones.
    pub faulty: u32,
    /// How it comes about. Every process has started and is in round 1.
    pub steps: Vec<WitnessStep>,
    /// By correct process: its round, and by round from there on how many senders it holds once every message on its
    /// way has come.
    pub standing: Vec<ProcessStanding>,
}

/// Where a correct process stands forever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessStanding {
    /// Its round.
    pub round: u64,
    /// (round, senders), for rounds that any process has sent.
    pub holds: Vec<(u64, u32)>,
}

/// What an exploration saw.
#[derive(Clone, Debug, Serialize)]
pub struct Exploration {
    /// How it ended.
    pub verdict: CheckVerdict,
    /// Different states seen, up to the names of correct processes.
    pub states: u64,
    /// Steps taken, those to known states included.
    pub steps: u64,
    /// The depth: processes rest in this round.
    pub last_round: u64,
    /// How it comes about, if something is wrong.
    pub witness: Option<RunWitness>,
}

impl RunWitness {
    pub(super) fn new(world: &CheckWorld, steps: Vec<WitnessStep>) -> Self {
        let quorum = world.bounds.quorum;
        let standing = (0..world.correct()).map(|process| ProcessStanding::of(world, process)).collect();
        RunWitness { processes: quorum.processes(), faulty: quorum.faulty(), steps, standing }
    }
}

impl ProcessStanding {
    fn of(world: &CheckWorld, process: u32) -> Self {
        let mut machine = world.processes[process as usize].clone();
        for delivery in world.in_transit(process) {
            machine.receive(delivery.from, delivery.round, 0);
        }
        let rounds = machine.round()..=world.bounds.last_round;
        let holds = rounds.map(|round| (round, machine.count(round))).filter(|&(_, senders)| senders > 0);
        ProcessStanding { round: machine.round(), holds: holds.collect() }
    }
}

/// A process by its letter where letters suffice.
fn name(process: u32) -> String {
    match u8::try_from(process) {
        Ok(small @ 0..26) => char::from(b'A' + small).to_string(),
        _ => format!("p{process}"),
    }
}

impl fmt::Display for RunWitness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (correct, all) = (self.processes - self.faulty, self.processes);
        let list = |range: std::ops::Range<u32>| range.map(name).collect::<Vec<_>>().join(", ");
        writeln!(f, "correct: {}; Byzantine: {}; all start in round 1", list(0..correct), list(correct..all))?;
        for (number, step) in self.steps.iter().enumerate() {
            writeln!(f, "{:3}. {step}", number + 1)?;
        }
        let (advance, catch_up) = (all - self.faulty, self.faulty + 1);
        writeln!(f, "every message has come, and no process moves again:")?;
        for (process, standing) in self.standing.iter().enumerate() {
            write!(f, "     {} in round {}:", name(process as u32), standing.round)?;
            for &(round, senders) in &standing.holds {
                let wanted = if round == standing.round { advance } else { catch_up };
                write!(f, " {senders} < {wanted} of (init,{round})")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for WitnessStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.deliveries.first() else { return f.write_str("nothing") };
        write!(f, "{} gets (init,{}) from", name(first.to), first.round)?;
        for delivery in &self.deliveries {
            write!(f, " {}", name(delivery.from))?;
        }
        match (self.from, self.to) {
            (Some(from), Some(to)) => write!(f, " and goes from {from} to {to}"),
            _ => Ok(()),
        }
    }
}
