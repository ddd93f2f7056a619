//! Progress of work that takes longer than two seconds.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Shorter work shows no progress.
const PATIENCE: Duration = Duration::from_secs(2);
const BETWEEN: Duration = Duration::from_millis(200);

/// Shows a line that is written over and over, on a terminal only.
pub(super) struct Progress {
    next: Option<Instant>,
    shown: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        Progress { next: stderr().is_terminal().then(|| Instant::now() + PATIENCE), shown: false }
    }

    /// Shows what `line` gives, if it is time.
    pub(super) fn show(&mut self, line: impl FnOnce() -> String) {
        if self.next.is_some_and(|next| Instant::now() >= next) {
            let _ = write!(stderr(), "\r{:60}", line());
            self.shown = true;
            self.next = Some(Instant::now() + BETWEEN);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(stderr(), "\r{:60}\r", "");
        }
    }
}
