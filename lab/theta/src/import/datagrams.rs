//! All datagrams of a capture.

use super::ImportError;
use super::capture::Capture;
use super::packet::datagram;
use std::io::Read;
use std::net::SocketAddr;

/// A datagram of UDP, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedDatagram<'a> {
    /// When it passed, by the clock of the capture, nanoseconds.
    pub at_ns: u64,
    /// Its sender.
    pub from: SocketAddr,
    /// Its receiver.
    pub to: SocketAddr,
    /// What it carries.
    pub content: &'a [u8],
}

/// Hands on every whole datagram of a capture (classic or pcapng). Other packets are passed over.
///
/// # Errors
/// If the capture cannot be read, or is damaged or cut; what came before that has been handed on.
pub fn each_datagram(input: impl Read, mut take: impl FnMut(CapturedDatagram<'_>)) -> Result<(), ImportError> {
    let mut capture = Capture::open(input)?;
    while let Some(captured) = capture.next_packet()? {
        if let Some((from, to, content)) = datagram(captured.link, captured.bytes) {
            take(CapturedDatagram { at_ns: captured.at_ns, from, to, content });
        }
    }
    Ok(())
}
