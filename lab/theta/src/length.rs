//! Lengths of time from scenarios and the command line, in picoseconds.

use ffclock_sim::scenario::Length;

/// No single length is longer: 1000 s.
pub(crate) const LENGTH_MAX_PS: u64 = 1_000_000_000_000_000;

/// A length in picoseconds; `None` unless it lies between 0 s and 1000 s.
pub(crate) fn picoseconds(length: Length) -> Option<u64> {
    let ps = length.seconds() * 1e12;
    (0.0..=LENGTH_MAX_PS as f64).contains(&ps).then_some(ps.round() as u64)
}
