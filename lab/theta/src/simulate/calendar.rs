//! What is on its way: a calendar of coming events that takes eight bytes for each.
//!
//! Time is cut into buckets, and the next few thousand of them lie in a ring. An event is one word: its place in the
//! bucket's time, the number of the message it belongs to, the machine it is for. A bucket is sorted when its time
//! comes. 10^8 messages in transit at once, one round of 10,000 processes, take 0.8 GB.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

const MACHINE_BITS: u32 = 14;
const MESSAGE_BITS: u32 = 24;
const OFFSET_BITS: u32 = 64 - MACHINE_BITS - MESSAGE_BITS;
/// Buckets of the ring.
const RING: usize = 1 << 12;

/// Machines that an event can name.
pub(super) const MACHINES_MAX: usize = 1 << MACHINE_BITS;
/// Messages that an event can name.
pub(super) const MESSAGES_MAX: usize = 1 << MESSAGE_BITS;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DueMessage {
    /// When, in picoseconds.
    pub(super) at: u64,
    /// Which message.
    pub(super) message: u32,
    /// For which machine.
    pub(super) machine: u32,
}

/// Events in the order of time; those of equal time in the order of messages, then machines.
pub(super) struct Calendar {
    bucket_bits: u32,
    /// The number of the bucket that is being emptied.
    present: u64,
    /// Its events, the last one next.
    sorted: Vec<u64>,
    /// Events that came into it since it was sorted.
    late: BinaryHeap<Reverse<u64>>,
    ring: Vec<Vec<u64>>,
    /// One bit for each bucket of the ring that is not empty.
    occupied: [u64; RING / 64],
    /// Events beyond the ring.
    beyond: BTreeMap<u64, Vec<u64>>,
}

impl Calendar {
    /// Buckets are made for events that come about `typical_ps` after they are known.
    pub(super) fn new(typical_ps: u64) -> Self {
        let bucket_bits = (typical_ps / 128).max(1).ilog2().clamp(8, OFFSET_BITS);
        Calendar {
            bucket_bits,
            present: 0,
            sorted: Vec::new(),
            late: BinaryHeap::new(),
            ring: vec![Vec::new(); RING],
            occupied: [0; RING / 64],
            beyond: BTreeMap::new(),
        }
    }

    /// Adds an event, which must not lie before those that were taken.
    #[inline]
    pub(super) fn push(&mut self, due: DueMessage) {
        let bucket = due.at >> self.bucket_bits;
        let offset = due.at & ((1 << self.bucket_bits) - 1);
        let word =
            offset << (MACHINE_BITS + MESSAGE_BITS) | u64::from(due.message) << MACHINE_BITS | u64::from(due.machine);
        debug_assert!(bucket >= self.present, "an event before the present");
        match bucket.saturating_sub(self.present) {
            0 => self.late.push(Reverse(word)),
            ahead if ahead < RING as u64 => {
                let place = bucket as usize % RING;
                self.ring[place].push(word);
                self.occupied[place / 64] |= 1 << (place % 64);
            }
            _ => self.beyond.entry(bucket).or_default().push(word),
        }
    }

    /// Takes the next event.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<DueMessage> {
        loop {
            let word = match (self.sorted.last(), self.late.peek()) {
                (Some(&sorted), Some(&Reverse(late))) if late < sorted => self.late.pop().map(|word| word.0),
                (None, Some(_)) => self.late.pop().map(|word| word.0),
                (Some(_), _) => self.sorted.pop(),
                (None, None) => None,
            };
            match word {
                Some(word) => return Some(self.unpack(word)),
                None => self.turn()?,
            }
        }
    }

    fn unpack(&self, word: u64) -> DueMessage {
        DueMessage {
            at: (self.present << self.bucket_bits) + (word >> (MACHINE_BITS + MESSAGE_BITS)),
            message: (word >> MACHINE_BITS) as u32 & (MESSAGES_MAX - 1) as u32,
            machine: word as u32 & (MACHINES_MAX - 1) as u32,
        }
    }

    /// Goes to the next bucket that has events.
    fn turn(&mut self) -> Option<()> {
        let in_ring = self.next_in_ring();
        let beyond = self.beyond.first_key_value().map(|(&bucket, _)| bucket);
        let next = in_ring.into_iter().chain(beyond).min()?;
        self.present = next;
        if in_ring == Some(next) {
            let place = next as usize % RING;
            std::mem::swap(&mut self.sorted, &mut self.ring[place]);
            self.occupied[place / 64] &= !(1 << (place % 64));
        }
        if beyond == Some(next) {
            self.sorted.extend(self.beyond.remove(&next).unwrap_or_default());
        }
        self.sorted.sort_unstable_by(|a, b| b.cmp(a));
        Some(())
    }

    /// The next bucket of the ring that has events. The ring holds the buckets after the present one, so a turn around
    /// it sees all.
    fn next_in_ring(&self) -> Option<u64> {
        let begin = (self.present + 1) as usize % RING;
        let rest = self.occupied[begin / 64] & (!0 << (begin % 64));
        let place = match rest {
            0 => {
                let words = (1..=RING / 64).map(|step| (begin / 64 + step) % (RING / 64));
                let word = words.into_iter().find(|&word| self.occupied[word] != 0)?;
                word * 64 + self.occupied[word].trailing_zeros() as usize
            }
            _ => begin / 64 * 64 + rest.trailing_zeros() as usize,
        };
        let ahead = (place + RING - begin) % RING;
        Some(self.present + 1 + ahead as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_sim::Random;

    /// Beside a sorted list, with events near and far, equal times, and pushes into the bucket that is being emptied.
    #[test]
    fn events_come_in_the_order_of_time() {
        for (typical, seed) in [(1, 1), (1_000_000, 2), (50_000_000, 3), (u64::MAX, 4)] {
            let mut random = Random::new(seed);
            let (mut calendar, mut oracle) = (Calendar::new(typical), std::collections::BTreeSet::new());
            let mut now = 0;
            for _ in 0..20_000 {
                if random.chance(0.6) || oracle.is_empty() {
                    let ahead =
                        [0, 3, 1_000, 2_000_000, 40_000_000, 9_000_000_000, 1 << 45][random.bits() as usize % 7];
                    let at = now + if ahead == 0 { 0 } else { random.bits() % ahead };
                    let due =
                        DueMessage { at, message: random.bits() as u32 % 1000, machine: random.bits() as u32 % 100 };
                    if oracle.insert(due) {
                        calendar.push(due);
                    }
                } else {
                    let expected = oracle.pop_first();
                    assert_eq!(calendar.pop(), expected);
                    now = expected.map_or(now, |due| due.at);
                }
            }
            assert!(oracle.iter().all(|&due| calendar.pop() == Some(due)));
            assert_eq!(calendar.pop(), None);
        }
    }
}
