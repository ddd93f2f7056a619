//! The challenger: what a server says that contradicts its own past.
//!
//! Either it lies for a while, then it must not be followed, or its time stepped for good, then it must be, some day. An exchange that
//! contradicts opens a challenge; others support it or open another. A challenge is won after patience, and at once against a
//! past that itself rests on no more than a few exchanges. Any exchange that agrees with the past ends it.

use super::proof::{Interval, alone};
use super::thresholds::Thresholds;
use crate::frame::{Move, Point};
use ffclock_units::{Counter, Exchange};

/// With fewer exchanges than this behind it, the past has no authority.
pub const YOUNG: u64 = 8;

/// A challenge needs this many exchanges against an established past, and this many against a young one.
const SUPPORTERS: u64 = 8;
const SUPPORTERS_AGAINST_YOUNG: u64 = 3;

/// So many contradictions in a row without a challenge that lasts mean that the assumption about the counter is wrong.
const HOPELESS: u64 = 64;
const HOPELESS_WHILE_YOUNG: u64 = 16;

/// What a contradiction led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// The past stands.
    Stands,
    /// The challenger is believed.
    Overturned,
    /// Neither makes sense: the counter is not what it was taken for.
    Mistrial,
}

#[derive(Clone, Copy, Debug)]
struct Claim {
    begun: f64,
    x: f64,
    height: Interval,
    sent: Counter,
    received: Counter,
    supporters: u64,
}

/// The open challenge, if any.
#[derive(Clone, Debug, Default)]
pub struct Challenge {
    claim: Option<Claim>,
    in_a_row: u64,
    /// Where the row began.
    since: f64,
}

impl Challenge {
    /// Whether the server contradicts itself at present.
    pub fn is_open(&self) -> bool {
        self.in_a_row > 0
    }

    /// The past was confirmed.
    pub fn dismiss(&mut self) {
        *self = Challenge::default();
    }

    /// Takes a contradicting exchange; `rates` is the range of the rate, `past` the number of exchanges behind the past.
    pub fn hear(&mut self, exchange: &Exchange, point: &Point, case: Case<'_>) -> Ruling {
        if self.in_a_row == 0 {
            self.since = point.x;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        let claim = self.supported(exchange, point, case.rates);
        self.claim = Some(claim);
        let young = case.past < YOUNG;
        let won = if young {
            claim.supporters >= SUPPORTERS_AGAINST_YOUNG && claim.supporters > case.past
        } else {
            claim.supporters >= SUPPORTERS && claim.x - claim.begun >= case.thresholds.step_patience
        };
        if won {
            return Ruling::Overturned;
        }
        // A server that talks nonsense for a while is to be waited for, however often it is asked.
        let hopeless = if young {
            self.in_a_row >= HOPELESS_WHILE_YOUNG
        } else {
            self.in_a_row >= HOPELESS && point.x - self.since >= case.thresholds.step_patience
        };
        if hopeless && claim.supporters < SUPPORTERS { Ruling::Mistrial } else { Ruling::Stands }
    }

    /// The present claim with the support of this exchange, or a new one that it opens.
    fn supported(&self, exchange: &Exchange, point: &Point, rates: Interval) -> Claim {
        let own = alone(point, rates);
        let (sent, received) = (exchange.sent.counter, exchange.received.counter);
        let opened = Claim { begun: point.x, x: point.x, height: own, sent, received, supporters: 1 };
        let Some(claim) = self.claim else { return opened };
        if !(sent.is_after(claim.sent) && received.is_after(claim.received)) {
            return opened;
        }
        match claim.height.carried_to_meet(point.x - claim.x, rates, own) {
            Some(height) => {
                let supporters = claim.supporters.saturating_add(1);
                Claim { height, supporters, begun: claim.begun, ..opened }
            }
            None => opened,
        }
    }

    /// Follows a move of the frame.
    pub fn follow(&mut self, step: Move) {
        self.since -= step.x_step;
        if let Some(claim) = &mut self.claim {
            claim.begun -= step.x_step;
            claim.x -= step.x_step;
            claim.height.follow(step.y_step);
        }
    }
}

/// What a contradiction is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The range of the rate.
    pub rates: Interval,
    /// How many exchanges the past rests on.
    pub past: u64,
    pub thresholds: &'a Thresholds,
}
