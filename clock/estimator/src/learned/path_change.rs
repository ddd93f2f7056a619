//! Changes of the path: a generalised likelihood ratio test (A. Willsky and H. Jones, IEEE Trans. Automatic Control 21,
//! 1976).
//!
//! The counter does not jump. When the delays of one way jump while those of the other do not, that way became longer
//! or shorter. When both jump, both ways changed. When they jump by the same amount in opposite directions, the
//! server's time stepped, or two routes changed in a way that cannot be distinguished from that. A change is believed
//! when the last few packets are much likelier with it than without.

use super::recent::{Filtering, Recent};
use crate::bank::density::Tabulated;
use crate::bank::revision::{BurstVariance, Change, Revision};
use crate::bank::{Bank, Family};
use crate::tuning::learned::{
    BURST_SLACK, CHANGE_GAIN, CHANGE_SPREAD, COMPARED, DECISIVE, DEPTH, DISPLACEMENT_TOLERANCE, FIRST_TRIAL,
    LEAST_COMPARED, LEAST_SHIFT, LEAST_SQUARED_SHIFT, ONSET_REACH, SETTLING, SHARED_DEVIATIONS, SHARED_PART, STEADY,
    STEP_MISMATCH, TRIAL_STEP, TRIALS, WITNESSES,
};
use ffclock_units::Direction;

/// The packets of one way to or from a server as one family saw them.
#[derive(Clone, Copy)]
pub struct ChangeWitnesses<'a> {
    pub recent: &'a Recent,
    pub server: usize,
    pub way: Direction,
    pub family: Family,
}

impl ChangeWitnesses<'_> {
    fn packets(&self, count: usize) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
        let (way, family) = (self.way.index(), self.family.index());
        self.recent.of(self.server).take(count).map(move |(_, observation)| {
            let predictions = &observation.predictions[family];
            (predictions.cavities[way].mean, predictions.cavities[way].variance, predictions.logs[way])
        })
    }

    /// The likeliest shift D for the last `count` packets, and its log-likelihood ratio against none, which is the sum
    /// of `ln p(m - D) - ln Z`. The variance of the predictions, small beside a shift that counts, is left out of p.
    fn shift(&self, count: usize, density: &Tabulated) -> (f64, f64) {
        let least = self.packets(count).fold(f64::INFINITY, |least, (mean, ..)| least.min(mean));
        let without: f64 = self.packets(count).map(|(.., log)| log).sum();
        let mut best = (0.0, f64::NEG_INFINITY);
        for trial in 0..TRIALS {
            let shift = least - density.median * (FIRST_TRIAL + TRIAL_STEP * f64::from(trial));
            let with: f64 = self.packets(count).map(|(mean, ..)| density.log_at(mean - shift)).sum();
            if with - without > best.1 {
                best = (shift, with - without);
            }
        }
        best
    }

    /// The log-likelihood ratio of the last `count` packets for a load that began, against no change: their queueing is
    /// then exponential with the mean that they have.
    fn gain_of_load(&self, count: usize) -> f64 {
        let packets = count as f64;
        let mean = self.packets(count).map(|(mean, ..)| mean).sum::<f64>() / packets;
        let without: f64 = self.packets(count).map(|(.., log)| log).sum();
        if mean > 0.0 { -packets * (1.0 + libm::log(mean)) - without } else { f64::NEG_INFINITY }
    }

    /// The largest variance of a prediction among the last `count`.
    fn variance(&self, count: usize) -> f64 {
        self.packets(count).fold(0.0, |most, (_, variance, _)| most.max(variance))
    }
}

/// A change that was found, and how many packets of its way witness it.
#[derive(Clone, Copy, Debug)]
pub struct FoundChange {
    pub change: Change,
    pub witnesses: usize,
}

/// Looks for a change of one way.
pub fn find(witnesses: ChangeWitnesses<'_>, density: &Tabulated) -> Option<FoundChange> {
    let ChangeWitnesses { recent, server, way, .. } = witnesses;
    let mut best: Option<(f64, FoundChange)> = None;
    for count in WITNESSES..=DEPTH {
        let Some(since) = recent.since(server, count) else { break };
        let (shift, gain) = witnesses.shift(count, density);
        let variance = witnesses.variance(count);
        // No queueing puts a packet before its floor.
        let is_large = shift < 0.0 || shift > LEAST_SHIFT * density.ninth_decile;
        let is_large = is_large && shift * shift > LEAST_SQUARED_SHIFT * variance;
        let is_steady = gain - witnesses.gain_of_load(count) > STEADY;
        if gain > CHANGE_GAIN && is_large && is_steady && best.is_none_or(|(most, _)| gain > most) {
            let spread = CHANGE_SPREAD * density.median + libm::sqrt(variance);
            let change = Change { server, way, since, shift, variance: spread * spread };
            best = Some((gain, FoundChange { change, witnesses: count }));
        }
    }
    best.map(|(_, found)| found)
}

/// What explains packets that need a change.
#[derive(Clone, Copy, Debug)]
pub enum Cause {
    /// The path or the server: delays jump once.
    Jump,
    /// The counter's rate, which gets room to move: the delays of the two ways run away from one another.
    Rate(Revision),
    /// Not decided: more packets are needed.
    Open,
}

/// What hypotheses are tried with.
pub struct Trial<'a> {
    pub recent: &'a Recent,
    pub filtering: Filtering<'a>,
    /// Overwritten by each trial.
    pub scratch: &'a mut Bank,
}

impl Trial<'_> {
    fn score(&mut self, since: usize, revisions: &[Revision]) -> f64 {
        self.recent.score(since, revisions, self.scratch, self.filtering)
    }

    /// Whether the packets since a change are explained by it, alone or with one of the other way, or by a change of
    /// the counter's rate: the whole bank sees them again with each.
    pub fn cause(mut self, found: &FoundChange, family: Family) -> Cause {
        let FoundChange { change, witnesses } = found;
        let both = [Revision::Floor(*change), Revision::Floor(self.opposite(found, family))];
        let jumps = self.score(change.since, &both[..1]).max(self.score(change.since, &both));
        let mut best = (f64::NEG_INFINITY, Cause::Jump);
        let onsets = *witnesses..=witnesses.saturating_add(ONSET_REACH);
        for since in onsets.map_while(|count| self.recent.since(change.server, count)) {
            let rate = change.shift / self.recent.elapsed(change.since);
            let theta = BURST_SLACK * change.shift;
            let burst = Revision::NoiseBurst { since, gained: BurstVariance::of(theta, rate) };
            let score = self.score(since, &[burst]);
            if score > best.0 {
                best = (score, Cause::Rate(burst));
            }
        }
        let (with_burst, cause) = best;
        if (with_burst - jumps).abs() < DECISIVE && *witnesses < self.recent.depth() {
            Cause::Open
        } else if with_burst > jumps {
            cause
        } else {
            Cause::Jump
        }
    }

    /// What the other way shows since a change.
    fn opposite(&self, found: &FoundChange, family: Family) -> Change {
        let FoundChange { change, witnesses } = *found;
        let (server, way) = (change.server, change.way.other());
        let density = (self.filtering.densities)(server)[family.index()][way.index()];
        let (shift, _) = ChangeWitnesses { recent: self.recent, server, way, family }.shift(witnesses, density);
        Change { way, shift, ..change }
    }
}

/// The floors from before the last changes, until these have lasted long enough to be judged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Displacement {
    before: Option<[f64; 2]>,
    age: f64,
    exchanges: u32,
    tolerance: f64,
}

impl Displacement {
    /// A floor is about to move.
    pub fn begin(&mut self, floors: [f64; 2], density: &Tabulated) {
        if self.before.is_none() {
            (self.before, self.age) = (Some(floors), 0.0);
        }
        self.exchanges = 0;
        self.tolerance = DISPLACEMENT_TOLERANCE * density.ninth_decile;
    }

    /// Whether there are changes to be judged.
    pub fn is_pending(&self) -> bool {
        self.before.is_some()
    }

    /// Time passes; floors that are back where they were end the matter.
    pub fn pass(&mut self, interval: f64, floors: [f64; 2]) {
        self.age += interval;
        self.exchanges = self.exchanges.saturating_add(1);
        let is_back = |before: [f64; 2]| {
            before.iter().zip(floors).all(|(before, floor)| (floor - before).abs() <= self.tolerance)
        };
        if self.age > SETTLING && self.before.is_some_and(is_back) {
            self.before = None;
        }
    }

    /// Whether the changes of both ways are to be compared now: once, when enough is known of them or `patience` ends.
    pub fn is_time_to_compare(&self, patience: f64) -> bool {
        self.exchanges == COMPARED || (self.exchanges < COMPARED && self.is_ripe(patience))
    }

    /// The difference of the floors from before the changes, if both ways changed by the same amount: to within what is
    /// known of the difference, `deviation`, which must be small beside the change. Then one thing happened to both.
    pub fn shared(&self, [forward, backward]: [f64; 2], deviation: f64) -> Option<f64> {
        let [forward_then, backward_then] = self.before?;
        let (there, back) = (forward - forward_then, backward - backward_then);
        let room = SHARED_DEVIATIONS * deviation;
        let is_shared = (there - back).abs() <= room && room <= SHARED_PART * there.abs().min(back.abs());
        is_shared.then_some(forward_then - backward_then)
    }

    /// Whether the floors have been displaced for `patience`, and neither has moved for a while: the one is found
    /// before the other.
    pub fn is_ripe(&self, patience: f64) -> bool {
        self.before.is_some() && self.age >= patience && self.exchanges >= LEAST_COMPARED
    }

    /// How far the server's time stepped, if that is what happened, us: the two floors moved apart by the same amount.
    pub fn step(&self, floors: [f64; 2]) -> Option<f64> {
        let ([forward_then, backward_then], [forward, backward]) = (self.before?, floors);
        let (longer_there, longer_back) = (forward - forward_then, backward - backward_then);
        let apart = 0.5 * (longer_there - longer_back);
        let is_step = (longer_there + longer_back).abs() <= self.tolerance + STEP_MISMATCH * apart.abs();
        (is_step && apart.abs() > self.tolerance).then_some(apart)
    }
}

#[cfg(test)]
mod tests {
    use super::super::recent::Observation;
    use super::*;
    use crate::LearnedConfig;
    use crate::bank::density::{Components, Mixture};
    use crate::bank::grid::Cavity;
    use crate::bank::group::{Begin, Evident};
    use crate::bank::measurement::Measurement;
    use crate::bank::model;
    use crate::bank::{BankExchange, FloorWalk, ModelSet, Prediction};
    use crate::tuning::bank::BROAD;
    use alloc::vec::Vec;

    /// Floors from before a change, us; the density has quantiles of 1 us.
    const BEFORE: [f64; 2] = [100.0, 100.0];

    fn displaced() -> Displacement {
        let mut displacement = Displacement::default();
        displacement.begin(BEFORE, &Tabulated::new());
        displacement
    }

    #[test]
    fn floors_that_came_back_are_compared_after_200_s() {
        for (age, is_pending) in [(199.0, true), (201.0, false)] {
            let mut displacement = displaced();
            displacement.pass(age, BEFORE);
            assert_eq!(displacement.is_pending(), is_pending);
        }
    }

    #[test]
    fn changes_are_compared_once_after_16_exchanges_or_when_patience_ends_but_not_before_8() {
        let compared = |interval: f64| {
            let mut displacement = displaced();
            let times = (1..=40).filter(|_| {
                displacement.pass(interval, [200.0, 100.0]);
                displacement.is_time_to_compare(900.0)
            });
            times.collect::<Vec<u32>>()
        };
        assert_eq!(compared(16.0), [16]);
        assert_eq!(compared(1024.0).first(), Some(&8));
        assert_eq!(compared(100.0).first(), Some(&9));
    }

    #[test]
    fn changes_are_one_if_what_is_open_is_a_twentieth_of_them() {
        let shared = |deviation: f64, back: f64| displaced().shared([1_100.0, 100.0 + back], deviation);
        assert_eq!(shared(16.0, 1_000.0), Some(0.0));
        assert_eq!(shared(17.0, 1_000.0), None);
        assert_eq!(shared(16.0, 1_049.0), None);
        assert_eq!(shared(10.0, 1_029.0), Some(0.0));
    }

    /// What is known of packets that all queue for some 5 us.
    fn narrow() -> Mixture {
        let components = Components::new();
        let mut mixture = Mixture::new(BROAD, 500, &components);
        for step in 0..500 {
            let mean = 4.0 + 2.0 * f64::from(step) / 500.0;
            mixture.keep(&components.likelihoods(&Cavity { mean, variance: 0.01 }));
        }
        mixture.learn(200, &components);
        mixture
    }

    fn bank(rate_variance: f64, variance: f64) -> (ModelSet, Bank) {
        let models = model::models(&LearnedConfig::default());
        let set = ModelSet { servers: 1, models, families: [true; 2] };
        let begin = Begin { server: 0, theta: 0.0, rate: 0.0, rate_variance, floors: [0.0; 2], variance };
        let bank = Bank::begin(&begin, &set);
        (set, bank)
    }

    fn exchange(measurements: [Measurement; 2]) -> BankExchange {
        BankExchange {
            server: 0,
            interval: 16.0,
            measurements,
            evident: Evident::All,
            holds_floors: false,
            walk: FloorWalk::NONE,
        }
    }

    /// The change that is found when the last packets of one way queue for `queueing`, us, and the path is longer by
    /// `shift`.
    fn found(density: &Tabulated, queueing: f64, shift: f64) -> Option<Change> {
        let (set, bank) = bank(1.0, 1.0);
        let mut recent = Recent::new(&set);
        let mean = queueing + shift;
        let predictions =
            Prediction { cavities: [Cavity { mean, variance: 0.01 }; 2], logs: [density.log_at(mean); 2] };
        let exchange = exchange([Measurement { delay: 0.0, trip: 0.0, noise: 1e-6 }; 2]);
        for _ in 0..DEPTH {
            recent.save(&bank);
            recent.push(Observation { exchange, predictions: [predictions; 2], step: 0.0 });
        }
        let witnesses = ChangeWitnesses { recent: &recent, server: 0, way: Direction::Outgoing, family: Family::Edges };
        find(witnesses, density).map(|found| found.change)
    }

    #[test]
    fn a_path_that_is_longer_by_less_than_the_ninth_decile_is_left_to_the_filter() {
        let mixture = narrow();
        let density = mixture.table();
        let shift = |deciles: f64| found(density, 5.0, deciles * density.ninth_decile);
        assert!(shift(0.8).is_none());
        let change = shift(1.25).expect("a change");
        assert!((change.shift / density.ninth_decile - 1.25).abs() < 0.2, "{change:?}");
    }

    /// By how many exchanges the onset of a rate lay before what looked like a change of the path, as it was found;
    /// `None` where it was not.
    fn onset_found(rate: f64, exchanges: usize, since: usize) -> Option<usize> {
        const INTERVAL: f64 = 16.0;
        let mixture = narrow();
        let densities = [[mixture.table(); 2]; 2];
        let (set, mut bank) = bank(1e-6, 0.01);
        let mut recent = Recent::new(&set);
        for age in (0..DEPTH).rev() {
            let theta = rate * INTERVAL * exchanges.saturating_sub(age) as f64;
            let measurements = [theta, -theta].map(|part| Measurement { delay: part + 5.0, trip: 0.0, noise: 1e-6 });
            let exchange = exchange(measurements);
            recent.save(&bank);
            bank.predict(&exchange, densities, &set);
            let predictions = bank.observe(&exchange, densities, &set);
            recent.push(Observation { exchange, predictions, step: 0.0 });
        }
        let shift = rate * recent.elapsed(since);
        let change = Change { server: 0, way: Direction::Outgoing, since, shift, variance: 1.0 };
        let filtering = Filtering { densities: &|_| densities, set: &set };
        let trial = Trial { recent: &recent, filtering, scratch: &mut bank };
        match trial.cause(&FoundChange { change, witnesses: since }, Family::Edges) {
            Cause::Rate(Revision::NoiseBurst { since: found, .. }) => Some(found - since),
            _ => None,
        }
    }

    #[test]
    fn a_rate_is_found_up_to_two_exchanges_before_the_paths_seem_to_change() {
        let found = [4, 5, 6].map(|exchanges| onset_found(2.0, exchanges, 4));
        assert_eq!(found, [Some(0), Some(1), Some(2)]);
    }

    /// Where the density is highest: three quarters of the median here.
    #[test]
    fn the_fastest_packet_is_laid_where_it_is_likeliest() {
        let mixture = narrow();
        let median = mixture.table().median;
        let change = found(mixture.table(), median, 100.0).expect("a change");
        assert!(((100.0 + median - change.shift) / median - 0.74).abs() < 0.01);
    }
}
