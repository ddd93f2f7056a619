//! The challenge: exchanges that contradict the server's own past.
//!
//! Either the server lies for a while and must not be followed, or its time stepped for good and must be followed in
//! the end. An exchange that contradicts opens a challenge with a candidate for the new time; later ones support the
//! candidate or open another. A candidate wins after `step_patience`, and at once against a past that itself rests on
//! only a few exchanges. Any exchange that agrees with the past ends the challenge.

use super::proof::alone;
use crate::frame::{Move, Point};
use crate::interval::Interval;
use crate::tuning::guard::{
    CLAIMED_AGAIN, CONTRADICTIONS_LIMIT, CONTRADICTIONS_LIMIT_WHILE_YOUNG, SUPPORTERS, SUPPORTERS_AGAINST_YOUNG, YOUNG,
};
use ffclock_units::{Counter, Exchange};

/// What a contradiction led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The past holds.
    PastHolds,
    /// The server's time stepped; the new time is accepted.
    StepAccepted,
    /// Neither makes sense: the counter is not what it was taken for.
    CounterDoubted,
}

/// A new time that the server may have stepped to.
#[derive(Clone, Copy, Debug)]
struct Candidate {
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
    candidate: Option<Candidate>,
    in_a_row: u64,
    /// Where the row began.
    since: f64,
}

/// What a contradiction is compared with.
#[derive(Clone, Copy, Debug)]
pub struct ChallengeContext {
    /// The range of the rate.
    pub rates: Interval,
    /// How many exchanges the past rests on.
    pub past: u64,
    /// How long a contradiction must last, s.
    pub patience: f64,
}

impl Challenge {
    /// Whether the server contradicts itself at present.
    pub fn is_open(&self) -> bool {
        self.in_a_row > 0
    }

    /// What the server says of the height at `x`, not before its last exchange, since it contradicts itself. `None`
    /// where one exchange alone contradicts, which may be a stray packet.
    pub fn claimed(&self, x: f64, rates: Interval) -> Option<Interval> {
        let last = self.candidate.filter(|_| self.in_a_row >= CLAIMED_AGAIN)?;
        Some(last.height.carried((x - last.x).max(0.0), rates))
    }

    /// The past was confirmed.
    pub fn dismiss(&mut self) {
        *self = Challenge::default();
    }

    /// Takes an exchange that contradicts.
    pub fn take(&mut self, exchange: &Exchange, point: &Point, context: ChallengeContext) -> Resolution {
        if self.in_a_row == 0 {
            self.since = point.x;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        let candidate = self.supported(exchange, point, context.rates);
        self.candidate = Some(candidate);
        let young = context.past < YOUNG;
        let won = if young {
            candidate.supporters >= SUPPORTERS_AGAINST_YOUNG && candidate.supporters > context.past
        } else {
            candidate.supporters >= SUPPORTERS && candidate.x - candidate.begun >= context.patience
        };
        if won {
            return Resolution::StepAccepted;
        }
        // A server that talks nonsense for a while is to be waited for, however often it is asked.
        let hopeless = if young {
            self.in_a_row >= CONTRADICTIONS_LIMIT_WHILE_YOUNG
        } else {
            self.in_a_row >= CONTRADICTIONS_LIMIT && point.x - self.since >= context.patience
        };
        if hopeless && candidate.supporters < SUPPORTERS { Resolution::CounterDoubted } else { Resolution::PastHolds }
    }

    /// The present candidate with the support of this exchange, or a new one.
    fn supported(&self, exchange: &Exchange, point: &Point, rates: Interval) -> Candidate {
        let own = alone(point, rates);
        let (sent, received) = (exchange.sent.counter, exchange.received.counter);
        let opened = Candidate { begun: point.x, x: point.x, height: own, sent, received, supporters: 1 };
        let Some(candidate) = self.candidate else { return opened };
        if !(sent.is_after(candidate.sent) && received.is_after(candidate.received)) {
            return opened;
        }
        match candidate.height.carried_to_meet(point.x - candidate.x, rates, own) {
            Some(height) => {
                let supporters = candidate.supporters.saturating_add(1);
                Candidate { height, supporters, begun: candidate.begun, ..opened }
            }
            None => opened,
        }
    }

    /// Follows a move of the frame.
    pub fn follow(&mut self, step: Move) {
        self.since -= step.x_step;
        if let Some(candidate) = &mut self.candidate {
            candidate.begun -= step.x_step;
            candidate.x -= step.x_step;
            candidate.height.follow(step.y_step);
        }
    }
}
