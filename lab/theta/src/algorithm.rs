//! Clock synchronisation by message receptions alone: the algorithm whose messages are measured, simulated and checked.
//!
//! D. Albeseder, "Evaluation of message delay correlation in distributed systems", Figure 1, with a repair. As
//! printed, a process that jumps by the catch-up rule sends only the round that it lands on. From f = 2 on, two-faced
//! processes can then stop the system forever: `ffclock-lab theta check --printed --n 7 --f 2` finds how. The repaired
//! form sends every round that was jumped over. docs/theta-run.md gives the argument why that suffices.
//!
//! [`Process`] is sans-IO: it owns no socket and reads no clock. The live runner, the simulator and the model checker
//! all drive this one machine: feed an input ([`Process::start`], [`Process::receive`], [`Process::wake`]), then drain
//! [`Process::poll_transmit`], then wait until [`Process::deadline`].

mod process;
mod quorum;
mod tally;
#[cfg(test)]
mod tests;

pub use process::{AlgorithmForm, Process, RoundSwitch, Switches};
pub use quorum::{Quorum, QuorumError};
