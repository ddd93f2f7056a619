use super::*;
use crate::simulate::{Simulation, Spec};
use std::path::{Path, PathBuf};

/// A log that goes away with its directory.
struct Log(PathBuf);

impl Log {
    fn simulated(scenario: &str, seed: u64) -> Self {
        let name = format!("ffclock-correlation-{}-{seed}-{}", std::process::id(), scenario.len());
        let directory = std::env::temp_dir().join(name);
        let simulation = Simulation::new(&Spec::parse(scenario).unwrap(), Path::new("."), seed).unwrap();
        simulation.run_to_log(&directory, &mut |_| ()).unwrap();
        Log(directory)
    }

    fn tested(&self, seed: u64) -> Correlation {
        let log = LogReader::open(&self.0).unwrap();
        let options = CorrelationOptions { redraws: 39, seed, range: TimeRange::ALL };
        correlate(&log, &options, &mut |_| ()).unwrap().0
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How many seeds show a correlation, and how many have g_r > 1.
fn shown(scenario: &str, seeds: u64) -> (usize, usize) {
    let found: Vec<Correlation> = (0..seeds).map(|seed| Log::simulated(scenario, seed).tested(seed)).collect();
    assert!(found.iter().all(|one| one.verdict != CorrelationVerdict::NotTested), "{found:?}");
    let count = |is: &dyn Fn(&Correlation) -> bool| found.iter().filter(|one| is(one)).count();
    (count(&|one| one.verdict == CorrelationVerdict::Shown), count(&|one| one.g_r > Some(1.0)))
}

/// Delays that are independent of each other and of time show no correlation, although g_r is above 1 in nearly all
/// runs.
#[test]
fn independent_delays_are_not_shown_to_be_correlated() {
    let (shown, above) = shown("rounds = 300", 200);
    assert!(shown <= 10, "{shown} of 200");
    assert!(above >= 190, "{above} of 200");
}

/// Load that comes to all hosts together.
const COMMON_LOAD: &str = "rounds = 1000\n[load]\npattern = \"random\"\nlow = 0.0\nhigh = 0.9\ncorrelation = 1.0";

#[test]
fn a_common_load_is_shown_to_correlate_delays() {
    let (shown, _) = shown(COMMON_LOAD, 40);
    assert!(shown >= 38, "{shown} of 40");
}

#[test]
#[ignore = "the campaign: minutes of CPU"]
fn a_common_load_is_shown_for_95_percent_of_200_seeds() {
    let (shown, _) = shown(COMMON_LOAD, 200);
    println!("shown for {shown} of 200 seeds");
    assert!(shown >= 190, "{shown} of 200");
}

#[test]
fn what_cannot_be_tested_says_why() {
    let few = Log::simulated("rounds = 10", 1).tested(1);
    assert_eq!(few.verdict, CorrelationVerdict::NotTested);
    assert!(few.reason.unwrap().contains("at least 50"));
    let faulty = Log::simulated("rounds = 300\n[[fault]]\nkind = \"two-faced\"\nprocess = 2", 1).tested(1);
    assert_eq!(faulty.verdict, CorrelationVerdict::NotTested);
    assert!(faulty.reason.unwrap().contains("faulty process") && faulty.shifted.is_some());
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let log = Log::simulated("rounds = 100", 5);
    let figures = |seed| serde_json::to_string(&log.tested(seed)).unwrap();
    assert_eq!(figures(1), figures(1));
    assert_ne!(figures(1), figures(2));
}
