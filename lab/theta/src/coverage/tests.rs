use super::*;
use crate::analysis::{Options, PairMode, Ratio, analyse};
use crate::simulate::{Simulation, Spec};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A log that goes away with its directory.
struct Log(PathBuf);

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Log {
    fn simulated(scenario: &str, seed: u64) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("ffclock-coverage-{}-{number}", std::process::id()));
        let simulation = Simulation::new(&Spec::parse(scenario).unwrap(), Path::new("."), seed).unwrap();
        simulation.run_to_log(&directory, &mut |_| ()).unwrap();
        Log(directory)
    }

    fn open(&self) -> LogReader {
        LogReader::open(&self.0).unwrap()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn options() -> CoverageOptions {
    CoverageOptions { resamples: 99, ..CoverageOptions::default() }
}

fn compared(calm: &str, loaded: &str, options: &CoverageOptions) -> Coverage {
    let (calm, loaded) = (Log::simulated(calm, 1), Log::simulated(loaded, 2));
    coverage(&calm.open(), &loaded.open(), options, &mut |_| ()).unwrap()
}

fn chosen(found: &Coverage, model: BoundModel) -> &BoundCoverage {
    found.chosen.iter().find(|one| one.model == model).unwrap()
}

/// Links of at least this delay, and this more on the average.
fn links(least_us: u32, more_us: u32) -> String {
    let law =
        |least_us, more_us| format!("{{ kind = \"exponential\", min = \"{least_us} us\", mean = \"{more_us} us\" }}");
    format!("rounds = 600\n[link]\nlaw = {}\n", law(least_us, more_us))
}

/// All delays ten times as long: what the paper concludes. tau+ and tau_r- grow together, and the ratio stays.
#[test]
fn the_ratio_holds_where_load_stretches_all_delays() {
    let fast = links(20, 5) + "[receiver]\nservice = { kind = \"constant\", value = \"1 us\" }";
    let own = "[self_reception]\nkind = \"exponential\"\nmin = \"80 us\"\nmean = \"20 us\"\n";
    let slow = links(200, 50) + own + "[receiver]\nservice = { kind = \"constant\", value = \"10 us\" }";
    let found = compared(&fast, &slow, &options());
    let (timeout, ratio) = (chosen(&found, BoundModel::Timeout), chosen(&found, BoundModel::Ratio));
    assert!(timeout.loaded.rounds.share > 0.99 && timeout.loaded.rounds.low > 0.9, "{timeout:?}");
    assert!(timeout.loaded.time.share > 0.9 && timeout.loaded.messages.share > 0.5, "{timeout:?}");
    assert!(ratio.loaded.rounds.share < 0.01 && ratio.loaded.messages.share < 0.01, "{ratio:?}");
    assert_eq!(found.verdicts[0].verdict, CoverageVerdict::RatioHolds, "{:?}", found.verdicts);
}

/// Hosts that no longer sleep between messages: the fastest messages get faster, the slowest do not. No timeout of the
/// calm run is broken, but the ratio is.
#[test]
fn the_timeout_holds_where_load_wakes_the_fast_messages_only() {
    let options = CoverageOptions { share: 0.99, ..options() };
    let found = compared(&links(90, 2), &links(20, 4), &options);
    let (timeout, ratio) = (chosen(&found, BoundModel::Timeout), chosen(&found, BoundModel::Ratio));
    assert!(timeout.loaded.rounds.share < 0.01, "{timeout:?}");
    assert!(ratio.loaded.rounds.share > 0.5 && ratio.loaded.rounds.low > 0.4, "{ratio:?}");
    assert!(ratio.loaded.time.share > 0.1, "{ratio:?}");
    assert_eq!(found.verdicts[0].verdict, CoverageVerdict::TimeoutHolds, "{:?}", found.verdicts);
}

/// One host in four is overloaded: its messages take longer, and the other three go on without it. The ratio breaks as
/// often as the timeout.
#[test]
fn a_partial_overload_breaks_the_ratio_too() {
    let special = "[[link.special]]\nfrom = [0]\nto = [1, 2, 3]\nlaw = { kind = \"exponential\", min = \"200 us\", mean = \"20 us\" }\n";
    let found = compared(&links(20, 5), &(links(20, 5) + special), &options());
    for model in [BoundModel::Timeout, BoundModel::Ratio] {
        assert!(chosen(&found, model).loaded.rounds.share > 0.9, "{model:?}: {:?}", chosen(&found, model));
    }
    assert_ne!(found.verdicts[0].verdict, CoverageVerdict::RatioHolds, "{:?}", found.verdicts);
}

/// Where nothing differs, no difference is found: of 40 pairs of seeds two may be.
#[test]
fn two_calm_runs_show_no_difference() {
    let different = (0..40).filter(|&seed| {
        let (one, other) = (Log::simulated("rounds = 300", 2 * seed), Log::simulated("rounds = 300", 2 * seed + 1));
        let options = CoverageOptions { share: 0.99, ..options() };
        let found = coverage(&one.open(), &other.open(), &options, &mut |_| ()).unwrap();
        found.verdicts[0].verdict != CoverageVerdict::NoDifference
    });
    assert!(different.count() <= 4);
}

/// The same switches with the same delays, and the same largest ratio at any time, as the exact analysis.
#[test]
fn rounds_are_those_of_the_analysis() {
    for (seed, stamping) in (0..10).flat_map(|seed| {
        [SwitchStamping::AfterBroadcast, SwitchStamping::BeforeBroadcast].map(|stamping| (seed, stamping))
    }) {
        let scenario = "rounds = 100\n[load]\npattern = \"random\"\nlow = 0.0\nhigh = 0.9\n[[fault]]\nkind = \"two-faced\"\nprocess = 2";
        let log = Log::simulated(scenario, seed);
        let log = log.open();
        let tally = analyse(&log, Options { stamping, pairs: PairMode::Keep, ..Options::default() }, &mut ()).unwrap();
        let run = covered("calm", &log, &CoverageOptions { stamping, ..options() }).unwrap();
        let rounds = run.rounds.iter().filter(|round| round.longest_ps > 0);
        assert!(
            rounds
                .map(|round| (round.relevant_ps, round.longest_ps))
                .eq(tally.pairs.iter().map(|pair| (pair.relevant_ps, pair.longest_ps)))
        );
        assert_eq!(run.rounds.len() as u64, tally.first.times);
        let at_switches = run.rounds.iter().map(|round| (round.longest_ps, round.relevant_ps));
        let between = run.spells.iter().map(|spell| (spell.longest_ps, run.rounds[spell.round].relevant_ps));
        let ratios = at_switches.chain(between).filter_map(|(over, under)| Ratio::of(over, under));
        assert_eq!(ratios.max(), tally.throughout.map(|peak| peak.ratio), "seed {seed}, {stamping:?}");
    }
}

/// Time by time, from the definitions: each picosecond of a run would be too many, so every tick of its counters.
#[test]
fn the_share_of_time_is_that_of_single_times() {
    let log = Log::simulated("rounds = 60\n[clock]\nhertz = 1e7", 3);
    let log = log.open();
    let joined = JoinedLog::from_log(&log, SwitchStamping::AfterBroadcast).unwrap();
    let run = CoveredRun::new(&joined, SwitchStamping::AfterBroadcast, TimeRange::ALL);
    let timeout_ps = run.rounds.iter().map(|round| round.longest_ps).sum::<i64>() / run.rounds.len() as i64;
    let begin_ps = joined.messages.iter().map(|message| message.sent.clock_ps).min().unwrap();
    let end_ps = begin_ps + run.length().time_ps as i64;
    let transit = |at_ps: i64| {
        let now = joined.messages.iter().filter(|one| one.sent.clock_ps <= at_ps && at_ps < one.perceived.clock_ps);
        now.map(|one| one.perceived.clock_ps - one.sent.clock_ps).max().unwrap_or(0)
    };
    let times: Vec<i64> = (begin_ps..end_ps).step_by(10_000).collect();
    let broken = times.iter().filter(|&&at_ps| transit(at_ps) > timeout_ps).count() as f64 / times.len() as f64;
    let spells = run.spells.iter().filter(|spell| spell.longest_ps > timeout_ps);
    let share = spells.map(|spell| spell.lasts_ps as f64).sum::<f64>() / run.length().time_ps;
    assert!((share - broken).abs() < 0.005 && (0.05..0.95).contains(&share), "{share} against {broken}");
}

#[test]
fn a_given_bound_is_held_against_both() {
    let given = [(BoundModel::Timeout, 1e12), (BoundModel::Ratio, 1.0), (BoundModel::RatioWithDelay, 1.0)];
    let given = given.map(|(model, bound)| GivenBound { model, bound }).to_vec();
    let found = compared(
        "rounds = 100\ndelay = \"1 ms\"",
        "rounds = 100\ndelay = \"1 ms\"",
        &CoverageOptions { given, ..options() },
    );
    let [timeout, ratio, with_delay] = &found.given[..] else { panic!("three: {:?}", found.given) };
    // No message takes a second; often one takes longer than tau_r-, and never longer than that and D.
    assert_eq!((timeout.calm.rounds, timeout.loaded.messages.share), (0.0, 0.0));
    assert!(ratio.calm.rounds > 0.2 && ratio.loaded.rounds.share > 0.2, "{ratio:?}");
    assert_eq!(with_delay.loaded.rounds, FailingShare { share: 0.0, low: 0.0, high: 0.0 });
    assert_eq!(found.verdicts.len(), 2);
}

#[test]
fn curves_rise_to_the_common_breaches() {
    let found = compared("rounds = 400", "rounds = 400\n[load]\nhigh = 0.5", &options());
    for CoverageCurve { model, points } in &found.curves {
        assert!(points.len() > 15 && (points[0].calm_share - 1e-5).abs() < 1e-12, "{model:?}: {points:?}");
        assert!(points.is_sorted_by(|one, next| one.bound >= next.bound), "{model:?}: {points:?}");
        assert!(points.is_sorted_by(|one, next| one.loaded.share <= next.loaded.share), "{model:?}: {points:?}");
        assert_eq!(points[0].basis, BoundBasis::TailFit);
        assert!(points.iter().all(|point| (0.0..=1.0).contains(&point.loaded.share)));
    }
}

#[test]
fn what_cannot_be_compared_says_why() {
    let complaint = |calm: &str, loaded: &str, options: &CoverageOptions| {
        let (calm, loaded) = (Log::simulated(calm, 1), Log::simulated(loaded, 2));
        coverage(&calm.open(), &loaded.open(), options, &mut |_| ()).unwrap_err().to_string()
    };
    let plain = "rounds = 100";
    assert!(complaint(plain, "rounds = 100\nn = 7", &options()).starts_with("the runs differ in n: 4 in calm, 7"));
    assert!(complaint(plain, "rounds = 100\ndelay = \"1 ms\"", &options()).contains("differ in D"));
    assert!(complaint(plain, "rounds = 10", &options()).starts_with("the loaded run has "));
    let trimmed = CoverageOptions { trim_ps: 1_000_000_000_000, ..options() };
    assert!(complaint(plain, plain, &trimmed).contains("nothing is left of it without 1 s"));
}

#[test]
fn the_same_seed_gives_the_same_intervals() {
    let figures = |seed| {
        serde_json::to_string(&compared(
            "rounds = 100",
            "rounds = 100\n[load]\nhigh = 0.5",
            &CoverageOptions { seed, ..options() },
        ))
        .unwrap()
    };
    assert_eq!(figures(1), figures(1));
    assert_ne!(figures(1), figures(2));
}
