use super::*;
use crate::analysis::Clocks;
use crate::log::{LogWriter, WayInColumns};
use crate::record::{Event, Round, SwitchEvent};
use crate::simulate::{Simulation, Spec};
use ffclock_units::Counter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A log that goes away with its directory.
struct Log(PathBuf);

impl Log {
    fn simulated(scenario: &str, seed: u64) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let name = format!("ffclock-correlation-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        let simulation = Simulation::new(&Spec::parse(scenario).unwrap(), Path::new("."), seed).unwrap();
        simulation.run_to_log(&directory, &mut |_| ()).unwrap();
        Log(directory)
    }

    fn tested(&self, seed: u64) -> Correlation {
        let log = LogReader::open(&self.0).unwrap();
        correlate(&log, &options(seed), &mut |_| ()).unwrap().0
    }

    fn opened(&self) -> LogReader {
        LogReader::open(&self.0).unwrap()
    }

    /// When `round` was first sent.
    fn first_sent_ps(&self, round: u64) -> i64 {
        let mut first = i64::MAX;
        self.each_timed(|event, at_ps| {
            if let Event::Broadcast { round: of, .. } = *event
                && of == Round(round)
            {
                first = first.min(at_ps);
            }
        });
        first
    }

    fn each_timed(&self, mut take: impl FnMut(&Event, i64)) {
        let log = self.opened();
        let mut clocks = Clocks::new(log.run(), log.clocks()).unwrap();
        log.each_event(WayInColumns::Skip, AnalysisError::from, |event| {
            let (process, at) = (event.process(), event.at());
            take(event, clocks.time_ps(process.index(), at));
            Ok(())
        })
        .unwrap();
    }

    /// The same run, in which all stood still for `pause_ticks` of the counters at `at_ps`: what happened before
    /// happened earlier by as much.
    fn paused(&self, at_ps: i64, pause_ticks: u64) -> Self {
        let log = self.opened();
        let paused = Log(self.0.with_extension("paused"));
        let mut writer = LogWriter::create(&paused.0, log.run()).unwrap();
        log.clocks().iter().for_each(|sample| writer.clock(*sample));
        self.each_timed(|event, time_ps| {
            let earlier = if time_ps < at_ps { pause_ticks } else { 0 };
            writer.event(&moved(event, earlier)).unwrap();
        });
        writer.finish().unwrap();
        paused
    }
}

fn moved(event: &Event, earlier: u64) -> Event {
    let moved = |counter: Counter| Counter::from_raw(counter.raw().wrapping_sub(earlier));
    match *event {
        Event::Broadcast { process, round, at } => Event::Broadcast { process, round, at: moved(at) },
        Event::Transmission { process, receiver, round, at } => {
            Event::Transmission { process, receiver, round, at: moved(at) }
        }
        Event::Perception { process, sender, round, at, way_in } => {
            Event::Perception { process, sender, round, at: moved(at), way_in }
        }
        Event::Switch(switch) => {
            Event::Switch(SwitchEvent { at: moved(switch.at), decided: moved(switch.decided), ..switch })
        }
    }
}

fn options(seed: u64) -> CorrelationOptions {
    let messages_max = CorrelationOptions::MESSAGES_MAX;
    CorrelationOptions { redraws: 39, seed, range: TimeRange::ALL, messages_max }
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

/// Messages that were on their way during the pause took seconds. With the pause left out they are in no law of the
/// redrawn runs.
#[test]
fn a_pause_that_is_left_out_changes_nothing() {
    let calm = Log::simulated("rounds = 302", 3);
    let paused = calm.paused(calm.first_sent_ps(20), 2_000_000_000);
    let range = TimeRange { after_ps: calm.first_sent_ps(30), ..TimeRange::ALL };
    let figures = |log: &Log, range| {
        let options = CorrelationOptions { range, ..options(3) };
        serde_json::to_string(&correlate(&log.opened(), &options, &mut |_| ()).unwrap().0).unwrap()
    };
    assert_ne!(figures(&paused, TimeRange::ALL), figures(&calm, TimeRange::ALL), "the pause is in the log");
    assert_eq!(figures(&paused, range), figures(&calm, range));
    assert!(figures(&calm, range).contains(r#""verdict":"not-shown""#), "{}", figures(&calm, range));
}

#[test]
fn redrawn_runs_have_the_rounds_that_count() {
    let log = Log::simulated("rounds = 301", 4);
    let range = TimeRange { after_ps: log.first_sent_ps(100) - 1, until_ps: log.first_sent_ps(199) };
    let redraw = Redraw::of(&log.opened(), 301, RedrawLimits { range, messages_max: 1 << 24 }).unwrap().unwrap();
    // A first switch with nothing in transit is no pair.
    for seed in 0..5 {
        let pairs = redraw.run(seed).unwrap().pairs.len();
        assert!((80..=100).contains(&pairs), "{pairs} pairs of 100 rounds");
    }
}

#[test]
fn more_messages_than_memory_takes_are_not_tested() {
    let log = Log::simulated("rounds = 60", 5);
    let why = "960 messages, and the delays of at most 959 are drawn again";
    let limited = |messages_max| {
        let options = CorrelationOptions { messages_max, ..options(5) };
        correlate(&log.opened(), &options, &mut |_| ()).unwrap().0
    };
    assert_eq!(limited(960).reason, None);
    let found = limited(959);
    assert!(found.verdict == CorrelationVerdict::NotTested && found.reason.unwrap().contains(why));
    assert!(found.rho.is_some() && found.redrawn.is_none());
    // Messages from before the range, which are still in transit, are not counted by the analysis.
    let limits = RedrawLimits { range: TimeRange::ALL, messages_max: 959 };
    let redraw = Redraw::of(&log.opened(), 60, limits).unwrap();
    assert!(redraw.err().unwrap().contains(why));
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let log = Log::simulated("rounds = 100", 5);
    let figures = |seed| serde_json::to_string(&log.tested(seed)).unwrap();
    assert_eq!(figures(1), figures(1));
    assert_ne!(figures(1), figures(2));
}
