//! Several servers: `[[server]]` and `[[shared]]`.
//!
//! A server of the list is that of `[server]` in the scenario that the file extends, and its path is `[path]`, each
//! with the server's own keys in place of theirs.

use super::measures::Length;
use super::spec::{Between, PathSpec, QueueSpec, RouteSpec, ServerSpec};
use super::{Scenario, join, key_first};
use crate::random::Random;
use ffclock_units::Span;
use serde::Deserialize;
use std::borrow::Cow;
use toml::{Table, Value};

/// At most this many servers.
pub(super) const SERVERS_MAX: usize = 16;
/// Keys of an entry that are not about the server itself, and those that are.
const ENTRY_KEYS: [&str; 7] = ["name", "path", "poll", "phase", "joins", "leaves", "lies"];
const SERVER_KEYS: [&str; 4] = ["noise", "residence", "root_dispersion", "fault"];
/// A drawn asymmetry is at most this many standard deviations.
const DEVIATIONS_MAX: f64 = 3.0;

/// One of several servers, with the path to it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerEntry {
    /// What to call it.
    pub name: String,
    /// The path to it and back.
    pub path: PathSpec,
    /// What it is.
    #[serde(default)]
    pub server: ServerSpec,
    /// Time between two requests; that of the scenario, if left out.
    pub poll: Option<Length>,
    /// How long after the beginning it is first asked; if left out, the polls of all servers are evenly staggered.
    pub phase: Option<Length>,
    /// When it is configured.
    #[serde(default)]
    pub joins: Length,
    /// From when on it is not asked any more.
    pub leaves: Option<Length>,
    /// Its faults are lies: `NAME/honest` is the scenario without it.
    #[serde(default)]
    pub lies: bool,
}

/// A part of the way that is common to several servers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SharedSpec {
    /// Their names; all, if left out.
    pub servers: Vec<String>,
    /// What adds to the delays. Spells are common to the servers, each packet has a delay of its own.
    pub queue: Vec<QueueSpec>,
    /// Changes of the route.
    pub route: Vec<RouteSpec>,
    /// Times without any path.
    pub outage: Vec<Between>,
}

impl SharedSpec {
    /// Whether it is on the way to a server of this name.
    pub fn holds(&self, name: &str) -> bool {
        self.servers.is_empty() || self.servers.iter().any(|one| one == name)
    }

    /// A path of no length with its delays.
    pub(crate) fn path(&self) -> PathSpec {
        PathSpec {
            forward: Length::default(),
            backward: Length::default(),
            asymmetry: 0.0,
            queue: self.queue.clone(),
            loss: 0.0,
            duplicate: 0.0,
            straggle: 0.0,
            route: self.route.clone(),
            flap: None,
            outage: self.outage.clone(),
            intermittent: None,
        }
    }
}

impl Scenario {
    /// Every server: those of `[[server]]`, or the one of `[path]` and `[server]`.
    pub fn each_server(&self) -> Cow<'_, [ServerEntry]> {
        if !self.servers.is_empty() {
            return Cow::Borrowed(&self.servers);
        }
        Cow::Owned(vec![ServerEntry {
            name: "server".to_owned(),
            path: self.path.clone(),
            server: self.server.clone(),
            poll: None,
            phase: None,
            joins: Length::default(),
            leaves: None,
            lies: false,
        }])
    }

    /// How long after it is configured a server is first asked.
    pub fn phase(&self, server: usize) -> Span {
        let Some(entry) = self.servers.get(server) else { return Span::ZERO };
        let staggered = || {
            let poll = entry.poll.unwrap_or(self.poll).0;
            Span::from_units(poll.units() * server as i128 / self.servers.len() as i128)
        };
        entry.phase.map_or_else(staggered, |phase| phase.0)
    }

    /// Without the servers that lie, and without checks and tags, which say nothing about it.
    pub(super) fn honest(mut self) -> Self {
        self.about.push_str(", without the servers that lie");
        self.servers.retain(|entry| !entry.lies);
        self.checks.clear();
        self.tags.clear();
        if let Some(first) = self.servers.first() {
            (self.path, self.server) = (first.path.clone(), first.server.clone());
        }
        self
    }

    /// The scenario with what is drawn once for each seed.
    pub(crate) fn drawn(&self, seed: u64) -> Cow<'_, Scenario> {
        if self.each_server().iter().all(|entry| entry.path.asymmetry == 0.0) {
            return Cow::Borrowed(self);
        }
        let mut drawn = self.clone();
        let normal = |index| Random::named(seed, &stream("asymmetry", index)).normal();
        drawn.path = self.path.shifted(normal(0));
        for (index, entry) in drawn.servers.iter_mut().enumerate() {
            entry.path = entry.path.shifted(normal(index));
        }
        Cow::Owned(drawn)
    }
}

impl PathSpec {
    /// The path with this many standard deviations of its asymmetry.
    pub(super) fn shifted(&self, deviations: f64) -> PathSpec {
        let share = self.asymmetry * deviations.clamp(-DEVIATIONS_MAX, DEVIATIONS_MAX);
        let shift = Span::from_seconds(0.5 * share * (self.forward.0 + self.backward.0).as_seconds());
        PathSpec { forward: Length(self.forward.0 + shift), backward: Length(self.backward.0 - shift), ..self.clone() }
    }

    /// The extremes of what can be drawn.
    pub(super) fn extremes(&self) -> [PathSpec; 2] {
        [self.shifted(-DEVIATIONS_MAX), self.shifted(DEVIATIONS_MAX)]
    }
}

/// The name of the stream of chance for this part of a world; the first server has that of the only one.
pub(crate) fn stream(part: &str, server: usize) -> String {
    if server == 0 { part.to_owned() } else { format!("{part}.{server}") }
}

/// Takes the list of servers out of the table of a scenario, and leaves the first one's path and server there. A table
/// without a list is left as it is.
pub(super) fn take(table: &mut Table) -> Result<Vec<ServerEntry>, String> {
    let Some(Value::Array(list)) = table.get("server") else { return Ok(Vec::new()) };
    let path = match table.get("path") {
        Some(Value::Table(path)) => path.clone(),
        _ => Table::new(),
    };
    let mut tables = Vec::new();
    for (index, one) in list.iter().enumerate() {
        let Value::Table(one) = one else { return Err(format!("server[{index}]: must be a table")) };
        copies(&format!("server[{index}]"), one.clone(), &path)?
            .into_iter()
            .for_each(|copy| tables.push((index, copy)));
    }
    let Some((_, first)) = tables.first() else {
        return Err("server: the list is empty: there must be at least one".to_owned());
    };
    if tables.len() > SERVERS_MAX {
        return Err(format!("server: {} are too many: there may be at most {SERVERS_MAX}", tables.len()));
    }
    for part in ["path", "server"] {
        let part_of_first = first.get(part).cloned().unwrap_or(Value::Table(Table::new()));
        table.insert(part.to_owned(), part_of_first);
    }
    let read = |(place, (index, mut one)): (usize, (usize, Table))| {
        one.entry("name").or_insert_with(|| Value::String(format!("server-{}", place + 1)));
        one.try_into().map_err(|error| in_entry(index, &key_first(&error)))
    };
    tables.into_iter().enumerate().map(read).collect()
}

/// The servers that one entry stands for, each as a table of [`ServerEntry`].
fn copies(key: &str, mut entry: Table, path: &Table) -> Result<Vec<Table>, String> {
    let count = match entry.remove("count") {
        None => 1,
        Some(Value::Integer(count)) if (1..=SERVERS_MAX as i64).contains(&count) => count,
        Some(other) => {
            return Err(format!("{key}.count: {other} is not possible: it must lie between 1 and {SERVERS_MAX}"));
        }
    };
    let (mut whole, mut server) = (Table::new(), Table::new());
    for (name, value) in entry {
        match name.as_str() {
            part if ENTRY_KEYS.contains(&part) => _ = whole.insert(name, value),
            part if SERVER_KEYS.contains(&part) => _ = server.insert(name, value),
            _ => {
                let known = ["count"].into_iter().chain(ENTRY_KEYS).chain(SERVER_KEYS).collect::<Vec<_>>().join(", ");
                return Err(format!("{key}: unknown key `{name}`: it must be one of {known}"));
            }
        }
    }
    let mut own = path.clone();
    match whole.remove("path") {
        Some(Value::Table(part)) => join(&mut own, part),
        None => {}
        Some(_) => return Err(format!("{key}.path: must be a table")),
    }
    whole.insert("path".to_owned(), Value::Table(own));
    whole.insert("server".to_owned(), Value::Table(server));
    let named = |number: i64| {
        let mut copy = whole.clone();
        if let (Some(Value::String(name)), true) = (copy.get_mut("name"), count > 1) {
            *name = format!("{name}-{number}");
        }
        copy
    };
    Ok((1..=count).map(named).collect())
}

/// What is wrong with the entry of this number; `why` may begin with a key.
fn in_entry(index: usize, why: &str) -> String {
    let why = why.strip_prefix("server: ").map_or_else(|| why.replacen("server.", "", 1), |why| format!(" {why}"));
    match why.strip_prefix(' ') {
        Some(why) => format!("server[{index}]: {why}"),
        None if why.split(": ").next().is_some_and(|key| !key.contains(' ')) => format!("server[{index}].{why}"),
        None => format!("server[{index}]: {why}"),
    }
}
