//! The layout of a page, version 1, in this one place. `docs/page.md` gives the meanings.
//!
//! All places are counted in words of 64 bits; those of a slot are counted from its beginning.

pub mod history;

use crate::CounterId;
use ffclock_units::CounterEpoch;

/// The size of a page in bytes.
pub const PAGE_BYTES: usize = 4096;
/// The size of a page in words.
pub const PAGE_WORDS: usize = PAGE_BYTES / 8;
/// The version described here.
pub const VERSION: u64 = 1;
/// The first word of every page: "ffclock" and a zero byte as they stand in memory.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"ffclock\0");
/// What stands in a word that has nothing to say. Zero is a value.
pub const MISSING: u64 = u64::MAX;
/// An error figure that is not known, in the units of an error word.
pub const UNKNOWN: u64 = u64::MAX;
/// Sums start from here, so that a run of zeros does not check.
pub const CHECK_SEED: u64 = 0x6666_636c_6f63_6b31;

/// Words of the header.
pub mod header {
    /// [`MAGIC`](super::MAGIC); written last.
    pub const MAGIC: usize = 0;
    /// [`VERSION`](super::VERSION).
    pub const VERSION: usize = 1;
    /// [`PAGE_BYTES`](super::PAGE_BYTES).
    pub const SIZE: usize = 2;
    /// The upper half of the boot's identifier.
    pub const BOOT_HIGH: usize = 3;
    /// The lower half of the boot's identifier; both halves are missing where it is not stated.
    pub const BOOT_LOW: usize = 4;
    /// The sum over the words before it.
    pub const CHECK: usize = 5;
    /// The tag of the latest publication, for those who take stamps; 0 before the first.
    pub const TAG: usize = 6;
    /// The sequence of the latest publication, 0 before the first.
    pub const LATEST: usize = 7;
    /// The virtual machine's disruption marker that the latest publication rests on, as its VMClock shows it.
    pub const MACHINE: usize = 8;
    /// 1 where the writer watches a VMClock, else 0, as in pages of earlier writers.
    pub const MACHINE_WATCHED: usize = 9;
    /// The virtual machine's generation counter that the latest publication rests on.
    pub const GENERATION: usize = 10;
    /// The sum over `MACHINE` and `GENERATION` where a generation counter is watched, else 0, as in pages of earlier
    /// writers. One of these that goes on in a page leaves both words behind, and no sum of its next marker.
    pub const GENERATION_CHECK: usize = 11;
}

/// Where the first slot begins.
pub const SLOTS: usize = 32;
/// From the beginning of one slot to the next: two slots never share a pair of cache lines.
pub const STRIDE: usize = 32;
/// How many words a slot has, in four cache lines. Earlier writers of this version filled three cache lines only, up to
/// `slot::CHECK_ALL`; what was added since has check words of its own.
pub const SLOT_WORDS: usize = 32;

/// Words of a slot.
pub mod slot {
    /// Even when the slot is whole, odd while it is written.
    pub const SEQUENCE: usize = 0;
    /// Status, shifts and the offset of UTC, packed as `layout::state` says.
    pub const STATE: usize = 1;
    /// The counter reading at which the estimate holds.
    pub const COUNTER: usize = 2;
    /// For how many ticks from `COUNTER` on the plain conversion holds.
    pub const WINDOW: usize = 3;
    /// UTC at `COUNTER`, whole seconds, signed. TAI is this and the offset in `STATE`.
    pub const UTC_SECONDS: usize = 4;
    /// The fraction of the second at `COUNTER`, 2^-64 s.
    pub const FRACTION: usize = 5;
    /// The mantissa of the period of the absolute clock.
    pub const PERIOD: usize = 6;
    /// The largest possible error at `COUNTER`, 2^-32 s, and one unit for the rounding of the growth.
    pub const BOUND: usize = 7;
    /// Its growth, 2^-96 s per tick.
    pub const BOUND_PER_TICK: usize = 8;
    /// The combined standard uncertainty (k = 1) at `COUNTER`, 2^-32 s, and one unit for the rounding of the growth.
    pub const UNCERTAINTY: usize = 9;
    /// Its growth, 2^-96 s per tick.
    pub const UNCERTAINTY_PER_TICK: usize = 10;
    /// The counter and its epoch, packed as `layout::tag` says.
    pub const TAG: usize = 11;
    /// The sum over all words before it.
    pub const CHECK_ABSOLUTE: usize = 12;
    /// The first counter reading of the epoch.
    pub const EPOCH_BEGIN: usize = 13;
    /// The last counter reading at which the status holds.
    pub const VALID_UNTIL: usize = 14;
    /// The mantissa of the period of the difference clock.
    pub const DIFFERENCE_PERIOD: usize = 15;
    /// The relative error of that period, 2^-64 s/s.
    pub const DIFFERENCE_BOUND: usize = 16;
    /// The sum over the sequence, `STATE`, `TAG` and the four words before it.
    pub const CHECK_DIFFERENCE: usize = 17;
    /// The TAI second of the leap step, signed.
    pub const LEAP_AT: usize = 18;
    /// TAI - UTC before the step (low half) and after it (high half), signed seconds.
    pub const LEAP_OFFSETS: usize = 19;
    /// How fast the bound grows, 2^-64 s/s.
    pub const BOUND_GROWTH: usize = 20;
    /// How fast the uncertainty grows, 2^-64 s/s.
    pub const UNCERTAINTY_GROWTH: usize = 21;
    /// Stratum and reference identifier of the server, packed.
    pub const SERVER: usize = 22;
    /// The sum over all words before it.
    pub const CHECK_ALL: usize = 23;
    /// The largest possible error at `COUNTER` with the tolerated number of false servers, as `BOUND`.
    pub const BOUND_STRICT: usize = 24;
    /// Its growth, 2^-96 s per tick.
    pub const BOUND_STRICT_PER_TICK: usize = 25;
    /// How fast it grows, 2^-64 s/s.
    pub const BOUND_STRICT_GROWTH: usize = 26;
    /// How many servers voted, may be false and are believed, and the noise at `COUNTER`, packed as `layout::vote`
    /// says.
    pub const VOTE: usize = 27;
    /// The sum over the sequence and the four words before it. These five words are 0 in pages of earlier writers.
    pub const CHECK_STRICT: usize = 28;
    /// The standard uncertainty of the difference clock's period, relative, 2^-64 s/s.
    pub const DIFFERENCE_UNCERTAINTY: usize = 29;
    /// Up to this number of ticks the difference clock measures an interval better than two conversions could.
    pub const SHORT: usize = 30;
    /// The sum over the sequence and the two words before it. These three words are 0 in pages of earlier writers.
    pub const CHECK_MORE: usize = 31;
}

/// The fields of the word `STATE`: the lowest bit of each.
pub mod state {
    /// The shift of the absolute clock's period, 8 bits.
    pub const PERIOD_SHIFT: u32 = 0;
    /// The shift of the difference clock's period, 8 bits.
    pub const DIFFERENCE_SHIFT: u32 = 8;
    /// The code of the status, 8 bits.
    pub const STATUS: u32 = 16;
    /// TAI - UTC at the reference, signed, 32 bits.
    pub const TAI_OFFSET: u32 = 32;
}

/// The fields of the word `VOTE`: the lowest bit of each, 8 bits wide but for the last.
pub mod vote {
    /// How many servers had a vote; where there are trusted ones, how many of these.
    pub const DECIDERS: u32 = 0;
    /// How many of them may be false while the strict bound holds.
    pub const TOLERATED: u32 = 8;
    /// How many servers are believed; 0 while there is no majority.
    pub const BELIEVED: u32 = 16;
    /// The noise: the standard uncertainty at `COUNTER` without what no exchange shows, as `UNCERTAINTY`, and growing
    /// as that does; 40 bits, all ones where it is not known. 0 in pages of earlier writers, whose uncertainty is this.
    pub const NOISE: u32 = 24;
}
/// A noise that is not known, or too large for its field of the word `VOTE`.
pub const UNKNOWN_NOISE: u64 = UNKNOWN >> vote::NOISE;

/// The fields of a tag: the lowest bit of each.
pub mod tag {
    /// The code of the counter, 8 bits.
    pub const COUNTER_ID: u32 = 0;
    /// The number of the epoch, the rest of the word.
    pub const EPOCH: u32 = 8;
}

/// The words of a reading.
pub(crate) const READING: [usize; 10] = run();
/// The words of the absolute clock, with their tag and their check word.
pub(crate) const ABSOLUTE: [usize; 12] = run();
/// The words of the difference clock, and their check word.
pub(crate) const DIFFERENCE: [usize; 7] = [
    slot::STATE,
    slot::TAG,
    slot::EPOCH_BEGIN,
    slot::VALID_UNTIL,
    slot::DIFFERENCE_PERIOD,
    slot::DIFFERENCE_BOUND,
    slot::CHECK_DIFFERENCE,
];
/// The words that every writer of this version fills, with their check word.
pub(crate) const ALL: [usize; slot::CHECK_ALL] = run();
/// The words about the vote, and their check word.
pub(crate) const STRICT: [usize; 5] =
    [slot::BOUND_STRICT, slot::BOUND_STRICT_PER_TICK, slot::BOUND_STRICT_GROWTH, slot::VOTE, slot::CHECK_STRICT];
/// The words that were added for intervals, and their check word.
pub(crate) const MORE: [usize; 3] = [slot::DIFFERENCE_UNCERTAINTY, slot::SHORT, slot::CHECK_MORE];
/// The words of the difference clock, what was added for intervals, each with their check word, and the counter reading
/// of the line.
pub(crate) const INTERVAL: [usize; DIFFERENCE.len() + MORE.len() + 1] = {
    let [state, tag, begin, until, period, bound, check] = DIFFERENCE;
    let [uncertainty, short, check_more] = MORE;
    [state, tag, begin, until, period, bound, check, uncertainty, short, check_more, slot::COUNTER]
};
/// All words of a slot after its sequence.
pub(crate) const WHOLE: [usize; SLOT_WORDS - 1] = run();

const fn run<const N: usize>() -> [usize; N] {
    let mut offsets = [0; N];
    let mut index = 0;
    while index < N {
        offsets[index] = index + 1;
        index += 1;
    }
    offsets
}

/// The upper half of a product.
#[inline(always)]
pub(crate) const fn high(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// Eight bits of a word.
#[inline(always)]
pub(crate) const fn field(word: u64, lowest: u32) -> u8 {
    (word >> lowest) as u8
}

/// The sum of a check word over `words`, which follow `sequence`.
///
/// Four sums at a time: one addition after the other would take longer than all the rest of a conversion.
#[inline(always)]
pub(crate) fn sum(sequence: u64, words: &[u64]) -> u64 {
    let mut sums = [CHECK_SEED.wrapping_add(sequence), 0, 0, 0];
    for words in words.chunks(sums.len()) {
        sums.iter_mut().zip(words).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
    }
    let [first, second, third, fourth] = sums;
    first.wrapping_add(second).wrapping_add(third.wrapping_add(fourth))
}

/// The word that says that a generation counter belongs to this disruption marker; never 0, which says that none does.
pub(crate) fn generation_check(disruption: u64, generation: u64) -> u64 {
    sum(0, &[disruption, generation]).max(1)
}

/// The word that says which counter, and which epoch of it.
pub(crate) const fn tag_of(counter_id: CounterId, epoch: CounterEpoch) -> u64 {
    (counter_id.code() as u64) << tag::COUNTER_ID | epoch.raw() << tag::EPOCH
}

/// The number of the epoch in a tag.
#[inline]
pub(crate) const fn epoch_of(word: u64) -> CounterEpoch {
    CounterEpoch::from_raw(word >> tag::EPOCH)
}

/// The counter in a tag.
#[inline]
pub(crate) const fn counter_of(word: u64) -> Option<CounterId> {
    CounterId::from_code((word >> tag::COUNTER_ID) as u8)
}
