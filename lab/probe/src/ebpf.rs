//! Stamps of test packets by eBPF programs: the second way, independent of the kernel's tracing.
//!
//! The programs (`stamps.bpf.c`) sit at the same tracepoints as the tracing, and at places where it sees nothing: tc,
//! XDP and the socket's queue. They read `CLOCK_MONOTONIC`, which [`PairLine`](super::pairs::PairLine) turns into
//! readings of the counter, and know a packet by the identity in its payload.
//!
//! Another program (`burn.bpf.c`) takes no stamps: it loads processors in the context of soft interrupts, which no
//! process of user space can do for as long as is asked.
//!
//! A program built without the feature `ebpf` has none of it, and says so where it is asked. So does a kernel that does
//! not allow it.

#[cfg(feature = "ebpf")]
mod attach;
#[cfg(feature = "ebpf")]
mod burn;
#[cfg(feature = "ebpf")]
mod permission;
#[cfg(feature = "ebpf")]
mod place;
#[cfg(feature = "ebpf")]
mod skeleton;
#[cfg(feature = "ebpf")]
mod stamps;
#[cfg(feature = "ebpf")]
pub use burn::SoftirqLoad;
#[cfg(feature = "ebpf")]
pub use stamps::EbpfStamps;

#[cfg(not(feature = "ebpf"))]
mod absent;
#[cfg(not(feature = "ebpf"))]
pub use absent::{NoSoftirqLoad as SoftirqLoad, NoStamps as EbpfStamps};

use crate::payload::Lengths;
use crate::plan::QueueHook;
use crate::site::{Site, Sites};
use core::time::Duration;
use ffclock_units::{Moment, Mono};

/// Which packets to stamp, and where.
#[derive(Clone, Copy, Debug)]
pub struct ProgramScope<'a> {
    /// The device that the packets pass, of the network namespace of the calling thread.
    pub device: &'a str,
    /// The run that the packets belong to.
    pub run: u64,
    /// The port of the echo server.
    pub server_port: u16,
    /// The port of the socket that sends.
    pub own_port: u16,
    /// The lengths of their payloads.
    pub lengths: Lengths,
    /// Where to stamp them.
    pub sites: Sites,
    /// How to attach to the function that fills the socket's queue.
    pub queue_hook: QueueHook,
    /// Room for passages that were not yet read: a power of two, at least a page.
    pub buffer_bytes: u32,
}

/// Room for a second of passages at every site at 10,000 packets/s.
pub const BUFFER_BYTES: u32 = 4 << 20;

/// Programs that stamp, and the sites that were asked for but are missing, each with the reason.
pub type Opened = (EbpfStamps, Vec<String>);

/// A packet passed a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SitePassage {
    /// The site that it passed.
    pub site: Site,
    /// The time at which it passed.
    pub stamped: Moment<Mono>,
    /// The identity of the packet.
    pub known: Known,
}

/// What identifies a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Its number.
    Sequence(u64),
    /// Its number modulo [`LENGTHS`](crate::payload::LENGTHS): the payload was not at hand, only its length.
    Code(u64),
}

/// One slice of the course of a load in the context of soft interrupts, with one callback on each processor: 2003 of
/// them in 2 s. Most kernels count time by looking each 1, 4 or 10 ms what runs. In slices of a millisecond they would
/// always look at the same part of it, and see all or nothing.
pub const SOFTIRQ_SLICE: Duration = Duration::from_nanos(998_502);

/// The largest share of a slice that it burns. The rest is left to programs, or the machine would stand still.
pub const SOFTIRQ_SHARE_MOST: f64 = 0.95;

/// What a load in the context of soft interrupts has burnt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoftirqBurnt {
    /// The loaded processors.
    pub processors: usize,
    /// The share of their time that passed in callbacks, which is more than the program burnt where something came
    /// before it: another interrupt, or a hypervisor with other work.
    pub share: f64,
    /// Callbacks on all processors.
    pub callbacks: u64,
    /// Those that ran on another processor than the one that they were meant to load. Kernels before 6.7 cannot pin
    /// them.
    pub elsewhere: u64,
}
