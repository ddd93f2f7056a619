//! Whether the server gives usable answers.

use crate::Event;

/// The state of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Reachability {
    /// No usable answer yet; the attempt continues.
    #[default]
    Untried,
    /// Usable answers arrive.
    Reachable,
    /// Several requests in a row brought no usable answer; requests continue.
    Unreachable,
    /// The server refused service, and requests have stopped.
    Denied,
}

/// The reachability, with the failures since the last usable answer, and whether the name should be resolved again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reach {
    standing: Reachability,
    failures: u32,
    resolve_wished: bool,
}

impl Reach {
    pub(crate) const fn standing(&self) -> Reachability {
        self.standing
    }

    /// Whether the last request brought no usable answer, and the server does not count as unreachable for it yet.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Whether the server's name should be resolved again; true once per reason.
    pub(crate) const fn take_resolve_wish(&mut self) -> bool {
        core::mem::replace(&mut self.resolve_wished, false)
    }

    pub(crate) const fn wish_resolve(&mut self) {
        self.resolve_wished = true;
    }

    /// A usable answer arrived. Returns the reachability before it.
    pub(crate) const fn succeed(&mut self) -> Reachability {
        self.failures = 0;
        self.resolve_wished = false;
        core::mem::replace(&mut self.standing, Reachability::Reachable)
    }

    /// A request brought no usable answer. After `limit` of these in a row, and after each further `limit`, the name
    /// should be resolved again: the server may have moved.
    pub(crate) fn fail(&mut self, limit: u32) -> Option<Event> {
        self.failures = self.failures.saturating_add(1);
        if self.failures < limit {
            return None;
        }
        self.failures = 0;
        self.resolve_wished = true;
        self.give_up(Reachability::Unreachable)
    }

    /// The server refused service.
    pub(crate) fn deny(&mut self) -> Option<Event> {
        self.give_up(Reachability::Denied)
    }

    fn give_up(&mut self, standing: Reachability) -> Option<Event> {
        let before = core::mem::replace(&mut self.standing, standing);
        matches!(before, Reachability::Untried | Reachability::Reachable).then_some(Event::Unreachable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreachable_is_reported_once_but_the_wish_to_resolve_returns() {
        let mut reach = Reach::default();
        for round in 0..3 {
            for _ in 0..7 {
                assert_eq!(reach.fail(8), None);
                assert!(!reach.take_resolve_wish());
            }
            assert_eq!(reach.fail(8), (round == 0).then_some(Event::Unreachable));
            assert!(reach.take_resolve_wish());
            assert!(!reach.take_resolve_wish());
        }
        assert_eq!(reach.succeed(), Reachability::Unreachable);
        assert_eq!(reach.standing(), Reachability::Reachable);
    }

    #[test]
    fn one_answer_forgives_all_failures() {
        let mut reach = Reach::default();
        for _ in 0..20 {
            for _ in 0..7 {
                assert_eq!(reach.fail(8), None);
            }
            reach.succeed();
        }
        assert_eq!(reach.deny(), Some(Event::Unreachable));
        assert_eq!(reach.deny(), None);
    }
}
