//! Recorded delays, to be drawn from again.

use super::law::picoseconds;
use ffclock_sim::scenario::Length;
use ffclock_units::Span;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// More delays than this are refused.
const DELAYS_MAX: usize = 1 << 24;
const BYTES_MAX: u64 = 1 << 30;

/// The delays of a file, in picoseconds, sorted.
pub(super) fn delays(path: &Path) -> Result<Arc<[u64]>, String> {
    let complaint = |why: String| format!("{}: {why}", path.display());
    let mut delays = from_text(path).map_err(complaint)?;
    if delays.is_empty() {
        return Err(complaint("there is no delay in it".to_owned()));
    }
    delays.sort_unstable();
    Ok(delays.into())
}

/// One length a line, such as `41.5 us`; empty lines and lines that begin with # say nothing.
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
