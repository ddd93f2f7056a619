//! ffclock-steer: the kernel's clock follows the page.
//!
//! It reads the page that ffclockd publishes, like any program, and steers `CLOCK_REALTIME` by adjtimex(2), so that
//! programs which know the kernel's clock alone have the page's time and its bound. It is opt-in, a process of its own,
//! and the only one of the project that needs the right to set a clock. Nothing flows back: ffclockd does not know
//! whether it runs.
//!
//! One look ([`sight`]) reads the page and the kernel's clocks at the same reading of the counter. The [`law`] turns it
//! into a frequency and error figures, without any call to the system. The [`steerer`] carries them out, and notices
//! when another program steers as well ([`contention`]). What happens around a leap second is in [`leap`].
//! docs/steer.md is for operators.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg(target_os = "linux")]

pub mod arguments;
pub mod base;
pub mod config;
pub mod contention;
pub mod law;
pub mod leap;
#[cfg(test)]
mod model;
pub mod options;
mod run;
pub mod sight;
pub mod steerer;

pub use run::{End, Manner, run};
