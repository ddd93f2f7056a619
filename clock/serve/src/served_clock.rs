//! The page as a thread of the server sees it: opened again where it is missing, or where nothing renews it.

use ffclock::{Clock, Snapshot};
use ffclock_units::{Moment, Mono, Span};
use std::path::{Path, PathBuf};

/// The pause between two attempts to open the page.
const PAUSE: Span = Span::from_secs(1);

/// The page, as far as it is there.
pub struct ServedClock {
    path: PathBuf,
    clock: Option<Clock>,
    next_try: Moment<Mono>,
}

impl ServedClock {
    /// Opens the page at this path, now and whenever it is missing.
    pub fn new(path: &Path) -> Self {
        ServedClock { path: path.to_owned(), clock: Clock::open_at(path).ok(), next_try: ffclock_sys::mono_now() }
    }

    /// All that the page says; `None` where it cannot be read.
    pub fn snapshot(&mut self) -> Option<Snapshot> {
        if self.clock.is_none() {
            self.renew();
        }
        self.clock.as_ref().and_then(|clock| clock.snapshot().ok())
    }

    /// The same publication; `None` where the counter's epoch has ended since, or the virtual machine was restored,
    /// migrated or copied. To be asked after the counter was read.
    pub fn undisrupted<'s>(&self, snapshot: Option<&'s Snapshot>) -> Option<&'s Snapshot> {
        snapshot.filter(|snapshot| self.clock.as_ref().is_none_or(|clock| clock.check_snapshot(snapshot).is_ok()))
    }

    /// Opens the page again, since it says nothing of use: a daemon that found its file gone has made another.
    pub fn renew(&mut self) {
        let now = ffclock_sys::mono_now();
        if now < self.next_try {
            return;
        }
        self.next_try = now + PAUSE;
        if let Ok(clock) = Clock::open_at(&self.path) {
            self.clock = Some(clock);
        }
    }
}
