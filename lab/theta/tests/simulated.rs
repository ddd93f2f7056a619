//! Simulated runs, written as logs and analysed: the rules are kept, nothing is missing, and what is certified holds
//! the truth.

mod common;

use common::Scratch;
use ffclock_theta::analysis::{Omega, Options, Ratio, ThetaMode, ThetaReport, analyse, trimmed};
use ffclock_theta::certified::{Certified, CertifyError, CertifyOptions, OmegaBounds, certify};
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

fn report(log: &LogReader) -> ThetaReport {
    let tally = analyse(log, Options::default(), &mut ()).expect("just written");
    ThetaReport::new(log.run(), &tally, log.damage())
}

fn assert_sound(report: &ThetaReport, what: &str) {
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

/// Of the default scenario, at all sizes: processes that start while they are processing a message have not perceived
/// it yet.
#[test]
fn a_process_starts_when_it_has_processed_what_came_before() {
    for (processes, tolerated) in [(4, 1), (7, 2), (7, 1), (10, 1)] {
        for seed in 0..200 {
            let (_scratch, log) = simulated(&format!("n = {processes}\nf = {tolerated}\nrounds = 5"), seed);
            let report = report(&log);
            let conformance = &report.conformance;
            assert!(conformance.kept, "n = {processes}, f = {tolerated}, seed {seed}: {conformance:?}");
        }
    }
}

/// Who is cut off for more rounds than its window has keeps the newest round of each other one only, and goes on from
/// there.
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

/// The truth lies within what is certified, for first switches and for all; how wide that is, as a ratio.
fn assert_certified(log: LogReader, what: &str) -> f64 {
    let options = CertifyOptions { theta: ThetaMode::Compute, ..CertifyOptions::default() };
    let certified = certify(&log, &options).unwrap_or_else(|error| panic!("{what}: {error}"));
    let log = log.by_truth().expect("a simulation knows it");
    let tally =
        analyse(&log, Options { theta: ThetaMode::Compute, ..Options::default() }, &mut ()).expect("just written");
    let truth = ThetaReport::new(log.run(), &tally, log.damage());
    for (name, bounds, truth) in [
        ("throughout", certified.throughout, truth.throughout.map(|peak| peak.ratio)),
        ("Theta", certified.theta, truth.theta),
    ] {
        let (OmegaBounds { low, high }, truth) = (bounds.expect("switches"), truth.expect("messages"));
        assert!(low <= truth && truth <= high, "{what}, {name}: {truth:?} is not in {low:?} .. {high:?}");
    }
    for (bounds, truth) in [(certified.g_r_first, truth.first.g_r), (certified.g_r_all, truth.all.g_r)] {
        let ((low, high), truth) = (bounds.expect("switches"), truth.expect("switches"));
        assert!(low <= truth && truth <= high, "{what}, g_r: {truth} is not in {low} .. {high}");
    }
    let mut widest: f64 = 1.0;
    for (bounds, truth) in [(certified.first, truth.first.omega), (certified.all, truth.all.omega)] {
        let truth = truth.unwrap_or_else(|| panic!("{what}: no switches")).ratio;
        let OmegaBounds { low, high } = bounds.expect("there are switches");
        assert!(low <= truth && truth <= high, "{what}: {truth:?} is not in {low:?} .. {high:?}");
        widest = widest.max(high.as_f64() / low.as_f64());
    }
    widest
}

const FAULTS: [(&str, &str); 13] = [
    ("nothing", ""),
    ("crash", "process = 2\nfrom = \"2 ms\""),
    ("silence", "process = 2"),
    ("late-start", "process = 2\nfrom = \"3 ms\""),
    ("two-faced", "process = 2"),
    ("early-messages", "process = 2"),
    ("replay", "process = 2"),
    ("duplicate-identity", "process = 2"),
    ("link-loss", "probability = 0.01\nfrom = \"2 ms\""),
    ("link-duplication", "probability = 0.3"),
    ("link-hold", "process = 1\nhold = \"2 ms\"\nprobability = 0.1"),
    ("partition", "group = [0, 1]\nfrom = \"2 ms\"\nuntil = \"6 ms\""),
    ("slow-host", "host = 1\nfactor = 50.0"),
];

/// Whatever goes wrong but with clocks, the run is one of the algorithm, the log is whole, and the truth lies within
/// what is certified.
#[test]
fn runs_with_all_kinds_of_faults_are_sound() {
    for (kind, keys) in FAULTS {
        let fault = if keys.is_empty() { String::new() } else { format!("[[fault]]\nkind = \"{kind}\"\n{keys}") };
        for delay in ["0 s", "1 ms"] {
            for seed in 0..3 {
                let what = format!("{kind}, D = {delay}, seed {seed}");
                let scenario = format!("rounds = 60\ndelay = \"{delay}\"\n[clock]\nbound = \"1 us\"\n{fault}");
                let (_scratch, log) = simulated(&scenario, seed);
                let report = report(&log);
                assert_eq!(report.remarks, [""; 0], "{what}");
                assert!(report.whole && report.conformance.kept, "{what}: {:?}", report.conformance);
                assert!(report.conformance.switches > 50, "{what}: {:?}", report.conformance);
                assert_certified(log, &what);
            }
        }
    }
}

#[test]
fn what_is_certified_holds_the_truth_of_a_hundred_seeds() {
    for seed in 0..120 {
        let bound = ["200 ns", "1 us", "10 us", "60 us"][seed as usize % 4];
        let scenario = format!(
            "rounds = 40\n[link]\nupward = 1.5\n[clock]\nbound = \"{bound}\"\nperiod = \"1 ms\"\ndrift = \"0.1 ppm\""
        );
        let (_scratch, log) = simulated(&scenario, seed);
        let width = assert_certified(log, &format!("seed {seed}, {bound}"));
        // Worth having where clocks are good.
        assert!(bound != "200 ns" || width < 2.0, "seed {seed}: {width}");
    }
}

/// A run of a millisecond is no epoch of a second: drift does not grow beyond its end.
#[test]
fn epochs_are_no_longer_than_the_run() {
    for seed in 0..5 {
        let (_scratch, log) = simulated("rounds = 10", seed);
        let certified = certify(&log, &CertifyOptions::default()).expect("perfect clocks");
        assert!(certified.half_width_max_ps < 1_000, "seed {seed}: {} ps", certified.half_width_max_ps);
        assert_certified(log, &format!("seed {seed}"));
    }
}

/// A counter that ticks every 5 us shows delays that are shorter than the least one by up to a tick.
#[test]
fn what_is_certified_allows_for_the_tick_of_a_coarse_counter() {
    for seed in 0..60 {
        let scenario = "rounds = 40\n[clock]\nhertz = 2e5\nbound = \"200 ns\"";
        let (_scratch, log) = simulated(scenario, seed);
        assert_certified(log, &format!("seed {seed}"));
    }
}

/// Delays by a clock that left its bound are not passed off as right; by the true clocks they are.
#[test]
fn an_analysis_by_a_false_clock_says_so() {
    let fault = "[[fault]]\nkind = \"clock-step\"\nhost = 1\nstep = \"50 ns\"";
    let (_scratch, log) = simulated(&format!("rounds = 300\n[clock]\nbound = \"1 us\"\n{fault}"), 1);
    let by_clocks = report(&log);
    assert!(!by_clocks.whole && by_clocks.remarks[0].contains("host1"), "{:?}", by_clocks.remarks);
    assert_sound(&report(&log.by_truth().expect("a simulation knows it")), "by the truth");
}

/// As Omega, it is 1 at least: D only makes ratios smaller.
#[test]
fn with_the_delay_too_omega_is_at_least_one() {
    for seed in 0..5 {
        let (_scratch, log) = simulated("rounds = 300\ndelay = \"10 ms\"", seed);
        let Omega { omega, omega_with_delay, .. } = report(&log).all;
        let omega = omega.expect("there are switches").ratio;
        assert!(omega_with_delay >= Some(Ratio::ONE) && omega_with_delay <= Some(omega), "{omega_with_delay:?}");
    }
}

/// What a clock does beyond its bound is found, and its host named; within the bound it is not.
#[test]
fn clocks_beyond_their_bounds_are_found_and_named() {
    let step = |step: &str, window: &str| format!("kind = \"clock-step\"\nhost = 1\nstep = \"{step}\"\n{window}");
    let short = "from = \"3 ms\"\nuntil = \"4 ms\"";
    let drift = |rate: &str| format!("kind = \"clock-drift\"\nhost = 1\nrate = \"{rate}\"");
    for (fault, is_found) in [
        (step("200 us", ""), true),
        (step("200 us", short), true),
        (step("-5 ms", short), true),
        (drift("9000 ppm"), true),
        (step("50 ns", short), false),
        (step("50 ns", "from = \"3 ms\""), false),
        (drift("0.01 ppm"), false),
    ] {
        for delay in ["0 s", "1 ms"] {
            for seed in 0..3 {
                let scenario =
                    format!("rounds = 300\ndelay = \"{delay}\"\n[clock]\nbound = \"1 us\"\n[[fault]]\n{fault}");
                let (_scratch, log) = simulated(&scenario, seed);
                let what = format!("{fault}, D = {delay}, seed {seed}");
                match certify(&log, &CertifyOptions::default()) {
                    Err(CertifyError::Lied(lie)) => {
                        assert!(is_found, "{what}: {lie}");
                        assert_eq!(lie.suspects, ["host1"], "{what}: {lie}");
                    }
                    other => assert!(!is_found && other.is_ok(), "{what}: {other:?}"),
                }
            }
        }
    }
}

/// Messages that a link held back early in the run matter no more when the start is trimmed.
#[test]
fn what_is_trimmed_is_not_certified() {
    let hold = "[[fault]]\nkind = \"link-hold\"\nprocess = 1\nhold = \"2 ms\"\nprobability = 0.5\nuntil = \"3 ms\"";
    let (_scratch, log) = simulated(&format!("rounds = 1000\n[clock]\nbound = \"1 us\"\n{hold}"), 1);
    let whole = certify(&log, &CertifyOptions::default()).expect("clocks that keep their bounds");
    let range = trimmed(&log, 6_000_000_000).expect("longer than that");
    let rest = certify(&log, &CertifyOptions { range, ..CertifyOptions::default() }).expect("the same clocks");
    let bounds = |certified: &Certified| [certified.first, certified.all].map(|bounds| bounds.expect("switches"));
    for (whole, rest) in bounds(&whole).into_iter().zip(bounds(&rest)) {
        assert!(rest.high < whole.low, "{rest:?} is not below {whole:?}");
    }
    let tally = analyse(&log, Options { range, ..Options::default() }, &mut ()).expect("just written");
    let seen = ThetaReport::new(log.run(), &tally, log.damage());
    for (bounds, seen) in bounds(&rest).into_iter().zip([seen.first.omega, seen.all.omega]) {
        let seen = seen.expect("switches").ratio;
        assert!(bounds.low <= seen && seen <= bounds.high, "{seen:?} is not in {bounds:?}");
    }
}
