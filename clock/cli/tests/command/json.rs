//! `--json` stands for every subcommand: each answers in JSON, and nothing else comes on standard output, or it refuses
//! the option. The subcommands are found by their help, so that a new one needs its words here.

use crate::common::Place;
use ffclock_units::Status;
use std::collections::BTreeSet;

/// Subcommands with words for them; `STAMP` stands for a stamp of now.
const ANSWERING: &[(&str, &[&str])] = &[
    ("now", &["--count", "2", "--interval", "0 s"]),
    ("stamp", &[]),
    ("at", &["STAMP"]),
    ("elapsed", &["STAMP", "STAMP"]),
    ("status", &[]),
    ("sources", &[]),
    ("sources", &["--why"]),
    ("watch", &["--count", "1"]),
    ("wait", &["--timeout", "0 s"]),
    ("reload", &[]),
    ("doctor", &[]),
    ("doctor", &["--list"]),
    ("serve status", &[]),
];
/// Those that say that they have no answer.
const REFUSING: &[(&str, &[&str])] = &[("feed", &["--shm", "2", "--count", "1"])];

/// What ffclock-serve answers.
const SERVE_REPORT: &str = r#"{"answer":"serve-status","version":"0","uptime_s":1.0,"page":"page","listen":[],"threads":1,
"claim":null,"unserved":"no page","smear":"off","nts":null,"kernel_dropped":0,"counts":{}}"#;

/// The names that the help of these words lists.
fn listed(words: &[&str]) -> Vec<String> {
    let help = Place::new().run(&[words, &["--help"]].concat()).well();
    let Some(list) = help.split("Commands:\n").nth(1) else { return Vec::new() };
    let lines = list.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    let names = lines.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

fn subcommands() -> BTreeSet<String> {
    let of_one = |name: String| match listed(&[&name]) {
        below if below.is_empty() => vec![name],
        below => below.into_iter().map(|part| format!("{name} {part}")).collect(),
    };
    listed(&[]).into_iter().flat_map(of_one).collect()
}

/// A clock, and one who answers what this subcommand asks.
fn place_for(name: &str) -> Place {
    let place = Place::new();
    place.publish(Status::Synchronised);
    place.answer(&match name {
        "reload" => "{\"answer\":\"reloaded\"}".to_owned(),
        "serve status" => SERVE_REPORT.replace('\n', ""),
        _ => include_str!("status.json").trim().to_owned(),
    });
    place
}

#[test]
fn every_subcommand_answers_in_json_or_refuses() {
    let with_words: BTreeSet<String> = ANSWERING.iter().chain(REFUSING).map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(subcommands(), with_words);
    for (name, words) in ANSWERING {
        let place = place_for(name);
        let stamp = place.run(&["stamp"]).well();
        let control = place.control().display().to_string();
        let socket = if *name == "serve status" { vec!["--socket", control.as_str()] } else { Vec::new() };
        let words = words.iter().map(|word| if *word == "STAMP" { stamp.trim() } else { word });
        let words: Vec<&str> = name.split(' ').chain(words).chain(socket).chain(["--json"]).collect();
        let ended = place.run(&words);
        assert!(!ended.out.trim().is_empty(), "{words:?}: {ended:?}");
        for line in ended.out.lines() {
            let value = serde_json::from_str::<serde_json::Value>(line);
            assert!(value.is_ok_and(|value| value.is_object() || value.is_array()), "{words:?}: {line}");
        }
    }
}

#[test]
fn what_has_no_answer_refuses_the_option() {
    for (name, words) in REFUSING {
        let ended = place_for(name).run(&[&[*name], *words, &["--json"]].concat());
        assert!(ended.code == 2 && ended.out.is_empty() && ended.err.contains("--json"), "{name}: {ended:?}");
    }
}
