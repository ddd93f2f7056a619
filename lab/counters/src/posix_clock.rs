//! The clocks of POSIX by name and by the number that the kernel gives them.

use crate::named;

named! {
    /// A clock of POSIX that Linux has.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PosixClock {
        /// The system clock.
        Realtime = "realtime",
        /// The system clock at the last tick.
        RealtimeCoarse = "realtime-coarse",
        /// Slewed with the system clock, never stepped.
        Monotonic = "monotonic",
        /// The same at the last tick.
        MonotonicCoarse = "monotonic-coarse",
        /// Neither slewed nor stepped.
        MonotonicRaw = "monotonic-raw",
        /// As `Monotonic`, running through suspend.
        Boottime = "boottime",
        /// The system clock without leap seconds.
        Tai = "tai",
    }
}

impl PosixClock {
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
}
