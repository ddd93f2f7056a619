//! Why a run ends without a measurement.

use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// Why nothing can be measured.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The socket cannot be made or used.
    #[error("{what}: {error}")]
    Socket {
        /// The call that failed.
        what: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// No reply came.
    #[error(
        "none of {sent} packets was answered by {to}{reason}; start `ffclock-lab probe echo` there, and let UDP port {port} pass",
        port = to.port()
    )]
    NoAnswer {
        /// How many packets were sent.
        sent: u64,
        /// The address that they were sent to.
        to: SocketAddr,
        /// The errors that the network reported.
        reason: String,
    },
    /// The thread that collects the kernel's stamps ended.
    #[error("cannot collect the kernel's stamps: {0}")]
    Collector(String),
}
