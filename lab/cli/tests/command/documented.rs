//! docs/cli.md and docs/sim.md name every field of the JSON that simulation, replay and the Theta-Model print.

use crate::common::Place;
use serde_json::Value;
use std::collections::BTreeSet;

const DOCUMENTS: [&str; 2] = [include_str!("../../../../docs/cli.md"), include_str!("../../../../docs/sim.md")];

/// The names of all fields, however deep.
fn fields(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(entries) => entries.iter().for_each(|(name, value)| {
            found.insert(name.clone());
            fields(value, found);
        }),
        Value::Array(values) => values.iter().for_each(|value| fields(value, found)),
        _ => {}
    }
}

/// Figures of simulated worlds are described by the names that checks call them by.
fn is_documented(name: &str) -> bool {
    let quoted = [format!("`{name}`"), format!("`{}`", name.replace('_', "-"))];
    DOCUMENTS.iter().any(|text| quoted.iter().any(|name| text.contains(name)))
}

#[test]
fn every_field_of_the_json_is_described() {
    let place = Place::new();
    let file = |name: &str| place.file(name).display().to_string();
    let (world, trace, log, stamps) = (file("w.toml"), file("w.csv"), file("log"), file("stamps"));
    let text = "extends = \"lan-16\"\nabout = \"x\"\nduration = \"30 min\"\nfrom = \"0 s\"\n[checks]\n\"x\" = \"classic.max < 1 s\"\n";
    std::fs::write(&world, text).unwrap();
    std::fs::write(&stamps, "17@0\n").unwrap();
    let commands: [&[&str]; 10] = [
        &["sim", "list"],
        &["sim", "run", &world, "--trace", &trace, "--oracle"],
        &["sim", "sweep", &world, "--seeds", "1", "--without", "directions"],
        &["sim", "campaign", "--seeds", "1..2"],
        &["replay", &trace, "--smooth"],
        &["replay", &trace, "--smooth", "--stamps", &stamps],
        &["theta", "simulate", "--n", "4", "--f", "1", "--rounds", "50", "--log", &log],
        &["theta", "analyse", &log, "--theta", "--certify", "--histograms", "--xi"],
        &["theta", "check", "--n", "4", "--rounds", "3", "--every-delivery", "2", "--campaign", "5"],
        &["theta", "load", "processor", "--level", "10", "--for", "100 ms"],
    ];
    for words in commands {
        let printed = place.run(&[words, &["--json"]].concat()).well();
        let mut found = BTreeSet::new();
        printed.lines().for_each(|line| fields(&serde_json::from_str(line).unwrap(), &mut found));
        let not_described: Vec<&String> = found.iter().filter(|name| !is_documented(name)).collect();
        assert!(found.len() > 2 && not_described.is_empty(), "{words:?}: {not_described:?}");
    }
}
