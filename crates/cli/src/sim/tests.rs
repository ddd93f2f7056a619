//! The command as a user types it.

use super::{Args, open, run};
use crate::{Cli, Failure};
use clap::{Parser, Subcommand};

#[derive(Subcommand)]
enum Only {
    Sim(Args),
}

fn sim(words: &[&str]) -> Result<(), Failure> {
    let cli = Cli::<Only>::try_parse_from(["ffclock", "sim"].iter().chain(words)).unwrap();
    let Only::Sim(args) = &cli.command;
    run(&cli.global, args)
}

#[test]
fn a_scenario_of_no_name_is_a_usage_error() {
    assert_eq!(open("fish").err().unwrap().code, Failure::USAGE);
    assert_eq!(open("no-such-file.toml").err().unwrap().code, Failure::FAILED);
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
