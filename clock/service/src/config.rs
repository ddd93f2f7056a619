//! A configuration file: TOML text in, and a list of all its problems, each with its line.
//!
//! A daemon walks through the tables and knows which struct of options takes a key; this room sets the option from its
//! text form and puts whatever is wrong into words. An unknown key is a problem.

use ffclock_units::{OptionDoc, OptionError, OptionValue};
use std::fmt;
use std::io::Read;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The most problems that are reported: a longer list helps no one.
pub const MOST_PROBLEMS: usize = 20;
/// A configuration longer than this is refused unread.
pub const LONGEST_TEXT: usize = 1 << 20;

/// A value with its place in the text.
pub type Value<'t> = Spanned<DeValue<'t>>;

/// One problem, and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, counted from one; 0 for what the command line names.
    pub line: usize,
    /// The problem, in words.
    pub message: String,
}

/// Everything that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// All problems, in the order of the file.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            f.write_str(separator)?;
            match problem.line {
                0 => f.write_str(&problem.message)?,
                line => write!(f, "line {line}: {}", problem.message)?,
            }
        }
        Ok(())
    }
}

/// Shows every option of a daemon.
pub type ShowOptions = fn(&mut dyn FnMut(OptionDoc<'_>));

/// What a daemon says about its keys.
#[derive(Clone, Copy)]
pub struct Described {
    /// Shows every option.
    pub options: ShowOptions,
    /// What to do instead of a key that does not exist, as the end of a sentence.
    pub instead_of: fn(&str) -> Option<&'static str>,
    /// What to do about a line without a value.
    pub no_value: &'static str,
    /// What to do about a key that is there twice.
    pub twice: fn(&str) -> Option<&'static str>,
}

/// The text of a configuration, and what is wrong with it.
pub struct ConfigText<'t> {
    text: &'t str,
    described: Described,
    problems: Vec<Problem>,
}

impl<'t> ConfigText<'t> {
    /// No problem is known yet.
    pub fn new(text: &'t str, described: Described) -> Self {
        ConfigText { text, described, problems: Vec::new() }
    }

    /// The configuration, unless there are problems.
    ///
    /// # Errors
    /// All problems, in the order of the file.
    pub fn end<C>(mut self, config: Option<C>) -> Result<C, ConfigError> {
        match config {
            Some(config) if self.problems.is_empty() => Ok(config),
            _ => {
                self.problems.sort_by_key(|problem| problem.line);
                Err(ConfigError { problems: self.problems })
            }
        }
    }

    /// Whether nothing is wrong so far.
    pub fn is_fine(&self) -> bool {
        self.problems.is_empty()
    }

    /// The tables and keys; `None` where the text is no TOML, which is a problem then.
    pub fn table(&mut self) -> Option<DeTable<'t>> {
        if self.text.len() > LONGEST_TEXT {
            self.problem(0, "the configuration is longer than 1 MiB".to_owned());
            return None;
        }
        match DeTable::parse(self.text) {
            Ok(table) => Some(table.into_inner()),
            Err(error) => {
                let place = error.span().unwrap_or_default();
                let named = self.text.get(place.clone()).unwrap_or_default();
                self.problem(place.start, self.clearer(error.message(), named));
                None
            }
        }
    }

    /// Sets the option `name`, whose key is at the place `at` of the text, by `set`.
    pub fn apply(
        &mut self,
        at: usize,
        name: &str,
        value: &Value<'_>,
        set: &mut dyn FnMut(&str, &str) -> Result<(), OptionError>,
    ) {
        let Some(text) = scalar_text(value.get_ref()) else {
            return self.problem(at, format!("{}: a single value is expected", excerpt(name)));
        };
        if let Err(error) = set(name, &text) {
            self.problem(at, self.explained(name, value, error));
        }
    }

    /// As [`apply`](Self::apply), for an option that is a list: written as an array, or as one text with commas.
    pub fn apply_list(
        &mut self,
        at: usize,
        name: &str,
        value: &Value<'_>,
        set: &mut dyn FnMut(&str, &str) -> Result<(), OptionError>,
    ) {
        let Some(text) = list_text(value.get_ref()) else {
            return self.problem(at, format!("{}: a list of texts is expected", excerpt(name)));
        };
        if let Err(error) = set(name, &text) {
            self.problem(at, self.explained(name, value, error));
        }
    }

    /// Why an option was not set, in words.
    fn explained(&self, name: &str, value: &Value<'_>, error: OptionError) -> String {
        let written = self.written(value);
        match error {
            OptionError::Unknown => self.unknown(name),
            OptionError::OutOfRange => {
                let (low, high) = self.range(name).unwrap_or_default();
                format!("{name} = {written}: the value must lie between {low} and {high}")
            }
            OptionError::Malformed(WHOLE) => {
                let (low, high) = self.range(name).unwrap_or_default();
                format!("{name} = {written}: the value must be {WHOLE} from {low} to {high}")
            }
            _ => format!("{name} = {written}: {error}"),
        }
    }

    /// A value as it stands in the file.
    pub fn written(&self, value: &Value<'_>) -> String {
        excerpt(self.text.get(value.span()).unwrap_or_default())
    }

    /// Notes a problem at this place of the text, in bytes.
    pub fn problem(&mut self, at: usize, message: String) {
        let line = 1 + self.text.bytes().take(at).filter(|&byte| byte == b'\n').count();
        self.note(Problem { line, message });
    }

    /// Notes a problem with something that the command line names.
    pub fn problem_outside(&mut self, message: String) {
        self.note(Problem { line: 0, message });
    }

    fn note(&mut self, problem: Problem) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(problem);
        }
    }

    /// The range of the option of this name that has one.
    fn range(&self, name: &str) -> Option<(String, String)> {
        let mut found = None;
        (self.described.options)(&mut |doc| {
            if let Some((low, high)) = doc.range.filter(|_| doc.name == name) {
                found = Some((low.to_string(), high.to_string()));
            }
        });
        found
    }

    /// A complaint about a key that does not exist, with the one that may be meant.
    fn unknown(&self, name: &str) -> String {
        if let Some(instead) = (self.described.instead_of)(name) {
            return format!("unknown key `{}`{instead}", excerpt(name));
        }
        let mut nearest: Option<(usize, &'static str)> = None;
        (self.described.options)(&mut |doc| {
            let apart = edits(name, doc.name);
            if apart <= MOST_EDITS && apart < name.len() && nearest.is_none_or(|(least, _)| apart < least) {
                nearest = Some((apart, doc.name));
            }
        });
        let meant = nearest.map_or_else(String::new, |(_, name)| format!(": is `{name}` meant?"));
        format!("unknown key `{}`{meant}", excerpt(name))
    }

    /// The library's complaint about the text `named`; a duplicate key is reported with its name and a remedy, since
    /// the library gives neither.
    fn clearer(&self, message: &str, named: &str) -> String {
        if message.starts_with("key with no value") {
            return format!("{message}: {}", self.described.no_value);
        }
        if message != "duplicate key" {
            return message.to_owned();
        }
        let remedy = (self.described.twice)(named.trim()).unwrap_or("keep one of the two");
        format!("the key `{}` is there twice: {remedy}", excerpt(named.trim()))
    }
}

/// The text of a configuration file, as far as it may be long; one byte more shows that it is too long.
///
/// # Errors
/// It cannot be read, or is no regular file: a fifo is not even opened, since that would wait for its writer.
pub fn read_bounded(path: &Path) -> std::io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a regular file, and SIGHUP must be able to read it again"));
    }
    let mut text = String::new();
    std::fs::File::open(path)?.take(LONGEST_TEXT as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// What a number looks like.
const WHOLE: &str = <u32 as OptionValue>::KIND;

/// Two words that differ by more are two words.
const MOST_EDITS: usize = 2;

/// The least number of letters to insert, delete or replace that makes one word of the other (Levenshtein distance);
/// more than [`MOST_EDITS`] where their lengths say enough.
fn edits(one: &str, other: &str) -> usize {
    if one.len().abs_diff(other.len()) > MOST_EDITS {
        return MOST_EDITS + 1;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.bytes().enumerate() {
        let mut corner = above;
        let mut left = above + 1;
        for (place, against) in row.iter_mut().zip(std::iter::once(None).chain(other.bytes().map(Some))) {
            let here =
                against.map_or(left, |against| (corner + usize::from(letter != against)).min(left + 1).min(*place + 1));
            corner = std::mem::replace(place, here);
            left = here;
        }
    }
    row.last().copied().unwrap_or_default()
}

/// The beginning of a text from a file, safe to display.
pub fn excerpt(text: &str) -> String {
    let shown = |letter: char| {
        let is_safe = letter == ' ' || letter.is_ascii_graphic();
        if is_safe { letter.to_string() } else { letter.escape_default().to_string() }
    };
    text.chars().take(40).map(shown).collect()
}

/// A TOML scalar as an option's text form.
fn scalar_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(truth) => Some(truth.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// An array of texts as one text with commas, or a text as it is.
fn list_text(value: &DeValue<'_>) -> Option<String> {
    let text = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Some(text.to_string()),
        _ => None,
    };
    match value {
        DeValue::Array(entries) => {
            let texts: Option<Vec<String>> = entries.iter().map(|entry| text(entry.get_ref())).collect();
            texts.map(|texts| texts.join(", "))
        }
        single => text(single),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_by_their_letters() {
        for (one, other, apart) in
            [("pol", "poll", 1), ("poll", "poll", 0), ("stmaps", "stamps", 2), ("", "ab", 2), ("kitten", "sitting", 3)]
        {
            assert_eq!((edits(one, other), edits(other, one)), (apart, apart), "{one} {other}");
        }
    }

    #[test]
    fn lists_are_arrays_of_texts_or_one_text() {
        let list = |text: &str| {
            let table = DeTable::parse(text).unwrap().into_inner();
            table.iter().next().and_then(|(_, value)| list_text(value.get_ref()))
        };
        assert_eq!(list("a = [\"x\", \"y\"]").as_deref(), Some("x, y"));
        assert_eq!(list("a = \"x, y\"").as_deref(), Some("x, y"));
        assert_eq!(list("a = []").as_deref(), Some(""));
        assert_eq!((list("a = [1]"), list("a = 1")), (None, None));
    }
}
