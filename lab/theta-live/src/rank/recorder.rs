//! What a rank remembers of a run until it hands it over. What there is no room for is counted.

use crate::store::{EVENT_BYTES, pack, pack_trips};
use ffclock_theta::log::RoundTrip;
use ffclock_theta::record::Event;

/// Room that is taken at once: a run of a second does not have to move what it has recorded.
const EVENTS_AT_FIRST: usize = 1 << 16;
/// Events that are packed at a time.
const EVENTS_PACKED: usize = 1 << 14;

pub(super) struct EventRecorder {
    events: Vec<Event>,
    trips: Vec<RoundTrip>,
    events_max: usize,
    lost: u64,
}

impl EventRecorder {
    /// With room for `events_max` events, and as many round trips.
    pub(super) fn new(events_max: usize) -> Self {
        let events = Vec::with_capacity(events_max.min(EVENTS_AT_FIRST));
        EventRecorder { events, trips: Vec::new(), events_max, lost: 0 }
    }

    pub(super) fn event(&mut self, event: Event) {
        if self.events.len() < self.events_max { self.events.push(event) } else { self.lost += 1 }
    }

    pub(super) fn trip(&mut self, trip: RoundTrip) {
        if self.trips.len() < self.events_max { self.trips.push(trip) } else { self.lost += 1 }
    }

    /// Events and round trips for which there was no room.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// How many bytes [`Self::packed`] gives.
    pub(super) fn bytes(&self) -> u64 {
        ((self.events.len() + self.trips.len()) * EVENT_BYTES) as u64
    }

    /// Everything as bytes for the way to rank 0, part by part.
    pub(super) fn packed(&self) -> impl Iterator<Item = Vec<u8>> {
        self.events.chunks(EVENTS_PACKED).map(pack).chain(self.trips.chunks(EVENTS_PACKED).map(pack_trips))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_theta::record::{ProcessId, Round};
    use ffclock_units::Counter;

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let (sender, round, returned) = (ProcessId(0), Round(1), Counter::from_raw(7));
        let receiver = ProcessId(1);
        let trip = RoundTrip { sender, receiver, round, returned, perceived_after: 1, replied_after: 2 };
        let mut recorder = EventRecorder::new(3);
        for number in 1..=5 {
            recorder.event(Event::Broadcast { process: sender, round: Round(number), at: returned });
            assert_eq!(recorder.lost(), number.saturating_sub(3));
        }
        (0..4).for_each(|_| recorder.trip(trip));
        assert_eq!(recorder.lost(), 2 + 1);
        assert_eq!(recorder.bytes(), 6 * EVENT_BYTES as u64);
        assert_eq!(recorder.packed().map(|part| part.len() as u64).sum::<u64>(), recorder.bytes());
    }
}
