//! The simulated laboratory: oscillators, counters, paths, hosts and servers in virtual time, with the truth known.
//!
//! A [`Scenario`] is read from a short file, [`Run::execute`] simulates it. The conversation and the estimate are
//! made by the real `ffclock_source` and `ffclock_estimator`, fed as the daemon feeds them; feedback clocks of the
//! usual kinds see the same packets beside them. A run depends on the scenario and the seed only: the same seed gives
//! the same bits on every machine. `docs/sim.md` explains the models and the files.
//!
//! Nothing here reads a clock or opens a socket.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod account;
mod agenda;
mod belief;
mod check;
mod clock;
mod counter;
mod feedback;
pub mod goals;
mod host;
pub mod lying;
mod noise;
mod oracle;
mod oscillator;
mod past;
mod path;
mod queue;
mod random;
mod result;
pub mod scenario;
mod server;
mod several;
mod signals;
mod world;

pub use check::CheckResult;
pub use clock::{FeedForward, NAMES as CLOCKS, Read, ReadingClaims, Timekeeper, names_in as clocks_in};
pub use counter::{CounterKind, SimulatedCounter};
pub use oracle::ORACLES;
pub use oscillator::Oscillator;
pub use path::Path;
pub use random::Random;
pub use result::{BeliefResult, ClockResult, OracleRatio, RunResult, ServerBelief, ServerResult, WindowResult};
pub use scenario::{Scenario, ScenarioError};
pub use several::{Credence, ENSEMBLES, MultiServerClock, ServerChange};
pub use world::{Cast, RowSink, Run, SampleSink, ShownReading, Sinks};
