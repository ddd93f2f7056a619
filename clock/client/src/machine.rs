//! The virtual machine that the program runs in: whether it was restored, migrated or copied since the daemon last
//! looked.

use core::sync::atomic::{AtomicU64, Ordering};
use ffclock_page::{ReadError, Reader};
use ffclock_sys::{SharedVmClock, VmClockError};
use std::path::Path;

/// The machine's VMClock, beside its words when the page was last seen to rest on them.
#[derive(Debug)]
pub(crate) struct Machine {
    clock: SharedVmClock,
    seen: [AtomicU64; 2],
}

/// The words that [`Machine`] had seen when a reading began.
pub(crate) type SeenWords = [u64; 2];

impl Machine {
    /// Watches the VMClock at `path`. Without one the daemon alone notices disruptions, at its next look.
    pub(crate) fn watch(path: &Path, page: Reader<'_>) -> Result<Self, VmClockError> {
        let clock = SharedVmClock::open(path)?;
        let [disruption, generation] = clock.watched_words();
        // Another mark than that of the page is found at the first reading.
        let seen = page.machine().map_or([disruption, generation], |published| {
            [published.disruption, published.generation.unwrap_or(generation)]
        });
        Ok(Machine { clock, seen: seen.map(AtomicU64::new) })
    }

    /// What the page was last seen to rest on. The page as it is read after this call rests on that or on something
    /// later; what another thread sees in between changes nothing of what this one compares with.
    #[inline(always)]
    pub(crate) fn seen(&self) -> SeenWords {
        let [marker, generation] = &self.seen;
        [marker.load(Ordering::Acquire), generation.load(Ordering::Acquire)]
    }

    /// Whether nothing happened to the machine from `seen` up to here.
    #[inline(always)]
    pub(crate) fn is_as_seen(&self, seen: SeenWords) -> bool {
        self.clock.watched_words() == seen
    }

    /// Compares the machine with the page, and gives what it shows. What is read of the page afterwards rests on that
    /// or on something later.
    ///
    /// # Errors
    /// [`ReadError::Disrupted`].
    pub(crate) fn compare(&self, page: Reader<'_>) -> Result<SeenWords, ReadError> {
        let present = self.clock.watched_words();
        if page.machine().is_some_and(|published| !published.holds_at(self.clock.mark_of(present))) {
            return Err(ReadError::Disrupted);
        }
        for (seen, word) in self.seen.iter().zip(present) {
            seen.store(word, Ordering::Release);
        }
        Ok(present)
    }
}
