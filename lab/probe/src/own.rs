//! The host's delays of packets that a program sends for its own purposes, such as those of the daemon.
//!
//! Test packets do not see what a clock's own packets see: caches that a packet in a second finds cold, another way
//! through the program, a processor asleep. So the exchanges of the daemon's [`recording`] are joined with the moments
//! at which their packets passed the [`boundary`] to the driver, and the [`delays`] between both are judged.

pub mod boundary;
pub mod delays;
pub mod recording;
