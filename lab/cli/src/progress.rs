//! Progress of work that takes longer than two seconds: a line that is written over and over, on a terminal only.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Shorter work shows no progress.
const PATIENCE: Duration = Duration::from_secs(2);
const BETWEEN: Duration = Duration::from_millis(200);
/// Rows between two looks at the clock.
const STRIDE: u64 = 1 << 14;

/// The line. It goes when this does, also when the work ends with an error.
pub(crate) struct Progress {
    next: Option<Instant>,
    shown: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Progress { next: stderr().is_terminal().then(|| Instant::now() + PATIENCE), shown: false }
    }

    /// Shows what `line` gives, if it is time.
    pub(crate) fn show(&mut self, line: impl FnOnce() -> String) {
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

/// Counts rows, and shows the count.
pub(crate) struct RowProgress {
    rows: u64,
    begun: Instant,
    line: Progress,
}

impl RowProgress {
    pub(crate) fn new() -> Self {
        RowProgress { rows: 0, begun: Instant::now(), line: Progress::new() }
    }

    /// One row was read.
    pub(crate) fn advance(&mut self) {
        self.rows += 1;
        if self.rows.is_multiple_of(STRIDE) {
            self.show();
        }
    }

    /// This many more rows were read.
    pub(crate) fn advance_by(&mut self, more: u64) {
        self.rows += more;
        self.show();
    }

    /// The number of rows that were read.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// This many of all steps of a long computation are done.
    pub(crate) fn show_share(&mut self, done: usize, all: usize) {
        self.line.show(|| format!("looking back: {:.0} %", 100.0 * done as f64 / all.max(1) as f64));
    }

    fn show(&mut self) {
        let (rows, begun) = (self.rows, self.begun);
        self.line.show(|| format!("{rows} rows, {:.2} M/s", rows as f64 / begun.elapsed().as_secs_f64() / 1e6));
    }
}
