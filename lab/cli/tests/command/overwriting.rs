//! No command destroys a file that it reads, or a file that is not its own.

use crate::common::{Ended, Place};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const SCENARIO: &str = "extends = \"lan-16\"\nabout = \"x\"\nduration = \"10 min\"\nfrom = \"0 s\"\n";

fn file(place: &Place, name: &str, text: &str) -> PathBuf {
    let path = place.file(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Refused as wrong usage, with this in the message.
#[track_caller]
fn refused(ended: &Ended, part: &str) {
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.err.contains(part), "{ended:?}");
}

/// A trace of a simulated run.
fn trace(place: &Place) -> PathBuf {
    let (scenario, trace) = (file(place, "world.toml", SCENARIO), place.file("world.csv"));
    place.run(&["sim", "run", name(&scenario), "--trace", name(&trace)]).well();
    trace
}

#[test]
fn a_run_does_not_overwrite_its_scenario() {
    let place = Place::new();
    let scenario = file(&place, "world.toml", SCENARIO);
    let (soft, hard) = (place.file("soft.csv"), place.file("hard.csv"));
    std::os::unix::fs::symlink(&scenario, &soft).unwrap();
    std::fs::hard_link(&scenario, &hard).unwrap();
    for option in ["--series", "--trace"] {
        for output in [&scenario, &soft, &hard] {
            let ended = place.run(&["sim", "run", name(&scenario), option, name(output)]);
            refused(&ended, &format!("{option} would overwrite the scenario"));
        }
    }
    assert_eq!(text(&scenario), SCENARIO);
}

#[test]
fn a_run_does_not_overwrite_a_trace_that_is_there() {
    let place = Place::new();
    let (scenario, there) = (file(&place, "world.toml", SCENARIO), file(&place, "there.trace", "kept"));
    let ended = place.run(&["sim", "run", name(&scenario), "--trace", name(&there)]);
    assert_eq!((ended.code, text(&there).as_str()), (1, "kept"));
    assert!(ended.err.contains("take another name, or remove the file"), "{ended:?}");
}

#[test]
fn two_outputs_are_two_files_whether_they_are_there_or_not() {
    let place = Place::new();
    let (trace, output) = (trace(&place), place.file("out.csv"));
    let other_way = place.file(".").join("out.csv");
    let words = ["replay", name(&trace), "--exchanges", name(&output), "--output", name(&other_way)];
    refused(&place.run(&words), "--output and --exchanges name the same file");
    assert!(!output.exists());
    let link = place.file("link.csv");
    std::fs::write(&output, "kept").unwrap();
    std::fs::hard_link(&output, &link).unwrap();
    let words = ["replay", name(&trace), "--exchanges", name(&output), "--output", name(&link)];
    refused(&place.run(&words), "--output and --exchanges name the same file");
    assert_eq!(text(&output), "kept");
    // A device that keeps nothing may be given twice.
    place.run(&["replay", name(&trace), "--exchanges", "/dev/null", "--output", "/dev/null"]).well();
}

#[test]
fn a_replay_does_not_overwrite_its_trace() {
    let place = Place::new();
    let trace = trace(&place);
    let before = text(&trace);
    for option in ["--output", "--exchanges"] {
        refused(&place.run(&["replay", name(&trace), option, name(&trace)]), "would overwrite the trace");
        let input = Stdio::from(std::fs::File::open(&trace).unwrap());
        let ended = place.command(&["replay", "-", option, name(&trace)]).stdin(input).output().unwrap();
        refused(&Ended::from(ended), "would overwrite the trace");
    }
    assert_eq!(text(&trace), before);
}

#[test]
fn runs_are_kept_in_no_file_of_another_kind() {
    let place = Place::new();
    let foreign = [
        ("recording.jsonl", "{\"record\":\"begin\",\"instrument\":\"latency\"}\n"),
        ("world.toml", SCENARIO),
        ("other.jsonl", "{\"program\":\"x\"}\n"),
        ("list.json", "[1, 2]\n"),
        ("words", "{\"program\" of the concert"),
    ];
    for (name_of_it, content) in foreign {
        let path = file(&place, name_of_it, content);
        let ended = place.run(&["sim", "goals", "lan-16", "--seeds", "1", "--oracles", "0", "--keep", name(&path)]);
        assert_eq!((ended.code, text(&path).as_str()), (1, content), "{ended:?}");
        assert!(ended.err.contains("line 1") && ended.err.contains("--keep"), "{ended:?}");
    }
    let path = place.file("binary");
    std::fs::write(&path, [0xff, 0xfe, 0]).unwrap();
    let ended = place.run(&["sim", "goals", "lan-16", "--seeds", "1", "--oracles", "0", "--keep", name(&path)]);
    assert_eq!((ended.code, std::fs::read(&path).unwrap()), (1, vec![0xff, 0xfe, 0]), "{ended:?}");
}
