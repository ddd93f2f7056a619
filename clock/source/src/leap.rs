//! The server's announcements of leap seconds.

use crate::{Event, month_end};
use ffclock_units::{Leap, LeapAnnouncement, Moment, Server, Span};

/// For this long after a leap second an indicator that is still set is a leftover, not an announcement for the next
/// month. Each server in the chain to the primary source takes up to a poll interval to clear it.
const LEFTOVER: Span = Span::from_secs(86_400);
/// Within this distance of a leap second a server's label is not trusted: one second for the leap itself, which repeats
/// a label, and one for a server whose clock is late or early and repeats it late or early.
const DOUBTFUL: Span = Span::from_secs(2);

/// The leap second that a server announces, if any, until a day after it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeapWatch {
    announced: Option<LeapAnnouncement>,
}

impl LeapWatch {
    /// Processes the indicator in a reply made at `server_out`. Returns an event if it has changed.
    pub fn observe(&mut self, leap: Leap, server_out: Moment<Server>) -> Option<Event> {
        if let Some(age) = self.announced.map(|known| server_out - midnight(known)).filter(|age| !age.is_negative()) {
            if age < LEFTOVER {
                return None;
            }
            self.announced = None;
        }
        let next = announcement(leap, server_out);
        let before = core::mem::replace(&mut self.announced, next);
        match (before, next) {
            (before, Some(next)) if before != Some(next) => Some(Event::LeapAnnounced(next)),
            (Some(before), None) => Some(Event::LeapWithdrawn(before)),
            _ => None,
        }
    }

    /// The leap second announced by the server.
    pub const fn announced(&self) -> Option<LeapAnnouncement> {
        self.announced
    }
}

/// Whether a server's label is so near to the leap second that it may mean another second.
pub(crate) fn is_ambiguous(label: Moment<Server>, leap: LeapAnnouncement) -> bool {
    (label - midnight(leap)).abs() <= DOUBTFUL
}

fn announcement(leap: Leap, server_out: Moment<Server>) -> Option<LeapAnnouncement> {
    let change = match leap {
        Leap::None => return None,
        Leap::Insert => 1,
        Leap::Delete => -1,
    };
    Some(LeapAnnouncement { utc_second: month_end(server_out).whole_seconds(), change })
}

fn midnight(leap: LeapAnnouncement) -> Moment<Server> {
    Moment::from_origin(Span::from_secs(leap.utc_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The midnight after 2016-12-31.
    const MIDNIGHT: i64 = 1_483_228_800;
    const INSERT: LeapAnnouncement = LeapAnnouncement { utc_second: MIDNIGHT, change: 1 };

    fn at(second: i64) -> Moment<Server> {
        Moment::from_origin(Span::from_secs(second))
    }

    #[test]
    fn an_announcement_is_reported_once() {
        let mut watch = LeapWatch::default();
        assert_eq!(watch.observe(Leap::None, at(MIDNIGHT - 9000)), None);
        assert_eq!(watch.observe(Leap::Insert, at(MIDNIGHT - 8000)), Some(Event::LeapAnnounced(INSERT)));
        assert_eq!(watch.observe(Leap::Insert, at(MIDNIGHT - 7000)), None);
        assert_eq!(watch.observe(Leap::None, at(MIDNIGHT - 6000)), Some(Event::LeapWithdrawn(INSERT)));
        let delete = LeapAnnouncement { change: -1, ..INSERT };
        assert_eq!(watch.observe(Leap::Delete, at(MIDNIGHT - 5000)), Some(Event::LeapAnnounced(delete)));
        assert_eq!(watch.observe(Leap::Insert, at(MIDNIGHT - 4000)), Some(Event::LeapAnnounced(INSERT)));
    }

    #[test]
    fn a_leftover_indicator_announces_nothing_for_the_next_month() {
        let mut watch = LeapWatch::default();
        watch.observe(Leap::Insert, at(MIDNIGHT - 1));
        assert_eq!(watch.observe(Leap::Insert, at(MIDNIGHT)), None);
        assert_eq!(watch.observe(Leap::None, at(MIDNIGHT + 3600)), None);
        assert_eq!(watch.observe(Leap::Insert, at(MIDNIGHT + 86_399)), None);
        assert_eq!(watch.announced(), Some(INSERT));
        assert_eq!(watch.observe(Leap::None, at(MIDNIGHT + 86_400)), None);
        assert_eq!(watch.announced(), None);
    }

    #[test]
    fn labels_are_ambiguous_for_two_seconds_on_both_sides() {
        for (second, ambiguous) in [(-3, false), (-2, true), (0, true), (2, true), (3, false)] {
            assert_eq!(is_ambiguous(at(MIDNIGHT + second), INSERT), ambiguous, "{second}");
        }
    }
}
