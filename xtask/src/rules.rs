//! The rules that differ from crate to crate, read from `xtask/tidy.toml`.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Where the rules are.
pub const PATH: &str = "xtask/tidy.toml";

/// The whole of `xtask/tidy.toml`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Names for groups of path prefixes; a group stands in other lists as `@name`.
    #[serde(default)]
    pub groups: BTreeMap<String, Vec<String>>,
    /// By package directory.
    #[serde(default)]
    pub packages: BTreeMap<String, Package>,
    /// The only files that may hold unsafe code, each with its reason.
    #[serde(default)]
    pub unsafe_files: BTreeMap<String, String>,
    #[serde(default)]
    pub bans: Vec<Ban>,
    #[serde(default)]
    pub texts: Vec<BannedText>,
    /// Where the dependencies are explained, a heading with the name in backticks each.
    #[serde(default)]
    pub dependency_reasons: String,
    /// Rust files that cargo finds in a way which the scan cannot see.
    #[serde(default)]
    pub extra_roots: Vec<String>,
    /// Path prefixes of generated files: not measured.
    #[serde(default)]
    pub generated: Vec<String>,
}

/// What one package may do.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    #[serde(default)]
    pub no_std: bool,
    /// What the crate says of unsafe code at its top: "forbid" or "deny"; empty for nothing.
    #[serde(default)]
    pub unsafe_code: String,
    /// Crates of the house that it may know.
    #[serde(default)]
    pub knows: Vec<String>,
    /// Crates of the house that its tests may know besides.
    #[serde(default)]
    pub tests_know: Vec<String>,
    /// Crates from outside that it may use; absent means any that is explained.
    pub outside: Option<Vec<String>>,
}

/// A call that is banned, and what to write instead.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ban {
    /// Alternatives, each a row of Rust tokens with spaces between them.
    pub calls: Vec<String>,
    /// What to write instead, and why.
    pub instead: String,
    /// Path prefixes or groups where the ban holds.
    pub within: Vec<String>,
    /// Path prefixes or groups where it does not.
    #[serde(default)]
    pub except: Vec<String>,
    /// Whether the ban holds in tests as well.
    #[serde(default)]
    pub also_in_tests: bool,
}

/// A text that no tracked file may hold.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BannedText {
    pub texts: Vec<String>,
    pub instead: String,
    /// Path prefixes where it may stand.
    #[serde(default)]
    pub except: Vec<String>,
    /// Path prefixes or groups where it may not stand; everywhere when there are none.
    #[serde(default)]
    pub within: Vec<String>,
    /// Whether only a whole word counts.
    #[serde(default)]
    pub whole_word: bool,
    /// Whether capital letters make no difference, as at the beginning of a sentence.
    #[serde(default)]
    pub any_case: bool,
}

impl Rules {
    /// # Errors
    /// When the text is not TOML of this form, or names a group that does not exist.
    pub fn parse(text: &str) -> Result<Rules, String> {
        let rules: Rules = toml::from_str(text).map_err(|error| format!("{PATH}: {error}"))?;
        let lists = rules.bans.iter().flat_map(|ban| [&ban.within, &ban.except]).flatten();
        let named: Vec<&str> = lists.filter_map(|entry| entry.strip_prefix('@')).collect();
        if let Some(group) = named.into_iter().find(|group| !rules.groups.contains_key(*group)) {
            return Err(format!("{PATH}: there is no group called {group}"));
        }
        Ok(rules)
    }

    /// Whether the path begins with one of these prefixes, or with one of a group's.
    pub fn covers(&self, list: &[String], path: &str) -> bool {
        list.iter().any(|entry| match entry.strip_prefix('@').and_then(|group| self.groups.get(group)) {
            Some(members) => members.iter().any(|prefix| path.starts_with(prefix.as_str())),
            None => path.starts_with(entry.as_str()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_stand_for_their_prefixes() {
        let rules = Rules::parse("[groups]\ncores = ['clock/units/']").unwrap();
        assert!(rules.covers(&["@cores".to_owned()], "clock/units/src/lib.rs"));
        assert!(!rules.covers(&["@cores".to_owned()], "clock/unitsandmore/src/lib.rs"));
    }

    #[test]
    fn a_misspelt_key_or_group_is_an_error() {
        assert!(Rules::parse("[[bans]]\ncall = []").is_err());
        assert!(Rules::parse("[[bans]]\ncalls = []\ninstead = ''\nwithin = ['@core']").is_err());
    }

    #[test]
    fn the_shipped_rules_parse() {
        assert!(Rules::parse(include_str!("../tidy.toml")).is_ok());
    }
}
