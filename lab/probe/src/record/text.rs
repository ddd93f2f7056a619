//! A record as JSON lines, in the format of docs/counters.md: `phase`, its `packet` lines, `ended`.

use super::{Beside, PhaseRecord, ProbeRecord, RecordError, append, checked, period_of, sites_of};
use crate::effect::Effect;
use crate::passages::PacketPassages;
use crate::site::Site;
use ffclock_counters::campaign::CampaignPhase;
use ffclock_counters::recording::{self, RecordingWriter};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufWriter};

const INSTRUMENT: &str = "probe";

/// Writes lines.
pub struct TextRecord(RecordingWriter<BufWriter<File>>);

impl TextRecord {
    pub(super) fn begin(file: File, about: &Value) -> Result<Self, RecordError> {
        Ok(TextRecord(RecordingWriter::begin(BufWriter::new(file), INSTRUMENT, about)?))
    }

    pub(super) fn effect(&mut self, effect: &Effect) -> Result<(), RecordError> {
        Ok(self.0.append("probe-effect", effect)?)
    }

    pub(super) fn phase(&mut self, beside: &Beside, passages: &PacketPassages) -> Result<(), RecordError> {
        self.0.append("phase", &beside.phase)?;
        for sequence in 0..passages.len() {
            let ticks = Site::ALL.map(|site| passages.at(sequence, site).map(|ticks| ticks.raw()));
            let packet = json!({ "phase": beside.phase.number, "sequence": sequence, "ticks": ticks });
            self.0.append("packet", &packet)?;
        }
        Ok(self.0.append("ended", beside)?)
    }

    pub(super) fn finish(self) -> Result<(), RecordError> {
        Ok(self.0.finish().map(drop)?)
    }
}

/// One packet.
#[derive(Deserialize)]
struct PacketLine {
    sequence: usize,
    ticks: Vec<Option<i64>>,
}

pub(super) fn read(input: impl BufRead) -> Result<ProbeRecord, RecordError> {
    let recorded = recording::read(input)?.of(INSTRUMENT)?;
    let (sites, period) = (sites_of(&recorded.about)?, period_of(&recorded.about)?);
    let mut phases: Vec<PhaseRecord> = Vec::new();
    let mut open: Option<PacketPassages> = None;
    let mut effect = None;
    for (number, record) in recorded.records.iter().enumerate() {
        let line = number + 2;
        match record["record"].as_str() {
            Some("phase") => {
                of_line::<CampaignPhase>(record, line)?;
                if open.replace(PacketPassages::default()).is_some() {
                    return Err(RecordError::Inconsistent(format!("line {line}: a phase begins in a phase")));
                }
            }
            Some("packet") => {
                let passages = open.as_mut().ok_or_else(|| outside(line))?;
                push(passages, &of_line(record, line)?, &sites, line)?;
            }
            Some("ended") => {
                let passages = open.take().ok_or_else(|| outside(line))?;
                phases.push(checked(of_line(record, line)?, passages, phases.len())?);
            }
            Some("probe-effect") => effect = Some(of_line(record, line)?),
            // What a later version adds.
            _ => {}
        }
    }
    match open {
        Some(_) => Err(RecordError::Inconsistent("its last phase does not end".to_owned())),
        None => Ok(ProbeRecord { about: recorded.about, period, effect, phases }),
    }
}

fn outside(line: usize) -> RecordError {
    RecordError::Inconsistent(format!("line {line} belongs to no phase"))
}

fn of_line<T: for<'a> Deserialize<'a>>(record: &Value, line: usize) -> Result<T, RecordError> {
    let damaged = |error: serde_json::Error| recording::RecordingError::Damaged { line, reason: error.to_string() };
    Ok(T::deserialize(record).map_err(damaged)?)
}

fn push(
    passages: &mut PacketPassages,
    packet: &PacketLine,
    sites: &[Option<Site>],
    line: usize,
) -> Result<(), RecordError> {
    if packet.sequence != passages.len() {
        let expected = passages.len();
        return Err(RecordError::Inconsistent(format!(
            "line {line} has packet {} where {expected} is expected",
            packet.sequence
        )));
    }
    if packet.ticks.len() != sites.len() {
        return Err(RecordError::Inconsistent(format!(
            "line {line} has {} stamps for {} sites",
            packet.ticks.len(),
            sites.len()
        )));
    }
    let stamps = sites.iter().zip(&packet.ticks).filter_map(|(site, ticks)| Some(((*site)?, (*ticks)?)));
    append(passages, stamps, format_args!("line {line}"))
}
