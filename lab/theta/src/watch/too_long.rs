//! The messages of the last minute that took longer than messages may.
//!
//! The analysis never sees them, so its figures say nothing of them. They are the worst messages there are.

use super::WINDOW_S;
use serde::Serialize;
use std::collections::VecDeque;

const SECOND_NS: i64 = 1_000_000_000;

/// Messages that took longer than messages may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TooLongFigures {
    /// How many there are.
    pub messages: u64,
    /// How long the slowest of them took, in picoseconds.
    pub delay_max_ps: i64,
}

/// Those of the last minute, by the second of their perception.
#[derive(Debug, Default)]
pub(super) struct RecentTooLong {
    seconds: VecDeque<(i64, TooLongFigures)>,
}

impl RecentTooLong {
    /// Notes a message that was perceived at `perceived_ns`.
    pub(super) fn note(&mut self, perceived_ns: i64, delay_ns: i64) {
        let found = TooLongFigures { messages: 1, delay_max_ps: delay_ns.saturating_mul(1000) };
        self.come_to(perceived_ns);
        self.add(perceived_ns.div_euclid(SECOND_NS), found);
    }

    /// Time has come to `newest_ns`. Lines come in the order of their perception, so a later time that was noted was
    /// wrong: that message counts from now on.
    pub(super) fn come_to(&mut self, newest_ns: i64) {
        let second = newest_ns.div_euclid(SECOND_NS);
        let (begin, later) = (second.saturating_sub(i64::from(WINDOW_S)), self.seconds.back());
        if later.is_some_and(|(noted, _)| *noted > second) {
            let first = self.seconds.partition_point(|(noted, _)| *noted <= second);
            let wrong = self.seconds.drain(first..).map(|(_, found)| found).reduce(TooLongFigures::and);
            wrong.into_iter().for_each(|found| self.add(second, found));
        }
        self.seconds.retain(|(noted, _)| *noted > begin);
    }

    /// Adds to a second, the latest of all.
    fn add(&mut self, second: i64, found: TooLongFigures) {
        match self.seconds.back_mut() {
            Some((noted, sum)) if *noted == second => *sum = sum.and(found),
            _ => self.seconds.push_back((second, found)),
        }
    }

    /// Counts from an origin that is later, by whole seconds.
    pub(super) fn move_origin(&mut self, by_ns: i64) {
        self.seconds.iter_mut().for_each(|(noted, _)| *noted = noted.saturating_sub(by_ns / SECOND_NS));
    }

    /// All of the last minute; `None` if there are none.
    pub(super) fn figures(&self) -> Option<TooLongFigures> {
        self.seconds.iter().map(|(_, found)| *found).reduce(TooLongFigures::and)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.seconds.is_empty()
    }
}

impl TooLongFigures {
    fn and(self, other: Self) -> Self {
        TooLongFigures {
            messages: self.messages + other.messages,
            delay_max_ps: self.delay_max_ps.max(other.delay_max_ps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_kept_and_a_wrong_time_does_not_stay() {
        let mut recent = RecentTooLong::default();
        let figures =
            |messages, delay_s: i64| Some(TooLongFigures { messages, delay_max_ps: delay_s * 1000 * SECOND_NS });
        recent.note(0, 7 * SECOND_NS);
        recent.note(30 * SECOND_NS, 5 * SECOND_NS);
        assert_eq!(recent.figures(), figures(2, 7));
        recent.come_to(60 * SECOND_NS);
        assert_eq!(recent.figures(), figures(1, 5));
        // A day ahead, by a wrong line: it counts for a minute from the line after it.
        recent.note(86_400 * SECOND_NS, 9 * SECOND_NS);
        recent.come_to(61 * SECOND_NS);
        recent.move_origin(SECOND_NS);
        recent.come_to(119 * SECOND_NS);
        assert_eq!(recent.figures(), figures(1, 9));
        recent.come_to(120 * SECOND_NS);
        assert!(recent.is_empty() && recent.figures().is_none());
    }
}
