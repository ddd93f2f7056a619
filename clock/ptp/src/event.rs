//! What a follower and a grandmaster report, and the queue in which it waits.

use crate::{Master, NotPtp, PortIdentity, UnicastService, UnicastTerms};
use alloc::collections::VecDeque;
use core::fmt;
use ffclock_units::{Counter, Direction, Moment, Span, Stamp, Tai};

/// One message that passed between us and the master: our counter on one side, the master's time on the other.
///
/// Delays are not negative, so each alone is an inequality: an incoming one passed our end at `theirs` or later, an
/// outgoing one passed our end at `theirs` or earlier. What switches said of the time for which they held the message
/// up is in `theirs` already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PtpObservation {
    /// Incoming: a Sync. Outgoing: a Delay_Req.
    pub direction: Direction,
    /// When the message passed our end.
    pub ours: Stamp,
    /// When it passed the master's.
    pub theirs: Moment<Tai>,
}

/// The round trip to the neighbour on the link (IEEE 1588-2019, 11.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkDelay {
    /// The neighbour.
    pub neighbour: PortIdentity,
    /// Our request left.
    pub sent: Stamp,
    /// The response arrived.
    pub received: Stamp,
    /// For how long the neighbour held it, by its own clock.
    pub turnaround: Span,
    /// When our request reached the neighbour, by the master's time: where the neighbour is the master that is
    /// followed, and says it.
    pub arrived: Option<Moment<Tai>>,
}

impl LinkDelay {
    /// What the request says of the master's time, as a Delay_Req does: it left us before it reached the master.
    pub fn observation(&self) -> Option<PtpObservation> {
        let theirs = self.arrived?;
        Some(PtpObservation { direction: Direction::Outgoing, ours: self.sent, theirs })
    }
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtpEvent {
    /// A message passed between the master and us.
    Observation(PtpObservation),
    /// The link to the neighbour was measured.
    LinkDelay(LinkDelay),
    /// This master is the best from now on: the first one, or another one.
    MasterChosen(Master),
    /// The master that is followed says something else about itself, in a message with this stamp.
    MasterChanged(Master, Counter),
    /// The master that was followed has fallen silent, and there is no other.
    MasterLost(PortIdentity),
    /// The master says that TAI - UTC is the first [s]; by our table it is the second.
    UtcOffsetDiffers(i16, i64),
    /// Unicast messages will come.
    Granted(UnicastService, UnicastTerms),
    /// Unicast messages are refused.
    Denied(UnicastService),
    /// Unicast messages will come no longer, or are no longer wanted.
    Cancelled(UnicastService),
    /// A request for unicast messages was not answered.
    Unanswered(UnicastService),
    /// Another master is better, so this grandmaster is silent.
    Yielded(Master),
    /// This grandmaster is the best.
    Serving,
    /// A message, or an observation that was nearly complete, was rejected.
    Rejected(PtpRejection),
}

impl PtpEvent {
    /// Whether it is what all the others are for.
    const fn is_observation(&self) -> bool {
        matches!(self, PtpEvent::Observation(_) | PtpEvent::LinkDelay(_))
    }
}

macro_rules! rejections {
    ($($(#[$story:meta])+ $reason:ident = $name:literal,)*) => {
        /// Why a message or an observation was rejected.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum PtpRejection { $($(#[$story])+ $reason,)* }

        impl PtpRejection {
            /// Every reason, in the order of declaration.
            pub const ALL: [PtpRejection; [$($name),*].len()] = [$(PtpRejection::$reason),*];

            /// A short name in lower case with hyphens, for logs and metrics.
            pub const fn name(self) -> &'static str {
                match self { $(PtpRejection::$reason => $name,)* }
            }
        }
    };
}

rejections! {
    /// Shorter than its kind, or than it says.
    Truncated = "truncated",
    /// Longer than any message that is read.
    TooLong = "too-long",
    /// Not version 2.
    Version = "version",
    /// Of a reserved kind.
    Kind = "kind",
    /// Not followed by a list of TLVs, or by one that is too long.
    Tlv = "tlv",
    /// Of another profile (the sdoId).
    Profile = "profile",
    /// Of another domain.
    Domain = "domain",
    /// Our own, sent back to us, or about us as grandmaster.
    OwnMessage = "own-message",
    /// Of a kind that is not for us: a Delay_Req to a follower, a Sync to a grandmaster, a Management message.
    NotForUs = "not-for-us",
    /// Sent to this host alone, where only what is sent to all clocks of the network counts.
    NotToGroup = "not-to-group",
    /// From a port that is not the master that is followed.
    NotMaster = "not-master",
    /// A master that announces itself and gives no time that can be used, or answers no Delay_Req, while there is
    /// another one: it is passed over.
    Fruitless = "fruitless",
    /// From a clock that is not the master of its path at present (alternate master).
    AlternateMaster = "alternate-master",
    /// Of a grandmaster that is not the configured one.
    NotAccepted = "not-accepted",
    /// Of a grandmaster whose class is above the configured limit.
    ClockClass = "clock-class",
    /// Announced over more boundary clocks than the configured limit.
    StepsRemoved = "steps-removed",
    /// Announced over a way that has passed us already.
    PathLoop = "path-loop",
    /// Announced while no place of the table is to be had for it.
    TooManyMasters = "too-many-masters",
    /// Announced earlier, and forgotten for a better master that was announced while the table was full.
    Displaced = "displaced",
    /// A second message of the same number.
    Duplicate = "duplicate",
    /// A Sync whose Follow_Up did not come in time.
    FollowUpMissing = "follow-up-missing",
    /// A Follow_Up whose Sync did not come in time, or came long ago.
    SyncMissing = "sync-missing",
    /// A response to the request of another port.
    ResponseToOther = "response-to-other",
    /// A response to a request that was given up.
    Late = "late",
    /// A response to no request of ours.
    WrongSequence = "wrong-sequence",
    /// A request whose response did not come in time.
    ResponseMissing = "response-missing",
    /// A response whose request has no stamp.
    StampMissing = "stamp-missing",
    /// A request that by our stamps left after its response came.
    StampsReversed = "stamps-reversed",
    /// A second neighbour answers on the link, or a measurement of a link on which two do.
    SecondNeighbour = "second-neighbour",
    /// A neighbour's request while the response to its last one, or to sixteen others, waits for its stamp.
    TooManyNeighbours = "too-many-neighbours",
    /// The neighbour on the link is not the master that is followed, or does not say when our request reached it: how
    /// long a Sync took is not proven by that.
    NeighbourTime = "neighbour-time",
    /// A billion nanoseconds or more, or none where a time must be.
    Timestamp = "timestamp",
    /// A time before this program was made, or more than a century after: that of a master that was never set.
    ImplausibleTime = "implausible-time",
    /// A correction that is unknown, or larger than any switch can cause.
    Correction = "correction",
    /// The master held a request for longer than our counter says that the whole way took.
    NegativeDelay = "negative-delay",
    /// A request that reached the master too long before the next Sync left it to make an exchange.
    Hold = "hold",
    /// The master's timescale is not TAI, and the configuration does not say what else it is.
    ArbitraryTimescale = "arbitrary-timescale",
    /// Within two seconds of a leap second, on a scale whose labels do not identify a second.
    NearLeap = "near-leap",
    /// The master says that it is not sure of its time.
    Uncertain = "uncertain",
    /// A message from when the master passed from one grandmaster to another.
    GrandmasterChange = "grandmaster-change",
    /// The master claims an error above the configured limit, or none.
    RootDistance = "root-distance",
    /// A word of negotiation that nothing was asked for.
    NotAsked = "not-asked",
    /// More clients ask for unicast messages than there are places.
    TooManyClients = "too-many-clients",
}

impl fmt::Display for PtpRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<NotPtp> for PtpRejection {
    fn from(reason: NotPtp) -> Self {
        match reason {
            NotPtp::Truncated => PtpRejection::Truncated,
            NotPtp::TooLong => PtpRejection::TooLong,
            NotPtp::Version(_) => PtpRejection::Version,
            NotPtp::Kind(_) => PtpRejection::Kind,
            NotPtp::Tlv => PtpRejection::Tlv,
        }
    }
}

/// Counts of messages and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PtpStatistics {
    /// Messages that arrived.
    pub received: u64,
    /// Messages that were handed out to be sent.
    pub sent: u64,
    /// Observations and link delays.
    pub observations: u64,
    /// Events that were dropped because nothing fetched them.
    pub events_dropped: u64,
    rejected: [u64; PtpRejection::ALL.len()],
}

impl PtpStatistics {
    /// How often something was rejected for this reason.
    pub fn rejected(&self, reason: PtpRejection) -> u64 {
        self.rejected.get(reason as usize).copied().unwrap_or_default()
    }
}

impl Default for PtpStatistics {
    fn default() -> Self {
        let rejected = [0; PtpRejection::ALL.len()];
        PtpStatistics { received: 0, sent: 0, observations: 0, events_dropped: 0, rejected }
    }
}

/// Events that wait, and the counts of all. A caller that drains after each call never fills the queue; for other
/// callers, observations are kept longest.
#[derive(Debug, Default)]
pub(crate) struct PtpEvents {
    queue: VecDeque<PtpEvent>,
    pub(crate) statistics: PtpStatistics,
}

impl PtpEvents {
    const CAPACITY: usize = 64;

    pub(crate) fn push(&mut self, event: PtpEvent) {
        if event.is_observation() {
            increase(&mut self.statistics.observations);
        }
        if self.queue.len() >= Self::CAPACITY {
            let oldest_other = self.queue.iter().position(|event| !event.is_observation());
            self.queue.remove(oldest_other.unwrap_or(0));
            increase(&mut self.statistics.events_dropped);
        }
        self.queue.push_back(event);
        debug_assert!(self.queue.len() <= Self::CAPACITY, "the room that was made is enough");
    }

    pub(crate) fn reject(&mut self, reason: PtpRejection) {
        if let Some(count) = self.statistics.rejected.get_mut(reason as usize) {
            increase(count);
        }
        self.push(PtpEvent::Rejected(reason));
    }

    pub(crate) fn pop(&mut self) -> Option<PtpEvent> {
        self.queue.pop_front()
    }
}

/// One more.
pub(crate) const fn increase(count: &mut u64) {
    *count = count.saturating_add(1);
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_reason_has_a_name_and_a_count_of_its_own() {
        let names: BTreeSet<_> = PtpRejection::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), PtpRejection::ALL.len());
        let mut events = PtpEvents::default();
        for reason in PtpRejection::ALL {
            events.reject(reason);
            assert_eq!(events.statistics.rejected(reason), 1);
        }
    }
}
