//! The short list: every scenario once, with all its checks. `make campaign` is the long one.
//!
//! What does not hold is listed with its figure in `known-misses.txt` beside this file. A miss that is not there fails
//! the test, and so does a line that is stale: its check holds again, or is none of its scenario's any more.

use ffclock_sim::{CheckResult, ENSEMBLES, Run, Scenario, clocks_in, scenario};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The clocks that the checks of worlds with one server are about.
const CLOCKS: [&str; 3] = ["classic", "learned", "regression"];

fn known() -> BTreeSet<(String, String)> {
    let lines = include_str!("known-misses.txt").lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let part = |line: &str| line.split_once(": ").map(|(name, check)| (name.to_owned(), check.to_owned()));
    lines.map(|line| part(line).expect("SCENARIO: CHECK")).collect()
}

/// Those that its checks are about; all where there are none, so that it is run at least.
fn clocks(scenario: &Scenario) -> Vec<&str> {
    let all = if scenario.ptp.is_some() || scenario.pulses.is_some() {
        clocks_in(scenario)
    } else if scenario.servers.is_empty() {
        CLOCKS.to_vec()
    } else {
        ENSEMBLES.to_vec()
    };
    let is_checked = |clock: &&str| {
        scenario.checks.is_empty() || scenario.checks.values().any(|check| check.contains(&format!("{clock}.")))
    };
    all.into_iter().filter(is_checked).collect()
}

fn missed(name: &str) -> Vec<CheckResult> {
    let scenario = Scenario::named(name).expect("built in");
    let clocks = clocks(&scenario);
    let result = Run { name, scenario: &scenario, seed: 1 }.execute_with(&clocks, None);
    result.checks.into_iter().filter(|check| !check.passed).collect()
}

#[test]
fn every_check_of_every_scenario_holds_or_is_known_to_miss() {
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(name) = scenario::NAMES.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let missed = missed(name).into_iter().map(|check| ((*name).to_owned(), check));
                    all.lock().expect("no thread panics with it").extend(missed);
                }
            });
        }
    });
    let all = all.into_inner().expect("no thread panics with it");
    let known = known();
    let unexpected = |(name, check): &&(String, CheckResult)| !known.contains(&(name.clone(), check.check.clone()));
    let new: Vec<String> = all
        .iter()
        .filter(unexpected)
        .map(|(name, check)| {
            format!("{name}: {} (measured {:?}, limit {:?})", check.check, check.measured, check.limit)
        })
        .collect();
    let is_missed = |(name, check): &&(String, String)| {
        all.iter().any(|(scenario, result)| scenario == name && result.check == *check)
    };
    let stale: Vec<_> = known.iter().filter(|line| !is_missed(line)).collect();
    assert!(stale.is_empty(), "holds again, to be taken out of known-misses.txt: {stale:#?}");
    assert!(new.is_empty(), "{new:#?}");
}

/// In these runs packets of the hump have come nearer to the floor than it is wide before one in 250 meets the floor.
#[test]
fn a_floor_that_one_packet_in_hundreds_meets_is_found_late_too() {
    let name = "soft-hump-cable";
    let scenario = Scenario::named(name).expect("built in");
    for seed in [4, 10, 13, 17] {
        let result = Run { name, scenario: &scenario, seed }.execute_with(&["learned"], None);
        let median = result.clocks[0].windows[0].median.expect("there were readings").abs();
        assert!(median < 10e-6, "{name}, seed {seed}: {median} s from the middle of the least delays");
    }
}

/// These runs begin in the middle of congestion of one direction; a filter that is sure of its first exchanges keeps
/// what they mislead it by.
#[test]
fn congestion_from_the_first_exchange_on_leaves_no_offset() {
    let runs = [("lan-congested-forward", [1, 6, 13, 20, 23, 52]), ("far-congested-forward", [9, 11, 30, 38, 51, 55])];
    for (name, seeds) in runs {
        let scenario = Scenario::named(name).expect("built in");
        for seed in seeds {
            let result = Run { name, scenario: &scenario, seed }.execute_with(&["learned"], None);
            let calibration = result.clocks[0].windows[0].calibration.expect("there were readings");
            assert!(calibration > 0.8, "{name}, seed {seed}: {calibration} of readings within twice their noise");
        }
    }
}
