//! Two clocks of the host, for deadlines and for comparison, and random numbers.

use crate::ffi;
use ffclock_counter::{ClockReading, HostClock};
use ffclock_units::{Moment, Mono, Span, Utc};
use std::io;

/// Now, on the scale of deadlines. A stand-in for libc without a monotonic clock gives the origin.
pub fn mono_now() -> Moment<Mono> {
    Moment::from_origin(HostClock::Monotonic.read().map_or(Span::ZERO, ClockReading::since_origin))
}

/// Now, as the system clock has it: a pivot for the eras of NTP and something to compare with, never an input of the
/// clock.
pub fn system_utc_now() -> Moment<Utc> {
    Moment::from_origin(HostClock::Realtime.read().map_or(Span::ZERO, ClockReading::since_origin))
}

/// 64 bits that cannot be guessed.
///
/// # Errors
/// When the kernel has no random numbers (before Linux 3.17, or early in the boot and interrupted).
pub fn random_nonce() -> io::Result<u64> {
    let mut bytes = [0; 8];
    ffi::fill_random(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_forward_and_nonces_differ() {
        let before = mono_now();
        assert!(mono_now() >= before);
        assert!(system_utc_now().whole_seconds() > 1_577_836_800);
        assert_ne!(random_nonce().unwrap(), random_nonce().unwrap());
    }
}
