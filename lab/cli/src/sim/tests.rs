//! The command as a user types it.

use super::{Args, open, run};
use crate::{Failure, LabCli};
use clap::{Parser, Subcommand};
use std::path::Path;

#[derive(Subcommand)]
enum Only {
    Sim(Args),
}

fn sim(words: &[&str]) -> Result<(), Failure> {
    let cli = LabCli::<Only>::try_parse_from(["ffclock-lab", "sim"].iter().chain(words)).unwrap();
    let Only::Sim(args) = &cli.command;
    run(&cli.global, args)
}

#[test]
fn a_scenario_of_no_name_is_a_usage_error() {
    assert_eq!(open("fish").err().unwrap().code, Failure::USAGE);
    assert_eq!(open("no-such-file.toml").err().unwrap().code, Failure::FAILED);
}

#[test]
fn more_runs_than_any_memory_holds_are_a_usage_error() {
    let all_seeds = "1..18446744073709551614";
    let commands: [&[&str]; 4] = [
        &["sweep", "lan-16", "--seeds", all_seeds],
        &["sweep", "lan-16", "--jobs", "1000000"],
        &["goals", "--seeds", all_seeds],
        &["goals", "--jobs", "1000000"],
    ];
    for words in commands {
        let error = LabCli::<Only>::try_parse_from(["ffclock-lab", "sim"].iter().chain(words)).err();
        let kind = error.map(|error| error.kind());
        assert_eq!(kind, Some(clap::error::ErrorKind::ValueValidation), "{words:?}");
    }
}

#[test]
fn a_run_leaves_a_trace_that_is_not_overwritten() {
    let directory = std::env::temp_dir().join(format!("ffclock-sim-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (file, trace) = (directory.join("short.toml"), directory.join("short.trace"));
    let text = "extends = \"lan-16\"\nabout = \"x\"\nduration = \"1 h\"\nfrom = \"0 s\"\n[checks]\n\"x\" = \"classic.max < 1 ms\"\n";
    std::fs::write(&file, text).unwrap();
    let words = ["run", file.to_str().unwrap(), "--trace", trace.to_str().unwrap(), "--json"];
    let (first, second) = (sim(&words), sim(&words));
    let rows = ffclock_trace::TraceReader::open(&trace).unwrap().filter(|row| row.is_ok()).count();
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(first, Ok(()));
    assert_eq!(second.unwrap_err().code, Failure::FAILED);
    assert!((225..240).contains(&rows), "{rows}");
}

#[test]
fn a_series_says_what_happened_and_has_every_clock_at_every_reading() {
    let directory = std::env::temp_dir().join(format!("ffclock-series-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (file, series) = (directory.join("cut.toml"), directory.join("cut.csv"));
    let text = "extends = \"lan-16\"\nabout = \"x\"\nduration = \"1 h\"\nfrom = \"0 s\"\n\
                [path]\noutage = [{ at = \"20 min\", until = \"30 min\" }]";
    std::fs::write(&file, text).unwrap();
    let outcome = sim(&["run", file.to_str().unwrap(), "--series", series.to_str().unwrap(), "--json"]);
    let text = std::fs::read_to_string(&series).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(outcome, Ok(()));
    assert!(text.contains("# scenario=cut\n") && text.contains("# event=1200,1800,server cut off\n"), "{text:.200}");
    let rows: Vec<Vec<&str>> =
        text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(',').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == 8));
    let of = |clock: &str| rows.iter().filter(|row| row[1] == clock).count();
    assert!(of("classic") > 800, "{}", of("classic"));
    assert!(ffclock_sim::CLOCKS.iter().all(|clock| of(clock).abs_diff(of("classic")) < 5));
    let claims = rows.iter().filter(|row| row[1] == "learned").all(|row| row[3].parse::<f64>().unwrap() > 0.0);
    assert!(claims, "a feed-forward clock has a bound at every reading");
}

/// The outcome of `sim run` with these files, in a directory that `before` has prepared.
fn run_in(name: &str, files: [&str; 2], before: impl Fn(&Path)) -> (Result<(), Failure>, [Option<String>; 2]) {
    let directory = std::env::temp_dir().join(format!("ffclock-sim-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let scenario = directory.join("short.toml");
    std::fs::write(&scenario, "extends = \"lan-16\"\nabout = \"x\"\nduration = \"10 min\"\nfrom = \"0 s\"\n").unwrap();
    before(&directory);
    let [trace, series] = files.map(|file| directory.join(file));
    let names = [&scenario, &trace, &series].map(|path| path.to_str().unwrap());
    let outcome = sim(&["run", names[0], "--trace", names[1], "--series", names[2], "--json"]);
    let left = [trace, series].map(|path| std::fs::read_to_string(path).ok());
    std::fs::remove_dir_all(&directory).unwrap();
    (outcome, left)
}

#[test]
fn a_run_that_cannot_leave_its_trace_leaves_the_series_alone() {
    let (outcome, left) = run_in("refused", ["there.trace", "there.csv"], |directory| {
        ["there.trace", "there.csv"].iter().for_each(|name| std::fs::write(directory.join(name), "kept").unwrap());
    });
    assert_eq!(outcome.unwrap_err().code, Failure::FAILED);
    assert_eq!(left, [Some("kept".to_owned()), Some("kept".to_owned())]);
}

#[test]
fn a_run_that_cannot_leave_its_series_leaves_no_empty_trace() {
    let (outcome, left) = run_in("unwritable", ["new.trace", "no-directory/new.csv"], |_| ());
    assert_eq!(outcome.unwrap_err().code, Failure::FAILED);
    assert_eq!(left, [None, None]);
}

#[test]
fn trace_and_series_are_two_files() {
    let (outcome, left) = run_in("same", ["one.csv", "./one.csv"], |_| ());
    assert_eq!(outcome.unwrap_err().code, Failure::USAGE);
    assert_eq!(left, [None, None]);
}
