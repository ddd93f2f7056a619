//! What the simulated laboratory says on the command line.

use crate::common::Place;

/// Complains about a scenario of these lines.
#[track_caller]
fn complaint(lines: &str) -> String {
    let place = Place::new();
    let path = place.file("world.toml");
    std::fs::write(&path, format!("extends = \"lan-16\"\nabout = \"x\"\n{lines}\n")).unwrap();
    let ended = place.run(&["sim", "run", path.to_str().unwrap()]);
    assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{ended:?}");
    ended.err
}

#[test]
fn an_impossible_world_is_an_error_by_key() {
    let said = complaint("[oscillator]\nwalk_frequency_at_10000_s = 1e300");
    assert!(said.starts_with("ffclock-lab: scenario world: oscillator.walk_frequency_at_10000_s: 1"), "{said}");
    assert!(said.ends_with("it must be a number between 0 and 0.001\n"), "{said}");
    let said = complaint("duration = \"0 s\"");
    assert_eq!(said, "ffclock-lab: scenario world: duration: 0 ns is too short: it must be longer than 0 s\n");
}

#[test]
fn a_sweep_without_readings_shows_dashes_as_a_run_does() {
    let place = Place::new();
    let path = place.file("silent.toml");
    let silent = "extends = \"lan-16\"\nabout = \"x\"\nduration = \"10 min\"\nfrom = \"0 s\"\n[path]\nloss = 1.0\n";
    std::fs::write(&path, silent).unwrap();
    for words in [&["sim", "run"][..], &["sim", "sweep", "--seeds", "1..2"]] {
        let said = place.run(&[words, &[path.to_str().unwrap()]].concat()).well();
        let learned = said.lines().find(|line| line.starts_with("learned")).unwrap();
        assert!(!said.contains("NaN") && learned.matches(" -").count() >= 5, "{said}");
    }
}
