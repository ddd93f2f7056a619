//! Unsafe code stands only in listed files, each with its reason in the rules. A lint of the compiler demands a reason
//! for each block.

use super::{Finding, House};
use crate::rules;

/// Finds unsafe code outside the listed files, and listed files that no longer have any.
pub fn check(house: &House<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, scan) in &house.scans {
        let mut lines = scan.find(&["unsafe"]);
        if !house.rules.unsafe_files.contains_key(*path) {
            let message = "unsafe code outside the listed files: use the safe functions of counter, sys or page, or list the file \
                           with a reason in xtask/tidy.toml";
            findings.extend(lines.next().map(|line| Finding::new(path, line, message)));
        }
    }
    for (path, reason) in &house.rules.unsafe_files {
        let has_unsafe = house.scans.get(path.as_str()).is_some_and(|scan| scan.find(&["unsafe"]).next().is_some());
        if !has_unsafe {
            findings.push(Finding::new(
                rules::PATH,
                1,
                format!("{path} is listed for unsafe code and has none: remove it"),
            ));
        }
        if reason.trim().is_empty() {
            findings.push(Finding::new(rules::PATH, 1, format!("{path} is listed for unsafe code without a reason")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::complaints;

    #[test]
    fn unsafe_code_in_an_unlisted_file_is_found_also_in_attributes() {
        for text in
            ["fn f() { unsafe { g() } }", "#[unsafe(no_mangle)] fn f() {}", "macro_rules! m { () => { unsafe {} } }"]
        {
            assert_eq!(complaints(check, "", [("clock/a/src/b.rs", text)]).len(), 1, "{text}");
        }
        assert_eq!(complaints(check, "", [("clock/a/src/b.rs", "#![forbid(unsafe_code)] // unsafe")]), [""; 0]);
    }

    #[test]
    fn the_list_is_kept_true() {
        let rules = "[unsafe_files]\n'clock/a/src/b.rs' = 'calls the kernel'";
        assert_eq!(complaints(check, rules, [("clock/a/src/b.rs", "unsafe fn f() {}")]), [""; 0]);
        assert!(complaints(check, rules, [("clock/a/src/b.rs", "fn f() {}")])[0].contains("has none"));
        let rules = "[unsafe_files]\n'clock/a/src/b.rs' = ''";
        assert!(complaints(check, rules, [("clock/a/src/b.rs", "unsafe fn f() {}")])[0].contains("without a reason"));
    }
}
