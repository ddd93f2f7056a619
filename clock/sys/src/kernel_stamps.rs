//! What the kernel reports about packets beside their bytes.

#[cfg(target_os = "freebsd")]
mod freebsd;
#[cfg(target_os = "linux")]
mod linux;

use crate::hardware::CardStamp;
use ffclock_units::{Moment, Utc};
use std::net::{IpAddr, SocketAddr};

#[cfg(target_os = "freebsd")]
pub(crate) use freebsd::{next_entry, number_packets, of_received, queue_errors};
#[cfg(target_os = "linux")]
pub(crate) use linux::{next_entry, number_chosen_packets, number_packets, of_received, queue_errors};

/// The stamps of a packet that was received, and how it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceivedStamps {
    /// The kernel's software stamp by the system clock.
    pub(crate) stamped: Option<Moment<Utc>>,
    /// That of the network card.
    pub(crate) by_card: Option<CardStamp>,
    /// The address that it was sent to, and the number of the device on which it came, where the socket asks for that.
    pub(crate) to: Option<(IpAddr, u32)>,
}

/// What the kernel reports about a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(target_os = "freebsd", expect(dead_code, reason = "there is no error queue"))]
pub(crate) enum SendReport {
    /// It passed to the driver.
    Sent {
        /// The number of the packet, counted by the socket.
        number: u32,
        /// The kernel's software stamp by the system clock.
        stamped: Option<Moment<Utc>>,
        /// The stamp of the network card: it comes by itself, after that of the kernel.
        by_card: Option<CardStamp>,
    },
    /// It did not arrive.
    Unreachable {
        /// What is wrong.
        errno: i32,
        /// The host that says so.
        reporter: Option<SocketAddr>,
    },
}
