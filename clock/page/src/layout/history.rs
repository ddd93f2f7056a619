//! The layout of a history, version 1. `docs/page.md` gives the meanings.
//!
//! Places are counted in words of 64 bits; those of an entry are counted from its beginning.

/// The first word of every history: "ffchist" and a zero byte as they stand in memory.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"ffchist\0");
/// The version described here.
pub const VERSION: u64 = 1;
/// Where the entries begin: after a page of memory for the header.
pub const ENTRIES: usize = 512;
/// How many words an entry has: two cache lines.
pub const ENTRY_WORDS: usize = 16;
/// The entries of the fine ring: one for each [`FINE_SPAN_MS`].
pub const FINE_ENTRIES: usize = 4096;
/// The entries of the coarse ring, which follow those of the fine one: one for each [`COARSE_SPAN_MS`].
pub const COARSE_ENTRIES: usize = 2048;
/// The length of a bucket of the fine ring, ms: 4096 of them are an hour and a minute.
pub const FINE_SPAN_MS: i64 = 900;
/// The length of a bucket of the coarse ring, ms: 2048 of them are a day and more than an hour.
pub const COARSE_SPAN_MS: i64 = 45_000;
/// The size of a history in words.
pub const HISTORY_WORDS: usize = ENTRIES + (FINE_ENTRIES + COARSE_ENTRIES) * ENTRY_WORDS;
/// The size of a history in bytes.
pub const HISTORY_BYTES: usize = HISTORY_WORDS * 8;

/// Words of the header.
pub mod header {
    /// [`MAGIC`](super::MAGIC); written last.
    pub const MAGIC: usize = 0;
    /// [`VERSION`](super::VERSION).
    pub const VERSION: usize = 1;
    /// [`HISTORY_BYTES`](super::HISTORY_BYTES).
    pub const SIZE: usize = 2;
    /// The upper half of the boot's identifier.
    pub const BOOT_HIGH: usize = 3;
    /// The lower half of the boot's identifier; both halves are missing where it is not stated.
    pub const BOOT_LOW: usize = 4;
    /// The sum over the words before it.
    pub const CHECK: usize = 5;
    /// The counter reading at which bucket 0 begins. Not checked: an entry says itself what it covers.
    pub const ORIGIN: usize = 6;
    /// Buckets of the fine ring per tick, 2^-64. Not checked.
    pub const FINE_PER_TICK: usize = 7;
    /// Buckets of the coarse ring per tick, 2^-64. Not checked.
    pub const COARSE_PER_TICK: usize = 8;
}

/// Words of an entry: a segment of the clock's past.
pub mod entry {
    /// Even when the entry is whole, odd while it is written or when it is void; 0 before it was ever written.
    pub const SEQUENCE: usize = 0;
    /// Status, shifts and offsets, packed as `layout::history::state` says.
    pub const STATE: usize = 1;
    /// The counter reading at which the segment begins.
    pub const BEGIN: usize = 2;
    /// How many ticks it lasts.
    pub const TICKS: usize = 3;
    /// TAI at `BEGIN`, whole seconds, signed.
    pub const TAI_SECONDS: usize = 4;
    /// The fraction of the second at `BEGIN`, 2^-64 s.
    pub const FRACTION: usize = 5;
    /// The mantissa of the period.
    pub const PERIOD: usize = 6;
    /// The largest possible error at the beginning (low half) and at the end (high half), 2^-32 s times its scale.
    pub const BOUND: usize = 7;
    /// Its growth away from either, 2^-96 s per tick.
    pub const BOUND_PER_TICK: usize = 8;
    /// The combined standard uncertainty at the beginning (low half) and at the end (high half), 2^-32 s times its
    /// scale.
    pub const UNCERTAINTY: usize = 9;
    /// Its growth and that of the noise away from either, 2^-96 s per tick.
    pub const UNCERTAINTY_PER_TICK: usize = 10;
    /// The first TAI second with the offset after the leap step, signed.
    pub const LEAP_AT: usize = 11;
    /// The noise, which is the part of the uncertainty that exchanges show, as `UNCERTAINTY`. 0 in entries of earlier
    /// writers, whose uncertainty is this.
    pub const NOISE: usize = 12;
    /// The sum over the words before it, and the epoch.
    pub const CHECK: usize = 15;
}

/// The fields of an entry's word `STATE`: the lowest bit of each.
pub mod state {
    /// The shift of the period, 8 bits.
    pub const PERIOD_SHIFT: u32 = 0;
    /// The code of the status, 8 bits.
    pub const STATUS: u32 = 8;
    /// The figures of `BOUND` are shifted up by this, 8 bits.
    pub const BOUND_SCALE: u32 = 16;
    /// The figures of `UNCERTAINTY` and `NOISE` are shifted up by this, 8 bits.
    pub const UNCERTAINTY_SCALE: u32 = 24;
    /// TAI - UTC before the leap step, signed, 16 bits.
    pub const OFFSET_BEFORE: u32 = 32;
    /// TAI - UTC after the leap step, signed, 16 bits.
    pub const OFFSET_AFTER: u32 = 48;
}

/// Half a word that stands for an error figure which is not known.
pub const UNKNOWN: u32 = u32::MAX;

/// The words of an entry after its sequence.
pub(crate) const ALL: [usize; ENTRY_WORDS - 1] = super::run();

/// The sum of an entry's check word over its words from `STATE` on. `epoch` holds the words of a slot that name the
/// epoch: its tag and its beginning.
#[inline]
pub(crate) fn sum(sequence: u64, words: &[u64], epoch: [u64; 2]) -> u64 {
    let [tag, begin] = epoch;
    super::sum(sequence, words).wrapping_add(tag.rotate_left(32)).wrapping_add(begin)
}
