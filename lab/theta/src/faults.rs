//! What goes wrong on purpose: one vocabulary, one reader, for simulated and live runs alike.

mod plan;
mod spec;

#[cfg(test)]
pub(crate) use plan::Window;
pub(crate) use plan::{ClockFault, EARLY_ROUNDS, LinkEffect, Misbehaviour, Plan, lies};
pub use spec::FaultSpec;
