//! Injected faults of a rank and of its links. They have the names and the meaning that they have in simulated runs.
//!
//! Times are picoseconds since the start of the run.

use ffclock_sim::Random;
use ffclock_theta::faults::{EARLY_ROUNDS, FaultPlan, LinkPassage, Misbehaviour, lies};
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Injected faults, in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injected {
    /// Not sent at all, because a link loses them.
    pub lost: u64,
    /// Sent a second time, because a link duplicates them.
    pub duplicated: u64,
    /// Sent later, because a link or a partition holds them.
    pub held: u64,
    /// Still held when the run ended, and never sent.
    pub never_released: u64,
    /// Sent by a faulty process where a correct one would have sent something else; silence counts as one.
    pub untrue: u64,
    /// Arrived at a process that had crashed or not started.
    pub missed: u64,
    /// Processed more slowly.
    pub slowed: u64,
}

impl AddAssign for Injected {
    fn add_assign(&mut self, other: Self) {
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.held += other.held;
        self.never_released += other.never_released;
        self.untrue += other.untrue;
        self.missed += other.missed;
        self.slowed += other.slowed;
    }
}

/// A rank and its host.
#[derive(Clone, Copy, Debug)]
pub(super) struct InjectedRank {
    pub(super) rank: u32,
    pub(super) host: u32,
}

/// The faults that concern one rank.
pub(super) struct Injector {
    own: u32,
    host: usize,
    plan: FaultPlan,
    chance: Random,
    /// The two-faced processes draw from the number of the run, so that they agree.
    conspiracy: u64,
    pub(super) done: Injected,
}

impl Injector {
    pub(super) fn new(plan: FaultPlan, own: InjectedRank, run: u64) -> Self {
        let InjectedRank { rank: own, host } = own;
        let chance = Random::named(run ^ u64::from(own), "faults");
        Injector { own, host: host as usize, plan, chance, conspiracy: run, done: Injected::default() }
    }

    /// Whether the process does not run: it has crashed, or not started yet.
    pub(super) fn is_down(&self, at: u64) -> bool {
        at >= self.plan.crashes[self.own as usize] || at < self.starts()
    }

    /// When the process starts.
    pub(super) fn starts(&self) -> u64 {
        self.plan.starts[self.own as usize].unwrap_or(0)
    }

    pub(super) fn has_twin(&self) -> bool {
        self.plan.twins.contains(&self.own)
    }

    /// By how many picoseconds the twin receives a message later than the process, so that the two disagree.
    pub(super) fn twin_lag(&mut self) -> u64 {
        /// Half a millisecond.
        const MOST: f64 = 5e8;
        (self.chance.uniform() * MOST) as u64
    }

    /// The factor by which processing takes longer on this host.
    pub(super) fn slowness(&mut self, at: u64) -> f64 {
        if self.plan.slow[self.host].is_empty() {
            return 1.0;
        }
        let factor = self.plan.slowness(self.host, at);
        self.done.slowed += u64::from(factor > 1.0);
        factor
    }

    /// The rounds to send to a receiver when `round` is due.
    pub(super) fn rounds_for(&mut self, receiver: u32, round: u64, at: u64) -> Vec<u64> {
        let sent = match self.plan.misbehaviour(self.own as usize, at) {
            None => return vec![round],
            Some(Misbehaviour::Silence) => vec![],
            Some(Misbehaviour::TwoFaced) => {
                lies(self.conspiracy, receiver, round).iter().map(|lie| round + lie).collect()
            }
            Some(Misbehaviour::Early) => (round..=round + EARLY_ROUNDS).collect(),
            // To all the same old one.
            Some(Misbehaviour::Replay) => vec![round, 1 + Random::new(self.conspiracy ^ round).bits() % round],
        };
        self.done.untrue +=
            sent.iter().filter(|&&other| other != round).count().max(usize::from(sent.is_empty())) as u64;
        sent
    }

    /// What the link does to a message. A message to the own process passes no link.
    pub(super) fn way(&mut self, to: u32, at: u64) -> LinkPassage {
        if to == self.own {
            return LinkPassage { copies: 1, from: at };
        }
        let way = self.plan.pass([self.own, to], at, &mut self.chance);
        self.done.lost += u64::from(way.copies == 0);
        self.done.duplicated += way.copies.saturating_sub(1);
        self.done.held += if way.from > at { way.copies } else { 0 };
        way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn injector(own: u32, faults: &[&str]) -> Injector {
        let specs: Vec<_> = faults.iter().map(|text| text.parse().unwrap()).collect();
        Injector::new(FaultPlan::new(&specs, 4, 4).unwrap(), InjectedRank { rank: own, host: own }, 7)
    }

    const MS: u64 = 1_000_000_000;

    #[test]
    fn processes_go_down_and_come_up() {
        let crash = injector(2, &["kind = \"crash\", process = 2, from = \"5 ms\""]);
        assert_eq!([0, 5 * MS - 1, 5 * MS].map(|at| crash.is_down(at)), [false, false, true]);
        let late = injector(2, &["kind = \"late-start\", process = 2, from = \"5 ms\""]);
        assert_eq!([0, 5 * MS - 1, 5 * MS].map(|at| late.is_down(at)), [true, true, false]);
        assert!(!injector(1, &["kind = \"crash\", process = 2"]).is_down(9));
    }

    #[test]
    fn faulty_processes_send_something_else() {
        let sent = |kind: &str| {
            let mut injector = injector(1, &[&format!("kind = \"{kind}\", process = 1, from = \"1 ms\"")]);
            assert_eq!(injector.rounds_for(0, 9, 0), [9], "before it begins");
            let sent: Vec<_> = (0..4).map(|receiver| injector.rounds_for(receiver, 9, MS)).collect();
            (sent, injector.done.untrue)
        };
        assert_eq!(sent("silence"), (vec![vec![]; 4], 4));
        assert_eq!(sent("early-messages"), (vec![vec![9, 10, 11]; 4], 8));
        let (replayed, _) = sent("replay");
        assert!(replayed.iter().all(|sent| *sent == replayed[0] && sent[0] == 9 && (1..=9).contains(&sent[1])));
        let mut two_faced = injector(1, &["kind = \"two-faced\", process = 1"]);
        let rounds =
            (1..50).filter(|&round| two_faced.rounds_for(0, round, 0) != two_faced.rounds_for(2, round, 0)).count();
        assert!(rounds > 20, "different receivers get different rounds: {rounds}");
    }

    #[test]
    fn links_lose_double_and_hold() {
        let mut injector = injector(
            1,
            &[
                "kind = \"link-loss\", process = 1, receiver = 0",
                "kind = \"link-duplication\", process = 1, receiver = 2",
                "kind = \"link-hold\", receiver = 2, hold = \"2 ms\"",
                "kind = \"partition\", group = [3], from = \"1 ms\", until = \"4 ms\"",
            ],
        );
        let ways = [0, 1, 2, 3].map(|to| injector.way(to, MS));
        let way = |copies, from| LinkPassage { copies, from };
        assert_eq!(ways, [way(0, MS), way(1, MS), way(2, 3 * MS), way(1, 4 * MS)]);
        let Injected { lost, duplicated, held, .. } = injector.done;
        assert_eq!((lost, duplicated, held), (1, 1, 3));
    }

    #[test]
    fn a_slow_host_slows_its_own_processes() {
        let slow = "kind = \"slow-host\", host = 1, factor = 20.0, until = \"1 ms\"";
        assert_eq!([0, MS].map(|at| injector(1, &[slow]).slowness(at)), [20.0, 1.0]);
        assert_eq!(injector(0, &[slow]).slowness(0), 1.0);
    }
}
