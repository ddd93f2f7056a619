//! An independent model checker explores the same machine and must find the same number of states and the same
//! verdicts.
//!
//! The explorations of `check` are our own. Here Stateright, which knows nothing about the algorithm, drives the
//! machines through the same deliveries, without any reduction.

use ffclock_theta::algorithm::{AlgorithmForm, Quorum};
use ffclock_theta::check::{
    CheckBounds, CheckVerdict, CheckWorld, Delivery, Effort, explore_deliveries, explore_switches,
};
use stateright::{Checker, Model, Property};
use std::hash::{Hash, Hasher};

/// A world that can be compared.
#[derive(Clone, Debug)]
struct State(CheckWorld);

impl State {
    fn key(&self) -> impl Hash + PartialEq {
        let world = &self.0;
        let quorum = world.bounds().quorum;
        let senders =
            move |process, round| (0..quorum.processes()).map(move |from| world.has_counted(process, from, round));
        let rounds = 1..=world.bounds().last_round;
        let rows = move |process| rounds.clone().flat_map(move |round| senders(process, round)).collect::<Vec<bool>>();
        let standing = |process| (world.round(process), world.sent(process), rows(process));
        (0..world.correct()).map(standing).collect::<Vec<_>>()
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

struct Deliveries(CheckBounds);

impl Model for Deliveries {
    type State = State;
    type Action = Delivery;

    fn init_states(&self) -> Vec<State> {
        vec![State(CheckWorld::start(self.0).expect("bounds that make sense"))]
    }

    fn actions(&self, State(world): &State, actions: &mut Vec<Delivery>) {
        for to in 0..world.correct() {
            actions.extend(world.in_transit(to).chain(world.forgeries(to)));
        }
    }

    fn next_state(&self, State(world): &State, delivery: Delivery) -> Option<State> {
        let mut next = world.clone();
        next.deliver(delivery).expect("no correct process does what it may not");
        Some(State(next))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("never stops", |_, State(world)| !world.has_stopped())]
    }
}

/// Distinct states up to the names of correct processes are ours; Stateright's are without that, so the largest ratio
/// is the number of orders.
#[test]
fn stateright_agrees_about_the_repaired_form() {
    let bounds =
        CheckBounds { quorum: Quorum::new(4, 1).unwrap(), form: AlgorithmForm::Repaired, last_round: 2, window: None };
    let checker = Deliveries(bounds).checker().spawn_bfs().join();
    checker.assert_properties();
    let ours = explore_deliveries(bounds, &mut Effort { states_max: 1_000_000, watch: &mut |_| () }).unwrap();
    let theirs = checker.unique_state_count() as u64;
    assert!(ours.states < theirs && theirs <= 6 * ours.states, "{} and {theirs}", ours.states);
    assert_eq!(ours.verdict, CheckVerdict::Holds);
    println!("stateright saw {theirs} states, the exploration up to names {}", ours.states);
}

/// Without names to exchange the numbers are equal.
#[test]
fn one_correct_process_gives_equal_numbers() {
    for last_round in 2..6 {
        let bounds =
            CheckBounds { quorum: Quorum::new(1, 0).unwrap(), form: AlgorithmForm::Repaired, last_round, window: None };
        let checker = Deliveries(bounds).checker().spawn_bfs().join();
        let ours = explore_deliveries(bounds, &mut Effort { states_max: 1_000_000, watch: &mut |_| () }).unwrap();
        assert_eq!(ours.states, checker.unique_state_count() as u64);
    }
}

/// The deliveries of the witness against the printed form, and nothing else: Stateright comes to a state that has
/// stopped.
#[test]
fn stateright_confirms_the_witness() {
    let bounds =
        CheckBounds { quorum: Quorum::new(7, 2).unwrap(), form: AlgorithmForm::Printed, last_round: 4, window: None };
    let found = explore_switches(bounds, &mut Effort { states_max: 1_000_000, watch: &mut |_| () }).unwrap();
    let script = found.witness.unwrap().steps.into_iter().flat_map(|step| step.deliveries).collect();
    let checker = Scripted(Deliveries(bounds), script).checker().spawn_bfs().join();
    let path = checker.assert_any_discovery("never stops");
    println!("stopped after {} deliveries", path.into_actions().len());
}

/// The model with its actions limited to a script, in order.
struct Scripted(Deliveries, Vec<Delivery>);

impl Model for Scripted {
    type State = (usize, State);
    type Action = Delivery;

    fn init_states(&self) -> Vec<Self::State> {
        self.0.init_states().into_iter().map(|state| (0, state)).collect()
    }

    fn actions(&self, (done, _): &Self::State, actions: &mut Vec<Delivery>) {
        actions.extend(self.1.get(*done));
    }

    fn next_state(&self, (done, state): &Self::State, delivery: Delivery) -> Option<Self::State> {
        self.0.next_state(state, delivery).map(|next| (done + 1, next))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("never stops", |_, (_, State(world))| !world.has_stopped())]
    }
}
