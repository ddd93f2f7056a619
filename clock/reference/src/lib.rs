//! Time from a clock at this host in place of a server: pulses, a hardware clock, and samples of other programs.
//!
//! Nothing is asked and nothing travels, so there is no round trip to learn from. What a [`Sample`] says is: at this
//! range of the counter the true time was this, give or take what the operator states. Two of them become an exchange
//! ([`SamplePairing`]): the first is the way there, whose stamp is the beginning of its range, and the second the way
//! back, whose stamp is the end. The claim is the stated error; the guard of the estimator then proves from it just
//! what was stated, and no more.
//!
//! [`PulseTrain`] judges pulses, [`ShmWords`] and [`SockSample`] read what other programs write, and [`HardwareTime`]
//! what a hardware clock shows. Nothing here reads a clock, and every input is taken as it comes: see
//! the fuzz target `reference_input`.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod hardware_time;
mod pairing;
mod pulses;
mod sample;
mod shm;
mod sock;

pub use hardware_time::{HardwareScale, HardwareTime};
pub use pairing::SamplePairing;
pub use pulses::{Judged, NumberingRefused, Pulse, PulseEvent, PulseTrain, number};
pub use sample::{ForeignSample, Sample};
pub use shm::{SHM_WORDS, ShmRefused, ShmWords};
pub use sock::{SOCK_BYTES, SockRefused, SockSample};
