//! Help and wrong usage.

use crate::common::Place;
use ffclock_units::Status;
use std::process::Stdio;

const SUBCOMMANDS: [&str; 9] = ["now", "stamp", "at", "elapsed", "status", "sources", "watch", "wait", "reload"];

#[test]
fn every_help_has_an_example() {
    let whole = Place::new().run(&["--help"]).well();
    for name in SUBCOMMANDS {
        let help = Place::new().run(&[name, "--help"]).well();
        assert!(help.contains("Example"), "{name}: {help}");
        assert!(help.contains(&format!("ffclock {name} ")) || help.contains(&format!("$ ffclock {name}\n")), "{name}");
        assert!(help.contains("--json"), "{name}");
        assert!(whole.contains(&format!("  {name} ")), "{name} is not listed");
    }
    assert!(!whole.contains("replay"), "what was moved is not offered: {whole}");
}

#[test]
fn wrong_usage_ends_with_two_and_says_why() {
    for (arguments, word) in [
        (&["nonsense"][..], "nonsense"),
        (&[][..], "Usage"),
        (&["now", "--interval", "5"], "unit"),
        (&["now", "--count", "0"], "count"),
        (&["now", "--interval", "-1 s"], "--interval"),
        (&["feed", "--shm", "2", "--interval", "0 s"], "--count"),
        (&["now", "--at", "12"], "ffclock stamp"),
        (&["at"], "STAMP"),
        (&["at", "12"], "ffclock stamp"),
        (&["now", "--format", "roman"], "iso"),
        (&["elapsed"], "Usage"),
        (&["elapsed", "5@1"], "STAMP"),
        (&["elapsed", "1", "2"], "ffclock stamp"),
        (&["wait", "--bound", "-1 ms"], "--bound"),
        (&["wait", "--bound", "1 parsec"], "unit"),
        (&["wait", "--timeout", "5000 d"], "366 d"),
    ] {
        let ended = Place::new().run(arguments);
        assert_eq!(ended.code, 2, "{arguments:?}: {ended:?}");
        assert!(ended.err.contains(word), "{arguments:?}: {ended:?}");
        assert_eq!(ended.out, "");
    }
}

#[test]
fn options_for_all_stand_before_or_after_the_subcommand() {
    let place = Place::new();
    place.answer("{\"answer\":\"reloaded\"}");
    for arguments in [&["--json", "reload"][..], &["reload", "--json"]] {
        assert_eq!(place.run(arguments).json()["reloaded"], true);
    }
}

#[test]
fn a_closed_pipe_is_the_end_without_a_word() {
    let place = Place::new();
    place.publish(Status::Synchronised);
    let mut child = place
        .command(&["now", "--count", "100000", "--interval", "0 s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(141));
    assert!(ended.stderr.is_empty());
}

#[test]
fn without_a_reader_of_complaints_the_exit_code_says_what_went_wrong() {
    let end = |place: &Place, arguments: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        place.command(arguments).stdout(Stdio::null()).stderr(writer).status().unwrap().code()
    };
    let place = Place::new();
    assert_eq!(end(&place, &["now"]), Some(1), "no page");
    place.publish(Status::Synchronised);
    assert_eq!(end(&place, &["at", "5@2"]), Some(1));
    assert_eq!(end(&place, &["elapsed", "--", "sh", "-c", "exit 7"]), Some(7));
    assert_eq!(end(&place, &["feed", "--chrony", "/nowhere/socket", "--count", "1"]), Some(1));
}
