//! From packets to rounds of requests.

use super::ImportError;
use super::packet::{Packet, packet};
use super::pcap::Capture;
use crate::log::LogWriter;
use crate::record::{ClockSample, Event, Form, Host, HostId, Origin, ProcessId, Round, Run, Switch, SwitchRule, WayIn};
use ffclock_units::{Counter, Period, Rate};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// More servers are refused.
const SERVERS_MAX: usize = 1000;

/// What to take from a capture.
#[derive(Clone, Copy, Debug)]
pub struct ImportOptions {
    /// Whose requests.
    pub client: IpAddr,
    /// The servers' port.
    pub port: u16,
    /// Of how many servers the client need not hear: it goes on with all replies but these.
    pub tolerated: u32,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The servers, in the order of their processes from 1 on.
    pub servers: Vec<IpAddr>,
    /// Rounds of requests.
    pub rounds: u64,
    /// Replies.
    pub replies: u64,
    /// What was wrong at the end of the capture; the log holds what came before.
    pub cut: Option<String>,
}

struct Importer {
    options: ImportOptions,
    servers: BTreeMap<IpAddr, u32>,
    /// The rounds of requests that are open, by server and the client's side of the connection.
    waiting: BTreeMap<(u32, SocketAddr), u64>,
    /// The round in which each server was asked last.
    asked: BTreeMap<u32, u64>,
    round: u64,
    replies: u64,
    events: Vec<Event>,
    begun_ns: Option<u64>,
}

/// Imports a capture into a new log in `directory`.
///
/// # Errors
/// [`ImportError`]. A capture that is cut gives a log of what came before, and says so.
pub fn import(capture: impl Read, options: ImportOptions, directory: &Path) -> Result<Imported, ImportError> {
    let mut capture = Capture::open(capture)?;
    let link = capture.link;
    let mut importer = Importer {
        options,
        servers: BTreeMap::new(),
        waiting: BTreeMap::new(),
        asked: BTreeMap::new(),
        round: 1,
        replies: 0,
        events: vec![],
        begun_ns: None,
    };
    let cut = loop {
        match capture.next_packet() {
            Ok(None) => break None,
            Ok(Some(captured)) => {
                let at_ns = captured.at_ns;
                if let Some(packet) = packet(link, captured.bytes) {
                    importer.take(at_ns, &packet)?;
                }
            }
            Err(ImportError::Format(words)) => break Some(words),
            Err(error) => return Err(error),
        }
    };
    importer.write(directory, cut)
}

impl Importer {
    fn take(&mut self, at_ns: u64, packet: &Packet) -> Result<(), ImportError> {
        let ImportOptions { client, port, .. } = self.options;
        let at = Counter::from_raw(at_ns.wrapping_sub(*self.begun_ns.get_or_insert(at_ns)));
        if packet.from.ip() == client && packet.to.port() == port {
            self.request(at, packet)
        } else {
            if packet.to.ip() == client && packet.from.port() == port {
                self.reply(at, packet);
            }
            Ok(())
        }
    }

    fn request(&mut self, at: Counter, packet: &Packet) -> Result<(), ImportError> {
        let next = self.servers.len() as u32 + 1;
        let server = *self.servers.entry(packet.to.ip()).or_insert(next);
        if self.servers.len() > SERVERS_MAX {
            return Err(ImportError::TooManyServers(SERVERS_MAX));
        }
        // More packets of the same request, or the same again.
        if self.waiting.contains_key(&(server, packet.from)) {
            return Ok(());
        }
        if self.asked.get(&server) == Some(&self.round) {
            let (from, to) = (Round(self.round), Round(self.round + 1));
            let (process, rule) = (ProcessId(0), SwitchRule::Advance);
            self.events.push(Event::Switch(Switch { process, from, to, at, decided: at, rule }));
            self.round += 1;
        }
        self.asked.insert(server, self.round);
        self.waiting.insert((server, packet.from), self.round);
        self.events.push(Event::Broadcast { process: ProcessId(server), round: Round(self.round), at });
        Ok(())
    }

    fn reply(&mut self, at: Counter, packet: &Packet) {
        let Some(&server) = self.servers.get(&packet.from.ip()) else { return };
        let Some(round) = self.waiting.remove(&(server, packet.to)) else { return };
        self.replies += 1;
        let (process, sender, round) = (ProcessId(0), ProcessId(server), Round(round));
        self.events.push(Event::Perception { process, sender, round, at, way_in: WayIn::default() });
    }

    fn run(&self) -> Run {
        let processes = self.servers.len() as u32 + 1;
        let settings = [("client", self.options.client.to_string()), ("port", self.options.port.to_string())];
        let mut settings: BTreeMap<String, String> = settings.map(|(name, value)| (name.to_owned(), value)).into();
        settings
            .extend(self.servers.iter().map(|(address, process)| (format!("process {process}"), address.to_string())));
        Run {
            origin: Origin::Imported,
            form: Form::Unknown,
            processes,
            // The client itself sends none of the n - f messages.
            tolerated: self.options.tolerated.saturating_add(1).min(processes - 1),
            delay_ps: 0,
            delay_min_ps: 0,
            disorder_ps: 0,
            hosts: vec![Host { name: "capture".to_owned(), counter: "capture".to_owned() }],
            host_of: vec![HostId(0); processes as usize],
            faults: vec![],
            settings,
            unrecorded: 0,
        }
    }

    fn write(self, directory: &Path, cut: Option<String>) -> Result<Imported, ImportError> {
        let ImportOptions { client, port, .. } = self.options;
        if self.replies == 0 {
            return Err(cut.map_or(ImportError::Nothing { client, port }, ImportError::Format));
        }
        let mut run = self.run();
        if let Some(words) = &cut {
            run.settings.insert("cut".to_owned(), words.clone());
            run.unrecorded = 1;
        }
        let mut writer = LogWriter::create(directory, &run)?;
        let period = Period::from_seconds(1e-9).expect("a nanosecond is a period");
        let drift_bound = Rate::from_ppm(0.0);
        let counter = Counter::from_raw(0);
        writer.clock(ClockSample { host: HostId(0), counter, time_ps: 0, bound_ps: 0, period, drift_bound });
        for event in &self.events {
            writer.event(event)?;
        }
        writer.finish()?;
        let mut servers = vec![client; self.servers.len()];
        for (address, process) in &self.servers {
            servers[*process as usize - 1] = *address;
        }
        Ok(Imported { servers, rounds: self.round, replies: self.replies, cut })
    }
}
