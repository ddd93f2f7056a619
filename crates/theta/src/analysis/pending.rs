//! A queue that puts almost ordered things in order.

use std::collections::VecDeque;

/// Things with a time, smallest first; of equal times, the smallest thing, whichever came first. Cheap as long as things come almost in
/// order.
#[derive(Clone, Debug)]
pub(super) struct Pending<T> {
    things: VecDeque<(i64, T)>,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Pending { things: VecDeque::new() }
    }
}

impl<T: Ord> Pending<T> {
    pub(super) fn insert(&mut self, time: i64, thing: T) {
        if self.things.back().is_none_or(|(last, other)| (*last, other) <= (time, &thing)) {
            return self.things.push_back((time, thing));
        }
        let place = self.things.partition_point(|(earlier, other)| (*earlier, other) <= (time, &thing));
        self.things.insert(place, (time, thing));
    }

    pub(super) fn first(&self) -> Option<&(i64, T)> {
        self.things.front()
    }

    pub(super) fn pop(&mut self) -> Option<(i64, T)> {
        self.things.pop_front()
    }
}
