//! The virtual machine that the program runs in: whether it was restored, migrated or copied since the daemon last
//! looked.

use core::sync::atomic::{AtomicU64, Ordering};
use ffclock_page::{ReadError, Reader};
use ffclock_sys::{SharedVmClock, VmClockError};
use std::path::Path;

/// The machine's VMClock, beside the marker that the page was last seen to rest on.
#[derive(Debug)]
pub(crate) struct Machine {
    clock: SharedVmClock,
    seen: AtomicU64,
}

impl Machine {
    /// Watches the VMClock at `path`. Without one the daemon alone notices disruptions, at its next look.
    pub(crate) fn watch(path: &Path, page: Reader<'_>) -> Result<Self, VmClockError> {
        let clock = SharedVmClock::open(path)?;
        // Another marker than that of the page is found at the first reading.
        let seen = AtomicU64::new(page.machine().unwrap_or_else(|| clock.marker()));
        Ok(Machine { clock, seen })
    }

    /// Whether nothing happened up to here since the page was last compared.
    #[inline(always)]
    pub(crate) fn is_as_seen(&self) -> bool {
        self.clock.marker() == self.seen.load(Ordering::Relaxed)
    }

    /// Compares the machine with the page. Everything that was read before is of the page's epoch if both agree.
    ///
    /// # Errors
    /// [`ReadError::Disrupted`].
    pub(crate) fn compare(&self, page: Reader<'_>) -> Result<(), ReadError> {
        let marker = self.clock.marker();
        match page.machine() {
            Some(published) if published != marker => Err(ReadError::Disrupted),
            _ => {
                self.seen.store(marker, Ordering::Relaxed);
                Ok(())
            }
        }
    }
}
