//! Virtual time: what happens next.

use ffclock_units::Span;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Events in the order of their time; those of the same time in the order in which they were entered.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    entries: BinaryHeap<AgendaEntry<E>>,
    entered: u64,
}

#[derive(Debug)]
struct AgendaEntry<E> {
    at: Span,
    number: u64,
    event: E,
}

impl<E> Ord for AgendaEntry<E> {
    /// The heap hands out its greatest entry first: the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<E> PartialOrd for AgendaEntry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for AgendaEntry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for AgendaEntry<E> {}

impl<E> Agenda<E> {
    pub(crate) fn new() -> Self {
        Agenda { entries: BinaryHeap::new(), entered: 0 }
    }

    /// Enters an event.
    pub(crate) fn enter(&mut self, at: Span, event: E) {
        self.entries.push(AgendaEntry { at, number: self.entered, event });
        self.entered += 1;
    }

    /// The next event with its time.
    pub(crate) fn next(&mut self) -> Option<(Span, E)> {
        self.entries.pop().map(|entry| (entry.at, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_the_order_of_time_and_then_of_entry() {
        let mut agenda = Agenda::new();
        for (second, name) in [(3, "c"), (1, "a"), (3, "d"), (2, "b")] {
            agenda.enter(Span::from_secs(second), name);
        }
        let names: Vec<&str> = std::iter::from_fn(|| agenda.next()).map(|(_, name)| name).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
    }
}
