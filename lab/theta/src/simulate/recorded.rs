//! Recorded delays, to be drawn from again.

use crate::analysis::Clocks;
use crate::length::{LENGTH_MAX_PS, picoseconds};
use crate::log::{LogError, LogReader, WayInColumns};
use crate::record::Event;
use ffclock_sim::scenario::Length;
use ffclock_units::Span;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// More delays than this are refused.
const DELAYS_MAX: usize = 1 << 24;
const BYTES_MAX: u64 = 1 << 30;

/// The delays of a file or of a log, in picoseconds, sorted.
pub(super) fn delays(path: &Path) -> Result<Arc<[u64]>, String> {
    let complaint = |why: String| format!("{}: {why}", path.display());
    let mut delays = if path.is_dir() { from_log(path) } else { from_text(path) }.map_err(complaint)?;
    if delays.is_empty() {
        return Err(complaint("there is no delay in it".to_owned()));
    }
    delays.sort_unstable();
    Ok(delays.into())
}

/// One length a line, such as `41.5 us`; empty lines and lines that begin with # are ignored.
fn from_text(path: &Path) -> Result<Vec<u64>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut delays = Vec::new();
    for (number, line) in BufReader::new(file.take(BYTES_MAX)).lines().enumerate() {
        let line = line.map_err(|error| error.to_string())?;
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let delay = length(text).map_err(|why| format!("line {}: {why}", number + 1))?;
        delays.push(delay);
        if delays.len() > DELAYS_MAX {
            return Err(format!("more than {DELAYS_MAX} delays"));
        }
    }
    Ok(delays)
}

fn length(text: &str) -> Result<u64, String> {
    let span: Span = text.parse().map_err(|error: ffclock_units::ParseError| error.to_string())?;
    picoseconds(Length(span)).ok_or_else(|| format!("{text} does not lie between 0 s and 1000 s"))
}

/// From broadcast to the receiver's kernel, or to the perception where the kernel has not stamped; messages to oneself
/// left aside.
fn from_log(path: &Path) -> Result<Vec<u64>, String> {
    let log = LogReader::open(path).map_err(|error| error.to_string())?;
    let mut clocks = Clocks::new(log.run(), log.clocks()).map_err(|error| error.to_string())?;
    let mut sent = BTreeMap::new();
    let failed = |error: LogError| error.to_string();
    log.each_event(WayInColumns::Read, failed, |event| {
        if let Event::Broadcast { process, round, at } = *event {
            sent.insert((process, round), clocks.time_ps(process.index(), at));
        }
        Ok(())
    })?;
    let mut delays = Vec::new();
    log.each_event(WayInColumns::Read, failed, |event| {
        let Event::Perception { process, sender, round, at, way_in } = *event else { return Ok(()) };
        let Some(&begin) = sent.get(&(sender, round)).filter(|_| sender != process) else { return Ok(()) };
        let end = clocks.time_ps(process.index(), way_in.kernel.unwrap_or(at));
        // A clock that errs by more than the delay gives none.
        let delay = u64::try_from(end - begin).ok().filter(|&delay| delay <= LENGTH_MAX_PS);
        delays.extend(delay.filter(|_| delays.len() < DELAYS_MAX));
        Ok(())
    })?;
    Ok(delays)
}
