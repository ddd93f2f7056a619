//! What characterises a counter on any host, after "Counter Availability and Characteristics for Feed-forward Based
//! Synchronization" and sections III to V of "The Case for Feed-forward Clock Synchronization".
//!
//! One module for each instrument: [`inventory`] lists the counters of the host, [`latency`] measures how long a
//! reading takes, [`stability`] how steadily a counter runs, [`watching`] checks that it stays trustworthy, and
//! [`clocks`] makes a clock of each counter and compares it with a [`known_time`]. They share the [`ways`] to read a
//! counter ([`followed`] for counters that are read repeatedly), the [`campaign`] of quiet and stressed phases and the
//! [`recording`]. The last two serve the probe of packets as well.
//!
//! All of them are readers. Nothing here sets or steers a clock, or prints.
#![deny(missing_docs)]

pub mod beside;
pub mod campaign;
pub mod clocks;
mod ffi;
pub mod followed;
pub mod handover;
pub mod inventory;
pub mod known_time;
pub mod latency;
mod machine;
mod named;
pub mod posix_clock;
pub mod recording;
pub mod stability;
pub mod watching;
pub mod ways;
