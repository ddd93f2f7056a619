//! Injected faults: how scenarios and the command line describe them, and a plan of who does what, and when. Simulated
//! and live runs share both.

mod plan;
mod spec;

pub use plan::{
    ClockFault, EARLY_ROUNDS, FaultPlan, FaultWindow, LinkEffect, LinkFault, LinkPassage, Misbehaviour, lies,
};
pub use spec::PlannedFault;
