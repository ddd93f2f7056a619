//! From the text to the configuration: finds the struct that knows a key, and collects every problem with its line.

use super::check::{self, Conflict};
use super::polls::{self, PollKeys};
use super::{
    Config, ConfigError, EstimatorConfig, LONGEST_TEXT, MOST_PROBLEMS, MOST_SERVERS, Problem, ServerAddress,
    ServerConfig, ServerVote, describe_all, host, vote,
};
use ffclock_source::SourceConfig;
use ffclock_units::{OptionError, OptionValue};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

type Table<'t> = DeTable<'t>;
type Value<'t> = Spanned<DeValue<'t>>;

/// Reads a text and collects what is wrong with it.
pub(super) struct Reader<'t> {
    text: &'t str,
    problems: Vec<Problem>,
    /// The keys at the top of the file, and where they are.
    keys: BTreeMap<String, usize>,
    /// The keys about polls, by table.
    poll_keys: Vec<PollKeys>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Reader { text, problems: Vec::new(), keys: BTreeMap::new(), poll_keys: Vec::new() }
    }

    /// The configuration, unless there are problems.
    pub(super) fn end(mut self, config: Option<Config>) -> Result<Config, ConfigError> {
        match config {
            Some(config) if self.problems.is_empty() => Ok(config),
            _ => {
                self.problems.sort_by_key(|problem| problem.line);
                Err(ConfigError { problems: self.problems })
            }
        }
    }

    /// Reports each conflict at the last of its keys that the file has.
    pub(super) fn report(&mut self, conflicts: Vec<Conflict>) {
        for Conflict { keys, message } in conflicts {
            let at = keys.iter().filter_map(|key| self.keys.get(*key)).max().copied().unwrap_or_default();
            self.problem(at, message);
        }
    }

    pub(super) fn config(&mut self, more: &[ServerAddress]) -> Option<Config> {
        if self.text.len() > LONGEST_TEXT {
            self.problem(0, "the configuration is longer than 1 MiB".to_owned());
            return None;
        }
        let table = match DeTable::parse(self.text) {
            Ok(table) => table.into_inner(),
            Err(error) => {
                let place = error.span().unwrap_or_default();
                let named = self.text.get(place.clone()).unwrap_or_default();
                self.problem(place.start, clearer(error.message(), named));
                return None;
            }
        };
        let mut config = Config::default();
        let source = self.defaults(&table, "source", SourceConfig::default(), SourceConfig::set);
        let estimator = self.defaults(&table, "estimator", EstimatorConfig::default(), EstimatorConfig::set);
        for (key, value) in &table {
            match key.get_ref().as_ref() {
                "source" | "estimator" => {}
                "server" => {
                    self.keys.insert("server".to_owned(), key.span().start);
                    config.servers = self.servers(value, &source, &estimator);
                }
                name => {
                    self.keys.insert(name.to_owned(), key.span().start);
                    self.apply(key.span().start, name, value, &mut |name, text| config.set(name, text));
                }
            }
        }
        for address in more {
            let server = ServerConfig {
                address: address.clone(),
                vote: ServerVote::default(),
                source: source.clone(),
                estimator: estimator.clone(),
            };
            self.add(&mut config.servers, server, None);
        }
        self.check_whole(&config);
        Some(config)
    }

    fn check_whole(&mut self, config: &Config) {
        if config.servers.is_empty() && self.problems.is_empty() {
            self.problem(0, "no [[server]] is configured".to_owned());
        }
        for keys in std::mem::take(&mut self.poll_keys) {
            if let Some((at, message)) = keys.contradiction(config) {
                self.problem(at, message);
            }
        }
        if self.problems.is_empty() {
            let contradictions = vote::contradictions(config).into_iter();
            self.report(contradictions.map(|(key, message)| Conflict { keys: vec![key], message }).collect());
        }
        self.report(check::conflicts(&config.daemon));
    }

    fn defaults<C>(
        &mut self,
        table: &Table<'_>,
        section: &str,
        mut config: C,
        set: fn(&mut C, &str, &str) -> Result<(), OptionError>,
    ) -> C {
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref().as_ref() == section) else {
            return config;
        };
        match value.get_ref() {
            DeValue::Table(entries) => {
                self.note_poll_keys(entries);
                for (key, value) in entries {
                    self.apply(key.span().start, key.get_ref(), value, &mut |name, text| set(&mut config, name, text));
                }
            }
            // `estimator = "classic"` alone needs no table.
            DeValue::String(_) if section == "estimator" => {
                self.apply(key.span().start, section, value, &mut |name, text| set(&mut config, name, text));
            }
            _ => self.problem(value.span().start, format!("{section} must be a table: [{section}]")),
        }
        config
    }

    fn servers(&mut self, value: &Value<'_>, source: &SourceConfig, estimator: &EstimatorConfig) -> Vec<ServerConfig> {
        let DeValue::Array(entries) = value.get_ref() else {
            self.problem(value.span().start, "servers are written as [[server]]".to_owned());
            return Vec::new();
        };
        let mut servers: Vec<ServerConfig> = Vec::new();
        for entry in entries {
            if let Some(server) = self.server(entry, source, estimator)
                && !self.add(&mut servers, server, Some(entry.span().start))
            {
                break;
            }
        }
        servers
    }

    /// Adds a server of the file, `at` this place, or of the command line. Returns whether there was room for it.
    fn add(&mut self, servers: &mut Vec<ServerConfig>, server: ServerConfig, at: Option<usize>) -> bool {
        let has_room = servers.len() < MOST_SERVERS;
        let is_twice = servers.iter().any(|other| other.address.is_same_as(&server.address));
        if !has_room {
            self.problem_at(at, format!("more than {MOST_SERVERS} servers"));
        } else if is_twice {
            self.problem_at(at, format!("the server {} is configured twice", server.address));
        }
        if has_room {
            servers.push(server);
        }
        has_room
    }

    fn server(
        &mut self,
        entry: &Value<'_>,
        source: &SourceConfig,
        estimator: &EstimatorConfig,
    ) -> Option<ServerConfig> {
        let DeValue::Table(entries) = entry.get_ref() else {
            self.problem(entry.span().start, "servers are written as [[server]]".to_owned());
            return None;
        };
        let mut server = ServerConfig {
            address: ServerAddress::default(),
            vote: ServerVote::default(),
            source: source.clone(),
            estimator: estimator.clone(),
        };
        self.note_poll_keys(entries);
        for (key, value) in entries {
            self.apply(key.span().start, key.get_ref(), value, &mut |name, text| server.set(name, text));
        }
        match entries.iter().find(|(key, _)| key.get_ref() == "address") {
            None => self.problem(entry.span().start, "the server has no address".to_owned()),
            Some((key, value)) => {
                if let Some(fault) =
                    host::fault(server.address.address.as_str()).filter(|_| !server.address.address.is_unset())
                {
                    let written = self.written(value);
                    self.problem(key.span().start, format!("address = {written}: {fault}"));
                }
            }
        }
        for message in [vote::contradiction(&server), polls::contradiction(&server)].into_iter().flatten() {
            self.problem(entry.span().start, message);
        }
        Some(server)
    }

    fn note_poll_keys(&mut self, entries: &Table<'_>) {
        let mut keys = PollKeys::default();
        entries.iter().for_each(|(key, _)| keys.note(key.get_ref(), key.span().start));
        self.poll_keys.push(keys);
    }

    fn apply(
        &mut self,
        at: usize,
        name: &str,
        value: &Value<'_>,
        set: &mut dyn FnMut(&str, &str) -> Result<(), OptionError>,
    ) {
        let Some(text) = scalar_text(value.get_ref()) else {
            self.problem(at, format!("{}: a single value is expected", excerpt(name)));
            return;
        };
        if let Err(error) = set(name, &text) {
            let written = self.written(value);
            let message = match error {
                OptionError::Unknown => unknown(name),
                OptionError::OutOfRange => {
                    let (low, high) = range(name).unwrap_or_default();
                    format!("{name} = {written}: the value must lie between {low} and {high}")
                }
                OptionError::Malformed(WHOLE) => {
                    let (low, high) = range(name).unwrap_or_default();
                    format!("{name} = {written}: the value must be {WHOLE} from {low} to {high}")
                }
                _ => format!("{name} = {written}: {error}"),
            };
            self.problem(at, message);
        }
    }

    /// A value as it stands in the file.
    fn written(&self, value: &Value<'_>) -> String {
        excerpt(self.text.get(value.span()).unwrap_or_default())
    }

    fn problem(&mut self, at: usize, message: String) {
        self.problem_at(Some(at), message);
    }

    /// A problem at this place of the text, or on the command line.
    fn problem_at(&mut self, at: Option<usize>, message: String) {
        if self.problems.len() == MOST_PROBLEMS {
            return;
        }
        let line = |at| 1 + self.text.bytes().take(at).filter(|&byte| byte == b'\n').count();
        self.problems.push(Problem { line: at.map_or(0, line), message });
    }
}

/// What a number looks like.
const WHOLE: &str = <u32 as OptionValue>::KIND;

/// The range of the option of this name that has one.
fn range(name: &str) -> Option<(String, String)> {
    let mut found = None;
    describe_all(&mut |_, doc| {
        if let Some((low, high)) = doc.range.filter(|_| doc.name == name) {
            found = Some((low.to_string(), high.to_string()));
        }
    });
    found
}

/// A complaint about a key that does not exist, with the one that may be meant.
fn unknown(name: &str) -> String {
    if name == "pool" {
        return "unknown key `pool`: each server has a table [[server]] of its own".to_owned();
    }
    let mut nearest: Option<(usize, &'static str)> = None;
    describe_all(&mut |_, doc| {
        let apart = edits(name, doc.name);
        if apart <= MOST_EDITS && apart < name.len() && nearest.is_none_or(|(least, _)| apart < least) {
            nearest = Some((apart, doc.name));
        }
    });
    let meant = nearest.map_or_else(String::new, |(_, name)| format!(": is `{name}` meant?"));
    format!("unknown key `{}`{meant}", excerpt(name))
}

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

impl ServerConfig {
    /// Sets a key of a `[[server]]` table in the struct that knows it.
    fn set(&mut self, name: &str, text: &str) -> Result<(), OptionError> {
        match self.address.set(name, text) {
            Err(OptionError::Unknown) => {}
            known => return known,
        }
        match self.vote.set(name, text) {
            Err(OptionError::Unknown) => {}
            known => return known,
        }
        match self.source.set(name, text) {
            Err(OptionError::Unknown) => self.estimator.set(name, text),
            known => known,
        }
    }
}

/// The library's complaint about the text `named`; a duplicate key is reported with its name and a remedy, since the
/// library gives neither.
fn clearer(message: &str, named: &str) -> String {
    if message.starts_with("key with no value") {
        return format!(
            "{message}: every line is KEY = VALUE, and a server is `[[server]]` with `address = \"NAME\"` below"
        );
    }
    if message != "duplicate key" {
        return message.to_owned();
    }
    let remedy = match named.trim() {
        "estimator" => {
            "in a table [estimator] the algorithm is named too: write the line `estimator = ...` below its heading"
        }
        _ => "keep one of the two",
    };
    format!("the key `{}` is there twice: {remedy}", excerpt(named.trim()))
}

/// The beginning of a text from a file, safe to display.
fn excerpt(text: &str) -> String {
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
}
