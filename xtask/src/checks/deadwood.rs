//! Dead wood: Rust files that no crate compiles, pages that nothing links to, links that lead nowhere.

use super::{Finding, House};
use crate::tree::{directory, resolve};
use std::collections::{BTreeMap, BTreeSet};

/// Finds unreached files and links that lead nowhere.
pub fn check(house: &House<'_>) -> Vec<Finding> {
    let mut findings = unreached_modules(house);
    let mut linked = BTreeSet::new();
    for (path, text) in house.tree.with_extension(".md") {
        for (line, link) in links(text) {
            match resolve(directory(path), link) {
                Some(target) if house.tree.contains(&target) => drop(linked.insert(target)),
                _ => findings.push(Finding::new(path, line, format!("the link to {link} leads nowhere"))),
            }
        }
    }
    let pages =
        house.tree.with_extension(".md").filter(|(path, _)| path.starts_with("docs/") && !linked.contains(*path));
    findings.extend(pages.map(|(path, _)| Finding::new(path, 1, "no page links to this one: link it or remove it")));
    findings
}

fn unreached_modules(house: &House<'_>) -> Vec<Finding> {
    let reached = reach(house);
    let is_unreached = |path: &&str| !reached.contains_key(*path);
    let message = "no crate has this file as a module: declare it with `mod`, or remove it";
    house.scans.keys().copied().filter(is_unreached).map(|path| Finding::new(path, 1, message)).collect()
}

/// Files that are modules of tests only.
pub fn test_modules(house: &House<'_>) -> BTreeSet<String> {
    reach(house).into_iter().filter(|(_, is_test)| *is_test).map(|(path, _)| path).collect()
}

/// Every file that is compiled, and whether for tests only.
fn reach(house: &House<'_>) -> BTreeMap<String, bool> {
    let mut reached = BTreeMap::new();
    let roots = roots(house);
    let mut waiting: Vec<(String, bool)> = roots.iter().map(|path| (path.clone(), false)).collect();
    while let Some((path, is_test)) = waiting.pop() {
        // A file of both the program and its tests is part of the program.
        let is_news = reached.get(&path).is_none_or(|&known_as_test| known_as_test && !is_test);
        let Some(scan) = house.scans.get(path.as_str()).filter(|_| is_news) else { continue };
        let is_root = roots.contains(&path);
        for module in &scan.modules {
            let file = module_file(house, (&path, is_root), module);
            waiting.extend(file.map(|file| (file, is_test || module.is_test)));
        }
        reached.insert(path, is_test);
    }
    reached
}

/// The files from which cargo starts to compile.
fn roots(house: &House<'_>) -> BTreeSet<String> {
    let mut roots: BTreeSet<String> = house.rules.extra_roots.iter().cloned().collect();
    for package in house.tree.packages() {
        for path in house.scans.keys().filter(|path| path.starts_with(package)) {
            let inside = path.strip_prefix(package).unwrap_or_default().trim_start_matches('/');
            let is_named = ["src/lib.rs", "src/main.rs", "build.rs"].contains(&inside);
            let place = inside.strip_suffix("/main.rs").map_or_else(|| directory(inside), directory);
            let is_apart = ["src/bin", "tests", "benches", "examples"].contains(&place);
            if is_named || is_apart {
                roots.insert((*path).to_owned());
            }
        }
        let manifest = house.tree.text(&format!("{package}/Cargo.toml")).unwrap_or_default();
        let named = manifest.lines().filter_map(|line| line.trim().strip_prefix("path = \"")?.strip_suffix(".rs\""));
        roots.extend(named.filter_map(|path| resolve(package, &format!("{path}.rs"))));
    }
    roots
}

/// The file of `mod name;`, when it exists.
fn module_file(house: &House<'_>, (path, is_root): (&str, bool), module: &crate::scan::Module) -> Option<String> {
    let stem = path.strip_suffix(".rs")?;
    let children = if is_root || stem.ends_with("/mod") { directory(path) } else { stem };
    if let Some(explicit) = &module.explicit {
        return resolve(directory(path), explicit);
    }
    let base = format!("{children}/{}", module.path.join("/"));
    [format!("{base}.rs"), format!("{base}/mod.rs")].into_iter().find(|file| house.tree.text(file).is_some())
}

/// The relative links of a Markdown page with their lines; code is left out.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code {
            continue;
        }
        for part in line.split("](").skip(1) {
            let link = part.split([')', '#', ' ']).next().unwrap_or_default();
            if !link.is_empty() && !link.contains("://") && !link.starts_with("mailto:") {
                found.push((index + 1, link));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::complaints;

    const PACKAGE: (&str, &str) = ("clock/a/Cargo.toml", "[package]\n[[bin]]\npath = \"src/tool/start.rs\"");

    #[test]
    fn a_file_that_is_no_module_is_found() {
        let files = [PACKAGE, ("clock/a/src/lib.rs", "mod b;"), ("clock/a/src/b.rs", ""), ("clock/a/src/c.rs", "")];
        let found = complaints(check, "", files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("clock/a/src/c.rs:1:"));
    }

    #[test]
    fn modules_are_followed_wherever_they_may_be() {
        let files = [
            PACKAGE,
            ("clock/a/src/lib.rs", "mod b;\nmod c { mod d; }\n#[path = \"odd.rs\"] mod e;"),
            ("clock/a/src/b.rs", "mod f;"),
            ("clock/a/src/b/f.rs", ""),
            ("clock/a/src/c/d/mod.rs", "mod g;"),
            ("clock/a/src/c/d/g.rs", ""),
            ("clock/a/src/odd.rs", ""),
            ("clock/a/src/tool/start.rs", "mod help;"),
            ("clock/a/src/tool/help.rs", ""),
            ("clock/a/tests/it.rs", "mod common;"),
            ("clock/a/tests/common/mod.rs", ""),
            ("clock/a/tests/together/main.rs", ""),
        ];
        assert_eq!(complaints(check, "", files), [""; 0]);
    }

    #[test]
    fn a_page_without_a_link_and_a_link_without_a_page_are_found() {
        let found = complaints(
            check,
            "",
            [
                ("README.md", "[a](docs/a.md#part) [b](docs/none.md)\n```\n[x](y)\n```\n[c](scheme://elsewhere)"),
                ("docs/a.md", ""),
                ("docs/b.md", ""),
            ],
        );
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("README.md:1: the link to docs/none.md") && found[1].starts_with("docs/b.md:1:"));
    }
}
