//! One look at the clock: what the page says, how it compares with the system clock, and what the daemon reports.

use crate::Global;
use crate::failure::Failure;
use crate::page::{self, PublishedTime};
use ffclock::Clock;
use ffclock_control::protocol::{SourceReport, StatusReport};
use ffclock_units::Span;
use serde::Serialize;

/// The narrowest of this many pairs is used: the others were interrupted longer.
const PAIRS: usize = 5;

/// One look.
pub(super) struct Look {
    /// The published clock, or why it cannot be read.
    pub(super) published: Result<PublishedTime, Failure>,
    /// The published clock - the system clock.
    pub(super) offset: Option<Span>,
    /// The daemon's own report, or why there is none.
    pub(super) daemon: Result<StatusReport, Failure>,
}

/// A look as `--json` shows it.
#[derive(Serialize)]
pub(super) struct LookReport<'l> {
    reading: Option<page::TimeReport>,
    /// The published clock - the system clock [s].
    offset_s: Option<f64>,
    daemon: Option<&'l StatusReport>,
    errors: Vec<&'l str>,
}

impl Look {
    /// Looks. The page is opened again each time: a restarted daemon may have put another file in its place.
    pub(super) fn take(global: &Global) -> Self {
        let daemon = crate::control::status(global);
        match page::open(global) {
            Ok(clock) => Look { published: page::read(&clock), offset: offset(&clock), daemon },
            Err(failure) => Look { published: Err(failure), offset: None, daemon },
        }
    }

    /// Whether there is nothing at all to see.
    pub(super) fn is_blind(&self) -> bool {
        self.published.is_err() && self.daemon.is_err()
    }

    /// The selected server.
    pub(super) fn followed(&self) -> Option<&SourceReport> {
        self.daemon.as_ref().ok()?.sources.iter().find(|source| source.selected)
    }

    /// Why there is no reading, and why there is no report.
    pub(super) fn explain(&self) -> String {
        self.errors().join("; ")
    }

    /// The look as `--json` shows it.
    pub(super) fn report(&self) -> LookReport<'_> {
        LookReport {
            reading: self.published.as_ref().ok().map(page::TimeReport::of),
            offset_s: self.offset.map(Span::as_seconds),
            daemon: self.daemon.as_ref().ok(),
            errors: self.errors(),
        }
    }

    fn errors(&self) -> Vec<&str> {
        let page = self.published.as_ref().err();
        let daemon = self.daemon.as_ref().err();
        page.into_iter().chain(daemon).map(|failure| failure.message.as_str()).collect()
    }
}

/// The published clock - the system clock, at the middle of the narrowest pair of stamps around a reading of the
/// latter.
fn offset(clock: &Clock) -> Option<Span> {
    let pairs = (0..PAIRS).map(|_| (clock.stamp(), ffclock_sys::system_utc_now(), clock.stamp()));
    let (first, system, second) = pairs.min_by_key(|(first, _, second)| second.counter() - first.counter())?;
    clock.at(first.midpoint(second)).ok().map(|reading| reading.time - system)
}
