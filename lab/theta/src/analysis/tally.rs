//! The counts of a pass over a log, or over a shard of it. Tallies of shards add up to the tally of the whole log.

use super::ratio::Ratio;
use crate::record::{ProcessId, Round};
use ffclock_statistics::EvenHistogram;
use serde::{Deserialize, Serialize};

/// The largest ratios that are kept for the fit of the tail.
pub(super) const EXTREMES_MAX: usize = 4096;
/// The number of examples of each fault that are kept; the others are only counted.
pub(super) const EXAMPLES_MAX: usize = 16;
/// Bins per unit in a histogram of ratios.
pub(super) const RATIO_BINS: f64 = 100.0;

/// The number of messages and events of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCounts {
    /// Messages between correct processes that were perceived: those that count.
    pub messages: u64,
    /// Messages between correct processes that were sent and never perceived: lost, or still on the way at the end.
    pub unperceived: u64,
    /// Messages whose delay is not positive: a clock is wrong. They are left out of every maximum and minimum.
    pub not_positive: u64,
    /// Perceptions of a message that had been perceived before.
    pub duplicates: u64,
    /// Events that came after their round had been given up. Results are partial if there are any.
    pub late: u64,
    /// Events of rounds that no process can have reached.
    pub stray: u64,
    /// Messages perceived as from a correct process that never sent them. In a report without those that are not
    /// judged.
    pub forged: u64,
    /// Switches that could not be judged, because the log puts them too far out of order.
    pub out_of_order: u64,
}

/// The largest ratio and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peak {
    /// The ratio.
    pub ratio: Ratio,
    /// Its time, in picoseconds since the origin of the run.
    pub at_ps: i64,
    /// The process that switched.
    pub process: ProcessId,
    /// The round it switched to.
    pub round: Round,
}

/// Figures at switches: at the first switch of each round, or at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SwitchTally {
    /// Times at which there was a switch.
    pub times: u64,
    /// Times at which nothing was in transit; the ratio is 1 by definition.
    pub idle: u64,
    /// Times at which the ratio was 1 or less, those with nothing in transit among them.
    pub at_most_one: u64,
    /// The largest ratio tau+(e) / tau_r-(e) and where: Omega.
    pub omega: Option<Peak>,
    /// The largest tau+(e) / (tau_r-(e) + D): what the theorem on the precision needs when there is a delay D.
    pub omega_with_delay: Option<Ratio>,
    /// The smallest tau_r-(e), in picoseconds.
    pub relevant_min_ps: Option<i64>,
    /// The largest tau_r-(e), in picoseconds.
    pub relevant_max_ps: Option<i64>,
    /// Ratios above 1, in hundredths.
    pub ratios: EvenHistogram,
    /// tau+(e), in picoseconds.
    pub longest: EvenHistogram,
    /// The largest ratio of each block of rounds, in the order of the blocks.
    pub blocks: Vec<(u64, Ratio)>,
    /// The largest ratios, the largest first.
    pub extremes: Vec<Ratio>,
    /// While counting: what a ratio must exceed to be among the largest. Only when there are enough of them.
    #[serde(skip)]
    floor: Option<Ratio>,
}

/// A switch with its two delays.
#[derive(Clone, Copy, Debug)]
pub(super) struct JudgedSwitch {
    pub(super) at_ps: i64,
    pub(super) process: ProcessId,
    pub(super) round: Round,
    /// tau+ in picoseconds; absent when nothing was in transit.
    pub(super) longest_ps: Option<i64>,
    /// tau_r- in picoseconds; positive.
    pub(super) relevant_ps: i64,
    /// D in picoseconds.
    pub(super) wait_ps: i64,
}

impl JudgedSwitch {
    pub(super) fn ratio(&self) -> Ratio {
        self.ratio_over(self.relevant_ps)
    }

    /// With the delay D: tau+(e) / (tau_r-(e) + D).
    fn ratio_with_delay(&self) -> Ratio {
        self.ratio_over(self.relevant_ps.saturating_add(self.wait_ps))
    }

    /// At least 1, as in the definition of Omega.
    fn ratio_over(&self, under_ps: i64) -> Ratio {
        let larger = self.longest_ps.filter(|&longest| longest > under_ps);
        larger.and_then(|longest| Ratio::of(longest, under_ps)).unwrap_or(Ratio::ONE)
    }
}

impl SwitchTally {
    pub(super) fn new(delay_bin_ps: u64) -> Self {
        SwitchTally {
            times: 0,
            idle: 0,
            at_most_one: 0,
            omega: None,
            omega_with_delay: None,
            relevant_min_ps: None,
            relevant_max_ps: None,
            ratios: EvenHistogram::new(1),
            longest: EvenHistogram::new(delay_bin_ps),
            blocks: vec![],
            extremes: vec![],
            floor: None,
        }
    }

    pub(super) fn count(&mut self, judged: &JudgedSwitch, block: u64) {
        let ratio = judged.ratio();
        self.times += 1;
        self.idle += u64::from(judged.longest_ps.is_none());
        self.omega_with_delay = self.omega_with_delay.max(Some(judged.ratio_with_delay()));
        self.relevant_min_ps = smaller(self.relevant_min_ps, Some(judged.relevant_ps));
        self.relevant_max_ps = self.relevant_max_ps.max(Some(judged.relevant_ps));
        self.longest.count(judged.longest_ps.unwrap_or(0) as u64);
        // What is not the largest of its block is not the largest of all.
        if self.block(block, ratio) {
            let JudgedSwitch { at_ps, process, round, .. } = *judged;
            keep_larger(&mut self.omega, Peak { ratio, at_ps, process, round });
        }
        // Ratios are no less than 1.
        if ratio.parts().0 == ratio.parts().1 {
            self.at_most_one += 1;
        } else {
            self.ratios.count(((ratio.as_f64() - 1.0) * RATIO_BINS) as i64 as u64);
            self.extreme(ratio);
        }
    }

    /// Whether the ratio is the largest of its block so far.
    #[inline]
    fn block(&mut self, block: u64, ratio: Ratio) -> bool {
        match self.blocks.last_mut() {
            Some((last, largest)) if *last == block => replace_if_larger(largest, ratio),
            _ => self.other_block(block, ratio),
        }
    }

    #[cold]
    fn other_block(&mut self, block: u64, ratio: Ratio) -> bool {
        match self.blocks.binary_search_by_key(&block, |&(block, _)| block) {
            Ok(place) => replace_if_larger(&mut self.blocks[place].1, ratio),
            Err(place) => {
                self.blocks.insert(place, (block, ratio));
                true
            }
        }
    }

    #[inline]
    fn extreme(&mut self, ratio: Ratio) {
        if self.floor.is_some_and(|floor| !ratio.exceeds(floor)) {
            return;
        }
        self.extremes.push(ratio);
        if self.extremes.len() >= 2 * EXTREMES_MAX {
            keep_largest(&mut self.extremes);
            self.floor = self.extremes.last().copied();
        }
    }

    fn settle(&mut self) {
        keep_largest(&mut self.extremes);
        self.floor = None;
    }

    /// Joins blocks two by two.
    fn join_blocks(&mut self) {
        for (block, ratio) in std::mem::take(&mut self.blocks) {
            self.block(block / 2, ratio);
        }
    }

    fn merge(&mut self, later: &SwitchTally) {
        self.times += later.times;
        self.idle += later.idle;
        self.at_most_one += later.at_most_one;
        if let Some(peak) = later.omega {
            keep_larger(&mut self.omega, peak);
        }
        self.omega_with_delay = self.omega_with_delay.max(later.omega_with_delay);
        self.relevant_min_ps = smaller(self.relevant_min_ps, later.relevant_min_ps);
        self.relevant_max_ps = self.relevant_max_ps.max(later.relevant_max_ps);
        self.ratios.merge(&later.ratios);
        self.longest.merge(&later.longest);
        for &(block, ratio) in &later.blocks {
            self.block(block, ratio);
        }
        self.extremes.extend(&later.extremes);
        self.settle();
    }
}

fn replace_if_larger(kept: &mut Ratio, ratio: Ratio) -> bool {
    let is_larger = ratio.exceeds(*kept);
    if is_larger {
        *kept = ratio;
    }
    is_larger
}

fn keep_largest(ratios: &mut Vec<Ratio>) {
    ratios.sort_unstable_by(|a, b| b.cmp(a));
    ratios.truncate(EXTREMES_MAX);
}

/// The smaller of two delays, of which either may be missing.
pub(super) fn smaller(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// Of two equal peaks the earlier stays.
pub(super) fn keep_larger(kept: &mut Option<Peak>, peak: Peak) {
    if kept.is_none_or(|kept| peak.ratio.exceeds(kept.ratio)) {
        *kept = Some(peak);
    }
}

/// Keeps the first few examples.
fn keep_example(examples: &mut Vec<String>, words: impl FnOnce() -> String) {
    if examples.len() < EXAMPLES_MAX {
        examples.push(words());
    }
}

/// The delays at the switch of the first process to reach a round, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchPair {
    /// When, since the origin of the run.
    pub at_ps: i64,
    /// tau_r-(e).
    pub relevant_ps: i64,
    /// tau+(e).
    pub longest_ps: i64,
}

/// Whether the run follows the rules of the algorithm.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conformance {
    /// Switches that were checked.
    pub switches: u64,
    /// Those by the catch-up rule. They have fewer than n-f contributors and no tau_r-.
    pub catch_ups: u64,
    /// Breaches of the rules.
    pub breaches: u64,
    /// The first few, as sentences.
    pub examples: Vec<String>,
    /// The largest distance in rounds between two correct processes at the same time: the precision that was reached.
    pub spread_max: u64,
}

impl Conformance {
    pub(super) fn breach(&mut self, words: impl FnOnce() -> String) {
        self.breaches += 1;
        keep_example(&mut self.examples, words);
    }

    fn merge(&mut self, later: &Conformance) {
        self.switches += later.switches;
        self.catch_ups += later.catch_ups;
        self.breaches += later.breaches;
        self.spread_max = self.spread_max.max(later.spread_max);
        later.examples.iter().for_each(|one| keep_example(&mut self.examples, || one.clone()));
    }
}

/// What was perceived from a correct process and never sent by it, as far as the log shows. Whether that breaks a rule
/// depends on how complete the log is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsent {
    /// Rounds.
    pub rounds: u64,
    /// How often they were perceived.
    pub messages: u64,
    /// The first few, as sentences.
    pub examples: Vec<String>,
}

impl Unsent {
    pub(super) fn count(&mut self, messages: u64, words: impl FnOnce() -> String) {
        self.rounds += 1;
        self.messages += messages;
        keep_example(&mut self.examples, words);
    }

    fn merge(&mut self, later: &Unsent) {
        self.rounds += later.rounds;
        self.messages += later.messages;
        later.examples.iter().for_each(|one| keep_example(&mut self.examples, || one.clone()));
    }
}

/// Delays by their place among the messages that made a process switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayHistograms {
    /// All messages.
    pub all: EvenHistogram,
    /// h_1, h_2, and so on: the fastest, the second fastest ... of those that contributed to an advance.
    pub by_rank: Vec<EvenHistogram>,
}

impl DelayHistograms {
    /// h_0: the messages that contributed to no advance.
    pub fn others(&self) -> EvenHistogram {
        self.by_rank.iter().fold(self.all.clone(), EvenHistogram::without)
    }

    fn merge(&mut self, later: &DelayHistograms) {
        self.all.merge(&later.all);
        for (rank, more) in self.by_rank.iter_mut().zip(&later.by_rank) {
            rank.merge(more);
        }
    }
}

/// The counts of a pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassTally {
    /// The number of messages and events of each kind.
    pub counts: EventCounts,
    /// tau+: the largest delay, in picoseconds.
    pub delay_max_ps: Option<i64>,
    /// tau-: the smallest.
    pub delay_min_ps: Option<i64>,
    /// The smallest delay that is not positive, with sender and receiver.
    pub worst_not_positive: Option<(i64, ProcessId, ProcessId)>,
    /// At the switches of the first correct process to reach a round.
    pub first: SwitchTally,
    /// At all switches of correct processes.
    pub all: SwitchTally,
    /// The delays at first switches with something in transit, in the order of time; only when asked for.
    pub pairs: Vec<SwitchPair>,
    /// The maximum over all times, not only over those of switches, of tau+(t) / tau_r-(t), first switches.
    pub throughout: Option<Peak>,
    /// The maximum over all times of tau+(t) / tau-(t): Theta. Only when asked for.
    pub theta: Option<Ratio>,
    /// h_x; only when asked for.
    pub delays: Option<DelayHistograms>,
    /// Whether the rules were kept, but for what `unsent` holds.
    pub conformance: Conformance,
    /// By process: what was perceived from it and never sent.
    pub unsent: Vec<Unsent>,
    /// Rounds of a block.
    pub block_rounds: u64,
    /// Which processes left events.
    pub seen: Vec<bool>,
    /// The highest round that a correct process sent.
    pub last_round: u64,
    /// Time of the first and of the last event, in picoseconds.
    pub span_ps: Option<(i64, i64)>,
}

impl PassTally {
    /// Puts what is kept in no order into its one form.
    pub(super) fn settled(mut self) -> Self {
        self.first.settle();
        self.all.settle();
        self
    }

    /// Makes blocks twice as long until there are at most `blocks`: what a pass with blocks of that length would have.
    pub(super) fn limit_blocks(&mut self, blocks: usize) {
        while self.all.blocks.len() > blocks {
            self.block_rounds = self.block_rounds.saturating_mul(2);
            self.first.join_blocks();
            self.all.join_blocks();
        }
    }

    /// Counts from an origin that is later.
    pub(super) fn move_origin(&mut self, by_ps: i64) {
        let peaks = [&mut self.first.omega, &mut self.all.omega, &mut self.throughout];
        let at = peaks.into_iter().flatten().map(|peak| &mut peak.at_ps);
        let at = at.chain(self.pairs.iter_mut().map(|pair| &mut pair.at_ps));
        for at_ps in at.chain(self.span_ps.iter_mut().flat_map(|(first, last)| [first, last])) {
            *at_ps = at_ps.saturating_sub(by_ps);
        }
    }

    /// Notes an event of a process.
    pub(super) fn see(&mut self, process: usize, time_ps: i64) {
        self.seen[process] = true;
        let (first, last) = self.span_ps.unwrap_or((time_ps, time_ps));
        self.span_ps = Some((first.min(time_ps), last.max(time_ps)));
    }

    /// Adds the tally of the shard that follows in time. The result is the tally of both together.
    pub fn merge(&mut self, later: &PassTally) {
        self.counts.merge(&later.counts);
        self.delay_max_ps = self.delay_max_ps.max(later.delay_max_ps);
        self.delay_min_ps = smaller(self.delay_min_ps, later.delay_min_ps);
        self.worst_not_positive = self.worst_not_positive.into_iter().chain(later.worst_not_positive).min();
        self.first.merge(&later.first);
        self.all.merge(&later.all);
        self.pairs.extend(&later.pairs);
        if let Some(peak) = later.throughout {
            keep_larger(&mut self.throughout, peak);
        }
        self.theta = self.theta.max(later.theta);
        if let (Some(delays), Some(more)) = (&mut self.delays, &later.delays) {
            delays.merge(more);
        }
        self.conformance.merge(&later.conformance);
        for (unsent, more) in self.unsent.iter_mut().zip(&later.unsent) {
            unsent.merge(more);
        }
        for (seen, also) in self.seen.iter_mut().zip(&later.seen) {
            *seen |= also;
        }
        self.last_round = self.last_round.max(later.last_round);
        self.span_ps = match (self.span_ps, later.span_ps) {
            (Some((first, last)), Some((also_first, also_last))) => Some((first.min(also_first), last.max(also_last))),
            (one, other) => one.or(other),
        };
    }
}

impl EventCounts {
    fn merge(&mut self, later: &EventCounts) {
        self.messages += later.messages;
        self.unperceived += later.unperceived;
        self.not_positive += later.not_positive;
        self.duplicates += later.duplicates;
        self.late += later.late;
        self.stray += later.stray;
        self.forged += later.forged;
        self.out_of_order += later.out_of_order;
    }
}
