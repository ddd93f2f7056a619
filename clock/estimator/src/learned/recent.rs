//! The last few exchanges and the bank as it was before each, so that a change of the path can be believed from where
//! it happened.

use crate::bank::measurement::Measurement;
use crate::bank::revision::Revision;
use crate::bank::{Bank, Densities, Groups, ModelSet, Prediction};
use crate::tuning::learned::DEPTH;
use alloc::vec;
use alloc::vec::Vec;

/// A remembered exchange and its predictions.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// Since the exchange before, s.
    pub interval: f64,
    pub measurements: [Measurement; 2],
    pub predictions: [Prediction; 2],
    /// How far the origin of theta moved after it, us.
    pub step: f64,
}

/// The memory; it holds nothing from before a change that was believed.
#[derive(Clone, Debug)]
pub struct Recent {
    observation: [Option<Observation>; DEPTH],
    banks: Vec<Groups>,
    next: usize,
    filled: usize,
}

/// What a bank filters with.
#[derive(Clone, Copy)]
pub struct Filtering<'a> {
    pub densities: Densities<'a>,
    pub set: &'a ModelSet,
}

impl Recent {
    pub fn new(bank: &Bank) -> Self {
        Recent { observation: [None; DEPTH], banks: vec![bank.groups; DEPTH], next: 0, filled: 0 }
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
    pub fn get(&self, age: usize) -> Option<&Observation> {
        if age >= self.filled {
            return None;
        }
        self.observation.get(self.slot(age)).and_then(Option::as_ref)
    }

    /// Remembers an exchange and the bank as it was before it.
    pub fn push(&mut self, groups: &Groups, observation: Observation) {
        debug_assert!(self.next < DEPTH && self.filled <= DEPTH);
        let slot = self.next % DEPTH;
        if let (Some(cell), Some(bank)) = (self.observation.get_mut(slot), self.banks.get_mut(slot)) {
            (*cell, *bank) = (Some(observation), *groups);
        }
        self.next = slot.wrapping_add(1) % DEPTH;
        self.filled = self.filled.saturating_add(1).min(DEPTH);
    }

    /// Notes how far the origin of theta moved after the newest exchange.
    pub fn note_step(&mut self, step: f64) {
        let slot = self.slot(0);
        if let Some(Some(observation)) = self.observation.get_mut(slot) {
            observation.step = step;
        }
    }

    /// The time over which the last `count` exchanges came, s.
    pub fn elapsed(&self, count: usize) -> f64 {
        (0..count).map_while(|age| self.get(age)).map(|observation| observation.interval).sum()
    }

    /// The best score after the last `since` exchanges if `revisions` happened before them. `scratch` is overwritten.
    pub fn score(&self, since: usize, revisions: &[Revision], scratch: &mut Bank, filtering: Filtering<'_>) -> f64 {
        let Filtering { densities, set } = filtering;
        let before =
            since.checked_sub(1).filter(|age| *age < self.filled).and_then(|age| self.banks.get(self.slot(age)));
        debug_assert!(before.is_some(), "{since} of {} exchanges", self.filled);
        let Some(before) = before else { return f64::NEG_INFINITY };
        scratch.groups = *before;
        for revision in revisions {
            scratch.for_groups(|group| revision.apply(group));
        }
        for observation in (0..since).rev().filter_map(|age| self.get(age)) {
            scratch.predict(observation.interval, densities, set);
            scratch.observe(&observation.measurements, densities, set);
            scratch.for_groups(|group| group.follow(observation.step));
        }
        scratch.best(set).score
    }

    /// Takes the bank back to before the change, applies it, and filters the exchanges since then again.
    pub fn replay(&mut self, revision: &Revision, bank: &mut Bank, densities: Densities<'_>, set: &ModelSet) {
        debug_assert!((1..=self.filled).contains(&revision.since()), "{} of {}", revision.since(), self.filled);
        let count = revision.since().min(self.filled);
        for age in (0..count).rev() {
            let slot = self.slot(age);
            let (Some(Some(observation)), Some(before)) = (self.observation.get_mut(slot), self.banks.get_mut(slot))
            else {
                return;
            };
            if age.saturating_add(1) == count {
                bank.groups = *before;
                bank.for_groups(|group| revision.apply(group));
            }
            *before = bank.groups;
            bank.predict(observation.interval, densities, set);
            observation.predictions = bank.observe(&observation.measurements, densities, set);
            if age > 0 {
                bank.for_groups(|group| group.follow(observation.step));
            }
        }
        self.filled = count;
    }
}
