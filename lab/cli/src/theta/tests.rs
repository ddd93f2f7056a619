//! The command as a user types it.

use super::{Args, run};
use crate::{Failure, LabCli};
use clap::{Parser, Subcommand};
use ffclock_theta::log::LogWriter;
use ffclock_theta::record::{
    ClockSample, Event, HostId, LogOrigin, ProcessId, RecordedForm, Round, RunDescription, RunHost, SwitchEvent,
    SwitchRule, WayIn,
};
use ffclock_units::{Counter, Period, Rate};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Subcommand)]
enum Only {
    Theta(Args),
}

/// `ffclock-lab theta WORDS`.
pub(super) fn theta(words: &[&str]) -> Result<(), Failure> {
    let cli = LabCli::<Only>::try_parse_from(["ffclock-lab", "theta"].iter().chain(words)).unwrap();
    let Only::Theta(args) = &cli.command;
    run(&cli.global, args)
}

pub(super) struct Log(pub(super) PathBuf);

impl Drop for Log {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn one_process() -> RunDescription {
    RunDescription {
        origin: LogOrigin::Simulated,
        form: RecordedForm::Repaired,
        processes: 1,
        tolerated: 0,
        delay_ps: 0,
        delay_min_ps: 0,
        disorder_ps: 0,
        hosts: vec![RunHost { name: "alone".to_owned(), counter: "simulated".to_owned() }],
        host_of: vec![HostId(0)],
        faults: vec![],
        settings: BTreeMap::new(),
        unrecorded: 0,
    }
}

/// A process that speaks with itself; `needed` messages let it switch, by what it claims.
fn log(name: &str, claims: impl Fn(u64) -> bool) -> Log {
    let path = std::env::temp_dir().join(format!("ffclock-theta-cli-{}-{name}", std::process::id()));
    let mut writer = LogWriter::create(&path, &one_process()).unwrap();
    let (process, period) = (ProcessId(0), Period::from_seconds(1e-9).unwrap());
    let drift_bound = Rate::from_ppm(0.0);
    writer.clock(ClockSample {
        host: HostId(0),
        counter: Counter::from_raw(0),
        time_ps: 0,
        bound_ps: 0,
        period,
        drift_bound,
    });
    for round in 1..=100 {
        let at = Counter::from_raw(1000 * round);
        let (from, to) = (Round(round - 1), Round(round));
        if round > 1 {
            writer
                .event(&Event::Switch(SwitchEvent { process, from, to, at, decided: at, rule: SwitchRule::Advance }))
                .unwrap();
        }
        writer.event(&Event::Broadcast { process, round: to, at }).unwrap();
        if claims(round) {
            let at = Counter::from_raw(1000 * round + 900);
            writer
                .event(&Event::Perception { process, sender: process, round: to, at, way_in: WayIn::default() })
                .unwrap();
        }
    }
    writer.finish().unwrap();
    Log(path)
}

fn analyse(log: &Path, more: &[&str]) -> Result<(), Failure> {
    theta(&[&["analyse", log.to_str().unwrap()], more].concat())
}

#[test]
fn a_log_that_keeps_the_rules_is_well() {
    let log = log("kept", |_| true);
    assert_eq!(analyse(&log.0, &[]), Ok(()));
    assert_eq!(analyse(&log.0, &["--json", "--theta", "--histograms", "--stamp", "before", "--trim", "10 us"]), Ok(()));
    assert_eq!(analyse(&log.0, &["--certify", "--xi"]), Ok(()));
    assert_eq!(analyse(&log.0, &["--certify", "--trim", "10 us"]), Ok(()));
}

#[test]
fn what_does_not_go_together_is_reported() {
    let log = log("together", |_| true);
    let failure = analyse(&log.0, &["--xi", "--trim", "10 us"]).unwrap_err();
    assert_eq!(failure.code, Failure::USAGE, "{failure}");
    assert!(failure.message.contains("--xi and --trim"), "{failure}");
    let failure = analyse(&log.0, &["--truth"]).unwrap_err();
    assert!(failure.message.contains("truth.parquet"), "{failure}");
}

#[test]
fn a_switch_without_its_messages_is_a_failure() {
    let log = log("broken", |round| round != 50);
    let failure = analyse(&log.0, &[]).unwrap_err();
    assert!(failure.message.contains("rules"), "{failure:?}");
}

#[test]
fn a_cut_log_gives_partial_results_and_a_failure() {
    let log = log("cut", |_| true);
    let run_file = log.0.join("run.json");
    let text = std::fs::read_to_string(&run_file).unwrap();
    std::fs::write(&run_file, text.replace("\"complete\": true", "\"complete\": false")).unwrap();
    let failure = analyse(&log.0, &["--json"]).unwrap_err();
    assert!(failure.message.contains("partial"), "{failure:?}");
}

/// A run of four simulated processes, with its description changed.
pub(super) fn simulated(name: &str, change: impl Fn(&mut serde_json::Value)) -> Log {
    let path = std::env::temp_dir().join(format!("ffclock-theta-cli-{}-{name}", std::process::id()));
    let log = Log(path);
    let words = ["simulate", "--json", "--n", "4", "--f", "1", "--rounds", "200", "--log", log.0.to_str().unwrap()];
    theta(&words).unwrap();
    let run_file = log.0.join("run.json");
    let mut run = serde_json::from_str(&std::fs::read_to_string(&run_file).unwrap()).unwrap();
    change(&mut run);
    std::fs::write(&run_file, run.to_string()).unwrap();
    log
}

/// Their figures are printed, and are not those of the whole run.
#[test]
fn every_command_tells_of_a_log_that_is_not_whole() {
    let whole = simulated("whole", |_| ());
    let fault = serde_json::json!({ "kind": "clock-step", "host": 2 });
    let logs = [
        (simulated("not-complete", |run| run["complete"] = false.into()), "did not come to the end"),
        (simulated("unrecorded", |run| run["run"]["unrecorded"] = 3.into()), "3 events were lost by the recorder"),
        (simulated("stepped", |run| run["run"]["faults"] = vec![fault.clone()].into()), "the clock of host host2"),
    ];
    let path = |log: &Log| log.0.to_str().unwrap().to_owned();
    let outcomes = |log: &Log| {
        let (whole, log) = (path(&whole), path(log));
        let coverage = ["--resamples", "39", "--share", "0.9"];
        [
            theta(&["correlate", &log, "--redraws", "19"]),
            theta(&[&["coverage", &whole, "--under", &log], &coverage[..]].concat()),
            theta(&[&["coverage", &log, "--under", &whole], &coverage[..]].concat()),
            theta(&["why", &log]),
        ]
    };
    assert_eq!(outcomes(&whole), [Ok(()), Ok(()), Ok(()), Ok(())]);
    for (log, why) in &logs {
        for outcome in outcomes(log) {
            let failure = outcome.expect_err(why);
            assert!(failure.message.contains("partial results") && failure.message.contains(why), "{failure}");
            assert!(failure.message.contains(&path(log)), "{failure}");
        }
    }
}

#[test]
fn what_is_no_log_is_named() {
    let failure = analyse(Path::new("no-such-log"), &[]).unwrap_err();
    assert!(failure.message.contains("no-such-log"), "{failure:?}");
}

#[test]
fn what_is_no_capture_is_named() {
    let log = log("no-capture", |_| true);
    let file = log.0.join("run.json");
    let output = log.0.join("imported");
    let words = [
        "import",
        file.to_str().unwrap(),
        "--client",
        "10.0.0.9",
        "--port",
        "7000",
        "--output",
        output.to_str().unwrap(),
    ];
    let failure = theta(&words).unwrap_err();
    assert!(failure.message.contains("run.json") && failure.message.contains("no capture"), "{failure:?}");
    assert!(!output.exists());
}

#[test]
fn a_report_without_its_interpreter_says_so() {
    let log = log("no-python", |_| true);
    let failure = theta(&["report", log.0.to_str().unwrap(), "--python", "no-such-python"]).unwrap_err();
    assert!(failure.message.contains("no-such-python"), "{failure:?}");
}

/// A list of messages of three senders, rounds of 1 ms, in which one message takes 9 ms.
fn list(name: &str) -> Log {
    let place = std::env::temp_dir().join(format!("ffclock-theta-cli-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let mut rows = vec![];
    for round in 0..200_u64 {
        for (sender, took) in [("a", 100), ("b", 200), ("c", 300)] {
            let took = if (round, sender) == (77, "c") { 9000 } else { took };
            rows.push((1000 * round + took, format!("{sender},r,{round},{},{}\n", 1000 * round, 1000 * round + took)));
        }
    }
    rows.sort();
    let text: String = rows.into_iter().map(|(_, row)| row).collect();
    std::fs::write(place.join("list.csv"), "sender,receiver,id,sent,perceived\n".to_owned() + &text).unwrap();
    Log(place)
}

#[test]
fn a_list_is_watched_imported_and_told() {
    let place = list("list");
    let path = |name: &str| place.0.join(name).to_str().unwrap().to_owned();
    let (list, metrics, log) = (path("list.csv"), path("metrics.txt"), path("log"));
    let senders = ["--receiver", "r", "--sender", "a", "--sender", "b", "--sender", "c", "--tolerated", "1"];
    let watch = [&["watch", &list, "--unit", "us", "--metrics", &metrics], &senders[..]].concat();
    assert_eq!(theta(&watch), Ok(()));
    // 9 ms over the second fastest of three: 200 us.
    let text = std::fs::read_to_string(&metrics).unwrap();
    assert!(text.contains("ffclock_theta_omega{window=\"run\"} 45\n"), "{text}");
    assert!(text.contains("ffclock_theta_messages_total 600\n") && text.ends_with("# EOF\n"), "{text}");
    let failure = theta(&[&watch[..], &["--alarm-omega", "44"]].concat()).unwrap_err();
    assert!(failure.message.contains("Omega of the last minute is 45.000"), "{failure}");
    let failure = theta(&[&watch[..], &["--longest", "5 ms"]].concat()).unwrap_err();
    assert!(failure.message.contains("1 take longer"), "{failure}");
    assert_eq!(theta(&["import", "--messages", &list, "--unit", "us", "--tolerated", "1", "--output", &log]), Ok(()));
    assert_eq!(analyse(Path::new(&log), &[]), Ok(()));
    assert_eq!(theta(&["why", &log]), Ok(()));
    assert_eq!(theta(&["why", &log, "--trim", "50 ms", "--stamp", "before"]), Ok(()));
    let failure = theta(&["why", &log, "--trim", "50 ms", "--round", "10"]).unwrap_err();
    assert_eq!(failure.code, Failure::USAGE, "{failure}");
    let failure = theta(&["why", &log, "--round", "5000"]).unwrap_err();
    assert_eq!(failure.code, Failure::USAGE, "{failure}");
    let advise = ["advise", &list, "--unit", "us", "--under", &list, "--resamples", "39"];
    assert_eq!(theta(&advise), Ok(()));
}

/// The slowest messages are passed over, so tau+ does not show them; the alarm does.
#[test]
fn a_message_that_is_too_long_raises_the_alarm() {
    let place = list("too-long");
    let path = |name: &str| place.0.join(name).to_str().unwrap().to_owned();
    let (list, metrics) = (path("list.csv"), path("metrics.txt"));
    let watch = ["watch", &list, "--unit", "us", "--metrics", &metrics, "--receiver", "r", "--longest", "5 ms"];
    let watch = [&watch[..], &["--sender", "a", "--sender", "b", "--sender", "c", "--alarm-delay", "4 ms"]].concat();
    let failure = theta(&watch).unwrap_err();
    assert!(failure.message.contains("1 take longer"), "{failure}");
    assert!(failure.message.contains("1 too long messages of the last minute took up to"), "{failure}");
    let text = std::fs::read_to_string(&metrics).unwrap();
    assert!(text.contains("ffclock_theta_alarm 1\n"), "{text}");
    assert!(text.contains("ffclock_theta_too_long_max_seconds 0.009"), "{text}");
    assert!(text.contains("ffclock_theta_passed_over_total{reason=\"too-long\"} 1\n"), "{text}");
}

#[test]
fn an_alarm_that_cannot_be_right_is_refused() {
    let place = list("alarms");
    let list = place.0.join("list.csv").to_str().unwrap().to_owned();
    for limit in [
        ["--alarm-omega", "nan"],
        ["--alarm-omega", "inf"],
        ["--alarm-omega", "0.5"],
        ["--alarm-delay", "2 h"],
        ["--alarm-delay", "1 s"],
    ] {
        let words = [&["watch", &list, "--unit", "us", "--receiver", "r", "--sender", "a"], &limit[..]].concat();
        let failure = theta(&words).unwrap_err();
        assert_eq!(failure.code, Failure::USAGE, "{limit:?}: {failure}");
        assert!(failure.message.contains(limit[0]), "{failure}");
    }
}

#[test]
fn lists_that_cannot_be_used_are_named() {
    let place = list("bad-list");
    let path = place.0.join("none.csv").to_str().unwrap().to_owned();
    std::fs::write(&path, "from,to\n").unwrap();
    for command in [&["watch", &path, "--receiver", "r", "--sender", "a"][..], &["advise", &path]] {
        let failure = theta(command).unwrap_err();
        assert!(failure.message.contains("sender is missing"), "{failure}");
    }
    let twice = theta(&["watch", &path, "--receiver", "r", "--sender", "a", "--sender", "a"]).unwrap_err();
    assert_eq!(twice.code, Failure::USAGE, "{twice}");
}
