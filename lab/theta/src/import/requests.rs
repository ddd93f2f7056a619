//! From packets to rounds of requests.

use super::ImportError;
use super::capture::Capture;
use super::packet::{CapturedPacket, PacketContent, packet};
use crate::log::LogWriter;
use crate::record::{
    ClockSample, Event, HostId, LogOrigin, ProcessId, RecordedForm, Round, RunDescription, RunHost, SwitchEvent,
    SwitchRule, WayIn,
};
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
    /// The client.
    pub client: IpAddr,
    /// The port of the servers.
    pub port: u16,
    /// The number of servers that need not reply: the client goes on with all replies but these.
    pub tolerated: u32,
    /// What to make of a client that writes again before it has a reply.
    pub overlap: OverlapRule,
}

/// What to make of a client that writes again, on the same connection, before it has a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlapRule {
    /// It may be another request, so that no reply belongs to a request for certain: nothing is imported.
    Refuse,
    /// It belongs to the same request.
    SameRequest,
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// The servers, in the order of their processes from 1 on.
    pub servers: Vec<IpAddr>,
    /// Rounds of requests.
    pub rounds: u64,
    /// Replies.
    pub replies: u64,
    /// With captures at both ends: replies that are not in both, or not distinguishable there.
    pub unmatched: u64,
    /// With captures at both ends: the largest bound on the comparison of the clocks, in picoseconds.
    pub bound_ps: Option<u64>,
    /// The fault at the end of the capture; the log holds what came before.
    pub cut: Option<String>,
}

/// What was seen of the client's rounds, in the order of the capture.
pub(super) enum SeenRequest {
    /// The client asked a server.
    Request { server: u32, round: u64, at_ns: i64, identity: u64 },
    /// The server's reply arrived.
    Reply { server: u32, round: u64, at_ns: i64, identity: u64 },
    /// The client went on to the next round.
    Round(SwitchEvent),
}

impl SeenRequest {
    /// When it passed the client's capture, nanoseconds from its beginning, and the packet; a switch has none.
    pub(super) fn at_and_identity(&self) -> (i64, u64) {
        match *self {
            SeenRequest::Request { at_ns, identity, .. } | SeenRequest::Reply { at_ns, identity, .. } => {
                (at_ns, identity)
            }
            SeenRequest::Round(switch) => (switch.at.raw() as i64, 0),
        }
    }

    /// The message of `server` for `round`, sent when its counter showed `left_ns`.
    pub(super) fn broadcast(&self, server: u32, round: u64, left_ns: i64) -> Event {
        Event::Broadcast { process: ProcessId(server), round: Round(round), at: Counter::from_raw(left_ns as u64) }
    }

    /// The arrival of that message.
    pub(super) fn perception(&self, server: u32, round: u64) -> Event {
        let (process, sender, round) = (ProcessId(0), ProcessId(server), Round(round));
        let at = Counter::from_raw(self.at_and_identity().0 as u64);
        Event::Perception { process, sender, round, at, way_in: WayIn::default() }
    }
}

/// A request without its reply.
struct AwaitedReply {
    round: u64,
    /// Its last packet.
    content: PacketContent,
}

impl AwaitedReply {
    /// Takes a further packet of the client; whether it cannot be of the same write.
    fn is_exceeded_by(&mut self, next: PacketContent) -> bool {
        match (self.content, next) {
            (PacketContent::Segment { end, is_pushed }, PacketContent::Segment { end: next_end, .. }) => {
                // Numbers turn over. What ends no later is a retransmission.
                let is_new = (next_end.wrapping_sub(end) as i32) > 0;
                if is_new {
                    self.content = next;
                }
                is_new && is_pushed
            }
            (first, next) => first != next,
        }
    }
}

/// Follows the client's requests.
pub(super) struct Importer {
    options: ImportOptions,
    servers: BTreeMap<IpAddr, u32>,
    /// The requests that are open, by server and the client's side of the connection.
    waiting: BTreeMap<(u32, SocketAddr), AwaitedReply>,
    /// Writes while a request was open, by connection.
    overlapping: BTreeMap<(u32, SocketAddr), u64>,
    /// The round in which each server was asked last.
    asked: BTreeMap<u32, u64>,
    round: u64,
    replies: u64,
    seen: Vec<SeenRequest>,
    begun_ns: Option<u64>,
}

/// Imports a capture into a new log in `directory`.
///
/// # Errors
/// [`ImportError`]. A truncated capture gives a log of what came before the cut, marked as such.
pub fn import(capture: impl Read, options: ImportOptions, directory: &Path) -> Result<ImportSummary, ImportError> {
    let mut importer = Importer::new(options);
    let cut = importer.read(Capture::open(capture)?)?;
    importer.write(directory, cut)
}

impl Importer {
    pub(super) fn new(options: ImportOptions) -> Self {
        Importer {
            options,
            servers: BTreeMap::new(),
            waiting: BTreeMap::new(),
            overlapping: BTreeMap::new(),
            asked: BTreeMap::new(),
            round: 1,
            replies: 0,
            seen: vec![],
            begun_ns: None,
        }
    }

    /// Takes the packets of a capture. Returns the fault at its end, if any.
    pub(super) fn read(&mut self, capture: Capture<impl Read>) -> Result<Option<String>, ImportError> {
        let cut = self.take_all(capture)?;
        if self.options.overlap == OverlapRule::Refuse && !self.overlapping.is_empty() {
            let (connections, writes) = (self.overlapping.len(), self.overlapping.values().sum());
            return Err(ImportError::Overlapping { connections, writes });
        }
        Ok(cut)
    }

    fn take_all(&mut self, mut capture: Capture<impl Read>) -> Result<Option<String>, ImportError> {
        loop {
            match capture.next_packet() {
                Ok(None) => return Ok(None),
                Ok(Some(captured)) => {
                    if let Some(packet) = packet(captured.link, captured.bytes) {
                        self.take(captured.at_ns, &packet)?;
                    }
                }
                Err(ImportError::Format(words)) => return Ok(Some(words)),
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn seen(&self) -> &[SeenRequest] {
        &self.seen
    }

    /// When the first packet passed; 0 if none did.
    pub(super) fn begun_ns(&self) -> u64 {
        self.begun_ns.unwrap_or(0)
    }

    /// The servers, in the order of their processes from 1 on.
    pub(super) fn servers(&self) -> Vec<IpAddr> {
        let mut servers = vec![self.options.client; self.servers.len()];
        for (address, process) in &self.servers {
            servers[*process as usize - 1] = *address;
        }
        servers
    }

    fn take(&mut self, at_ns: u64, packet: &CapturedPacket) -> Result<(), ImportError> {
        let ImportOptions { client, port, .. } = self.options;
        let at_ns = at_ns.wrapping_sub(*self.begun_ns.get_or_insert(at_ns)) as i64;
        if packet.from.ip() == client && packet.to.port() == port {
            self.request(at_ns, packet)
        } else {
            if packet.to.ip() == client && packet.from.port() == port {
                self.reply(at_ns, packet);
            }
            Ok(())
        }
    }

    fn request(&mut self, at_ns: i64, packet: &CapturedPacket) -> Result<(), ImportError> {
        let next = self.servers.len() as u32 + 1;
        let server = *self.servers.entry(packet.to.ip()).or_insert(next);
        if self.servers.len() > SERVERS_MAX {
            return Err(ImportError::TooManyServers(SERVERS_MAX));
        }
        let connection = (server, packet.from);
        if let Some(open) = self.waiting.get_mut(&connection) {
            if open.is_exceeded_by(packet.content) {
                *self.overlapping.entry(connection).or_default() += 1;
            }
            return Ok(());
        }
        if self.asked.get(&server) == Some(&self.round) {
            let (from, to) = (Round(self.round), Round(self.round + 1));
            let (process, rule, at) = (ProcessId(0), SwitchRule::Advance, Counter::from_raw(at_ns as u64));
            self.seen.push(SeenRequest::Round(SwitchEvent { process, from, to, at, decided: at, rule }));
            self.round += 1;
        }
        self.asked.insert(server, self.round);
        self.waiting.insert(connection, AwaitedReply { round: self.round, content: packet.content });
        self.seen.push(SeenRequest::Request { server, round: self.round, at_ns, identity: packet.identity });
        Ok(())
    }

    fn reply(&mut self, at_ns: i64, packet: &CapturedPacket) {
        let Some(&server) = self.servers.get(&packet.from.ip()) else { return };
        let Some(AwaitedReply { round, .. }) = self.waiting.remove(&(server, packet.to)) else { return };
        self.replies += 1;
        self.seen.push(SeenRequest::Reply { server, round, at_ns, identity: packet.identity });
    }

    /// The run, of one host; `cut` is the fault at the end of the capture.
    pub(super) fn run(&self, cut: Option<&String>) -> RunDescription {
        let processes = self.servers.len() as u32 + 1;
        let settings = [("client", self.options.client.to_string()), ("port", self.options.port.to_string())];
        let mut settings: BTreeMap<String, String> = settings.map(|(name, value)| (name.to_owned(), value)).into();
        settings
            .extend(self.servers.iter().map(|(address, process)| (format!("process {process}"), address.to_string())));
        settings.extend(cut.map(|words| ("cut".to_owned(), words.clone())));
        RunDescription {
            origin: LogOrigin::Imported,
            form: RecordedForm::Unknown,
            processes,
            // The client itself sends none of the n - f messages.
            tolerated: self.options.tolerated.saturating_add(1).min(processes - 1),
            delay_ps: 0,
            delay_min_ps: 0,
            disorder_ps: 0,
            hosts: vec![RunHost { name: "capture".to_owned(), counter: "capture".to_owned() }],
            host_of: vec![HostId(0); processes as usize],
            faults: vec![],
            settings,
            unrecorded: u64::from(cut.is_some()),
        }
    }

    /// The summary for the user.
    pub(super) fn imported(&self, cut: Option<String>) -> ImportSummary {
        let (servers, rounds, replies) = (self.servers(), self.round, self.replies);
        ImportSummary { servers, rounds, replies, cut, ..ImportSummary::default() }
    }

    fn write(self, directory: &Path, cut: Option<String>) -> Result<ImportSummary, ImportError> {
        let ImportOptions { client, port, .. } = self.options;
        if self.replies == 0 {
            return Err(cut.map_or(ImportError::Nothing { client, port }, ImportError::Format));
        }
        let mut writer = LogWriter::create(directory, &self.run(cut.as_ref()))?;
        let period = Period::from_seconds(1e-9).expect("a nanosecond is a period");
        let drift_bound = Rate::from_ppm(0.0);
        let counter = Counter::from_raw(0);
        writer.clock(ClockSample { host: HostId(0), counter, time_ps: 0, bound_ps: 0, period, drift_bound });
        for seen in &self.seen {
            writer.event(&match *seen {
                SeenRequest::Request { server, round, at_ns, .. } => seen.broadcast(server, round, at_ns),
                SeenRequest::Reply { server, round, .. } => seen.perception(server, round),
                SeenRequest::Round(switch) => Event::Switch(switch),
            })?;
        }
        writer.finish()?;
        Ok(self.imported(cut))
    }
}
