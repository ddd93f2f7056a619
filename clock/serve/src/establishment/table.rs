//! All connections of one thread: bounded in number, in time and by address, around `poll(2)`.
//!
//! A client that is slow or silent costs one place until its time is over. When all places are taken, a new client gets
//! the oldest one's: an honest establishment takes a few round trips, so the oldest is the one that most likely never
//! ends. A flood must therefore fill the whole table within the time that an honest client needs, and from many
//! addresses, before it stops one.

use super::connection::{Dialogue, Establishing, SocketWait};
use super::counts::{Ending, EndingCounts};
use ffclock_sys::{Interest, mono_now, poll};
use ffclock_units::{Moment, Mono, Span};
use rustls::ServerConfig;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, PipeReader};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

/// New connections that are let in before those inside are served again.
const MOST_AT_ONCE: usize = 64;
/// The pause after a connection could not be accepted although a place was made for it.
const ACCEPT_AGAIN: Span = Span::from_millis(100);

/// How many clients one thread serves, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EstablishmentLimits {
    /// Connections at the same time.
    pub connections: usize,
    /// Connections of one address at the same time; of a /64 with IPv6.
    pub per_address: usize,
    /// The time from the first octet of a connection to its last.
    pub patience: Span,
}

/// What all threads share.
#[derive(Debug)]
pub(super) struct Common {
    /// The TLS of new connections; replaced by a reload.
    pub(super) tls: Mutex<Arc<ServerConfig>>,
    pub(super) counts: EndingCounts,
    pub(super) limits: EstablishmentLimits,
}

impl Common {
    pub(super) fn tls(&self) -> Arc<ServerConfig> {
        self.tls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Decides about new clients, for one thread.
pub(super) trait Doorkeeper {
    /// What is said with a client.
    type Dialogue: Dialogue;
    /// A dialogue for a client from this address, or why there is none.
    fn let_in(&mut self, from: IpAddr) -> Result<Self::Dialogue, Ending>;
}

struct Guest<D> {
    connection: Establishing<D>,
    from: IpAddr,
    deadline: Moment<Mono>,
}

/// The connections of one thread.
pub(super) struct PlaceTable<K: Doorkeeper> {
    listeners: Vec<TcpListener>,
    common: Arc<Common>,
    door: K,
    guests: VecDeque<Guest<K::Dialogue>>,
    paused_until: Option<Moment<Mono>>,
}

impl<K: Doorkeeper> PlaceTable<K> {
    /// The caller has set `listeners` not to block.
    pub(super) fn new(listeners: Vec<TcpListener>, common: Arc<Common>, door: K) -> Self {
        PlaceTable { listeners, common, door, guests: VecDeque::new(), paused_until: None }
    }

    /// Serves until the other end of `stop` is closed.
    ///
    /// # Errors
    /// As poll(2).
    pub(super) fn run(&mut self, stop: &PipeReader) -> io::Result<()> {
        loop {
            let woken = self.wait(stop)?;
            if woken.stopped {
                return Ok(());
            }
            self.serve(&woken.ready);
            self.end_late_ones();
            if self.paused_until.is_none_or(|until| until <= mono_now()) {
                self.paused_until = None;
                self.let_in();
            }
        }
    }

    /// Waits until a client has done something, or the time of the oldest is over.
    fn wait(&self, stop: &PipeReader) -> io::Result<Woken> {
        let mut interests = Vec::with_capacity(1 + self.guests.len() + self.listeners.len());
        interests.push(Interest::readable(stop.as_fd()));
        interests.extend(self.guests.iter().map(|guest| match guest.connection.waits_for() {
            (fd, SocketWait::ToRead) => Interest::readable(fd),
            (fd, SocketWait::ToWrite) => Interest::writable(fd),
        }));
        if self.paused_until.is_none() {
            interests.extend(self.listeners.iter().map(|listener| Interest::readable(listener.as_fd())));
        }
        let oldest = self.guests.front().map(|guest| guest.deadline);
        poll(&mut interests, oldest.into_iter().chain(self.paused_until).min())?;
        let ready = interests[1..=self.guests.len()].iter().map(Interest::is_ready).collect();
        Ok(Woken { stopped: interests[0].is_ready(), ready })
    }

    /// Goes on with every connection that is ready.
    fn serve(&mut self, ready: &[bool]) {
        let (mut ready, counts) = (ready.iter(), &self.common.counts);
        self.guests.retain_mut(|guest| {
            if !ready.next().copied().unwrap_or(false) {
                return true;
            }
            let progress = guest.connection.progress();
            progress.inspect_err(|ending| counts.count(*ending)).is_ok()
        });
    }

    fn end_late_ones(&mut self) {
        let now = mono_now();
        while self.guests.front().is_some_and(|guest| guest.deadline <= now) {
            self.end_oldest(Ending::Late);
        }
    }

    /// Whether there was one.
    fn end_oldest(&mut self, why: Ending) -> bool {
        let oldest = self.guests.pop_front();
        oldest.inspect(|guest| self.common.counts.count(guest.connection.ending_by(why))).is_some()
    }

    fn let_in(&mut self) {
        for index in 0..self.listeners.len() {
            for _ in 0..MOST_AT_ONCE {
                match self.listeners[index].accept() {
                    Ok((stream, from)) => {
                        if let Err(ending) = self.welcome(stream, from.ip().to_canonical()) {
                            self.common.counts.count(ending);
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                    // No descriptor is left: a place is made, and where there is none to make, the loop rests.
                    Err(_) if self.end_oldest(Ending::Displaced) => {}
                    Err(_) => {
                        self.paused_until = Some(mono_now() + ACCEPT_AGAIN);
                        return;
                    }
                }
            }
        }
    }

    fn welcome(&mut self, stream: TcpStream, from: IpAddr) -> Result<(), Ending> {
        let (limits, network) = (self.common.limits, network_of(from));
        if self.guests.iter().filter(|guest| guest.from == network).count() >= limits.per_address {
            return Err(Ending::AddressFull);
        }
        let dialogue = self.door.let_in(from)?;
        if self.guests.len() >= limits.connections {
            self.end_oldest(Ending::Displaced);
        }
        let connection = Establishing::new(stream, self.common.tls(), dialogue).map_err(|_| Ending::Left)?;
        self.guests.push_back(Guest { connection, from: network, deadline: mono_now() + limits.patience });
        Ok(())
    }
}

struct Woken {
    stopped: bool,
    /// One for each guest, in their order.
    ready: Vec<bool>,
}

/// The address that limits count: with IPv6 its /64, which one client has for itself.
fn network_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        address => address,
    }
}
