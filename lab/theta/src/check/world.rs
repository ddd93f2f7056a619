//! A system in the middle of a run: the correct processes, what each has sent, and every message that may come next.

use super::report::{Delivery, Violation};
use crate::algorithm::{AlgorithmForm, Process, Quorum, RoundSwitch, Switches};
use crate::record::SwitchRule;
use thiserror::Error;

/// What is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckBounds {
    /// n and f.
    pub quorum: Quorum,
    /// The algorithm.
    pub form: AlgorithmForm,
    /// A process that has reached this round rests: the depth.
    pub last_round: u64,
    /// The number of rounds ahead that a process keeps apart; as in real runs, which is more than the depth, unless
    /// given.
    pub window: Option<usize>,
}

/// What cannot be explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CheckBoundsError {
    /// Nothing can happen.
    #[error("the last round must be at least 2: processes begin in round 1")]
    NoRound,
    /// Beyond what states are packed into.
    #[error(
        "n = {processes} and {last_round} rounds are too much for this exploration: a state takes {bits} bits of at most 128; ask for fewer rounds"
    )]
    TooLarge {
        /// The number of processes, n.
        processes: u32,
        /// The depth.
        last_round: u64,
        /// What a state would take.
        bits: u64,
    },
}

/// The correct processes of a system, 0 to n - f - 1. The Byzantine ones, n - f to n - 1, have no state: they may
/// always send anything.
#[derive(Clone, Debug)]
pub struct CheckWorld {
    pub(super) bounds: CheckBounds,
    pub(super) processes: Vec<Process>,
    /// By process: bit k for (init, k).
    pub(super) sent: Vec<u64>,
    /// By receiver and sender: bit k for (init, k), where windows are shorter than the depth. Otherwise a process
    /// still has every message.
    delivered: Vec<u64>,
}

impl CheckWorld {
    /// The largest depth: rounds are bits of a word.
    pub const LAST_ROUND_MAX: u64 = 62;

    /// All correct processes have started.
    ///
    /// # Errors
    /// When nothing can happen within the depth, or states would be too large.
    pub fn start(bounds: CheckBounds) -> Result<Self, CheckBoundsError> {
        let processes = bounds.quorum.processes();
        if bounds.last_round < 2 {
            return Err(CheckBoundsError::NoRound);
        }
        if bounds.last_round > Self::LAST_ROUND_MAX {
            return Err(CheckBoundsError::TooLarge { processes, last_round: bounds.last_round, bits: u64::MAX });
        }
        let correct = bounds.quorum.advance() as usize;
        let process = Process::new(bounds.quorum, bounds.form, 0);
        let process = match bounds.window {
            Some(rounds) => process.remembering(rounds),
            None => process,
        };
        let links = if bounds.window.is_some() { correct * processes as usize } else { 0 };
        let mut world =
            CheckWorld { bounds, processes: vec![process; correct], sent: vec![0; correct], delivered: vec![0; links] };
        for index in 0..correct {
            world.processes[index].start(0);
            world.collect(index);
        }
        Ok(world)
    }

    /// How many correct processes there are.
    pub fn correct(&self) -> u32 {
        self.bounds.quorum.advance()
    }

    /// The round of a correct process.
    pub fn round(&self, process: u32) -> u64 {
        self.processes[process as usize].round()
    }

    /// What is explored.
    pub fn bounds(&self) -> CheckBounds {
        self.bounds
    }

    /// The rounds that a correct process has sent: bit k for (init, k).
    pub fn sent(&self, process: u32) -> u64 {
        self.sent[process as usize]
    }

    /// Whether a correct process has counted (init, `round`) of `from`; false for rounds that it has passed.
    pub fn has_counted(&self, process: u32, from: u32, round: u64) -> bool {
        self.processes[process as usize].has_from(from, round)
    }

    /// Whether a correct process has sent (init, `round`).
    pub fn has_sent(&self, process: u32, round: u64) -> bool {
        self.sent[process as usize] >> round & 1 == 1
    }

    /// How many correct processes have sent (init, `round`).
    pub fn senders(&self, round: u64) -> u32 {
        self.sent.iter().filter(|&&sent| sent >> round & 1 == 1).count() as u32
    }

    /// Whether a process has reached the depth and rests.
    pub fn rests(&self, process: u32) -> bool {
        self.round(process) >= self.bounds.last_round
    }

    /// Whether a message would be news to its receiver: it is awake, has not passed the round and has not had the
    /// message.
    pub fn is_new(&self, delivery: Delivery) -> bool {
        let Delivery { to, from, round } = delivery;
        let was_delivered = self.delivered.get(self.link(delivery)).is_some_and(|rounds| rounds >> round & 1 == 1);
        !self.rests(to)
            && round >= self.round(to)
            && !was_delivered
            && !self.processes[to as usize].has_from(from, round)
    }

    /// Where a message lies in `delivered`.
    fn link(&self, Delivery { to, from, .. }: Delivery) -> usize {
        to as usize * self.bounds.quorum.processes() as usize + from as usize
    }

    /// Messages of correct processes that are on their way to `to` and would be news to it.
    pub fn in_transit(&self, to: u32) -> impl Iterator<Item = Delivery> + '_ {
        let rounds = self.round(to)..=self.bounds.last_round;
        let all = rounds.flat_map(move |round| (0..self.correct()).map(move |from| Delivery { to, from, round }));
        all.filter(|&delivery| self.has_sent(delivery.from, delivery.round) && self.is_new(delivery))
    }

    /// Messages that Byzantine processes may send to `to` and that would be news to it.
    pub fn forgeries(&self, to: u32) -> impl Iterator<Item = Delivery> + '_ {
        let byzantine = self.correct()..self.bounds.quorum.processes();
        let rounds = self.round(to)..=self.bounds.last_round;
        let all = rounds.flat_map(move |round| byzantine.clone().map(move |from| Delivery { to, from, round }));
        all.filter(|&delivery| self.is_new(delivery))
    }

    /// Hands a message over and sends what the receiver then sends.
    ///
    /// # Errors
    /// When the receiver does what no correct process may do.
    pub fn deliver(&mut self, delivery: Delivery) -> Result<Switches, Violation> {
        let Delivery { to, from, round } = delivery;
        let before = self.round(to);
        let link = self.link(delivery);
        if let Some(rounds) = self.delivered.get_mut(link) {
            *rounds |= 1 << round;
        }
        let switches = self.processes[to as usize].receive(from, round, 0);
        switches.into_iter().try_for_each(|switch| self.judge(to, before, switch))?;
        if !switches.is_empty() && !self.collect(to as usize) {
            return Err(Violation::SentTwice { process: to });
        }
        Ok(switches)
    }

    /// Whether a process stands forever: every message of a correct process has been delivered or is no news, the
    /// Byzantine ones keep silent, and of the processes that have not come to the depth none can go on. One at rest
    /// might still have sent what helps the others; but as soon as f + 1 rest, what they have sent must bring all
    /// others to the depth.
    pub fn has_stopped(&self) -> bool {
        let resting = (0..self.correct()).filter(|&process| self.rests(process)).count() as u32;
        let decides = resting == 0 || (self.bounds.quorum.catch_up()..self.correct()).contains(&resting);
        decides && (0..self.correct()).all(|process| self.rests(process) || !self.can_move(process))
    }

    /// Whether the messages of correct processes alone will move a process.
    fn can_move(&self, process: u32) -> bool {
        let mut machine = self.processes[process as usize].clone();
        self.in_transit(process).any(|delivery| !machine.receive(delivery.from, delivery.round, 0).is_empty())
    }

    /// The thresholds, seen from outside: what a switch proves about the other processes.
    fn judge(&self, process: u32, before: u64, switch: RoundSwitch) -> Result<(), Violation> {
        if switch.to <= before {
            return Err(Violation::WentBack { process });
        }
        let (round, least) = match switch.rule {
            SwitchRule::CatchUp => (switch.to, 1),
            SwitchRule::Advance => (switch.to - 1, self.bounds.quorum.advance() - self.bounds.quorum.faulty()),
        };
        let senders = self.senders(round);
        if senders < least { Err(Violation::Forged { process, round, senders, least }) } else { Ok(()) }
    }

    /// Sends what a process wants to send. False if it sends something twice.
    fn collect(&mut self, index: usize) -> bool {
        let sent = &mut self.sent[index];
        while let Some(round) = self.processes[index].poll_transmit() {
            let bit = 1 << round.min(63);
            if *sent & bit != 0 {
                return false;
            }
            *sent |= bit;
        }
        true
    }
}
