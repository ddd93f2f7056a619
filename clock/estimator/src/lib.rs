//! The feed-forward algorithm: exchanges with a server go in, an estimate of time, rate and their bounds comes out.
//!
//! Everything here is a pure function of the exchanges and the configuration. Nothing reads a clock, prints, or flows
//! back into what is measured. The same trace gives the same bits on every machine: only `+ - * /`, comparisons,
//! integer arithmetic and the functions of `libm` are used on the way to a result. Memory is allocated when an
//! estimator is made; afterwards an exchange allocates only where a clock has to begin again. A new list of servers, a
//! vote and a [`Smoother`], which keeps its recording, allocate too.
//!
//! An [`Estimator`] is a guard with filters behind it; an exchange enters by `Guarded::take` (`estimators/guarded.rs`).
//! The guard (`guard/`) lets exchanges in and proves a bound, and reads no filter's state; an exchange that the classic
//! filter suspects is given to it as a contradiction. The classic filter (`classic/`) is the one of the RADclock papers
//! with windows in time (`docs/algorithm/classic.md`); the learned filter (`learned/`, over the multiple-model bank in
//! `bank/`) weighs both directions (`docs/algorithm/learned.md`). [`Classic`] publishes the first, [`Learned`] the
//! second with the first as a second opinion, and [`Chosen`] is the one that a configuration names.
//!
//! Several servers, each with its own estimator, vote ([`vote`], `quorum/`), and make one clock ([`Ensemble`],
//! `docs/algorithm/ensemble.md`). [`Smoother`] works a recording out in retrospect (`docs/algorithm/smooth.md`).
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod bank;
mod choice;
mod classic;
mod config;
mod estimators;
mod frame;
mod guard;
mod history;
mod interval;
mod learned;
mod outcome;
mod quorum;
mod smooth;
mod tuning;

pub use choice::{Algorithm, Chosen, Configs};
pub use config::{ClassicConfig, LearnedConfig};
pub use estimators::{Classic, Ensemble, EnsembleMember, Estimator, Learned, MOST_SERVERS, ProvenInterval};
pub use outcome::{Agreement, Event, Events, Outcome, Rejection, Summary, Verdict};
pub use quorum::{
    Belief, ServerClock, Unheard, VoteResult, VotedBounds, Voter, VotingRules, beliefs, growth_beside, interval_growth,
    select, vote, without_majority,
};
pub use smooth::{Smoothed, SmoothedTime, Smoother};
