//! Clock files: `clocks.parquet` and, in a simulation, `truth.parquet`.

use super::LogError;
use super::table::{self, ColumnType, FieldFault, TableField};
use crate::record::{ClockSample, HostId};
use ffclock_units::{Counter, Period, Rate};
use parquet::data_type::{DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

const SCHEMA: &str = "message clock {
    required int32 host;
    required int64 counter (INTEGER(64,false));
    required int64 time_ps;
    required int64 bound_ps;
    required double period_s;
    required double drift_bound;
}";

/// More samples than this are refused: a clock that is sampled every second fills it in 194 days.
const SAMPLES_MAX: usize = 1 << 24;

#[derive(Default)]
struct ClockColumns {
    host: Vec<i32>,
    counter: Vec<i64>,
    time_ps: Vec<i64>,
    bound_ps: Vec<i64>,
    period_s: Vec<f64>,
    drift_bound: Vec<f64>,
}

impl ClockColumns {
    fn of(samples: &[ClockSample]) -> Self {
        ClockColumns {
            host: samples.iter().map(|sample| sample.host.0 as i32).collect(),
            counter: samples.iter().map(|sample| sample.counter.raw() as i64).collect(),
            time_ps: samples.iter().map(|sample| sample.time_ps).collect(),
            bound_ps: samples.iter().map(|sample| i64::try_from(sample.bound_ps).unwrap_or(i64::MAX)).collect(),
            period_s: samples.iter().map(|sample| sample.period.as_seconds()).collect(),
            drift_bound: samples.iter().map(|sample| sample.drift_bound.as_fraction()).collect(),
        }
    }

    fn sample(&self, row: usize) -> Result<ClockSample, String> {
        let period = Period::from_seconds(self.period_s[row]).ok_or("period_s must lie between 0 and 1")?;
        let drift_bound = self.drift_bound[row];
        if !(0.0..1.0).contains(&drift_bound) {
            return Err(format!("drift_bound {drift_bound} must lie between 0 and 1"));
        }
        Ok(ClockSample {
            host: u32::try_from(self.host[row]).map(HostId).map_err(|_| "host must not be negative")?,
            counter: Counter::from_raw(self.counter[row] as u64),
            time_ps: self.time_ps[row],
            bound_ps: u64::try_from(self.bound_ps[row]).map_err(|_| "bound_ps must not be negative")?,
            period,
            drift_bound: Rate::from_fraction(drift_bound),
        })
    }
}

pub(super) fn write(path: &Path, samples: &[ClockSample]) -> Result<(), LogError> {
    let file = File::create(path).map_err(LogError::io(path))?;
    write_to(file, &ClockColumns::of(samples)).map_err(LogError::parquet(path))
}

fn write_to(file: File, columns: &ClockColumns) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default()))?;
    let mut group = writer.next_row_group()?;
    table::write_column::<Int32Type>(&mut group, &columns.host, None)?;
    table::write_column::<Int64Type>(&mut group, &columns.counter, None)?;
    table::write_column::<Int64Type>(&mut group, &columns.time_ps, None)?;
    table::write_column::<Int64Type>(&mut group, &columns.bound_ps, None)?;
    table::write_column::<DoubleType>(&mut group, &columns.period_s, None)?;
    table::write_column::<DoubleType>(&mut group, &columns.drift_bound, None)?;
    group.close()?;
    writer.close().map(|_| ())
}

/// All samples of a file, in the order of the file.
pub(super) fn read(path: &Path) -> Result<Vec<ClockSample>, LogError> {
    let file = table::open(path)?;
    let mut columns = ClockColumns::default();
    for group in 0..file.num_row_groups() {
        read_group(&file, path, group, &mut columns)?;
    }
    let at_row = |(row, sample): (usize, Result<ClockSample, String>)| {
        sample.map_err(|fault| LogError::Row { path: path.to_owned(), row: row as u64 + 1, fault })
    };
    (0..columns.host.len()).map(|row| columns.sample(row)).enumerate().map(at_row).collect()
}

fn read_group(
    file: &SerializedFileReader<File>,
    path: &Path,
    group: usize,
    to: &mut ClockColumns,
) -> Result<(), LogError> {
    let field = |name, kind| match table::field(file, group, name, kind) {
        Ok(Some(field)) => Ok(field),
        Ok(None) => Err(FieldFault::Type.at(path, name, kind)),
        Err(fault) => Err(fault.at(path, name, kind)),
    };
    let longs = [("counter", &mut to.counter), ("time_ps", &mut to.time_ps), ("bound_ps", &mut to.bound_ps)];
    for (name, values) in longs {
        append(field(name, ColumnType::Long)?, Into::Long(values)).map_err(LogError::parquet(path))?;
    }
    for (name, values) in [("period_s", &mut to.period_s), ("drift_bound", &mut to.drift_bound)] {
        append(field(name, ColumnType::Double)?, Into::Double(values)).map_err(LogError::parquet(path))?;
    }
    append(field("host", ColumnType::Int)?, Into::Int(&mut to.host)).map_err(LogError::parquet(path))?;
    let rows = to.host.len();
    let lengths = [to.counter.len(), to.time_ps.len(), to.bound_ps.len(), to.period_s.len(), to.drift_bound.len()];
    if lengths.iter().any(|&length| length != rows) || rows > SAMPLES_MAX {
        let fault = ParquetError::General(format!("columns of different length, or more than {SAMPLES_MAX} samples"));
        return Err(LogError::parquet(path)(fault));
    }
    Ok(())
}

/// The column that values go to.
enum Into<'a> {
    Int(&'a mut Vec<i32>),
    Long(&'a mut Vec<i64>),
    Double(&'a mut Vec<f64>),
}

fn append(field: TableField, to: Into<'_>) -> Result<(), ParquetError> {
    match (field, to) {
        (TableField::Int(mut reader), Into::Int(values)) => table::read_dense(&mut reader, SAMPLES_MAX, values),
        (TableField::Long(mut reader), Into::Long(values)) => table::read_dense(&mut reader, SAMPLES_MAX, values),
        (TableField::Double(mut reader), Into::Double(values)) => table::read_dense(&mut reader, SAMPLES_MAX, values),
        _ => Ok(0),
    }
    .map(|_| ())
}
