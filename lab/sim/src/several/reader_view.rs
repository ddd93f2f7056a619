//! What readers see of a clock of several servers.

use super::{Contact, Contender, Credence, MultiServerClock, SetStep};
use crate::clock::{Read, ReadingClaims};
use ffclock_units::{Counter, Estimate, TaiReading};

/// A clock under test, and what it published last.
pub(crate) struct ReaderView {
    clock: Box<dyn MultiServerClock>,
    /// The believed servers, as bits.
    believed: u32,
    shown: Option<Estimate>,
    step: Option<SetStep>,
    /// Servers of which it has heard, as bits.
    heard: u32,
}

impl ReaderView {
    pub(crate) fn new(clock: Box<dyn MultiServerClock>) -> Self {
        ReaderView { clock, believed: 0, shown: None, step: None, heard: 0 }
    }

    /// Publishes at `counter`.
    fn publish(&mut self, counter: Counter) {
        let now = self.clock.estimate(counter);
        let servers = (0..u32::BITS).filter(|server| self.heard >> server & 1 == 1);
        let believed = servers
            .filter(|server| self.clock.credence(*server as usize) == Credence::Believed)
            .fold(0, |set, server| set | 1 << server);
        if believed != self.believed
            && let (Some(before), Some(after)) = (self.shown, now)
        {
            self.note_step(&before.at(counter), &after.at(counter));
        }
        (self.believed, self.shown) = (believed, now);
    }

    /// The largest of several at once counts.
    fn note_step(&mut self, before: &TaiReading, after: &TaiReading) {
        let size = (after.time - before.time).abs();
        let over_uncertainty = size.as_seconds() / before.uncertainty.as_seconds();
        if self.step.is_none_or(|step| step.size < size) {
            self.step = Some(SetStep { size, over_uncertainty });
        }
    }
}

impl Contender for ReaderView {
    fn hear(&mut self, server: usize, contact: Contact) {
        self.heard |= 1 << server;
        match contact {
            Contact::Exchange(exchange) => {
                self.clock.take(server, exchange);
                self.publish(exchange.received.counter);
            }
            Contact::Change(change, counter) => {
                self.clock.note(server, change, counter);
                self.publish(counter);
            }
            Contact::Sent(_) | Contact::Lost(_) => {}
        }
    }

    fn broke(&mut self) {
        self.clock.broke();
        (self.believed, self.shown) = (0, None);
    }

    fn read(&mut self, counter: Counter) -> Option<Read> {
        self.publish(counter);
        let estimate = self.shown?;
        let TaiReading { time, uncertainty, noise, bound, .. } = estimate.at(counter);
        let strict = self.clock.bound_strict(counter);
        let claims = ReadingClaims { bound, strict, uncertainty, noise, difference_period: estimate.difference_period };
        Some(Read { time, claims: Some(claims) })
    }

    fn credence(&self, server: usize) -> Option<Credence> {
        Some(self.clock.credence(server))
    }

    fn take_step(&mut self) -> Option<SetStep> {
        self.step.take()
    }
}
