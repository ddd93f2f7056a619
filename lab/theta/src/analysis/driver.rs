//! A pass over a log on disk.

use super::{AnalysisError, Clocks, LogPass, Options, PassTally, TimeRange};
use crate::log::{EventColumns, EventReader, EventStream, LogReader, WayInColumns};
use ffclock_units::Span;

/// Watches the progress while a log is read.
pub trait ReadWatcher {
    /// `more` further events have been read.
    fn events(&mut self, more: u64);
}

/// Watches nothing.
impl ReadWatcher for () {
    fn events(&mut self, _: u64) {}
}

/// Reads the parts of a stream one after the other.
pub(super) struct Feed<'a> {
    stream: &'a EventStream,
    next_part: usize,
    reader: Option<EventReader>,
}

impl<'a> Feed<'a> {
    fn new(stream: &'a EventStream) -> Self {
        Feed { stream, next_part: 0, reader: None }
    }

    /// From a row group on.
    pub(super) fn starting_at(stream: &'a EventStream, part: usize, group: usize) -> Result<Self, AnalysisError> {
        let Some(path) = stream.parts.get(part) else { return Ok(Feed::new(stream)) };
        let mut reader = EventReader::open(path, WayInColumns::Skip)?;
        reader.skip_to_group(group);
        Ok(Feed { stream, next_part: part + 1, reader: Some(reader) })
    }

    fn next_batch(&mut self, batch: &mut EventColumns) -> Result<bool, AnalysisError> {
        loop {
            if let Some(reader) = &mut self.reader
                && reader.next_batch(batch)?
            {
                return Ok(true);
            }
            let Some(part) = self.stream.parts.get(self.next_part) else { return Ok(false) };
            self.reader = Some(EventReader::open(part, WayInColumns::Skip)?);
            self.next_part += 1;
        }
    }
}

/// Analyses a whole log in one pass.
///
/// # Errors
/// [`AnalysisError`] for a log that cannot be read on, a host without a clock, or an impossible event.
pub fn analyse(log: &LogReader, options: Options, watcher: &mut dyn ReadWatcher) -> Result<PassTally, AnalysisError> {
    let clocks = Clocks::new(log.run(), log.clocks())?;
    let mut feeds: Vec<_> = log.streams().iter().map(Feed::new).collect();
    let mut pass = LogPass::new(log.run(), clocks, feeds.len(), options.for_log(log.run()));
    feed_all(&mut pass, &mut feeds, i64::MAX, watcher)?;
    Ok(pass.finish())
}

/// Feeds the streams to a pass, until all have ended or been read beyond `until_ps`; whether any was cut there.
pub(super) fn feed_all(
    pass: &mut LogPass,
    feeds: &mut [Feed<'_>],
    until_ps: i64,
    watcher: &mut dyn ReadWatcher,
) -> Result<bool, AnalysisError> {
    let (mut batch, mut cut) = (EventColumns::default(), false);
    let mut open = feeds.len();
    while open > 0 {
        let stream = pass.hungriest();
        let beyond = pass.read_until(stream) > until_ps;
        if !beyond && feeds[stream].next_batch(&mut batch)? {
            watcher.events(batch.len() as u64);
            pass.take(stream, &batch)?;
        } else {
            cut |= beyond;
            pass.end_stream(stream);
            open -= 1;
        }
    }
    Ok(cut)
}

/// The times of a log without its first and its last `trim_ps` picoseconds: what happens while processes start and
/// stop is not typical (paper, section 5).
///
/// # Errors
/// As [`analyse`].
pub fn trimmed(log: &LogReader, trim_ps: u64) -> Result<TimeRange, AnalysisError> {
    let mut clocks = Clocks::new(log.run(), log.clocks())?;
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    let mut batch = EventColumns::default();
    for stream in log.streams() {
        let (Some(first_part), Some(last_part)) = (stream.parts.first(), stream.parts.last()) else { continue };
        let mut reader = EventReader::open(first_part, WayInColumns::Skip)?;
        if reader.next_batch(&mut batch)? {
            first = first.min(times(&mut clocks, &batch).min().unwrap_or(first));
        }
        let mut reader = EventReader::open(last_part, WayInColumns::Skip)?;
        reader.skip_to_group(reader.groups().saturating_sub(1));
        while reader.next_batch(&mut batch)? {
            last = last.max(times(&mut clocks, &batch).max().unwrap_or(last));
        }
    }
    let trim = i64::try_from(trim_ps).unwrap_or(i64::MAX);
    let range =
        TimeRange { after_ps: first.saturating_add(trim).saturating_sub(1), until_ps: last.saturating_sub(trim) };
    if range.is_empty() && first <= last {
        let span = |picoseconds: i64| Span::from_seconds(picoseconds as f64 * 1e-12);
        return Err(AnalysisError::Trimmed { lasts: span(last.saturating_sub(first)), trim: span(trim) });
    }
    Ok(range)
}

/// The times of the events of known processes.
fn times<'a>(clocks: &'a mut Clocks, batch: &'a EventColumns) -> impl Iterator<Item = i64> + 'a {
    let rows = batch.process.iter().zip(&batch.at);
    rows.filter_map(|(&process, &at)| clocks.known_time_ps(process, at))
}
