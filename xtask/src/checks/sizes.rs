//! Sizes: functions that fit on a screen, files that fit in a head, parameters that can be distinguished.

use super::{Finding, House};
use crate::scan::{Function, Scan};

const FUNCTION_MAX: usize = 70;
const FUNCTION_AIM: usize = 40;
const FILE_MAX: usize = 800;
const FILE_AIM: usize = 400;
const PARAMETERS_MAX: usize = 4;

/// Finds what is too long or takes too much.
pub fn check(house: &House<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in written(house) {
        let lines = text.lines().count();
        if lines > FILE_MAX {
            let message =
                format!("{lines} lines, and at most {FILE_MAX} are allowed: split the file by what its parts know");
            findings.push(Finding::new(path, 1, message));
        }
    }
    for (path, scan) in &house.scans {
        let is_test_file = house.is_test_file(path);
        for function in &scan.functions {
            findings.extend(length(path, function));
            if !is_test_file && !scan.is_test(function.line) {
                findings.extend(parameters(house, path, function));
            }
        }
    }
    findings
}

/// The files that people write and read.
fn written<'a>(house: &'a House<'_>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let is_source = |path: &str| [".rs", ".py", ".c", ".h", ".sh", ".md"].iter().any(|end| path.ends_with(end));
    house.tree.files().filter(move |(path, _)| is_source(path) && !house.rules.covers(&house.rules.generated, path))
}

fn length(path: &str, function: &Function) -> Option<Finding> {
    let message = || {
        let Function { name, length, .. } = function;
        format!(
            "fn {name} has {length} lines, and at most {FUNCTION_MAX} are allowed: give its steps names of their own"
        )
    };
    (function.length > FUNCTION_MAX).then(|| Finding::new(path, function.line, message()))
}

fn parameters(house: &House<'_>, path: &str, function: &Function) -> Vec<Finding> {
    let Function { name, parameters, line, .. } = function;
    // Where the C side sets the shape of a function, or the Python one, the rule cannot hold.
    if house.rules.unsafe_files.contains_key(path) || path.starts_with("lab/python/") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if *parameters > PARAMETERS_MAX {
        let message = format!(
            "fn {name} takes {parameters} parameters, tuple fields counted, and at most {PARAMETERS_MAX} are allowed: give those that belong \
             together a named type"
        );
        findings.push(Finding::new(path, *line, message));
    }
    if function.has_bool_parameter {
        let message = format!("fn {name} takes a bool, which says nothing at the call: use an enum or two functions");
        findings.push(Finding::new(path, *line, message));
    }
    findings
}

/// The figures of the house in one line.
pub fn summary(house: &House<'_>) -> String {
    let mut lengths: Vec<usize> = house.scans.values().flat_map(functions).collect();
    lengths.sort_unstable();
    let median = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    let longest = lengths.last().copied().unwrap_or(0);
    let long = lengths.iter().filter(|&&length| length > FUNCTION_AIM).count();
    let files: Vec<usize> = written(house).map(|(_, text)| text.lines().count()).collect();
    let large = files.iter().filter(|&&lines| lines > FILE_AIM).count();
    format!(
        "tidy: {} functions, median {median} lines, {long} over {FUNCTION_AIM}, longest {longest}; {} files, {large} over {FILE_AIM} \
         lines, longest {}",
        lengths.len(),
        files.len(),
        files.iter().max().copied().unwrap_or(0),
    )
}

fn functions(scan: &Scan) -> impl Iterator<Item = usize> {
    scan.functions.iter().map(|function| function.length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::complaints;

    fn of(text: &str) -> Vec<String> {
        complaints(check, "generated = ['clock/a/include/']", [("clock/a/src/b.rs", text)])
    }

    #[test]
    fn a_function_of_71_lines_is_too_long_and_one_of_70_is_not() {
        let with_lines = |lines: usize| format!("fn f() {{{}}}", "\n".repeat(lines - 1));
        assert_eq!(of(&with_lines(70)), [""; 0]);
        assert!(of(&with_lines(71))[0].contains("fn f has 71 lines"));
    }

    #[test]
    fn a_file_of_801_lines_is_too_long_unless_generated() {
        assert_eq!(of(&"//\n".repeat(800)), [""; 0]);
        let long = "//\n".repeat(801);
        assert!(of(&long)[0].contains("801 lines"));
        assert_eq!(complaints(check, "generated = ['gen/']", [("gen/b.h", &long)]), [""; 0]);
    }

    #[test]
    fn parameters_are_few_and_no_bools() {
        assert_eq!(of("fn f(&self, a: A, b: B, c: C, d: D) {}"), [""; 0]);
        assert!(of("fn f(a: A, b: B, c: C, d: D, e: E) {}")[0].contains("takes 5 parameters"));
        assert!(of("fn f(a: A, (b, c, d): (B, C, D), e: E) {}")[0].contains("takes 5 parameters"));
        assert!(of("fn f(is_fast: bool) {}")[0].contains("takes a bool"));
        assert_eq!(of("#[cfg(test)] mod tests { fn f(is_fast: bool) {} }"), [""; 0]);
    }

    #[test]
    fn the_summary_gives_the_median() {
        let tree = crate::tree::Tree::from([("clock/a/src/b.rs", "fn a() {}\nfn b() {\n}\nfn c() {\n\n}")]);
        let rules = crate::rules::Rules::default();
        let (house, _) = House::new(&tree, &rules);
        assert!(summary(&house).starts_with("tidy: 3 functions, median 2 lines, 0 over 40, longest 3; 1 files"));
    }
}
