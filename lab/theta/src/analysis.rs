//! The exact analysis of a log: tau+, tau-, tau_r-, Theta, Omega, in one pass and bounded memory.
//!
//! A [`LogPass`] takes the events of all streams, a batch at a time. It joins sends and perceptions in a window of
//! rounds by (sender, round, receiver), puts sends and switches in the order of time, and follows what is in transit.
//! What it counts is a [`PassTally`]; tallies of shards of time add up to exactly the tally of a single pass.
//! Definitions, options and what is proven are in `docs/theta.md`; a brute-force oracle in `tests/oracle.rs` holds the
//! pass to them.

mod clock;
mod driver;
mod options;
mod pass;
mod pending;
mod ratio;
mod recent;
mod report;
mod shard;
mod statistics;
mod tally;
mod transit;
mod window;

pub use clock::{Clocks, SampledClock};
pub use driver::{ReadWatcher, analyse, trimmed};
pub use options::{DelayMode, Options, PairMode, SwitchStamping, ThetaMode, TimeRange};
pub use pass::LogPass;
pub use ratio::Ratio;
pub use recent::RecentFigures;
pub use report::{ConformanceReport, Histograms, Omega, ThetaReport};
pub use shard::{LogIndex, Shard, analyse_shard};
pub use statistics::{BootstrapInterval, TailFit, bootstrap, fit_tail};
pub use tally::{Conformance, DelayHistograms, EventCounts, PassTally, Peak, SwitchPair, SwitchTally, Unsent};
pub use transit::{Longest, Shortest};

use crate::log::LogError;
use ffclock_units::Span;

/// Why a log cannot be analysed.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// It cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A host has no usable clock.
    #[error("host {host} {fault}: every host needs samples in clocks.parquet, in the order of its counter")]
    Clock {
        /// Its name.
        host: String,
        /// What is wrong with it.
        fault: String,
    },
    /// An impossible event.
    #[error("event {row} of the batch: {fault}")]
    Event {
        /// Counting from 1.
        row: usize,
        /// What is wrong with it.
        fault: String,
    },
    /// Trimming leaves nothing of the run.
    #[error("the run lasts {lasts}: nothing is left of it without {trim} at both ends")]
    Trimmed {
        /// From the first event to the last.
        lasts: Span,
        /// The time trimmed at each end.
        trim: Span,
    },
}
