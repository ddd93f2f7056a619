//! Texts that no tracked file may hold: paths of one machine, host names of registries, promises to do it later.

use super::{Finding, House};
use crate::rules::{self, BannedText};

/// Finds the banned texts in every file, whatever its language.
pub fn check(house: &House<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in house.tree.files().filter(|(path, _)| *path != rules::PATH) {
        for rule in house.rules.texts.iter().filter(|rule| applies(house, rule, path)) {
            for (index, line) in text.lines().enumerate() {
                let banned = rule.texts.iter().find(|banned| holds(line, banned, rule));
                findings.extend(
                    banned.map(|banned| Finding::new(path, index + 1, format!("\"{banned}\": {}", rule.instead))),
                );
            }
        }
    }
    findings
}

fn applies(house: &House<'_>, rule: &BannedText, path: &str) -> bool {
    let is_within = rule.within.is_empty() || house.rules.covers(&rule.within, path);
    is_within && !house.rules.covers(&rule.except, path)
}

fn holds(line: &str, banned: &str, rule: &BannedText) -> bool {
    let is_word = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let (line, banned) = match rule.any_case {
        // ASCII letters keep their places.
        true => (&*line.to_ascii_lowercase(), &*banned.to_ascii_lowercase()),
        false => (line, banned),
    };
    line.match_indices(banned).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + banned.len()..).and_then(|text| text.chars().next());
        !rule.whole_word || !(is_word(before) || is_word(after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::complaints;

    const RULES: &str = "
        [[texts]]
        texts = ['LATER']
        instead = 'do it now'
        whole_word = true
        [[texts]]
        texts = ['/machine/']
        instead = 'use a relative path'
        except = ['docs/']
        [[texts]]
        texts = ['utilised']
        instead = 'used'
        within = ['clock/']
        any_case = true";

    #[test]
    fn a_banned_text_is_found_in_any_language() {
        let found = complaints(check, RULES, [("tools/a", "x\n# LATER: do it"), ("a.py", "open('/machine/x')")]);
        assert_eq!(found, ["a.py:1: \"/machine/\": use a relative path", "tools/a:2: \"LATER\": do it now"]);
    }

    #[test]
    fn a_text_may_be_banned_in_one_place_only() {
        let found =
            complaints(check, RULES, [("clock/a.rs", "// what was utilised"), ("lab/a.rs", "// what was utilised")]);
        assert_eq!(found, ["clock/a.rs:1: \"utilised\": used"]);
    }

    #[test]
    fn a_banned_word_is_found_at_the_beginning_of_a_sentence_where_the_rule_says_so() {
        let found = complaints(check, RULES, [("clock/a.rs", "// Utilised twice."), ("b.sh", "# later is no promise")]);
        assert_eq!(found, ["clock/a.rs:1: \"utilised\": used"]);
    }

    #[test]
    fn parts_of_words_and_exceptions_are_free() {
        assert_eq!(complaints(check, RULES, [("a.sh", "mktemp a.LATERLATER"), ("docs/a.md", "/machine/")]), [""; 0]);
    }
}
