//! Who gets unicast messages: a table of fixed size (IEEE 1588-2019, 16.1).

use crate::cadence::interval_of;
use crate::transmit::Ends;
use crate::{Audience, Passage, PortIdentity, PtpRejection, UnicastService, UnicastTerms};
use alloc::vec::Vec;
use ffclock_units::{Moment, Mono, Span};

/// Clients at one address, each a port of its own.
const PORTS_MAX: usize = 4;

/// Who asks for messages: a port at an address. Another address ends or changes nothing of what it has, and another
/// port there only where no room is left for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    pub(super) passage: Passage,
    pub(super) port: PortIdentity,
}

impl Client {
    /// The way back.
    pub(super) const fn ends(&self) -> Ends {
        Ends { audience: Audience::One(self.passage.from), from: self.passage.to }
    }

    fn is(&self, other: &Client) -> bool {
        (self.passage.from, self.port) == (other.passage.from, other.port)
    }
}

/// Messages of one kind for one client.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientGrant {
    pub(super) client: Client,
    pub(super) service: UnicastService,
    pub(super) log_interval: i8,
    until: Moment<Mono>,
    due: Moment<Mono>,
    pub(super) sequence: u16,
}

/// The table.
#[derive(Debug)]
pub(super) struct Clients {
    grants: Vec<ClientGrant>,
    capacity: usize,
}

impl Clients {
    pub(super) const fn new(capacity: usize) -> Self {
        Clients { grants: Vec::new(), capacity }
    }

    /// Gives a client what it asked for; a grant that it has already is renewed. Where no place is left, or none for
    /// its address, it gets that of another port there: a client that was started again may have another identity.
    ///
    /// # Errors
    /// All places are taken, and none by its address.
    pub(super) fn grant(
        &mut self,
        client: Client,
        (service, terms): (UnicastService, UnicastTerms),
        now: Moment<Mono>,
    ) -> Result<(), PtpRejection> {
        let (until, log_interval) = (now + Span::from_secs(i64::from(terms.seconds)), terms.log_interval);
        if let Some(known) = self.find(client, service) {
            (known.client, known.until, known.log_interval) = (client, until, log_interval);
            return Ok(());
        }
        let newcomer = ClientGrant { client, service, log_interval, until, due: now, sequence: 0 };
        let is_full = self.grants.len() >= self.capacity;
        let at_address =
            |grant: &&mut ClientGrant| grant.client.passage.from == client.passage.from && grant.service == service;
        if !is_full && self.grants.iter_mut().filter(at_address).count() < PORTS_MAX {
            self.grants.push(newcomer);
            return Ok(());
        }
        let first_to_end = self.grants.iter_mut().filter(at_address).min_by_key(|grant| grant.until);
        *first_to_end.ok_or(PtpRejection::TooManyClients)? = newcomer;
        Ok(())
    }

    /// Ends a grant. Whether there was one.
    pub(super) fn cancel(&mut self, client: Client, service: UnicastService) -> bool {
        let before = self.grants.len();
        self.grants.retain(|grant| !grant.client.is(&client) || grant.service != service);
        self.grants.len() < before
    }

    /// Ends all grants.
    pub(super) fn clear(&mut self) {
        self.grants.clear();
    }

    /// The grant of a client; that of Delay_Resp answers requests and is never due.
    pub(super) fn find(&mut self, client: Client, service: UnicastService) -> Option<&mut ClientGrant> {
        self.grants.iter_mut().find(|grant| grant.client.is(&client) && grant.service == service)
    }

    /// Ends what has run out.
    pub(super) fn expire(&mut self, now: Moment<Mono>) {
        self.grants.retain(|grant| grant.until > now);
    }

    /// A grant whose next message is due, as it was; its sequence number has moved on. Announce comes before Sync,
    /// which rests on it.
    pub(super) fn next_due(&mut self, now: Moment<Mono>) -> Option<ClientGrant> {
        let is_due = |grant: &&mut ClientGrant| grant.service != UnicastService::DelayResp && grant.due <= now;
        let grant = self.grants.iter_mut().filter(is_due).min_by_key(|grant| grant.service)?;
        let present = *grant;
        grant.sequence = grant.sequence.wrapping_add(1);
        grant.due = following(grant.due, interval_of(grant.log_interval), now);
        Some(present)
    }

    /// The next messages of this kind are due at `now`.
    pub(super) fn hasten(&mut self, service: UnicastService, now: Moment<Mono>) {
        let hastened = self.grants.iter_mut().filter(|grant| grant.service == service);
        hastened.for_each(|grant| grant.due = grant.due.min(now));
    }

    /// Ends one of the grants of Announce.
    pub(super) fn take_announced(&mut self) -> Option<ClientGrant> {
        let place = self.grants.iter().position(|grant| grant.service == UnicastService::Announce)?;
        Some(self.grants.swap_remove(place))
    }

    /// When a message is due.
    pub(super) fn due(&self) -> Option<Moment<Mono>> {
        let timed = self.grants.iter().filter(|grant| grant.service != UnicastService::DelayResp);
        timed.map(|grant| grant.due).min()
    }

    /// When a grant ends.
    pub(super) fn expiry(&self) -> Option<Moment<Mono>> {
        self.grants.iter().map(|grant| grant.until).min()
    }

    pub(super) fn len(&self) -> usize {
        self.grants.len()
    }
}

/// The next time of a row, after `now`: messages that were missed are not made up for.
pub(super) fn following(due: Moment<Mono>, interval: Span, now: Moment<Mono>) -> Moment<Mono> {
    let next = due + interval;
    if next > now { next } else { now + interval }
}
