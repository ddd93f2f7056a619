//! From the text to the configuration: finds the struct that knows a key, and collects every problem with its line.

use super::check::{self, Conflict};
use super::polls::{self, PollKeys};
use super::protection;
use super::ptp;
use super::reference::{self, USUAL_POLL};
use super::{
    Config, ConfigError, EstimatorConfig, MOST_SERVERS, ReferenceConfig, ServerAddress, ServerConfig, describe_all,
    host, lookup, vote,
};
use ffclock_service::{ConfigText, DeTable, DeValue, Described, Value};
use ffclock_source::SourceConfig;
use ffclock_units::OptionError;
use std::collections::BTreeMap;

type Table<'t> = DeTable<'t>;

const DESCRIBED: Described = Described {
    options: |visit| describe_all(&mut |_, doc| visit(doc)),
    instead_of: |name| match name {
        "pool" => Some(": it belongs below [[server]]"),
        "delay" => Some(": a [[reference]] has it; with PTP the key is delay_mechanism"),
        _ => None,
    },
    no_value: "every line is KEY = VALUE, and a server is `[[server]]` with `address = \"NAME\"` below",
    twice: |name| {
        (name == "estimator").then_some(
            "in a table [estimator] the algorithm is named too: write the line `estimator = ...` below its heading",
        )
    },
};

/// Reads a text and collects what is wrong with it.
pub(super) struct Reader<'t> {
    file: ConfigText<'t>,
    /// The keys at the top of the file, and where they are.
    keys: BTreeMap<String, usize>,
    /// The keys about polls, by table.
    poll_keys: Vec<PollKeys>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Reader { file: ConfigText::new(text, DESCRIBED), keys: BTreeMap::new(), poll_keys: Vec::new() }
    }

    /// The configuration, unless there are problems.
    pub(super) fn end(self, config: Option<Config>) -> Result<Config, ConfigError> {
        self.file.end(config)
    }

    /// Reports each conflict at the last of its keys that the file has.
    pub(super) fn report(&mut self, conflicts: Vec<Conflict>) {
        for Conflict { keys, message } in conflicts {
            let at = keys.iter().filter_map(|key| self.keys.get(*key)).max().copied().unwrap_or_default();
            self.problem(at, message);
        }
    }

    pub(super) fn config(&mut self, more: &[ServerAddress]) -> Option<Config> {
        let table = self.file.table()?;
        let mut config = Config::default();
        let source = self.defaults(&table, "source", SourceConfig::default(), SourceConfig::set);
        let estimator = self.defaults(&table, "estimator", EstimatorConfig::default(), EstimatorConfig::set);
        for (key, value) in &table {
            match key.get_ref().as_ref() {
                "source" | "estimator" | "reference" => {}
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
        self.references(&table, &mut config.servers, &estimator);
        for address in more {
            let (source, estimator) = (source.clone(), estimator.clone());
            let server = ServerConfig { address: address.clone(), source, estimator, ..ServerConfig::default() };
            self.add(&mut config.servers, server, None);
        }
        self.check_whole(&mut config);
        Some(config)
    }

    fn check_whole(&mut self, config: &mut Config) {
        if config.servers.is_empty() && self.file.is_fine() {
            self.problem(0, "no [[server]] and no [[reference]] is configured".to_owned());
        }
        for keys in std::mem::take(&mut self.poll_keys) {
            if let Some((at, message)) = keys.contradiction(config) {
                self.problem(at, message);
            }
        }
        // Servers that may not vote count as such from here on.
        protection::apply(config);
        for contradictions in [protection::contradictions, vote::contradictions, reference::contradictions] {
            if self.file.is_fine() {
                let found = contradictions(config).into_iter();
                self.report(found.map(|(key, message)| Conflict { keys: vec![key], message }).collect());
            }
        }
        self.report(check::conflicts(config));
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
            let spread = self.server(entry, source, estimator).map(ServerConfig::spread).unwrap_or_default();
            if !spread.into_iter().all(|server| self.add(&mut servers, server, Some(entry.span().start))) {
                break;
            }
        }
        servers
    }

    /// Adds a server of the file, `at` this place, or of the command line. Returns whether there was room for it.
    fn add(&mut self, servers: &mut Vec<ServerConfig>, server: ServerConfig, at: Option<usize>) -> bool {
        let has_room = servers.len() < MOST_SERVERS;
        // The first server of a pool speaks for all of them.
        let is_first = server.slot.is_none_or(|slot| slot == 1);
        let is_twice = is_first && servers.iter().any(|other| other.is_twice(&server));
        if !has_room {
            let counted = if server.pool().is_some() { ": a pool counts by its pool_size" } else { "" };
            self.problem_at(at, format!("more than {MOST_SERVERS} servers{counted}"));
        } else if is_twice {
            self.problem_at(at, format!("the server {} is configured twice", server.twin_name()));
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
        let (source, estimator) = (source.clone(), estimator.clone());
        let mut server = ServerConfig { source, estimator, ..ServerConfig::default() };
        self.note_poll_keys(entries);
        for (key, value) in entries {
            self.apply(key.span().start, key.get_ref(), value, &mut |name, text| server.set(name, text));
        }
        self.check_names(entries, &server);
        let keys: Vec<&str> = entries.iter().map(|(key, _)| key.get_ref().as_ref()).collect();
        let named = (keys.contains(&"address"), keys.contains(&"pool"));
        let of_ptp = ptp::contradiction(&server, &keys);
        let of_pool = keys.into_iter().find(|key| ["pool_size", "pool_votes"].contains(key));
        let of_names = if server.is_ptp() { None } else { lookup::contradiction(&server, named, of_pool) };
        let (of_vote, of_polls) = (vote::contradiction(&server), polls::contradiction(&server));
        for message in [of_names, of_ptp, of_vote, of_polls, protection::contradiction(&server)].into_iter().flatten() {
            self.problem(entry.span().start, message);
        }
        Some(server)
    }

    /// Adds the references of the file, each of which counts as a server.
    fn references(&mut self, table: &Table<'_>, servers: &mut Vec<ServerConfig>, estimator: &EstimatorConfig) {
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref().as_ref() == "reference") else { return };
        self.keys.insert("reference".to_owned(), key.span().start);
        let DeValue::Array(entries) = value.get_ref() else {
            return self.problem(value.span().start, "references are written as [[reference]]".to_owned());
        };
        for entry in entries {
            let Some(server) = self.reference(entry, estimator) else { continue };
            let is_same = |other: &ServerConfig| {
                other.reference.as_ref().map(|known| &known.input) == server.reference.as_ref().map(|own| &own.input)
            };
            if servers.iter().any(is_same) {
                self.problem(entry.span().start, format!("the reference {} is configured twice", server.name()));
            } else if !self.add(servers, server, Some(entry.span().start)) {
                return;
            }
        }
    }

    fn reference(&mut self, entry: &Value<'_>, estimator: &EstimatorConfig) -> Option<ServerConfig> {
        let DeValue::Table(entries) = entry.get_ref() else {
            self.problem(entry.span().start, "references are written as [[reference]]".to_owned());
            return None;
        };
        let source = SourceConfig { poll: USUAL_POLL, ..SourceConfig::default() };
        let reference = Some(ReferenceConfig::default());
        let mut server = ServerConfig { source, reference, estimator: estimator.clone(), ..ServerConfig::default() };
        for (key, value) in entries {
            self.apply(key.span().start, key.get_ref(), value, &mut |name, text| server.set_of_reference(name, text));
        }
        let keys: Vec<&str> = entries.iter().map(|(key, _)| key.get_ref().as_ref()).collect();
        if let Some(message) = reference::contradiction(&server, &keys).filter(|_| self.file.is_fine()) {
            self.problem(entry.span().start, message);
            return None;
        }
        Some(server)
    }

    /// Reports references that cannot be opened now, and network devices that are not there.
    pub(super) fn report_devices(&mut self, config: &Config) {
        let references = config.servers.iter().filter_map(|server| server.reference.as_ref());
        let of_references = references.filter_map(reference::obstacle).map(|message| ("reference", message));
        let of_ptp = ptp::obstacles(config).into_iter().map(|message| ("server", message));
        let found = of_references.chain(of_ptp);
        self.report(found.map(|(key, message)| Conflict { keys: vec![key], message }).collect());
    }

    /// Reports names and addresses that no server can have.
    fn check_names(&mut self, entries: &Table<'_>, server: &ServerConfig) {
        for (key, value) in entries {
            let host = match key.get_ref().as_ref() {
                "address" => &server.address.address,
                "pool" => &server.pool.pool,
                _ => continue,
            };
            if let Some(fault) = host::fault(host.as_str()).filter(|_| !host.is_unset()) {
                let written = self.file.written(value);
                self.problem(key.span().start, format!("{} = {written}: {fault}", key.get_ref()));
            }
        }
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
        self.file.apply(at, name, value, set);
    }

    fn problem(&mut self, at: usize, message: String) {
        self.problem_at(Some(at), message);
    }

    /// A problem at this place of the text, or on the command line.
    fn problem_at(&mut self, at: Option<usize>, message: String) {
        match at {
            Some(at) => self.file.problem(at, message),
            None => self.file.problem_outside(format!("--server: {message}")),
        }
    }
}

impl ServerConfig {
    /// Sets a key of a `[[reference]]` table in the struct that knows it.
    fn set_of_reference(&mut self, name: &str, text: &str) -> Result<(), OptionError> {
        let Some(reference) = &mut self.reference else { return Err(OptionError::Unknown) };
        match reference.set(name, text) {
            Err(OptionError::Unknown) => {}
            known => return known,
        }
        match self.vote.set(name, text) {
            Err(OptionError::Unknown) => {}
            known => return known,
        }
        match self.estimator.set(name, text) {
            Err(OptionError::Unknown) if name == "poll" => self.source.set(name, text),
            Err(OptionError::Unknown) => match ServerConfig::default().set(name, text) {
                Err(OptionError::Unknown) => Err(OptionError::Unknown),
                _ => Err(OptionError::Elsewhere("a [[reference]] has no such key, a [[server]] has")),
            },
            known => known,
        }
    }

    /// Sets a key of a `[[server]]` table in the struct that knows it.
    fn set(&mut self, name: &str, text: &str) -> Result<(), OptionError> {
        match self.address.set(name, text) {
            Err(OptionError::Unknown) => {}
            known => return known,
        }
        match self.pool.set(name, text) {
            Err(OptionError::Unknown) => {}
            known => return known,
        }
        match self.ptp.set(name, text) {
            Err(OptionError::Unknown) => {}
            known => return known,
        }
        match self.look_up.set(name, text) {
            Err(OptionError::Unknown) => {}
            known => return known,
        }
        match self.protection.set(name, text) {
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
