//! The algorithm live: one process for each rank, real UDP, no replies, every event logged as a raw counter value.
//!
//! A launcher (mpirun, srun, Kubernetes, or `ffclock-lab theta run`) starts the ranks and gives each its number. They
//! meet at rank 0 over TCP, run over their own UDP sockets, and hand their logs to rank 0, which writes them as one.
//! The machine is [`Process`](ffclock_theta::algorithm::Process).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod alarm;
mod clocks;
mod control;
mod coordinator;
mod environment;
mod gathered;
mod injector;
mod level;
mod packet;
mod page_clock;
mod post;
mod priority;
mod rank;
mod stamping;
mod store;

pub use coordinator::{Coordinator, Deadlines};
pub use environment::{RankPlace, place_from};
pub use gathered::{Gathered, LiveSummary};
pub use injector::Injected;
pub use level::LoadLevel;
pub use packet::{CapturedMessage, captured_message};
pub use priority::raise_priority;
pub use rank::{RankOptions, run_rank};

use ffclock_theta::algorithm::{AlgorithmForm, Quorum};
use ffclock_theta::faults::{FaultPlan, PlannedFault};
use ffclock_theta::log::LogError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The settings that all ranks must agree on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The number of ranks, n.
    pub processes: u32,
    /// The number of processes that may be Byzantine, f.
    pub tolerated: u32,
    /// The form of the algorithm.
    pub form: AlgorithmForm,
    /// The last round that is sent.
    pub rounds: u64,
    /// The delay before an advance, D, in nanoseconds.
    pub delay_ns: u64,
    /// Whether messages are answered, so that round trips are measured beside the one-way delays.
    pub replies: Replies,
    /// Injected faults, each in the text form of [`PlannedFault`].
    pub faults: Vec<String>,
}

/// Whether messages are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replies {
    /// They are not: the algorithm has no replies, and replies would disturb it.
    #[default]
    None,
    /// Each is, at once, as in the paper, to measure round trips.
    RoundTrips,
}

impl Settings {
    fn quorum(&self) -> Result<Quorum, LiveError> {
        Quorum::new(self.processes, self.tolerated).map_err(|error| LiveError::Settings(error.to_string()))
    }

    /// Checks the faults for a run on `hosts` hosts.
    ///
    /// # Errors
    /// [`LiveError::Settings`] names the fault and what is wrong with it.
    pub fn check_faults(&self, hosts: u32) -> Result<(), LiveError> {
        self.plan(hosts).map(drop)
    }

    fn plan(&self, hosts: u32) -> Result<FaultPlan, LiveError> {
        let specs: Result<Vec<PlannedFault>, String> = self.faults.iter().map(|text| text.parse()).collect();
        specs.and_then(|specs| FaultPlan::new(&specs, self.processes, hosts)).map_err(LiveError::Settings)
    }
}

/// Why a live run failed.
#[derive(Debug, Error)]
pub enum LiveError {
    /// The settings are impossible.
    #[error("{0}")]
    Settings(String),
    /// The network refuses.
    #[error("{what}: {source}")]
    Network {
        /// What was tried.
        what: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The other side does not follow the protocol.
    #[error("{0}")]
    Protocol(String),
    /// Not all ranks came.
    #[error("only {came} of {size} ranks came to {address} within {seconds} s; missing: {missing:?}")]
    Missing {
        /// The number of ranks that came.
        came: usize,
        /// The number of ranks there should be.
        size: u32,
        /// Where they were awaited.
        address: String,
        /// The time they were awaited, in seconds.
        seconds: u64,
        /// The ranks that did not come.
        missing: Vec<u32>,
    },
    /// The log could not be written.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl LiveError {
    fn network(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| LiveError::Network { what, source }
    }
}
