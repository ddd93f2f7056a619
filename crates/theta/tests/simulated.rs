//! Simulated runs, written as logs and analysed: the rules are kept, nothing is missing, and what is certified holds the truth.

mod common;

use common::Scratch;
use ffclock_theta::analysis::{Options, Report, analyse};
use ffclock_theta::log::LogReader;
use ffclock_theta::simulate::{Simulation, Spec};
use std::path::Path;

/// The log of a simulated run, below a directory that goes away with it.
fn simulated(scenario: &str, seed: u64) -> (Scratch, LogReader) {
    let scratch = Scratch::new("simulated");
    let spec = Spec::parse(scenario).expect("a scenario");
    let simulation = Simulation::new(&spec, Path::new("."), seed).expect("that makes sense");
    simulation.run_to_log(&scratch.path().join("run"), &mut |_| ()).expect("the disk has room");
    let log = LogReader::open(&scratch.path().join("run")).expect("just written");
    (scratch, log)
}

fn report(log: &LogReader) -> Report {
    let tally = analyse(log, Options::default(), &mut ()).expect("just written");
    Report::new(log.run(), &tally, log.damage())
}

fn assert_sound(report: &Report, what: &str) {
    assert_eq!(report.remarks, [""; 0], "{what}");
    let conformance = &report.conformance;
    assert!(report.whole && conformance.kept, "{what}: {conformance:?}");
    assert!(conformance.switches > 100, "{what}: {conformance:?}");
}

/// Where processes start apart and there is no delay, one may catch up and advance at once: these are two switches.
#[test]
fn a_catch_up_and_an_advance_at_once_are_no_breach() {
    let mut catch_ups = 0;
    for seed in 0..20 {
        let (_scratch, log) = simulated("rounds = 100\nstart_spread = \"1 ms\"", seed);
        let report = report(&log);
        assert_sound(&report, &format!("seed {seed}"));
        catch_ups += report.conformance.catch_ups;
    }
    assert!(catch_ups > 20, "{catch_ups}");
}

/// Who is cut off for more rounds than its window has keeps the newest round of each other one only, and goes on from there.
#[test]
fn who_was_left_far_behind_catches_up_by_the_rules() {
    let mut catch_ups = 0;
    for seed in 0..10 {
        let cut = "[[fault]]\nkind = \"partition\"\ngroup = [2]\nfrom = \"2 ms\"\nuntil = \"20 ms\"";
        let (_scratch, log) = simulated(&format!("rounds = 500\n{cut}"), seed);
        let report = report(&log);
        assert_sound(&report, &format!("seed {seed}"));
        assert!(report.conformance.spread_max > 100, "seed {seed}: {:?}", report.conformance);
        catch_ups += report.conformance.catch_ups;
    }
    assert!(catch_ups >= 10, "{catch_ups}");
}
