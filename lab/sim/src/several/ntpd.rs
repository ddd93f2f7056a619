//! ntpd with several servers: clock filter, selection, clustering, combining, and the loop.
//!
//! Source: RFC 5905, section 10 (clock filter, appendix A.5.2), 11.2.1 (selection, appendix A.5.5.1), 11.2.2 and
//! 11.2.3 (clustering, combining), and appendix A.5.5.2 (root distance), with the parameters of appendix A.1.1 but for
//! two: the least distance is ntpd's 1 ms (`tos mindist` of its documentation), the largest its 1.5 s (`tos maxdist`).
//! A server is a survivor of the selection if its interval meets that of the majority, as in ntpd from 4.2.7 on. The
//! loop is that of `feedback/pll.rs`; the first update steps the clock, as with `-g`, and waits for full filters:
//! before, the intervals are so wide that a liar is believed and the first measurement of the frequency spoilt. The
//! poll is the world's, or in relaxed times chosen (`polls.rs`). Left out: preferred servers, orphans, and the
//! anti-clockhop of ntpd.

use super::polls::NtpdPoll;
use super::steered::ManyServo;
use super::{Credence, ServerChange};
use crate::feedback::{
    ClockDiscipline, ClockFilter, FilterChoice, FilterStage, LOST_MAX, OffsetSample, PollWatch, STAGES, SystemClock,
};
use ffclock_units::Counter;

/// PHI: how fast the error of a measurement grows [s/s].
const TOLERANCE: f64 = 15e-6;
/// MAXDISP, of an empty stage of the filter [s].
const DISPERSION_MAX: f64 = 16.0;
/// 2^-23 s of ours; the server's is in its claim.
const PRECISION: f64 = 1.2e-7;
/// `mindist` and `maxdist` [s].
const DISTANCE_MIN: f64 = 1e-3;
const DISTANCE_MAX: f64 = 1.5;
/// NMIN: clustering leaves as many.
const SURVIVORS_MIN: usize = 3;

/// One server.
#[derive(Clone, Debug, Default)]
struct Association {
    filter: ClockFilter,
    chosen: Option<FilterChoice>,
    watch: PollWatch,
    claimed: f64,
    /// Requests in a row without an answer.
    lost: u32,
    is_reachable: bool,
    credence: Credence,
}

/// A server that may be selected.
#[derive(Clone, Copy, Debug)]
struct FitServer {
    server: usize,
    offset: f64,
    distance: f64,
    jitter: f64,
}

/// All servers and the loop.
#[derive(Clone, Debug)]
pub(crate) struct Ntpd {
    associations: Vec<Association>,
    discipline: ClockDiscipline,
    system: Option<usize>,
    updated: f64,
    poll: NtpdPoll,
}

impl Ntpd {
    /// Of servers that are asked once in `poll` seconds at least.
    pub(crate) fn new(servers: usize, poll: f64) -> Self {
        Ntpd {
            associations: vec![Association::default(); servers],
            discipline: ClockDiscipline::default(),
            system: None,
            updated: f64::NEG_INFINITY,
            poll: NtpdPoll::new(poll),
        }
    }

    /// The survivors at `now`, the nearest first.
    fn survivors(&mut self, now: f64) -> Vec<FitServer> {
        self.associations.iter_mut().for_each(|one| one.credence = Credence::Unknown);
        let each = self.associations.iter().enumerate();
        let fit: Vec<FitServer> = each.filter_map(|(server, one)| one.fit(server, now)).collect();
        let majority = intersection(&fit);
        let meets = |one: &&FitServer| {
            majority.is_some_and(|(low, high)| one.offset + one.distance >= low && one.offset - one.distance <= high)
        };
        let mut survivors: Vec<FitServer> = fit.iter().filter(meets).copied().collect();
        survivors.sort_by(|one, other| one.distance.total_cmp(&other.distance));
        self.judge(&fit, Credence::Disbelieved);
        self.judge(&survivors, Credence::Undecided);
        cluster(&mut survivors);
        self.judge(&survivors, Credence::Believed);
        survivors
    }

    fn judge(&mut self, servers: &[FitServer], credence: Credence) {
        for one in servers {
            if let Some(association) = self.associations.get_mut(one.server) {
                association.credence = credence;
            }
        }
    }

    /// Whether some server that answers has not filled its filter yet.
    fn is_filling(&self) -> bool {
        self.associations.iter().any(|one| one.is_reachable && one.filter.stages.len() < STAGES)
    }

    /// Selects, and updates the clock if the system peer has something new.
    fn select(&mut self, sample: &OffsetSample, clock: &mut SystemClock) {
        if self.discipline.is_unset() && self.is_filling() {
            return;
        }
        let survivors = self.survivors(sample.raw_time);
        // No hop while the old one is among the survivors: all have the same stratum here.
        let kept = survivors.iter().find(|one| Some(one.server) == self.system).or(survivors.first());
        self.system = kept.map(|one| one.server);
        let Some(system) = self.system.and_then(|server| self.associations.get(server)) else { return };
        let Some(chosen) = system.chosen.filter(|chosen| chosen.time > self.updated) else { return };
        self.updated = chosen.time;
        self.discipline.poll = self.poll.poll().unwrap_or(system.watch.poll);
        let combined = FilterChoice { offset: combine(&survivors), time: chosen.time };
        let is_stepped = if self.discipline.is_unset() {
            self.discipline.large(combined, sample, clock)
        } else {
            self.discipline.take(combined, sample, clock)
        };
        self.poll.update(combined.offset);
        if is_stepped {
            self.poll.restart();
            self.associations.iter_mut().for_each(Association::clear);
        }
    }
}

impl Association {
    fn clear(&mut self) {
        self.filter.clear();
        self.chosen = None;
    }

    /// The dispersion of the filter (appendix A.5.2): the stages by their delay, each half as heavy as the one before;
    /// empty ones count as very uncertain.
    fn dispersion(&self, now: f64) -> f64 {
        let mut stages = self.filter.stages.clone();
        stages.sort_by(|one, other| one.delay.total_cmp(&other.delay));
        let own = |stage: &FilterStage| PRECISION + TOLERANCE * (now - stage.time);
        let each = stages.iter().map(own).chain(std::iter::repeat(DISPERSION_MAX));
        each.take(STAGES).fold((0.0, 0.5), |(sum, weight), one| (sum + weight * one, 0.5 * weight)).0
    }

    fn fit(&self, server: usize, now: f64) -> Option<FitServer> {
        let (chosen, last) = (self.chosen.filter(|_| self.is_reachable)?, self.filter.last?);
        let half = DISTANCE_MIN.max(last.delay) / 2.0;
        let aged = TOLERANCE * (now - chosen.time);
        let distance = half + self.claimed + self.dispersion(now) + aged + self.filter.jitter;
        (distance < DISTANCE_MAX).then_some(FitServer {
            server,
            offset: chosen.offset,
            distance,
            jitter: self.filter.jitter,
        })
    }
}

/// The interval of the majority (appendix A.5.5.1): the smallest that holds the midpoints of all but `allowed` and
/// touches the intervals of all but `allowed`, for the smallest `allowed` there is.
fn intersection(fit: &[FitServer]) -> Option<(f64, f64)> {
    let edges = |one: &FitServer| [(one.offset - one.distance, -1), (one.offset, 0), (one.offset + one.distance, 1)];
    let mut edges: Vec<(f64, i32)> = fit.iter().flat_map(edges).collect();
    edges.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let count = fit.len() as i32;
    // From one side: the edge at which enough intervals have begun, and the midpoints passed before it.
    let reach = |edges: &mut dyn Iterator<Item = &(f64, i32)>, begins: i32, needed: i32| {
        let (mut open, mut midpoints) = (0, 0);
        for (at, kind) in edges {
            open += begins * kind;
            if open >= needed {
                return Some((*at, midpoints));
            }
            midpoints += i32::from(*kind == 0);
        }
        None
    };
    for allowed in (0..count).take_while(|allowed| 2 * allowed < count) {
        let low = reach(&mut edges.iter(), -1, count - allowed);
        let high = reach(&mut edges.iter().rev(), 1, count - allowed);
        if let (Some((low, below)), Some((high, above))) = (low, high)
            && below + above <= allowed
            && high > low
        {
            return Some((low, high));
        }
    }
    None
}

/// Leaves out the survivor that is farthest from the others, until that brings nothing (section 11.2.2).
fn cluster(survivors: &mut Vec<FitServer>) {
    while survivors.len() > SURVIVORS_MIN {
        let others = (survivors.len() - 1) as f64;
        let spread = |one: &FitServer| {
            let squares = survivors.iter().map(|other| (other.offset - one.offset) * (other.offset - one.offset));
            libm::sqrt(squares.sum::<f64>() / others)
        };
        let spreads: Vec<f64> = survivors.iter().map(spread).collect();
        let farthest = spreads.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1));
        let least = survivors.iter().map(|one| one.jitter).fold(f64::INFINITY, f64::min);
        match farthest {
            Some((index, spread)) if *spread >= least => _ = survivors.remove(index),
            _ => return,
        }
    }
}

/// The offset of the survivors, each weighing by its distance (section 11.2.3).
fn combine(survivors: &[FitServer]) -> f64 {
    let weights: f64 = survivors.iter().map(|one| 1.0 / one.distance).sum();
    survivors.iter().map(|one| one.offset / one.distance).sum::<f64>() / weights
}

impl ManyServo for Ntpd {
    fn sample(&mut self, server: usize, sample: &OffsetSample, clock: &mut SystemClock) {
        let Some(association) = self.associations.get_mut(server) else { return };
        (association.lost, association.claimed) = (0, sample.claimed);
        association.watch.note(sample.raw_time);
        let stage = FilterStage { offset: sample.offset, delay: sample.delay, time: sample.raw_time };
        let poll = self.poll.poll().unwrap_or(association.watch.poll);
        if let Some(chosen) = association.filter.update(stage, poll) {
            association.chosen = Some(chosen);
            self.select(sample, clock);
        }
    }

    fn lost(&mut self, server: usize) {
        let Some(association) = self.associations.get_mut(server) else { return };
        association.lost += 1;
        if association.lost > LOST_MAX {
            association.filter.shift();
        }
    }

    fn change(&mut self, server: usize, change: ServerChange) {
        let Some(association) = self.associations.get_mut(server) else { return };
        association.is_reachable = change == ServerChange::Reachable;
        if !association.is_reachable {
            association.credence = Credence::Unknown;
        }
        if change == ServerChange::Left {
            *association = Association::default();
        }
    }

    fn second(&mut self, counter: Counter, clock: &mut SystemClock) {
        self.discipline.second(counter, clock);
    }

    fn doublings(&self, _: usize) -> u32 {
        self.poll.doublings()
    }

    fn limit_doublings(&mut self, most: u32) {
        self.poll.limit(most);
    }

    fn credence(&self, server: usize) -> Credence {
        self.associations.get(server).map(|one| one.credence).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(server: usize, millis: f64, distance: f64) -> FitServer {
        FitServer { server, offset: millis * 1e-3, distance: distance * 1e-3, jitter: 1e-6 }
    }

    #[test]
    fn the_majority_has_an_interval_and_two_that_differ_have_none() {
        let three = [fit(0, 0.0, 1.0), fit(1, 0.5, 1.0), fit(2, 20.0, 1.0)];
        let (low, high) = intersection(&three).unwrap();
        assert!((low + 0.5e-3).abs() < 1e-9 && (high - 1e-3).abs() < 1e-9, "{low} {high}");
        assert_eq!(intersection(&three[1..]), None);
        assert_eq!(intersection(&[]), None);
    }

    #[test]
    fn the_farthest_survivor_is_left_out_until_three_are_left() {
        let mut survivors: Vec<FitServer> = [0.0, 0.001, 0.002, 0.4, 0.9].iter().map(|at| fit(0, *at, 1.0)).collect();
        cluster(&mut survivors);
        assert_eq!(survivors.iter().map(|one| one.offset).collect::<Vec<_>>(), [0.0, 1e-6, 2e-6]);
        assert!((combine(&[fit(0, 1.0, 1.0), fit(1, 4.0, 2.0)]) - 2e-3).abs() < 1e-12);
    }
}
