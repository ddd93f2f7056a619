//! Captures at the client and at its servers, put together: the one-way delays of replies, with the clocks of the
//! captures compared by the requests and replies themselves.
//!
//! A packet that is seen in both captures says on which side of the truth the clocks are: a request arrives after it
//! was sent, a reply too. In each second the smallest differences of both directions enclose the offset between the
//! two clocks (docs/theta-log.md).

use super::capture::Capture;
use super::packet::{CapturedPacket, packet};
use super::requests::{Importer, SeenRequest};
use super::{ImportError, ImportOptions, ImportSummary};
use crate::log::LogWriter;
use crate::record::{ClockSample, Event, HostId, RunDescription, RunHost};
use ffclock_units::{Counter, Period, Rate};
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;

/// The offset between two clocks is determined once in each interval of this length, in nanoseconds.
const EPOCH_NS: i64 = 1_000_000_000;
/// Times farther apart do not fit a log: 50 days.
const SPAN_NS_MAX: u64 = 50 * 86_400 * 1_000_000_000;

/// A capture at one of the servers.
pub struct ServerCapture<R> {
    /// Its name, for messages about it.
    pub name: String,
    /// The capture.
    pub input: R,
}

/// When each packet passed the capture of a server.
struct CaptureSide {
    name: String,
    passed: HashMap<u64, PassageTime>,
    servers: Vec<IpAddr>,
}

/// When a packet passed, if no other looks the same.
#[derive(Clone, Copy)]
enum PassageTime {
    Once(i64),
    Often,
}

/// The differences of a second: server's clock less client's.
#[derive(Clone, Copy)]
struct Enclosed {
    /// The offset is at least this, by a reply.
    low_ns: i64,
    /// And at most this, by a request.
    high_ns: i64,
}

/// How to import captures of both sides.
#[derive(Clone, Copy, Debug)]
pub struct TwoSidedOptions {
    /// The conversation, as for a capture of one side.
    pub import: ImportOptions,
    /// How fast the clocks of two captures may drift relative to each other.
    pub drift: Rate,
}

/// Imports a capture of the client and captures of servers into a new log in `directory`.
///
/// # Errors
/// [`ImportError`], among them [`ImportError::Contradiction`] for clocks that cannot have been right together.
pub fn import_two_sided<R: Read>(
    client: R,
    servers: Vec<ServerCapture<R>>,
    options: TwoSidedOptions,
    directory: &Path,
) -> Result<ImportSummary, ImportError> {
    let TwoSidedOptions { import: options, drift } = options;
    let mut importer = Importer::new(options);
    let cut = importer.read(Capture::open(client)?)?;
    let begun_ns = importer.begun_ns();
    let sides: Vec<CaptureSide> =
        servers.into_iter().map(|capture| CaptureSide::read(capture, options, begun_ns)).collect::<Result<_, _>>()?;
    let joined = JoinedCaptures::new(&importer, sides, drift)?;
    if joined.replies == 0 {
        let ImportOptions { client, port, .. } = options;
        return Err(cut.map_or(ImportError::Nothing { client, port }, ImportError::Format));
    }
    joined.write(&importer, cut, directory)
}

impl CaptureSide {
    fn read<R: Read>(capture: ServerCapture<R>, options: ImportOptions, begun_ns: u64) -> Result<Self, ImportError> {
        let named = |error| match error {
            ImportError::Format(words) => ImportError::Format(format!("{}: {words}", capture.name)),
            other => other,
        };
        let mut packets = Capture::open(capture.input).map_err(named)?;
        let mut side = CaptureSide { name: capture.name.clone(), passed: HashMap::new(), servers: vec![] };
        loop {
            match packets.next_packet() {
                Ok(None) => return Ok(side),
                Ok(Some(captured)) => {
                    if let Some(packet) = packet(captured.link, captured.bytes) {
                        side.take(captured.at_ns.wrapping_sub(begun_ns) as i64, &packet, options);
                    }
                }
                // What came before the fault is used, and packets of the client without a counterpart are counted.
                Err(ImportError::Format(_)) => return Ok(side),
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self, at_ns: i64, packet: &CapturedPacket, ImportOptions { client, port, .. }: ImportOptions) {
        let server = if packet.from.ip() == client && packet.to.port() == port {
            packet.to.ip()
        } else if packet.to.ip() == client && packet.from.port() == port {
            packet.from.ip()
        } else {
            return;
        };
        if !self.servers.contains(&server) {
            self.servers.push(server);
        }
        let passed = |earlier: &mut PassageTime| *earlier = PassageTime::Often;
        self.passed.entry(packet.identity).and_modify(passed).or_insert(PassageTime::Once(at_ns));
    }

    fn when(&self, identity: u64) -> Option<i64> {
        match self.passed.get(&identity)? {
            PassageTime::Once(at_ns) => Some(*at_ns),
            PassageTime::Often => None,
        }
    }
}

/// The joined captures.
struct JoinedCaptures {
    sides: Vec<CaptureSide>,
    /// The capture of each process; 0 is the client's, for which there is none.
    side_of: Vec<usize>,
    /// Events with the client's time, for putting them in order.
    events: Vec<(i64, Event)>,
    samples: Vec<ClockSample>,
    bound_max_ps: u64,
    replies: u64,
    unmatched: u64,
    /// Those of them between others that are in both captures. Captures rarely begin and end together, but a reply in
    /// between is truly missing.
    missing: u64,
}

impl JoinedCaptures {
    fn new(importer: &Importer, sides: Vec<CaptureSide>, drift: Rate) -> Result<Self, ImportError> {
        let addresses = importer.servers();
        let side = |address: &IpAddr| {
            let holding = sides.iter().position(|side| side.servers.contains(address));
            holding.ok_or(ImportError::NoCapture(*address))
        };
        let of_servers = addresses.iter().map(side).collect::<Result<Vec<_>, _>>()?;
        let side_of: Vec<usize> = std::iter::once(usize::MAX).chain(of_servers).collect();
        let mut joined = JoinedCaptures {
            sides,
            side_of,
            events: vec![],
            samples: vec![],
            bound_max_ps: 0,
            replies: 0,
            unmatched: 0,
            missing: 0,
        };
        joined.compare_clocks(importer, drift)?;
        joined.join(importer);
        Ok(joined)
    }

    fn side(&self, process: u32) -> &CaptureSide {
        &self.sides[self.side_of[process as usize]]
    }

    /// The offset of each server's clock in each second in which packets went both ways.
    fn compare_clocks(&mut self, importer: &Importer, drift: Rate) -> Result<(), ImportError> {
        // The client's clock is the time of the log.
        self.samples.push(sample(0, ClockMatch { counter_ns: 0, at_ns: 0 }, 0, Rate::from_ppm(0.0)));
        for number in 0..self.sides.len() {
            let mut epochs = BTreeMap::<i64, Enclosed>::new();
            for seen in importer.seen() {
                let (server, is_request) = match seen {
                    SeenRequest::Request { server, .. } => (*server, true),
                    SeenRequest::Reply { server, .. } => (*server, false),
                    SeenRequest::Round(_) => continue,
                };
                let (at_ns, identity) = seen.at_and_identity();
                let theirs = self.sides[number].when(identity).filter(|_| self.side_of[server as usize] == number);
                let Some(difference) = theirs.map(|theirs| theirs.saturating_sub(at_ns)) else { continue };
                let enclosed = epochs
                    .entry(at_ns.div_euclid(EPOCH_NS))
                    .or_insert(Enclosed { low_ns: i64::MIN, high_ns: i64::MAX });
                if is_request {
                    enclosed.high_ns = enclosed.high_ns.min(difference);
                } else {
                    enclosed.low_ns = enclosed.low_ns.max(difference);
                }
            }
            self.take_epochs(number, &epochs, drift)?;
        }
        Ok(())
    }

    fn take_epochs(&mut self, number: usize, epochs: &BTreeMap<i64, Enclosed>, drift: Rate) -> Result<(), ImportError> {
        let name = || self.sides[number].name.clone();
        // Each difference was taken at most half an epoch from the middle.
        let slack_ns = (drift.as_fraction() * EPOCH_NS as f64 / 2.0).ceil() as i64;
        let mut before = i64::MIN;
        let mut found = vec![];
        for (&epoch, &Enclosed { low_ns, high_ns }) in epochs {
            if low_ns == i64::MIN || high_ns == i64::MAX {
                continue;
            }
            let at_ns = epoch * EPOCH_NS + EPOCH_NS / 2;
            if [at_ns, low_ns, high_ns].iter().any(|span_ns| span_ns.unsigned_abs() > SPAN_NS_MAX) {
                return Err(ImportError::Format(format!("{}: packets lie more than 50 days apart", name())));
            }
            let width = high_ns - low_ns + 2 * slack_ns;
            let offset = low_ns + (high_ns - low_ns) / 2;
            let theirs = at_ns + offset;
            if width < 0 || theirs <= before {
                return Err(ImportError::Contradiction { name: name(), second: epoch.max(0) as u64 });
            }
            before = theirs;
            let bound_ps = (width as u64).div_ceil(2) * 1000;
            self.bound_max_ps = self.bound_max_ps.max(bound_ps);
            found.push(sample(number as u32 + 1, ClockMatch { counter_ns: theirs, at_ns }, bound_ps, drift));
        }
        if found.is_empty() {
            return Err(ImportError::Strangers(name()));
        }
        self.samples.extend(found);
        Ok(())
    }

    /// Replies that are in both captures become messages, from where they left to where they arrived.
    fn join(&mut self, importer: &Importer) {
        let mut unmatched_before = 0;
        for seen in importer.seen() {
            let (at_ns, identity) = seen.at_and_identity();
            match *seen {
                SeenRequest::Request { .. } => {}
                SeenRequest::Round(switch) => self.events.push((at_ns, Event::Switch(switch))),
                SeenRequest::Reply { server, round, .. } => {
                    let Some(left_ns) = self.side(server).when(identity) else {
                        self.unmatched += 1;
                        continue;
                    };
                    if self.replies > 0 {
                        self.missing += self.unmatched - unmatched_before;
                    }
                    unmatched_before = self.unmatched;
                    self.replies += 1;
                    let client_ns = self.to_client(self.side_of[server as usize], left_ns);
                    self.events.push((client_ns, seen.broadcast(server, round, left_ns)));
                    self.events.push((at_ns, seen.perception(server, round)));
                }
            }
        }
        self.events.sort_by_key(|&(at_ns, _)| at_ns);
    }

    /// The client's clock when the server's showed `left_ns`, approximately: good enough to sort events.
    fn to_client(&self, side: usize, left_ns: i64) -> i64 {
        let of_side = self.samples.iter().filter(|sample| sample.host.index() == side + 1);
        let nearest = of_side.min_by_key(|sample| (sample.counter.raw() as i64).abs_diff(left_ns));
        nearest.map_or(left_ns, |sample| left_ns.saturating_sub(sample.counter.raw() as i64 - sample.time_ps / 1000))
    }

    fn run(&self, importer: &Importer, cut: Option<&String>) -> RunDescription {
        let run = importer.run(cut);
        let host = |name: &str| RunHost { name: name.to_owned(), counter: "capture".to_owned() };
        let hosts = std::iter::once(host("client")).chain(self.sides.iter().map(|side| host(&side.name)));
        let host_of = |&side: &usize| HostId(if side == usize::MAX { 0 } else { side as u32 + 1 });
        RunDescription {
            hosts: hosts.collect(),
            host_of: self.side_of.iter().map(host_of).collect(),
            // Between two samples the clock is a line, and the order above is by the nearest one.
            disorder_ps: 4 * self.bound_max_ps + 1_000_000,
            unrecorded: self.missing + run.unrecorded,
            ..run
        }
    }

    fn write(self, importer: &Importer, cut: Option<String>, directory: &Path) -> Result<ImportSummary, ImportError> {
        let mut writer = LogWriter::create(directory, &self.run(importer, cut.as_ref()))?;
        self.samples.iter().for_each(|&sample| writer.clock(sample));
        for (_, event) in &self.events {
            writer.event(event)?;
        }
        writer.finish()?;
        let (replies, bound_ps) = (self.replies, self.bound_max_ps);
        Ok(ImportSummary { replies, unmatched: self.unmatched, bound_ps: Some(bound_ps), ..importer.imported(cut) })
    }
}

/// A counter, and the time of the run when it showed that.
struct ClockMatch {
    counter_ns: i64,
    at_ns: i64,
}

fn sample(host: u32, ClockMatch { counter_ns, at_ns }: ClockMatch, bound_ps: u64, drift_bound: Rate) -> ClockSample {
    ClockSample {
        host: HostId(host),
        counter: Counter::from_raw(counter_ns as u64),
        time_ps: at_ns.saturating_mul(1000),
        bound_ps,
        period: Period::from_seconds(1e-9).expect("a nanosecond is a period"),
        drift_bound,
    }
}
