//! What is reported of the fast path: whether it is there, why not, and packets by outcome.

use ffclock_control::serve::FastPathReport;
use ffclock_xdp::{FastCounts, NoLine};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The report, written by the thread of the fast path and read by the main thread.
#[derive(Debug, Default)]
pub(super) struct FastPathBoard(Mutex<FastPathReport>);

impl FastPathBoard {
    /// Of a program that is attached there, or cannot be had for that reason.
    pub(super) fn new(attached: Result<String, String>) -> Self {
        let (attached, unavailable) = match attached {
            Ok(place) => (Some(place), None),
            Err(reason) => (None, Some(reason)),
        };
        FastPathBoard(Mutex::new(FastPathReport { attached, unavailable, ..FastPathReport::default() }))
    }

    /// What is known now.
    pub(super) fn read(&self) -> FastPathReport {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, FastPathReport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn line(&self, reason: Option<NoLine>) {
        let now = reason.map(|reason| reason.to_string());
        let mut report = self.lock();
        if reason == Some(NoLine::Slewed) && report.no_line != now {
            tracing::warn!("the sockets answer alone for a moment: {}", NoLine::Slewed);
        }
        report.no_line = now;
    }

    pub(super) fn counted(&self, counts: &FastCounts) {
        self.lock().counts = counts.iter().map(|(outcome, packets)| (outcome.name().to_owned(), packets)).collect();
    }

    pub(super) fn ended(&self, reason: String) {
        let mut report = self.lock();
        (report.attached, report.unavailable, report.no_line) = (None, Some(reason), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_ends_says_why_and_keeps_its_counts() {
        let board = FastPathBoard::new(Ok("eth0 (native)".to_owned()));
        board.counted(&FastCounts::default());
        board.line(Some(NoLine::Begins));
        assert_eq!(board.read().no_line.as_deref(), Some("begins"));
        board.line(None);
        assert_eq!((board.read().no_line, board.read().attached.as_deref()), (None, Some("eth0 (native)")));
        board.ended("the device is gone".to_owned());
        let report = board.read();
        assert_eq!((report.attached, report.unavailable.as_deref()), (None, Some("the device is gone")));
        assert_eq!(report.counts.get("replied"), Some(&0));
        assert_eq!(FastPathBoard::new(Err("no".to_owned())).read().unavailable.as_deref(), Some("no"));
    }
}
