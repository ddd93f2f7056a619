//! The checks, one file each, and the report.

mod bans;
mod deadwood;
mod sizes;
mod style;
mod texts;
mod unsafety;
mod walls;

use crate::rules::{self, Rules};
use crate::scan::Scan;
use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub path: String,
    /// Counted from 1.
    pub line: usize,
    /// What is wrong and what to do instead.
    pub message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// What every check looks at.
struct House<'a> {
    tree: &'a Tree,
    rules: &'a Rules,
    /// The Rust files by path.
    scans: BTreeMap<&'a str, Scan>,
    /// The Rust files that are modules of tests only.
    test_modules: BTreeSet<String>,
}

impl<'a> House<'a> {
    /// The house, and a finding for each Rust file that cannot be read.
    fn new(tree: &'a Tree, rules: &'a Rules) -> (House<'a>, Vec<Finding>) {
        let mut unreadable = Vec::new();
        let mut scans = BTreeMap::new();
        for (path, text) in tree.with_extension(".rs") {
            match Scan::of(text) {
                Ok(scan) => drop(scans.insert(path, scan)),
                Err(error) => unreadable.push(Finding::new(path, 1, format!("not made of Rust tokens: {error}"))),
            }
        }
        let mut house = House { tree, rules, scans, test_modules: BTreeSet::new() };
        house.test_modules = deadwood::test_modules(&house);
        (house, unreadable)
    }

    /// Whether the file as a whole is test code: in a directory of tests, or a module that only tests have.
    fn is_test_file(&self, path: &str) -> bool {
        let is_apart = ["/tests/", "/benches/", "/examples/"].iter().any(|part| path.contains(part));
        is_apart || self.test_modules.contains(path)
    }
}

/// Runs every check over the checkout.
///
/// # Errors
/// The findings, a line each; or what kept the checks from running.
pub fn tidy(root: &Path) -> Result<String, String> {
    let tree = Tree::of_checkout(root)?;
    let rules = Rules::parse(tree.text(rules::PATH).ok_or_else(|| format!("{} is missing", rules::PATH))?)?;
    let (house, mut findings) = House::new(&tree, &rules);
    for check in [walls::check, unsafety::check, bans::check, sizes::check, deadwood::check, style::check, texts::check]
    {
        findings.extend(check(&house));
    }
    findings.sort();
    findings.dedup();
    let summary = sizes::summary(&house);
    if findings.is_empty() {
        return Ok(format!("{summary}\ntidy: nothing to complain about"));
    }
    let list: Vec<String> = findings.iter().map(Finding::to_string).collect();
    Err(format!("{}\n{summary}\ntidy: {} findings", list.join("\n"), findings.len()))
}

/// The messages that a check has for these files under these rules.
#[cfg(test)]
fn complaints<const N: usize>(
    check: fn(&House<'_>) -> Vec<Finding>,
    rules: &str,
    files: [(&str, &str); N],
) -> Vec<String> {
    let (tree, rules) = (Tree::from(files), Rules::parse(rules).unwrap());
    let (house, unreadable) = House::new(&tree, &rules);
    assert_eq!(unreadable, []);
    check(&house).iter().map(Finding::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_rust_is_reported_and_not_lost() {
        let tree = Tree::from([("clock/a/src/lib.rs", "fn {")]);
        let rules = Rules::default();
        let (_, unreadable) = House::new(&tree, &rules);
        assert_eq!(unreadable.len(), 1);
    }
}
