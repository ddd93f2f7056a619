//! Xi*, the clock-free twin of Omega: the smallest parameter of the ABC model that a trace satisfies.
//!
//! The ABC model (Robinson and Schmid, "The Asynchronous Bounded-Cycle Model") bounds no time at all: it bounds, over
//! the relevant cycles of the space-time graph, how many messages of a fast chain fit under the messages of a slow
//! one. That needs each process's own order of events and nothing else, so no error of any clock can touch it.
//!
//! Nodes are steps: a perception with the broadcasts that it causes. A relevant cycle follows messages forward, and
//! messages and local edges backward; its ratio is backward over forward messages. [`xi`] finds the largest ratio
//! exactly, with a cycle that has it.

mod cycle;
mod graph;

pub use cycle::{CycleWitness, Hop, xi};
pub use graph::{CycleStep, GraphError, SpaceTime};
