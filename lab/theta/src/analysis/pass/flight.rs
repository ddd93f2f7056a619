//! The messages of one broadcast, from their sender to all who listen.

use super::in_transit::InTransit;
use super::rules::Rules;
use crate::analysis::options::{DelayMode, ThetaMode};
use crate::analysis::tally::{PassTally, smaller};
use crate::analysis::window::{NEVER, RoundMessages};
use crate::record::ProcessId;

/// A broadcast whose messages are counted.
pub(super) struct Flight<'a> {
    pub(super) rules: &'a Rules,
    pub(super) messages: &'a RoundMessages,
    pub(super) at_ps: i64,
    pub(super) sender: usize,
}

/// One message: its receiver, and when it was perceived, or [`NEVER`].
#[derive(Clone, Copy)]
struct MessageArrival {
    receiver: usize,
    end_ps: i64,
}

impl Flight<'_> {
    /// Counts the messages. The time at which the last of them was perceived.
    #[inline]
    pub(super) fn count(&self, tally: &mut PassTally, transit: &mut InTransit) -> Option<i64> {
        if let Some(last) = self.count_at_once(tally) { Some(last) } else { self.count_each(tally, transit) }
    }

    /// Counts all messages together where only the shortest and the longest delay matter and nothing is wrong.
    fn count_at_once(&self, tally: &mut PassTally) -> Option<i64> {
        let (options, at) = (&self.rules.options, self.at_ps);
        if options.theta == ThetaMode::Compute || options.delays == DelayMode::Histograms {
            return None;
        }
        let perceived = self.messages.perceived(self.sender);
        let (first, last) =
            perceived.iter().fold((i64::MAX, NEVER), |(first, last), &at| (first.min(at), last.max(at)));
        // NEVER is the earliest of all times, so a missing message ends here too. A message that reaches into the
        // range from before it is rare.
        if first <= at
            || self.rules.listeners as usize != perceived.len()
            || (at <= options.range.after_ps && last > options.range.after_ps)
        {
            return None;
        }
        if self.rules.counts(at) {
            tally.counts.messages += perceived.len() as u64;
            tally.delay_min_ps = smaller(tally.delay_min_ps, Some(first - at));
            tally.delay_max_ps = tally.delay_max_ps.max(Some(last - at));
        }
        Some(last)
    }

    /// Counts the messages one by one.
    fn count_each(&self, tally: &mut PassTally, transit: &mut InTransit) -> Option<i64> {
        let mut last = None;
        for (receiver, &end_ps) in self.messages.perceived(self.sender).iter().enumerate() {
            if !self.rules.listens[receiver] {
                continue;
            }
            let arrival = MessageArrival { receiver, end_ps };
            if end_ps > self.at_ps {
                last = last.max(Some(end_ps));
                self.follow(arrival, tally, transit);
            }
            if self.rules.counts(self.at_ps) {
                self.count_message(arrival, tally);
            }
        }
        last
    }

    fn delay_ps(&self, arrival: MessageArrival) -> i64 {
        arrival.end_ps.saturating_sub(self.at_ps)
    }

    /// A message with a positive delay.
    fn follow(&self, arrival: MessageArrival, tally: &mut PassTally, transit: &mut InTransit) {
        let (delay, end_ps) = (self.delay_ps(arrival), arrival.end_ps);
        if self.rules.options.theta == ThetaMode::Compute {
            transit.send_message(delay, end_ps);
        }
        if self.rules.options.range.holds_transit(self.at_ps, end_ps) {
            tally.delay_min_ps = smaller(tally.delay_min_ps, Some(delay));
            tally.delay_max_ps = tally.delay_max_ps.max(Some(delay));
        }
    }

    fn count_message(&self, arrival: MessageArrival, tally: &mut PassTally) {
        let delay_ps = self.delay_ps(arrival);
        if arrival.end_ps == NEVER {
            tally.counts.unperceived += 1;
        } else if delay_ps <= 0 {
            tally.counts.not_positive += 1;
            let (sender, receiver) = (ProcessId(self.sender as u32), ProcessId(arrival.receiver as u32));
            let message = (delay_ps, sender, receiver);
            tally.worst_not_positive = Some(tally.worst_not_positive.map_or(message, |worst| worst.min(message)));
        } else {
            tally.counts.messages += 1;
            if let Some(delays) = &mut tally.delays {
                delays.all.count(delay_ps as u64);
            }
        }
    }
}
