//! The sequence lock, the only one of the project: words in shared memory, written by one process, read by many. No
//! process waits for another.
//!
//! There are two slots. The word `latest` holds the sequence of the slot that readers use; bit 1 of it says which slot
//! that is. A publication goes to the other slot, so a reader is disturbed only when two publications pass while it
//! reads, and a writer that dies leaves `latest` pointing to a whole slot.
//!
//! The orderings: the writer fences after making the slot's sequence odd, so that no reader can see a new word and
//! still the old sequence; the reader fences between its last word and its look at the sequence, for the same reason
//! from the other side. The writer fences before `latest` and the reader after it, so that a reader that is sent to a
//! slot finds it whole. Readers use relaxed loads and fences only: of all atomic accesses these alone are defined on
//! memory mapped read-only. `tests/loom.rs` tries all interleavings; it fails if any one of the fences is removed.
//!
//! An entry of the history has one place only. It is rewritten in place, between two stores of its own sequence, by the
//! same rules; a reader that meets it half written goes on without it.

use crate::layout::{self, PAGE_WORDS};

#[cfg(not(loom))]
pub use core::sync::atomic::AtomicU64;
#[cfg(loom)]
pub use loom::sync::atomic::AtomicU64;

#[cfg(not(loom))]
use core::sync::atomic::fence;
#[cfg(loom)]
use loom::sync::atomic::fence;

pub(crate) use core::sync::atomic::Ordering;

/// The words of a page.
pub type PageWords = [AtomicU64; PAGE_WORDS];

/// A page in ordinary memory, for programs that keep writer and reader in one process.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct PageMemory(PageWords);

impl PageMemory {
    /// A page of zeros: a [`Writer`](crate::Writer) makes it a page.
    pub fn new() -> Self {
        PageMemory(core::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Default for PageMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl AsRef<PageWords> for PageMemory {
    fn as_ref(&self) -> &PageWords {
        &self.0
    }
}

/// Where the words of a lock lie.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// The word with the sequence of the slot to read.
    pub latest: usize,
    /// The first word of the first slot; a slot begins with its sequence.
    pub slots: usize,
    /// From the beginning of the first slot to that of the second.
    pub stride: usize,
}

/// The places in a page.
pub const PAGE: Places = Places { latest: layout::header::LATEST, slots: layout::SLOTS, stride: layout::STRIDE };

/// A read was overtaken by two publications, or the lock is damaged: try again, but not for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn;

impl Places {
    /// Where the slot of a sequence begins.
    #[inline]
    pub(crate) const fn slot(self, sequence: u64) -> usize {
        self.slots + ((sequence >> 1) & 1) as usize * self.stride
    }
}

/// One word. All places come from the layout and lie within the memory; one outside of it reads as zero.
#[inline]
pub fn load<const M: usize>(memory: &[AtomicU64; M], place: usize) -> u64 {
    debug_assert!(place < M, "a place of the layout");
    memory.get(place).map_or(0, |word| word.load(Ordering::Relaxed))
}

/// Sets one word. All places come from the layout and lie within the memory; one outside of it is ignored.
#[inline]
pub fn store<const M: usize>(memory: &[AtomicU64; M], place: usize, value: u64) {
    debug_assert!(place < M, "a place of the layout");
    if let Some(word) = memory.get(place) {
        word.store(value, Ordering::Relaxed);
    }
}

/// A reader that sees a word stored after this call also sees everything stored before it.
#[inline]
pub fn order_stores() {
    fence(Ordering::Release);
}

/// Loads after this call see at least what was stored before anything seen by loads before it.
#[inline]
pub fn order_loads() {
    fence(Ordering::Acquire);
}

/// The sequence of the latest publication; 0 when there is none. Later loads see at least what it announces.
#[inline]
pub fn latest<const M: usize>(memory: &[AtomicU64; M], places: Places) -> u64 {
    let sequence = load(memory, places.latest);
    fence(Ordering::Acquire);
    sequence
}

/// Reads the words at `offsets` of the latest slot, all from one publication, and gives them with its sequence.
///
/// The slot's sequence is looked at only once, after the words. A look before them would gain nothing: a reader that
/// sees `latest` also sees the sequence that was stored before it, so an equal sequence afterwards was there all the
/// time.
///
/// # Errors
/// [`Torn`] where the slot is not, or no longer, the one that `latest` announced.
#[inline(always)]
pub fn read<const M: usize, const N: usize>(
    memory: &[AtomicU64; M],
    places: Places,
    offsets: &[usize; N],
) -> Result<(u64, [u64; N]), Torn> {
    let sequence = latest(memory, places);
    let slot = places.slot(sequence);
    let payload = offsets.map(|offset| load(memory, slot + offset));
    fence(Ordering::Acquire);
    if load(memory, slot) == sequence { Ok((sequence, payload)) } else { Err(Torn) }
}

/// Reads the words at `offsets` of the slot of `sequence`, which was read before, as long as it is still the latest.
///
/// This is shorter than [`read`]: nothing of it depends on `latest`, which is looked at only once, after the words. As
/// the writer does not touch a slot before it has announced the other one, an equal `latest` says that the words were
/// left alone. That `sequence` was seen must have happened before (acquire), or the words could be older than it.
///
/// # Errors
/// [`Torn`] where another publication is the latest.
#[inline(always)]
pub fn read_again<const M: usize, const N: usize>(
    memory: &[AtomicU64; M],
    places: Places,
    sequence: u64,
    offsets: &[usize; N],
) -> Result<[u64; N], Torn> {
    let slot = places.slot(sequence);
    let payload = offsets.map(|offset| load(memory, slot + offset));
    fence(Ordering::Acquire);
    if load(memory, places.latest) == sequence { Ok(payload) } else { Err(Torn) }
}

/// Publishes `payload`, made for the sequence that [`next`] gives, as the words after the sequence of the other slot.
///
/// One writer at a time; that is for the caller to ensure.
pub fn publish<const M: usize, const N: usize>(
    memory: &[AtomicU64; M],
    places: Places,
    sequence: u64,
    payload: &[u64; N],
) {
    debug_assert!(
        sequence != 0 && sequence.is_multiple_of(2),
        "as next() makes it: odd is a slot being written, 0 none"
    );
    debug_assert!(N < places.stride, "a slot ends before the next one begins");
    let slot = places.slot(sequence);
    store(memory, slot, sequence.wrapping_sub(1));
    fence(Ordering::Release);
    for (offset, value) in payload.iter().enumerate() {
        store(memory, slot + 1 + offset, *value);
    }
    store(memory, slot, sequence);
    fence(Ordering::Release);
    store(memory, places.latest, sequence);
}

/// Reads the words at `offsets` of the entry at `place`, all written together, and gives them with its sequence.
///
/// # Errors
/// [`Torn`] where the entry is void, was never written, or is being written.
#[inline(always)]
pub fn read_entry<const M: usize, const N: usize>(
    memory: &[AtomicU64; M],
    place: usize,
    offsets: &[usize; N],
) -> Result<(u64, [u64; N]), Torn> {
    let sequence = latest_entry(memory, place);
    if sequence == 0 || sequence & 1 == 1 {
        return Err(Torn);
    }
    let payload = offsets.map(|offset| load(memory, place + offset));
    fence(Ordering::Acquire);
    if load(memory, place) == sequence { Ok((sequence, payload)) } else { Err(Torn) }
}

#[inline(always)]
fn latest_entry<const M: usize>(memory: &[AtomicU64; M], place: usize) -> u64 {
    let sequence = load(memory, place);
    fence(Ordering::Acquire);
    sequence
}

/// Writes the words after the sequence of the entry at `place`; `payload` makes them for the sequence that the entry
/// will have.
///
/// A writer that died in the middle has left an odd sequence, which the next one goes on from: no sequence ever stands
/// for two contents. One writer at a time; that is for the caller to ensure.
pub fn write_entry<const M: usize, const N: usize>(
    memory: &[AtomicU64; M],
    place: usize,
    payload: impl FnOnce(u64) -> [u64; N],
) {
    let writing = load(memory, place) | 1;
    let whole = after(writing);
    store(memory, place, writing);
    fence(Ordering::Release);
    for (offset, value) in payload(whole).iter().enumerate() {
        store(memory, place + 1 + offset, *value);
    }
    fence(Ordering::Release);
    store(memory, place, whole);
}

/// Makes the entry at `place` void until it is written again.
pub fn void_entry<const M: usize>(memory: &[AtomicU64; M], place: usize) {
    store(memory, place, load(memory, place) | 1);
}

/// The even sequence after an odd one; never 0.
const fn after(writing: u64) -> u64 {
    let next = writing.wrapping_add(1);
    if next == 0 { 2 } else { next }
}

/// The sequence of the publication after `latest`: even, never 0, and of the other slot.
pub const fn next(latest: u64) -> u64 {
    let next = (latest & !1).wrapping_add(2);
    if next == 0 { 4 } else { next }
}
