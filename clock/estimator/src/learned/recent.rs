//! The last few exchanges and the bank as it was before each, so that a change of the path can be believed from where
//! it happened.

use crate::bank::group::Evident;
use crate::bank::lanes::Lanes;
use crate::bank::revision::Revision;
use crate::bank::{Bank, BankExchange, Densities, ModelSet, Prediction};
use crate::tuning::ensemble::MOST_KEPT;
use crate::tuning::learned::DEPTH;
use alloc::vec::Vec;

/// A remembered exchange and its predictions.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    pub exchange: BankExchange,
    pub predictions: [Prediction; 2],
    /// How far the origin of theta moved after it, us.
    pub step: f64,
}

/// An exchange in its place of the memory.
#[derive(Clone, Debug)]
struct KeptExchange {
    observation: Option<Observation>,
    /// The bank before it.
    before: Vec<Lanes>,
}

/// The memory; it holds nothing from before a change that was believed.
#[derive(Clone, Debug)]
pub struct Recent {
    kept: Vec<KeptExchange>,
    /// How many exchanges with one server are remembered.
    depth: usize,
    next: usize,
    filled: usize,
}

/// What a bank filters with: the densities of each server, and its models.
#[derive(Clone, Copy)]
pub struct Filtering<'a> {
    pub densities: &'a dyn Fn(usize) -> Densities<'a>,
    pub set: &'a ModelSet,
}

impl Recent {
    pub fn new(set: &ModelSet) -> Self {
        let kept = || KeptExchange { observation: None, before: Vec::with_capacity(Bank::saved_length(set)) };
        let depth = DEPTH.min(MOST_KEPT / set.servers);
        Recent { kept: (0..depth * set.servers).map(|_| kept()).collect(), depth, next: 0, filled: 0 }
    }

    pub fn bytes(&self) -> usize {
        let banks: usize = self.kept.iter().map(|kept| kept.before.capacity() * size_of::<Lanes>()).sum();
        banks + self.kept.capacity() * size_of::<KeptExchange>()
    }

    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// How many exchanges with one server are remembered at most.
    pub fn depth(&self) -> usize {
        self.depth
    }

    fn slot(&self, age: usize) -> usize {
        let length = self.kept.len();
        self.next.wrapping_add(length.wrapping_mul(2)).wrapping_sub(age).wrapping_sub(1) % length
    }

    /// An exchange by its age; the newest has age 0.
    pub fn get(&self, age: usize) -> Option<&Observation> {
        if age >= self.filled {
            return None;
        }
        self.kept.get(self.slot(age)).and_then(|kept| kept.observation.as_ref())
    }

    /// The ages of the exchanges with a server, the newest first, and the exchanges.
    pub fn of(&self, server: usize) -> impl Iterator<Item = (usize, &Observation)> {
        let all = (0..self.filled).filter_map(|age| Some((age, self.get(age)?)));
        all.filter(move |(_, observation)| observation.exchange.server == server).take(self.depth)
    }

    /// How many of the last exchanges came with or after the `count` last ones with a server; `None` if fewer are
    /// remembered.
    pub fn since(&self, server: usize, count: usize) -> Option<usize> {
        self.of(server).nth(count.checked_sub(1)?).map(|(age, _)| age.saturating_add(1))
    }

    /// Remembers the bank as it is before the next exchange.
    pub fn save(&mut self, bank: &Bank) {
        debug_assert!(self.next < self.kept.len() && self.filled <= self.kept.len());
        if let Some(kept) = self.kept.get_mut(self.next) {
            bank.save(&mut kept.before);
        }
    }

    /// Remembers the exchange before which the bank was saved.
    pub fn push(&mut self, observation: Observation) {
        let length = self.kept.len();
        if let Some(kept) = self.kept.get_mut(self.next) {
            kept.observation = Some(observation);
        }
        self.next = self.next.wrapping_add(1) % length;
        self.filled = self.filled.saturating_add(1).min(length);
    }

    /// Notes how far the origin of theta moved after the newest exchange.
    pub fn note_step(&mut self, step: f64) {
        let slot = self.slot(0);
        if let Some(KeptExchange { observation: Some(observation), .. }) = self.kept.get_mut(slot) {
            observation.step = step;
        }
    }

    /// The time over which the last `count` exchanges came, s.
    pub fn elapsed(&self, count: usize) -> f64 {
        (0..count).map_while(|age| self.get(age)).map(|observation| observation.exchange.interval).sum()
    }

    /// Takes `bank` back to before the last `since` exchanges.
    pub fn restore(&self, since: usize, bank: &mut Bank) {
        debug_assert!((1..=self.filled).contains(&since), "{since} of {}", self.filled);
        let before = since.checked_sub(1).filter(|age| *age < self.filled);
        if let Some(KeptExchange { before, .. }) = before.and_then(|age| self.kept.get(self.slot(age))) {
            bank.restore(before);
        }
    }

    /// The best score after the last `since` exchanges if `revisions` happened before them. `scratch` is overwritten.
    pub fn score(&self, since: usize, revisions: &[Revision], scratch: &mut Bank, filtering: Filtering<'_>) -> f64 {
        let Filtering { densities, set } = filtering;
        let before =
            since.checked_sub(1).filter(|age| *age < self.filled).and_then(|age| self.kept.get(self.slot(age)));
        debug_assert!(before.is_some(), "{since} of {} exchanges", self.filled);
        let Some(KeptExchange { before, .. }) = before else { return f64::NEG_INFINITY };
        scratch.restore(before);
        for revision in revisions {
            scratch.for_groups(|group| revision.apply(group));
        }
        for Observation { exchange, step, .. } in (0..since).rev().filter_map(|age| self.get(age)) {
            let retake = |exchange, revision: &Revision| revision.retake(&exchange, exchange.evident);
            let exchange = &revisions.iter().fold(*exchange, retake);
            let densities = densities(exchange.server);
            scratch.predict(exchange, densities, set);
            scratch.observe(exchange, densities, set);
            scratch.for_groups(|group| group.follow(*step));
        }
        scratch.best(set).score
    }

    /// Takes the bank back to before the change, applies it, and filters the exchanges since then again.
    pub fn replay(&mut self, revision: &Revision, bank: &mut Bank, filtering: Filtering<'_>) {
        debug_assert!((1..=self.filled).contains(&revision.since()), "{} of {}", revision.since(), self.filled);
        let count = revision.since().min(self.filled);
        for age in (0..count).rev() {
            let slot = self.slot(age);
            let Some(KeptExchange { observation: Some(observation), before }) = self.kept.get_mut(slot) else { return };
            if age.saturating_add(1) == count {
                bank.restore(before);
                bank.for_groups(|group| revision.apply(group));
            }
            bank.save(before);
            observation.exchange = revision.retake(&observation.exchange, Evident::OwnFloors);
            let densities = (filtering.densities)(observation.exchange.server);
            bank.predict(&observation.exchange, densities, filtering.set);
            observation.predictions = bank.observe(&observation.exchange, densities, filtering.set);
            if age > 0 {
                bank.for_groups(|group| group.follow(observation.step));
            }
        }
        // A departure changes nothing of what was remembered before it.
        if !matches!(revision, Revision::Departure(_)) {
            self.filled = count;
        }
    }
}
