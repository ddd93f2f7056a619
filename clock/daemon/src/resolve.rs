//! Names to addresses, off the time path: the resolver of the C library blocks, so each look-up has a short-lived
//! thread of its own. A look-up in progress is not started again, so there are never more threads than servers.

use std::collections::BTreeSet;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The result of a look-up.
pub(crate) struct Resolved {
    /// The server whose name was looked up, as [`crate::peer::Peer::name`] calls it.
    pub(crate) name: String,
    /// The addresses, or why there are none.
    pub(crate) outcome: Result<Vec<SocketAddr>, String>,
}

/// Finds the addresses of a host, with a port; or says why there are none. It may block.
pub(crate) type LookUp = Arc<dyn Fn(&str, u16) -> Result<Vec<SocketAddr>, String> + Send + Sync>;

/// Enough for the plug-ins of name services; untouched stack costs nothing.
const STACK_BYTES: usize = 1 << 20;

/// Starts look-ups and collects their results.
pub(crate) struct Resolver {
    look_up: LookUp,
    results: Receiver<Resolved>,
    sender: Sender<Resolved>,
    wake: PipeReader,
    waker: PipeWriter,
    running: BTreeSet<String>,
}

impl Resolver {
    /// A resolver without look-ups in progress.
    ///
    /// # Errors
    /// No pipe can be made.
    pub(crate) fn new(look_up: LookUp) -> std::io::Result<Self> {
        let (wake, waker) = std::io::pipe()?;
        let (sender, results) = channel();
        Ok(Resolver { look_up, results, sender, wake, waker, running: BTreeSet::new() })
    }

    /// Looks up the host of the server called `name`, unless a look-up is already in progress.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(&mut self, name: &str, host: &str, port: u16) -> std::io::Result<()> {
        if self.running.contains(name) {
            return Ok(());
        }
        let mut waker = self.waker.try_clone()?;
        let sender = self.sender.clone();
        let (asked, host, find) = (name.to_owned(), host.to_owned(), self.look_up.clone());
        let look_up = move || {
            let outcome = find(&host, port);
            if sender.send(Resolved { name: asked, outcome }).is_ok() {
                // One byte for each result; a full pipe is readable anyway.
                let _ = waker.write(&[0]);
            }
        };
        std::thread::Builder::new().name("resolve".to_owned()).stack_size(STACK_BYTES).spawn(look_up)?;
        self.running.insert(name.to_owned());
        Ok(())
    }

    /// The descriptor that becomes readable when a result waits.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// The next result; called once for each time that the descriptor is readable.
    pub(crate) fn take(&mut self) -> Option<Resolved> {
        let mut byte = [0];
        let _ = self.wake.read(&mut byte);
        let result = self.results.try_recv().ok()?;
        self.running.remove(&result.name);
        Some(result)
    }
}

/// The address, if the name is a literal one.
pub(crate) fn literal(name: &str, port: u16) -> Option<SocketAddr> {
    name.parse().ok().map(|ip| SocketAddr::new(ip, port))
}

/// The look-up of the system.
pub(crate) fn of_system() -> LookUp {
    Arc::new(look_up)
}

fn look_up(name: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let addresses: Vec<_> = (name, port).to_socket_addrs().map_err(|error| error.to_string())?.collect();
    if addresses.is_empty() { Err("the name has no address".to_owned()) } else { Ok(addresses) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_need_no_look_up() {
        assert_eq!(literal("192.0.2.7", 123), Some("192.0.2.7:123".parse().unwrap()));
        assert_eq!(literal("2001:db8::1", 124), Some("[2001:db8::1]:124".parse().unwrap()));
        assert_eq!(literal("ntp.example", 123), None);
    }

    #[test]
    fn a_name_is_not_looked_up_twice_at_a_time() {
        let mut resolver = Resolver::new(of_system()).unwrap();
        for _ in 0..50 {
            resolver.start("the server", "localhost", 123).unwrap();
        }
        assert!(resolver.take().is_some());
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert!(resolver.results.try_recv().is_err(), "one look-up, one result");
        resolver.start("the server", "localhost", 123).unwrap();
        assert!(resolver.take().is_some(), "afterwards it may be looked up again");
    }

    #[test]
    fn a_result_arrives_through_the_descriptor() {
        let mut resolver = Resolver::new(of_system()).unwrap();
        resolver.start("the server", "localhost", 123).unwrap();
        let result = resolver.take().unwrap();
        assert_eq!(result.name, "the server");
        assert!(result.outcome.unwrap().iter().all(|address| address.ip().is_loopback() && address.port() == 123));
    }
}
