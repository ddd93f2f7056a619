//! Help and wrong usage.

use crate::common::Place;

const SUBCOMMANDS: [&str; 8] = ["replay", "report", "sim", "counters", "probe", "theta", "live", "demo"];

#[test]
fn every_help_has_an_example() {
    let whole = Place::new().run(&["--help"]).well();
    for name in SUBCOMMANDS {
        let help = Place::new().run(&[name, "--help"]).well();
        assert!(help.contains("Example"), "{name}: {help}");
        let called = format!("$ ffclock-lab {name}");
        assert!(help.contains(&format!("{called} ")) || help.contains(&format!("{called}\n")), "{name}: {help}");
        assert!(help.contains("--json"), "{name}");
        assert!(whole.contains(&format!("  {name} ")), "{name} is not listed");
    }
    assert!(!whole.contains("generate") && !whole.contains("  lab "));
}

#[test]
fn a_trace_of_which_nothing_can_be_used_is_a_failure() {
    let place = Place::new();
    let rows: String = (1..40).map(|at| format!("{}000000000,{at}.1,{at}.2,{at}\n", at + 1)).collect();
    std::fs::write(place.file("backwards.csv"), format!("# frequency_hz=1000000000\nTa,Tb,Te,Tf\n{rows}")).unwrap();
    let trace = place.file("backwards.csv").display().to_string();
    let ended = place.run(&["replay", "--json", &trace]);
    assert_eq!((ended.code, ended.json()["used"].as_u64()), (1, Some(0)), "{ended:?}");
    assert!(ended.err.contains("no exchange of the trace could be used"), "{ended:?}");
}

#[test]
fn wrong_usage_ends_with_two_and_says_why() {
    for (arguments, word) in [
        (&["nonsense"][..], "nonsense"),
        (&[][..], "Usage"),
        (&["now"], "now"),
        (&["replay"], "Usage"),
        (&["replay", "a.trace", "--from", "5 parsec"], "unit"),
        (&["counters", "stability", "--for", "5"], "unit"),
    ] {
        let ended = Place::new().run(arguments);
        assert_eq!(ended.code, 2, "{arguments:?}: {ended:?}");
        assert!(ended.err.contains(word), "{arguments:?}: {ended:?}");
        assert_eq!(ended.out, "");
    }
}
