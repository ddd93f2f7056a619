//! What `packaging/freebsd/probe.d` prints on FreeBSD: a line for each time that a test packet passed a site.
//!
//! The script knows the length of a packet and no more, as the tracing of Linux does, so a packet is found by length
//! and time: a stamp on the way out belongs to the last request of its length before it, one on the way in to the first
//! reply of its length after it. DTrace prints the events of one CPU after those of another; here they are put in
//! order.

use super::{PhaseRecord, ProbeRecord, RecordError, append};
use crate::agreement::Methods;
use crate::outcome::PacketCounts;
use crate::passages::{BEYOND, PacketPassages};
use crate::payload::{Direction, LENGTHS, Lengths};
use crate::site::Site;
use ffclock_counters::campaign::{CampaignPhase, Load};
use ffclock_counters::recording::RecordingError;
use ffclock_units::Period;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, Read};

/// How its output begins; another number is another version.
pub(super) const FORMAT: &str = "{\"format\":\"ffclock dtrace 1\"";
/// DTrace's `timestamp` counts nanoseconds.
const HERTZ: f64 = 1e9;
/// A reply that comes later than this after its request is one of another packet [ns].
const PATIENCE_NS: i64 = 1_000_000_000;
const LONGEST_LINE: u64 = 1 << 12;
const MOST_EVENTS: usize = 1 << 27;

/// The first line.
#[derive(Deserialize)]
struct DtraceHead {
    system: String,
    device: String,
    size: usize,
    #[serde(default)]
    load: Option<Load>,
}

/// A packet passed.
#[derive(Clone, Copy, Deserialize)]
struct DtraceEvent {
    ns: i64,
    site: Site,
    length: usize,
}

#[derive(Default)]
struct DtraceLines {
    events: Vec<DtraceEvent>,
    dropped: u64,
    is_whole: bool,
    count: usize,
}

pub(super) fn read(mut input: impl BufRead) -> Result<ProbeRecord, RecordError> {
    let first = next_line(&mut input, 1)?.unwrap_or_default();
    let head: DtraceHead = serde_json::from_str(&first).map_err(|error| unfit(1, &error))?;
    let mut lines = DtraceLines { count: 1, ..DtraceLines::default() };
    while let Some(line) = next_line(&mut input, lines.count + 1)? {
        lines.count += 1;
        lines.take(&line)?;
    }
    if !lines.is_whole {
        return Err(RecordingError::Truncated { lines: lines.count }.into());
    }
    lines.events.sort_by_key(|event| event.ns);
    let period = Period::from_hertz(HERTZ).ok_or_else(|| RecordError::Foreign("no period".to_owned()))?;
    let mut packets = DtracePackets::new(Lengths::from(head.size));
    packets.take_in(&lines.events);
    let about = json!({
        "way": format!("of {}, stamped by DTrace", head.system), "device": head.device, "driver": "unknown", "size": head.size,
        "counter": "dtrace timestamp", "counter_hz": HERTZ, "system": head.system,
    });
    Ok(ProbeRecord { about, period, effect: None, phases: vec![packets.phase(head.load, lines.dropped)?] })
}

fn unfit(line: usize, reason: &dyn std::fmt::Display) -> RecordError {
    RecordError::Script { line, reason: reason.to_string() }
}

/// A line with its end; a last one without it was cut.
fn next_line(input: &mut impl BufRead, number: usize) -> Result<Option<String>, RecordError> {
    let mut text = String::new();
    input.by_ref().take(LONGEST_LINE).read_line(&mut text)?;
    match text.pop() {
        Some('\n') => Ok(Some(text)),
        Some(_) if text.len() as u64 + 1 == LONGEST_LINE => Err(unfit(number, &"it is too long")),
        _ => Ok(None),
    }
}

impl DtraceLines {
    fn take(&mut self, line: &str) -> Result<(), RecordError> {
        if line.trim().is_empty() {
            return Ok(());
        }
        if self.is_whole {
            return Err(unfit(self.count, &"it stands behind the end"));
        }
        // "dtrace: 12 drops on CPU 0", where standard error went into the same file.
        if let Some(said) = line.strip_prefix("dtrace:") {
            let mut words = said.split_whitespace();
            let count = words.next().and_then(|word| word.parse::<u64>().ok());
            self.dropped = self.dropped.saturating_add(count.filter(|_| said.contains("drop")).unwrap_or(0));
            return Ok(());
        }
        let value: Value = serde_json::from_str(line).map_err(|error| unfit(self.count, &error))?;
        if value["record"] == "end" {
            self.is_whole = true;
            return Ok(());
        }
        let event = DtraceEvent::deserialize(&value).map_err(|error| unfit(self.count, &error))?;
        // DTrace's clock counts from the start of the machine; what is nearer than half of this fits into a record
        // whatever came first.
        if event.ns.unsigned_abs() >= BEYOND / 2 {
            return Err(unfit(self.count, &"its time is centuries away"));
        }
        if self.events.len() >= MOST_EVENTS {
            return Err(unfit(self.count, &"there are more events than any run makes"));
        }
        self.events.push(event);
        Ok(())
    }
}

/// Packets with the stamps that found them.
struct DtracePackets {
    lengths: Lengths,
    rows: Vec<BTreeMap<Site, i64>>,
    /// By code: when requests left user space, and when replies reached it, with the packet's number; in the order of
    /// time.
    requests: Vec<Vec<(i64, usize)>>,
    replies: Vec<Vec<(i64, usize)>>,
    counts: PacketCounts,
    latest: Option<usize>,
}

impl DtracePackets {
    fn new(lengths: Lengths) -> Self {
        let none = || vec![Vec::new(); LENGTHS as usize];
        let (rows, counts, latest) = (Vec::new(), PacketCounts::default(), None);
        DtracePackets { lengths, rows, requests: none(), replies: none(), counts, latest }
    }

    /// User space first: its events are what the others are placed by.
    fn take_in(&mut self, events: &[DtraceEvent]) {
        let of = |site: Site| events.iter().filter(move |event| event.site == site);
        of(Site::UserSend).for_each(|event| self.send(event));
        of(Site::UserReceive).for_each(|event| self.receive(event));
        for event in events.iter().filter(|event| !matches!(event.site, Site::UserSend | Site::UserReceive)) {
            match self.packet_of(event) {
                // The first of two stamps counts: events come in the order of time.
                Some(number) => {
                    self.rows[number].entry(event.site).or_insert(event.ns);
                }
                None => self.counts.events_unplaced += 1,
            }
        }
        self.counts.lost = self.counts.sent - self.counts.received;
    }

    fn code(&self, event: &DtraceEvent) -> Option<usize> {
        let (direction, code) = self.lengths.code(event.length)?;
        (direction == event.site.direction()).then_some(code as usize)
    }

    fn send(&mut self, event: &DtraceEvent) {
        let Some(code) = self.code(event) else { return self.counts.foreign += 1 };
        self.counts.sent += 1;
        self.requests[code].push((event.ns, self.rows.len()));
        self.rows.push(BTreeMap::from([(Site::UserSend, event.ns)]));
    }

    fn receive(&mut self, event: &DtraceEvent) {
        let Some(code) = self.code(event) else { return self.counts.foreign += 1 };
        let Some(number) = before(&self.requests[code], event.ns) else { return self.counts.foreign += 1 };
        if self.rows[number].insert(Site::UserReceive, event.ns).is_some() {
            return self.counts.duplicated += 1;
        }
        self.replies[code].push((event.ns, number));
        self.counts.received += 1;
        self.counts.reordered += u64::from(self.latest > Some(number));
        self.latest = self.latest.max(Some(number));
    }

    fn packet_of(&self, event: &DtraceEvent) -> Option<usize> {
        let code = self.code(event)?;
        match event.site.direction() {
            Direction::Outgoing => before(&self.requests[code], event.ns),
            Direction::Incoming => {
                let replies = &self.replies[code];
                let (at, number) = *replies.get(replies.partition_point(|(at, _)| *at < event.ns))?;
                (at - event.ns < PATIENCE_NS).then_some(number)
            }
        }
    }

    fn phase(self, load: Option<Load>, dropped: u64) -> Result<PhaseRecord, RecordError> {
        let times = || self.rows.iter().flat_map(BTreeMap::values).copied();
        let (begin, end) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        let length_s = (end - begin) as f64 / HERTZ;
        let mut passages = PacketPassages::default();
        for (number, row) in self.rows.iter().enumerate() {
            append(&mut passages, row.iter().map(|(site, ns)| (*site, ns - begin)), format_args!("packet {number}"))?;
        }
        Ok(PhaseRecord {
            phase: CampaignPhase { number: 0, load, begin_s: 0.0, length_s },
            counts: PacketCounts { events_lost: dropped, ..self.counts },
            unavailable: Vec::new(),
            length_s,
            passages,
            methods: Methods::default(),
        })
    }
}

/// The last of `packets` before `ns`, if it is not too long ago.
fn before(packets: &[(i64, usize)], ns: i64) -> Option<usize> {
    let (at, number) = *packets.get(packets.partition_point(|(at, _)| *at <= ns).checked_sub(1)?)?;
    (ns - at < PATIENCE_NS).then_some(number)
}
