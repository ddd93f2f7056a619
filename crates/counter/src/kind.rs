//! Which counter.

use crate::{clocks, cpu};
use core::fmt;
use core::str::FromStr;
use ffclock_units::Counter;

/// A counter that the clock can run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterKind {
    /// The counter of the CPU: the TSC on x86-64, the virtual counter (`cntvct_el0`) on aarch64.
    Tsc,
    /// `CLOCK_MONOTONIC_RAW` of the kernel in ticks of 1 ns.
    MonotonicRaw,
}

/// A text names no counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the counter must be tsc or monotonic-raw")]
pub struct UnknownCounter;

impl CounterKind {
    /// The name in configuration files and in the status.
    pub const fn name(self) -> &'static str {
        match self {
            CounterKind::Tsc => "tsc",
            CounterKind::MonotonicRaw => "monotonic-raw",
        }
    }
}

impl fmt::Display for CounterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CounterKind {
    type Err = UnknownCounter;
    fn from_str(text: &str) -> Result<Self, UnknownCounter> {
        [CounterKind::Tsc, CounterKind::MonotonicRaw].into_iter().find(|kind| kind.name() == text).ok_or(UnknownCounter)
    }
}

/// Reads the counter, after everything that the program loaded before has arrived: a page read first is older than the
/// reading.
#[inline]
pub fn read_ordered(kind: CounterKind) -> Counter {
    match kind {
        CounterKind::Tsc => cpu::read_ordered(),
        CounterKind::MonotonicRaw => clocks::raw_clock(),
    }
}

/// Reads the counter without waiting for what the program did before: the CPU may read it some tens of ns earlier or later than the
/// place in the program says. A third cheaper, for where that does not matter. (The kernel's clock is always ordered.)
#[inline]
pub fn read_unordered(kind: CounterKind) -> Counter {
    match kind {
        CounterKind::Tsc => cpu::read_unordered(),
        CounterKind::MonotonicRaw => clocks::raw_clock(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for kind in [CounterKind::Tsc, CounterKind::MonotonicRaw] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("hpet".parse::<CounterKind>(), Err(UnknownCounter));
    }

    #[test]
    fn readings_of_one_thread_never_go_back() {
        for kind in [CounterKind::Tsc, CounterKind::MonotonicRaw] {
            let mut last = read_ordered(kind);
            for _ in 0..100_000 {
                let next = read_ordered(kind);
                assert!(!last.is_after(next), "{kind}: {last:?} then {next:?}");
                last = next;
            }
        }
    }
}
