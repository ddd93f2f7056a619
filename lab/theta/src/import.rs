//! Logs of other systems: from lists of their messages ([`import_messages`]), and from captures of the requests of one
//! client to several servers, as `tcpdump -w` leaves them: of a client that waits for replies ([`import`]), or of one
//! that does not, if its protocol is known ([`read_streams`]).
//!
//! With one capture all stamps come from one clock. With one at each end ([`import_two_sided`]) replies are messages
//! from where they left to where they arrived, and the clocks are compared by the packets themselves. What follows is
//! the mapping of one capture. Process 0 is the client, the servers follow. Server s "sends" its message of round k
//! when the client's k-th request to it passes, and the client perceives it when the first packet of the reply passes:
//! the delay is that of the whole exchange, seen from where the capture was taken. The client's round ends when it
//! asks a server again that it has asked in this round. docs/theta-log.md defines Omega for such a log.

mod capture;
mod datagrams;
mod messages;
mod packet;
mod pcap;
mod pcapng;
mod requests;
mod streams;
mod two_sided;

pub use datagrams::{CapturedDatagram, each_datagram};
pub use messages::{
    FaultyLine, ImportedMessages, LineFault, MessageError, MessageLine, MessageLines, MessageOptions, MessageRounds,
    MessageTable, PassedOver, SENDERS_MAX, TimeUnit, import_messages,
};
pub use requests::{ImportOptions, ImportSummary, OverlapRule, import};
pub use streams::{StreamMessages, StreamOptions, StreamProtocol, StreamsPassedOver, read_streams};
pub use two_sided::{ServerCapture, TwoSidedOptions, import_two_sided};

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
    /// No packet in it matches.
    #[error("no exchange between {client} and port {port}: nothing to import")]
    Nothing {
        /// The client.
        client: std::net::IpAddr,
        /// The port.
        port: u16,
    },
    /// The client does not wait for a reply before it asks again.
    #[error(
        "on {connections} connections the client wrote {writes} times more while a request was open: it does not wait for replies \
         (pipelined or multiplexed requests), or a reply was lost, or it writes a request in parts; replies could be given to the \
         wrong requests. Where all that it writes before a reply is one request, say so (--one-request-at-a-time); where it speaks Redis, HTTP/2, Kafka or messages behind their length, say that (--protocol)"
    )]
    Overlapping {
        /// Connections on which it did.
        connections: usize,
        /// Writes.
        writes: u64,
    },
    /// No capture at a server holds its packets.
    #[error("none of the captures holds packets of the server {0}")]
    NoCapture(std::net::IpAddr),
    /// In no second packets of both directions are in both captures.
    #[error(
        "{0}: shares no requests and replies with the client's capture: is it of the same time, and are addresses translated between?"
    )]
    Strangers(String),
    /// Packets arrive before they are sent, whatever the offset.
    #[error(
        "{name}: in second {second} of the capture its clock and the client's contradict each other: one was stepped, or drifts faster"
    )]
    Contradiction {
        /// The capture.
        name: String,
        /// Counting from the first packet of the client's.
        second: u64,
    },
    /// More servers than a log is made for.
    #[error("more than {0} servers")]
    TooManyServers(usize),
    /// More requests than are held in memory.
    #[error("more than {0} requests: cut the capture into parts")]
    TooManyRequests(usize),
}
