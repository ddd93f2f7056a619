//! Key establishment for NTS (RFC 8915, section 4), off the time path: names are looked up, connections wait, and TLS
//! computes, so each establishment has a short-lived thread of its own, as a look-up has. One in progress is not
//! started again, and each ends in bounded time.

mod tls;

use crate::config::{AddressFamily, ServerConfig};
use ffclock_nts::{CertificateTime, Session};
use ffclock_units::{Moment, Utc};
use std::collections::BTreeSet;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};

/// What to establish.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EstablishmentOrder {
    /// The server, as [`crate::peer::Peer::name`] calls it.
    name: String,
    /// The host to establish keys with: its certificate must be valid for this name.
    host: String,
    port: u16,
    /// The port of NTP unless the server names another.
    ntp_port: u16,
    /// Addresses of this family alone are used, to establish keys and for NTP.
    family: AddressFamily,
    /// An address of NTP that does not answer: another one comes first.
    silent: Option<SocketAddr>,
    /// The certificates to trust; `None` for those of the system.
    authorities: Option<PathBuf>,
    /// The time that decides whether certificates are valid.
    now: Moment<Utc>,
}

impl EstablishmentOrder {
    /// The order for a configured server, called `name`; certificates are judged at `now`.
    pub(crate) fn of(name: &str, config: &ServerConfig, now: Moment<Utc>) -> Self {
        EstablishmentOrder {
            name: name.to_owned(),
            host: config.address.address.as_str().to_owned(),
            port: config.protection.nts_port,
            ntp_port: config.address.port,
            family: config.look_up.family,
            silent: None,
            authorities: config.protection.nts_ca.value().map(|path| path.as_path().to_owned()),
            now,
        }
    }

    /// The same where this address of NTP does not answer.
    pub(crate) fn beside(self, silent: Option<SocketAddr>) -> Self {
        EstablishmentOrder { silent, ..self }
    }

    /// Whether it is what this configuration would have established: a reload may have changed whom to trust meanwhile.
    pub(crate) fn is_of(&self, config: &ServerConfig) -> bool {
        *self == EstablishmentOrder::of(&self.name, config, self.now).beside(self.silent)
    }
}

/// What was established.
#[derive(Debug)]
pub(crate) struct Established {
    /// Keys and cookies, for one address.
    pub(crate) session: Session,
    /// The address that they are for.
    pub(crate) address: SocketAddr,
    /// When the server's certificate ends.
    pub(crate) certificate_end: Option<CertificateTime>,
}

impl Establishment {
    /// The server, as [`crate::peer::Peer::name`] calls it.
    pub(crate) fn name(&self) -> &str {
        &self.order.name
    }
}

/// The result of an establishment.
pub(crate) struct Establishment {
    /// What was to be established.
    pub(crate) order: EstablishmentOrder,
    /// What was established, or why nothing was.
    pub(crate) outcome: Result<Established, String>,
}

/// Enough for TLS and for the plug-ins of name services; untouched stack costs nothing.
const STACK_BYTES: usize = 2 << 20;

/// Starts establishments and collects their results.
pub(crate) struct Establisher {
    results: Receiver<Establishment>,
    sender: Sender<Establishment>,
    wake: PipeReader,
    waker: PipeWriter,
    running: BTreeSet<String>,
}

impl Establisher {
    /// Without any establishment.
    ///
    /// # Errors
    /// No pipe can be made.
    pub(crate) fn new() -> std::io::Result<Self> {
        let (wake, waker) = std::io::pipe()?;
        let (sender, results) = channel();
        Ok(Establisher { results, sender, wake, waker, running: BTreeSet::new() })
    }

    /// Starts an establishment, unless one for this server is in progress.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(&mut self, order: EstablishmentOrder) -> std::io::Result<()> {
        if self.running.contains(&order.name) {
            return Ok(());
        }
        let mut waker = self.waker.try_clone()?;
        let sender = self.sender.clone();
        let name = order.name.clone();
        let work = move || {
            let outcome = tls::establish(&order);
            if sender.send(Establishment { order, outcome }).is_ok() {
                // One byte for each result; a full pipe is readable anyway.
                let _ = waker.write(&[0]);
            }
        };
        std::thread::Builder::new().name("establish".to_owned()).stack_size(STACK_BYTES).spawn(work)?;
        self.running.insert(name);
        Ok(())
    }

    /// The descriptor that becomes readable when a result waits.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// The next result; called once for each time that the descriptor is readable.
    pub(crate) fn take(&mut self) -> Option<Establishment> {
        let mut byte = [0];
        let _ = self.wake.read(&mut byte);
        let result = self.results.try_recv().ok()?;
        self.running.remove(&result.order.name);
        Some(result)
    }
}
