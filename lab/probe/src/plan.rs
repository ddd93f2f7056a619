//! What a run measures, and with which probes. Everything that prepares or makes a run reads it; it knows none of them.

use crate::payload::Lengths;
use crate::site::Sites;
use ffclock_counter::CounterId;
use ffclock_units::Period;
use std::net::SocketAddr;

/// The most packets of a run: their stamps are kept in memory, eight bytes for each site and packet.
pub const MOST_PACKETS: u64 = 10_000_000;

/// What to measure.
#[derive(Clone, Debug)]
pub struct ProbePlan {
    /// The echo server, or a multicast group that it has joined.
    pub to: SocketAddr,
    /// The device on the way to it.
    pub device: String,
    /// The other end of the link, where it is a device of this kernel, to be watched too.
    pub wire: Option<String>,
    /// The number of packets.
    pub packets: u64,
    /// The number of packets per second.
    pub rate: f64,
    /// The lengths of their payloads.
    pub lengths: Lengths,
    /// The counter that stamps.
    pub counter: CounterId,
    /// Its nominal period.
    pub period: Period,
    /// Which kernel stamps to take.
    pub probes: Probes,
    /// How many packets without a reply to send in one go afterwards, to see what a send costs.
    pub burst: u64,
}

/// Which stamps to take in addition to those of user space and of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probes {
    /// The packet tap.
    pub tap: PacketTap,
    /// The kernel's tracing, at these of [`Sites::TRACED`].
    pub tracing: Sites,
    /// eBPF programs, at these of [`Sites::PROGRAMMED`] and [`XdpIn`](crate::site::Site::XdpIn).
    pub ebpf: Sites,
    /// How an eBPF program is attached to the function that fills the socket's queue.
    pub queue_hook: QueueHook,
}

/// Whether a run opens the packet tap. It copies packets of both directions or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketTap {
    /// It is opened.
    Open,
    /// It is left out.
    LeftOut,
}

/// How an eBPF program is attached to the function that fills the socket's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueHook {
    /// By fentry where the kernel has it, which costs less; by a kprobe elsewhere.
    Fentry,
    /// Always by a kprobe, which more kernels have.
    Kprobe,
}
