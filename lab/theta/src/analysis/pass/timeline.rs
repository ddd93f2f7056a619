//! Broadcasts and switches that have been read, in the order of time.

use crate::analysis::options::SwitchStamping;
use crate::analysis::pending::Pending;
use crate::record::SwitchRule;

/// A message that was sent to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Broadcast {
    pub(super) sender: usize,
    pub(super) round: u64,
    pub(super) first_of_process: bool,
}

/// A switch, with its times in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TimedSwitch {
    pub(super) process: usize,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) at_ps: i64,
    pub(super) decided_ps: i64,
    pub(super) rule: SwitchRule,
}

impl TimedSwitch {
    /// Counts from an origin that is later.
    pub(super) fn move_origin(&mut self, by_ps: i64) {
        self.at_ps = self.at_ps.saturating_sub(by_ps);
        self.decided_ps = self.decided_ps.saturating_sub(by_ps);
    }
}

/// What comes next in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Broadcast { at_ps: i64, broadcast: Broadcast },
    Switches { at_ps: i64 },
}

/// Broadcasts and switches that wait until nothing earlier can come.
#[derive(Default)]
pub(super) struct Timeline {
    broadcasts: Pending<Broadcast>,
    switches: Pending<TimedSwitch>,
    /// Memory for the next [`Self::pop_switches`].
    spare: Vec<TimedSwitch>,
}

impl Timeline {
    pub(super) fn insert_broadcast(&mut self, at_ps: i64, broadcast: Broadcast) {
        self.broadcasts.insert(at_ps, broadcast);
    }

    /// Counts from an origin that is later.
    pub(super) fn move_origin(&mut self, by_ps: i64) {
        self.broadcasts.move_origin(by_ps, |_| ());
        self.switches.move_origin(by_ps, |switch| switch.move_origin(by_ps));
    }

    pub(super) fn insert_switch(&mut self, at_ps: i64, switch: TimedSwitch) {
        self.switches.insert(at_ps, switch);
    }

    /// What comes first. Of a broadcast and a switch at the same time, the stamping decides.
    #[inline]
    pub(super) fn next(&self, stamping: SwitchStamping) -> Option<Next> {
        let broadcast = self.broadcasts.first().map(|&(at_ps, broadcast)| Next::Broadcast { at_ps, broadcast });
        let Some(&(switched_ps, _)) = self.switches.first() else { return broadcast };
        let comes_first = self.broadcasts.first().is_some_and(|&(sent_ps, _)| match stamping {
            SwitchStamping::AfterBroadcast => sent_ps <= switched_ps,
            SwitchStamping::BeforeBroadcast => sent_ps < switched_ps,
        });
        if comes_first { broadcast } else { Some(Next::Switches { at_ps: switched_ps }) }
    }

    /// The time of the first of both.
    pub(super) fn first_ps(&self) -> Option<i64> {
        let sent = self.broadcasts.first().map(|&(at_ps, _)| at_ps);
        sent.into_iter().chain(self.switches.first().map(|&(at_ps, _)| at_ps)).min()
    }

    pub(super) fn pop_broadcast(&mut self) {
        let popped = self.broadcasts.pop();
        debug_assert!(popped.is_some(), "no broadcast comes next");
    }

    /// Takes the switches of time `at_ps`, which come next. They come back by [`Self::give_back`].
    #[inline]
    pub(super) fn pop_switches(&mut self, at_ps: i64) -> Vec<TimedSwitch> {
        let mut together = std::mem::take(&mut self.spare);
        together.clear();
        while self.switches.first().is_some_and(|&(time, _)| time == at_ps) {
            together.extend(self.switches.pop().map(|(_, switch)| switch));
        }
        debug_assert!(!together.is_empty(), "no switch comes next");
        together
    }

    pub(super) fn give_back(&mut self, switches: Vec<TimedSwitch>) {
        self.spare = switches;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(process: usize, at_ps: i64) -> TimedSwitch {
        TimedSwitch { process, from: 1, to: 2, at_ps, decided_ps: at_ps, rule: SwitchRule::Advance }
    }

    #[test]
    fn the_stamping_decides_between_equal_times() {
        let mut timeline = Timeline::default();
        assert_eq!(timeline.next(SwitchStamping::AfterBroadcast), None);
        let broadcast = Broadcast { sender: 0, round: 2, first_of_process: false };
        timeline.insert_broadcast(7, broadcast);
        timeline.insert_switch(7, switch(0, 7));
        assert_eq!(timeline.next(SwitchStamping::AfterBroadcast), Some(Next::Broadcast { at_ps: 7, broadcast }));
        assert_eq!(timeline.next(SwitchStamping::BeforeBroadcast), Some(Next::Switches { at_ps: 7 }));
        timeline.insert_switch(6, switch(1, 6));
        assert_eq!(timeline.next(SwitchStamping::AfterBroadcast), Some(Next::Switches { at_ps: 6 }));
        assert_eq!(timeline.first_ps(), Some(6));
    }

    #[test]
    fn switches_at_the_same_time_come_together() {
        let mut timeline = Timeline::default();
        [switch(2, 5), switch(1, 5), switch(0, 9)].into_iter().for_each(|one| timeline.insert_switch(one.at_ps, one));
        let together = timeline.pop_switches(5);
        assert_eq!(together, [switch(1, 5), switch(2, 5)]);
        timeline.give_back(together);
        assert_eq!(timeline.pop_switches(9), [switch(0, 9)]);
    }
}
