//! Who ran while the slow message was on its way, beside the process that was slow.

use super::sched::{OwnThread, SchedGap, SchedShare, SchedTrace};
use super::{PeakStory, SlowPart, StoryMessage, WhyError};
use crate::analysis::{AnalysisError, Clocks};
use crate::log::{LogReader, WayInColumns};
use crate::record::{Event, ProcessId};
use ffclock_units::Counter;
use serde::Serialize;

/// More stamps do not distinguish a thread better.
const STAMPS_MAX: usize = 1 << 14;

/// What the scheduler of one host did during the slow message.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SchedStory {
    /// The process that was slow: the sender of the message if its other messages were slow too and those of others to
    /// the receiver were not, otherwise the receiver.
    pub process: ProcessId,
    /// Its thread, and the processor that it was to run on; `None` if the trace does not show it.
    pub own: Option<OwnThread>,
    /// Who ran on each processor of its host that is known.
    pub ran: Vec<SchedShare>,
    /// The processors that are not known.
    pub not_known: Vec<SchedGap>,
}

impl StoryMessage {
    /// Whose host a trace has to be of.
    const fn slow_process(&self, slow_part: SlowPart) -> ProcessId {
        match slow_part {
            SlowPart::Sender => self.sender,
            SlowPart::Receiver | SlowPart::Both | SlowPart::Alone | SlowPart::Unknown => self.receiver,
        }
    }
}

/// Who ran, by a trace of the host of the slow process; `None` if nothing was in transit.
///
/// # Errors
/// [`WhyError::NoCounter`] and [`WhyError::Unseen`] where the trace says nothing about the message.
pub fn who_ran(log: &LogReader, story: &PeakStory, trace: &SchedTrace) -> Result<Option<SchedStory>, WhyError> {
    let Some(slow) = story.slow else { return Ok(None) };
    let process = slow.slow_process(story.slow_part);
    let clocks = Clocks::new(log.run(), log.clocks())?;
    let counter = |time_ps| clocks.counter_at(process.index(), time_ps);
    let (from, to) = counter(slow.sent_ps).zip(counter(slow.perceived_ps)).ok_or(WhyError::NoCounter)?;
    let (ran, not_known) = (trace.shares(from, to), trace.gaps(from, to));
    if ran.is_empty() {
        return Err(WhyError::Unseen);
    }
    let own = trace.own_thread(&stamps(log, process, trace)?, from);
    Ok(Some(SchedStory { process, own, ran, not_known }))
}

/// The stamps that a process took itself, as far as the trace reaches.
fn stamps(log: &LogReader, process: ProcessId, trace: &SchedTrace) -> Result<Vec<Counter>, AnalysisError> {
    let Some((first, last)) = trace.reach() else { return Ok(vec![]) };
    let mut stamps = vec![];
    log.each_event(WayInColumns::Skip, AnalysisError::from, |event| {
        let is_own = event.process() == process && !matches!(event, Event::Transmission { .. });
        if is_own && (first..=last).contains(&event.at().raw()) && stamps.len() < STAMPS_MAX {
            stamps.push(event.at());
        }
        Ok(())
    })?;
    Ok(stamps)
}
