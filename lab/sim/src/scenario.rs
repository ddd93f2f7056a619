//! Scenarios: short files that describe a world and say what must hold in it.
//!
//! A file may begin with `extends = "NAME"`: then it is that scenario, with the keys of this file in place of the
//! other's. Tables are joined key by key; lists are replaced.

mod library;
mod measures;
mod sense;
mod several;
mod spec;
mod tag;

pub use library::{Library, NAMES};
pub(crate) use measures::LONGEST_S;
pub use measures::{Fraction, Length};
pub(crate) use several::stream;
pub use several::{ServerEntry, SharedSpec};
pub use spec::*;
pub use tag::Tag;

use ffclock_units::Span;
use std::fmt;

/// How many scenarios may extend one another in a row.
const DEPTH_MAX: u32 = 4;

/// Why there is no scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    name: String,
    why: String,
}

impl ScenarioError {
    fn new(name: &str, why: impl ToString) -> Self {
        ScenarioError { name: name.to_owned(), why: why.to_string() }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scenario {}: {}", self.name, self.why.trim_end())
    }
}

impl std::error::Error for ScenarioError {}

impl Scenario {
    /// One of the built-in scenarios, or one made of it: `NAMExN` has N servers, each as its only one; the server of
    /// `NAME/N` is asked N times as often; `NAME/honest` is without the servers that lie.
    ///
    /// # Errors
    /// There is none of this name, or its file is wrong.
    pub fn named(name: &str) -> Result<Self, ScenarioError> {
        let file = |name: &str| Library::text(name).map(|text| Self::parse(name, text));
        let made = || match name.rsplit_once('/') {
            Some((kind, "honest")) => Some(file(kind)?.map(Self::honest)),
            _ => derived(name).map(|text| Self::parse(name, &text)),
        };
        file(name).or_else(made).unwrap_or_else(|| Err(ScenarioError::new(name, "there is none of this name")))
    }

    /// The scenario that `text` describes; `name` is for complaints.
    ///
    /// # Errors
    /// A key or a tag that is not known, a value without its unit, a world that cannot be, a check that makes no sense.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let mut table = extended(name, text, 0)?;
        let servers = several::take(&mut table).map_err(|why| ScenarioError::new(name, why))?;
        let whole: Scenario = table.try_into().map_err(|error| ScenarioError::new(name, key_first(&error)))?;
        let scenario = Scenario { servers, ..whole };
        scenario.validate().map_err(|why| ScenarioError::new(name, why))?;
        Ok(scenario)
    }

    /// What types alone cannot say.
    fn validate(&self) -> Result<(), String> {
        sense::of_scenario(self)?;
        for check in crate::check::all(self) {
            check?;
        }
        Ok(())
    }
}

/// The file that a name such as `lan-16x3` or `lan-16/3` stands for.
fn derived(name: &str) -> Option<String> {
    let count =
        |number: &str| number.parse::<i64>().ok().filter(|count| (1..=several::SERVERS_MAX as i64).contains(count));
    let base = |base: &str| Library::text(base).and_then(|text| Scenario::parse(base, text).ok());
    if let Some((kind, number)) = name.rsplit_once('/') {
        let (scenario, count) = (base(kind)?, count(number)?);
        let poll = Span::from_units(scenario.poll.0.units() / i128::from(count));
        let about = format!("{kind}, the server is asked {count} times as often");
        return Some(format!("extends = {kind:?}\nabout = {about:?}\ntags = [\"several-alike\"]\npoll = \"{poll}\"\n"));
    }
    let (kind, number) = name.rsplit_once('x')?;
    let (_, count) = (base(kind)?, count(number)?);
    let about = format!("{count} servers, each as that of {kind}");
    let server = format!("[[server]]\nname = \"server\"\ncount = {count}\n");
    Some(format!("extends = {kind:?}\nabout = {about:?}\ntags = [\"several-alike\"]\n{server}"))
}

/// The library names the key on a line of its own after what is wrong with it.
fn key_first(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let parts = text.trim_end().strip_suffix('`').and_then(|text| text.rsplit_once("\nin `"));
    parts.map_or(text.clone(), |(why, key)| format!("{key}: {why}"))
}

fn extended(name: &str, text: &str, depth: u32) -> Result<toml::Table, ScenarioError> {
    let mut table: toml::Table = text.parse().map_err(|error| ScenarioError::new(name, error))?;
    let Some(base) = table.remove("extends") else { return Ok(table) };
    let base =
        base.as_str().ok_or_else(|| ScenarioError::new(name, "extends: must be the name of a scenario in quotes"))?;
    if depth >= DEPTH_MAX {
        return Err(ScenarioError::new(name, format!("extends: more than {DEPTH_MAX} scenarios in a row")));
    }
    let base_text = Library::text(base)
        .ok_or_else(|| ScenarioError::new(name, format!("extends: there is no built-in scenario {base:?}")))?;
    let mut whole = extended(base, base_text, depth + 1)?;
    // Neither the checks of one world nor its kind say anything about another.
    whole.remove("checks");
    whole.remove("tags");
    join(&mut whole, table);
    Ok(whole)
}

fn join(whole: &mut toml::Table, part: toml::Table) {
    for (key, value) in part {
        match (whole.get_mut(&key), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => join(old, new),
            (Some(toml::Value::Table(old)), toml::Value::Array(list)) if key == "server" => {
                let each = list.into_iter().map(|one| over(old, one)).collect();
                whole.insert(key, toml::Value::Array(each));
            }
            (_, value) => {
                whole.insert(key, value);
            }
        }
    }
}

/// One of several servers where the other scenario has one: that one, with these keys.
fn over(old: &toml::Table, one: toml::Value) -> toml::Value {
    match one {
        toml::Value::Table(one) => {
            let mut whole = old.clone();
            join(&mut whole, one);
            toml::Value::Table(whole)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: &str = "about = \"a test\"\n[path]\nforward = \"100 us\"\nbackward = \"100 us\"\n";

    #[test]
    fn every_built_in_scenario_reads() {
        for name in NAMES {
            Scenario::named(name).unwrap();
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert!(Scenario::parse("short", SHORT).is_ok());
        for (line, complaint) in [
            ("fish = 1", "unknown field `fish`"),
            ("queue = [{ mean = \"1 us\", length = 3 }]", "unknown field `length`"),
            ("queue = [{ mean = \"1 us\", when = \"never\" }]", "unknown variant"),
            ("queue = [{ mean = \"1 us\", law = \"pareto\", shape = 1.0 }]", "shape"),
            ("queue = [{ mean = \"1\" }]", "unit"),
            ("loss = 1.5", "share"),
            ("forward = \"1 us\"", "duplicate key"),
            ("[checks]\n\"x\" = \"classic.fish < 1 us\"", "fish"),
        ] {
            let error = Scenario::parse("wrong", &format!("{SHORT}{line}\n")).unwrap_err().to_string();
            assert!(error.contains(complaint), "{line}: {error}");
        }
    }

    #[test]
    fn a_scenario_that_extends_another_differs_in_its_keys_only() {
        let base = Scenario::named("lan-16").unwrap();
        let text = "extends = \"lan-16\"\nabout = \"another\"\n[path]\nloss = 0.25\n";
        let other = Scenario::parse("other", text).unwrap();
        assert_eq!(other.path.loss, 0.25);
        assert_eq!((other.path.forward, other.path.queue), (base.path.forward, base.path.queue));
        assert!(other.checks.is_empty() && !base.checks.is_empty());
        assert!(Scenario::parse("other", "extends = \"fish\"").is_err());
    }

    #[test]
    fn tags_are_known_and_belong_to_one_file() {
        let tagged = |tags: &str| Scenario::parse("tagged", &format!("tags = [{tags}]\n{SHORT}"));
        assert_eq!(tagged("\"congested\"").unwrap().tags, [Tag::Congested].into());
        let unknown = tagged("\"congested\", \"fishy\"").unwrap_err().to_string();
        assert!(unknown.contains("unknown variant `fishy`") && unknown.contains("outage-2h"), "{unknown}");
        let without_window = tagged("\"outage-2h\"").unwrap_err().to_string();
        assert!(
            without_window.contains("tags: outage-2h") && without_window.contains("window `before`"),
            "{without_window}"
        );
        let base = Scenario::named("lan-congested").unwrap();
        let other = Scenario::parse("other", "extends = \"lan-congested\"\nabout = \"another\"\n").unwrap();
        assert_eq!((base.tags.len(), other.tags.len()), (1, 0));
    }
}
