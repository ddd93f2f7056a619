//! NTS key establishment (RFC 8915, section 4): TLS 1.3 on a TCP port of its own, one request and one answer for each
//! connection.
//!
//! It shares nothing with the threads that answer NTP but the keys of the cookies, so a flood of establishments takes
//! none of their time but what the CPUs share. One thread around `poll(2)` serves many connections, each bounded in
//! octets and in time (`table.rs`, `connection.rs`).

mod connection;
mod counts;
mod dialogue;
mod identity;
mod table;
#[cfg(test)]
mod tests;

pub use counts::{Ending, EndingCounts};
pub use dialogue::KeyGrants;
pub(crate) use dialogue::random_nonces;
pub use identity::{IdentityError, IdentityFiles, ShownIdentity};
pub use table::EstablishmentLimits;

use dialogue::GrantingDoor;
use ffclock_sys::lengthen_queue;
use rustls::ServerConfig;
use std::io::{self, PipeWriter};
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use table::{Common, Doorkeeper, PlaceTable};

/// Listens on each of `addresses`.
///
/// # Errors
/// As bind(2) and listen(2), with the address.
pub fn listen(addresses: &[SocketAddr]) -> io::Result<Vec<TcpListener>> {
    let at = |address: &SocketAddr| {
        let listener = TcpListener::bind(address)?;
        lengthen_queue(&listener)?;
        Ok(listener)
    };
    let named = |address, error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
    addresses.iter().map(|address| at(address).map_err(|error| named(address, error))).collect()
}

/// How long establishments rest after the kernel refused to wait for clients.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// How many threads establish keys, and what each of them allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EstablishmentPlan {
    /// Threads, one core each.
    pub threads: NonZeroUsize,
    /// What each thread allows.
    pub limits: EstablishmentLimits,
}

/// The running threads. They end when it is dropped.
#[derive(Debug)]
pub struct EstablishmentServer {
    common: Arc<Common>,
    stop: Option<PipeWriter>,
    threads: Vec<JoinHandle<()>>,
}

impl EstablishmentServer {
    /// Starts the threads: they show themselves by this TLS, and grant as stated.
    ///
    /// # Errors
    /// No thread, no pipe, or a listener that cannot be shared.
    pub fn start(
        listeners: &[TcpListener],
        plan: EstablishmentPlan,
        (tls, grants): (Arc<ServerConfig>, KeyGrants),
    ) -> io::Result<Self> {
        let grants = Arc::new(grants);
        Self::start_with(listeners, plan, tls, || GrantingDoor::new(Arc::clone(&grants)))
    }

    /// Starts the threads, each with a door of its own.
    fn start_with<K>(
        listeners: &[TcpListener],
        plan: EstablishmentPlan,
        tls: Arc<ServerConfig>,
        door: impl Fn() -> K,
    ) -> io::Result<Self>
    where
        K: Doorkeeper<Dialogue: Send> + Send + 'static,
    {
        let (stopped, stop) = io::pipe()?;
        let common = Common { tls: Mutex::new(tls), counts: EndingCounts::default(), limits: plan.limits };
        let common = Arc::new(common);
        let mut server = EstablishmentServer { common: common.clone(), stop: Some(stop), threads: Vec::new() };
        for number in 0..plan.threads.get() {
            let own: io::Result<Vec<_>> = listeners.iter().map(TcpListener::try_clone).collect();
            let own = own?;
            own.iter().try_for_each(|listener| listener.set_nonblocking(true))?;
            let (stopped, mut table) = (stopped.try_clone()?, PlaceTable::new(own, common.clone(), door()));
            let thread = thread::Builder::new().name(format!("establish-{number}"));
            server.threads.push(thread.spawn(move || {
                // poll(2) fails for lack of memory alone, which may pass.
                while let Err(error) = table.run(&stopped) {
                    tracing::error!(%error, "keys cannot be established for a moment");
                    thread::sleep(AFTER_FAILURE);
                }
            })?);
        }
        Ok(server)
    }

    /// Shows another certificate from the next connection on; those that are open end with the one they began with.
    pub fn show(&self, tls: Arc<ServerConfig>) {
        *self.common.tls.lock().unwrap_or_else(PoisonError::into_inner) = tls;
    }

    /// How connections have ended so far.
    pub fn counts(&self) -> &EndingCounts {
        &self.common.counts
    }
}

impl Drop for EstablishmentServer {
    fn drop(&mut self) {
        self.stop = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}
