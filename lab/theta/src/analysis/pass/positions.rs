//! Where each process stands: its rounds, and a switch that waits for the broadcast of its round.

use super::rules::Rules;
use super::timeline::TimedSwitch;

/// One process.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    /// The highest round it sent, of broadcasts that have been read.
    sent: u64,
    /// The highest round it reached, of switches and first broadcasts that have been released.
    reached: u64,
    /// The round of its last switch that was read; 0 before the first.
    switched_to: u64,
    /// The round it switched to before it sent anything, because of messages that had come before its start; 0 if it
    /// began in round 1.
    began_in: u64,
    /// A switch that waits for the broadcast of its round.
    held: Option<TimedSwitch>,
}

/// All processes.
pub(super) struct Positions {
    positions: Vec<Position>,
    /// Processes with a held switch: nearly always none or one.
    holders: Vec<usize>,
    held_ps: i64,
}

impl Positions {
    pub(super) fn new(processes: usize) -> Self {
        Positions { positions: vec![Position::default(); processes], holders: vec![], held_ps: i64::MAX }
    }

    pub(super) fn len(&self) -> usize {
        self.positions.len()
    }

    /// Notes a broadcast. Whether a held switch waits for it.
    pub(super) fn note_broadcast(&mut self, process: usize, round: u64) -> bool {
        let position = &mut self.positions[process];
        position.sent = position.sent.max(round);
        position.held.is_some_and(|switch| switch.to == round)
    }

    pub(super) fn has_switched(&self, process: usize) -> bool {
        self.positions[process].switched_to != 0
    }

    /// Notes a switch. The round that the previous switch of its process led to; 0 if there was none.
    pub(super) fn note_switch(&mut self, switch: &TimedSwitch) -> u64 {
        let position = &mut self.positions[switch.process];
        if position.sent == 0 && position.switched_to == 0 {
            position.began_in = switch.to;
        }
        std::mem::replace(&mut position.switched_to, switch.to)
    }

    /// The round below which broadcasts of a process are of rounds that it jumped over before its first one.
    pub(super) fn began_in(&self, process: usize) -> u64 {
        self.positions[process].began_in
    }

    /// Notes that a process has reached a round, in the order of time.
    pub(super) fn reach(&mut self, process: usize, round: u64) {
        let position = &mut self.positions[process];
        position.reached = position.reached.max(round);
    }

    /// Holds a switch until the broadcast of its round. The process must not hold another.
    pub(super) fn hold(&mut self, switch: TimedSwitch) {
        debug_assert!(self.positions[switch.process].held.is_none(), "a process holds one switch at most");
        self.positions[switch.process].held = Some(switch);
        self.holders.push(switch.process);
        self.held_ps = self.held_ps.min(switch.at_ps);
    }

    /// Counts from an origin that is later.
    pub(super) fn move_origin(&mut self, by_ps: i64) {
        self.positions
            .iter_mut()
            .filter_map(|position| position.held.as_mut())
            .for_each(|held| held.move_origin(by_ps));
        if !self.holders.is_empty() {
            self.held_ps = self.held_ps.saturating_sub(by_ps);
        }
    }

    /// Takes the held switch of a process.
    pub(super) fn unhold(&mut self, process: usize) -> Option<TimedSwitch> {
        let switch = self.positions[process].held.take()?;
        self.holders.retain(|&holder| holder != process);
        let held = self.holders.iter().filter_map(|&holder| self.positions[holder].held);
        self.held_ps = held.map(|switch| switch.at_ps).min().unwrap_or(i64::MAX);
        Some(switch)
    }

    /// The time of the earliest held switch: nothing later may be released.
    pub(super) fn held_ps(&self) -> i64 {
        self.held_ps
    }

    /// A process with a held switch.
    pub(super) fn holder(&self) -> Option<usize> {
        self.holders.first().copied()
    }

    /// A process with a held switch earlier than a time.
    pub(super) fn holder_before(&self, time_ps: i64) -> Option<usize> {
        let is_before = |&&holder: &&usize| self.positions[holder].held.is_some_and(|switch| switch.at_ps < time_ps);
        self.holders.iter().find(is_before).copied()
    }

    /// Whether all correct processes have left a round.
    pub(super) fn have_left(&self, round: u64, rules: &Rules) -> bool {
        let imported = rules.is_imported();
        let left = |(position, &correct): (&Position, &bool)| {
            let (sent, reached) = (position.sent, position.reached);
            // In an imported log the client only switches, and the servers only send.
            let place = if imported { sent.max(reached) } else { sent.min(reached) };
            !correct || place > round
        };
        self.positions.iter().zip(&rules.correct).all(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SwitchRule;

    fn switch(process: usize, to: u64, at_ps: i64) -> TimedSwitch {
        TimedSwitch { process, from: to - 1, to, at_ps, decided_ps: at_ps, rule: SwitchRule::Advance }
    }

    #[test]
    fn a_switch_is_held_until_the_broadcast_of_its_round() {
        let mut positions = Positions::new(2);
        assert_eq!(positions.held_ps(), i64::MAX);
        positions.hold(switch(0, 3, 20));
        positions.hold(switch(1, 2, 10));
        assert_eq!(
            (positions.held_ps(), positions.holder_before(10), positions.holder_before(11)),
            (10, None, Some(1))
        );
        assert!(!positions.note_broadcast(1, 1));
        assert!(positions.note_broadcast(1, 2));
        assert_eq!(positions.unhold(1), Some(switch(1, 2, 10)));
        assert_eq!((positions.held_ps(), positions.holder(), positions.unhold(1)), (20, Some(0), None));
    }

    #[test]
    fn who_switches_first_and_sends_later_began_in_that_round() {
        let mut positions = Positions::new(2);
        assert_eq!(positions.note_switch(&switch(0, 5, 1)), 0);
        assert_eq!(positions.note_switch(&switch(0, 6, 2)), 5);
        positions.note_broadcast(1, 1);
        assert_eq!(positions.note_switch(&switch(1, 2, 3)), 0);
        assert_eq!((positions.began_in(0), positions.began_in(1)), (5, 0));
    }
}
