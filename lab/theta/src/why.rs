//! Why a ratio was large: the messages of one switch, and what kept the slowest of them.
//!
//! A ratio is one long message over the message that let a process go on. The story names both, follows the long one
//! through the stamps that the run took on its way, and puts it beside its siblings: the other messages of its
//! broadcast (slow too if the sender was) and the other messages to its receiver meanwhile (slow too if the receiver
//! was). Where the scheduler was recorded ([`SchedTrace`]), it also says who ran. It is a description of what was
//! seen, not a proof of a cause.

mod gathered;
mod ran;
mod sched;

pub use ran::{SchedStory, who_ran};
pub use sched::{OwnThread, SchedFault, SchedGap, SchedGapReason, SchedShare, SchedTrace};

use crate::analysis::{AnalysisError, Clocks, SwitchStamping, TimeRange};
use crate::certified::CertifyError;
use crate::certified::gather::{GatheredMessage, GatheredSwitch, JoinedLog};
use crate::log::{LogReader, WayInColumns};
use crate::record::{Event, ProcessId, Round, WayIn};
use ffclock_units::Counter;
use gathered::{JudgedTurn, judged_turns};
use serde::Serialize;

/// At least this share of the delay makes a stage, or a kind of sibling, the one to name.
const MOST: f64 = 0.5;

/// Why there is no story.
#[derive(Debug, thiserror::Error)]
pub enum WhyError {
    /// The log cannot be read, or is too long for memory.
    #[error(transparent)]
    Log(#[from] CertifyError),
    /// No first switch with a tau_r- leads to this round.
    #[error(
        "no first switch leads to round {0} with a tau_r-; there may have been a catch-up, or the run ended before, or the round is left out"
    )]
    NoSuchRound(u64),
    /// No first switch has a tau_r-.
    #[error("the run has no first switch with a tau_r-")]
    Empty,
    /// The message lies outside of the counter of its host.
    #[error("the clock of the host has no counter for the message")]
    NoCounter,
    /// No processor's part of a trace reaches over the message.
    #[error(
        "the trace does not reach over the message on any processor: was it recorded with the counter of the run, and \
         with a buffer (buffer_size_kb) that held so long?"
    )]
    Unseen,
}

/// Which switch to explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhyOptions {
    /// The first switch to this round; otherwise that of the largest ratio.
    pub round: Option<Round>,
    /// Where switches are stamped.
    pub stamping: SwitchStamping,
    /// The switches that count.
    pub range: TimeRange,
}

impl Default for WhyOptions {
    fn default() -> Self {
        WhyOptions { round: None, stamping: SwitchStamping::AfterBroadcast, range: TimeRange::ALL }
    }
}

impl From<AnalysisError> for WhyError {
    fn from(error: AnalysisError) -> Self {
        WhyError::Log(error.into())
    }
}

impl WhyOptions {
    /// Whether a message is in transit at a switch, unless it has been perceived.
    const fn is_sent_by(&self, sent_ps: i64, at_ps: i64) -> bool {
        match self.stamping {
            SwitchStamping::BeforeBroadcast => sent_ps < at_ps,
            SwitchStamping::AfterBroadcast => sent_ps <= at_ps,
        }
    }
}

/// A message of the story; times in picoseconds since the origin of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StoryMessage {
    /// Its round.
    pub round: Round,
    /// Who sent it.
    pub sender: ProcessId,
    /// Who perceived it.
    pub receiver: ProcessId,
    /// When it was sent.
    pub sent_ps: i64,
    /// When it was perceived.
    pub perceived_ps: i64,
}

impl StoryMessage {
    fn of(message: &GatheredMessage) -> Self {
        let (round, sender, receiver) = message.key;
        StoryMessage {
            round: Round(round),
            sender: ProcessId(sender),
            receiver: ProcessId(receiver),
            sent_ps: message.sent.clock_ps,
            perceived_ps: message.perceived.clock_ps,
        }
    }

    /// How long it took, in picoseconds.
    pub const fn delay_ps(&self) -> i64 {
        self.perceived_ps.saturating_sub(self.sent_ps)
    }
}

/// A part of a message's way, between two stamps that the run took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MessageStage {
    /// Where it begins.
    pub from: &'static str,
    /// Where it ends.
    pub to: &'static str,
    /// How long it took, in picoseconds; negative only if two clocks disagree by more.
    pub lasts_ps: i64,
}

/// What the siblings of the long message say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlowPart {
    /// The other messages of its broadcast were slow too.
    Sender,
    /// The other messages to its receiver were slow too, while it was on its way.
    Receiver,
    /// Both were.
    Both,
    /// Neither was: this link, or this message alone.
    Alone,
    /// There are no others to compare with.
    Unknown,
}

/// A median with the number of messages it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SiblingDelay {
    /// The median delay, in picoseconds.
    pub median_ps: i64,
    /// The number of messages.
    pub messages: usize,
}

/// The story of one first switch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeakStory {
    /// The round switched to.
    pub round: Round,
    /// The process that switched.
    pub process: ProcessId,
    /// When, in picoseconds since the origin of the run.
    pub at_ps: i64,
    /// tau+ over tau_r-; 1 if nothing was in transit.
    pub ratio: f64,
    /// tau_r-, in picoseconds.
    pub relevant_ps: i64,
    /// The messages that made it switch, the fastest first; the last of them is tau_r-.
    pub contributors: Vec<StoryMessage>,
    /// The longest message in transit at the switch, with tau+ as its delay.
    pub slow: Option<StoryMessage>,
    /// How many first switches happened while it was on its way.
    pub switches_meanwhile: usize,
    /// Its stages, as far as the run took stamps.
    pub stages: Vec<MessageStage>,
    /// The other messages of its broadcast.
    pub of_sender: Option<SiblingDelay>,
    /// The other messages to its receiver, as far as they were in transit together with it.
    pub to_receiver: Option<SiblingDelay>,
    /// What follows from both.
    pub slow_part: SlowPart,
    /// All that was in transit at the switch, the longest first; at most 64.
    pub in_transit: Vec<StoryMessage>,
}

/// More of what is in transit is not listed.
const IN_TRANSIT_MAX: usize = 64;

/// The story of the first switch to a round, or of the largest ratio of the times that count.
///
/// # Errors
/// [`WhyError`].
pub fn why(log: &LogReader, options: &WhyOptions) -> Result<PeakStory, WhyError> {
    let joined = JoinedLog::from_log(log, options.stamping)?;
    let judged = judged_turns(&joined, options);
    let chosen = match options.round {
        Some(round) => judged
            .iter()
            .find(|one| [one.round, one.turn.to].contains(&round.0))
            .ok_or(WhyError::NoSuchRound(round.0))?,
        // Of equal ratios the earliest, as in the analysis.
        None => judged.iter().rev().max_by(|one, other| one.ratio().cmp(&other.ratio())).ok_or(WhyError::Empty)?,
    };
    let mut story = begun(&joined, chosen, options);
    if let Some(slow) = story.slow {
        let meanwhile = slow.sent_ps..slow.perceived_ps;
        story.switches_meanwhile = judged.iter().filter(|one| meanwhile.contains(&one.turn.at.clock_ps)).count();
        story.stages = stages(log, &slow)?;
        story.of_sender = siblings(&joined, &slow, |other| (other.round, other.sender) == (slow.round, slow.sender));
        story.to_receiver = siblings(&joined, &slow, |other| {
            let together = other.sent_ps < slow.perceived_ps && slow.sent_ps < other.perceived_ps;
            other.receiver == slow.receiver && other.sender != slow.sender && together
        });
        story.slow_part = slow_part(&story, slow.delay_ps());
    }
    Ok(story)
}

fn begun(joined: &JoinedLog, chosen: &JudgedTurn<'_>, options: &WhyOptions) -> PeakStory {
    let GatheredSwitch { process, at, contributors, .. } = chosen.turn;
    let at_ps = at.clock_ps;
    let mut contributors: Vec<_> = contributors.iter().map(StoryMessage::of).collect();
    contributors.retain(|message| message.delay_ps() > 0);
    contributors.sort_by_key(StoryMessage::delay_ps);
    contributors.truncate(joined.threshold);
    let is_in_transit = |message: &&GatheredMessage| {
        options.is_sent_by(message.sent.clock_ps, at_ps) && at_ps < message.perceived.clock_ps
    };
    let mut in_transit: Vec<_> = joined.messages.iter().filter(is_in_transit).map(StoryMessage::of).collect();
    in_transit.sort_by_key(|message| std::cmp::Reverse(message.delay_ps()));
    in_transit.truncate(IN_TRANSIT_MAX);
    PeakStory {
        round: Round(chosen.round),
        process: ProcessId(*process as u32),
        at_ps,
        ratio: chosen.ratio().as_f64(),
        relevant_ps: chosen.relevant_ps,
        contributors,
        slow: in_transit.first().copied(),
        switches_meanwhile: 0,
        stages: vec![],
        of_sender: None,
        to_receiver: None,
        slow_part: SlowPart::Unknown,
        in_transit,
    }
}

fn siblings(
    joined: &JoinedLog,
    slow: &StoryMessage,
    is_sibling: impl Fn(&StoryMessage) -> bool,
) -> Option<SiblingDelay> {
    let others = joined.messages.iter().map(StoryMessage::of).filter(|other| other != slow && is_sibling(other));
    let mut delays: Vec<i64> = others.map(|other| other.delay_ps()).collect();
    delays.sort_unstable();
    Some(SiblingDelay { median_ps: *delays.get(delays.len() / 2)?, messages: delays.len() })
}

fn slow_part(story: &PeakStory, delay_ps: i64) -> SlowPart {
    let is_slow = |found: Option<SiblingDelay>| found.map(|found| found.median_ps as f64 >= MOST * delay_ps as f64);
    match (is_slow(story.of_sender), is_slow(story.to_receiver)) {
        (None, None) => SlowPart::Unknown,
        (Some(true), Some(true)) => SlowPart::Both,
        (Some(true), _) => SlowPart::Sender,
        (_, Some(true)) => SlowPart::Receiver,
        _ => SlowPart::Alone,
    }
}

/// The stages of a message, from the stamps of a second reading of the log.
fn stages(log: &LogReader, slow: &StoryMessage) -> Result<Vec<MessageStage>, WhyError> {
    let mut clocks = Clocks::new(log.run(), log.clocks())?;
    let (mut transmitted, mut way) = (None, WayIn::default());
    log.each_event(
        WayInColumns::Read,
        |error| WhyError::from(AnalysisError::from(error)),
        |event| {
            match *event {
                Event::Transmission { process, receiver, round, at } => {
                    if (process, receiver, round) == (slow.sender, slow.receiver, slow.round) && transmitted.is_none() {
                        transmitted = Some(at);
                    }
                }
                Event::Perception { process, sender, round, at, way_in } => {
                    let mut time_ps = || clocks.time_ps(process.index(), at);
                    let is_it = (process, sender, round) == (slow.receiver, slow.sender, slow.round);
                    if is_it && time_ps() == slow.perceived_ps {
                        way = way_in;
                    }
                }
                Event::Broadcast { .. } | Event::Switch(_) => {}
            }
            Ok(())
        },
    )?;
    let mut time_of = |process: ProcessId, at: Option<Counter>| Some(clocks.time_ps(process.index(), at?));
    let passed = [
        ("broadcast", Some(slow.sent_ps)),
        ("transmit stamp of the sender's kernel", time_of(slow.sender, transmitted)),
        ("receive stamp of the kernel", time_of(slow.receiver, way.kernel)),
        ("return of the receive call", time_of(slow.receiver, way.received)),
        ("perception", Some(slow.perceived_ps)),
    ];
    let passed: Vec<_> = passed.into_iter().filter_map(|(name, at_ps)| Some((name, at_ps?))).collect();
    let stage = |pair: &[(&'static str, i64)]| MessageStage {
        from: pair[0].0,
        to: pair[1].0,
        lasts_ps: pair[1].1.saturating_sub(pair[0].1),
    };
    Ok(passed.windows(2).map(stage).collect())
}

impl PeakStory {
    /// The stage that holds most of the delay, if one does.
    pub fn longest_stage(&self) -> Option<MessageStage> {
        let delay_ps = self.slow?.delay_ps() as f64;
        let longest = self.stages.iter().max_by_key(|stage| stage.lasts_ps)?;
        (self.stages.len() > 1 && longest.lasts_ps as f64 >= MOST * delay_ps).then_some(*longest)
    }
}
