//! A rank's way to rank 0.

use super::LiveError;
use ffclock_sys::mono_now;
use ffclock_units::Span;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// Tries until rank 0 is there.
pub(super) fn connect(rendezvous: &str, patience: Span) -> Result<TcpStream, LiveError> {
    let deadline = mono_now() + patience;
    loop {
        let error = match try_connect(rendezvous) {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        if mono_now() >= deadline {
            return Err(LiveError::network(format!("meeting rank 0 at {rendezvous}"))(error));
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
}

fn try_connect(rendezvous: &str) -> std::io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = rendezvous.to_socket_addrs()?.collect();
    let stream = TcpStream::connect(addresses.as_slice())?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A line that the kernel shows.
pub(super) fn text_of(path: &str) -> String {
    std::fs::read_to_string(Path::new(path)).unwrap_or_default().trim().to_owned()
}
