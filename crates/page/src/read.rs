//! Reading a page. A reader never waits: it tries a bounded number of times and then says what is wrong.

use crate::convert::{self, Snapshot};
use crate::layout::{self, header, slot};
use crate::words::{self, PAGE, PageWords};
use crate::{BootId, CounterId, PageError, ReadError};
use ffclock_units::{Counter, CounterEpoch, Reading, Status};

/// Two publications must pass during one attempt to spoil it, so a whole page is read at the first or second.
const ATTEMPTS: usize = 64;

/// The words of a header in the order in which they are checked.
const HEADER: [usize; 6] =
    [header::MAGIC, header::VERSION, header::SIZE, header::BOOT_HIGH, header::BOOT_LOW, header::CHECK];

/// A reader of a page. It keeps nothing: copy it, make a new one for every reading.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    page: &'a PageWords,
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
    /// Reads from `page`, which need not be a page: [`check_header`](Self::check_header) tells.
    #[inline]
    pub const fn new(page: &'a PageWords) -> Self {
        Reader { page }
    }

    /// Whether this is a page that this version can read, written in the boot `boot` as far as both are known.
    ///
    /// # Errors
    /// [`PageError::NotAPage`], [`PageError::Version`], [`PageError::Size`], [`PageError::Corrupt`], [`PageError::OtherBoot`].
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
    #[inline]
    pub fn snapshot(&self) -> Result<Snapshot, PageError> {
        match words::read(self.page, PAGE, &layout::ALL) {
            Ok((sequence, payload)) if sequence != 0 => Snapshot::new(sequence, payload),
            _ => self.snapshot_with_patience(),
        }
    }

    #[cold]
    fn snapshot_with_patience(&self) -> Result<Snapshot, PageError> {
        for _ in 0..ATTEMPTS {
            if let Ok((sequence, payload)) = words::read(self.page, PAGE, &layout::ALL) {
                return if sequence == 0 { Err(PageError::Empty) } else { Snapshot::new(sequence, payload) };
            }
            core::hint::spin_loop();
        }
        Err(PageError::Torn)
    }

    /// UTC at a reading of the counter `id`, just taken.
    ///
    /// # Errors
    /// [`ReadError::OtherCounter`] when the page is about another counter; and as [`Snapshot::reading_at`].
    #[inline]
    pub fn reading_at(&self, counter: Counter, id: CounterId) -> Result<Reading, ReadError> {
        if let Ok((sequence, words)) = words::read(self.page, PAGE, &layout::HOT)
            && convert::counter_code(words[slot::STATE - 1]) == id.code()
            && let Some(reading) = convert::plain_reading(sequence, &words, counter)
        {
            return Ok(reading);
        }
        self.careful_reading(counter, id)
    }

    /// UTC at a reading of a counter, taken earlier in `epoch`. (The counter itself is not asked for: another one has another epoch.)
    ///
    /// # Errors
    /// [`ReadError::OtherEpoch`] when the page is about another epoch now; and as [`Snapshot::reading_at`].
    #[inline]
    pub fn reading_of(&self, counter: Counter, epoch: CounterEpoch) -> Result<Reading, ReadError> {
        if let Ok((sequence, words)) = words::read(self.page, PAGE, &layout::HOT)
            && words[slot::EPOCH - 1] == epoch.raw()
            && let Some(reading) = convert::plain_reading(sequence, &words, counter)
        {
            return Ok(reading);
        }
        self.careful_stamp(counter, epoch)
    }

    #[cold]
    #[inline(never)]
    fn careful_reading(&self, counter: Counter, id: CounterId) -> Result<Reading, ReadError> {
        let snapshot = self.snapshot()?;
        if snapshot.counter_id() == id {
            snapshot.reading_at(counter)
        } else {
            Err(ReadError::OtherCounter(snapshot.counter_id()))
        }
    }

    #[cold]
    #[inline(never)]
    fn careful_stamp(&self, counter: Counter, epoch: CounterEpoch) -> Result<Reading, ReadError> {
        let snapshot = self.snapshot()?;
        if snapshot.epoch() == epoch { snapshot.reading_at(counter) } else { Err(ReadError::OtherEpoch) }
    }

    /// The mark to put on a stamp taken now, unchecked but for tearing: whether the page is sound matters when it is converted.
    ///
    /// # Errors
    /// [`PageError::Empty`], [`PageError::Torn`], [`PageError::Corrupt`].
    #[inline]
    pub fn mark(&self) -> Result<Mark, PageError> {
        if let Ok((_, [state, epoch])) = words::read(self.page, PAGE, &layout::MARK)
            && let Some(counter_id) = CounterId::from_code(convert::counter_code(state))
        {
            return Ok(Mark { counter_id, epoch: CounterEpoch::from_raw(epoch) });
        }
        let snapshot = self.snapshot_with_patience()?;
        Ok(Mark { counter_id: snapshot.counter_id(), epoch: snapshot.epoch() })
    }

    /// The status at a reading of the counter; [`Status::Unsynchronised`] also where the page cannot be read.
    pub fn status_at(&self, counter: Counter) -> Status {
        self.snapshot().map_or(Status::Unsynchronised, |snapshot| snapshot.status_at(counter))
    }
}
