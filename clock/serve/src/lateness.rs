//! How late a lone reply leaves: from the reading of its time of leaving until the driver has it, by stamps of the
//! kernel.
//!
//! A thread that slept needs some 5 to 15 us for that, and its client takes half of them for an error of the server.
//! The least of the latest few can be foreseen, and so can the time that sealing a protected reply takes. A reply that
//! leaves sooner all the same has stated too late a time, by no more than what was foreseen: the claim is widened by
//! that.

use ffclock_units::Ticks;

/// How many replies are remembered.
const KEPT: usize = 8;

/// How late the latest replies were, or how long one part of making them took.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    latest: [Ticks; KEPT],
    next: usize,
    is_full: bool,
}

impl Lateness {
    /// One more reply was this late.
    pub fn note(&mut self, late: Ticks) {
        self.latest[self.next] = late;
        self.next = (self.next + 1) % KEPT;
        self.is_full |= self.next == 0;
    }

    /// Whether enough replies are known.
    pub fn is_known(&self) -> bool {
        self.is_full
    }

    /// What the next reply takes at least, going by the latest; nothing before enough are known.
    pub fn least(&self) -> Ticks {
        let least = self.latest.iter().copied().min().filter(|_| self.is_full);
        least.unwrap_or(Ticks::ZERO).max(Ticks::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_the_latest_is_foreseen_and_nothing_before_enough_are_known() {
        let mut lateness = Lateness::default();
        for late in [9, 7, 8, 30, 12, 9, 8] {
            lateness.note(Ticks::from_raw(late));
            assert_eq!(lateness.least(), Ticks::ZERO);
        }
        lateness.note(Ticks::from_raw(10));
        assert_eq!(lateness.least(), Ticks::from_raw(7));
        (0..3).for_each(|_| lateness.note(Ticks::from_raw(20)));
        assert_eq!(lateness.least(), Ticks::from_raw(8), "the 7 is too old");
        lateness.note(Ticks::from_raw(-5));
        assert_eq!(lateness.least(), Ticks::ZERO, "no reply is dated before it is read");
    }
}
