//! Logs from captures of other systems: the requests of one client to several servers, as `tcpdump -w` leaves them.
//!
//! All stamps come from one capture, so one clock suffices. Process 0 is the client, the servers follow. Server s "sends" its message of
//! round k when the client's k-th request to it passes, and the client perceives it when the first packet of the reply passes: the delay is
//! that of the whole exchange, seen from where the capture was taken. The client's round ends when it asks a server again that it
//! has asked in this round. docs/theta-log.md says what that makes of Omega.

mod packet;
mod pcap;
mod requests;

pub use requests::{ImportOptions, Imported, import};

/// Why a capture cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The capture cannot be read.
    #[error("cannot read the capture: {0}")]
    Io(#[from] std::io::Error),
    /// The log cannot be written.
    #[error(transparent)]
    Log(#[from] crate::log::LogError),
    /// No classic capture file.
    #[error("{0}")]
    Format(String),
    /// Nothing in it fits.
    #[error("no exchange between {client} and port {port}: nothing to import")]
    Nothing {
        /// The client that was asked for.
        client: std::net::IpAddr,
        /// The port.
        port: u16,
    },
    /// More servers than a log is made for.
    #[error("more than {0} servers")]
    TooManyServers(usize),
}
