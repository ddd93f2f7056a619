//! The report is drawn by Python; here stands an interpreter that only says what it was asked for.

use crate::common::Place;
use std::os::unix::fs::PermissionsExt;

/// An interpreter that runs `script`.
fn interpreter(place: &Place, script: &str) -> String {
    let path = place.file("python");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn everything_is_handed_to_the_package() {
    let place = Place::new();
    let python = interpreter(&place, "[ \"$1\" = -c ] || echo \"$@\"");
    let said = place.run(&["report", "a.trace", "-o", "b.html", "--title", "A day", "--python", &python]).well();
    assert!(said.starts_with("-m ffclock.report -o b.html --title=A day --ffclock-lab "), "{said}");
    assert!(said.ends_with(" -- a.trace\n"), "{said}");
}

#[test]
fn a_report_does_not_overwrite_its_run() {
    let place = Place::new();
    let path = place.file("a.trace");
    std::fs::write(&path, "kept").unwrap();
    let name = path.to_str().unwrap();
    let ended = place.run(&["report", name, "-o", name, "--python", "/nowhere/python"]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert_eq!(ended.err, "ffclock-lab: --output would overwrite the run; name another file\n");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
}

#[test]
fn what_is_missing_is_named_with_its_remedy() {
    let place = Place::new();
    let without_package = interpreter(&place, "exit 5");
    for (python, remedy) in [("/nowhere/python", "--python"), (&*without_package, "pip install")] {
        let ended = place.run(&["report", "a.trace", "--python", python]);
        assert_eq!(ended.code, 1, "{ended:?}");
        assert!(ended.err.contains(remedy) && ended.err.contains(python), "{ended:?}");
    }
}

#[test]
fn a_report_that_was_not_drawn_is_a_failure() {
    let place = Place::new();
    let python = interpreter(&place, "[ \"$1\" = -c ] || { echo 'no such file' >&2; exit 2; }");
    let ended = place.run(&["report", "a.trace", "--python", &python]);
    assert_eq!((ended.code, ended.err.as_str()), (1, "no such file\n"));
}
