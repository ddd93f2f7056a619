//! Messages from the order of their perception into that of their sending.
//!
//! The analysis must see what was sent at the same time together, and a message may be on its way for as long as it is
//! allowed to. Until then it waits here, in 24 bytes: a million messages a second, a second on their way at most, fit
//! 24 MB. The analysis itself then holds only the rounds that are under way.

use crate::record::SwitchRule;
use std::collections::VecDeque;

/// The longest time on the way is cut into as many slices.
const SLICES: u64 = 1024;
/// The sender, in the lowest bits beside the round; of a switch, what stands for its rule.
const SENDER_BITS: u32 = 10;
const ADVANCE: u64 = 0;
const CATCH_UP: u64 = (1 << SENDER_BITS) - 1;
const _: () = assert!((crate::import::SENDERS_MAX as u64) < CATCH_UP, "senders have too few bits");

/// A message or a switch that waits for its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    /// When it was sent, or when the receiver switched, in nanoseconds since the origin.
    pub(super) at_ns: i64,
    /// When it was perceived; of a switch, the round that was left.
    also: i64,
    round_and_sender: u64,
}

/// What it is that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    Message { sender: u32, round: u64, perceived_ns: i64 },
    Switch { from: u64, to: u64, rule: SwitchRule },
}

impl Waiting {
    pub(super) fn message(sender: u32, round: u64, (sent_ns, perceived_ns): (i64, i64)) -> Self {
        let round_and_sender = round << SENDER_BITS | u64::from(sender);
        Waiting { at_ns: sent_ns, also: perceived_ns, round_and_sender }
    }

    pub(super) fn switch(from: u64, to: u64, at_ns: i64, rule: SwitchRule) -> Self {
        let rule = if rule == SwitchRule::Advance { ADVANCE } else { CATCH_UP };
        Waiting { at_ns, also: from as i64, round_and_sender: to << SENDER_BITS | rule }
    }

    pub(super) fn what(&self) -> Waited {
        let (round, sender) = (self.round_and_sender >> SENDER_BITS, self.round_and_sender & CATCH_UP);
        match sender {
            ADVANCE => Waited::Switch { from: self.also as u64, to: round, rule: SwitchRule::Advance },
            CATCH_UP => Waited::Switch { from: self.also as u64, to: round, rule: SwitchRule::CatchUp },
            sender => Waited::Message { sender: sender as u32, round, perceived_ns: self.also },
        }
    }
}

/// All that happened in one slice of time, in no order.
pub(super) struct TimeSlice {
    pub(super) waiting: Vec<Waiting>,
    /// Nothing of it was at this time or later.
    pub(super) end_ns: i64,
}

/// What waits, by slices of time.
#[derive(Debug)]
pub(super) struct SendOrder {
    slice_ns: i64,
    longest_ns: i64,
    /// The begin of the first slice; `None` before the first message.
    begin_ns: Option<i64>,
    slices: VecDeque<Vec<Waiting>>,
    spare: Vec<Vec<Waiting>>,
}

impl SendOrder {
    /// Messages are on their way for `longest_ns` at most.
    pub(super) fn new(longest_ns: u64) -> Self {
        let slice_ns = (longest_ns / SLICES + 1) as i64;
        let longest_ns = i64::try_from(longest_ns).unwrap_or(i64::MAX);
        SendOrder { slice_ns, longest_ns, begin_ns: None, slices: VecDeque::new(), spare: vec![] }
    }

    /// Takes what was sent no longer ago than a message may be on its way, and everything before has been taken out.
    pub(super) fn put(&mut self, waiting: Waiting) {
        let begin_ns = *self.begin_ns.get_or_insert(waiting.at_ns.saturating_sub(self.longest_ns));
        let place = (waiting.at_ns.saturating_sub(begin_ns) / self.slice_ns).max(0) as usize;
        debug_assert!(place as u64 <= 2 * SLICES + 2, "no more slices than messages can be on their way in");
        while self.slices.len() <= place {
            self.slices.push_back(self.spare.pop().unwrap_or_default());
        }
        let slice = &mut self.slices[place];
        // Doubling would take half of the memory for nothing.
        if slice.len() == slice.capacity() {
            slice.reserve_exact(slice.len() / 8 + 8);
        }
        slice.push(waiting);
    }

    /// The first slice, if nothing can be added to it when everything perceived before `newest_ns` has been put.
    pub(super) fn take_before(&mut self, newest_ns: i64) -> Option<TimeSlice> {
        let complete_ns = newest_ns.saturating_sub(self.longest_ns);
        let end_ns = self.begin_ns?.saturating_add(self.slice_ns);
        if end_ns > complete_ns {
            return None;
        }
        let Some(waiting) = self.slices.pop_front() else {
            // Nothing waits: no need to go through all slices of a pause.
            self.begin_ns = Some(complete_ns);
            return None;
        };
        self.begin_ns = Some(end_ns);
        Some(TimeSlice { waiting, end_ns })
    }

    /// Takes the memory of a slice back.
    pub(super) fn give_back(&mut self, mut waiting: Vec<Waiting>) {
        waiting.clear();
        if self.spare.len() < 4 {
            self.spare.push(waiting);
        }
    }

    /// Counts from an origin that is later.
    pub(super) fn move_origin(&mut self, by_ns: i64) {
        self.begin_ns = self.begin_ns.map(|begin_ns| begin_ns.saturating_sub(by_ns));
        for waiting in self.slices.iter_mut().flatten() {
            waiting.at_ns = waiting.at_ns.saturating_sub(by_ns);
            if let Waited::Message { perceived_ns, .. } = waiting.what() {
                waiting.also = perceived_ns.saturating_sub(by_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_comes_out_in_order_and_no_sooner_than_all_of_it_is_known() {
        let (mut order, mut random, mut seen) = (SendOrder::new(5000), 7_u64, vec![]);
        let mut expected = vec![];
        for perceived_ns in (0..100_000).chain(9_000_000..9_100_000) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let sent_ns = perceived_ns - (random >> 33) as i64 % 5001;
            expected.push(sent_ns);
            while let Some(slice) = order.take_before(perceived_ns) {
                assert!(slice.end_ns <= perceived_ns - 5000);
                assert!(slice.waiting.iter().all(|waiting| waiting.at_ns < slice.end_ns));
                let is_whole =
                    |waiting: &Waiting| matches!(waiting.what(), Waited::Message { sender: 3, round: 77, .. });
                assert!(slice.waiting.iter().all(is_whole));
                let mut times: Vec<i64> = slice.waiting.iter().map(|waiting| waiting.at_ns).collect();
                times.sort_unstable();
                assert!(seen.last() <= times.first() || times.is_empty(), "slices are in order");
                seen.append(&mut times);
                order.give_back(slice.waiting);
            }
            // Also after a pause of 2000 slices.
            order.put(Waiting::message(3, 77, (sent_ns, perceived_ns)));
        }
        expected.sort_unstable();
        assert_eq!(seen[..], expected[..seen.len()]);
        let waiting: usize = order.slices.iter().map(Vec::len).sum();
        assert_eq!(seen.len() + waiting, expected.len());
        assert!(waiting < 10_100, "{waiting} wait");
    }
}
