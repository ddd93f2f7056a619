//! Reading a page. A reader never waits: it tries a bounded number of times and then says what is wrong.

use crate::convert::{self, Interval, Snapshot};
use crate::layout::{self, header};
use crate::words::{self, AtomicU64, Ordering, PAGE, PageWords};
use crate::{BootId, CounterId, PageError, ReadError};
use ffclock_units::{Counter, CounterEpoch, Reading, Status};

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
        Reader { page }
    }

    /// Whether this is a page that this version can read, written in the boot `boot` as far as both are known.
    ///
    /// # Errors
    /// [`PageError::NotAPage`], [`PageError::Version`], [`PageError::Size`], [`PageError::Corrupt`],
    /// [`PageError::OtherBoot`].
    pub fn check_header(&self, boot: Option<BootId>) -> Result<(), PageError> {
        let [magic, version, size, high, low, check] = HEADER.map(|place| words::load(self.page, place));
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
                return if sequence == 0 { Err(PageError::Empty) } else { Snapshot::new(sequence, payload) };
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

    /// UTC at a reading of a counter, taken earlier in `epoch`. (The counter itself is not asked for: another one has
    /// another epoch.)
    ///
    /// # Errors
    /// [`ReadError::OtherEpoch`] when the page is about another epoch now; and as [`Snapshot::reading_at`].
    #[inline]
    pub fn reading_of(&self, counter: Counter, epoch: CounterEpoch) -> Result<Reading, ReadError> {
        if let Ok((sequence, words)) = words::read(self.page, PAGE, &layout::ABSOLUTE)
            && convert::absolute_checks(sequence, &words)
            && layout::epoch_of(convert::absolute_tag(&words)) == epoch
            && let [words @ .., _, _] = &words
            && let Some(reading) = convert::plain_reading(words, counter)
        {
            return Ok(reading);
        }
        self.careful_reading(counter, epoch)
    }

    #[cold]
    #[inline(never)]
    fn careful_reading(&self, counter: Counter, epoch: CounterEpoch) -> Result<Reading, ReadError> {
        self.snapshot_of(epoch)?.reading_at(counter)
    }

    /// From one reading of a counter to another, both taken in `epoch`, by the difference clock.
    ///
    /// # Errors
    /// [`ReadError::OtherEpoch`] when the page is about another epoch now; and as [`Snapshot::elapsed`].
    #[inline]
    pub fn elapsed_of(&self, readings: [Counter; 2], epoch: CounterEpoch) -> Result<Interval, ReadError> {
        if let Ok(read) = words::read(self.page, PAGE, &layout::DIFFERENCE)
            && let Some(interval) = convert::plain_interval(read, epoch, readings)
        {
            return Ok(interval);
        }
        self.careful_elapsed(readings, epoch)
    }

    #[cold]
    #[inline(never)]
    fn careful_elapsed(&self, [first, second]: [Counter; 2], epoch: CounterEpoch) -> Result<Interval, ReadError> {
        self.snapshot_of(epoch)?.elapsed(first, second)
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

    /// The status at a reading of the counter; [`Status::Unsynchronised`] also where the page cannot be read.
    pub fn status_at(&self, counter: Counter) -> Status {
        self.snapshot().map_or(Status::Unsynchronised, |snapshot| snapshot.status_at(counter))
    }
}
