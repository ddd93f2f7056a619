//! Exploration with one step for each delivery: nothing is left out but the names of correct processes.

use super::Effort;
use super::report::{CheckVerdict, Delivery, Exploration, RunWitness, Violation, WitnessStep};
use super::world::{CheckBounds, CheckBoundsError, CheckWorld};
use crate::algorithm::{AlgorithmForm, Switches};
use std::collections::HashSet;

/// How a state is packed into 128 bits, exactly: no state is taken for another one.
struct Packing {
    senders: u64,
    rounds: u64,
    round_bits: u32,
    sent_bits: u32,
    /// Every order of the correct processes.
    orders: Vec<Vec<usize>>,
}

impl Packing {
    fn new(bounds: CheckBounds) -> Result<Self, CheckBoundsError> {
        let (senders, rounds) = (u64::from(bounds.quorum.processes()), bounds.last_round);
        let round_bits = u64::BITS - rounds.leading_zeros();
        // In the repaired form the round says what was sent.
        let sent_bits = if bounds.form == AlgorithmForm::Printed { rounds as u32 } else { 0 };
        let correct = bounds.quorum.advance();
        let bits = u64::from(correct) * (senders * rounds + u64::from(round_bits + sent_bits));
        if bits > u64::from(u128::BITS) {
            return Err(CheckBoundsError::TooLarge { processes: bounds.quorum.processes(), last_round: rounds, bits });
        }
        Ok(Packing { senders, rounds, round_bits, sent_bits, orders: orders_of(correct as usize) })
    }

    /// The same for all states that differ in the names of correct processes only.
    fn key(&self, world: &CheckWorld) -> u128 {
        let rows: Vec<Vec<u64>> = (0..world.correct()).map(|process| self.rows(world, process)).collect();
        self.orders.iter().map(|order| self.pack(world, &rows, order)).min().unwrap_or(0)
    }

    /// By round: which senders a process has counted.
    fn rows(&self, world: &CheckWorld, process: u32) -> Vec<u64> {
        let machine = &world.processes[process as usize];
        let row = |round| (0..self.senders).filter(move |&from| machine.has_from(from as u32, round));
        (1..=self.rounds).map(|round| row(round).map(|from| 1 << from).sum()).collect()
    }

    fn pack(&self, world: &CheckWorld, rows: &[Vec<u64>], order: &[usize]) -> u128 {
        let mut key = 0;
        for &old in order {
            key = key << self.round_bits | u128::from(world.round(old as u32));
            if self.sent_bits > 0 {
                key = key << self.sent_bits | u128::from(world.sent[old] >> 1);
            }
            for &row in &rows[old] {
                key = key << self.senders | u128::from(renamed(row, order));
            }
        }
        key
    }
}

/// Senders under their new names; the Byzantine ones keep theirs.
fn renamed(row: u64, order: &[usize]) -> u64 {
    let byzantine = row >> order.len() << order.len();
    order.iter().enumerate().fold(byzantine, |sum, (new, &old)| sum | (row >> old & 1) << new)
}

/// All orders of 0..count.
fn orders_of(count: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for next in 0..count {
        orders = orders
            .into_iter()
            .flat_map(|order: Vec<usize>| {
                (0..=next).map(move |place| {
                    let mut longer = order.clone();
                    longer.insert(place, next);
                    longer
                })
            })
            .collect();
    }
    orders
}

/// Every message that may come next.
fn deliveries(world: &CheckWorld) -> Vec<Delivery> {
    (0..world.correct()).flat_map(|to| world.in_transit(to).chain(world.forgeries(to))).collect()
}

/// A state on the way, and what is still to be tried in it.
struct DeliveryFrame {
    world: CheckWorld,
    came_by: Option<(Delivery, Switches)>,
    untried: Vec<Delivery>,
}

impl DeliveryFrame {
    fn new(world: CheckWorld, came_by: Option<(Delivery, Switches)>) -> Self {
        let untried = deliveries(&world);
        DeliveryFrame { world, came_by, untried }
    }
}

struct DeliveryExplorer {
    packing: Packing,
    known: HashSet<u128>,
    stack: Vec<DeliveryFrame>,
    steps: u64,
}

/// Sees every reachable state, depth first. A state takes about 40 bytes.
///
/// # Errors
/// When the bounds make no sense or a state does not fit into 128 bits.
pub fn explore_deliveries(bounds: CheckBounds, effort: &mut Effort<'_>) -> Result<Exploration, CheckBoundsError> {
    let packing = Packing::new(bounds)?;
    let world = CheckWorld::start(bounds)?;
    let known = HashSet::from([packing.key(&world)]);
    let mut explorer = DeliveryExplorer { packing, known, stack: vec![DeliveryFrame::new(world, None)], steps: 0 };
    let verdict = explorer.run(effort);
    Ok(explorer.finished(verdict, bounds.last_round))
}

impl DeliveryExplorer {
    /// Leaves the way to what was found on the stack.
    fn run(&mut self, effort: &mut Effort<'_>) -> CheckVerdict {
        while let Some(frame) = self.stack.last_mut() {
            let Some(delivery) = frame.untried.pop() else {
                self.stack.pop();
                continue;
            };
            let mut world = frame.world.clone();
            let outcome = world.deliver(delivery);
            if let Some(verdict) = self.visit(world, delivery, outcome) {
                return verdict;
            }
            if effort.is_exhausted(self.known.len()) {
                return CheckVerdict::Unfinished;
            }
        }
        CheckVerdict::Holds
    }

    fn visit(&mut self, world: CheckWorld, by: Delivery, outcome: Result<Switches, Violation>) -> Option<CheckVerdict> {
        self.steps += 1;
        let switches = match outcome {
            Ok(switches) => switches,
            Err(violation) => {
                self.stack.push(DeliveryFrame { world, came_by: Some((by, Switches::default())), untried: Vec::new() });
                return Some(CheckVerdict::Violated(violation));
            }
        };
        if !self.known.insert(self.packing.key(&world)) {
            return None;
        }
        let has_stopped = world.has_stopped();
        self.stack.push(DeliveryFrame::new(world, Some((by, switches))));
        has_stopped.then_some(CheckVerdict::Stops)
    }

    fn finished(self, verdict: CheckVerdict, last_round: u64) -> Exploration {
        let is_bad = matches!(verdict, CheckVerdict::Stops | CheckVerdict::Violated(_));
        let steps = self.stack.iter().filter_map(|frame| frame.came_by);
        let steps = steps.map(|(delivery, switches)| WitnessStep::new(vec![delivery], switches)).collect();
        let witness = self.stack.last().filter(|_| is_bad).map(|last| RunWitness::new(&last.world, steps));
        Exploration { verdict, states: self.known.len() as u64, steps: self.steps, last_round, witness }
    }
}

/// Every combination of (round, sent) that can be reached, for the test that compares the two explorations.
#[cfg(test)]
pub(super) fn reachable(bounds: CheckBounds) -> std::collections::BTreeSet<Vec<(u64, u64)>> {
    let packing = Packing::new(bounds).unwrap();
    let world = CheckWorld::start(bounds).unwrap();
    let mut known = HashSet::from([packing.key(&world)]);
    let (mut waiting, mut standings) = (vec![world], std::collections::BTreeSet::new());
    while let Some(world) = waiting.pop() {
        let mut standing: Vec<(u64, u64)> =
            (0..world.correct()).map(|process| (world.round(process), world.sent[process as usize])).collect();
        standing.sort_unstable();
        standings.insert(standing);
        for delivery in deliveries(&world) {
            let mut next = world.clone();
            next.deliver(delivery).unwrap();
            if known.insert(packing.key(&next)) {
                waiting.push(next);
            }
        }
    }
    standings
}
