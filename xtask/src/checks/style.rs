//! Style that can be seen from the tokens and lines: comments that fit the page, types that say what they mean, one
//! place for modules.

use super::{Finding, House};
use crate::scan::{Scan, Token};

/// Formatting breaks code at this width and leaves comments alone, in characters.
const COMMENT_WIDTH: usize = 120;

/// Finds what a formatter does not.
pub fn check(house: &House<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, scan) in &house.scans {
        findings.extend(wide_comments(path, house.tree.text(path).unwrap_or_default()));
        findings.extend(named_pairs(scan).map(|(line, message)| Finding::new(path, line, message)));
        if path.contains("/src/") && path.ends_with("/mod.rs") {
            findings.push(Finding::new(path, 1, "a module stands in NAME.rs beside NAME/, not in NAME/mod.rs"));
        }
    }
    findings
}

fn wide_comments(path: &str, text: &str) -> Vec<Finding> {
    let wide = text.lines().enumerate().filter(|(_, line)| is_prose(line) && line.chars().count() > COMMENT_WIDTH);
    wide.map(|(index, line)| {
        let width = line.chars().count();
        Finding::new(path, index + 1, format!("a comment of {width} characters, and {COMMENT_WIDTH} are allowed"))
    })
    .collect()
}

/// Whether it is a line of a comment that can be broken anywhere, which a row of a table or of a listing cannot.
fn is_prose(line: &str) -> bool {
    let comment = line.trim_start().strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']));
    comment.is_some_and(|text| !text.starts_with(" |") && !text.starts_with("     "))
}

const BOOL: &str = "an enum of Yes and No says nothing at the call: name its values after what they mean";
const DIRECTION: &str = "the direction of a packet is Direction of units";

/// Pairs that are not to be the only values of an enum, in alphabetical order, and why.
const PAIRS: [([&str; 2], &str); 9] = [
    (["No", "Yes"], BOOL),
    (["Off", "On"], BOOL),
    (["False", "True"], BOOL),
    (["Disabled", "Enabled"], BOOL),
    (["Absent", "Present"], BOOL),
    (["Backward", "Forward"], DIRECTION),
    (["Back", "There"], DIRECTION),
    (["In", "Out"], DIRECTION),
    (["Inbound", "Outbound"], DIRECTION),
];

/// The lines of enums whose only values are one of the pairs, and what is wrong with it.
fn named_pairs(scan: &Scan) -> impl Iterator<Item = (usize, &'static str)> {
    let begins = scan.tokens.iter().enumerate().filter(|(_, token)| token.text == "enum");
    begins.filter_map(|(at, token)| {
        let body = scan.tokens.get(at..)?.iter().skip_while(|token| token.text != "{").skip(1);
        let mut names = variants(body.take_while(|token| token.text != "}"));
        names.sort_unstable();
        let pair = PAIRS.iter().find(|(pair, _)| names == *pair)?;
        Some((token.line, pair.1))
    })
}

/// The names that stand at the top of an enum's body, without attributes; those that carry a value
/// have none.
fn variants<'a>(body: impl Iterator<Item = &'a Token>) -> Vec<&'a str> {
    let mut depth = 0_usize;
    let mut names = Vec::new();
    for token in body {
        match token.text.as_str() {
            "[" | "(" => {
                if depth == 0 && token.text == "(" {
                    names.pop();
                    names.push("a name with a value");
                }
                depth += 1;
            }
            "]" | ")" => depth = depth.saturating_sub(1),
            name if depth == 0 && name.starts_with(char::is_alphabetic) => names.push(name),
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::complaints;

    fn of(path: &str, text: &str) -> Vec<String> {
        complaints(check, "", [(path, text)])
    }

    #[test]
    fn a_comment_of_121_characters_is_too_wide() {
        let comment = |width: usize| format!("    //{}\nfn f() {{}}", "x".repeat(width - 6));
        assert_eq!(of("clock/a/src/b.rs", &comment(120)), [""; 0]);
        assert_eq!(of("clock/a/src/b.rs", &comment(121)).len(), 1);
        assert_eq!(
            of("clock/a/src/b.rs", &format!("//! | {} |\n//!     {}", "x".repeat(130), "y".repeat(130))),
            [""; 0]
        );
    }

    #[test]
    fn a_home_made_bool_is_found_and_other_enums_are_not() {
        let found = of("lab/a/src/b.rs", "\n/// Whether.\npub enum Wanted {\n /// It is.\n Yes,\n #[default]\n No,\n}");
        assert!(found[0].starts_with("lab/a/src/b.rs:3: an enum of Yes and No"), "{found:?}");
        assert_eq!(of("lab/a/src/b.rs", "enum Filtering { On, Off }").len(), 1);
        assert_eq!(of("lab/a/src/b.rs", "enum Answer { Yes, No, Perhaps(u8) }"), [""; 0]);
        assert_eq!(of("lab/a/src/b.rs", "enum Answer { Yes(u8), Never }"), [""; 0]);
        assert_eq!(of("lab/a/src/b.rs", "enum Limit { Off, On(u8) }"), [""; 0]);
    }

    #[test]
    fn a_second_direction_is_found() {
        let found = of("lab/a/src/b.rs", "enum Way { Forward, Backward }");
        assert!(found[0].ends_with("the direction of a packet is Direction of units"), "{found:?}");
        assert_eq!(of("lab/a/src/b.rs", "enum Gear { Forward, Backward, Neutral }"), [""; 0]);
    }

    #[test]
    fn modules_stand_beside_their_directory_but_for_those_of_tests() {
        assert_eq!(of("lab/a/src/b/mod.rs", "").len(), 1);
        assert_eq!(of("lab/a/tests/common/mod.rs", ""), [""; 0]);
        assert_eq!(of("lab/a/src/b.rs", ""), [""; 0]);
    }
}
