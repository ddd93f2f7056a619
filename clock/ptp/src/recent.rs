//! The last few sequence numbers that something was done with.

/// A ring of numbers. It forgets soon, because a master that starts again begins its numbers again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recent {
    numbers: [Option<u16>; 8],
    next: usize,
}

impl Recent {
    pub(crate) fn has(&self, number: u16) -> bool {
        self.numbers.contains(&Some(number))
    }

    pub(crate) fn note(&mut self, number: u16) {
        if let Some(place) = self.numbers.get_mut(self.next % 8) {
            *place = Some(number);
        }
        self.next = self.next.wrapping_add(1);
    }
}
