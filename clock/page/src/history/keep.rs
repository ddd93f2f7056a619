//! Writing a history: lines as they are published become segments.

use super::segment::{EntryWords, HistorySegment, SegmentRates};
use super::{HistoryRing, HistoryWords, RINGS};
use crate::layout::history::{self, ENTRY_WORDS, HISTORY_BYTES, header};
use crate::layout::{self, high};
use crate::words::{load, order_stores, store, void_entry, write_entry};
use crate::{BootId, Publication};
use ffclock_units::{Bound, Counter, Estimate, LeapStep, Span, Status};

/// A line repeats the one before it if times and error figures agree to within this.
const SAME: Span = Span::from_nanos(1);

/// The one writer of a history.
#[derive(Debug)]
pub struct HistoryWriter<M> {
    memory: M,
    epoch: Option<HistoryEpoch>,
}

/// An epoch of the counter.
#[derive(Clone, Copy, Debug)]
struct HistoryEpoch {
    /// As a page names it: its tag, and its beginning.
    words: [u64; 2],
    /// In the order of [`RINGS`].
    chains: [Chain; RINGS.len()],
}

/// The segments of one ring up to the present: the last one is open until a later line is worth keeping.
#[derive(Clone, Copy, Debug)]
struct Chain {
    ring: HistoryRing,
    /// Where bucket 0 begins.
    origin: Counter,
    /// Buckets per tick, 2^-64.
    per_tick: u64,
    /// Where the open segment begins; `None` at the beginning of the epoch.
    base: Option<Estimate>,
    /// Where it ends: the latest line.
    end: Option<Estimate>,
    /// Whether the latest line says more than the one before it.
    is_news: bool,
    rates: Option<SegmentRates>,
}

impl<M: AsRef<HistoryWords>> HistoryWriter<M> {
    /// Takes over a history, or makes one of any memory.
    ///
    /// What a history of the same `boot` holds stays readable until the first publication. At most one writer may have
    /// it.
    pub fn open(memory: M, boot: Option<BootId>) -> Self {
        let words = memory.as_ref();
        let wanted = header_words(boot);
        if (0..wanted.len()).any(|place| wanted.get(place) != Some(&load(words, place))) {
            format(words, &wanted);
        }
        HistoryWriter { memory, epoch: None }
    }

    /// Keeps a line. To be called before it is published, so that a reader that knows the epoch finds no entry of
    /// another one.
    pub fn keep(&mut self, publication: &Publication) {
        if publication.estimate.status == Status::Unsynchronised {
            return;
        }
        let epoch = [layout::tag_of(publication.counter_id, publication.epoch), publication.epoch_begin.raw()];
        let mut present = match self.epoch {
            Some(present) if present.words == epoch => present,
            _ => self.begin(epoch, publication),
        };
        let line = &publication.estimate;
        for chain in &mut present.chains {
            if let Some(from) = chain.take(line)
                && let Some(words) = chain.open_segment(publication.leap)
            {
                chain.write(self.memory.as_ref(), from, (words, epoch));
            }
        }
        self.epoch = Some(present);
    }

    /// Drops everything of the past: what was published is known to be false. The next line begins the history again.
    pub fn clear(&mut self) {
        void(self.memory.as_ref());
        self.epoch = None;
    }

    /// The memory that the history lies in.
    pub const fn memory(&self) -> &M {
        &self.memory
    }

    /// Drops everything of the past: its counter readings mean something else now.
    fn begin(&self, words: [u64; 2], publication: &Publication) -> HistoryEpoch {
        let memory = self.memory.as_ref();
        void(memory);
        let chains = RINGS.map(|ring| Chain::new(ring, publication));
        store(memory, header::ORIGIN, publication.epoch_begin.raw());
        chains.iter().for_each(|chain| store(memory, chain.ring.per_tick, chain.per_tick));
        HistoryEpoch { words, chains }
    }
}

/// Leaves nothing of the past.
fn void(memory: &HistoryWords) {
    RINGS.iter().flat_map(|ring| (0..ring.entries as u64).map(|bucket| ring.place(bucket))).for_each(|place| {
        void_entry(memory, place);
    });
    order_stores();
}

/// The words of a history's header, up to its check word.
fn header_words(boot: Option<BootId>) -> [u64; header::CHECK + 1] {
    let boot = boot.map_or(u128::MAX, BootId::bits);
    let mut words = [history::MAGIC, history::VERSION, HISTORY_BYTES as u64, (boot >> 64) as u64, boot as u64, 0];
    let [covered @ .., check] = &mut words;
    *check = layout::sum(0, covered);
    words
}

/// Empties the history. The magic number goes first and comes last.
fn format(memory: &HistoryWords, wanted: &[u64]) {
    store(memory, header::MAGIC, 0);
    order_stores();
    void(memory);
    for (place, word) in wanted.iter().enumerate().skip(1) {
        store(memory, place, *word);
    }
    order_stores();
    store(memory, header::MAGIC, history::MAGIC);
}

impl Chain {
    fn new(ring: HistoryRing, publication: &Publication) -> Self {
        let ticks = publication.estimate.period.ticks_in(Span::from_millis(ring.span_ms)).raw().max(2).unsigned_abs();
        let per_tick = u64::MAX / ticks;
        Chain { ring, origin: publication.epoch_begin, per_tick, base: None, end: None, is_news: true, rates: None }
    }

    fn bucket(&self, counter: Counter) -> u64 {
        high(counter.raw().wrapping_sub(self.origin.raw()), self.per_tick)
    }

    /// The bucket in which the open segment begins.
    fn base_bucket(&self) -> Option<u64> {
        self.base.map(|base| self.bucket(base.counter))
    }

    /// Takes a line. Returns the first bucket in which the open segment has to be written again; `None` where the line
    /// changes nothing, because it is the same or older than the last one.
    fn take(&mut self, line: &Estimate) -> Option<u64> {
        let first = |chain: &Chain| chain.base_bucket().map_or(0, |bucket| bucket.saturating_add(1));
        let Some(end) = self.end else {
            if !(line.counter.is_after(self.origin) || line.counter == self.origin) {
                return None;
            }
            self.end = Some(*line);
            return Some(first(self));
        };
        let is_later = line.counter.is_after(end.counter);
        if !(is_later || line.counter == end.counter) || end == *line {
            return None;
        }
        if is_later {
            let is_bucket_new = self.base_bucket() < Some(self.bucket(end.counter));
            // Half of the counter's range after its beginning a segment would end before it began.
            let begin = self.base.map_or(self.origin, |base| base.counter);
            let is_too_long = !line.counter.is_after(begin);
            if (self.is_news && is_bucket_new) || is_too_long {
                (self.base, self.rates) = (Some(end), Some(SegmentRates::of(&end)));
            } else if let Some(rates) = &mut self.rates {
                rates.include(&end);
            }
            self.is_news = !repeats(&end, line);
        }
        self.end = Some(*line);
        Some(first(self))
    }

    fn open_segment(&self, leap: LeapStep) -> Option<EntryWords> {
        let end = self.end.as_ref()?;
        match self.base.as_ref().zip(self.rates) {
            Some((base, rates)) => HistorySegment::between([base, end], rates, leap).words(),
            None => HistorySegment::before(end, self.origin, leap).words(),
        }
    }

    /// Writes the open segment into every bucket that begins in it, as far as the ring reaches.
    fn write(&self, memory: &HistoryWords, from: u64, (words, epoch): (EntryWords, [u64; 2])) {
        let Some(end) = self.end else { return };
        let last = self.bucket(end.counter);
        let oldest = last.saturating_sub(self.ring.entries as u64 - 1);
        for bucket in from.max(oldest)..=last {
            write_entry(memory, self.ring.place(bucket), |sequence| summed(words, sequence, epoch));
        }
    }
}

/// The words with their check word.
fn summed(mut words: EntryWords, sequence: u64, epoch: [u64; 2]) -> EntryWords {
    let [covered @ .., check] = &mut words;
    *check = history::sum(sequence, covered, epoch);
    words
}

/// Whether a line is an earlier one at a later counter reading: nothing was learnt.
fn repeats(earlier: &Estimate, line: &Estimate) -> bool {
    let carried = earlier.at(line.counter);
    let same = |a: Bound, b: Bound| (a.as_span() - b.as_span()).abs() <= SAME;
    line.period == earlier.period
        && (carried.time - line.time).abs() <= SAME
        && same(carried.bound, line.bound)
        && same(Bound::of(carried.uncertainty.as_span()), Bound::of(line.uncertainty.as_span()))
}

const _: () = assert!(ENTRY_WORDS == history::entry::CHECK + 1);
