//! What an estimator says about one exchange, and about itself.

use ffclock_units::{Bound, ClockError, Period, Rate, Span};

/// How one exchange was used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// How far the exchange was used.
    pub verdict: Verdict,
    /// What happened on the way.
    pub events: Events,
    pub(crate) measure: Measure,
}

/// The figures of one exchange, in seconds; NaN where there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measure {
    pub round_trip: f64,
    pub point_error: f64,
    pub offset: f64,
}

impl Measure {
    pub const NONE: Measure = Measure { round_trip: f64::NAN, point_error: f64::NAN, offset: f64::NAN };
}

impl Outcome {
    pub(crate) const fn rejected(why: Rejection) -> Self {
        Outcome { verdict: Verdict::Rejected(why), events: Events::NONE, measure: Measure::NONE }
    }

    /// The round trip net of the server's residence; `None` for a rejected exchange.
    pub fn round_trip(&self) -> Option<Span> {
        finite(self.measure.round_trip).map(Span::from_seconds)
    }

    /// The point error: how far the round trip exceeds the floor, with the stamps' widths; `None` for a rejected
    /// exchange.
    pub fn point_error(&self) -> Option<Bound> {
        finite(self.measure.point_error).map(|error| Bound::of(Span::from_seconds(error)))
    }

    /// The error that this exchange alone, taking its two ways as equally long but for the configured asymmetry,
    /// ascribes to the clock as it was predicted before the exchange; `None` for a rejected exchange and for the first
    /// one.
    pub fn naive_error(&self) -> Option<ClockError> {
        finite(self.measure.offset).map(|offset| ClockError::new(Span::from_seconds(offset)))
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// How far an exchange was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// By all stages.
    Used,
    /// For the round-trip floor only: the server has just become another one.
    FloorOnly,
    /// For nothing yet: it contradicts what earlier exchanges and the counter prove. If its successors insist, the
    /// server's new time is accepted ([`Event::ServerStepAccepted`]).
    Contradiction,
    /// Not at all.
    Rejected(Rejection),
}

/// Why an exchange was not used at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rejection {
    /// Sent or received no later than an earlier one: a reply out of order, or twice.
    OutOfOrder,
    /// Received no later than sent, or the server kept the request longer than the whole round trip took.
    NegativeRoundTrip,
    /// The round trip lasted more than 16 s, or its stamps are as wide as that.
    RoundTripTooLong,
    /// The server sent the reply before it received the request.
    ServerBackwards,
}

/// Something that happened while an exchange was taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Event {
    /// The round-trip floor was raised: the path became longer some time ago.
    FloorShiftUp,
    /// The round-trip floor fell by more than noise: the path became shorter.
    FloorShiftDown,
    /// The long-term period was measured again.
    RateUpdated,
    /// A measurement of the long-term period was too far off to be believed, and was dropped.
    RateInsane,
    /// The local rate was measured again.
    LocalRateUpdated,
    /// The local rate became unknown; the long-term period serves instead.
    LocalRateLost,
    /// The absolute clock was corrected.
    OffsetUpdated,
    /// No exchange in the window was good enough: the absolute clock runs on.
    OffsetHeld,
    /// A correction was too large to be believed, and was dropped.
    OffsetInsane,
    /// A server that had contradicted for long enough was believed: the time stepped.
    ServerStepAccepted,
    /// The server named another reference or stratum.
    IdentityChanged,
    /// The counter's rate moved by more than the wander that was assumed, or the server's by as little: the bound was
    /// widened, and a larger wander is assumed from now on ([`Summary::wander`]).
    WanderExceeded,
    /// The remembered rate proved wrong and was dropped.
    MemoryDropped,
    /// The stated error of the asymmetry contradicts the exchanges; it was left out.
    AsymmetryContradicted,
    /// The published time lies outside what is proven; the bound covers both.
    OutsideProof,
    /// The counter left the range that was assumed about its nominal frequency, or its readings went back for good: a
    /// new start.
    Restarted,
    /// The warm-up is over.
    WarmupEnded,
    /// The learned and the classic time came to differ by more than their uncertainties explain.
    Disagreement,
    /// The learned filter had lost track, and began again with this exchange.
    FilterRestarted,
    /// The counter's rate changed by more than any model of the bank expected; a burst of process noise allows for it.
    RateJumped,
    /// The learned filter was re-initialised where the fastest of the last packets meet: from there those exchanges are
    /// likelier.
    Reinitialised,
}

impl Event {
    const ALL: [Event; 21] = [
        Event::FloorShiftUp,
        Event::FloorShiftDown,
        Event::RateUpdated,
        Event::RateInsane,
        Event::LocalRateUpdated,
        Event::LocalRateLost,
        Event::OffsetUpdated,
        Event::OffsetHeld,
        Event::OffsetInsane,
        Event::ServerStepAccepted,
        Event::IdentityChanged,
        Event::WanderExceeded,
        Event::MemoryDropped,
        Event::AsymmetryContradicted,
        Event::OutsideProof,
        Event::Restarted,
        Event::WarmupEnded,
        Event::Disagreement,
        Event::FilterRestarted,
        Event::RateJumped,
        Event::Reinitialised,
    ];

    const UPSETS: [Event; 9] = [
        Event::FloorShiftUp,
        Event::FloorShiftDown,
        Event::ServerStepAccepted,
        Event::IdentityChanged,
        Event::WanderExceeded,
        Event::Restarted,
        Event::FilterRestarted,
        Event::RateJumped,
        Event::Reinitialised,
    ];
}

/// A set of [`Event`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Events(u32);

impl Events {
    /// Nothing happened.
    pub const NONE: Events = Events(0);

    /// Whether `event` happened.
    pub const fn contains(self, event: Event) -> bool {
        self.0 & (1 << event as u8) != 0
    }

    /// Whether nothing happened.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the path, the server or the oscillator changed in a way that the clock has yet to learn.
    pub fn is_upset(self) -> bool {
        Event::UPSETS.into_iter().any(|event| self.contains(event))
    }

    /// All that happened, in the order of declaration.
    pub fn iter(self) -> impl Iterator<Item = Event> {
        Event::ALL.into_iter().filter(move |event| self.contains(*event))
    }

    /// These events and others.
    pub(crate) const fn with(self, others: Events) -> Events {
        Events(self.0 | others.0)
    }

    /// These events, but not this one.
    pub(crate) const fn without(self, event: Event) -> Events {
        Events(self.0 & !(1 << event as u8))
    }

    pub(crate) fn add(&mut self, event: Event) {
        self.0 |= 1 << event as u8;
    }
}

/// The figures of an estimator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Exchanges taken in, with the rejected ones.
    pub exchanges: u64,
    /// Exchanges that all stages used.
    pub used: u64,
    /// Exchanges that were rejected.
    pub rejected: u64,
    /// Exchanges that contradicted the proof.
    pub contradictions: u64,
    /// Steps of the server that were accepted.
    pub server_steps: u64,
    /// The smallest round trip of the present path, net of the server's residence.
    pub floor: Span,
    /// How often the floor was raised because the path became longer.
    pub shifts_up: u64,
    /// How often the floor fell by more than noise.
    pub shifts_down: u64,
    /// The long-term period.
    pub period: Period,
    /// The largest relative error of `period` as a mean over the history, as the point errors of its two exchanges
    /// suggest.
    pub period_error: Rate,
    /// The local period relative to `period`; `None` while it is unknown.
    pub local_rate: Option<Rate>,
    /// Uncorrected clock minus absolute clock at the last exchange. The uncorrected clock is continuous and runs at
    /// `period`.
    pub offset: ClockError,
    /// The time between exchanges, smoothed; zero before the second one.
    pub poll: Span,
    /// The largest deviation of the counter's rate from its mean over the last day that the bound assumes: what was
    /// configured, or more where the exchanges showed more.
    pub wander: Rate,
    /// Whether the estimator is still warming up.
    pub warming_up: bool,
    /// How the learned time stands to the classic one.
    pub agreement: Agreement,
}

/// How the learned time stands to the classic one, which is always kept beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Agreement {
    /// The classic algorithm was chosen: there is no other.
    Alone,
    /// The learned part has seen too little: its queueing densities are still mostly what was assumed.
    TooLittleData,
    /// They agree within their uncertainties.
    Agree,
    /// They are further apart than their uncertainties explain. One of them is misled: after a change of the route in
    /// one direction it is the classic one, which cannot see directions.
    Disagree,
}

impl Agreement {
    /// Every one of them.
    pub const ALL: [Agreement; 4] = [Agreement::Alone, Agreement::TooLittleData, Agreement::Agree, Agreement::Disagree];

    /// The name in logs, metrics, the control protocol and the answers of commands.
    pub const fn name(self) -> &'static str {
        match self {
            Agreement::Alone => "alone",
            Agreement::TooLittleData => "too-little-data",
            Agreement::Agree => "agree",
            Agreement::Disagree => "disagree",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_events_holds_each_of_them_on_its_own() {
        for event in Event::ALL {
            let mut events = Events::NONE;
            events.add(event);
            assert!(events.contains(event) && !events.is_empty());
            assert!(events.iter().eq([event]));
        }
    }

    #[test]
    fn a_rejected_exchange_has_no_figures() {
        let outcome = Outcome::rejected(Rejection::OutOfOrder);
        assert_eq!((outcome.round_trip(), outcome.point_error(), outcome.naive_error()), (None, None, None));
    }
}
