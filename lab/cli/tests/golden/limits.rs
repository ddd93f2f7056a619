//! The ranges that the figures of a trace must lie in, whatever is expected: `limits.json` maps the path of a figure in
//! the report to its least and its greatest value, or a word to the only one that is right. What holds for one
//! estimator only stands below its name, and goes before what holds for both.

use super::ESTIMATORS;
use serde_json::{Map, Value};
use std::fs;
use std::path::Path;

/// Fails where a figure is out of its range, and where a trace with the truth has no range for what matters most.
pub fn check(directory: &Path, estimator: &str, report: &str) {
    let path = directory.join("limits.json");
    let limits = limits_of(&fs::read_to_string(&path).unwrap(), estimator);
    let report: Value = serde_json::from_str(report).unwrap();
    for (name, limit) in &limits {
        let found = report.pointer(&format!("/{}", name.replace('.', "/"))).unwrap_or(&Value::Null);
        assert!(is_within(limit, found), "{name} is {found}, not within {limit} ({})", path.display());
    }
    let knows_truth = !report["error"].is_null();
    let must = if knows_truth { ["containment", "error.iqr", "error.max_abs"] } else { ["status", "bound_s", "used"] };
    for name in must {
        assert!(limits.contains_key(name), "{} sets no limit for {name}", path.display());
    }
}

/// The limits for both estimators, with those of one in their place.
fn limits_of(text: &str, estimator: &str) -> Map<String, Value> {
    let mut limits: Map<String, Value> = serde_json::from_str(text).unwrap();
    let own: Vec<Option<Value>> =
        ESTIMATORS.iter().map(|name| limits.remove(*name).filter(|_| *name == estimator)).collect();
    for own in own.into_iter().flatten() {
        limits.extend(own.as_object().unwrap().clone());
    }
    limits
}

fn is_within(limit: &Value, found: &Value) -> bool {
    match limit.as_array().map(Vec::as_slice) {
        Some([least, greatest]) => {
            let (least, greatest) = (least.as_f64().unwrap(), greatest.as_f64().unwrap());
            found.as_f64().is_some_and(|found| (least..=greatest).contains(&found))
        }
        _ => limit == found,
    }
}

#[test]
fn ranges_include_their_ends_and_null_is_outside() {
    let within = |limit: &str, found: &str| {
        is_within(&serde_json::from_str(limit).unwrap(), &serde_json::from_str(found).unwrap())
    };
    assert!(within("[1, 2]", "1") && within("[1, 2]", "2.0") && within("\"on\"", "\"on\""));
    assert!(!within("[1, 2]", "2.1") && !within("[1, 2]", "null") && !within("\"on\"", "\"off\""));
}

#[test]
fn the_limits_of_one_estimator_go_before_those_of_both() {
    let text = r#"{"a": 1, "b": 2, "learned": {"b": 3}, "classic": {"c": 4}}"#;
    let limits = |estimator| Value::Object(limits_of(text, estimator)).to_string();
    assert_eq!(limits("learned"), r#"{"a":1,"b":3}"#);
    assert_eq!(limits("classic"), r#"{"a":1,"b":2,"c":4}"#);
}
