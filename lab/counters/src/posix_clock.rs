//! The clocks of POSIX by name and by the number that the kernel gives them.

/// A clock of POSIX that Linux has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PosixClock {
    /// The system clock.
    Realtime,
    /// The system clock at the last tick.
    RealtimeCoarse,
    /// Slewed with the system clock, never stepped.
    Monotonic,
    /// The same at the last tick.
    MonotonicCoarse,
    /// Neither slewed nor stepped.
    MonotonicRaw,
    /// As `Monotonic`, running through suspend.
    Boottime,
    /// The system clock without leap seconds.
    Tai,
}

impl PosixClock {
    /// Every one.
    pub const ALL: [PosixClock; 7] = [
        PosixClock::Realtime,
        PosixClock::RealtimeCoarse,
        PosixClock::Monotonic,
        PosixClock::MonotonicCoarse,
        PosixClock::MonotonicRaw,
        PosixClock::Boottime,
        PosixClock::Tai,
    ];

    pub(crate) const fn id(self) -> libc::clockid_t {
        match self {
            PosixClock::Realtime => libc::CLOCK_REALTIME,
            PosixClock::RealtimeCoarse => libc::CLOCK_REALTIME_COARSE,
            PosixClock::Monotonic => libc::CLOCK_MONOTONIC,
            PosixClock::MonotonicCoarse => libc::CLOCK_MONOTONIC_COARSE,
            PosixClock::MonotonicRaw => libc::CLOCK_MONOTONIC_RAW,
            PosixClock::Boottime => libc::CLOCK_BOOTTIME,
            PosixClock::Tai => libc::CLOCK_TAI,
        }
    }

    /// The name in tables and recordings.
    pub const fn name(self) -> &'static str {
        match self {
            PosixClock::Realtime => "realtime",
            PosixClock::RealtimeCoarse => "realtime-coarse",
            PosixClock::Monotonic => "monotonic",
            PosixClock::MonotonicCoarse => "monotonic-coarse",
            PosixClock::MonotonicRaw => "monotonic-raw",
            PosixClock::Boottime => "boottime",
            PosixClock::Tai => "tai",
        }
    }
}
