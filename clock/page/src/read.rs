//! Reading a page. A reader never waits: it tries a bounded number of times and then says what is wrong.

use crate::convert::{self, SlotLine, Snapshot, StampTime, VotedTime};
use crate::history::{self, HistoryWords};
use crate::interval::{Interval, plain_interval};
use crate::layout::{self, header, slot};
use crate::words::{self, AtomicU64, Ordering, PAGE, PageWords};
use crate::{BootId, CounterId, PageError, ReadError};
use ffclock_units::{Bound, Counter, CounterEpoch, MachineMark, Reading, Status};

/// Two publications must pass during one attempt to spoil it, so with a daemon the first succeeds. Against a writer
/// that did nothing else than publish, on another core, 64 attempts once failed in 10^9 reads.
const ATTEMPTS: usize = 256;

/// Sequences of whole slots are even.
const NO_SEQUENCE: u64 = 1;

/// The words of a header in the order in which they are checked.
const HEADER: [usize; 6] =
    [header::MAGIC, header::VERSION, header::SIZE, header::BOOT_HIGH, header::BOOT_LOW, header::CHECK];

/// A reader of a page. It keeps nothing: copy it, make a new one for every reading.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    page: &'a PageWords,
    history: Option<&'a HistoryWords>,
}

/// The publication whose words a program has checked, so that it need not check them again at every reading.
///
/// A bit that flips in the page after the check is found at the next publication.
#[derive(Debug)]
pub struct Verified(AtomicU64);

impl Verified {
    /// None yet.
    pub fn none() -> Self {
        Verified(AtomicU64::new(NO_SEQUENCE))
    }
}

/// Which counter is to be read, and the epoch that its reading belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    /// The counter.
    pub counter_id: CounterId,
    /// Its epoch.
    pub epoch: CounterEpoch,
}

impl<'a> Reader<'a> {
    /// Reads from `page`, which need not be a page: [`check_header`](Self::check_header) finds out.
    #[inline]
    pub const fn new(page: &'a PageWords) -> Self {
        Reader { page, history: None }
    }

    /// Converts old stamps by `history`, which was [checked](history::check_history), as far as it reaches.
    #[inline]
    #[must_use]
    pub const fn with_history(self, history: Option<&'a HistoryWords>) -> Self {
        Reader { history, ..self }
    }

    /// Whether this is a page that this version can read, written in the boot `boot` as far as both are known.
    ///
    /// # Errors
    /// [`PageError::NotAPage`], [`PageError::Version`], [`PageError::Size`], [`PageError::Corrupt`],
    /// [`PageError::OtherBoot`]; [`PageError::Empty`] of zeros, as a writer finds them that makes a page.
    pub fn check_header(&self, boot: Option<BootId>) -> Result<(), PageError> {
        let words = HEADER.map(|place| words::load(self.page, place));
        let [magic, version, size, high, low, check] = words;
        if words == [0; HEADER.len()] {
            return Err(PageError::Empty);
        }
        if magic != layout::MAGIC {
            return Err(PageError::NotAPage);
        }
        if version != layout::VERSION {
            return Err(PageError::Version(version));
        }
        if size != layout::PAGE_BYTES as u64 {
            return Err(PageError::Size(size));
        }
        if layout::sum(0, &[magic, version, size, high, low]) != check {
            return Err(PageError::Corrupt);
        }
        let written = BootId::from_bits(u128::from(high) << 64 | u128::from(low));
        match (written, boot) {
            (Some(written), Some(boot)) if written != boot => Err(PageError::OtherBoot),
            _ => Ok(()),
        }
    }

    /// The latest publication, whole and checked.
    ///
    /// # Errors
    /// [`PageError::Empty`], [`PageError::Torn`], [`PageError::Corrupt`].
    pub fn snapshot(&self) -> Result<Snapshot, PageError> {
        for _ in 0..ATTEMPTS {
            if let Ok((sequence, payload)) = words::read(self.page, PAGE, &layout::WHOLE) {
                return if sequence == 0 { Err(PageError::Empty) } else { Snapshot::new(sequence, &payload) };
            }
            core::hint::spin_loop();
        }
        Err(PageError::Torn)
    }

    /// Checks the latest publication for readings of the counter `id`, once and for all of them.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot); [`ReadError::OtherCounter`] when the page is about another counter.
    pub fn verify(&self, id: CounterId, verified: &Verified) -> Result<Snapshot, ReadError> {
        let snapshot = self.snapshot()?;
        if snapshot.counter_id() != id {
            return Err(ReadError::OtherCounter(snapshot.counter_id()));
        }
        verified.0.store(snapshot.sequence(), Ordering::Release);
        Ok(snapshot)
    }

    /// UTC at a reading of the counter `id`, just taken, by the line of the latest publication, which is verified with
    /// it.
    ///
    /// # Errors
    /// As [`verify`](Self::verify), and as [`Snapshot::reading_at`].
    pub fn verified_reading(
        &self,
        (counter, id): (Counter, CounterId),
        verified: &Verified,
    ) -> Result<Reading, ReadError> {
        if let Some(reading) = self.reading_by_verified(counter, verified) {
            return Ok(reading);
        }
        let (sequence, words) = self.line_words()?;
        let line = SlotLine::new(sequence, &words)?;
        let found = layout::counter_of(line.tag()).ok_or(PageError::Corrupt)?;
        if found != id {
            return Err(ReadError::OtherCounter(found));
        }
        verified.0.store(sequence, Ordering::Release);
        line.time_at(counter).map(|(reading, _)| reading)
    }

    /// By the line of a publication that was verified before, also after its window, as where the daemon died. (One
    /// `verified` is for one counter, so this is about the counter that was asked for.)
    #[inline(always)]
    fn reading_by_verified(&self, counter: Counter, verified: &Verified) -> Option<Reading> {
        let sequence = verified.0.load(Ordering::Acquire);
        let words = words::read_again(self.page, PAGE, sequence, &layout::ALL).ok()?;
        let (reading, _) = SlotLine::checked(&words)?.time_at(counter).ok()?;
        Some(reading)
    }

    /// UTC at the reading that `counter` takes, by a publication that was verified before; `None` where there is
    /// something to consider, a new publication for instance. Ask [`verify`](Self::verify) then.
    ///
    /// The page is read first: the way from the counter to the result is short then, and that is most of the cost
    /// beyond the counter.
    #[inline(always)]
    pub fn plain_reading(&self, verified: &Verified, counter: impl FnOnce() -> Counter) -> Option<Reading> {
        let sequence = verified.0.load(Ordering::Acquire);
        let words = words::read_again(self.page, PAGE, sequence, &layout::READING).ok()?;
        convert::plain_reading(&words, counter())
    }

    /// UTC at a reading of the counter `id`, just taken.
    ///
    /// # Errors
    /// [`ReadError::OtherCounter`] when the page is about another counter; and as [`Snapshot::reading_at`].
    pub fn reading_at(&self, counter: Counter, id: CounterId) -> Result<Reading, ReadError> {
        let snapshot = self.snapshot()?;
        if snapshot.counter_id() == id {
            snapshot.reading_at(counter)
        } else {
            Err(ReadError::OtherCounter(snapshot.counter_id()))
        }
    }

    /// UTC at a reading of a counter, taken earlier in `epoch`: by the page where it was taken after the page's line,
    /// by the history where it is older. (The counter itself is not asked for: another one has another epoch.)
    ///
    /// # Errors
    /// [`ReadError::OtherEpoch`] when the page is about another epoch now; and as [`Snapshot::reading_at`].
    #[inline]
    pub fn reading_of(&self, counter: Counter, epoch: CounterEpoch) -> Result<Reading, ReadError> {
        if let Ok((sequence, words)) = words::read(self.page, PAGE, &layout::ABSOLUTE)
            && convert::absolute_checks(sequence, &words)
            && layout::epoch_of(convert::absolute_tag(&words)) == epoch
        {
            let [plain @ .., _, _] = &words;
            if let Some(reading) = convert::plain_reading(plain, counter) {
                return Ok(reading);
            }
        }
        self.past_reading(counter, epoch)
    }

    /// Apart, so that the registers of the plain conversion do not spill.
    #[inline(never)]
    fn past_reading(&self, counter: Counter, epoch: CounterEpoch) -> Result<Reading, ReadError> {
        match self.recall(counter, epoch) {
            Some(time) => Ok(time.reading),
            None => self.line_reading(counter, epoch),
        }
    }

    /// The same on both scales, with the noise.
    ///
    /// # Errors
    /// As [`reading_of`](Self::reading_of).
    pub fn time_of(&self, counter: Counter, epoch: CounterEpoch) -> Result<StampTime, ReadError> {
        self.recall(counter, epoch).map_or_else(|| self.snapshot_of(epoch)?.time_at(counter), Ok)
    }

    /// The same with the strict bound. The history knows none, so where it converts the reading, the bound is that of
    /// the page's line and the distance between both.
    ///
    /// # Errors
    /// As [`reading_of`](Self::reading_of).
    pub fn voted_time_of(&self, counter: Counter, epoch: CounterEpoch) -> Result<VotedTime, ReadError> {
        let snapshot = self.snapshot_of(epoch)?;
        let line = snapshot.time_at(counter)?;
        let StampTime { reading, noise, tai } = self.recall(counter, epoch).unwrap_or(line);
        let strict = snapshot.strict_bound_at(counter) + Bound::of(tai - line.tai);
        Ok(VotedTime { reading, noise, strict: strict.max(reading.bound), tai })
    }

    /// The time of a reading before the page's line, by the history. The words that name the epoch need not be checked:
    /// if they are wrong, the history has nothing for them.
    #[inline(always)]
    fn recall(&self, counter: Counter, epoch: CounterEpoch) -> Option<StampTime> {
        const NAMES: [usize; 4] = [slot::STATE, slot::COUNTER, slot::TAG, slot::EPOCH_BEGIN];
        let (_, [state, line, tag, begin]) = words::read(self.page, PAGE, &NAMES).ok()?;
        let line = Counter::from_raw(line);
        let is_older = line.is_after(counter) && layout::epoch_of(tag) == epoch;
        if is_older && !convert::is_withdrawn(state) {
            history::recall(self.history?, [tag, begin], [counter, line])
        } else {
            None
        }
    }

    /// UTC at a reading by the page's line.
    #[inline(never)]
    fn line_reading(&self, counter: Counter, epoch: CounterEpoch) -> Result<Reading, ReadError> {
        let (sequence, words) = self.line_words()?;
        let line = SlotLine::new(sequence, &words)?;
        if layout::epoch_of(line.tag()) != epoch {
            return Err(ReadError::OtherEpoch);
        }
        line.time_at(counter).map(|(reading, _)| reading)
    }

    /// The words of the latest publication, all from one, and its sequence; not checked.
    #[inline(always)]
    fn line_words(&self) -> Result<(u64, [u64; layout::ALL.len()]), PageError> {
        for _ in 0..ATTEMPTS {
            if let Ok((sequence, words)) = words::read(self.page, PAGE, &layout::ALL) {
                return if sequence == 0 { Err(PageError::Empty) } else { Ok((sequence, words)) };
            }
            core::hint::spin_loop();
        }
        Err(PageError::Torn)
    }

    /// From one reading of a counter to another, both taken in `epoch`: by the difference clock or by two conversions,
    /// whichever has the smaller uncertainty.
    ///
    /// # Errors
    /// [`ReadError::OtherEpoch`] when the page is about another epoch now; and as [`Snapshot::elapsed`].
    #[inline]
    pub fn elapsed_of(&self, readings: [Counter; 2], epoch: CounterEpoch) -> Result<Interval, ReadError> {
        if let Ok(read) = words::read(self.page, PAGE, &layout::INTERVAL)
            && let Some(interval) = plain_interval(read, epoch, readings)
        {
            return Ok(interval);
        }
        self.careful_elapsed(readings, epoch)
    }

    #[cold]
    #[inline(never)]
    fn careful_elapsed(&self, [first, second]: [Counter; 2], epoch: CounterEpoch) -> Result<Interval, ReadError> {
        let snapshot = self.snapshot_of(epoch)?;
        let by_difference = snapshot.elapsed(first, second)?;
        let time = |counter| self.recall(counter, epoch).map_or_else(|| snapshot.time_at(counter), Ok);
        Ok(by_difference.or_between([time(first)?, time(second)?]))
    }

    fn snapshot_of(&self, epoch: CounterEpoch) -> Result<Snapshot, ReadError> {
        let snapshot = self.snapshot()?;
        if snapshot.epoch() == epoch { Ok(snapshot) } else { Err(ReadError::OtherEpoch) }
    }

    /// The mark to put on a stamp taken now; `None` before the first publication. It is one word, unchecked: whether
    /// the page is sound matters when the stamp is converted, and a wrong mark makes it refused.
    #[inline(always)]
    pub fn mark(&self) -> Option<Mark> {
        let tag = words::load(self.page, header::TAG);
        layout::counter_of(tag).map(|counter_id| Mark { counter_id, epoch: layout::epoch_of(tag) })
    }

    /// The mark of the virtual machine that all publications so far rest on; `None` where the writer watches none. What
    /// was read before a look at the machine's own mark is good only if this one holds there. What is read after this
    /// call is of that mark or a later one.
    pub fn machine(&self) -> Option<MachineMark> {
        const PLACES: [usize; 4] =
            [header::MACHINE_WATCHED, header::MACHINE, header::GENERATION, header::GENERATION_CHECK];
        let [watched, disruption, generation, check] = PLACES.map(|place| words::load(self.page, place));
        words::order_loads();
        // The sum fails where an earlier writer, which states no generation, went on after one that did.
        let has_generation = check == layout::generation_check(disruption, generation);
        (watched == 1).then(|| MachineMark { disruption, generation: has_generation.then_some(generation) })
    }

    /// The status at a reading of the counter; [`Status::Unsynchronised`] also where the page cannot be read.
    pub fn status_at(&self, counter: Counter) -> Status {
        self.snapshot().map_or(Status::Unsynchronised, |snapshot| snapshot.status_at(counter))
    }
}
