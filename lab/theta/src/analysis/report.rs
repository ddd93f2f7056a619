//! The results of an analysis, from its tally.

use super::ratio::Ratio;
use super::statistics::{BootstrapInterval, TailFit, bootstrap, fit_tail};
use super::tally::{DelayHistograms, EXAMPLES_MAX, EventCounts, PassTally, Peak, SwitchTally, Unsent};
use crate::record::{FaultKind, LogOrigin, RunDescription};
use ffclock_statistics::EvenHistogram;
use ffclock_units::Span;
use serde::Serialize;

/// The results of an analysis. Times are in picoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct ThetaReport {
    /// The number of processes, n.
    pub processes: u32,
    /// The number of processes that may be Byzantine, f.
    pub tolerated: u32,
    /// The delay before an advance, D.
    pub delay_ps: u64,
    /// How many of the processes count as correct.
    pub correct: u32,
    /// False if anything is missing, broken or contradictory; `remarks` says what.
    pub whole: bool,
    /// What is missing, broken or contradictory.
    pub remarks: Vec<String>,
    /// The number of messages and events of each kind.
    pub counts: EventCounts,
    /// Rounds that were reached.
    pub rounds: u64,
    /// From the first event to the last.
    pub duration_ps: u64,
    /// tau+: the largest delay.
    pub delay_max_ps: Option<i64>,
    /// tau-: the smallest delay.
    pub delay_min_ps: Option<i64>,
    /// Theta: the largest ratio at any time of the largest to the smallest delay in transit.
    pub theta: Option<Ratio>,
    /// Theta_po: tau+ / tau-.
    pub theta_po: Option<Ratio>,
    /// At first switches.
    pub first: Omega,
    /// At all switches.
    pub all: Omega,
    /// The largest tau+(t) / tau_r-(t) at any time, not only at switches; first switches.
    pub throughout: Option<Peak>,
    /// Whether the rules of the algorithm were kept.
    pub conformance: ConformanceReport,
    /// Histograms; only when asked for.
    pub histograms: Option<Histograms>,
}

/// The data of the figures.
#[derive(Clone, Debug, Serialize)]
pub struct Histograms {
    /// h_0 (contributed to no advance), h_1 (the fastest that contributed), h_2, and so on; bins in picoseconds.
    pub delays: Vec<EvenHistogram>,
    /// tau+ at first switches; bins in picoseconds.
    pub longest: EvenHistogram,
    /// Ratios above 1 at first switches, less 1, in bins of 0.01.
    pub first: EvenHistogram,
    /// The same at all switches.
    pub all: EvenHistogram,
}

/// Figures at switches.
#[derive(Clone, Debug, Serialize)]
pub struct Omega {
    /// Times of switches.
    pub switches: u64,
    /// At which nothing was in transit.
    pub idle: u64,
    /// At which the ratio was 1 or less.
    pub at_most_one: u64,
    /// Omega: the largest ratio tau+(e) / tau_r-(e), and where.
    pub omega: Option<Peak>,
    /// The largest tau+(e) / (tau_r-(e) + D).
    pub omega_with_delay: Option<Ratio>,
    /// tau_r-: the smallest.
    pub relevant_min_ps: Option<i64>,
    /// The largest tau_r-.
    pub relevant_max_ps: Option<i64>,
    /// Theta_ro: tau+ / tau_r-.
    pub theta_ro: Option<Ratio>,
    /// g = Theta_po / Omega.
    pub g: Option<f64>,
    /// g_r = Theta_ro / Omega.
    pub g_r: Option<f64>,
    /// Rounds of a block: about 10^6 messages unless asked otherwise.
    pub block_rounds: u64,
    /// The largest ratio of a block, on average.
    pub per_block: Option<BootstrapInterval>,
    /// The tail of the ratios.
    pub tail: Option<TailFit>,
}

/// Whether the run follows the rules of the algorithm.
#[derive(Clone, Debug, Serialize)]
pub struct ConformanceReport {
    /// Whether no rule was broken.
    pub kept: bool,
    /// Switches that were checked.
    pub switches: u64,
    /// Those by the catch-up rule.
    pub catch_ups: u64,
    /// How often a rule was broken.
    pub breaches: u64,
    /// Rounds that were perceived from a process whose log is too incomplete to show whether it sent them.
    pub not_judged: u64,
    /// The first few breaches.
    pub examples: Vec<String>,
    /// The largest distance in rounds between correct processes.
    pub spread_max: u64,
    /// The precision that the theorem grants: ceil(Omega) + 1. Absent where links lost or held messages on purpose:
    /// the theorem needs links that deliver.
    pub spread_bound: Option<u64>,
}

impl ThetaReport {
    /// The results of a run from its tally. `damage` is what the reader of the log found.
    pub fn new(run: &RunDescription, tally: &PassTally, damage: &[String]) -> Self {
        let correct = run.correct();
        let gaps = LogGaps::new(run, tally, damage);
        let conformance = conformance(run, tally, &gaps);
        let unjudged = gaps.of(tally).map(|unsent| unsent.messages).sum::<u64>();
        let forged = tally.counts.forged.saturating_sub(unjudged);
        let mut report = ThetaReport {
            processes: run.processes,
            tolerated: run.tolerated,
            delay_ps: run.delay_ps,
            correct: correct.iter().filter(|&&correct| correct).count() as u32,
            whole: false,
            remarks: remarks(run, tally, damage, &gaps),
            counts: EventCounts { forged, ..tally.counts },
            rounds: tally.last_round,
            duration_ps: tally.span_ps.map_or(0, |(first, last)| last.saturating_sub(first) as u64),
            delay_max_ps: tally.delay_max_ps,
            delay_min_ps: tally.delay_min_ps,
            theta: tally.theta,
            theta_po: ratio(tally.delay_max_ps, tally.delay_min_ps),
            first: Omega::new(tally, &tally.first),
            all: Omega::new(tally, &tally.all),
            throughout: tally.throughout,
            conformance,
            histograms: tally.delays.as_ref().map(|delays| histograms(tally, delays)),
        };
        report.whole = report.remarks.is_empty();
        report
    }
}

impl Omega {
    fn new(tally: &PassTally, seen: &SwitchTally) -> Self {
        let theta_po = ratio(tally.delay_max_ps, tally.delay_min_ps);
        let theta_ro = ratio(tally.delay_max_ps, seen.relevant_min_ps);
        let over_omega = |ratio: Option<Ratio>| Some(ratio?.as_f64() / seen.omega?.ratio.as_f64());
        let blocks: Vec<f64> = seen.blocks.iter().map(|(_, ratio)| ratio.as_f64()).collect();
        let extremes: Vec<f64> = seen.extremes.iter().map(|ratio| ratio.as_f64()).collect();
        Omega {
            switches: seen.times,
            idle: seen.idle,
            at_most_one: seen.at_most_one,
            omega: seen.omega,
            omega_with_delay: seen.omega_with_delay,
            relevant_min_ps: seen.relevant_min_ps,
            relevant_max_ps: seen.relevant_max_ps,
            theta_ro,
            g: over_omega(theta_po),
            g_r: over_omega(theta_ro),
            block_rounds: tally.block_rounds,
            // The first and the last block may be shorter than the others.
            per_block: blocks.get(1..blocks.len().saturating_sub(1)).and_then(bootstrap),
            tail: fit_tail(&extremes, seen.times),
        }
    }
}

fn histograms(tally: &PassTally, delays: &DelayHistograms) -> Histograms {
    let by_rank = std::iter::once(delays.others()).chain(delays.by_rank.iter().cloned());
    Histograms {
        delays: by_rank.collect(),
        longest: tally.first.longest.clone(),
        first: tally.first.ratios.clone(),
        all: tally.all.ratios.clone(),
    }
}

fn ratio(over: Option<i64>, under: Option<i64>) -> Option<Ratio> {
    Ratio::of(over?, under?)
}

/// Precision by theta.md (derived): at most ceil(Omega) + 1. The delay D only makes the distances smaller.
fn conformance(run: &RunDescription, tally: &PassTally, gaps: &LogGaps) -> ConformanceReport {
    use FaultKind::{LateStart, LinkLoss, Partition};
    let delivers = run.origin != LogOrigin::Imported
        && !run.faults.iter().any(|fault| matches!(fault.kind, LateStart | LinkLoss | Partition));
    // Messages in a gap may have taken longer than all others.
    let spread_bound = tally.throughout.filter(|_| delivers && !gaps.any()).map(|peak| {
        let (over, under) = peak.ratio.parts();
        over.div_ceil(under) + 1
    });
    let seen = &tally.conformance;
    let spread_kept = spread_bound.is_none_or(|bound| seen.spread_max <= bound);
    let judged = || tally.unsent.iter().enumerate().filter(|&(process, _)| !gaps.concern(process)).map(|(_, one)| one);
    let breaches = seen.breaches + judged().map(|unsent| unsent.rounds).sum::<u64>();
    let examples = seen.examples.iter().chain(judged().flat_map(|unsent| &unsent.examples));
    ConformanceReport {
        kept: breaches == 0 && spread_kept,
        switches: seen.switches,
        catch_ups: seen.catch_ups,
        breaches,
        not_judged: gaps.of(tally).map(|unsent| unsent.rounds).sum(),
        examples: examples.take(EXAMPLES_MAX).cloned().collect(),
        spread_max: seen.spread_max,
        spread_bound,
    }
}

/// The gaps of a log. For a message in a gap the log may have perceptions and no broadcast, and nothing follows from
/// that.
struct LogGaps {
    /// Correct processes that left no events.
    absent: Vec<usize>,
    is_damaged: bool,
}

impl LogGaps {
    fn new(run: &RunDescription, tally: &PassTally, damage: &[String]) -> Self {
        let correct = run.correct();
        let absent = (0..correct.len()).filter(|&process| correct[process] && !tally.seen[process]).collect();
        LogGaps { absent, is_damaged: !damage.is_empty() }
    }

    fn any(&self) -> bool {
        self.is_damaged || !self.absent.is_empty()
    }

    fn concern(&self, process: usize) -> bool {
        self.is_damaged || self.absent.contains(&process)
    }

    /// What cannot be judged.
    fn of<'a>(&'a self, tally: &'a PassTally) -> impl Iterator<Item = &'a Unsent> {
        tally.unsent.iter().enumerate().filter(|&(process, _)| self.concern(process)).map(|(_, unsent)| unsent)
    }
}

fn remarks(run: &RunDescription, tally: &PassTally, damage: &[String], gaps: &LogGaps) -> Vec<String> {
    let mut remarks = damage.to_vec();
    let counts = &tally.counts;
    for &process in &gaps.absent {
        let host = &run.hosts[run.host_of[process].index()].name;
        remarks.push(format!("process {process} on host {host} left no events: its log is missing"));
    }
    if let Some((delay, sender, receiver)) = tally.worst_not_positive {
        let (from, to) = (host_name(run, sender.index()), host_name(run, receiver.index()));
        let (number, delay) = (counts.not_positive, Span::from_seconds(delay as f64 * 1e-12));
        remarks.push(format!(
            "{number} messages arrive before they are sent, down to {delay} from {from} to {to}: a clock is wrong"
        ));
    }
    for fault in run.faults.iter().filter(|fault| fault.kind.makes_clock_false()) {
        let host = fault.host.and_then(|host| run.hosts.get(host.index())).map_or("?", |host| &host.name);
        remarks
            .push(format!("by a fault of this run the clock of host {host} leaves its bound: no delay of it is right"));
    }
    let mut counted = |count: u64, words: &str| {
        if count > 0 {
            remarks.push(format!("{count} {words}"));
        }
    };
    counted(counts.late, "events came after their round had been given up: enlarge the window (--window-rounds)");
    counted(counts.stray, "events belong to rounds that no process can have reached");
    counted(counts.out_of_order, "switches could not be judged: the log is out of order by more than its disorder_ps");
    counted(run.unrecorded, "events were lost by the recorder");
    remarks
}

fn host_name(run: &RunDescription, process: usize) -> &str {
    &run.hosts[run.host_of[process].index()].name
}
