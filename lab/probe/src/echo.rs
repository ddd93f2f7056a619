//! The other end: sends every request back, one byte shorter, and answers nothing else.

use crate::payload::{LONGEST, reply};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// Between two looks at whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// An echo server.
#[derive(Debug)]
pub struct EchoServer {
    socket: UdpSocket,
}

/// What it has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EchoCounts {
    /// Requests answered.
    pub answered: u64,
    /// Packets that are no request.
    pub ignored: u64,
}

impl EchoServer {
    /// Opens the socket of the server.
    ///
    /// # Errors
    /// The address is taken or not ours.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_read_timeout(Some(LOOK_EVERY))?;
        Ok(EchoServer { socket })
    }

    /// Hears what is sent to a group as well, on the device that the routes of this host name for it.
    ///
    /// # Errors
    /// It is no group, or there is no route to it.
    pub fn join(&self, group: Ipv4Addr) -> io::Result<()> {
        self.socket.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED)
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Answers until `stop` is set.
    ///
    /// # Errors
    /// The socket fails.
    pub fn serve(&self, stop: &AtomicBool) -> io::Result<EchoCounts> {
        let mut answered = EchoCounts::default();
        let mut buffer = [0; LONGEST + 1];
        while !stop.load(Ordering::Acquire) {
            let (length, from) = match self.socket.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if is_passing(&error) => continue,
                Err(error) => return Err(error),
            };
            match reply(&mut buffer[..length]) {
                // What cannot be sent is lost, as on any network; the other side counts it.
                Some(bytes) => answered.answered += u64::from(self.socket.send_to(bytes, from).is_ok()),
                None => answered.ignored += 1,
            }
        }
        Ok(answered)
    }
}

fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted | ConnectionRefused)
}
