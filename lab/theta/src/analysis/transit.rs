//! Messages in transit: the largest and the smallest delay among them, at times that never go back.
//!
//! For the largest a monotone queue does: a message that was sent later and takes as long or longer also arrives
//! later, so whatever is older and no longer can never be the answer again. Each message enters and leaves once. The
//! smallest delay has no such dominance (the longer message outlives the shorter one), so it takes a heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A message as far as transit goes; times in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MessageFlight {
    delay: i64,
    end: i64,
}

/// The largest delay in transit, tau+(t). Amortised constant time.
#[derive(Clone, Debug, Default)]
pub struct Longest {
    flights: VecDeque<MessageFlight>,
}

impl Longest {
    /// Counts from an origin that is later by this much.
    pub fn move_origin(&mut self, by: i64) {
        self.flights.iter_mut().for_each(|flight| flight.end = flight.end.saturating_sub(by));
    }

    /// A message is sent, not before any that was pushed earlier.
    #[inline]
    pub fn push(&mut self, delay: i64, end: i64) {
        while self.flights.back().is_some_and(|flight| flight.delay <= delay) {
            self.flights.pop_back();
        }
        self.flights.push_back(MessageFlight { delay, end });
    }

    /// The largest delay of the messages that end after `time`, which must not go back.
    #[inline]
    pub fn at(&mut self, time: i64) -> Option<i64> {
        while self.flights.front().is_some_and(|flight| flight.end <= time) {
            self.flights.pop_front();
        }
        self.flights.front().map(|flight| flight.delay)
    }
}

/// The smallest delay in transit, tau-(t). Logarithmic time.
#[derive(Clone, Debug, Default)]
pub struct Shortest {
    flights: BinaryHeap<Reverse<MessageFlight>>,
    kept: usize,
}

/// Heaps below this are not worth cleaning.
const WORTH_CLEANING: usize = 1024;

impl Shortest {
    /// Counts from an origin that is later by this much.
    pub fn move_origin(&mut self, by: i64) {
        let flights = std::mem::take(&mut self.flights).into_iter();
        let earlier = |flight: MessageFlight| MessageFlight { end: flight.end.saturating_sub(by), ..flight };
        self.flights = flights.map(|Reverse(flight)| Reverse(earlier(flight))).collect();
    }

    /// A message is sent.
    pub fn push(&mut self, delay: i64, end: i64) {
        self.flights.push(Reverse(MessageFlight { delay, end }));
    }

    /// The smallest delay of the messages that end after `time`, which must not go back.
    pub fn at(&mut self, time: i64) -> Option<i64> {
        // Messages that have ended below the top would stay forever behind new short ones.
        if self.flights.len() > 2 * self.kept + WORTH_CLEANING {
            self.flights.retain(|Reverse(flight)| flight.end > time);
            self.kept = self.flights.len();
        }
        while self.flights.peek().is_some_and(|Reverse(flight)| flight.end <= time) {
            self.flights.pop();
        }
        self.flights.peek().map(|Reverse(flight)| flight.delay)
    }
}
