//! What gives exchanges in place of a conversation in NTP: a reference at this host, or masters of PTP.

use super::{Beginning, Context, Ptp, Reference};
use crate::config::ServerConfig;
use crate::journal::{WHOLE, Weight};
use crate::leaps::Vote;
use ffclock_control::protocol::SourceReport;
use ffclock_ptp::PortIdentity;
use ffclock_source::Reachability;
use ffclock_sys::StampQuality;
use ffclock_units::{Exchange, LeapTable, Moment, Mono, Span};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// An event of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) weight: Weight,
    pub(super) kind: &'static str,
    pub(super) detail: String,
    /// Whether it says what holds from now on. While the journal limits its kind it waits, until it may be logged or
    /// another state takes its place: the last one in the log is true.
    pub(super) is_state: bool,
    /// The part of its kind that the journal limits for itself.
    pub(super) part: &'static str,
}

impl Note {
    pub(super) const fn new(weight: Weight, kind: &'static str, detail: String) -> Self {
        Note { weight, kind, detail, is_state: false, part: WHOLE }
    }

    /// The same as what holds from now on.
    pub(super) fn lasting(self) -> Self {
        Note { is_state: true, ..self }
    }

    /// The same, limited for itself among those of its kind.
    pub(super) fn part(self, part: &'static str) -> Self {
        Note { part, ..self }
    }

    pub(super) fn warning(kind: &'static str, detail: impl ToString) -> Self {
        Note::new(Weight::Warning, kind, detail.to_string())
    }

    pub(super) fn notice(kind: &'static str, detail: impl ToString) -> Self {
        Note::new(Weight::Notice, kind, detail.to_string())
    }

    pub(super) fn detail(kind: &'static str, detail: impl ToString) -> Self {
        Note::new(Weight::Detail, kind, detail.to_string())
    }
}

/// Who is at the other end of the path: another one is another server until proven the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counterpart {
    /// A server of NTP at this address.
    Address(SocketAddr),
    /// A master of PTP, in this domain.
    Master(PortIdentity, u16),
}

/// A source of exchanges that is read in the two steps of every server: [`Feed::collect`] takes over what there is,
/// and what was made of it is taken after the counter's run was checked.
pub(super) trait Feed {
    /// What wakes the daemon up.
    fn descriptors(&self) -> [Option<BorrowedFd<'_>>; 2];
    /// When it is to be read even if nothing wakes the daemon up.
    fn next(&self) -> Moment<Mono>;
    /// The time between two exchanges.
    fn poll(&self) -> Span;
    /// Whether it gives time.
    fn standing(&self) -> Reachability;
    /// Whether it is open.
    fn is_open(&self) -> bool;
    /// Where its packets are stamped, beside the configured location.
    fn quality(&self) -> StampQuality;
    /// Who gives the exchanges, where it may be one or another.
    fn counterpart(&self) -> Option<Counterpart>;
    /// Whether its seconds are numbered by another clock.
    fn is_numbered(&self) -> bool {
        false
    }
    /// Its word about leap seconds, if it gives one.
    fn leap_vote(&self) -> Option<Vote>;
    /// Sets the leap seconds that hold from now on.
    fn set_leaps(&mut self, leaps: LeapTable);
    /// Takes over options that may change while it runs.
    fn reconfigure(&mut self, server: &ServerConfig);
    /// The counter began a new epoch: nothing that was read before has a place in it.
    fn begin_epoch(&mut self, beginning: &Beginning, now: Moment<Mono>);
    /// Reads what there is.
    fn collect(&mut self, context: &mut Context);
    /// The exchanges since the last call.
    fn take_exchanges(&mut self) -> Vec<Exchange>;
    /// The events since the last call.
    fn take_notes(&mut self) -> Vec<Note>;
    /// The report of a server of NTP with what is otherwise here.
    fn report(&self, report: SourceReport) -> SourceReport;
}

/// The feed of a configuration, unless it is a server of NTP.
pub(super) fn of(server: &ServerConfig, beginning: &super::Environment, now: Moment<Mono>) -> Option<Box<dyn Feed>> {
    let of_reference = Reference::of(server, (beginning.nominal, beginning.leaps), now);
    let of_ptp = || server.is_ptp().then(|| -> Box<dyn Feed> { Box::new(Ptp::new(server, beginning, now)) });
    of_reference.map(|reference| -> Box<dyn Feed> { reference }).or_else(of_ptp)
}
