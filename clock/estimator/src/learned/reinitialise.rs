//! Re-initialisation from the last exchanges, where their fastest packets place the time.
//!
//! The filter begins with densities that allow every queueing. A path that is congested in one direction then drags its
//! floor along: the packets that show the floor come before it is known that they do, and afterwards they are garbage
//! to a filter that is sure. Filtered again from where the fastest of each way meet, with densities that learn from
//! this, the same packets are much likelier.

use super::learning::{Learning, Mixtures};
use super::recent::{Observation, Recent};
use crate::LearnedConfig;
use crate::bank::group::Begin;
use crate::bank::{Bank, Family, ModelSet, Prediction};
use crate::tuning::learned::{
    EAGER, GRAIN, REFINEMENTS, REINITIALISE_AFTER, REINITIALISE_GAIN, REINITIALISE_PASSES, USUAL_WALK,
};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The last exchanges, and room to filter them again.
#[derive(Clone, Debug)]
pub struct Reinitialisation {
    last: VecDeque<Observation>,
    /// What the bank predicted of them, the first time and again.
    predictions: Vec<[Prediction; 2]>,
    mixtures: Mixtures,
    passed: u64,
    attempts: usize,
}

/// What an attempt begins with.
pub struct Attempt<'a> {
    pub server: usize,
    /// What is known of the counter's rate, ppm.
    pub rate: f64,
    pub asymmetry: FloorAsymmetry,
    /// The bank that filters the exchanges again; overwritten.
    pub scratch: &'a mut Bank,
    pub learning: &'a Learning,
    pub set: &'a ModelSet,
}

/// What is known of the asymmetry of a path.
#[derive(Clone, Copy, Debug)]
pub struct FloorAsymmetry {
    /// How much longer the floor of the way to the server is than that of the way back, us.
    pub difference: f64,
    /// The variance of this, us^2.
    pub variance: f64,
}

impl Reinitialisation {
    pub fn new(learning: &Learning, config: &LearnedConfig) -> Self {
        Reinitialisation {
            last: VecDeque::with_capacity(EAGER),
            predictions: Vec::with_capacity(EAGER),
            mixtures: learning.scratch(config),
            passed: 0,
            attempts: 0,
        }
    }

    pub fn bytes(&self) -> usize {
        let predictions = self.predictions.capacity() * size_of::<[Prediction; 2]>();
        self.last.capacity() * size_of::<Observation>() + predictions + self.mixtures.bytes()
    }

    /// A new beginning of the time.
    pub fn clear(&mut self) {
        self.last.clear();
        (self.passed, self.attempts) = (0, 0);
    }

    /// The path or the oscillator changed: the exchanges before do not fit those to come.
    pub fn interrupt(&mut self) {
        self.last.clear();
    }

    /// Takes over what the bank predicted of the last exchanges when it filtered them again.
    pub fn take_predictions(&mut self, recent: &Recent) {
        for (age, observation) in self.last.iter_mut().rev().enumerate() {
            let Some(again) = recent.get(age) else { return };
            observation.predictions = again.predictions;
        }
    }

    pub fn push(&mut self, observation: Observation) {
        if self.last.len() >= EAGER {
            self.last.pop_front();
        }
        self.last.push_back(observation);
        self.passed = self.passed.saturating_add(1);
    }

    /// Notes how far the origin of theta moved after the newest exchange.
    pub fn note_step(&mut self, step: f64) {
        if let Some(last) = self.last.back_mut() {
            last.step = step;
        }
    }

    /// Whether another attempt is due; it counts as made.
    pub fn take_due(&mut self) -> bool {
        let is_due =
            REINITIALISE_AFTER.get(self.attempts).is_some_and(|due| self.passed >= *due) && self.last.len() >= EAGER;
        self.attempts = self.attempts.saturating_add(usize::from(is_due));
        is_due
    }

    /// Whether the exchanges are much likelier when filtered again; the scratch bank then is the result.
    pub fn succeeds(&mut self, attempt: Attempt<'_>) -> bool {
        debug_assert_eq!(self.last.len(), EAGER, "an attempt is due");
        let FloorAsymmetry { difference, variance } = attempt.asymmetry;
        let Some(begin) = begin(&self.last, attempt.rate, difference) else { return false };
        let Attempt { server, scratch, learning, set, .. } = attempt;
        let begin = Begin { server, ..begin };
        self.predictions.clear();
        self.predictions.extend(self.last.iter().map(|observation| observation.predictions));
        let before = self.judge(learning, set);
        self.mixtures.take_over(learning.mixtures(), learning.components());
        for _ in 0..REINITIALISE_PASSES {
            scratch.restart(&begin, set);
            scratch.for_groups(|group| group.open_asymmetry(server, variance));
            self.predictions.clear();
            for observation in &self.last {
                scratch.predict(&observation.exchange, self.mixtures.densities(), set);
                self.predictions.push(scratch.observe(&observation.exchange, self.mixtures.densities(), set));
                scratch.for_groups(|group| group.follow(observation.step));
            }
            self.mixtures.relearn(&self.predictions, learning.components());
        }
        let after = likelihood(&self.mixtures, &self.predictions, set);
        after - before >= REINITIALISE_GAIN
    }

    /// Teaches `learning` the densities of the attempt.
    pub fn teach(&self, learning: &mut Learning) {
        learning.replace(&self.mixtures, &self.predictions);
    }

    /// How likely the exchanges are, each as it was predicted, to densities that learned from them.
    fn judge(&mut self, learning: &Learning, set: &ModelSet) -> f64 {
        self.mixtures.take_over(learning.mixtures(), learning.components());
        for _ in 0..REINITIALISE_PASSES {
            self.mixtures.relearn(&self.predictions, learning.components());
        }
        likelihood(&self.mixtures, &self.predictions, set)
    }
}

fn likelihood(mixtures: &Mixtures, predictions: &[[Prediction; 2]], set: &ModelSet) -> f64 {
    let families = Family::BOTH.into_iter().filter(|family| set.families[family.index()]);
    families.map(|family| mixtures.likelihood(predictions, family)).fold(f64::NEG_INFINITY, f64::max)
}

/// Where the fastest packets place the beginning, given a rate to begin with, ppm, and the asymmetry of the floors, us:
/// of n packets that queue for m on average the fastest queues for m/n. None if an ordinary oscillator has wandered by
/// more than that meanwhile.
fn begin(last: &VecDeque<Observation>, rate: f64, asymmetry: f64) -> Option<Begin> {
    let count = last.len() as f64;
    let time: f64 = last.iter().map(|observation| observation.exchange.interval).sum();
    let (rate, Envelope { fastest: [forward, backward], queueing }) = fit(last, rate, time);
    let deviation = (queueing[0] + queueing[1]) / count + GRAIN;
    let wander = USUAL_WALK * libm::sqrt(time * time * time / 3.0);
    if !(time > 0.0 && wander <= deviation) {
        return None;
    }
    let theta = 0.5 * (forward - backward - asymmetry);
    let rate_deviation = (queueing[0].min(queueing[1]) + GRAIN) / time;
    let floors = [forward - theta, backward + theta];
    Some(Begin {
        server: 0,
        theta,
        rate,
        rate_variance: rate_deviation * rate_deviation,
        floors,
        variance: deviation * deviation,
    })
}

/// The rate at which the packets are likeliest if each way queues them exponentially, for a time of its own: the
/// quieter way has more weight.
fn fit(last: &VecDeque<Observation>, mut rate: f64, time: f64) -> (f64, Envelope) {
    let mut best = Envelope::of(last, rate);
    let mut step = (best.queueing[0] + best.queueing[1]) / time;
    for _ in 0..REFINEMENTS {
        let [slower, faster] = [rate - step, rate + step].map(|rate| (rate, Envelope::of(last, rate)));
        let other = if slower.1.cost() < faster.1.cost() { slower } else { faster };
        if other.1.cost() < best.cost() {
            (rate, best) = other;
        } else {
            step *= 0.5;
        }
    }
    (rate, best)
}

/// What bounds the delays of both ways from below if the counter's rate is constant.
struct Envelope {
    /// The delays of the fastest packets, carried back to the beginning, us.
    fastest: [f64; 2],
    /// How long packets queue on average, us.
    queueing: [f64; 2],
}

impl Envelope {
    fn of(last: &VecDeque<Observation>, rate: f64) -> Self {
        let (mut time, mut origin) = (0.0, 0.0);
        let (mut fastest, mut sum) = ([f64::INFINITY; 2], [0.0; 2]);
        for observation in last {
            time += observation.exchange.interval;
            let [forward, backward] = observation.exchange.measurements;
            let theta = rate * time - origin;
            let delays = [forward.delay - theta + rate * forward.trip, backward.delay + theta];
            fastest = core::array::from_fn(|way| fastest[way].min(delays[way]));
            sum = core::array::from_fn(|way| sum[way] + delays[way]);
            origin += observation.step;
        }
        let count = last.len().max(1) as f64;
        Envelope { fastest, queueing: core::array::from_fn(|way| sum[way] / count - fastest[way]) }
    }

    /// Minus the log-likelihood of the packets, for each exchange and less a constant: an exponential density that fits
    /// n packets best, with the mean m, gives -n (1 + ln m).
    fn cost(&self) -> f64 {
        self.queueing.iter().map(|queueing| libm::log(queueing.max(0.0) + GRAIN)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bank::density::Components;
    use crate::bank::grid::Cavity;
    use crate::bank::group::Evident;
    use crate::bank::measurement::Measurement;
    use crate::bank::{BankExchange, FloorWalk};

    const RATE: f64 = 40.0;
    const THETA: f64 = 7.0;
    const FLOORS: [f64; 2] = [120.0, 100.0];

    /// Exchanges every 16 s on a path whose way to the server is congested; after each the frame moves by `step` of its
    /// number, us.
    fn exchanges(step: impl Fn(usize) -> f64) -> VecDeque<Observation> {
        let predictions = [Prediction { cavities: [Cavity { mean: 0.0, variance: 1.0 }; 2], logs: [0.0; 2] }; 2];
        let (interval, trip) = (16.0, 3e-4);
        let mut origin = 0.0;
        let observation = (0..EAGER).map(|number| {
            let theta = THETA + RATE * interval * (number as f64 + 1.0) - origin;
            let queueing = [((number * 17 + 5) % 40) as f64 * 20.0, ((number * 11 + 3) % 40) as f64 * 0.1];
            let forward = Measurement { delay: theta - RATE * trip + FLOORS[0] + queueing[0], trip, noise: 1e-6 };
            let backward = Measurement { delay: -theta + FLOORS[1] + queueing[1], trip: 0.0, noise: 1e-6 };
            let step = step(number);
            origin += step;
            Observation { exchange: exchange(interval, [forward, backward]), predictions, step }
        });
        observation.collect()
    }

    fn exchange(interval: f64, measurements: [Measurement; 2]) -> BankExchange {
        BankExchange {
            server: 0,
            interval,
            measurements,
            evident: Evident::All,
            holds_floors: false,
            walk: FloorWalk::NONE,
        }
    }

    fn rarely(observation: Observation) -> Observation {
        Observation { exchange: BankExchange { interval: 1024.0, ..observation.exchange }, ..observation }
    }

    #[test]
    fn the_fastest_packets_place_the_beginning() {
        let last = exchanges(|_| 0.0);
        // The rate to begin with is off by 0.3 ppm: 200 us over the exchanges.
        let begin = begin(&last, RATE + 0.3, FLOORS[0] - FLOORS[1]).expect("a congested path");
        assert!((begin.rate - RATE).abs() < 0.002, "{begin:?}");
        assert!((begin.theta - THETA).abs() < 1.0 && (begin.floors[0] - FLOORS[0]).abs() < 1.0, "{begin:?}");
        assert!(begin.variance < 144.0 && begin.rate_variance < 1e-4, "{begin:?}");
    }

    #[test]
    fn where_the_frame_went_does_not_matter() {
        let still = begin(&exchanges(|_| 0.0), RATE, 20.0).expect("a congested path");
        let moving = begin(&exchanges(|number| 700.0 - 13.0 * number as f64), RATE, 20.0).expect("the same path");
        let differences = [still.theta - moving.theta, still.rate - moving.rate, still.floors[0] - moving.floors[0]];
        assert!(differences.iter().all(|difference| difference.abs() < 1e-6), "{differences:?}");
    }

    #[test]
    fn rare_exchanges_are_not_filtered_again() {
        let rare = exchanges(|_| 0.0).into_iter().map(rarely).collect();
        assert!(begin(&rare, 0.0, 0.0).is_none(), "an oscillator wanders by more meanwhile");
    }

    #[test]
    fn attempts_are_few_and_wait_for_exchanges_that_belong_together() {
        let config = LearnedConfig::default();
        let learning = Learning::new(&config, Components::new());
        let mut reinitialisation = Reinitialisation::new(&learning, &config);
        let observation = exchanges(|_| 0.0)[0];
        let mut attempts = alloc::vec![];
        for number in 1..3_000 {
            reinitialisation.push(observation);
            if number == 150 {
                reinitialisation.interrupt();
            }
            if reinitialisation.take_due() {
                attempts.push(number);
            }
        }
        assert_eq!(attempts, [40, 190, 640]);
    }
}
