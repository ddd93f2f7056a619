//! Banned calls, each with what to write instead.

use super::{Finding, House};
use crate::rules::Ban;
use crate::scan::Scan;

/// Finds banned calls where their ban applies.
pub fn check(house: &House<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, scan) in &house.scans {
        let is_test_file = house.is_test_file(path);
        for ban in &house.rules.bans {
            let holds = house.rules.covers(&ban.within, path) && !house.rules.covers(&ban.except, path);
            if holds && (ban.also_in_tests || !is_test_file) {
                findings.extend(breaches(scan, ban).map(|(line, call)| {
                    let written: String = call.split(' ').collect();
                    Finding::new(path, line, format!("{written} is banned here: {}", ban.instead))
                }));
            }
        }
    }
    findings
}

/// Lines with a banned call. Constants are exempt: they are evaluated by the compiler and cannot fail later.
fn breaches<'a>(scan: &'a Scan, ban: &'a Ban) -> impl Iterator<Item = (usize, &'a str)> {
    ban.calls.iter().flat_map(move |call| {
        // The scanner hands out `::` as two tokens.
        let spelled = call.replace("::", ": :");
        let words: Vec<&str> = spelled.split(' ').collect();
        let lines: Vec<usize> = scan
            .find(&words)
            .filter(|&line| !scan.is_constant(line) && (ban.also_in_tests || !scan.is_test(line)))
            .collect();
        lines.into_iter().map(move |line| (line, call.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::complaints;

    const RULES: &str = "
        [groups]
        cores = ['clock/units/']
        [[bans]]
        calls = ['panic !', '. unwrap (']
        instead = 'return an error'
        within = ['@cores']
        except = ['clock/units/src/odd.rs']
        [[bans]]
        calls = ['clock_settime']
        instead = 'no crate sets a clock'
        within = ['']
        also_in_tests = true
        [[bans]]
        calls = ['libc :: syscall', 'std ::']
        instead = 'the C library has a function'
        within = ['clock/wire/']";

    fn of(path: &str, text: &str) -> Vec<String> {
        complaints(check, RULES, [(path, text)])
    }

    #[test]
    fn paths_are_found() {
        let found = of("clock/wire/src/a.rs", "fn f() { unsafe { libc::syscall(1) } }\nuse std::fs;");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(of("clock/wire/src/a.rs", "fn f() { other::syscall(1); core::mem::drop(2) }").is_empty());
    }

    #[test]
    fn a_banned_call_is_found_with_its_replacement() {
        let found = of("clock/units/src/a.rs", "fn f() {\n x\n .unwrap();\n}");
        assert_eq!(found, ["clock/units/src/a.rs:3: .unwrap( is banned here: return an error"]);
    }

    #[test]
    fn tests_constants_exceptions_and_other_places_are_free() {
        assert_eq!(of("clock/units/src/a.rs", "#[cfg(test)] mod tests { fn f() { panic!() } }"), [""; 0]);
        assert_eq!(of("clock/units/src/a.rs", "const A: () = if N > 1 { panic!() };"), [""; 0]);
        assert_eq!(of("clock/units/src/odd.rs", "fn f() { panic!() }"), [""; 0]);
        assert_eq!(of("clock/units/tests/a.rs", "fn f() { panic!() }"), [""; 0]);
        assert_eq!(of("lab/cli/src/a.rs", "fn f() { panic!() }"), [""; 0]);
    }

    #[test]
    fn some_bans_hold_in_tests_as_well() {
        assert_eq!(of("lab/cli/tests/a.rs", "#[test] fn f() { clock_settime() }").len(), 1);
    }

    #[test]
    fn a_module_of_tests_in_a_file_of_its_own_is_free() {
        let files = [
            ("clock/units/Cargo.toml", "[package]"),
            ("clock/units/src/lib.rs", "#[cfg(test)]\nmod trial;"),
            ("clock/units/src/trial.rs", "fn f() { panic!() }"),
        ];
        assert_eq!(complaints(check, RULES, files), [""; 0]);
    }
}
