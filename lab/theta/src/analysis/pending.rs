//! A queue that sorts things that come almost in order.

/// Things with a time, smallest first; of equal times, the smallest thing, whichever came first. Cheap as long as
/// things come almost in order.
#[derive(Clone, Debug)]
pub(super) struct Pending<T> {
    things: Vec<(i64, T)>,
    /// How many of them have been taken already.
    taken: usize,
}

/// Things that were taken are dropped when there are this many of them, and at least half of all.
const WORTH_FORGETTING: usize = 256;

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Pending { things: vec![], taken: 0 }
    }
}

impl<T: Ord + Copy> Pending<T> {
    #[inline]
    pub(super) fn insert(&mut self, time: i64, thing: T) {
        if self.things.last().is_none_or(|&(last, other)| last < time || (last == time && other <= thing)) {
            self.things.push((time, thing));
        } else {
            let waiting = &self.things[self.taken..];
            let place = waiting.partition_point(|(earlier, other)| (*earlier, other) <= (time, &thing));
            self.things.insert(self.taken + place, (time, thing));
        }
    }

    /// Makes all times earlier by `by`, and the things accordingly.
    pub(super) fn move_origin(&mut self, by: i64, change: impl Fn(&mut T)) {
        for (time, thing) in &mut self.things {
            *time = time.saturating_sub(by);
            change(thing);
        }
    }

    #[inline]
    pub(super) fn first(&self) -> Option<&(i64, T)> {
        self.things.get(self.taken)
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<(i64, T)> {
        let first = self.first().copied()?;
        self.taken += 1;
        if self.taken >= WORTH_FORGETTING && 2 * self.taken >= self.things.len() {
            self.things.drain(..self.taken);
            self.taken = 0;
        }
        Some(first)
    }
}
