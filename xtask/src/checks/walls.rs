//! The walls between the rooms: which crate may depend on which, and the declarations at the top of a crate.

use super::{Finding, House};
use crate::rules::{self, Package};
use toml::Table;

/// Compares every package's manifest and its top file with its entry in the rules.
pub fn check(house: &House<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for directory in house.tree.packages() {
        let manifest_path = format!("{directory}/Cargo.toml");
        let Some(package) = house.rules.packages.get(directory) else {
            let message = format!("no rules for this package: list its dependencies in {}", rules::PATH);
            findings.push(Finding::new(&manifest_path, 1, message));
            continue;
        };
        let text = house.tree.text(&manifest_path).unwrap_or_default();
        match text.parse::<Table>() {
            Ok(manifest) => {
                for (name, is_for_tests) in dependencies(&manifest) {
                    let complaint =
                        upward(house, directory, &name).or_else(|| complaint(house, package, (&name, is_for_tests)));
                    let unused = unused(house, directory, &name);
                    let line = line_of(text, &name);
                    let both = complaint.into_iter().chain(unused);
                    findings.extend(both.map(|message| Finding::new(&manifest_path, line, message)));
                }
            }
            Err(error) => findings.push(Finding::new(&manifest_path, 1, error.to_string())),
        }
        findings.extend(declarations(house, directory, package));
    }
    for directory in house.rules.packages.keys().filter(|directory| !house.tree.contains(directory)) {
        findings.push(Finding::new(
            rules::PATH,
            1,
            format!("rules for {directory}, which does not exist: remove them"),
        ));
    }
    findings
}

/// Names of all dependencies, and whether only tests have them.
fn dependencies(manifest: &Table) -> Vec<(String, bool)> {
    let mut tables = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(|target| target.as_table()) {
        tables.extend(targets.values().filter_map(|target| target.as_table()));
    }
    let mut found = Vec::new();
    for table in tables {
        for (section, is_for_tests) in
            [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
        {
            let Some(list) = table.get(section).and_then(|list| list.as_table()) else { continue };
            found.extend(list.iter().map(|(key, value)| {
                let renamed = value.get("package").and_then(|name| name.as_str());
                (renamed.unwrap_or(key).to_owned(), is_for_tests)
            }));
        }
    }
    found
}

/// The product never depends on the laboratory, not even in its tests.
fn upward(house: &House<'_>, directory: &str, name: &str) -> Option<String> {
    let leaves_its_wing = directory.starts_with("clock/") && home(house, name)?.starts_with("lab/");
    leaves_its_wing.then(|| format!("may not know {name}: clock/ never depends on lab/"))
}

/// Where the crate of this name lives: directories of the two wings may end alike, names of crates do not.
fn home<'h>(house: &House<'h>, name: &str) -> Option<&'h str> {
    house.tree.packages().find(|directory| name_in(house, directory, "package").is_some_and(|found| found == name))
}

/// The `name` in this section of a package's manifest.
fn name_in(house: &House<'_>, directory: &str, section: &str) -> Option<String> {
    let manifest = house.tree.text(&format!("{directory}/Cargo.toml"))?.parse::<Table>().ok()?;
    Some(manifest.get(section)?.get("name")?.as_str()?.to_owned())
}

fn complaint(house: &House<'_>, package: &Package, (name, is_for_tests): (&str, bool)) -> Option<String> {
    if let Some(room) = name.strip_prefix("ffclock-") {
        let is_known = package.knows.iter().any(|known| known == room);
        let is_known_to_tests = is_for_tests && package.tests_know.iter().any(|known| known == room);
        let message =
            || format!("may not know {room}: rooms meet in units::records, and the daemon puts them together");
        return (!is_known && !is_known_to_tests).then(message);
    }
    let is_listed = package.outside.as_ref().is_none_or(|list| list.iter().any(|allowed| allowed == name));
    if !is_listed && !is_for_tests {
        return Some(format!(
            "may not use {name}: the core stays small, find another place or allow it in {}",
            rules::PATH
        ));
    }
    let reasons = house.tree.text(&house.rules.dependency_reasons).unwrap_or_default();
    let is_explained = reasons.contains(&format!("`{name}`"));
    (!is_explained).then(|| format!("{name} has no paragraph in {}", house.rules.dependency_reasons))
}

/// A dependency whose name, or that of its library, is in no file of the package.
fn unused(house: &House<'_>, directory: &str, name: &str) -> Option<String> {
    let library = home(house, name).and_then(|home| name_in(house, home, "lib"));
    let word = library.unwrap_or_else(|| name.replace('-', "_"));
    let prefix = format!("{directory}/");
    let mut own = house.scans.iter().filter(|(path, _)| path.starts_with(&prefix));
    let is_used = own.any(|(_, scan)| scan.find(&[&word]).next().is_some());
    (!is_used).then(|| format!("{name} is not used: remove it"))
}

fn line_of(text: &str, name: &str) -> usize {
    text.lines().position(|line| line.trim_start().starts_with(name)).map_or(1, |index| index + 1)
}

/// The declarations that must be at the top of a library.
fn declarations(house: &House<'_>, directory: &str, package: &Package) -> Vec<Finding> {
    let path = format!("{directory}/src/lib.rs");
    let Some(scan) = house.scans.get(path.as_str()) else { return Vec::new() };
    let declares = |words: &[&str]| scan.find(words).next().is_some();
    let mut missing = Vec::new();
    if package.no_std && !declares(&["#", "!", "[", "no_std", "]"]) && !declares(&[",", "no_std", ")"]) {
        missing.push("#![no_std]".to_owned());
    }
    if !package.unsafe_code.is_empty() && !declares(&[&package.unsafe_code, "(", "unsafe_code", ")"]) {
        missing.push(format!("#![{}(unsafe_code)]", package.unsafe_code));
    }
    if (directory.starts_with("clock/") || directory.starts_with("lab/"))
        && !declares(&["deny", "(", "missing_docs", ")"])
    {
        missing.push("#![deny(missing_docs)]".to_owned());
    }
    missing.iter().map(|line| Finding::new(&path, 1, format!("the crate's top must say {line}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::complaints;

    const RULES: &str = "
        dependency_reasons = 'docs/why.md'
        [packages.'clock/page']
        no_std = true
        unsafe_code = 'forbid'
        knows = ['units']
        tests_know = ['trace']
        outside = []";
    const TOP: (&str, &str) = ("clock/page/src/lib.rs", "#![no_std]\n#![forbid(unsafe_code)]\n#![deny(missing_docs)]");
    const USES: (&str, &str) =
        ("clock/page/src/use.rs", "use {ffclock_units, ffclock_trace, ffclock_source, libc, loom, proptest, x};");
    const WHY: (&str, &str) = ("docs/why.md", "`libc` `loom`");

    fn of(manifest: &str) -> Vec<String> {
        complaints(check, RULES, [TOP, USES, WHY, ("clock/page/Cargo.toml", &format!("[package]\n{manifest}"))])
    }

    #[test]
    fn what_is_allowed_passes() {
        let manifest =
            "[dependencies]\nffclock-units.workspace = true\n[dev-dependencies]\nffclock-trace = {}\nloom = '0'";
        assert_eq!(of(manifest), [""; 0]);
    }

    #[test]
    fn a_room_may_not_know_another_not_even_under_another_name_or_for_one_target() {
        for manifest in [
            "[dependencies]\nffclock-source.workspace = true",
            "[dependencies]\nffclock-trace.workspace = true",
            "[dependencies]\nx = { package = 'ffclock-source' }",
            "[target.'cfg(loom)'.dependencies]\nffclock-source = {}",
        ] {
            assert_eq!(of(manifest).len(), 1, "{manifest}");
        }
        assert!(
            of("[dependencies]\nffclock-source = {}")[0].starts_with("clock/page/Cargo.toml:3: may not know source")
        );
    }

    #[test]
    fn the_product_may_not_know_the_laboratory_even_where_a_table_says_so() {
        let rules = "[packages.'clock/page']\nknows = ['sim']\n[packages.'lab/sim']\nknows = ['page']";
        let manifests = [
            ("clock/page/Cargo.toml", "[package]\nname = 'ffclock-page'\n[dev-dependencies]\nffclock-sim = {}"),
            ("lab/sim/Cargo.toml", "[package]\nname = 'ffclock-sim'\n[dependencies]\nffclock-page = {}"),
            ("clock/page/src/lib.rs", "#![deny(missing_docs)] use ffclock_sim;"),
            ("lab/sim/src/lib.rs", "#![deny(missing_docs)] use ffclock_page;"),
        ];
        let found = complaints(check, rules, manifests);
        assert_eq!(found, ["clock/page/Cargo.toml:4: may not know ffclock-sim: clock/ never depends on lab/"]);
    }

    #[test]
    fn dependencies_from_outside_are_listed_and_explained() {
        assert!(of("[dependencies]\nlibc = '0'")[0].contains("may not use libc"));
        assert!(of("[dev-dependencies]\nproptest = '1'")[0].contains("no paragraph in docs/why.md"));
    }

    #[test]
    fn a_dependency_that_nothing_uses_is_found() {
        let manifest = ("clock/page/Cargo.toml", "[package]\n[dependencies]\nffclock-units = {}");
        let found = complaints(check, RULES, [TOP, manifest]);
        assert_eq!(found, ["clock/page/Cargo.toml:3: ffclock-units is not used: remove it"]);
    }

    #[test]
    fn a_dependency_is_used_by_the_name_of_its_library() {
        let rules = "dependency_reasons = 'docs/why.md'
            [packages.'clock/page']
            knows = ['units']
            [packages.'clock/units']
            knows = []";
        let with = |code| {
            let manifests = [
                ("clock/page/Cargo.toml", "[package]\nname = 'ffclock-page'\n[dependencies]\nffclock-units = {}"),
                ("clock/units/Cargo.toml", "[package]\nname = 'ffclock-units'\n[lib]\nname = 'measures'"),
                ("clock/page/src/lib.rs", code),
            ];
            complaints(check, rules, manifests)
        };
        assert_eq!(with("#![deny(missing_docs)] use measures::Span;"), [""; 0]);
        let found = with("#![deny(missing_docs)] use ffclock_units::Span;");
        assert_eq!(found, ["clock/page/Cargo.toml:4: ffclock-units is not used: remove it"]);
    }

    #[test]
    fn a_missing_declaration_is_found() {
        let manifest = ("clock/page/Cargo.toml", "[package]");
        let found = complaints(check, RULES, [("clock/page/src/lib.rs", "//! no_std"), manifest]);
        assert_eq!(found.len(), 3, "{found:?}");
        let conditional = "#![cfg_attr(not(loom), no_std)]\n#![forbid(unsafe_code)]\n#![deny(missing_docs)]";
        assert_eq!(complaints(check, RULES, [("clock/page/src/lib.rs", conditional), manifest]), [""; 0]);
    }

    #[test]
    fn packages_and_rules_must_match() {
        let stranger = ("clock/stranger/Cargo.toml", "[package]");
        let found = complaints(check, RULES, [stranger]);
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
