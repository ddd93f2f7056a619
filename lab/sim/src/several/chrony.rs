//! chrony with several servers: selection by intervals and scores, and combining.
//!
//! Source: chrony 4.x, `sources.c` (SRC_SelectSource, combine_sources), `sourcestats.c` (SST_GetSelectionData,
//! SST_GetTrackingData) and chrony.conf(5) (`reselectdist`, `combinelimit`, `maxdistance`, `maxjitter`,
//! `maxclockerror`, with their defaults). Each server has the regression of `feedback/regression.rs`. The first update
//! steps the clock, as with `makestep`. The poll is the world's, or in relaxed times chosen (`polls.rs`). Left out:
//! options of servers, and strata, which are equal here.

use super::polls::ChronyPoll;
use super::steered::ManyServo;
use super::{Credence, ServerChange};
use crate::feedback::{Aim, Corrector, FittedLine, OffsetSample, SampleHistory, SystemClock};

/// `reselectdist` and `maxdistance` [s].
const RESELECT_DISTANCE: f64 = 1e-4;
const DISTANCE_MAX: f64 = 3.0;
/// `maxjitter` [s].
const JITTER_MAX: f64 = 1.0;
/// `combinelimit`.
const COMBINE_LIMIT: f64 = 3.0;
/// `maxclockerror` [s/s].
const CLOCK_ERROR_MAX: f64 = 1e-6;
/// The score at which another source is selected (SCORE_LIMIT), and for how many updates a distant one stays out
/// (DISTANT_PENALTY).
const SCORE_LIMIT: f64 = 10.0;
const DISTANT_PENALTY: u32 = 32;
/// A source is older than its first updates when its register of reachability is full.
const REACH_BITS: u32 = 8;
/// One server.
#[derive(Clone, Debug)]
struct ChronySource {
    history: SampleHistory,
    is_reachable: bool,
    /// Samples since the clock was last updated, and altogether.
    updates: u32,
    samples: u32,
    score: f64,
    distant: u32,
    poll: ChronyPoll,
    credence: Credence,
}

impl Default for ChronySource {
    fn default() -> Self {
        ChronySource {
            history: SampleHistory::default(),
            is_reachable: false,
            updates: 0,
            samples: 0,
            score: 1.0,
            distant: 0,
            poll: ChronyPoll::default(),
            credence: Credence::Unknown,
        }
    }
}

/// A source that may be selected.
#[derive(Clone, Copy, Debug)]
struct Selectable {
    server: usize,
    line: FittedLine,
    distance: f64,
    low: f64,
    high: f64,
}

/// All servers and the correction.
#[derive(Clone, Debug)]
pub(crate) struct Chrony {
    sources: Vec<ChronySource>,
    selected: Option<usize>,
    corrector: Corrector,
}

impl Chrony {
    pub(crate) fn new(servers: usize) -> Self {
        let sources = vec![ChronySource::default(); servers];
        Chrony { sources, selected: None, corrector: Corrector::default() }
    }

    /// The sources that agree with the majority at `now`.
    fn agreeing(&mut self, now: f64) -> Vec<Selectable> {
        let each = self.sources.iter().enumerate();
        let selectable: Vec<Selectable> = each.filter_map(|(server, one)| one.selectable(server, now)).collect();
        self.sources.iter_mut().for_each(|one| one.credence = Credence::Unknown);
        let majority = deepest(&selectable);
        let agrees = |one: &&Selectable| {
            majority
                .is_some_and(|(low, high)| (one.low <= low && one.high >= high) || (one.low >= low && one.high <= high))
        };
        let agreeing: Vec<Selectable> = selectable.iter().filter(agrees).copied().collect();
        for one in &selectable {
            let agrees = agreeing.iter().any(|other| other.server == one.server);
            self.judge(one.server, if agrees { Credence::Undecided } else { Credence::Disbelieved });
        }
        agreeing
    }

    fn judge(&mut self, server: usize, credence: Credence) {
        if let Some(source) = self.sources.get_mut(server) {
            source.credence = credence;
        }
    }

    /// Updates the scores and gives the source to follow.
    fn select(&mut self, agreeing: &[Selectable], updated: usize) -> Option<Selectable> {
        let held = self.selected.and_then(|server| agreeing.iter().find(|one| one.server == server).copied());
        for (server, source) in self.sources.iter_mut().enumerate() {
            let Some(one) = agreeing.iter().find(|one| one.server == server) else {
                (source.score, source.distant) = (1.0, DISTANT_PENALTY);
                continue;
            };
            let distance = one.distance + RESELECT_DISTANCE;
            match held {
                None => source.score = 1.0 / distance,
                Some(held) if server == updated || held.server == updated => {
                    source.score = (source.score * held.distance / distance).max(1.0);
                }
                Some(_) => {}
            }
        }
        let score = |one: &Selectable| self.sources.get(one.server).map_or(0.0, |source| source.score);
        let best = *agreeing.iter().max_by(|one, other| score(one).total_cmp(&score(other)))?;
        match held {
            Some(held) if best.server == held.server || score(&best) <= SCORE_LIMIT => Some(held),
            _ if self.sources.get(best.server).is_none_or(|source| source.updates == 0) => None,
            _ => {
                self.sources.iter_mut().for_each(|source| (source.score, source.distant) = (1.0, 0));
                Some(best)
            }
        }
    }

    /// The weighted mean of the sources that are near and steady enough: offset by distance, frequency by its
    /// deviation.
    fn combine(&mut self, agreeing: &[Selectable], selected: &Selectable, now: f64) -> Aim {
        let (mut offsets, mut slopes) = (Sum::default(), Sum::default());
        let reference = selected.line.at(now);
        let (mut square, mut certainty) = (0.0, 0.0);
        for one in agreeing {
            let Some(source) = self.sources.get_mut(one.server) else { continue };
            if !source.stays_near(one, selected) {
                continue;
            }
            source.credence = Credence::Believed;
            let (offset, weight) = (one.line.at(now), 1.0 / one.distance);
            let deviation = one.line.offset_deviation + (now - one.line.time) * one.line.slope_deviation;
            offsets.add(offset, weight);
            square += weight * (deviation * deviation + (offset - reference) * (offset - reference));
            slopes.add(
                one.line.slope,
                1.0 / (one.line.slope_deviation * one.line.slope_deviation).max(f64::MIN_POSITIVE),
            );
            certainty += 1.0 / (one.line.skew() * one.line.skew()).max(f64::MIN_POSITIVE);
        }
        Aim {
            time: now,
            offset: offsets.mean(),
            offset_deviation: libm::sqrt(square / offsets.weight),
            slope: slopes.mean(),
            skew: 1.0 / libm::sqrt(certainty),
        }
    }
}

/// A weighted mean.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    weight: f64,
    sum: f64,
}

impl Sum {
    fn add(&mut self, value: f64, weight: f64) {
        self.weight += weight;
        self.sum += weight * value;
    }

    fn mean(self) -> f64 {
        self.sum / self.weight
    }
}

impl ChronySource {
    /// The interval about the best single sample: the one with the smallest distance.
    fn selectable(&self, server: usize, now: f64) -> Option<Selectable> {
        let line = self.history.line.filter(|line| self.is_reachable && line.deviation <= JITTER_MAX)?;
        let skew = line.skew();
        let distance = |delay: f64, claimed: f64, time: f64| 0.5 * delay + claimed + (now - time) * skew;
        let each = self.history.in_use().map(|point| (distance(point.delay, point.claimed, point.time), point));
        let (distance, best) = each.min_by(|one, other| one.0.total_cmp(&other.0))?;
        let offset = best.offset + (now - best.time) * line.slope;
        let (low, high) = (offset - distance, offset + distance);
        (distance <= DISTANCE_MAX).then_some(Selectable { server, line, distance, low, high })
    }

    /// Whether the source is combined; one that was too far stays out for a while.
    fn stays_near(&mut self, one: &Selectable, selected: &Selectable) -> bool {
        let limit = COMBINE_LIMIT * (selected.distance + RESELECT_DISTANCE);
        let apart = (selected.line.slope - one.line.slope).abs();
        let allowed = COMBINE_LIMIT * (selected.line.skew() + one.line.skew() + CLOCK_ERROR_MAX);
        if one.server != selected.server && (one.distance > limit || apart > allowed) {
            self.distant = if self.samples >= REACH_BITS { DISTANT_PENALTY } else { 1 };
        } else {
            self.distant = self.distant.saturating_sub(1);
        }
        self.distant == 0
    }
}

impl FittedLine {
    fn at(&self, time: f64) -> f64 {
        self.offset + self.slope * (time - self.time)
    }
}

/// The interval that lies in the most intervals, if these are more than half.
fn deepest(selectable: &[Selectable]) -> Option<(f64, f64)> {
    let edges = |one: &Selectable| [(one.low, 0), (one.high, 1)];
    let mut edges: Vec<(f64, i32)> = selectable.iter().flat_map(edges).collect();
    edges.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let (mut depth, mut best, mut interval) = (0, 0, None);
    for (at, kind) in edges {
        if kind == 0 {
            depth += 1;
            if depth > best {
                (best, interval) = (depth, Some((at, at)));
            }
        } else {
            if depth == best {
                interval = interval.map(|(low, _)| (low, at));
            }
            depth -= 1;
        }
    }
    interval.filter(|_| 2 * best > selectable.len())
}

impl ManyServo for Chrony {
    fn sample(&mut self, server: usize, sample: &OffsetSample, clock: &mut SystemClock) {
        let Some(source) = self.sources.get_mut(server) else { return };
        source.samples += 1;
        let expected = source.history.line.map(|line| line.at(sample.raw_time));
        if source.history.take(sample).is_none() {
            return;
        }
        if let Some(expected) = expected {
            let error = (sample.raw_offset - expected).abs();
            source.poll.update(error, 0.5 * sample.delay, source.history.in_use().count());
        }
        source.updates += 1;
        let now = sample.raw_time;
        let agreeing = self.agreeing(now);
        let selected = self.select(&agreeing, server);
        self.selected = selected.map(|one| one.server);
        let Some(selected) = selected else { return };
        self.judge(selected.server, Credence::Believed);
        if self.sources.get(selected.server).is_none_or(|source| source.updates == 0) {
            self.judge_as_before(&agreeing);
            return;
        }
        self.sources.iter_mut().for_each(|source| source.updates = 0);
        let aim = self.combine(&agreeing, &selected, now);
        // What the clock is ahead of the uncorrected time has been corrected already.
        let aim = Aim { offset: aim.offset - (sample.raw_offset - sample.offset), ..aim };
        if self.corrector.is_first() {
            clock.step(sample.counter, aim.offset);
            self.corrector.correct(Aim { offset: 0.0, ..aim }, sample.counter, clock);
        } else {
            self.corrector.correct(aim, sample.counter, clock);
        }
    }

    fn lost(&mut self, server: usize) {
        self.sources.iter_mut().skip(server).take(1).for_each(|source| source.poll.lost());
    }

    fn doublings(&self, server: usize) -> u32 {
        self.sources.get(server).map_or(0, |source| source.poll.doublings())
    }

    fn limit_doublings(&mut self, most: u32) {
        self.sources.iter_mut().for_each(|source| source.poll.limit(most));
    }

    fn change(&mut self, server: usize, change: ServerChange) {
        let Some(source) = self.sources.get_mut(server) else { return };
        source.is_reachable = change == ServerChange::Reachable;
        if !source.is_reachable {
            source.credence = Credence::Unknown;
        }
        if change == ServerChange::Left {
            *source = ChronySource::default();
        }
    }

    fn credence(&self, server: usize) -> Credence {
        self.sources.get(server).map(|one| one.credence).unwrap_or_default()
    }
}

impl Chrony {
    /// Between two updates of the clock those that were combined at the last one are believed.
    fn judge_as_before(&mut self, agreeing: &[Selectable]) {
        for one in agreeing {
            if self.sources.get(one.server).is_some_and(|source| source.distant == 0) {
                self.judge(one.server, Credence::Believed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(low: f64, high: f64) -> Selectable {
        let line = FittedLine {
            time: 0.0,
            offset: 0.5 * (low + high),
            slope: 0.0,
            deviation: 1e-6,
            offset_deviation: 1e-6,
            slope_deviation: 1e-9,
            count: 10,
        };
        Selectable { server: 0, line, distance: 0.5 * (high - low), low, high }
    }

    #[test]
    fn more_than_half_must_share_an_interval() {
        let three = [source(0.0, 3.0), source(1.0, 4.0), source(10.0, 11.0)];
        assert_eq!(deepest(&three), Some((1.0, 3.0)));
        assert_eq!(deepest(&three[1..]), None);
        assert_eq!(deepest(&[]), None);
    }
}
