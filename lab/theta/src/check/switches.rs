//! Exploration with one step for each switch.

use super::Effort;
use super::report::{CheckVerdict, Delivery, Exploration, RunWitness, Violation, WitnessStep};
use super::world::{CheckBounds, CheckBoundsError, CheckWorld};
use crate::algorithm::Switches;
use std::collections::BTreeSet;

/// What decides the future of a process, names of the others left aside: its round, what it has sent, and how many
/// Byzantine processes it has already counted for its round. What correct processes have sent will come to it anyway.
type Outlook = (u64, u64, u32);

fn outlook(world: &CheckWorld, process: u32) -> Outlook {
    let index = process as usize;
    let machine = &world.processes[index];
    let byzantine = world.correct()..world.bounds.quorum.processes();
    let helped = byzantine.filter(|&from| machine.has_from(from, machine.round())).count();
    (machine.round(), world.sent[index], helped as u32)
}

/// Equal for states that differ in the names of correct processes only.
fn key(world: &CheckWorld) -> Vec<Outlook> {
    let mut outlooks: Vec<Outlook> = (0..world.correct()).map(|process| outlook(world, process)).collect();
    outlooks.sort_unstable();
    outlooks
}

/// The messages that let `to` switch because of (init, `round`), `forged` of them from Byzantine processes; none if
/// there are not enough.
fn batch(world: &CheckWorld, to: u32, round: u64, forged: u32) -> Option<Vec<Delivery>> {
    let quorum = world.bounds.quorum;
    let wanted = if round == world.round(to) { quorum.advance() } else { quorum.catch_up() };
    let missing = wanted.checked_sub(world.processes[to as usize].count(round))?;
    let honest = missing.checked_sub(forged)? as usize;
    let mut deliveries: Vec<Delivery> =
        world.forgeries(to).filter(|d| d.round == round).take(forged as usize).collect();
    deliveries.extend(world.in_transit(to).filter(|delivery| delivery.round == round).take(honest));
    (deliveries.len() == missing as usize).then_some(deliveries)
}

/// Every switch that may come next, with the messages that cause it.
fn batches(world: &CheckWorld) -> impl Iterator<Item = Vec<Delivery>> + '_ {
    let faulty = world.bounds.quorum.faulty();
    let awake = (0..world.correct()).filter(|&process| !world.rests(process));
    let rounds = awake.flat_map(|to| (world.round(to)..=world.bounds.last_round).map(move |round| (to, round)));
    rounds.flat_map(move |(to, round)| (0..=faulty).filter_map(move |forged| batch(world, to, round, forged)))
}

fn deliver_all(world: &mut CheckWorld, deliveries: &[Delivery]) -> Result<Switches, Violation> {
    let mut last = Switches::default();
    for &delivery in deliveries {
        let switches = world.deliver(delivery)?;
        if !switches.is_empty() {
            last = switches;
        }
    }
    Ok(last)
}

/// A state with the way to it.
struct SwitchNode {
    world: CheckWorld,
    /// The node before, and what came then.
    came_by: Option<(usize, WitnessStep)>,
}

struct SwitchExplorer {
    nodes: Vec<SwitchNode>,
    known: BTreeSet<Vec<Outlook>>,
    steps: u64,
    last_round: u64,
}

/// Sees every reachable combination of rounds and sent messages, breadth first, so that a witness is as short as can
/// be. A state takes some kilobytes.
///
/// # Errors
/// When the bounds make no sense.
pub fn explore_switches(bounds: CheckBounds, effort: &mut Effort<'_>) -> Result<Exploration, CheckBoundsError> {
    let world = CheckWorld::start(bounds)?;
    let known = BTreeSet::from([key(&world)]);
    let nodes = vec![SwitchNode { world, came_by: None }];
    Ok(SwitchExplorer { nodes, known, steps: 0, last_round: bounds.last_round }.run(effort))
}

impl SwitchExplorer {
    fn run(mut self, effort: &mut Effort<'_>) -> Exploration {
        let mut next = 0;
        while next < self.nodes.len() {
            if self.nodes[next].world.has_stopped() {
                return self.finished(CheckVerdict::Stops, Some(next));
            }
            if let Err((violation, last)) = self.expand(next) {
                return self.finished(CheckVerdict::Violated(violation), Some(last));
            }
            if effort.is_exhausted(self.nodes.len()) {
                return self.finished(CheckVerdict::Unfinished, None);
            }
            next += 1;
        }
        self.finished(CheckVerdict::Holds, None)
    }

    fn expand(&mut self, index: usize) -> Result<(), (Violation, usize)> {
        let origin = self.nodes[index].world.clone();
        for deliveries in batches(&origin) {
            let mut world = origin.clone();
            self.steps += 1;
            let outcome = deliver_all(&mut world, &deliveries);
            let step = WitnessStep::new(deliveries, outcome.unwrap_or_default());
            if outcome.is_err() || self.known.insert(key(&world)) {
                self.nodes.push(SwitchNode { world, came_by: Some((index, step)) });
            }
            outcome.map_err(|violation| (violation, self.nodes.len() - 1))?;
        }
        Ok(())
    }

    fn finished(self, verdict: CheckVerdict, end: Option<usize>) -> Exploration {
        let witness = end.map(|end| RunWitness::new(&self.nodes[end].world, self.way_to(end)));
        let states = self.known.len() as u64;
        Exploration { verdict, states, steps: self.steps, last_round: self.last_round, witness }
    }

    fn way_to(&self, end: usize) -> Vec<WitnessStep> {
        let mut steps = Vec::new();
        let mut node = &self.nodes[end];
        while let Some((before, step)) = &node.came_by {
            steps.push(step.clone());
            node = &self.nodes[*before];
        }
        steps.reverse();
        steps
    }
}

/// Every combination of (round, sent) that was seen, for the test that compares the two explorations.
#[cfg(test)]
pub(super) fn reachable(bounds: CheckBounds) -> BTreeSet<Vec<(u64, u64)>> {
    let world = CheckWorld::start(bounds).unwrap();
    let known = BTreeSet::from([key(&world)]);
    let nodes = vec![SwitchNode { world, came_by: None }];
    let mut explorer = SwitchExplorer { nodes, known, steps: 0, last_round: bounds.last_round };
    let mut next = 0;
    while next < explorer.nodes.len() {
        explorer.expand(next).unwrap();
        next += 1;
    }
    let without_help = |key: &Vec<Outlook>| {
        let mut standing: Vec<(u64, u64)> = key.iter().map(|&(round, sent, _)| (round, sent)).collect();
        standing.sort_unstable();
        standing
    };
    explorer.known.iter().map(without_help).collect()
}
