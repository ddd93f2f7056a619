//! The delays in transit, at times that never go back.

use crate::analysis::ratio::Ratio;
use crate::analysis::transit::{Longest, Shortest};

/// What is in transit.
#[derive(Default)]
pub(super) struct InTransit {
    longest: Longest,
    /// Empty unless Theta is computed.
    shortest: Shortest,
    /// The largest delay that was in transit at any time since the last first switch.
    since_first: Option<i64>,
}

impl InTransit {
    /// A broadcast enters, with the largest delay of its messages.
    #[inline]
    pub(super) fn send_broadcast(&mut self, delay_ps: i64, end_ps: i64) {
        self.longest.push(delay_ps, end_ps);
        self.since_first = self.since_first.max(Some(delay_ps));
    }

    /// Counts from an origin that is later.
    pub(super) fn move_origin(&mut self, by_ps: i64) {
        self.longest.move_origin(by_ps);
        self.shortest.move_origin(by_ps);
    }

    /// A single message enters, for [`Self::theta_at`].
    pub(super) fn send_message(&mut self, delay_ps: i64, end_ps: i64) {
        self.shortest.push(delay_ps, end_ps);
    }

    /// tau+(t).
    #[inline]
    pub(super) fn longest_at(&mut self, time_ps: i64) -> Option<i64> {
        self.longest.at(time_ps)
    }

    /// tau+(t) / tau-(t); `None` when nothing is in transit.
    pub(super) fn theta_at(&mut self, time_ps: i64) -> Option<Ratio> {
        let (longest, shortest) = self.longest.at(time_ps).zip(self.shortest.at(time_ps))?;
        Ratio::of(longest, shortest)
    }

    /// The largest delay that was in transit at any time since the last first switch.
    pub(super) fn longest_since_first(&self) -> Option<i64> {
        self.since_first
    }

    /// A process is the first to reach a round, while `longest` is the largest delay in transit.
    pub(super) fn first_switch(&mut self, longest: Option<i64>) {
        self.since_first = longest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_since_a_first_switch_outlives_its_message() {
        let mut transit = InTransit::default();
        transit.send_broadcast(30, 30);
        transit.send_broadcast(10, 45);
        transit.send_message(4, 44);
        assert_eq!((transit.longest_at(40), transit.longest_since_first()), (Some(10), Some(30)));
        assert_eq!(transit.theta_at(40), Ratio::of(10, 4));
        transit.first_switch(Some(10));
        assert_eq!(
            (transit.longest_since_first(), transit.longest_at(45), transit.theta_at(45)),
            (Some(10), None, None)
        );
    }
}
