//! The last few exchanges and the bank as it was before each, so that a change of the path can be believed from where it happened.

use crate::bank::group::{FLOORS, Group, RATE, Sight, THETA, Way};
use crate::bank::lanes::Lanes;
use crate::bank::{Bank, Densities, Groups, Roster, Told};
use alloc::vec;
use alloc::vec::Vec;

/// How many exchanges are remembered.
pub const DEPTH: usize = 8;

/// What a remembered exchange was.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Since the exchange before, s.
    pub interval: f64,
    pub sights: [Sight; 2],
    pub told: [Told; 2],
    /// By how much the origin of theta moved after it, us.
    pub step: f64,
}

/// The memory; it holds nothing from before a change that was believed.
#[derive(Clone, Debug)]
pub struct Recent {
    taken: [Option<Taken>; DEPTH],
    banks: Vec<Groups>,
    next: usize,
    filled: usize,
}

/// A floor that moved.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub way: Way,
    /// How many of the last exchanges came after it.
    pub since: usize,
    /// How far every member's floor moves, us.
    pub shift: f64,
    /// The variance of the new floor, us^2.
    pub variance: f64,
}

impl Recent {
    pub fn new(bank: &Bank) -> Self {
        Recent { taken: [None; DEPTH], banks: vec![bank.groups; DEPTH], next: 0, filled: 0 }
    }

    pub fn bytes(&self) -> usize {
        self.banks.capacity() * size_of::<Groups>()
    }

    pub fn clear(&mut self) {
        self.filled = 0;
    }

    pub fn len(&self) -> usize {
        self.filled
    }

    fn slot(&self, age: usize) -> usize {
        self.next.wrapping_add(DEPTH.wrapping_mul(2)).wrapping_sub(age).wrapping_sub(1) % DEPTH
    }

    /// An exchange by its age; the newest has age 0.
    pub fn get(&self, age: usize) -> Option<&Taken> {
        if age >= self.filled {
            return None;
        }
        self.taken.get(self.slot(age)).and_then(Option::as_ref)
    }

    /// Remembers an exchange and the bank as it was before it.
    pub fn push(&mut self, groups: &Groups, taken: Taken) {
        let slot = self.next % DEPTH;
        if let (Some(cell), Some(bank)) = (self.taken.get_mut(slot), self.banks.get_mut(slot)) {
            (*cell, *bank) = (Some(taken), *groups);
        }
        self.next = slot.wrapping_add(1) % DEPTH;
        self.filled = self.filled.saturating_add(1).min(DEPTH);
    }

    /// Notes by how much the origin of theta moved after the newest exchange.
    pub fn note_step(&mut self, step: f64) {
        let slot = self.slot(0);
        if let Some(Some(taken)) = self.taken.get_mut(slot) {
            taken.step = step;
        }
    }

    /// The time over which the last `count` exchanges came, s.
    pub fn elapsed(&self, count: usize) -> f64 {
        (0..count).map_while(|age| self.get(age)).map(|taken| taken.interval).sum()
    }

    /// How likely the last `since` exchanges are, as the best score after them, if `revisions` happened before them. `scratch` is overwritten.
    pub fn score(
        &self,
        since: usize,
        revisions: &[Revision],
        scratch: &mut Bank,
        (densities, roster): (Densities<'_>, &Roster),
    ) -> f64 {
        let before =
            since.checked_sub(1).filter(|age| *age < self.filled).and_then(|age| self.banks.get(self.slot(age)));
        let Some(before) = before else { return f64::NEG_INFINITY };
        scratch.groups = *before;
        for revision in revisions {
            scratch.for_groups(|group| revision.apply(group));
        }
        for taken in (0..since).rev().filter_map(|age| self.get(age)) {
            scratch.predict(taken.interval, densities, roster);
            scratch.observe(&taken.sights, densities, roster);
            scratch.for_groups(|group| group.follow(taken.step));
        }
        scratch.best(roster).score
    }

    /// Takes the bank back to before the change, applies it, and lets the bank see the exchanges since then again.
    pub fn replay(&mut self, revision: &Revision, bank: &mut Bank, densities: Densities<'_>, roster: &Roster) {
        let count = revision.since().min(self.filled);
        for age in (0..count).rev() {
            let slot = self.slot(age);
            let (Some(Some(taken)), Some(before)) = (self.taken.get_mut(slot), self.banks.get_mut(slot)) else {
                return;
            };
            if age.saturating_add(1) == count {
                bank.groups = *before;
                bank.for_groups(|group| revision.apply(group));
            }
            *before = bank.groups;
            bank.predict(taken.interval, densities, roster);
            taken.told = bank.observe(&taken.sights, densities, roster);
            if age > 0 {
                bank.for_groups(|group| group.follow(taken.step));
            }
        }
        self.filled = count;
    }
}

/// What is believed to have happened in place of what the filter took for granted.
#[derive(Clone, Copy, Debug)]
pub enum Revision {
    /// A floor moved.
    Floor(Change),
    /// The counter's rate changed by more than the bank expected.
    Jolt {
        /// How many of the last exchanges came after it.
        since: usize,
        /// The variance that theta gains, us^2, and the rate, ppm^2.
        variances: [f64; 2],
    },
    /// The floor of one way had never been seen. Both floors are as far apart as before, and what the other way shows stays true: what
    /// is open moves both floors, and theta with the floor of the other way.
    Revelation { since: usize, way: Way, shift: f64 },
}

impl Revision {
    fn since(&self) -> usize {
        match self {
            Revision::Floor(change) => change.since,
            Revision::Jolt { since, .. } | Revision::Revelation { since, .. } => *since,
        }
    }

    fn apply(&self, group: &mut Group) {
        match self {
            Revision::Floor(change) => {
                let part = change.way.floor();
                group.cut(part);
                group.x[part] += Lanes::all(change.shift);
                group.p[part][part] = Lanes::all(change.variance);
            }
            Revision::Jolt { variances: [theta, rate], .. } => {
                group.p[THETA][THETA] += Lanes::all(*theta);
                group.p[RATE][RATE] += Lanes::all(*rate);
            }
            Revision::Revelation { way, shift, .. } => {
                let theta = match way {
                    Way::Forward => *shift,
                    Way::Backward => -shift,
                };
                let [forward, backward] = FLOORS;
                let open = [(THETA, theta), (forward, *shift), (backward, *shift)];
                for (row, a) in open {
                    for (column, b) in open {
                        group.p[row][column] += Lanes::all(a * b);
                    }
                }
            }
        }
    }
}
