use super::*;
use crate::algorithm::{AlgorithmForm, Quorum};

fn bounds(n: u32, f: u32, form: AlgorithmForm, last_round: u64) -> CheckBounds {
    CheckBounds { quorum: Quorum::new(n, f).unwrap(), form, last_round, window: None }
}

fn switches(bounds: CheckBounds, states_max: usize) -> Result<Exploration, CheckBoundsError> {
    explore_switches(bounds, &mut Effort { states_max, watch: &mut |_| () })
}

fn deliveries(bounds: CheckBounds, states_max: usize) -> Result<Exploration, CheckBoundsError> {
    explore_deliveries(bounds, &mut Effort { states_max, watch: &mut |_| () })
}

/// The fault of the printed form: it was found by hand at n = 7, f = 2.
#[test]
fn the_printed_form_is_found_to_stop() {
    let found = switches(bounds(7, 2, AlgorithmForm::Printed, 4), 1_000_000).unwrap();
    assert_eq!(found.verdict, CheckVerdict::Stops);
    let witness = found.witness.unwrap();
    println!("{witness}");
    replay(&witness, AlgorithmForm::Printed, true);
}

/// The same deliveries cannot stop the repaired form.
#[test]
fn the_witness_does_not_stop_the_repaired_form() {
    let found = switches(bounds(7, 2, AlgorithmForm::Printed, 4), 1_000_000).unwrap();
    replay(&found.witness.unwrap(), AlgorithmForm::Repaired, false);
}

/// Follows a witness with machines of its own.
fn replay(witness: &RunWitness, form: AlgorithmForm, stops: bool) {
    let mut world = CheckWorld::start(bounds(witness.processes, witness.faulty, form, 4)).unwrap();
    for delivery in witness.steps.iter().flat_map(|step| &step.deliveries) {
        assert!(delivery.from >= world.correct() || world.has_sent(delivery.from, delivery.round));
        world.deliver(*delivery).unwrap();
    }
    assert_eq!(world.has_stopped(), stops);
}

#[test]
fn with_one_faulty_process_neither_form_stops() {
    for form in [AlgorithmForm::Repaired, AlgorithmForm::Printed] {
        let seen = switches(bounds(4, 1, form, 6), 1_000_000).unwrap();
        assert_eq!(seen.verdict, CheckVerdict::Holds, "{form:?}");
        assert!(seen.states > 100, "{seen:?}");
    }
}

#[test]
fn the_repaired_form_does_not_stop_at_seven() {
    let seen = switches(bounds(7, 2, AlgorithmForm::Repaired, 4), 1_000_000).unwrap();
    assert_eq!(seen.verdict, CheckVerdict::Holds);
}

#[test]
fn every_order_of_deliveries_to_round_two() {
    let seen = deliveries(bounds(4, 1, AlgorithmForm::Repaired, 2), 10_000_000).unwrap();
    assert_eq!(seen.verdict, CheckVerdict::Holds);
    assert!(seen.states > 1_000, "{seen:?}");
}

/// What docs/theta-run.md proves about the two explorations, tried out.
#[test]
fn both_explorations_reach_the_same() {
    for (n, f, last_round) in [(4, 1, 2), (1, 0, 3), (2, 0, 3), (3, 0, 2)] {
        for form in [AlgorithmForm::Repaired, AlgorithmForm::Printed] {
            let bounds = bounds(n, f, form, last_round);
            assert_eq!(super::deliveries::reachable(bounds), super::switches::reachable(bounds), "{bounds:?}");
        }
    }
}

#[test]
fn a_limit_of_states_is_told() {
    let seen = switches(bounds(4, 1, AlgorithmForm::Repaired, 10), 50).unwrap();
    assert_eq!(seen.verdict, CheckVerdict::Unfinished);
    assert_eq!(deliveries(bounds(4, 1, AlgorithmForm::Repaired, 3), 50).unwrap().verdict, CheckVerdict::Unfinished);
}

#[test]
fn impossible_depths_are_errors() {
    let error = |n, f, last_round| {
        let bounds = bounds(n, f, AlgorithmForm::Repaired, last_round);
        (switches(bounds, 10).err(), deliveries(bounds, 10).err())
    };
    assert_eq!(error(4, 1, 1), (Some(CheckBoundsError::NoRound), Some(CheckBoundsError::NoRound)));
    assert!(matches!(
        error(4, 1, 63),
        (Some(CheckBoundsError::TooLarge { .. }), Some(CheckBoundsError::TooLarge { .. }))
    ));
    assert!(matches!(error(10, 3, 5), (None, Some(CheckBoundsError::TooLarge { .. }))));
}

#[test]
fn random_adversaries_stop_the_printed_form_only() {
    for (form, n, f) in [
        (AlgorithmForm::Repaired, 4, 1),
        (AlgorithmForm::Repaired, 7, 2),
        (AlgorithmForm::Repaired, 10, 3),
        (AlgorithmForm::Printed, 7, 2),
    ] {
        let campaign = AdversaryCampaign { bounds: bounds(n, f, form, 8), seed: 1 };
        let mut outcome = CampaignOutcome::default();
        for number in 0..2_000 {
            campaign.run(number, &mut outcome).unwrap();
        }
        assert_eq!(
            outcome.is_clean(),
            form == AlgorithmForm::Repaired,
            "{form:?} {n} {f}: {} of {}",
            outcome.stopped,
            outcome.runs
        );
        assert_eq!(outcome.runs, 2_000);
        assert_eq!(outcome.first_bad.is_some(), form == AlgorithmForm::Printed);
    }
}

/// Windows of real runs are longer than any depth here; with short ones the newest round of each sender is all that is
/// left of many.
#[test]
fn random_adversaries_do_not_stop_processes_with_short_windows() {
    for (n, f, window) in [(4, 1, 1), (4, 1, 4), (7, 2, 2), (10, 3, 4)] {
        let bounds = CheckBounds { window: Some(window), ..bounds(n, f, AlgorithmForm::Repaired, 24) };
        let mut outcome = CampaignOutcome::default();
        (0..1_000).for_each(|number| AdversaryCampaign { bounds, seed: 1 }.run(number, &mut outcome).unwrap());
        assert!(outcome.is_clean(), "{bounds:?}: {:?}", outcome.first_bad);
    }
}

/// A and B go on to rounds 20 and 19 with the help of D, which is Byzantine and then keeps silent; C hears nothing,
/// and then everything, the messages of a sender mostly in their order. Whether all stand still then.
fn stops_after_hearing_late(form: AlgorithmForm, window: Option<usize>, seed: u64) -> bool {
    let mut world = CheckWorld::start(CheckBounds { window, ..bounds(4, 1, form, 24) }).unwrap();
    for round in 1..20 {
        for (to, from) in [(0, 0), (0, 1), (1, 0), (1, 1), (0, 3), (1, 3)] {
            if (to, from, round) != (1, 3, 19) {
                world.deliver(Delivery { to, from, round }).unwrap();
            }
        }
    }
    assert_eq!([0, 1, 2].map(|process| world.round(process)), [20, 19, 1]);
    let mut random = ffclock_sim::Random::new(seed);
    let first = random.bits() % 20;
    let mut waiting: Vec<Delivery> = world.in_transit(2).collect();
    waiting.sort_by_cached_key(|delivery| {
        let lags = if delivery.from == 1 { first } else { 0 };
        delivery.round + lags + random.bits() % 2
    });
    for delivery in waiting {
        world.deliver(delivery).unwrap();
    }
    // What it sends itself meanwhile.
    let next = |world: &CheckWorld| world.in_transit(2).next();
    while let Some(delivery) = next(&world) {
        world.deliver(delivery).unwrap();
    }
    world.has_stopped()
}

/// In the printed form of a round that was skipped nothing is known, so what is beyond the window is lost: such stops
/// are seen here.
#[test]
fn who_hears_late_what_is_beyond_its_window_stops_in_the_printed_form_only() {
    let stops = |form, window| (0..200).filter(|&seed| stops_after_hearing_late(form, window, seed)).count();
    for window in [Some(1), Some(2), Some(4), Some(8), None] {
        assert_eq!(stops(AlgorithmForm::Repaired, window), 0, "{window:?}");
    }
    assert_eq!(stops(AlgorithmForm::Printed, None), 0, "without a window there is nothing to lose at f = 1");
    assert!(stops(AlgorithmForm::Printed, Some(4)) > 20);
}

#[test]
fn every_order_of_deliveries_with_the_shortest_window() {
    let seen =
        deliveries(CheckBounds { window: Some(1), ..bounds(4, 1, AlgorithmForm::Repaired, 3) }, 10_000_000).unwrap();
    assert_eq!(seen.verdict, CheckVerdict::Holds);
    assert!(seen.states > 10_000, "{seen:?}");
}

/// A run can be had again from its seed alone.
#[test]
fn the_first_bad_run_can_be_had_again() {
    let mut outcome = CampaignOutcome::default();
    let campaign = AdversaryCampaign { bounds: bounds(7, 2, AlgorithmForm::Printed, 8), seed: 1 };
    let bad = (0..).find_map(|number| {
        campaign.run(number, &mut outcome).unwrap();
        outcome.first_bad.take()
    });
    let (seed, _, witness) = bad.unwrap();
    let mut again = CampaignOutcome::default();
    AdversaryCampaign { seed, ..campaign }.run(0, &mut again).unwrap();
    assert_eq!(again.first_bad.unwrap().2.steps, witness.steps);
}
