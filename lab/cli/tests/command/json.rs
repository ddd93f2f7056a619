//! `--json` stands for every subcommand: each answers in JSON, and nothing else comes on standard output, or it refuses
//! the option. The subcommands are found by their help, so that a new one needs its row here.

use crate::common::{Ended, Place};
use ffclock_units::Status;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a subcommand does with `--json`.
enum JsonAnswer {
    /// It answers in JSON, whatever its exit code, on this input; `{}` stands for the directory of the test.
    Answers(&'static [&'static str]),
    /// It does so when a signal ends it.
    AnswersInTheEnd(&'static [&'static str]),
    /// It says that it has no answer.
    Refuses(&'static [&'static str]),
    /// It needs privileges, other hosts or minutes: another test reads its JSON.
    In(&'static str),
}
use JsonAnswer::{Answers, AnswersInTheEnd, In, Refuses};

const SUBCOMMANDS: &[(&str, JsonAnswer)] = &[
    ("replay", Answers(&["{}/w.csv"])),
    ("report", Answers(&["{}/w.csv", "--output", "{}/r.html", "--python", "{}/python"])),
    ("sim list", Answers(&[])),
    ("sim run", Answers(&["{}/w.toml"])),
    ("sim past", Answers(&["{}/w.toml"])),
    ("sim sweep", Answers(&["{}/w.toml", "--seeds", "1..2"])),
    ("sim goals", Answers(&["lan-16", "--seeds", "1", "--oracles", "0"])),
    ("sim campaign", Answers(&["--show", "7"])),
    ("counters", Answers(&[])),
    ("counters latency", Answers(&["--for", "200 ms", "--only", "monotonic-raw"])),
    ("counters stability", Answers(&["--for", "200 ms", "--every", "10 ms", "--only", "monotonic-raw vDSO"])),
    ("counters clock", Answers(&["--for", "1 s", "--warm-up", "0 s", "--only", "monotonic-raw"])),
    ("counters watch", Answers(&["--for", "100 ms"])),
    ("counters show", Answers(&["{}/latency.jsonl"])),
    ("probe run", In("lab/cli/tests/system/probing.rs")),
    ("probe show", In("lab/cli/tests/system/probing.rs")),
    ("probe advise", In("lab/cli/tests/system/probing.rs")),
    ("probe watch", In("lab/cli/tests/system/probing_badly.rs")),
    ("probe calibrate", In("lab/cli/tests/system/calibrating.rs")),
    ("probe echo", AnswersInTheEnd(&["--listen", "127.0.0.1:0"])),
    ("owd send", Answers(&["127.0.0.1:9", "--packets", "2", "--patience", "50 ms", "--record", "{}/owd.csv"])),
    ("owd reflect", AnswersInTheEnd(&["--listen", "127.0.0.1:0"])),
    ("owd report", Answers(&["{}/owd.csv"])),
    ("theta analyse", Answers(&["{}/log"])),
    ("theta correlate", Answers(&["{}/log"])),
    ("theta coverage", Answers(&["{}/log", "--under", "{}/log", "--resamples", "39"])),
    ("theta advise", Answers(&["{}/list.csv", "--resamples", "39"])),
    ("theta check", Answers(&["--n", "4", "--rounds", "3", "--every-delivery", "2", "--campaign", "5"])),
    ("theta run", In("lab/cli/tests/theta/main.rs")),
    ("theta rank", In("lab/cli/tests/theta/stopping.rs")),
    ("theta load", Answers(&["processor", "--level", "1", "--for", "50 ms"])),
    ("theta simulate", Answers(&["--n", "4", "--f", "1", "--rounds", "5", "--log", "{}/log-2"])),
    ("theta report", Answers(&["{}/log", "--output", "{}", "--python", "{}/python"])),
    ("theta import", Answers(&["--messages", "{}/list.csv", "--output", "{}/log-3"])),
    ("theta watch", Answers(&["{}/list.csv", "--receiver", "r", "--sender", "a", "--sender", "b"])),
    ("theta taps", In("lab/cli/tests/kernels/main.rs")),
    ("theta why", Answers(&["{}/log"])),
    ("live list", Answers(&[])),
    ("live run", In("lab/cli/tests/system/live.rs")),
    ("live report", In("lab/cli/tests/system/live.rs")),
    ("demo", In("lab/cli/tests/system/interop.rs")),
    ("demo liar", In("lab/cli/tests/system/demonstration.rs")),
    ("demo serve", In("lab/cli/tests/system/demonstration.rs")),
    // Hidden in the help of all.
    ("generate", Answers(&["--output", "{}"])),
    ("lab flood", Refuses(&["--to", "127.0.0.1:9"])),
];

/// Instead of Python: says which files there are, as the modules do, and in JSON where it is asked to.
const INTERPRETER: &str = "#!/bin/sh
case \"$*\" in
    *--json*) echo '{\"written\":[\"a.html\"]}' ;;
    '-c '*) ;;
    *) cat >/dev/null; echo a.png; echo a.html ;;
esac
";

/// What the subcommands are shown.
fn inputs() -> Place {
    let place = Place::new();
    place.publish(Status::Synchronised);
    let write = |name: &str, text: &str| std::fs::write(place.file(name), text).unwrap();
    write("w.toml", "extends = \"lan-16\"\nabout = \"x\"\nduration = \"30 min\"\nfrom = \"0 s\"\n");
    write("python", INTERPRETER);
    std::fs::set_permissions(place.file("python"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let rows = (0..2000).map(|round: u64| {
        let sent = 1_000_000 * round;
        format!("a,r,{round},{sent},{}\nb,r,{round},{sent},{}\n", sent + 1000 + round % 7, sent + 2000 + round % 11)
    });
    write("list.csv", &("sender,receiver,id,sent,perceived\n".to_owned() + &rows.collect::<String>()));
    let file = |name: &str| place.file(name).display().to_string();
    place.run(&["sim", "run", &file("w.toml"), "--trace", &file("w.csv")]).well();
    place.run(&["theta", "simulate", "--n", "4", "--f", "1", "--rounds", "300", "--log", &file("log")]).well();
    let record = ["--for", "200 ms", "--only", "monotonic-raw", "--record", &file("latency.jsonl")];
    place.run(&[&["counters", "latency"][..], &record].concat()).well();
    place
}

/// The subcommands below these words, by their help.
fn below(words: &[String], found: &mut BTreeSet<String>) {
    let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
    let help = Place::new().run(&arguments).well();
    let listed = help.split("Commands:\n").nth(1).map(|rest| rest.split("\n\n").next().unwrap_or_default());
    // Some do something without a subcommand too.
    if listed.is_none() || help.contains("[COMMAND]") {
        found.insert(words.join(" "));
    }
    // A name stands two blanks from the edge, and what continues its explanation further in.
    let names = listed.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("  "));
    for name in names.filter(|name| !name.starts_with(' ')).filter_map(|name| name.split_whitespace().next()) {
        if name != "help" {
            below(&[words, &[name.to_owned()]].concat(), found);
        }
    }
}

#[test]
fn every_subcommand_answers_in_json_or_refuses() {
    let mut found = BTreeSet::new();
    below(&[], &mut found);
    let rows: BTreeSet<String> = SUBCOMMANDS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let without_row: Vec<&String> = found.difference(&rows).collect();
    assert!(found.len() > 30 && without_row.is_empty(), "no row says what they do with --json: {without_row:?}");

    let place = inputs();
    let directory = place.file("").display().to_string();
    for (name, answer) in SUBCOMMANDS {
        let (Answers(words) | AnswersInTheEnd(words) | Refuses(words)) = answer else { continue };
        let words: Vec<String> = words.iter().map(|word| word.replace("{}", directory.trim_end_matches('/'))).collect();
        let words: Vec<&str> = name.split(' ').chain(words.iter().map(String::as_str)).chain(["--json"]).collect();
        let ended =
            if matches!(answer, AnswersInTheEnd(_)) { ended_by_signal(&place, &words) } else { place.run(&words) };
        if matches!(answer, Refuses(_)) {
            assert!(ended.code == 2 && ended.out.is_empty() && ended.err.contains("--json"), "{words:?}: {ended:?}");
            continue;
        }
        assert!(!ended.out.trim().is_empty(), "{words:?}: {ended:?}");
        for line in ended.out.lines() {
            let value = serde_json::from_str::<serde_json::Value>(line);
            assert!(value.is_ok_and(|value| value.is_object() || value.is_array()), "{words:?}: {line}");
        }
    }
}

/// Asks it to end as soon as it listens to that.
fn ended_by_signal(place: &Place, words: &[&str]) -> Ended {
    let child = place.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let listens = || {
        let text = std::fs::read_to_string(&status).unwrap();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:\t"));
        // One that has ended by itself catches nothing any more.
        let caught = caught.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
        caught & 1 << (15 - 1) != 0 || text.contains("State:\tZ")
    };
    let begun = Instant::now();
    while !listens() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{words:?} waits for no signal");
        std::thread::sleep(Duration::from_millis(5));
    }
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    Ended::from(child.wait_with_output().unwrap())
}

/// Where another test reads the JSON, it is there and does so.
#[test]
fn the_json_of_the_rest_is_read_elsewhere() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (name, answer) in SUBCOMMANDS {
        let In(file) = answer else { continue };
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let last = name.rsplit(' ').next().unwrap_or_default();
        let is_read = text.contains("#[test]") && text.contains("json") && text.contains(&format!("\"{last}\""));
        assert!(is_read, "{name}: {file} does not run it and read its JSON");
    }
}
