//! What the clock was: the lines of the past, so that an old stamp is converted as well as a fresh one.
//!
//! A page holds one line, and the error of a line grows with the distance from its own counter value. A history holds
//! the past as *segments*: the chord between two published times, with the error figures at both ends and their growth
//! in between. A reader needs one segment for a stamp and does with it what it does with the page's line.
//!
//! There are two rings. The fine one has a bucket for each 0.9 s of the last hour, the coarse one for each 45 s of the
//! last day. At most one line in a bucket ends a segment, so a stamp lies in the segment at the beginning of its bucket
//! or in the next one: it is found without a search. A segment longer than a bucket stands in each bucket that begins
//! in it.
//!
//! Each entry stands alone: it has a sequence lock and a check word that covers the epoch, and says which counter
//! readings it covers. Where the history has nothing for a stamp, the page's line converts it.

mod keep;
mod recall;
mod segment;

use crate::layout::history::{
    COARSE_ENTRIES, COARSE_SPAN_MS, ENTRIES, ENTRY_WORDS, FINE_ENTRIES, FINE_SPAN_MS, HISTORY_WORDS, header,
};
use crate::words::AtomicU64;
pub use keep::HistoryWriter;
pub use recall::check_history;
pub(crate) use recall::recall;

/// The words of a history.
pub type HistoryWords = [AtomicU64; HISTORY_WORDS];

/// Where a ring lies, and where its parameter is.
#[derive(Clone, Copy, Debug)]
struct HistoryRing {
    /// The place of its first entry.
    first: usize,
    /// The number of its entries, a power of two.
    entries: usize,
    /// The word of the header with its buckets per tick.
    per_tick: usize,
    /// The length of a bucket.
    span_ms: i64,
}

const FINE: HistoryRing =
    HistoryRing { first: ENTRIES, entries: FINE_ENTRIES, per_tick: header::FINE_PER_TICK, span_ms: FINE_SPAN_MS };
const COARSE: HistoryRing = HistoryRing {
    first: ENTRIES + FINE_ENTRIES * ENTRY_WORDS,
    entries: COARSE_ENTRIES,
    per_tick: header::COARSE_PER_TICK,
    span_ms: COARSE_SPAN_MS,
};
const RINGS: [HistoryRing; 2] = [FINE, COARSE];

const _: () = assert!(FINE_ENTRIES.is_power_of_two() && COARSE_ENTRIES.is_power_of_two());

impl HistoryRing {
    /// Where the entry of a bucket lies.
    #[inline(always)]
    const fn place(self, bucket: u64) -> usize {
        self.first + (bucket as usize & (self.entries - 1)) * ENTRY_WORDS
    }
}
