//! The same run with its delays drawn again.

use super::{g_r, too_many};
use crate::algorithm::AlgorithmForm;
use crate::analysis::{AnalysisError, Clocks, Options, PairMode, SwitchPair, TimeRange};
use crate::log::{LogReader, WayInColumns};
use crate::record::{Event, ProcessId, RecordedForm, Round, RunDescription};
use crate::simulate::{CollectedEvents, LinkDelays, RedrawnRun};
use std::collections::BTreeMap;

/// What of a log is drawn again.
#[derive(Clone, Copy, Debug)]
pub(super) struct RedrawLimits {
    /// The times that count.
    pub(super) range: TimeRange,
    /// Of more messages the delays are not kept in memory.
    pub(super) messages_max: u64,
}

/// What it takes to run again: the sizes of the run, the delays of each link, and which rounds count.
pub(super) struct Redraw {
    run: RunDescription,
    simulation: RedrawnRun,
    counted: CountedRounds,
}

/// What a redrawn run showed.
pub(super) struct Redrawn {
    pub(super) pairs: Vec<SwitchPair>,
    pub(super) g_r: Option<f64>,
}

impl Redraw {
    /// From a log, for runs of as many rounds; a reason where it cannot be repeated.
    pub(super) fn of(
        log: &LogReader,
        rounds: u64,
        limits: RedrawLimits,
    ) -> Result<Result<Self, String>, AnalysisError> {
        let run = log.run();
        let form = match run.form {
            RecordedForm::Repaired => AlgorithmForm::Repaired,
            RecordedForm::Printed => AlgorithmForm::Printed,
            RecordedForm::Unknown => {
                return Ok(Err("an imported log follows no algorithm that could be repeated".to_owned()));
            }
        };
        let sent = SendTimes::read(log)?;
        let delays = match link_delays(log, &sent, limits)? {
            Ok(delays) => delays,
            Err(why) => return Ok(Err(why)),
        };
        let simulation = RedrawnRun::new(run, form, delays, rounds);
        let counted = CountedRounds::new(&sent, limits.range);
        Ok(simulation.map(|simulation| Redraw { run: described(run), simulation, counted }))
    }

    /// `None` where messages do not fit into memory, or the run does not come to the rounds that count.
    pub(super) fn run(&self, seed: u64) -> Option<Redrawn> {
        let mut events = CollectedEvents::default();
        self.simulation.run(seed, &mut events).ok()?;
        let range = self.counted.range(&events)?;
        let options = Options { pairs: PairMode::Keep, range, ..Options::default() };
        let tally = events.analysed(&self.run, options).ok()?;
        Some(Redrawn { g_r: g_r(&tally), pairs: tally.pairs })
    }
}

/// The rounds whose first switch counts. A redrawn run has its own pace, and no pause at its start, so it is cut at
/// rounds and not at times.
struct CountedRounds {
    /// `None` where nothing is left out at the start.
    from: Option<Round>,
    /// `None` where nothing is left out at the end.
    to: Option<Round>,
}

impl CountedRounds {
    fn new(sent: &SendTimes, range: TimeRange) -> Self {
        let counted = || sent.first.iter().filter(|&(_, &at_ps)| range.holds(at_ps)).map(|(&round, _)| round);
        CountedRounds {
            from: counted().min().filter(|_| range.after_ps > TimeRange::ALL.after_ps),
            to: counted().max().filter(|_| range.until_ps < TimeRange::ALL.until_ps),
        }
    }

    /// Their times in a redrawn run; `None` if it does not have them.
    fn range(&self, events: &CollectedEvents) -> Option<TimeRange> {
        let mut range = TimeRange::ALL;
        if let Some(from) = self.from {
            range.after_ps = events.first_broadcast_ps(from)?.saturating_sub(1);
        }
        if let Some(to) = self.to {
            range.until_ps = events.first_broadcast_ps(to)?;
        }
        Some(range)
    }
}

/// When each message was sent, in picoseconds.
struct SendTimes {
    by_sender: BTreeMap<(ProcessId, Round), i64>,
    /// Of each round the first, which is the time of its first switch.
    first: BTreeMap<Round, i64>,
}

impl SendTimes {
    fn read(log: &LogReader) -> Result<Self, AnalysisError> {
        let mut clocks = Clocks::new(log.run(), log.clocks())?;
        let mut sent = SendTimes { by_sender: BTreeMap::new(), first: BTreeMap::new() };
        log.each_event(WayInColumns::Skip, AnalysisError::from, |event| {
            if let Event::Broadcast { process, round, at } = *event {
                let at_ps = clocks.time_ps(process.index(), at);
                sent.by_sender.insert((process, round), at_ps);
                sent.first.entry(round).and_modify(|first| *first = at_ps.min(*first)).or_insert(at_ps);
            }
            Ok(())
        })?;
        Ok(sent)
    }
}

/// Faults have been left behind with the delays of the run.
fn described(run: &RunDescription) -> RunDescription {
    RunDescription { faults: vec![], settings: BTreeMap::new(), unrecorded: 0, ..run.clone() }
}

/// From broadcast to perception, by sender and receiver, of the messages in transit at a time that counts: those that
/// the observation rests on. A delay that the clocks make negative counts as the shortest. A reason where they are too
/// many: those of some links alone would be the laws of another run.
fn link_delays(
    log: &LogReader,
    sent: &SendTimes,
    RedrawLimits { range, messages_max }: RedrawLimits,
) -> Result<Result<LinkDelays, String>, AnalysisError> {
    let run = log.run();
    let mut clocks = Clocks::new(run, log.clocks())?;
    let mut delays = LinkDelays::new(run.processes);
    let mut found = 0;
    log.each_event(WayInColumns::Skip, AnalysisError::from, |event| {
        let Event::Perception { process, sender, round, at, .. } = *event else { return Ok(()) };
        let Some(&begin_ps) = sent.by_sender.get(&(sender, round)) else { return Ok(()) };
        let end_ps = clocks.time_ps(process.index(), at).max(begin_ps.saturating_add(1));
        if range.holds_transit(begin_ps, end_ps) {
            found += 1;
            if found <= messages_max {
                delays.add(sender, process, end_ps.saturating_sub(begin_ps) as u64);
            }
        }
        Ok(())
    })?;
    Ok(if found > messages_max { Err(too_many(found, messages_max)) } else { Ok(delays) })
}
