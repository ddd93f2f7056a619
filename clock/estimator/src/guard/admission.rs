//! Which exchanges are let in at all, and whose they are.

use crate::Rejection;
use crate::frame::Point;
use crate::tuning::guard::{COARSENESS, LONGEST_TRIP, STRAYS};
use ffclock_units::{Counter, Exchange, ServerIdentity};

#[derive(Clone, Copy, Debug)]
struct Order {
    sent: Counter,
    received: Counter,
}

impl Order {
    fn of(exchange: &Exchange) -> Self {
        Order { sent: exchange.sent.counter, received: exchange.received.counter }
    }

    fn is_after(self, earlier: Order) -> bool {
        self.sent.is_after(earlier.sent) && self.received.is_after(earlier.received)
    }
}

/// Refuses what cannot be an exchange of this sequence.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    last: Option<Order>,
    stray: Option<Order>,
    strays: u32,
}

impl Admission {
    /// # Errors
    /// Why the exchange is impossible, whatever came before it.
    pub fn check_shape(exchange: &Exchange, point: &Point, nominal_error: f64) -> Result<(), Rejection> {
        if !exchange.received.counter.is_after(exchange.sent.counter) {
            return Err(Rejection::NegativeRoundTrip);
        }
        if !(point.trip <= LONGEST_TRIP && point.sent_half + point.received_half <= LONGEST_TRIP) {
            return Err(Rejection::RoundTripTooLong);
        }
        if exchange.server_out < exchange.server_in {
            return Err(Rejection::ServerBackwards);
        }
        let residence = point.trip - point.net;
        let tolerance = point.sent_half + point.received_half + residence * nominal_error + COARSENESS;
        if point.net < -tolerance { Err(Rejection::NegativeRoundTrip) } else { Ok(()) }
    }

    /// # Errors
    /// [`Rejection::OutOfOrder`] unless the exchange was both sent and received after the last one that was let in.
    pub fn check_order(&mut self, exchange: &Exchange) -> Result<(), Rejection> {
        let order = Order::of(exchange);
        if self.last.is_none_or(|last| order.is_after(last)) {
            return Ok(());
        }
        let follows = self.stray.is_some_and(|stray| order.is_after(stray));
        self.strays = if follows { self.strays.saturating_add(1) } else { 1 };
        self.stray = Some(order);
        Err(Rejection::OutOfOrder)
    }

    /// Whether the last exchange that was let in must have been wrong about its counter readings.
    pub fn is_astray(&self) -> bool {
        self.strays >= STRAYS
    }

    /// Lets an exchange in.
    pub fn admit(&mut self, exchange: &Exchange) {
        *self = Admission { last: Some(Order::of(exchange)), ..Admission::default() };
    }
}

/// The last few identities of the server.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    present: Option<ServerIdentity>,
    known: [Option<ServerIdentity>; 4],
    next: u8,
}

/// What an exchange says about whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Familiarity {
    /// The same as before, or the first.
    Same,
    /// Another, but one that was here lately.
    Known,
    /// One that was not here lately.
    New,
}

impl Identities {
    /// Takes note of the identity of an exchange. One that returns is known at once: a server that alternates between
    /// two references must not be silenced by that.
    pub fn meet(&mut self, identity: ServerIdentity) -> Familiarity {
        let before = self.present.replace(identity);
        if before == Some(identity) {
            return Familiarity::Same;
        }
        if self.known.contains(&Some(identity)) {
            return Familiarity::Known;
        }
        if let Some(cell) = self.known.get_mut(usize::from(self.next % 4)) {
            *cell = Some(identity);
        }
        self.next = self.next.wrapping_add(1);
        if before.is_none() { Familiarity::Same } else { Familiarity::New }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(reference_id: u32) -> ServerIdentity {
        ServerIdentity { stratum: 1, reference_id }
    }

    /// "TTL flapping (equal-cost routes) that silences updates": an identity that returns costs nothing.
    #[test]
    fn a_flapping_identity_is_new_once() {
        let mut identities = Identities::default();
        let met: [Familiarity; 6] = core::array::from_fn(|step| identities.meet(identity(step as u32 % 2)));
        use Familiarity::{Known, New, Same};
        assert_eq!(met, [Same, New, Known, Known, Known, Known]);
        assert_eq!(identities.meet(identity(1)), Same);
        for other in 10..14 {
            assert_eq!(identities.meet(identity(other)), New);
        }
        assert_eq!(identities.meet(identity(1)), New);
    }
}
