//! The fast path of the NTP server: plain requests are answered in the driver, by an eBPF program at XDP
//! (`bpf/responder.bpf.c`). Everything else goes on to the server's sockets.
//!
//! A [`FastPath`] holds the program at a device. Its owner gives it what to serve: the addresses, the [`Rules`], and
//! several times a second a [`Line`], the time over the kernel's boot-time clock, which a [`LineMaker`] makes from
//! pairs (counter, boot-time clock) and from the server's own answer. A line that is not renewed ends by itself: then
//! the sockets answer. So do they where the program cannot run at all, and [`FastPath::open`] says why.
//!
//! The program goes with the process that holds it, whatever happens to that, and never takes the place of another
//! program. The link needs rights when it is made, and none after that.
//!
//! Tested: that a line contains the truth, `line/tests.rs`; every field of replies and every packet that is passed on,
//! `bpf/tests.rs`; devices, namespaces and the server as a whole, the tests of `ffclock-serve`.
#![deny(missing_docs)]

#[cfg(feature = "ebpf")]
mod bpf;
#[cfg(feature = "ebpf")]
pub use bpf::FastPath;

#[cfg(not(feature = "ebpf"))]
mod absent;
#[cfg(not(feature = "ebpf"))]
pub use absent::NoFastPath as FastPath;

mod counts;
mod line;
mod rules;

pub use counts::{FastCounts, FastOutcome};
pub use line::{BootPair, Line, LineMaker, NoLine};
pub use rules::{NetworkRule, RequestLimit, Rules, Verdict};

/// Where the program is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastPathPlace {
    /// The device, of the network namespace of the calling thread.
    pub device: String,
    /// In the driver, or before the network stack.
    pub hook: XdpHook,
    /// The UDP port that is served.
    pub port: u16,
    /// How many addresses the limit remembers; the least recently seen gives way.
    pub addresses_remembered: u32,
}

/// Where packets meet the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum XdpHook {
    /// In the driver if it can, else generic.
    #[default]
    Auto,
    /// In the driver, before the kernel makes a packet of its own kind of the frame.
    Native,
    /// After that, on any device: slower.
    Generic,
}

/// Why there is no fast path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FastPathError {
    /// The program was built without it.
    #[error("this program was built without it (cargo feature `xdp`, which takes clang)")]
    NotBuilt,
    /// There is no device of this name.
    #[error("no device {0}")]
    NoDevice(String),
    /// Another program is at the device; its number as `ip link` shows it.
    #[error("another XDP program is at {device} (id {program}); it is left alone")]
    Occupied {
        /// The device.
        device: String,
        /// The number of that program.
        program: u32,
    },
    /// The kernel or the driver refused.
    #[error("{0}")]
    Refused(String),
}
