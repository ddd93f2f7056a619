//! What the raw counter and the system clock showed at the same time.

use crate::CancelOnSetTimer;
use ffclock_counter::{ClockReading, CounterId, HostClock, read_bracketed, read_ordered};
use ffclock_units::{Counter, Moment, Span, Ticks, Utc};

/// The system clock showed `system` at some moment within `counter` +- `width` / 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The middle of the range.
    pub counter: Counter,
    /// The whole width of the range.
    pub width: Ticks,
    /// The system clock, truncated to nanoseconds.
    pub system: Moment<Utc>,
}

/// Whether the system clock was set since the previous query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// It was not set, except perhaps in the last microseconds.
    Quiet,
    /// It was set.
    Set,
    /// Unknown: the host has no such timer.
    Blind,
}

/// Where pairs come from: the host, or a test whose system clock is stepped at will.
pub trait PairReader {
    /// Reads a pair.
    fn read_pair(&mut self) -> Pair;
    /// Reads the counter alone.
    fn read_counter(&mut self) -> Counter;
    /// Whether the system clock was set since the last call.
    fn watch(&mut self) -> Watch;
}

/// The pairs of this host.
#[derive(Debug)]
pub struct SystemPairs {
    kind: CounterId,
    timer: Option<CancelOnSetTimer>,
    narrowest: Ticks,
}

/// Brackets tried for one pair.
const TRIES: usize = 5;

impl SystemPairs {
    /// Reads pairs of this counter. Where the kernel has no timer that reports steps, the answer is always
    /// [`Watch::Blind`].
    pub fn new(kind: CounterId) -> Self {
        SystemPairs { kind, timer: CancelOnSetTimer::new().ok(), narrowest: Ticks::from_raw(i64::MAX) }
    }

    /// The timer that notices steps of the system clock, to wait for.
    pub fn timer(&self) -> Option<&CancelOnSetTimer> {
        self.timer.as_ref()
    }

    /// A bracket is good enough when it is within an eighth of the narrowest ever seen here.
    fn is_good(&self, width: Ticks) -> bool {
        width.raw() <= self.narrowest.raw().saturating_add(self.narrowest.raw() / 8)
    }
}

impl PairReader for SystemPairs {
    fn read_pair(&mut self) -> Pair {
        let kind = self.kind;
        let read = || read_bracketed(kind, || HostClock::Realtime.read());
        let mut best = read();
        for _ in 1..TRIES {
            if self.is_good(best.width()) {
                break;
            }
            let next = read();
            if next.width() < best.width() {
                best = next;
            }
        }
        self.narrowest = self.narrowest.min(best.width());
        let shown = best.value.map_or(Span::ZERO, ClockReading::since_origin);
        Pair { counter: best.middle(), width: best.width(), system: Moment::from_origin(shown) }
    }

    fn read_counter(&mut self) -> Counter {
        read_ordered(self.kind)
    }

    fn watch(&mut self) -> Watch {
        match self.timer.as_mut().map(CancelOnSetTimer::was_set) {
            Some(Ok(true)) => Watch::Set,
            Some(Ok(false)) => Watch::Quiet,
            Some(Err(_)) | None => Watch::Blind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_follow_each_other_and_are_narrow() {
        for kind in [CounterId::CPU, CounterId::MonotonicRaw] {
            let mut reader = SystemPairs::new(kind);
            let pairs: Vec<Pair> = (0..50).map(|_| reader.read_pair()).collect();
            assert!(pairs.is_sorted_by_key(|pair| pair.system));
            assert!(pairs.windows(2).all(|two| two[1].counter.is_after(two[0].counter)));
            assert!(pairs.iter().all(|pair| pair.width >= Ticks::ZERO));
        }
    }
}
