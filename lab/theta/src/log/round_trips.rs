//! `round-trips.parquet`: the round trips of a run that answers its messages.

use super::LogError;
use super::table::{self, RowGroup};
use crate::record::{ProcessId, Round};
use ffclock_units::Counter;
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::reader::FileReader;
use std::path::Path;

/// The file in the directory of a log.
const FILE: &str = "round-trips.parquet";

const SCHEMA: &str = "message round_trip {
    required int32 sender;
    required int32 receiver;
    required int64 round;
    required int64 returned (INTEGER(64,false));
    required int64 perceived_after (INTEGER(64,false));
    required int64 replied_after (INTEGER(64,false));
}";

/// A message that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// The sender of the message, which got the reply.
    pub sender: ProcessId,
    /// The receiver, which replied.
    pub receiver: ProcessId,
    /// The round of the message.
    pub round: Round,
    /// The sender's counter when the reply came: the kernel's stamp where there is one.
    pub returned: Counter,
    /// From the receiver's stamp of the message, taken in the same way, until it was perceived, in ticks of the
    /// receiver's counter.
    pub perceived_after: u64,
    /// From that stamp until the reply was handed over, in ticks of the receiver's counter.
    pub replied_after: u64,
}

/// Writes the round trips of a log.
///
/// # Errors
/// [`LogError::Io`] or [`LogError::Parquet`] when the disk refuses.
pub fn write_round_trips(directory: &Path, trips: &[RoundTrip]) -> Result<(), LogError> {
    let ints = |value: fn(&RoundTrip) -> u32| trips.iter().map(|trip| value(trip) as i32).collect::<Vec<_>>();
    let longs = |value: fn(&RoundTrip) -> u64| trips.iter().map(|trip| value(trip) as i64).collect::<Vec<_>>();
    table::write_file(&directory.join(FILE), SCHEMA, |group| {
        table::write_column::<Int32Type>(group, &ints(|trip| trip.sender.0), None)?;
        table::write_column::<Int32Type>(group, &ints(|trip| trip.receiver.0), None)?;
        table::write_column::<Int64Type>(group, &longs(|trip| trip.round.0), None)?;
        table::write_column::<Int64Type>(group, &longs(|trip| trip.returned.raw()), None)?;
        table::write_column::<Int64Type>(group, &longs(|trip| trip.perceived_after), None)?;
        table::write_column::<Int64Type>(group, &longs(|trip| trip.replied_after), None)
    })
}

/// The round trips of a log; `None` if it has no such file.
///
/// # Errors
/// [`LogError`] where the file is damaged or lacks a column.
pub fn read_round_trips(directory: &Path) -> Result<Option<Vec<RoundTrip>>, LogError> {
    let path = directory.join(FILE);
    if !path.exists() {
        return Ok(None);
    }
    let file = table::open(&path)?;
    let mut trips = Vec::new();
    for number in 0..file.num_row_groups() {
        let rows = usize::try_from(file.metadata().row_group(number).num_rows()).unwrap_or(0);
        let group = RowGroup { path: &path, file: &file, number };
        let int = |name| group.values::<Int32Type>(name, rows);
        let long = |name| group.values::<Int64Type>(name, rows);
        let (senders, receivers) = (int("sender")?, int("receiver")?);
        let (rounds, returned) = (long("round")?, long("returned")?);
        let (perceived_after, replied_after) = (long("perceived_after")?, long("replied_after")?);
        let columns = [rounds.len(), returned.len(), perceived_after.len(), replied_after.len(), receivers.len()];
        if columns.iter().any(|&length| length != senders.len()) {
            return Err(LogError::parquet(&path)(table::uneven()));
        }
        trips.extend((0..senders.len()).map(|row| RoundTrip {
            sender: ProcessId(senders[row] as u32),
            receiver: ProcessId(receivers[row] as u32),
            round: Round(rounds[row] as u64),
            returned: Counter::from_raw(returned[row] as u64),
            perceived_after: perceived_after[row] as u64,
            replied_after: replied_after[row] as u64,
        }));
    }
    Ok(Some(trips))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_damaged_told() {
        let place = std::env::temp_dir().join(format!("ffclock-theta-round-trips-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        assert_eq!(read_round_trips(&place).unwrap(), None);
        let trip = |round: u64| RoundTrip {
            sender: ProcessId(1),
            receiver: ProcessId(2),
            round: Round(round),
            returned: Counter::from_raw(u64::MAX - round),
            perceived_after: 5,
            replied_after: 6 + round,
        };
        let trips: Vec<_> = (1..100).map(trip).collect();
        write_round_trips(&place, &trips).unwrap();
        assert_eq!(read_round_trips(&place).unwrap(), Some(trips));
        std::fs::write(place.join(FILE), b"PAR1 nothing").unwrap();
        assert!(read_round_trips(&place).unwrap_err().to_string().contains(FILE));
        std::fs::remove_dir_all(&place).unwrap();
    }
}
