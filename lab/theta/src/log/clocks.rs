//! Clock files: `clocks.parquet` and, in a simulation, `truth.parquet`.

use super::LogError;
use super::table::{self, RowGroup};
use crate::record::{ClockSample, HostId};
use ffclock_units::{Counter, Period, Rate};
use parquet::data_type::{DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::FileReader;
use std::path::Path;

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

struct ClockColumns {
    host: Vec<i32>,
    counter: Vec<i64>,
    time_ps: Vec<i64>,
    bound_ps: Vec<i64>,
    period_s: Vec<f64>,
    drift_bound: Vec<f64>,
}

impl ClockColumns {
    fn read(group: &RowGroup<'_>) -> Result<Self, LogError> {
        let long = |name| group.values::<Int64Type>(name, SAMPLES_MAX);
        let double = |name| group.values::<DoubleType>(name, SAMPLES_MAX);
        Ok(ClockColumns {
            counter: long("counter")?,
            time_ps: long("time_ps")?,
            bound_ps: long("bound_ps")?,
            period_s: double("period_s")?,
            drift_bound: double("drift_bound")?,
            host: group.values::<Int32Type>("host", SAMPLES_MAX)?,
        })
    }

    /// The number of samples, if every column has as many.
    fn rows(&self) -> Option<usize> {
        let longs = [&self.counter, &self.time_ps, &self.bound_ps].map(Vec::len);
        let doubles = [&self.period_s, &self.drift_bound].map(Vec::len);
        let rows = self.host.len();
        longs.into_iter().chain(doubles).all(|length| length == rows).then_some(rows)
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
    let hosts: Vec<i32> = samples.iter().map(|sample| sample.host.0 as i32).collect();
    let longs = |value: fn(&ClockSample) -> i64| samples.iter().map(value).collect::<Vec<_>>();
    let doubles = |value: fn(&ClockSample) -> f64| samples.iter().map(value).collect::<Vec<_>>();
    let bounds = longs(|sample| i64::try_from(sample.bound_ps).unwrap_or(i64::MAX));
    table::write_file(path, SCHEMA, |group| {
        table::write_column::<Int32Type>(group, &hosts, None)?;
        table::write_column::<Int64Type>(group, &longs(|sample| sample.counter.raw() as i64), None)?;
        table::write_column::<Int64Type>(group, &longs(|sample| sample.time_ps), None)?;
        table::write_column::<Int64Type>(group, &bounds, None)?;
        table::write_column::<DoubleType>(group, &doubles(|sample| sample.period.as_seconds()), None)?;
        table::write_column::<DoubleType>(group, &doubles(|sample| sample.drift_bound.as_fraction()), None)
    })
}

/// All samples of a file, in the order of the file.
pub(super) fn read(path: &Path) -> Result<Vec<ClockSample>, LogError> {
    let file = table::open(path)?;
    let mut samples = Vec::new();
    for number in 0..file.num_row_groups() {
        let columns = ClockColumns::read(&RowGroup { path, file: &file, number })?;
        let Some(rows) = columns.rows().filter(|rows| samples.len() + rows <= SAMPLES_MAX) else {
            let fault = format!("columns of different length, or more than {SAMPLES_MAX} samples");
            return Err(LogError::parquet(path)(ParquetError::General(fault)));
        };
        for row in 0..rows {
            let at_row = |fault| LogError::Row { path: path.to_owned(), row: samples.len() as u64 + 1, fault };
            samples.push(columns.sample(row).map_err(at_row)?);
        }
    }
    Ok(samples)
}
