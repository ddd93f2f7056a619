//! `--stamps`: raw stamps that were taken during the recording, converted in retrospect.

use crate::failure::Failure;
use crate::{GlobalOptions, text};
use ffclock_cli::StampText;
use ffclock_estimator::SmoothedTime;
use ffclock_replay::Hindsight;
use ffclock_units::{Counter, CounterEpoch, LeapTable, Moment, Utc};
use serde::Serialize;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// A longer line is no stamp.
const LONGEST_LINE: usize = 100;

/// One stamp, as `--json` prints it; times are null outside what was recorded.
#[derive(Serialize)]
struct Converted<'a> {
    stamp: &'a str,
    utc_ns: Option<i128>,
    uncertainty_s: Option<f64>,
}

/// A stamp with its text; without an epoch it belongs to the last one.
struct WrittenStamp {
    text: String,
    counter: Counter,
    epoch: Option<CounterEpoch>,
}

/// The stamps of a file, which has one on each line: `COUNTER@EPOCH`, or `COUNTER`.
pub(super) struct StampFile(Vec<WrittenStamp>);

impl StampFile {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let failure = |error: &std::io::Error| Failure::from(format!("cannot read {}: {error}", path.display()));
        let file = File::open(path).map_err(|error| failure(&error))?;
        let mut stamps = Vec::new();
        for (number, line) in BufReader::new(file).lines().enumerate() {
            let line = line.map_err(|error| failure(&error))?;
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (counter, epoch) = parse(line).ok_or_else(|| {
                let place = format!("{}: line {}", path.display(), number + 1);
                Failure::from(format!("{place}: a stamp is COUNTER@EPOCH, as `ffclock stamp` prints it, or COUNTER"))
            })?;
            stamps.push(WrittenStamp { text: line.to_owned(), counter, epoch });
        }
        Ok(StampFile(stamps))
    }

    /// Prints the time of each.
    pub(super) fn convert(&self, hindsight: &Hindsight, global: &GlobalOptions) -> Result<(), Failure> {
        for WrittenStamp { text, counter, epoch } in &self.0 {
            let time = hindsight.at(*counter, *epoch);
            global.answer(&converted(text, time), || sentence(text, time))?;
        }
        Ok(())
    }
}

fn parse(line: &str) -> Option<(Counter, Option<CounterEpoch>)> {
    if line.len() > LONGEST_LINE {
        return None;
    }
    if line.contains('@') {
        let stamp: StampText = line.parse().ok()?;
        return Some((stamp.0.counter(), Some(stamp.0.epoch())));
    }
    Some((Counter::from_raw(line.parse().ok()?), None))
}

fn utc(time: &SmoothedTime) -> Moment<Utc> {
    LeapTable::built_in().utc_from_tai(time.time)
}

fn converted(stamp: &str, time: Option<SmoothedTime>) -> Converted<'_> {
    Converted {
        stamp,
        utc_ns: time.map(|time| utc(&time).since_origin().as_nanos()),
        uncertainty_s: time.map(|time| time.uncertainty.as_seconds()),
    }
}

fn sentence(stamp: &str, time: Option<SmoothedTime>) -> String {
    match time {
        Some(time) => format!("{stamp}  {}  standard uncertainty {}\n", text::utc(utc(&time)), time.uncertainty),
        None => format!("{stamp}  not within the recording\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_has_an_epoch_or_not() {
        assert_eq!(parse("17@3"), Some((Counter::from_raw(17), Some(CounterEpoch::from_raw(3)))));
        assert_eq!(parse("17"), Some((Counter::from_raw(17), None)));
        for wrong in ["", "x", "17@", "-1", &"1".repeat(200)] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
