//! Xi* against all cycles of small graphs.

mod common;

use common::generator::{Random, Shape, generate};
use ffclock_theta::abc::{GraphError, Hop, SpaceTime, xi};
use ffclock_theta::analysis::Ratio;
use ffclock_theta::record::{Event, ProcessId, Round, RunDescription, WayIn};
use ffclock_units::Counter;
use std::collections::BTreeSet;

fn graph(run: &RunDescription, events: &[Event]) -> Result<SpaceTime, GraphError> {
    let mut builder = SpaceTime::builder(run);
    events.iter().for_each(|event| builder.take(event).expect("a process of the run"));
    builder.build()
}

/// Every simple cycle from its smallest step on, by walking all paths.
struct Walk<'a> {
    edges: &'a [Vec<(u32, u64, u64)>],
    first: u32,
    on_path: BTreeSet<u32>,
    largest: Option<Ratio>,
}

impl Walk<'_> {
    fn go(&mut self, step: u32, backward: u64, forward: u64) {
        for &(next, back, forth) in &self.edges[step as usize] {
            let (backward, forward) = (backward + back, forward + forth);
            if next == self.first {
                self.largest = self.largest.max(Ratio::of(backward as i64, forward as i64));
            } else if next > self.first && self.on_path.insert(next) {
                self.go(next, backward, forward);
                self.on_path.remove(&next);
            }
        }
    }
}

/// The largest ratio of a relevant cycle, by the definition.
fn by_definition(graph: &SpaceTime) -> Option<Ratio> {
    let steps = graph.len() as u32;
    let mut edges = vec![vec![]; steps as usize];
    for step in 0..steps {
        if let Some(before) = graph.step_before(step) {
            edges[step as usize].push((before, 0, 0));
        }
        if let Some(sender) = graph.sending_step(step) {
            edges[step as usize].push((sender, 1, 0));
            edges[sender as usize].push((step, 0, 1));
        }
    }
    let largest = (0..steps).filter_map(|first| {
        let mut walk = Walk { edges: &edges, first, on_path: BTreeSet::new(), largest: None };
        walk.go(first, 0, 0);
        walk.largest
    });
    largest.max().filter(|&ratio| ratio > Ratio::ONE)
}

/// That the witness is a cycle of the graph and has the ratio it claims.
fn check_witness(graph: &SpaceTime) -> Option<Ratio> {
    let witness = xi(graph)?;
    let ends: Vec<_> = witness
        .hops
        .iter()
        .map(|hop| match *hop {
            Hop::Forward { from, to } => {
                assert_eq!(graph.sending_step(to), Some(from));
                (from, to)
            }
            Hop::Backward { from, to } => {
                assert_eq!(graph.sending_step(from), Some(to));
                (from, to)
            }
            Hop::Local { from, to } => {
                assert_eq!(graph.step_before(from), Some(to));
                (from, to)
            }
        })
        .collect();
    assert!(ends.iter().zip(ends.iter().cycle().skip(1)).all(|((_, to), (from, _))| to == from), "{ends:?}");
    let backward = witness.hops.iter().filter(|hop| matches!(hop, Hop::Backward { .. })).count();
    let forward = witness.hops.iter().filter(|hop| matches!(hop, Hop::Forward { .. })).count();
    assert_eq!((backward as u64, forward as u64), (witness.backward, witness.forward));
    Ratio::of(witness.backward as i64, witness.forward as i64)
}

fn shape(random: &mut Random) -> Shape {
    Shape {
        processes: 2 + random.below(3) as u32,
        tolerated: 0,
        byzantine: 0,
        rounds: 1 + random.below(6),
        delay_min: 1,
        delay_spread: [2, 20, 200][random.below(3) as usize],
        wait: [0, 0, 5][random.below(3) as usize],
        loss: [0, 20][random.below(2) as usize],
        duplication: [0, 10][random.below(2) as usize],
        disorder: 4,
    }
}

#[test]
fn the_largest_ratio_is_that_of_the_definition() {
    let mut above_one = 0;
    for seed in 0..8000 {
        let mut random = Random(seed);
        let mut generated = generate(shape(&mut random), &mut random);
        generated.events.truncate(12 + random.below(26) as usize);
        let graph = graph(&generated.run, &generated.events).expect("causes come first");
        if graph.len() > 22 {
            continue;
        }
        let expected = by_definition(&graph);
        assert_eq!(check_witness(&graph), expected, "seed {seed}");
        above_one += u32::from(expected.is_some());
    }
    assert!(above_one > 500, "the graphs are not trivial: {above_one}");
}

#[test]
fn clocks_do_not_matter() {
    let mut random = Random(1);
    let mut generated = generate(Shape { rounds: 30, ..shape(&mut random) }, &mut random);
    let before = xi(&graph(&generated.run, &generated.events).expect("causes come first"));
    for event in &mut generated.events {
        if let Event::Perception { at, .. } | Event::Broadcast { at, .. } = event {
            *at = Counter::from_raw(random.next());
        }
    }
    assert_eq!(xi(&graph(&generated.run, &generated.events).expect("causes come first")), before);
    assert!(before.is_some());
}

#[test]
fn what_waits_for_itself_is_refused() {
    let mut random = Random(1);
    let run = generate(Shape { processes: 2, wait: 0, ..shape(&mut random) }, &mut random).run;
    let at = Counter::from_raw(0);
    let perception = |process, sender, round| Event::Perception {
        process: ProcessId(process),
        sender: ProcessId(sender),
        round: Round(round),
        at,
        way_in: WayIn::default(),
    };
    let broadcast = |process, round| Event::Broadcast { process: ProcessId(process), round: Round(round), at };
    let events = [perception(0, 1, 1), broadcast(0, 1), perception(1, 0, 1), broadcast(1, 1)];
    assert_eq!(graph(&run, &events).err(), Some(GraphError::Circular(2)));
}
