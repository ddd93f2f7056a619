//! What a virtual machine can know of its own past.

use core::fmt;

/// What the VMClock of a virtual machine shows of its past. Two marks that differ are of a machine that was restored,
/// migrated or copied in between; numbers that have been there before are no exception that anyone could see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineMark {
    /// The disruption marker: another one after whatever disturbed the counter.
    pub disruption: u64,
    /// The generation counter: another one after the machine was loaded from a saved state, on which its host need not
    /// count a disruption. `None` where the host keeps none.
    pub generation: Option<u64>,
}

impl MachineMark {
    /// That of a host that keeps no generation counter.
    pub const fn of_disruption(disruption: u64) -> Self {
        MachineMark { disruption, generation: None }
    }

    /// Whether what rests on this mark still holds in a machine that shows `present`. Where this one knows of no
    /// generation, the disruption marker alone decides.
    pub fn holds_at(self, present: MachineMark) -> bool {
        self.disruption == present.disruption && (self.generation.is_none() || self.generation == present.generation)
    }
}

impl fmt::Display for MachineMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.generation {
            None => write!(f, "{}", self.disruption),
            Some(generation) => write!(f, "{} of generation {generation}", self.disruption),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_numbers_count_where_both_are_known() {
        let mark = |disruption, generation| MachineMark { disruption, generation };
        let known = mark(7, Some(3));
        assert!(known.holds_at(known));
        for other in [mark(7, Some(4)), mark(8, Some(3)), mark(7, None), mark(8, None)] {
            assert!(!known.holds_at(other), "{other}");
        }
        assert!(MachineMark::of_disruption(7).holds_at(known));
        assert!(!MachineMark::of_disruption(6).holds_at(known));
        assert!(mark(u64::MAX, Some(u64::MAX)).holds_at(mark(u64::MAX, Some(u64::MAX))));
        assert!(!mark(u64::MAX, Some(u64::MAX)).holds_at(mark(u64::MAX, Some(0))));
    }
}
