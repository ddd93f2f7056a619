//! What the four times of a packet say, and whether they can be true.
//!
//! T1 and T4 are ours, T2 and T3 the reflector's. Each lies within its bound of the true time, so a delay lies within
//! the sum of two bounds. Nothing arrives before it was sent: a delay that stays below zero with its whole bound added
//! proves that a clock, or the claim about its error, is false. Such a packet is kept apart.

use crate::packet::TestReply;
use ffclock_units::{Bound, Moment, Span, Utc};

/// The rounding of a timestamp in a packet: 2^-32 s, twice the largest error of NTP's form.
const ROUNDING: Bound = Bound::of(Span::from_units(1 << 32));

/// A time by a page, with its largest error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockedTime {
    /// The time.
    pub time: Moment<Utc>,
    /// Its largest error, the width of the stamp included.
    pub bound: Bound,
    /// Whether the clock was synchronised; otherwise the time is by a counter from an origin that means nothing.
    pub is_synchronised: bool,
}

/// Our side of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnTimes {
    /// T1: when the request left.
    pub sent: ClockedTime,
    /// T4: when the reply arrived.
    pub received: ClockedTime,
    /// From one to the other, by the counter.
    pub interval: Span,
    /// TAI - UTC.
    pub tai_ahead: Span,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PacketFate {
    /// Both one-way delays are known.
    Measured,
    /// No reply within the sender's patience.
    Lost,
    /// A clock is not synchronised: the round trip alone is known.
    Unsynchronised,
    /// The reflector says that its reply left before the request arrived.
    LeftBeforeArrival,
    /// The reflector says that it held the packet for longer than the round trip took.
    HeldTooLong,
    /// The request would have arrived before it was sent.
    ForwardBelowZero,
    /// The reply would have arrived before it was sent.
    BackwardBelowZero,
}

impl PacketFate {
    /// Every fate, in the order of their numbers in files.
    pub const ALL: [PacketFate; 7] = [
        PacketFate::Measured,
        PacketFate::Lost,
        PacketFate::Unsynchronised,
        PacketFate::LeftBeforeArrival,
        PacketFate::HeldTooLong,
        PacketFate::ForwardBelowZero,
        PacketFate::BackwardBelowZero,
    ];

    /// The name in files, answers and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            PacketFate::Measured => "measured",
            PacketFate::Lost => "lost",
            PacketFate::Unsynchronised => "unsynchronised",
            PacketFate::LeftBeforeArrival => "left-before-arrival",
            PacketFate::HeldTooLong => "held-too-long",
            PacketFate::ForwardBelowZero => "forward-below-zero",
            PacketFate::BackwardBelowZero => "backward-below-zero",
        }
    }

    /// The fate of a name.
    pub fn from_name(name: &str) -> Option<PacketFate> {
        PacketFate::ALL.into_iter().find(|fate| fate.name() == name)
    }

    /// Whether the times contradict one another, so that a clock or its claim is false.
    pub fn is_contradiction(self) -> bool {
        self > PacketFate::Unsynchronised
    }
}

/// A delay and its largest error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// From departure to arrival.
    pub delay: Span,
    /// The bounds of both clocks.
    pub bound: Bound,
}

/// What the times of a packet say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JudgedPacket {
    /// Whether they can be true.
    pub fate: PacketFate,
    /// T2 - T1: from us to the reflector.
    pub forward: Delay,
    /// T4 - T3: from the reflector to us.
    pub backward: Delay,
    /// (T4 - T1) - (T3 - T2): without the time in the reflector.
    pub round_trip: Span,
    /// T3 - T2: in the reflector.
    pub held: Span,
}

/// Judges a reply. A reply whose error estimate is missing counts as one of unknown error.
pub fn judge(own: &OwnTimes, reply: &TestReply) -> JudgedPacket {
    let form = reply.error.form();
    let near = (own.received.time, own.tai_ahead);
    let (received, sent) = (reply.received.to_utc(form, near), reply.sent.to_utc(form, near));
    let theirs = reply.error.bound().unwrap_or(Bound::UNKNOWN) + ROUNDING;
    let held = sent - received;
    let judged = JudgedPacket {
        fate: PacketFate::Measured,
        forward: Delay { delay: received - own.sent.time, bound: own.sent.bound + theirs },
        backward: Delay { delay: own.received.time - sent, bound: own.received.bound + theirs },
        round_trip: own.interval - held,
        held,
    };
    let both = own.sent.is_synchronised && own.received.is_synchronised && reply.error.is_synchronised();
    JudgedPacket { fate: fate(&judged, both.then_some(theirs)), ..judged }
}

/// `theirs` is the bound of T2 and of T3, if all clocks are synchronised.
fn fate(judged: &JudgedPacket, theirs: Option<Bound>) -> PacketFate {
    let Some(theirs) = theirs else { return PacketFate::Unsynchronised };
    let slack = (theirs + theirs).as_span();
    let is_impossible = |span: Span, slack: Span| (span + slack).is_negative();
    if is_impossible(judged.held, slack) {
        PacketFate::LeftBeforeArrival
    } else if is_impossible(judged.round_trip, slack) {
        PacketFate::HeldTooLong
    } else if is_impossible(judged.forward.delay, judged.forward.bound.as_span()) {
        PacketFate::ForwardBelowZero
    } else if is_impossible(judged.backward.delay, judged.backward.bound.as_span()) {
        PacketFate::BackwardBelowZero
    } else {
        PacketFate::Measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_estimate::ErrorEstimate;
    use crate::packet::{TestRequest, WireTime};

    fn at(micros: i64) -> Moment<Utc> {
        Moment::from_origin(Span::from_secs(1_800_000_000) + Span::from_micros(micros))
    }

    fn own(received: i64) -> OwnTimes {
        let clocked =
            |micros| ClockedTime { time: at(micros), bound: Bound::of(Span::from_micros(10)), is_synchronised: true };
        OwnTimes {
            sent: clocked(0),
            received: clocked(received),
            interval: Span::from_micros(received),
            tai_ahead: Span::from_secs(37),
        }
    }

    fn reply(received: i64, sent: i64) -> TestReply {
        let error = ErrorEstimate::of(Bound::of(Span::from_micros(20)));
        TestReply {
            sequence: 0,
            sent: WireTime::of(at(sent)),
            error,
            received: WireTime::of(at(received)),
            request: TestRequest { sequence: 0, sent: WireTime::of(at(0)), error, session: 1 },
        }
    }

    #[test]
    fn each_direction_has_its_delay_and_the_bounds_of_both_clocks() {
        let judged = judge(&own(1000), &reply(300, 350));
        let nanos = |span: Span| span.as_nanos();
        assert_eq!(judged.fate, PacketFate::Measured);
        assert_eq!((nanos(judged.forward.delay), nanos(judged.backward.delay)), (300_000, 650_000));
        assert_eq!((nanos(judged.round_trip), nanos(judged.held)), (950_000, 50_000));
        assert!(judged.forward.bound >= Bound::of(Span::from_micros(30)));
        assert!(judged.forward.bound <= Bound::of(Span::from_micros(31)));
    }

    #[test]
    fn what_lies_within_the_bounds_is_believed_and_no_more() {
        assert_eq!(judge(&own(1000), &reply(-25, 30)).fate, PacketFate::Measured);
        assert_eq!(judge(&own(1000), &reply(-40, 30)).fate, PacketFate::ForwardBelowZero);
        assert_eq!(judge(&own(1000), &reply(900, 1040)).fate, PacketFate::BackwardBelowZero);
        assert_eq!(judge(&own(1000), &reply(500, 400)).fate, PacketFate::LeftBeforeArrival);
        assert_eq!(judge(&own(1000), &reply(100, 1200)).fate, PacketFate::HeldTooLong);
    }

    #[test]
    fn a_clock_that_is_not_synchronised_gives_the_round_trip_alone() {
        let mut theirs = reply(5_000_000, 5_000_050);
        theirs.error = ErrorEstimate::unsynchronised();
        let judged = judge(&own(1000), &theirs);
        assert_eq!((judged.fate, judged.round_trip.as_nanos()), (PacketFate::Unsynchronised, 950_000));
        let mut ours = own(1000);
        ours.sent.is_synchronised = false;
        assert_eq!(judge(&ours, &reply(300, 350)).fate, PacketFate::Unsynchronised);
    }

    #[test]
    fn names_are_read_back() {
        for fate in PacketFate::ALL {
            assert_eq!(PacketFate::from_name(fate.name()), Some(fate));
        }
        assert_eq!(PacketFate::from_name("kept"), None);
    }
}
