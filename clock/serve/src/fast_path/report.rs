//! What is reported of the fast path: whether it is there, why not, and what became of packets.

use ffclock_xdp::{FastCounts, NoLine};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is known of the fast path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FastPathReport {
    /// The device and where the program is there; `None` where there is none.
    pub attached: Option<String>,
    /// Why there is none although there should be.
    pub unavailable: Option<String>,
    /// Why the sockets answer everything just now.
    pub no_line: Option<String>,
    /// What became of packets to the served port.
    pub counts: FastCounts,
}

/// The report, written by the thread of the fast path and read by who asks.
#[derive(Debug, Default)]
pub struct FastPathBoard(Mutex<FastPathReport>);

impl FastPathBoard {
    /// Of a program that is attached, one that cannot be had, or none that is wanted.
    pub fn new(attached: &Result<Option<String>, String>) -> Self {
        let report = FastPathReport {
            attached: attached.clone().ok().flatten(),
            unavailable: attached.clone().err(),
            ..FastPathReport::default()
        };
        FastPathBoard(Mutex::new(report))
    }

    /// What is known now.
    pub fn read(&self) -> FastPathReport {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, FastPathReport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn line(&self, reason: Option<NoLine>) {
        let mut report = self.lock();
        let (before, now) = (report.no_line.take(), reason.map(|reason| reason.to_string()));
        if reason == Some(NoLine::Slewed) && before != now {
            tracing::warn!("the sockets answer alone for a moment: {}", NoLine::Slewed);
        }
        report.no_line = now;
    }

    pub(super) fn counted(&self, counts: FastCounts) {
        self.lock().counts = counts;
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
        let board = FastPathBoard::new(&Ok(Some("eth0 (native)".to_owned())));
        board.line(Some(NoLine::Begins));
        assert_eq!(board.read().no_line.as_deref(), Some("begins"));
        board.line(None);
        assert_eq!((board.read().no_line, board.read().attached.as_deref()), (None, Some("eth0 (native)")));
        board.ended("the device is gone".to_owned());
        assert_eq!((board.read().attached, board.read().unavailable.as_deref()), (None, Some("the device is gone")));
        assert_eq!(FastPathBoard::new(&Ok(None)).read(), FastPathReport::default());
        assert_eq!(FastPathBoard::new(&Err("no".to_owned())).read().unavailable.as_deref(), Some("no"));
    }
}
