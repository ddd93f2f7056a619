//! The rounds to which messages may still come, 24 bytes for each, and 8 for each 64 senders beyond the first: at a
//! million messages a second a second of them must fit.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// A place of the index at which no round is.
const FREE: u32 = u32::MAX;
/// The index has numbers modulo this.
const NUMBERS: u64 = FREE as u64;
/// The smallest index.
const PLACES_MIN: usize = 64;
/// No more words are reserved before they are used: 16 MiB.
const WORDS_AT_ONCE: usize = 1 << 21;
/// Senders that have their bits in the same word.
const BITS: u32 = u64::BITS;

/// A round that is remembered. Its number is that of its place.
#[derive(Clone, Copy, Debug)]
struct OpenRound {
    id: u64,
    /// A bit for each sender of the first 64 that has been heard.
    who: u64,
}

/// What a message does to its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeardRound {
    /// Its number, from 1 on.
    pub(super) number: u64,
    /// How many senders have been heard in it.
    pub(super) heard: usize,
}

/// The latest rounds, found by their id.
#[derive(Debug)]
pub(super) struct OpenRounds {
    rounds_max: usize,
    rounds: VecDeque<OpenRound>,
    /// The number of the first of them.
    first: u64,
    /// Words of each round for the senders beyond the first 64: a bit for each that has been heard.
    others: VecDeque<u64>,
    /// How many of these words a round has.
    words_each: usize,
    /// The number of a round, modulo [`NUMBERS`], at the place of its id or the next free one. Numbers of rounds that
    /// are forgotten stay until the index is made again.
    places: Vec<u32>,
    /// How many places are not free.
    taken: usize,
    words: RandomState,
    key: u64,
}

impl OpenRounds {
    pub(super) fn new(rounds_max: usize, senders: usize) -> Self {
        let words = RandomState::new();
        let key = words.hash_one(0);
        let (rounds, places) = (VecDeque::new(), vec![FREE; PLACES_MIN]);
        let (rounds_max, words_each) = (rounds_max.max(1), Self::words_each(senders));
        // Growing would take twice the memory for a moment; what is not used yet takes none.
        let beyond = rounds_max.saturating_add(1).saturating_mul(words_each);
        let others = VecDeque::with_capacity(if beyond <= WORDS_AT_ONCE { beyond } else { 0 });
        OpenRounds { rounds_max, rounds, first: 1, others, words_each, places, taken: 0, words, key }
    }

    /// What a round takes beyond its 24 bytes, by the number of senders.
    pub(super) const fn bytes_beyond(senders: usize) -> usize {
        Self::words_each(senders) * size_of::<u64>()
    }

    const fn words_each(senders: usize) -> usize {
        senders.div_ceil(BITS as usize).saturating_sub(1)
    }

    /// How many rounds have begun.
    pub(super) fn begun(&self) -> u64 {
        self.first - 1 + self.rounds.len() as u64
    }

    /// Notes a message of a sender, whose numbers begin with 1. `None` if it had been heard in this round.
    pub(super) fn hear(&mut self, id: &str, sender: u32) -> Option<HeardRound> {
        let id = self.id_of(id);
        let number = self.find(id).unwrap_or_else(|| self.begin(id));
        self.note(number, sender)
    }

    /// Numbers are their own ids; of a word, 64 bits that no list can choose. "07" is another word than "7".
    fn id_of(&self, text: &str) -> u64 {
        let is_number = text == "0" || text.starts_with(|first| ('1'..='9').contains(&first));
        let number = text.parse().ok().filter(|_| is_number);
        number.unwrap_or_else(|| self.words.hash_one(text))
    }

    /// Where the search for an id begins.
    fn begin_of_search(&self, id: u64) -> usize {
        let mut mixed = id ^ self.key;
        for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
            mixed = (mixed ^ (mixed >> 33)).wrapping_mul(factor);
        }
        (mixed ^ (mixed >> 33)) as usize & (self.places.len() - 1)
    }

    fn find(&self, id: u64) -> Option<u64> {
        let mut place = self.begin_of_search(id);
        while self.places[place] != FREE {
            let ahead = (u64::from(self.places[place]) + NUMBERS - self.first % NUMBERS) % NUMBERS;
            if self.rounds.get(ahead as usize).is_some_and(|round| round.id == id) {
                return Some(self.first + ahead);
            }
            place = (place + 1) & (self.places.len() - 1);
        }
        None
    }

    fn begin(&mut self, id: u64) -> u64 {
        self.rounds.push_back(OpenRound { id, who: 0 });
        if self.rounds.len() > self.rounds_max {
            self.rounds.pop_front();
            self.others.drain(..self.words_each);
            self.first += 1;
        }
        // Doubling would take half of the memory for nothing.
        let length = self.others.len();
        if length + self.words_each > self.others.capacity() {
            self.others.reserve_exact(length / 8 + self.words_each);
        }
        self.others.resize(length + self.words_each, 0);
        let number = self.begun();
        if self.taken * 4 >= self.places.len() * 3 {
            self.index_again();
        } else {
            self.index(id, number);
        }
        number
    }

    fn index(&mut self, id: u64, number: u64) {
        let mut place = self.begin_of_search(id);
        while self.places[place] != FREE {
            place = (place + 1) & (self.places.len() - 1);
        }
        self.places[place] = (number % NUMBERS) as u32;
        self.taken += 1;
    }

    /// Leaves out the rounds that are forgotten.
    fn index_again(&mut self) {
        let places = (2 * self.rounds.len()).next_power_of_two().max(PLACES_MIN);
        self.places.clear();
        self.places.resize(places, FREE);
        self.taken = 0;
        for place in 0..self.rounds.len() {
            self.index(self.rounds[place].id, self.first + place as u64);
        }
    }

    fn note(&mut self, number: u64, sender: u32) -> Option<HeardRound> {
        let place = (number - self.first) as usize;
        let round = self.rounds.get_mut(place)?;
        let (word, bit) = ((sender - 1) / BITS, 1 << ((sender - 1) % BITS));
        let others = place * self.words_each..(place + 1) * self.words_each;
        let heard = match word.checked_sub(1) {
            None => &mut round.who,
            Some(word) => self.others.range_mut(others.clone()).nth(word as usize)?,
        };
        let is_new = *heard & bit == 0;
        *heard |= bit;
        let heard = round.who.count_ones() + self.others.range(others).map(|word| word.count_ones()).sum::<u32>();
        is_new.then_some(HeardRound { number, heard: heard as usize })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(rounds: &mut OpenRounds, ids: &[&str], sender: u32) -> Vec<Option<u64>> {
        ids.iter().map(|id| rounds.hear(id, sender).map(|heard| heard.number)).collect()
    }

    #[test]
    fn a_round_is_found_by_its_id_and_each_sender_counts_once() {
        let mut rounds = OpenRounds::new(10, 1000);
        assert_eq!(numbers(&mut rounds, &["7", "07", "x", "7"], 1), [Some(1), Some(2), Some(3), None]);
        assert_eq!(rounds.hear("7", 65), Some(HeardRound { number: 1, heard: 2 }));
        assert_eq!((rounds.hear("7", 65), rounds.hear("7", 1000).map(|heard| heard.heard)), (None, Some(3)));
        assert_eq!(rounds.begun(), 3);
    }

    /// Against a table that forgets nothing but by age.
    #[test]
    fn as_many_rounds_are_remembered_as_asked_for() {
        let (rounds_max, count) = (1000_u64, 20_000_u64);
        let mut rounds = OpenRounds::new(rounds_max as usize, 3);
        for number in 1..=count {
            let id = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string();
            assert_eq!(rounds.hear(&id, 1), Some(HeardRound { number, heard: 1 }));
            let oldest = number.saturating_sub(rounds_max - 1).max(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string();
            assert_eq!(rounds.hear(&oldest, 1), None, "round {number} does not push out the one it may not");
        }
        let forgotten = (count - rounds_max).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string();
        assert_eq!(rounds.hear(&forgotten, 1).map(|heard| heard.number), Some(count + 1));
        assert!(rounds.places.len() <= 4096, "{} places", rounds.places.len());
    }

    /// Each of a thousand senders has its own bit, also where rounds are forgotten, in a bounded number of bytes.
    #[test]
    fn a_thousand_senders_have_a_bit_each() {
        let mut rounds = OpenRounds::new(20, 1000);
        for number in 1..=100 {
            for sender in 1..=1000 {
                let heard = Some(HeardRound { number, heard: sender as usize });
                assert_eq!(rounds.hear(&number.to_string(), sender), heard);
            }
            for sender in [1, 64, 65, 128, 129, 1000] {
                assert_eq!(rounds.hear(&number.to_string(), sender), None);
            }
        }
        assert!(rounds.others.capacity() * size_of::<u64>() <= 24 * OpenRounds::bytes_beyond(1000));
    }
}
