//! One pass over the events of a log.

mod judge;
mod release;
mod take;

use super::clock::Clocks;
use super::histogram::Histogram;
use super::pending::Pending;
use super::tally::{Conformance, Counts, DelayHistograms, SwitchTally, Tally, Unsent};
use super::transit::{Longest, Shortest};
use super::window::Window;
use crate::record::{Form, Origin, Run, SwitchRule};

/// Where a switch is put in time, against the broadcast of its new round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamping {
    /// Before it: the messages just being sent are not yet in transit. Fits the paper's histograms.
    BeforeBroadcast,
    /// After it: they are. What the theorem on the precision needs.
    AfterBroadcast,
}

/// Whether something that costs time is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Do it.
    Yes,
    /// Do without.
    No,
}

/// The times whose switches and messages count: after `after_ps`, up to and including `until_ps`. What was sent before and is still in transit
/// then is not counted, but its delay is among those whose largest and smallest are tau+ and tau-.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Picoseconds since the origin of the run.
    pub after_ps: i64,
    /// Picoseconds since the origin of the run.
    pub until_ps: i64,
}

impl Range {
    /// All times.
    pub const ALL: Range = Range { after_ps: i64::MIN, until_ps: i64::MAX };

    /// Whether no time counts.
    pub const fn is_empty(&self) -> bool {
        self.after_ps >= self.until_ps
    }

    /// Whether a message is in transit at a time that counts: sent by then, and not yet perceived.
    pub const fn holds_transit(&self, sent_ps: i64, perceived_ps: i64) -> bool {
        !self.is_empty() && sent_ps <= self.until_ps && self.after_ps < perceived_ps.saturating_sub(1)
    }

    /// Whether `time_ps` counts.
    pub const fn holds(&self, time_ps: i64) -> bool {
        self.after_ps < time_ps && time_ps <= self.until_ps
    }
}

/// What a pass is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where switches are stamped.
    pub stamping: Stamping,
    /// Theta, which needs a heap.
    pub theta: Wanted,
    /// The histograms h_x.
    pub delays: Wanted,
    /// The width of the bins of delays, in picoseconds.
    pub delay_bin_ps: u64,
    /// About how many messages make a block, of which the largest Omega is kept.
    pub block_messages: u64,
    /// How many rounds are held at most while messages of older ones are outstanding.
    pub window_rounds: u64,
    /// Which times count.
    pub range: Range,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            stamping: Stamping::AfterBroadcast,
            theta: Wanted::No,
            delays: Wanted::No,
            delay_bin_ps: 1_000_000,
            block_messages: 1_000_000,
            window_rounds: 1 << 17,
            range: Range::ALL,
        }
    }
}

/// A window may take this much memory, whatever the number of rounds that was asked for.
const WINDOW_BYTES_MAX: u64 = 1 << 30;

/// What is known of a process.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    /// The highest round it sent, of sends that have been read.
    sent: u64,
    /// The highest round it reached, of switches and first sends that have been released.
    reached: u64,
    /// The round of its last switch that was read; 0 before the first.
    switched_to: u64,
    /// The round that it went to before it sent anything, by messages that had come before its start; 0 if it began in round 1.
    began_in: u64,
    /// A switch that waits for the broadcast of its round.
    held: Option<Turn>,
}

/// A message that was sent to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Send {
    sender: usize,
    round: u64,
    first_of_process: bool,
}

/// A switch, with its times in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    process: usize,
    from: u64,
    to: u64,
    at_ps: i64,
    decided_ps: i64,
    rule: SwitchRule,
}

/// Where a shard was cut out of its log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edges {
    pub(super) begin_is_cut: bool,
    pub(super) end_is_cut: bool,
}

/// What a pass over a part of a log knows about what it has not read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Certainty {
    /// When a process was first to reach a round, with the places of all correct processes known.
    settled_ps: Option<i64>,
    /// The last perception of a message whose sending was not read.
    unsent_ps: Option<i64>,
}

impl Certainty {
    /// Whether the tally is that of a single pass over the whole log.
    pub(super) fn is_enough(&self, tally: &Tally, edges: Edges, range: Range) -> bool {
        let counts = &tally.counts;
        let settled = self.settled_ps.is_some_and(|settled| settled <= range.after_ps);
        let begins_well = settled && self.unsent_ps.is_none_or(|unsent| unsent <= range.after_ps);
        let nothing_lost = counts.late == 0 && counts.out_of_order == 0 && counts.stray == 0;
        (!edges.begin_is_cut || (begins_well && nothing_lost)) && (!edges.end_is_cut || counts.unperceived == 0)
    }
}

/// A pass over the events of a log, in bounded memory.
pub struct Pass {
    options: Options,
    clocks: Clocks,
    correct: Vec<bool>,
    /// Who perceives: correct processes; in an imported log only the client, process 0.
    listens: Vec<bool>,
    listeners: u32,
    origin: Origin,
    form: Form,
    advance_threshold: usize,
    catch_up_threshold: usize,
    disorder_ps: i64,
    /// D.
    wait_ps: i64,
    /// How far each stream has been read.
    streams_ps: Vec<i64>,
    /// How far all have been: nothing earlier will come.
    watermark_ps: i64,
    positions: Vec<Position>,
    /// Processes with a held switch: nearly always none or one.
    holders: Vec<usize>,
    /// When the earliest of their switches was: nothing later may be worked on.
    held_ps: i64,
    /// The round that each process is in by the sends that have been released; 0 before the first.
    rounds_in: Vec<u64>,
    /// The largest of them.
    round_max: u64,
    window: Window,
    sends: Pending<Send>,
    turns: Pending<Turn>,
    longest: Longest,
    shortest: Shortest,
    /// The highest round that any correct process has reached.
    frontier: u64,
    /// The largest delay that was in transit at any time since the last first switch.
    longest_since_first: Option<i64>,
    certainty: Certainty,
    scratch: Vec<i64>,
    turn_scratch: Vec<Turn>,
    tally: Tally,
}

impl Pass {
    /// A pass over a log of `run` with so many streams.
    pub fn new(run: &Run, clocks: Clocks, streams: usize, options: Options) -> Self {
        let processes = run.processes as usize;
        let correct = run.correct();
        let listens = |(process, &correct): (usize, &bool)| correct && (run.origin != Origin::Imported || process == 0);
        let listens: Vec<bool> = correct.iter().enumerate().map(listens).collect();
        let correct_count = correct.iter().filter(|&&correct| correct).count();
        let round_bytes = (processes * (processes + 2) * 8) as u64;
        let rounds = options.window_rounds.min(WINDOW_BYTES_MAX / round_bytes);
        Pass {
            tally: empty_tally(run, &options, correct_count as u64),
            options,
            clocks,
            listeners: listens.iter().filter(|&&listens| listens).count() as u32,
            listens,
            correct,
            origin: run.origin,
            form: run.form,
            advance_threshold: run.advance_threshold() as usize,
            catch_up_threshold: run.catch_up_threshold() as usize,
            disorder_ps: i64::try_from(run.disorder_ps).unwrap_or(i64::MAX),
            wait_ps: i64::try_from(run.delay_ps).unwrap_or(i64::MAX),
            streams_ps: vec![i64::MIN; streams.max(1)],
            watermark_ps: i64::MIN,
            positions: vec![Position::default(); processes],
            holders: vec![],
            held_ps: i64::MAX,
            rounds_in: vec![0; processes],
            round_max: 0,
            window: Window::new(processes, rounds),
            sends: Pending::default(),
            turns: Pending::default(),
            longest: Longest::default(),
            shortest: Shortest::default(),
            frontier: 0,
            longest_since_first: None,
            certainty: Certainty::default(),
            scratch: vec![],
            turn_scratch: vec![],
        }
    }

    /// A stream has been read that far.
    fn read(&mut self, stream: usize, until_ps: i64) {
        self.streams_ps[stream] = self.streams_ps[stream].max(until_ps);
        self.watermark_ps = self.streams_ps.iter().copied().min().unwrap_or(i64::MAX);
    }

    /// How far a stream has been read, by the latest of its events less the disorder that it may have.
    pub(super) fn read_until(&self, stream: usize) -> i64 {
        self.streams_ps[stream]
    }

    /// The stream that lags behind most, to be read next.
    pub fn hungriest(&self) -> usize {
        let slowest = self.streams_ps.iter().enumerate().min_by_key(|&(_, &time)| time);
        slowest.map_or(0, |(stream, _)| stream)
    }
}

fn empty_tally(run: &Run, options: &Options, correct: u64) -> Tally {
    let ranks = if options.delays == Wanted::Yes { run.advance_threshold() as usize } else { 0 };
    let delays = Histogram::new(options.delay_bin_ps);
    let delays = DelayHistograms { all: delays.clone(), by_rank: vec![delays; ranks] };
    Tally {
        counts: Counts::default(),
        delay_max_ps: None,
        delay_min_ps: None,
        worst_not_positive: None,
        first: SwitchTally::new(options.delay_bin_ps),
        all: SwitchTally::new(options.delay_bin_ps),
        throughout: None,
        theta: None,
        delays: (options.delays == Wanted::Yes).then_some(delays),
        conformance: Conformance::default(),
        unsent: vec![Unsent::default(); run.processes as usize],
        block_rounds: options.block_messages.div_ceil((correct * correct).max(1)).max(1),
        seen: vec![false; run.processes as usize],
        last_round: 0,
        span_ps: None,
    }
}
