//! The analysis of message delays for `ffclock.theta_scale`: the same pass over shards of time, wherever they run.
//!
//! Tallies travel as JSON with exact integers, so nothing is lost between processes.

use ffclock_theta::analysis::{
    DelayMode, LogIndex, Options, PassTally, Shard, SwitchStamping, ThetaMode, ThetaReport, TimeRange, analyse_shard,
};
use ffclock_theta::log::LogReader;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Cuts a log into about `shards` ranges of time, as (after, until) in picoseconds.
#[pyfunction(name = "_theta_plan")]
pub(crate) fn plan(py: Python<'_>, directory: PathBuf, shards: usize) -> PyResult<Vec<(i64, i64)>> {
    py.detach(|| {
        let log = LogReader::open(&directory).map_err(wrong)?;
        let ranges = LogIndex::new(&log).map_err(wrong)?.plan(shards);
        Ok(ranges.into_iter().map(|range| (range.after_ps, range.until_ps)).collect())
    })
}

/// The tally of a range of a log, as JSON. `detail` is "plain", or "full" for Theta and the histograms too.
#[pyfunction(name = "_theta_tally")]
pub(crate) fn tally(
    py: Python<'_>,
    directory: PathBuf,
    range: (i64, i64),
    stamp: &str,
    detail: &str,
) -> PyResult<String> {
    let options = options(range, stamp, detail)?;
    py.detach(|| shard_tally(&directory, options))
}

fn options((after_ps, until_ps): (i64, i64), stamp: &str, detail: &str) -> PyResult<Options> {
    let stamping = match stamp {
        "after" => SwitchStamping::AfterBroadcast,
        "before" => SwitchStamping::BeforeBroadcast,
        other => return Err(wrong(format!("stamp is \"after\" or \"before\", not {other:?}"))),
    };
    let (theta, delays) = match detail {
        "plain" => (ThetaMode::Omit, DelayMode::Extremes),
        "full" => (ThetaMode::Compute, DelayMode::Histograms),
        other => return Err(wrong(format!("detail is \"plain\" or \"full\", not {other:?}"))),
    };
    Ok(Options { stamping, theta, delays, range: TimeRange { after_ps, until_ps }, ..Options::default() })
}

fn shard_tally(directory: &Path, options: Options) -> PyResult<String> {
    let log = LogReader::open(directory).map_err(wrong)?;
    let index = LogIndex::new(&log).map_err(wrong)?;
    let tally = analyse_shard(&log, &index, Shard::new(options), &mut ()).map_err(wrong)?;
    serde_json::to_string(&tally).map_err(wrong)
}

/// Adds the tallies of ranges that follow one another.
#[pyfunction(name = "_theta_merge")]
pub(crate) fn merge(tallies: Vec<String>) -> PyResult<String> {
    let mut sum: Option<PassTally> = None;
    for text in &tallies {
        let tally: PassTally = serde_json::from_str(text).map_err(wrong)?;
        match &mut sum {
            None => sum = Some(tally),
            Some(sum) => sum.merge(&tally),
        }
    }
    serde_json::to_string(&sum.ok_or_else(|| wrong("there is no tally to add"))?).map_err(wrong)
}

/// What the tally of a whole log means, as `ffclock-lab theta analyse --json` prints it.
#[pyfunction(name = "_theta_report")]
pub(crate) fn report(directory: PathBuf, tally: &str) -> PyResult<String> {
    let log = LogReader::open(&directory).map_err(wrong)?;
    let tally: PassTally = serde_json::from_str(tally).map_err(wrong)?;
    serde_json::to_string(&ThetaReport::new(log.run(), &tally, log.damage())).map_err(wrong)
}
