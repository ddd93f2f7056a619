//! Clocks that ask several servers.
//!
//! A clock under test is a [`MultiServerClock`]: it takes exchanges, each with its server, and gives an estimate.
//! [`ReaderView`] runs it as the daemon does and notes what it does to its readers. The opponents are `ntpd.rs` and
//! `chrony.rs`.

mod chrony;
mod elected;
mod joint;
mod ntpd;
mod polls;
mod reader_view;
mod steered;

pub(crate) use chrony::Chrony;
pub(crate) use elected::Elected;
pub(crate) use joint::Joint;
pub(crate) use ntpd::Ntpd;
pub(crate) use polls::PollTimes;
pub(crate) use reader_view::ReaderView;
pub(crate) use steered::DisciplinedByMany;

use crate::clock::{Read, Timekeeper};
use ffclock_units::{Bound, Counter, Estimate, Exchange, Span};

/// The names of the clocks of several servers: the daemon's, which all servers make together, that of the selected
/// server alone, and the rivals.
pub const ENSEMBLES: [&str; 4] = ["joint", "elected", "ntpd", "chrony"];

/// The clock of the selected server with the classic filter, for the bounds that the guards and the vote prove.
pub const GUARDS: &str = "guards";

/// What a clock thinks of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Credence {
    /// Nothing: it has not answered, or is not asked.
    #[default]
    Unknown,
    /// It is right.
    Believed,
    /// The vote believes it, but it has no part in the clock: it moves against the others.
    Suspect,
    /// It may be right: not counted, and not said to be wrong.
    Undecided,
    /// It is wrong.
    Disbelieved,
}

/// What happened with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerChange {
    /// It was added to the configuration.
    Joined,
    /// It was taken out of it.
    Left,
    /// It answers, for the first time or again.
    Reachable,
    /// It does not answer any more.
    Unreachable,
}

/// A feed-forward clock of several servers, driven as the daemon drives it.
pub trait MultiServerClock {
    /// Takes an exchange with this server, in the order in which the replies arrived.
    fn take(&mut self, server: usize, exchange: &Exchange);

    /// Something happened with this server at `counter`.
    fn note(&mut self, server: usize, change: ServerChange, counter: Counter);

    /// The epoch of the counter ended.
    fn broke(&mut self);

    /// The estimate that readers would see at `counter`, which is not before the last call.
    fn estimate(&mut self, counter: Counter) -> Option<Estimate>;

    /// The largest error at `counter` whatever a minority of servers does; `None` of a clock that does not state it.
    fn bound_strict(&self, _counter: Counter) -> Option<Bound> {
        None
    }

    /// What it thinks of this server.
    fn credence(&self, server: usize) -> Credence;
}

/// What a clock in a world hears of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Contact<'a> {
    /// A request leaves.
    Sent(Counter),
    /// An exchange is complete; the counter stands where its reply was received.
    Exchange(&'a Exchange),
    /// A request was given up.
    Lost(Counter),
    /// Something else.
    Change(ServerChange, Counter),
}

/// A change of the set of servers that a clock believes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SetStep {
    /// How far it moved the time that readers see.
    pub(crate) size: Span,
    /// That over the standard uncertainty that was published before.
    pub(crate) over_uncertainty: f64,
}

/// A clock that is judged in a world.
pub(crate) trait Contender {
    /// Hears of a server.
    fn hear(&mut self, server: usize, contact: Contact);

    /// The host was suspended: earlier stamps are void.
    fn broke(&mut self);

    /// The clock at `counter`, which is not before the last call; `None` while it has no time.
    fn read(&mut self, counter: Counter) -> Option<Read>;

    /// What it thinks of a server; `None` of a clock that cannot choose.
    fn credence(&self, _server: usize) -> Option<Credence> {
        None
    }

    /// The change of the believed set since the last call.
    fn take_step(&mut self) -> Option<SetStep> {
        None
    }

    /// How often its filter lost track and began again; `None` of a clock that does not say.
    fn restarts(&self) -> Option<u64> {
        None
    }
}

/// A clock that asks one of the servers.
pub(crate) struct OfOne {
    server: usize,
    clock: Box<dyn Timekeeper>,
}

impl OfOne {
    pub(crate) fn new(server: usize, clock: Box<dyn Timekeeper>) -> Self {
        OfOne { server, clock }
    }
}

impl Contender for OfOne {
    fn hear(&mut self, server: usize, contact: Contact) {
        if server != self.server {
            return;
        }
        match contact {
            Contact::Sent(counter) => self.clock.sent(counter),
            Contact::Exchange(exchange) => self.clock.exchange(exchange),
            Contact::Lost(counter) => self.clock.lost(counter),
            Contact::Change(..) => {}
        }
    }

    fn broke(&mut self) {
        self.clock.broke();
    }

    fn read(&mut self, counter: Counter) -> Option<Read> {
        self.clock.read(counter)
    }

    fn restarts(&self) -> Option<u64> {
        self.clock.restarts()
    }
}
