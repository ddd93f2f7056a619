//! Recordings of the instruments: a text file with one JSON object a line, described in docs/counters.md.
//!
//! The first line says what it is, the last one how many lines stand between. A file without its last line was cut, and
//! is refused rather than taken for a shorter measurement.

use crate::machine::Machine;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, BufRead, Read, Write};

/// The first field of the first line; another number is another version.
pub const FORMAT: &str = "ffclock counters 1";
/// A longer line is no line of a recording.
const LONGEST_LINE: u64 = 1 << 20;

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is something else.
    #[error("is no recording of ffclock-lab: its first line does not say \"{FORMAT}\"")]
    Foreign,
    /// A line is damaged.
    #[error("line {line} is damaged ({reason}); record again, or restore the file from where it was copied")]
    Damaged {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The end is missing.
    #[error(
        "was cut after line {lines}: its last line is missing, so the measurement was killed or the copy is incomplete; record again"
    )]
    Truncated {
        /// Whole lines there are.
        lines: usize,
    },
    /// It is of another instrument.
    #[error("is a recording of \"{found}\", and one of \"{wanted}\" is needed")]
    OtherInstrument {
        /// What it is.
        found: String,
        /// What is needed.
        wanted: &'static str,
    },
}

/// Writes a recording.
pub struct RecordingWriter<W: Write> {
    output: W,
    lines: u64,
}

impl<W: Write> RecordingWriter<W> {
    /// Begins a recording of `instrument`; `about` is an object that describes the run.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn begin(output: W, instrument: &str, about: &impl Serialize) -> io::Result<Self> {
        let mut recorder = RecordingWriter { output, lines: 0 };
        let (version, machine) = (env!("CARGO_PKG_VERSION"), Machine::of_this_host());
        let head = json!({ "format": FORMAT, "instrument": instrument, "ffclock": version, "machine": machine, "about": about });
        recorder.put(&head)?;
        Ok(recorder)
    }

    /// Appends a record: its kind, and its fields.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn append(&mut self, record: &str, fields: &impl Serialize) -> io::Result<()> {
        let mut object = serde_json::to_value(fields)?;
        if let Some(map) = object.as_object_mut() {
            map.insert("record".to_owned(), record.into());
        }
        self.lines += 1;
        self.put(&object)
    }

    /// What was written to.
    pub fn output_mut(&mut self) -> &mut W {
        &mut self.output
    }

    /// Ends the recording in good order; returns what was written to.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        let lines = self.lines;
        self.put(&json!({ "record": "end", "records": lines }))?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn put(&mut self, value: &Value) -> io::Result<()> {
        writeln!(self.output, "{value}")
    }
}

/// A recording as read back.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Which instrument made it.
    pub instrument: String,
    /// What it says about the run.
    pub about: Value,
    /// The records, in order; each with its kind in `record`.
    pub records: Vec<Value>,
}

impl Recorded {
    /// The records of one kind, as what they stand for.
    ///
    /// # Errors
    /// [`RecordingError::Damaged`] where one has not the fields of its kind.
    pub fn all<T: serde::de::DeserializeOwned>(&self, kind: &str) -> Result<Vec<T>, RecordingError> {
        let of_kind = self.records.iter().enumerate().filter(|(_, record)| record["record"] == kind);
        of_kind
            .map(|(number, record)| {
                T::deserialize(record)
                    .map_err(|error| RecordingError::Damaged { line: number + 2, reason: error.to_string() })
            })
            .collect()
    }

    /// What it says about the run, as what it stands for.
    ///
    /// # Errors
    /// [`RecordingError::Damaged`] where the first line has not the fields of its instrument.
    pub fn about_as<T: serde::de::DeserializeOwned>(&self) -> Result<T, RecordingError> {
        T::deserialize(&self.about).map_err(|error| RecordingError::Damaged { line: 1, reason: error.to_string() })
    }

    /// Itself, if it is of this instrument.
    ///
    /// # Errors
    /// [`RecordingError::OtherInstrument`].
    pub fn of(self, wanted: &'static str) -> Result<Self, RecordingError> {
        if self.instrument == wanted {
            Ok(self)
        } else {
            Err(RecordingError::OtherInstrument { found: self.instrument, wanted })
        }
    }
}

/// Reads a recording.
///
/// # Errors
/// [`RecordingError`].
pub fn read(mut input: impl BufRead) -> Result<Recorded, RecordingError> {
    let Some(first) = next_line(&mut input, 1).map_err(|_| RecordingError::Foreign)? else {
        return Err(RecordingError::Foreign);
    };
    let RecordedLine::Whole(head) = first else { return Err(RecordingError::Foreign) };
    if head["format"] != FORMAT {
        return Err(RecordingError::Foreign);
    }
    let instrument = head["instrument"].as_str().unwrap_or_default().to_owned();
    let mut records = Vec::new();
    while let Some(line) = next_line(&mut input, records.len() + 2)? {
        let RecordedLine::Whole(value) = line else { break };
        if value["record"] == "end" {
            return check_end(&value, Recorded { instrument, about: head["about"].clone(), records });
        }
        records.push(value);
    }
    Err(RecordingError::Truncated { lines: records.len() + 1 })
}

fn check_end(end: &Value, recorded: Recorded) -> Result<Recorded, RecordingError> {
    let line = recorded.records.len() + 2;
    if end["records"].as_u64() == Some(recorded.records.len() as u64) {
        return Ok(recorded);
    }
    let reason = format!("there are {} records and {} are announced", recorded.records.len(), end["records"]);
    Err(RecordingError::Damaged { line, reason })
}

enum RecordedLine {
    Whole(Value),
    /// Without its end: the file stops here.
    Cut,
}

fn next_line(input: &mut impl BufRead, number: usize) -> Result<Option<RecordedLine>, RecordingError> {
    let mut bytes = Vec::new();
    input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes)?;
    let damaged = |reason: String| RecordingError::Damaged { line: number, reason };
    match bytes.last() {
        None => Ok(None),
        Some(b'\n') => serde_json::from_slice(&bytes)
            .map(|value| Some(RecordedLine::Whole(value)))
            .map_err(|error| damaged(error.to_string())),
        Some(_) if bytes.len() as u64 == LONGEST_LINE => Err(damaged("it is too long".to_owned())),
        Some(_) => Ok(Some(RecordedLine::Cut)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut recorder = RecordingWriter::begin(&mut bytes, "latency", &json!({ "host": "a" })).unwrap();
        recorder.append("round", &json!({ "t": 1.5 })).unwrap();
        recorder.append("outlier", &json!({ "t": 2.5 })).unwrap();
        recorder.finish().unwrap();
        bytes
    }

    #[test]
    fn a_recording_reads_back() {
        #[derive(serde::Deserialize, Debug, PartialEq)]
        struct Round {
            t: f64,
        }
        let back = read(recorded().as_slice()).unwrap().of("latency").unwrap();
        assert_eq!(back.about, json!({ "host": "a" }));
        assert_eq!(back.all::<Round>("round").unwrap(), [Round { t: 1.5 }]);
        assert!(matches!(back.all::<Vec<u8>>("round"), Err(RecordingError::Damaged { line: 2, .. })));
        assert!(matches!(back.of("stability"), Err(RecordingError::OtherInstrument { .. })));
    }

    #[test]
    fn a_recording_cut_anywhere_is_refused() {
        let whole = recorded();
        for length in 0..whole.len() {
            let error = read(&whole[..length]).unwrap_err();
            assert!(matches!(error, RecordingError::Truncated { .. } | RecordingError::Foreign), "{length}: {error}");
        }
    }

    #[test]
    fn damage_is_told_with_its_line() {
        let text = String::from_utf8(recorded()).unwrap();
        let torn = text.replace("\"t\":1.5", "\"t\":1.5.5");
        assert!(matches!(read(torn.as_bytes()), Err(RecordingError::Damaged { line: 2, .. })));
        let lost: String = text.split_inclusive('\n').filter(|line| !line.contains("outlier")).collect();
        assert!(matches!(read(lost.as_bytes()), Err(RecordingError::Damaged { line: 3, .. })));
        let long = format!("{}\n{}", text.lines().next().unwrap(), "9".repeat(2 << 20));
        assert!(matches!(read(long.as_bytes()), Err(RecordingError::Damaged { line: 2, .. })));
        assert!(matches!(read(&b"Ta,Tb\n1,2\n"[..]), Err(RecordingError::Foreign)));
    }
}
