//! FreeBSD has a feed-forward clock in its kernel (`options FFCLOCK`): a cumulative counter that programs may read, and a clock that follows
//! whatever estimate it is given. This crate turns our estimates into the kernel's form ([`KernelEstimate`]) and speaks the three system
//! calls (`kernel`, on FreeBSD alone).
//!
//! ffclockd drives that clock where its configuration says so. The arithmetic is tested on any host against exact integers; the daemon is compiled
//! and linked for FreeBSD (`tools/freebsd`), but it and the calls have not been run there by the authors. docs/freebsd.md names the faults of that kernel and what is done about each.
#![deny(missing_docs)]

mod estimate;
#[cfg(target_os = "freebsd")]
pub mod kernel;
mod steady;

pub use estimate::{KernelEstimate, KernelStatus, LeapBase, RawEstimate, UnspeakablePeriod};
pub use steady::steady;
