//! FreeBSD has a feed-forward clock in its kernel (`options FFCLOCK`): a cumulative counter that programs may read, and a clock that follows
//! whatever estimate it is given. This crate turns our estimates into the kernel's form ([`KernelEstimate`]) and speaks the three system
//! calls (`kernel`, on FreeBSD alone).
//!
//! The arithmetic is tested on any host against exact integers; the calls are compiled and linked for FreeBSD (`tools/freebsd`) but have not
//! been run by the authors. docs/freebsd.md names the faults of that kernel and what is done about each.
#![deny(missing_docs)]

mod estimate;
#[cfg(target_os = "freebsd")]
pub mod kernel;

pub use estimate::{KernelEstimate, KernelStatus, LeapBase, RawEstimate, UnspeakablePeriod};
