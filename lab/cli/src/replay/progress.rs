//! Progress while a long file is read.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Rows between two looks at the clock.
const STRIDE: u64 = 1 << 14;
/// A replay shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(2);
const BETWEEN: Duration = Duration::from_millis(200);

/// Counts rows, and shows the count on a terminal.
pub(crate) struct RowProgress {
    rows: u64,
    begun: Instant,
    next: Option<Instant>,
    shown: bool,
}

impl RowProgress {
    pub(crate) fn new() -> Self {
        let begun = Instant::now();
        RowProgress { rows: 0, begun, next: stderr().is_terminal().then(|| begun + PATIENCE), shown: false }
    }

    /// One row was read.
    pub(crate) fn advance(&mut self) {
        self.rows += 1;
        if self.rows.is_multiple_of(STRIDE) && self.next.is_some_and(|next| Instant::now() >= next) {
            self.show();
        }
    }

    /// This many more rows were read.
    pub(crate) fn advance_by(&mut self, more: u64) {
        self.rows += more;
        if self.next.is_some_and(|next| Instant::now() >= next) {
            self.show();
        }
    }

    /// The number of rows that were read.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// This many of all steps of a long computation are done.
    pub(super) fn show_share(&mut self, done: usize, all: usize) {
        if self.next.is_some_and(|next| Instant::now() >= next) {
            let _ = write!(stderr(), "\rlooking back: {:.0} % {:20}", 100.0 * done as f64 / all.max(1) as f64, "");
            self.shown = true;
            self.next = Some(Instant::now() + BETWEEN);
        }
    }

    fn show(&mut self) {
        let rate = self.rows as f64 / self.begun.elapsed().as_secs_f64();
        let _ = write!(stderr(), "\r{} rows, {:.2} M/s ", self.rows, rate / 1e6);
        self.shown = true;
        self.next = Some(Instant::now() + BETWEEN);
    }
}

impl Drop for RowProgress {
    /// Removes the line, also when the replay ends with an error.
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(stderr(), "\r{:40}\r", "");
        }
    }
}
