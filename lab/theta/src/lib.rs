//! Message delay correlation: the Theta-Model, measured, simulated and checked.
//!
//! A run of the clock synchronisation algorithm leaves a log ([`record`], [`log`]) of what happened at each process,
//! as raw counter values. The analysis puts the hosts' clocks under it and asks how the largest delay in transit
//! relates to the delays that make rounds switch. The definitions are in `docs/theta.md`, the format of a log in
//! `docs/theta-log.md`.
//!
//! This crate prints nothing and reads no clock. Runs with real processes and packets are `ffclock-theta-live`.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod abc;
pub mod algorithm;
pub mod analysis;
pub mod certified;
pub mod check;
pub mod correlation;
pub mod coverage;
pub mod faults;
pub mod import;
mod length;
pub mod log;
pub mod record;
pub mod round_trip;
pub mod simulate;
pub mod watch;
pub mod why;
