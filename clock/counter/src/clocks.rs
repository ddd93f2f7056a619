//! The kernel's clocks, through libc's own `clock_gettime`. One of the files that may hold unsafe code.

use ffclock_units::{Counter, Span};

/// Whether the clock that [`HostClock::MonotonicRaw`] reads is slewed together with the system clock.
pub(crate) const RAW_IS_SLEWED: bool = cfg!(target_os = "freebsd");

#[cfg(target_os = "linux")]
const RAW: libc::clockid_t = libc::CLOCK_MONOTONIC_RAW;
#[cfg(target_os = "freebsd")]
const RAW: libc::clockid_t = libc::CLOCK_MONOTONIC;
#[cfg(target_os = "linux")]
const BOOTTIME: Option<libc::clockid_t> = Some(libc::CLOCK_BOOTTIME);
/// FreeBSD has this name for `CLOCK_UPTIME`, which does not show a suspend.
#[cfg(target_os = "freebsd")]
const BOOTTIME: Option<libc::clockid_t> = None;

/// A clock of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostClock {
    /// The system clock: UTC as well as it is disciplined; may be stepped and slewed at any time.
    Realtime,
    /// Never stepped, slewed together with the system clock, stands still in suspend.
    Monotonic,
    /// Never stepped, never slewed, stands still in suspend. FreeBSD has none; `CLOCK_MONOTONIC`, which is slewed,
    /// stands in.
    MonotonicRaw,
    /// As [`Monotonic`](HostClock::Monotonic), but runs through suspend. FreeBSD has none.
    Boottime,
}

/// What a clock showed, kept as the kernel gave it so that reading costs no arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    seconds: i64,
    nanos: i64,
}

impl ClockReading {
    /// The time since the origin of the clock, truncated to nanoseconds by the kernel.
    pub fn since_origin(self) -> Span {
        Span::from_secs(self.seconds) + Span::from_nanos(self.nanos as i128)
    }

    #[inline]
    fn as_nanos(self) -> u64 {
        (self.seconds as u64).wrapping_mul(1_000_000_000).wrapping_add(self.nanos as u64)
    }
}

impl HostClock {
    const fn id(self) -> Option<libc::clockid_t> {
        match self {
            HostClock::Realtime => Some(libc::CLOCK_REALTIME),
            HostClock::Monotonic => Some(libc::CLOCK_MONOTONIC),
            HostClock::MonotonicRaw => Some(RAW),
            HostClock::Boottime => BOOTTIME,
        }
    }

    /// Reads the clock; `None` where the platform (or what stands in for it) does not have it.
    #[inline]
    pub fn read(self) -> Option<ClockReading> {
        let id = self.id()?;
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is a timespec that outlives the call.
        let result = unsafe { libc::clock_gettime(id, &raw mut now) };
        (result == 0).then_some(ClockReading { seconds: now.tv_sec, nanos: now.tv_nsec })
    }
}

/// [`HostClock::MonotonicRaw`] as a counter of nanoseconds. Every Linux has this clock; should a stand-in lack it, the
/// counter stands at 0, which [`Continuity`](crate::Continuity) reports as stalled.
#[inline]
pub fn raw_clock() -> Counter {
    Counter::from_raw(HostClock::MonotonicRaw.read().map_or(0, ClockReading::as_nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_nanoseconds_add_up() {
        let reading = ClockReading { seconds: 3, nanos: 250_000_000 };
        assert_eq!(reading.since_origin(), Span::from_millis(3250));
        assert_eq!(reading.as_nanos(), 3_250_000_000);
    }

    #[test]
    fn every_clock_of_linux_is_there() {
        for clock in [HostClock::Realtime, HostClock::Monotonic, HostClock::MonotonicRaw, HostClock::Boottime] {
            let first = clock.read().unwrap().since_origin();
            assert!(first > Span::ZERO, "{clock:?}");
        }
        let year_2020 = Span::from_secs(1_577_836_800);
        assert!(HostClock::Realtime.read().unwrap().since_origin() > year_2020);
    }
}
