//! Shards of time: the same pass over a part of a log, read with a margin around it.
//!
//! A shard is exact only if what it did not read cannot matter: it must know where every process stands when its range
//! begins, and no message may reach over the margin. Both are checked on what was read; if either fails, the margin
//! grows, in the end to the whole log.

use super::driver::{Feed, feed_all};
use super::pass::{Certainty, Edges};
use super::{AnalysisError, Clocks, LogPass, Options, PassTally, ReadWatcher, TimeRange};
use crate::log::{EventColumns, EventReader, LogReader, WayInColumns};

/// A shard: which times count, and how much around them is read at first.
#[derive(Clone, Copy, Debug)]
pub struct Shard {
    /// What the pass is to do, and the range that it counts.
    pub options: Options,
    /// The margin to begin with, in picoseconds; it grows as needed.
    pub margin_ps: i64,
}

impl Shard {
    /// With a margin of 100 ms.
    pub fn new(options: Options) -> Self {
        Shard { options, margin_ps: 100_000_000_000 }
    }
}

/// Where the row groups of a log begin in time.
pub struct LogIndex {
    /// For each stream its row groups, in order: part, number in the part, time of the first event.
    groups: Vec<Vec<(usize, usize, i64)>>,
}

impl LogIndex {
    /// Looks at the first events of every row group.
    ///
    /// # Errors
    /// [`AnalysisError`] for a log that cannot be read.
    pub fn new(log: &LogReader) -> Result<Self, AnalysisError> {
        let mut clocks = Clocks::new(log.run(), log.clocks())?;
        let mut batch = EventColumns::default();
        let mut groups = Vec::new();
        for stream in log.streams() {
            let mut of_stream = Vec::new();
            for (part, path) in stream.parts.iter().enumerate() {
                for group in 0..EventReader::open(path, WayInColumns::Skip)?.groups() {
                    let mut reader = EventReader::open(path, WayInColumns::Skip)?;
                    reader.skip_to_group(group);
                    if reader.next_batch(&mut batch)?
                        && let (Some(&process), Some(&at)) = (batch.process.first(), batch.at.first())
                        && let Some(time) = clocks.known_time_ps(process, at)
                    {
                        of_stream.push((part, group, time));
                    }
                }
            }
            groups.push(of_stream);
        }
        Ok(LogIndex { groups })
    }

    /// Ranges that cover all times and hold about the same number of events each.
    pub fn plan(&self, shards: usize) -> Vec<TimeRange> {
        let mut begins: Vec<i64> = self.groups.iter().flatten().map(|&(.., time)| time).collect();
        begins.sort_unstable();
        let shards = shards.clamp(1, begins.len().max(1));
        let mut cuts: Vec<i64> = (1..shards).map(|shard| begins[shard * begins.len() / shards]).collect();
        cuts.dedup();
        let from = std::iter::once(i64::MIN).chain(cuts.iter().copied());
        let until = cuts.iter().copied().chain([i64::MAX]);
        from.zip(until).map(|(after_ps, until_ps)| TimeRange { after_ps, until_ps }).collect()
    }

    /// The last row group of a stream that begins before `time_ps`; its first one if none does.
    fn group_at(&self, stream: usize, time_ps: i64) -> Option<(usize, usize)> {
        let groups = &self.groups[stream];
        let before = groups.iter().rposition(|&(.., begin)| begin < time_ps).unwrap_or(0);
        groups.get(before).map(|&(part, group, _)| (part, group))
    }
}

/// The tally of the events in the shard's range, exactly as a single pass would count them.
///
/// # Errors
/// As [`super::analyse`].
pub fn analyse_shard(
    log: &LogReader,
    index: &LogIndex,
    Shard { options, margin_ps }: Shard,
    watcher: &mut dyn ReadWatcher,
) -> Result<PassTally, AnalysisError> {
    let disorder = i64::try_from(log.run().disorder_ps).unwrap_or(i64::MAX);
    let mut margin = margin_ps.max(1).max(disorder.saturating_mul(2));
    loop {
        let TimeRange { after_ps, until_ps } = options.range;
        let read = TimeRange { after_ps: after_ps.saturating_sub(margin), until_ps: until_ps.saturating_add(margin) };
        let margins = ShardRead { options, read };
        let (tally, certainty, edges) = read_shard(log, index, margins, watcher)?;
        if certainty.is_enough(&tally, edges, options.range) {
            return Ok(tally);
        }
        margin = margin.saturating_mul(8);
    }
}

/// A shard and how much of the log is read for it.
#[derive(Clone, Copy)]
struct ShardRead {
    options: Options,
    read: TimeRange,
}

fn read_shard(
    log: &LogReader,
    index: &LogIndex,
    ShardRead { options, read }: ShardRead,
    watcher: &mut dyn ReadWatcher,
) -> Result<(PassTally, Certainty, Edges), AnalysisError> {
    let mut edges = Edges { begin_is_cut: false, end_is_cut: false };
    let mut feeds = Vec::new();
    for (number, stream) in log.streams().iter().enumerate() {
        let (part, group) = index.group_at(number, read.after_ps).unwrap_or((0, 0));
        edges.begin_is_cut |= (part, group) != (0, 0);
        feeds.push(Feed::starting_at(stream, part, group)?);
    }
    let clocks = Clocks::new(log.run(), log.clocks())?;
    let mut pass = LogPass::new(log.run(), clocks, feeds.len(), options.for_log(log.run()));
    edges.end_is_cut = feed_all(&mut pass, &mut feeds, read.until_ps, watcher)?;
    let (tally, certainty) = pass.finish_shard();
    Ok((tally, certainty, edges))
}
