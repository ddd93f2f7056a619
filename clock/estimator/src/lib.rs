//! The feed-forward algorithm: exchanges with a server go in, an estimate of time, rate and their bounds comes out.
//!
//! Everything here is a pure function of the exchanges and the configuration. Nothing reads a clock, prints, or flows back
//! into what is measured. The same trace gives the same bits on every machine: only `+ - * /`, comparisons, integer
//! arithmetic and, in the learned algorithm, the functions of `libm` are used on the way to a result. Memory is allocated when an estimator is made and never afterwards.
//!
//! An [`Estimator`] is the interface that every algorithm of this crate offers; [`Classic`] is the one of the RADclock papers,
//! with windows in time and a bound that is proven rather than guessed (`docs/algorithm/classic.md`); [`Learned`] puts a filter of both
//! directions beside it (`docs/algorithm/learned.md`). [`Chosen`] is whichever a configuration names.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod bank;
mod choice;
mod classic;
mod config;
mod frame;
mod history;
mod learned;
mod outcome;
mod smooth;

pub use choice::{Algorithm, Chosen, Configs};
pub use classic::Classic;
pub use config::{ClassicConfig, LearnedConfig};
pub use learned::Learned;
pub use outcome::{Agreement, Event, Events, Outcome, RateMemory, Rejection, Summary, Verdict};
pub use smooth::{Smoothed, SmoothedTime, Smoother};

use ffclock_units::{Estimate, Exchange};

/// An algorithm that turns exchanges into an estimate.
pub trait Estimator {
    /// Takes one exchange, in the order in which the replies arrived, and says what became of it.
    fn update(&mut self, exchange: &Exchange) -> Outcome;

    /// The present estimate; `None` until an exchange was accepted.
    fn estimate(&self) -> Option<Estimate>;

    /// Figures for people and metrics.
    fn summary(&self) -> Summary;

    /// What is worth keeping across a restart of the program; `None` until the rate was measured.
    fn memory(&self) -> Option<RateMemory>;

    /// Forgets everything but the rate, which becomes a remembered one: the counter's epoch ended, or the server is another.
    fn restart(&mut self);
}
