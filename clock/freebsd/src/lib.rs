//! FreeBSD has a feed-forward clock in its kernel (`options FFCLOCK`): a cumulative counter that programs may read, and
//! a clock that follows whatever estimate it is given. This crate turns our estimates into the kernel's form
//! ([`KernelEstimate`]) and speaks the three system calls (`kernel`, on FreeBSD alone).
//!
//! ffclockd drives that clock where its configuration says so. docs/freebsd.md says what of it has run on FreeBSD, and
//! names the faults of that kernel and what is done about each.
#![deny(missing_docs)]

mod estimate;
#[cfg(target_os = "freebsd")]
pub mod kernel;
mod steady;

pub use estimate::{KernelEstimate, KernelStatus, LeapBase, RawEstimate, UnrepresentablePeriod};
pub use steady::steady;
