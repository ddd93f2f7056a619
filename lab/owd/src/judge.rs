//! What the four times of a packet say, and whether they can be true.
//!
//! T1 and T4 are ours, T2 and T3 the reflector's. Each lies within its bound of the true time, so a delay lies within
//! the sum of two bounds. Nothing arrives before it was sent: a delay that stays below zero with its whole bound added
//! proves that a clock, or the claim about its error, is false. Such a packet is kept apart. The round trip and the
//! time in the reflector are intervals of one clock each, so they are judged without synchronised clocks as well.
//!
//! Where the kernel gave no stamp, user space's reading stands in its place: before the packet left, or after it came,
//! by a time that no bound holds. Such a time makes delays longer and never shorter, so what contradicts itself does so
//! all the same; but no delay is made of it.

use crate::packet::TestReply;
use ffclock_units::{Bound, Moment, Span, Utc};

/// The rounding of a timestamp in a packet: 2^-32 s, twice the largest error of NTP's form.
const ROUNDING: Bound = Bound::of(Span::from_units(1 << 32));
/// A clock that is not synchronised may err without limit, but an interval of it only by how fine its readings are...
const COARSEST: Bound = Bound::of(Span::from_millis(1));
/// ...and by its rate: at most this part of the interval, of two clocks whose oscillators err by 500 ppm each.
const RATE_PARTS: i128 = 1000;

/// A time by a page, with its largest error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockedTime {
    /// The time.
    pub time: Moment<Utc>,
    /// Its largest error, the width of the stamp included.
    pub bound: Bound,
    /// Whether the clock was synchronised; otherwise the time is by a counter from an origin that means nothing.
    pub is_synchronised: bool,
    /// Whether the kernel stamped the packet; otherwise user space read the clock before it left, or after it came.
    pub is_stamped: bool,
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
    /// A clock is not synchronised: the round trip alone is known, and is possible.
    Unsynchronised,
    /// The reflector says that its reply left before the request arrived.
    LeftBeforeArrival,
    /// The reflector says that it held the packet for longer than the round trip took.
    HeldTooLong,
    /// The request would have arrived before it was sent.
    ForwardBelowZero,
    /// The reply would have arrived before it was sent.
    BackwardBelowZero,
    /// A stamp of the kernel is missing, and so is each delay that needs it.
    Unstamped,
}

impl PacketFate {
    /// Every fate, in the order of their numbers in files.
    pub const ALL: [PacketFate; 8] = [
        PacketFate::Measured,
        PacketFate::Lost,
        PacketFate::Unsynchronised,
        PacketFate::LeftBeforeArrival,
        PacketFate::HeldTooLong,
        PacketFate::ForwardBelowZero,
        PacketFate::BackwardBelowZero,
        PacketFate::Unstamped,
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
            PacketFate::Unstamped => "unstamped",
        }
    }

    /// The fate of a name.
    pub fn from_name(name: &str) -> Option<PacketFate> {
        PacketFate::ALL.into_iter().find(|fate| fate.name() == name)
    }

    /// Whether the times contradict one another, so that a clock or its claim is false.
    pub fn is_contradiction(self) -> bool {
        let sound = [PacketFate::Measured, PacketFate::Lost, PacketFate::Unsynchronised, PacketFate::Unstamped];
        !sound.contains(&self)
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
    /// T2 - T1: from us to the reflector; `None` where a clock is not synchronised, or a stamp is missing.
    pub forward: Option<Delay>,
    /// T4 - T3: from the reflector to us, with the same exceptions.
    pub backward: Option<Delay>,
    /// (T4 - T1) - (T3 - T2): without the time in the reflector; `None` where a stamp is missing.
    pub round_trip: Option<Span>,
    /// T3 - T2: in the reflector; `None` where it has no stamp.
    pub held: Option<Span>,
}

/// Judges a reply. A reply whose error estimate is missing counts as one of unknown error.
pub fn judge(own: &OwnTimes, reply: &TestReply) -> JudgedPacket {
    let form = reply.error.form();
    let near = (own.received.time, own.tai_ahead);
    let (received, sent) = (reply.received.to_utc(form, near), reply.sent.to_utc(form, near));
    let theirs = reply.error.bound().unwrap_or(Bound::UNKNOWN);
    let held = sent - received;
    let both = own.sent.is_synchronised && own.received.is_synchronised && reply.error.is_synchronised();
    let delay = |delay: Span, ours: Bound| both.then_some(Delay { delay, bound: ours + theirs + ROUNDING });
    let judged = JudgedPacket {
        fate: if both { PacketFate::Measured } else { PacketFate::Unsynchronised },
        forward: delay(received - own.sent.time, own.sent.bound),
        backward: delay(own.received.time - sent, own.received.bound),
        round_trip: Some(own.interval - held),
        held: Some(held),
    };
    let rate = Bound::of(Span::from_units(held.abs().units() / RATE_PARTS));
    let of_reading = if both { theirs } else { theirs.min(COARSEST) } + ROUNDING;
    let slack = of_reading + of_reading + if both { Bound::ZERO } else { rate };
    match contradiction(&judged, slack) {
        Some(fate) => JudgedPacket { fate, ..judged },
        None => without_unstamped(judged, own, reply),
    }
}

/// Whether the reflector says that it does not know when the packet came.
pub fn is_unstamped_there(reply: &TestReply) -> bool {
    reply.error.is_synchronised() && reply.error.is_largest()
}

/// Without what a missing stamp takes part in.
fn without_unstamped(judged: JudgedPacket, own: &OwnTimes, reply: &TestReply) -> JudgedPacket {
    let is_there = !is_unstamped_there(reply);
    let [is_sent, is_received] = [own.sent, own.received].map(|time| time.is_stamped);
    if is_sent && is_received && is_there {
        return judged;
    }
    JudgedPacket {
        fate: PacketFate::Unstamped,
        forward: judged.forward.filter(|_| is_sent && is_there),
        backward: judged.backward.filter(|_| is_received && is_there),
        round_trip: None,
        held: judged.held.filter(|_| is_there),
    }
}

/// `slack` is how much an interval of the reflector may err.
fn contradiction(judged: &JudgedPacket, slack: Bound) -> Option<PacketFate> {
    let is_impossible = |span: Span, bound: Bound| (span + bound.as_span()).is_negative();
    let is_interval_impossible = |span: Option<Span>| span.is_some_and(|span| is_impossible(span, slack));
    let is_below = |delay: Option<Delay>| delay.is_some_and(|delay| is_impossible(delay.delay, delay.bound));
    if is_interval_impossible(judged.held) {
        Some(PacketFate::LeftBeforeArrival)
    } else if is_interval_impossible(judged.round_trip) {
        Some(PacketFate::HeldTooLong)
    } else if is_below(judged.forward) {
        Some(PacketFate::ForwardBelowZero)
    } else if is_below(judged.backward) {
        Some(PacketFate::BackwardBelowZero)
    } else {
        None
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
        let bound = Bound::of(Span::from_micros(10));
        let clocked = |micros| ClockedTime { time: at(micros), bound, is_synchronised: true, is_stamped: true };
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
        let (forward, backward) = (judged.forward.unwrap(), judged.backward.unwrap());
        assert_eq!((nanos(forward.delay), nanos(backward.delay)), (300_000, 650_000));
        assert_eq!((judged.round_trip.map(nanos), judged.held.map(nanos)), (Some(950_000), Some(50_000)));
        assert!(forward.bound >= Bound::of(Span::from_micros(30)));
        assert!(forward.bound <= Bound::of(Span::from_micros(31)));
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
        assert_eq!((judged.fate, judged.round_trip.unwrap().as_nanos()), (PacketFate::Unsynchronised, 950_000));
        assert_eq!((judged.forward, judged.backward), (None, None));
        let mut ours = own(1000);
        ours.sent.is_synchronised = false;
        assert_eq!(judge(&ours, &reply(300, 350)).fate, PacketFate::Unsynchronised);
    }

    /// Its offset may be anything; its intervals may not.
    #[test]
    fn an_interval_that_cannot_be_is_found_without_a_synchronised_clock() {
        let fate = |error: ErrorEstimate, received, (arrived, left)| {
            judge(&own(received), &TestReply { error, ..reply(arrived, left) }).fate
        };
        let (free, fine) = (ErrorEstimate::unsynchronised(), ErrorEstimate::from_raw(1));
        let far = 7_000_000_000;
        assert_eq!(fate(free, 1000, (far, far + 5_000_000)), PacketFate::HeldTooLong);
        assert_eq!(fate(free, 1000, (far, far - 5_000_000)), PacketFate::LeftBeforeArrival);
        // Readings of a millisecond err by two; those that claim to be finer do not.
        assert_eq!(fate(free, 1000, (far, far + 2900)), PacketFate::Unsynchronised);
        assert_eq!(fate(fine, 1000, (far, far + 2900)), PacketFate::HeldTooLong);
        // A clock that is 900 ppm faster than ours.
        assert_eq!(fate(fine, 2_000_000, (far, far + 2_001_800)), PacketFate::Unsynchronised);
        let mut ours = own(1000);
        ours.sent.is_synchronised = false;
        assert_eq!(judge(&ours, &reply(300, 5_000_000)).fate, PacketFate::HeldTooLong);
    }

    /// The reply arrived after 700 us and waited 300 us for user space; nothing knows that.
    #[test]
    fn a_time_of_user_space_enters_no_delay() {
        let fate_of = |change: fn(&mut OwnTimes, &mut TestReply)| {
            let (mut own, mut reply) = (own(1000), reply(300, 350));
            change(&mut own, &mut reply);
            let judged = judge(&own, &reply);
            let known = [judged.forward.is_some(), judged.backward.is_some(), judged.held.is_some()];
            (judged.fate, known, judged.round_trip.is_some())
        };
        let unstamped = |known| (PacketFate::Unstamped, known, false);
        assert_eq!(fate_of(|own, _| own.received.is_stamped = false), unstamped([true, false, true]));
        assert_eq!(fate_of(|own, _| own.sent.is_stamped = false), unstamped([false, true, true]));
        assert_eq!(fate_of(|_, reply| reply.error = ErrorEstimate::unknown()), unstamped([false; 3]));
        // It left later than T1 says, and still too early.
        let below_zero = fate_of(|own, reply| {
            own.sent.is_stamped = false;
            reply.received = WireTime::of(at(-40));
        });
        assert_eq!(below_zero.0, PacketFate::ForwardBelowZero);
    }

    #[test]
    fn names_are_read_back() {
        for fate in PacketFate::ALL {
            assert_eq!(PacketFate::from_name(fate.name()), Some(fate));
        }
        assert_eq!(PacketFate::from_name("kept"), None);
    }
}
