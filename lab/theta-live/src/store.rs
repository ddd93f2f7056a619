//! A rank's events as bytes, for the way to the coordinator: five words for each.

use ffclock_theta::log::RoundTrip;
use ffclock_theta::record::{Event, ProcessId, Round, SwitchEvent, SwitchRule, WayIn};
use ffclock_units::Counter;

const WORDS: usize = 5;
/// Bytes of an event.
pub(super) const EVENT_BYTES: usize = WORDS * 8;

const BROADCAST: u64 = 0;
const TRANSMISSION: u64 = 1;
const PERCEPTION: u64 = 2;
const ADVANCE: u64 = 3;
const CATCH_UP: u64 = 4;
const ROUND_TRIP: u64 = 5;

/// Kind and peer in one word; round; the counter; two more words as the kind needs them.
fn words(event: &Event) -> [u64; WORDS] {
    let tagged = |kind: u64, peer: u32| kind << 32 | u64::from(peer);
    match *event {
        Event::Broadcast { round, at, .. } => [tagged(BROADCAST, 0), round.0, at.raw(), 0, 0],
        Event::Transmission { receiver, round, at, .. } => [tagged(TRANSMISSION, receiver.0), round.0, at.raw(), 0, 0],
        Event::Perception { sender, round, at, way_in, .. } => {
            let raw = |counter: Option<Counter>| counter.map_or(0, Counter::raw);
            [tagged(PERCEPTION, sender.0), round.0, at.raw(), raw(way_in.kernel), raw(way_in.received)]
        }
        Event::Switch(SwitchEvent { from, to, at, decided, rule, .. }) => {
            let kind = if rule == SwitchRule::Advance { ADVANCE } else { CATCH_UP };
            [tagged(kind, 0), to.0, at.raw(), from.0, decided.raw()]
        }
    }
}

pub(super) fn pack(events: &[Event]) -> Vec<u8> {
    events.iter().flat_map(words).flat_map(u64::to_be_bytes).collect()
}

pub(super) fn pack_trips(trips: &[RoundTrip]) -> Vec<u8> {
    let words = |trip: &RoundTrip| {
        let tag = ROUND_TRIP << 32 | u64::from(trip.receiver.0);
        [tag, trip.round.0, trip.returned.raw(), trip.perceived_after, trip.replied_after]
    };
    trips.iter().flat_map(words).flat_map(u64::to_be_bytes).collect()
}

/// The round trip in `EVENT_BYTES` bytes of the process that measured it; none for anything else.
pub(super) fn unpack_trip(sender: ProcessId, bytes: &[u8]) -> Option<RoundTrip> {
    let word = |index: usize| bytes.get(index * 8..index * 8 + 8)?.try_into().ok().map(u64::from_be_bytes);
    let (tag, round, returned) = (word(0)?, Round(word(1)?), Counter::from_raw(word(2)?));
    let (receiver, perceived_after, replied_after) = (ProcessId(tag as u32), word(3)?, word(4)?);
    (tag >> 32 == ROUND_TRIP).then_some(RoundTrip { sender, receiver, round, returned, perceived_after, replied_after })
}

/// The event in `EVENT_BYTES` bytes of `process`; none if they are none. A counter of 0 means that there is no stamp.
pub(super) fn unpack(process: ProcessId, bytes: &[u8]) -> Option<Event> {
    let word = |index: usize| bytes.get(index * 8..index * 8 + 8)?.try_into().ok().map(u64::from_be_bytes);
    let (tag, round, at) = (word(0)?, Round(word(1)?), Counter::from_raw(word(2)?));
    let (fourth, fifth) = (word(3)?, word(4)?);
    let peer = ProcessId(tag as u32);
    let stamp = |raw: u64| (raw != 0).then(|| Counter::from_raw(raw));
    let switch = |rule| {
        let decided = Counter::from_raw(fifth);
        Event::Switch(SwitchEvent { process, from: Round(fourth), to: round, at, decided, rule })
    };
    match tag >> 32 {
        BROADCAST => Some(Event::Broadcast { process, round, at }),
        TRANSMISSION => Some(Event::Transmission { process, receiver: peer, round, at }),
        PERCEPTION => {
            let way_in = WayIn { kernel: stamp(fourth), received: stamp(fifth) };
            Some(Event::Perception { process, sender: peer, round, at, way_in })
        }
        ADVANCE => Some(switch(SwitchRule::Advance)),
        CATCH_UP => Some(switch(SwitchRule::CatchUp)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_the_way() {
        let (process, round, at) = (ProcessId(3), Round(7), Counter::from_raw(99));
        let way_in = WayIn { kernel: Some(Counter::from_raw(5)), received: None };
        let switch = |rule| Event::Switch(SwitchEvent { process, from: round, to: Round(9), at, decided: at, rule });
        let events = [
            Event::Broadcast { process, round, at },
            Event::Transmission { process, receiver: ProcessId(1), round, at },
            Event::Perception { process, sender: ProcessId(2), round, at, way_in },
            switch(SwitchRule::Advance),
            switch(SwitchRule::CatchUp),
        ];
        let bytes = pack(&events);
        let read: Vec<Event> = bytes.chunks(EVENT_BYTES).filter_map(|chunk| unpack(process, chunk)).collect();
        assert_eq!(read, events);
        let trip = RoundTrip {
            sender: process,
            receiver: ProcessId(1),
            round,
            returned: at,
            perceived_after: 4,
            replied_after: 6,
        };
        let packed = pack_trips(&[trip]);
        assert_eq!(unpack_trip(process, &packed), Some(trip));
        assert_eq!((unpack(process, &packed), unpack_trip(process, &bytes)), (None, None));
        assert_eq!(unpack(process, &bytes[..17]), None);
        assert_eq!(unpack(process, &[0xff; EVENT_BYTES]), None);
    }
}
