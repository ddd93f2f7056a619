//! The algorithm live: one process for each rank, real UDP, no replies, every event logged as a raw counter value.
//!
//! A launcher (mpirun, srun, Kubernetes, or `ffclock-lab theta run`) starts the ranks and tells each its number. They meet at rank 0 over TCP, run over
//! their own UDP sockets, and hand their logs to rank 0, which writes them as one. The machine is [`Process`](crate::algorithm::Process).

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
mod store;

pub use coordinator::Coordinator;
pub use environment::{Place, place_from};
pub use gathered::{Gathered, LiveSummary};
pub use injector::Injected;
pub use level::Level;
pub use priority::raise_priority;
pub use rank::{RankOptions, run_rank};

use crate::algorithm::{Form, Quorum};
use crate::faults::{FaultSpec, Plan};
use crate::log::LogError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What all ranks must agree on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// n: how many ranks there are.
    pub processes: u32,
    /// f.
    pub tolerated: u32,
    /// The algorithm.
    pub form: Form,
    /// The last round that is sent.
    pub rounds: u64,
    /// D, in nanoseconds.
    pub delay_ns: u64,
    /// Whether messages are answered, so that round trips are measured beside the one-way delays.
    pub replies: Replies,
    /// What goes wrong on purpose, each in the words of [`FaultSpec`].
    pub faults: Vec<String>,
}

/// Whether messages are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replies {
    /// No: the algorithm knows no replies, and they would disturb it.
    #[default]
    None,
    /// Each at once, as the paper did to measure round trips.
    RoundTrips,
}

impl Settings {
    fn quorum(&self) -> Result<Quorum, LiveError> {
        Quorum::new(self.processes, self.tolerated).map_err(|error| LiveError::Settings(error.to_string()))
    }

    /// The faults made ready for so many hosts.
    ///
    /// # Errors
    /// [`LiveError::Settings`] names the fault and what is wrong with it.
    pub fn check_faults(&self, hosts: u32) -> Result<(), LiveError> {
        self.plan(hosts).map(drop)
    }

    fn plan(&self, hosts: u32) -> Result<Plan, LiveError> {
        let specs: Result<Vec<FaultSpec>, String> = self.faults.iter().map(|text| text.parse()).collect();
        specs.and_then(|specs| Plan::new(&specs, self.processes, hosts)).map_err(LiveError::Settings)
    }
}

/// Why a live run failed.
#[derive(Debug, Error)]
pub enum LiveError {
    /// They make no sense.
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
        /// How many came.
        came: usize,
        /// How many there should be.
        size: u32,
        /// Where they were awaited.
        address: String,
        /// How long.
        seconds: u64,
        /// Who did not.
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
