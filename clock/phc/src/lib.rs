//! What the clock of a network card shows, in terms of the raw counter.
//!
//! A network card stamps packets by a clock of its own (a PTP hardware clock, PHC). That clock is never set or steered
//! here: it counts as one more free-running counter, and [`PhcLine`] estimates its line over the raw counter from
//! readings of both. A stamp of the card becomes a reading of the counter by that line ([`PhcLine::place`]), with a
//! width that holds what the line may be wrong by. Another program may step or steer the clock meanwhile. It is noticed
//! ([`PhcChange`]), and what was stamped before a step is not placed any more.
//!
//! Nothing here reads a clock. That the widths hold, and that changes are noticed, is shown in `tests/simulated.rs`.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod filter;
mod line;

pub use line::{PhcChange, PhcLine, PhcReading, Unplaced};
