//! The instruments: what characterises a counter on any host, after "Counter Availability and Characteristics for Feed-forward Based
//! Synchronization" and sections III to V of "The Case for Feed-forward Clock Synchronization".
//!
//! One module for each instrument: [`inventory`] says what there is, [`latency`] how long reading takes, [`stability`] how steadily it
//! runs, [`watching`] whether it stays trustworthy. They share the [`ways`] to read a counter (and [`followed`] for those read again and again), the [`campaign`] of quiet and stressed
//! phases, and the [`recording`].
//!
//! All of them are readers. Nothing here sets or steers a clock, or prints.
#![deny(missing_docs)]

pub mod campaign;
mod ffi;
pub mod followed;
pub mod handover;
pub mod inventory;
pub mod latency;
pub mod probe;
pub mod recording;
pub mod spread;
pub mod stability;
pub mod watching;
pub mod ways;
