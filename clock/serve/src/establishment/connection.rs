//! One client that establishes its keys: TLS over a stream that never blocks, one request, one answer, the end.
//!
//! It holds no more than [`MOST_OCTETS`] of what the client sent, whatever the client does.

use super::counts::Ending;
use super::identity::ALPN;
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// All that a client may send: a request of 16 KiB, and the handshake before it, of which a chosen group that
/// resists quantum computers takes the most.
const MOST_OCTETS: usize = 16 * 1024 + 8 * 1024;

/// What the octets of a request led to.
pub(super) enum DialogueStep {
    /// The request is not whole yet.
    More,
    /// The request is answered with these octets, and the connection ends.
    Answer(Vec<u8>, Ending),
}

/// The protocol that is spoken inside TLS.
pub(super) trait Dialogue {
    /// Takes the next octets of the request.
    fn take(&mut self, octets: &[u8], tls: &ServerConnection) -> DialogueStep;
}

/// A connection from its first octet to its last.
pub(super) struct Establishing<D> {
    stream: Metered,
    tls: Box<ServerConnection>,
    dialogue: D,
    /// Set as soon as the answer is on its way.
    ending: Option<Ending>,
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketWait {
    /// The client's next octets.
    ToRead,
    /// Room for ours.
    ToWrite,
}

impl<D: Dialogue> Establishing<D> {
    /// A connection that was just accepted.
    ///
    /// # Errors
    /// The stream cannot be set not to block, or the configuration is none.
    pub(super) fn new(stream: TcpStream, tls: Arc<ServerConfig>, dialogue: D) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // The answer is one piece and is waited for.
        stream.set_nodelay(true)?;
        let tls = Box::new(ServerConnection::new(tls).map_err(io::Error::other)?);
        Ok(Establishing { stream: Metered { stream, left: MOST_OCTETS }, tls, dialogue, ending: None })
    }

    /// Its descriptor, and what it waits for there.
    pub(super) fn waits_for(&self) -> (BorrowedFd<'_>, SocketWait) {
        let waiting = if self.tls.wants_write() { SocketWait::ToWrite } else { SocketWait::ToRead };
        (self.stream.stream.as_fd(), waiting)
    }

    /// How it ended if it must end now, where `forced` is why.
    pub(super) fn ending_by(&self, forced: Ending) -> Ending {
        self.ending.unwrap_or(forced)
    }

    /// Does all that can be done without waiting.
    ///
    /// # Errors
    /// The connection is over, and how it ended.
    pub(super) fn progress(&mut self) -> Result<(), Ending> {
        loop {
            if !self.flush()? {
                return Ok(());
            }
            if self.ending.is_some() {
                // What the client still sends is read until it closes: closing first, with octets unread, would make
                // the kernel reset the connection, and the client could lose its answer.
                let _ = self.stream.stream.shutdown(Shutdown::Write);
                return self.drain();
            }
            match self.tls.read_tls(&mut self.stream) {
                Ok(0) => return Err(Ending::Left),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::FileTooLarge => return Err(Ending::TooLong),
                Err(_) => return Err(Ending::Left),
            }
            self.take_in()?;
        }
    }

    /// Whether all that we have to say was taken.
    fn flush(&mut self) -> Result<bool, Ending> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.stream) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(_) => return Err(self.ending_by(Ending::Left)),
            }
        }
        Ok(true)
    }

    fn drain(&mut self) -> Result<(), Ending> {
        let mut scratch = [0; 1024];
        loop {
            match self.stream.read(&mut scratch) {
                Ok(length) if length > 0 => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Ok(_) | Err(_) => return Err(self.ending_by(Ending::Left)),
            }
        }
    }

    /// Takes what has been read through TLS, and answers as soon as the request is whole.
    fn take_in(&mut self) -> Result<(), Ending> {
        if let Err(error) = self.tls.process_new_packets() {
            // The alert that says why; a client that does not take it at once does without.
            let _ = self.flush();
            return Err(ending_of(&error));
        }
        if self.tls.is_handshaking() {
            return Ok(());
        }
        if self.tls.alpn_protocol() != Some(ALPN) {
            return Err(Ending::OtherProtocol);
        }
        let mut chunk = [0; 1024];
        loop {
            let length = match self.tls.reader().read(&mut chunk) {
                Ok(0) => return Err(Ending::Left),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(Ending::Left),
            };
            if let DialogueStep::Answer(octets, ending) = self.dialogue.take(&chunk[..length], &self.tls) {
                self.tls.writer().write_all(&octets).map_err(|_| Ending::Left)?;
                self.tls.send_close_notify();
                self.ending = Some(ending);
                return Ok(());
            }
        }
    }
}

fn ending_of(error: &rustls::Error) -> Ending {
    match error {
        rustls::Error::NoApplicationProtocol => Ending::OtherProtocol,
        rustls::Error::PeerIncompatible(_) => Ending::Incompatible,
        _ => Ending::TlsFault,
    }
}

/// A stream that gives no more than a stated number of octets.
struct Metered {
    stream: TcpStream,
    left: usize,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(ErrorKind::FileTooLarge.into());
        }
        let most = buffer.len().min(self.left);
        let length = self.stream.read(&mut buffer[..most])?;
        self.left -= length;
        Ok(length)
    }
}

impl Write for Metered {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.stream.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
