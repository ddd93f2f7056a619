//! Licences and origins of all dependencies, from cargo's own metadata. `deny.toml` is the list, which cargo-deny reads
//! as well. This check needs no further tool, so it runs everywhere.

use serde::Deserialize;
use std::path::Path;
use std::process::Command;

/// The workspaces of the project.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "fuzz/Cargo.toml"];

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// Further licences for one crate, as cargo-deny writes them.
#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

impl Licenses {
    /// All licences that are allowed for the crate called `name`.
    fn for_crate(&self, name: &str) -> Vec<String> {
        let exceptions = self.exceptions.iter().filter(|exception| exception.name == name);
        self.allow.iter().chain(exceptions.flat_map(|exception| &exception.allow)).cloned().collect()
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// cargo's metadata of a package; `source` is absent for the project's own.
#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

/// Checks every package of both workspaces.
///
/// # Errors
/// The complaints, a line each; or the error of cargo.
pub fn check(root: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(root.join("deny.toml")).map_err(|error| format!("deny.toml: {error}"))?;
    let deny: Deny = toml::from_str(&text).map_err(|error| format!("deny.toml: {error}"))?;
    let mut packages = Vec::new();
    for manifest in MANIFESTS {
        packages.extend(metadata(&root.join(manifest))?.packages);
    }
    let complaints: Vec<String> =
        packages.iter().filter_map(|package| complaint(package, &deny.licenses.for_crate(&package.name))).collect();
    match complaints.is_empty() {
        true => Ok(format!("licences: {} packages, all with an allowed licence and from the registry", packages.len())),
        false => Err(complaints.join("\n")),
    }
}

fn metadata(manifest: &Path) -> Result<Metadata, String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path"])
        .arg(manifest)
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

fn complaint(package: &Package, allowed: &[String]) -> Option<String> {
    let Package { name, version, license, source } = package;
    if source.as_ref().is_some_and(|source| !source.starts_with("registry+")) {
        return Some(format!(
            "{name} {version} does not come from the registry: only released packages can be audited and rebuilt"
        ));
    }
    let Some(license) = license else { return Some(format!("{name} {version} states no licence")) };
    let message = || format!("{name} {version} is under {license}, which deny.toml does not allow");
    (!satisfies(license, allowed)).then(message)
}

/// Whether the allowed licences satisfy a licence expression: `OR` offers a choice, `AND` demands both, and an old `/`
/// means `OR`.
fn satisfies(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (is_satisfied, rest) = either(&words, allowed);
    is_satisfied && rest.is_empty()
}

fn either<'a, 'b>(words: &'b [&'a str], allowed: &[String]) -> (bool, &'b [&'a str]) {
    let (mut is_satisfied, mut rest) = both(words, allowed);
    while let ["OR", after @ ..] = rest {
        let (right, remaining) = both(after, allowed);
        (is_satisfied, rest) = (is_satisfied || right, remaining);
    }
    (is_satisfied, rest)
}

fn both<'a, 'b>(words: &'b [&'a str], allowed: &[String]) -> (bool, &'b [&'a str]) {
    let (mut is_satisfied, mut rest) = one(words, allowed);
    while let ["AND", after @ ..] = rest {
        let (right, remaining) = one(after, allowed);
        (is_satisfied, rest) = (is_satisfied && right, remaining);
    }
    (is_satisfied, rest)
}

fn one<'a, 'b>(words: &'b [&'a str], allowed: &[String]) -> (bool, &'b [&'a str]) {
    let is_allowed = |name: &str| allowed.iter().any(|known| known == name);
    match words {
        ["(", inner @ ..] => match either(inner, allowed) {
            (is_satisfied, [")", rest @ ..]) => (is_satisfied, rest),
            (_, rest) => (false, rest),
        },
        [name, "WITH", exception, rest @ ..] => (is_allowed(&format!("{name} WITH {exception}")), rest),
        [name, rest @ ..] => (is_allowed(name), rest),
        [] => (false, words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Vec<String> {
        ["MIT", "Apache-2.0", "NCSA", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).to_vec()
    }

    #[test]
    fn expressions_are_read_as_spdx_says() {
        for good in
            ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "(MIT OR GPL-3.0) AND NCSA", "Apache-2.0 WITH LLVM-exception"]
        {
            assert!(satisfies(good, &allowed()), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR NCSA", "MIT)", "MIT WITH LLVM-exception", "", "MIT NCSA"] {
            assert!(!satisfies(bad, &allowed()), "{bad}");
        }
    }

    #[test]
    fn an_exception_holds_for_its_crate_only() {
        let text = "allow = ['MIT']\nexceptions = [{ crate = 'tool', allow = ['MPL-2.0'] }]";
        let licenses: Licenses = toml::from_str(text).unwrap();
        assert!(satisfies("MPL-2.0", &licenses.for_crate("tool")) && satisfies("MIT", &licenses.for_crate("tool")));
        assert!(!satisfies("MPL-2.0", &licenses.for_crate("other")));
    }

    #[test]
    fn origin_and_silence_are_complaints() {
        let of = |license: Option<&str>, source: &str| {
            let (license, source) = (license.map(str::to_owned), Some(source.to_owned()));
            complaint(&Package { name: "a".to_owned(), version: "1".to_owned(), license, source }, &allowed())
        };
        assert_eq!(of(Some("MIT"), "registry+somewhere"), None);
        assert!(of(Some("MIT"), "git+somewhere").unwrap().contains("does not come from the registry"));
        assert!(of(None, "registry+somewhere").unwrap().contains("states no licence"));
        assert!(of(Some("GPL-3.0"), "registry+somewhere").unwrap().contains("does not allow"));
    }
}
