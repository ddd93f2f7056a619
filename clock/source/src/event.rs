//! The events of a source, and the queue in which they wait to be fetched.

use alloc::collections::VecDeque;
use core::fmt;
use ffclock_units::{Exchange, LeapAnnouncement};
use ffclock_wire::{DecodeError, KissCode};

/// Something that happened in the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request and its reply are complete.
    Exchange(Exchange),
    /// The request before the latest and its reply are complete: the latest reply was interleaved and said when that
    /// one left, or it is certain that no reply will (RFC 9769). It comes before other events about the latest request.
    EarlierExchange(Exchange),
    /// The server refused. DENY and RSTR end the conversation until [`Source::retarget`](crate::Source::retarget), RATE
    /// slows it down, and any other code has no effect.
    Kissed(KissCode),
    /// A packet, or an exchange that was nearly complete, was rejected.
    Rejected(Rejection),
    /// A request was not answered in time.
    Lost,
    /// The server has stopped giving usable answers.
    Unreachable,
    /// The server gives usable answers, for the first time or again.
    Reachable,
    /// The server began to announce a leap second at the end of the month. It has no effect until
    /// [`Source::set_leaps`](crate::Source::set_leaps).
    LeapAnnounced(LeapAnnouncement),
    /// The server stopped announcing this leap second before it happened.
    LeapWithdrawn(LeapAnnouncement),
}

impl Event {
    /// Whether it brings an exchange.
    fn is_exchange(&self) -> bool {
        matches!(self, Event::Exchange(_) | Event::EarlierExchange(_))
    }
}

macro_rules! rejections {
    ($($(#[$story:meta])+ $reason:ident = $name:literal,)*) => {
        /// Why a packet or an exchange was rejected.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Rejection { $($(#[$story])+ $reason,)* }

        impl Rejection {
            /// Every reason, in the order of declaration.
            pub const ALL: [Rejection; [$($name),*].len()] = [$(Rejection::$reason),*];

            /// A short name in lower case with hyphens, for logs and metrics.
            pub const fn name(self) -> &'static str {
                match self { $(Rejection::$reason => $name,)* }
            }
        }
    };
}

rejections! {
    /// Shorter than an NTP header.
    Truncated = "truncated",
    /// Longer than any reply to our requests.
    TooLong = "too-long",
    /// Neither version 3 nor version 4.
    Version = "version",
    /// Not a reply; for example our own request, sent back to us.
    Mode = "mode",
    /// Has the nonce of none of the last few requests: forged, or older than the requests that are kept.
    WrongOrigin = "wrong-origin",
    /// A second reply to the latest request that was answered.
    Duplicate = "duplicate",
    /// A second reply to a request after which a later one was answered.
    Replayed = "replayed",
    /// The first reply to a request that had been given up.
    Late = "late",
    /// The first reply to a request that had been given up, after a later one was answered.
    OutOfOrder = "out-of-order",
    /// The server says that its clock is not set.
    Unsynchronised = "unsynchronised",
    /// The stratum is above 15: not synchronised either.
    Stratum = "stratum",
    /// The server follows this host, so its time is ours.
    Loop = "loop",
    /// The server does not say when it received or answered.
    TimestampMissing = "timestamp-missing",
    /// The server says that it answered before it received, by more than its own precision.
    ServerTimesReversed = "server-times-reversed",
    /// The server claims an error above the configured limit.
    RootDistance = "root-distance",
    /// Within two seconds of an announced leap second, where a label does not identify its second.
    NearLeap = "near-leap",
    /// The reply is good, but the stamp of the request is missing.
    StampMissing = "stamp-missing",
    /// By our own stamps the reply arrived before the request left.
    StampsReversed = "stamps-reversed",
    /// The caller found it not authentic ([`Source::refuse_unauthentic`](crate::Source::refuse_unauthentic)).
    Unauthentic = "unauthentic",
}

impl Rejection {
    /// Whether the request ended with it, since its own reply or its stamp is of no use. Otherwise a packet was turned
    /// away that had nothing to do with an open request, which goes on waiting.
    pub const fn ends_request(self) -> bool {
        match self {
            Rejection::Truncated
            | Rejection::TooLong
            | Rejection::Version
            | Rejection::Mode
            | Rejection::WrongOrigin
            | Rejection::Duplicate
            | Rejection::Replayed
            | Rejection::Late
            | Rejection::OutOfOrder
            | Rejection::Unauthentic => false,
            Rejection::Unsynchronised
            | Rejection::Stratum
            | Rejection::Loop
            | Rejection::TimestampMissing
            | Rejection::ServerTimesReversed
            | Rejection::RootDistance
            | Rejection::NearLeap
            | Rejection::StampMissing
            | Rejection::StampsReversed => true,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<DecodeError> for Rejection {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Truncated => Rejection::Truncated,
            DecodeError::TooLong => Rejection::TooLong,
            DecodeError::Version(_) => Rejection::Version,
        }
    }
}

/// Events that wait. A caller that drains after each call never fills the queue; for other callers, exchanges are kept
/// longest.
#[derive(Debug)]
pub(crate) struct EventQueue(VecDeque<Event>);

impl EventQueue {
    const CAPACITY: usize = 32;

    pub(crate) fn new() -> Self {
        EventQueue(VecDeque::with_capacity(Self::CAPACITY))
    }

    /// Returns the event that had to be dropped for this one: the oldest that is no exchange, or else the oldest.
    pub(crate) fn push(&mut self, event: Event) -> Option<Event> {
        let given_up = if self.0.len() >= Self::CAPACITY {
            let oldest_other = self.0.iter().position(|event| !event.is_exchange());
            self.0.remove(oldest_other.unwrap_or(0))
        } else {
            None
        };
        self.0.push_back(event);
        debug_assert!(self.0.len() <= Self::CAPACITY, "the room that was made is enough");
        given_up
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use ffclock_units::{Counter, Moment, ServerQuality, Span, Stamp, StampLocation, Ticks};
    use std::collections::BTreeSet;

    fn exchange() -> Event {
        let stamp = Stamp { counter: Counter::from_raw(1), width: Ticks::ZERO, location: StampLocation::Unknown };
        let server_in = Moment::from_origin(Span::ZERO);
        let server = ServerQuality::default();
        Event::Exchange(Exchange { sent: stamp, server_in, server_out: server_in, received: stamp, server })
    }

    #[test]
    fn a_full_queue_drops_other_events_before_exchanges() {
        let mut queue = EventQueue::new();
        assert_eq!(queue.push(exchange()), None);
        assert_eq!(queue.push(Event::Unreachable), None);
        for _ in 2..EventQueue::CAPACITY {
            assert_eq!(queue.push(Event::Lost), None);
        }
        assert_eq!(queue.push(Event::Reachable), Some(Event::Unreachable));
        for _ in 2..EventQueue::CAPACITY {
            assert_eq!(queue.push(exchange()), Some(Event::Lost));
        }
        assert_eq!(queue.push(exchange()), Some(Event::Reachable));
        assert_eq!(queue.push(Event::Lost), Some(exchange()));
        assert_eq!(core::iter::from_fn(|| queue.pop()).count(), EventQueue::CAPACITY);
    }

    #[test]
    fn each_reason_has_a_name_of_its_own() {
        let names: BTreeSet<_> = Rejection::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Rejection::ALL.len());
    }
}
