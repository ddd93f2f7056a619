//! FreeBSD has a feed-forward clock in its kernel (`options FFCLOCK`): a cumulative counter that programs may read, and
//! a clock that follows whatever estimate it is given. This crate turns our estimates into the kernel's form
//! ([`KernelEstimate`]) and speaks the three system calls (`kernel`, on FreeBSD alone).
//!
//! ffclockd drives that clock where its configuration says so. docs/freebsd.md names the faults of that kernel and what
//! is done about each.
//!
//! **Not run there.** None of what this project does on FreeBSD has been run on a FreeBSD machine by its authors: not
//! these calls, not the daemon, not the readings of `ffclock-counter` and the sockets of `ffclock-sys`. The arithmetic
//! is tested on any host against exact integers, the driving with a stand-in for that kernel, and the daemon is
//! compiled and linked for FreeBSD (`tools/freebsd`).
#![deny(missing_docs)]

mod estimate;
#[cfg(target_os = "freebsd")]
pub mod kernel;
mod steady;

pub use estimate::{KernelEstimate, KernelStatus, LeapBase, RawEstimate, UnspeakablePeriod};
pub use steady::steady;
