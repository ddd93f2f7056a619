//! A second look at the last exchanges, from where their fastest packets place the time.
//!
//! The filter begins with densities that allow every queueing. A path that is congested in one direction then drags its floor along, and the
//! packets that show the floor come before it is known that they are the ones; afterwards they are garbage to a filter that is sure. Seen again from
//! where the fastest of each way meet, and with densities that learn from this, the same packets are much likelier.

use super::bank::{Bank, Family, Roster, Told};
use super::group::Begin;
use super::learning::{EAGER, Learning, Mixtures};
use super::model::USUAL_WALK;
use super::recent::Taken;
use crate::LearnedConfig;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// How often the exchanges are seen again: the densities learned from what the filter knew at first are themselves misplaced.
const LOOKS: u32 = 2;

/// The first look is taken when there are [`EAGER`] exchanges, and another one whenever there are so many times as many.
const SELDOM: u64 = 4;

/// How much likelier the exchanges must be when they are seen again, as a logarithm.
const GAIN: f64 = 6.0;

/// How often the rate between the fastest packets is bettered, or its step halved.
const REFINEMENTS: u32 = 48;

/// What is lost of a delay when it is measured, us.
const GRAIN: f64 = 1.0;

/// The last exchanges, and what they can be tried with.
#[derive(Clone, Debug)]
pub struct SecondLook {
    last: VecDeque<Taken>,
    /// What the bank was told of them, then and now.
    told: Vec<[Told; 2]>,
    mixtures: Mixtures,
    passed: u64,
    due: u64,
}

/// What is looked at again.
pub struct Look<'a> {
    /// What is known of the counter's rate, ppm.
    pub rate: f64,
    /// How much longer the floor of the way to the server is than that of the way back, us.
    pub asymmetry: f64,
    /// The filter sees the exchanges again in this bank, whatever was in it.
    pub scratch: &'a mut Bank,
    pub learning: &'a mut Learning,
    pub roster: &'a Roster,
}

impl SecondLook {
    pub fn new(learning: &Learning, config: &LearnedConfig) -> Self {
        SecondLook {
            last: VecDeque::with_capacity(EAGER),
            told: Vec::with_capacity(EAGER),
            mixtures: learning.scratch(config),
            passed: 0,
            due: EAGER as u64,
        }
    }

    pub fn bytes(&self) -> usize {
        let told = self.told.capacity() * size_of::<[Told; 2]>();
        self.last.capacity() * size_of::<Taken>() + told + self.mixtures.bytes()
    }

    /// The time begins anew.
    pub fn clear(&mut self) {
        self.last.clear();
        (self.passed, self.due) = (0, EAGER as u64);
    }

    pub fn push(&mut self, taken: Taken) {
        if self.last.len() >= EAGER {
            self.last.pop_front();
        }
        self.last.push_back(taken);
        self.passed = self.passed.saturating_add(1);
    }

    /// Notes by how much the origin of theta moved after the newest exchange.
    pub fn note_step(&mut self, step: f64) {
        if let Some(last) = self.last.back_mut() {
            last.step = step;
        }
    }

    /// Whether it is time for another look.
    pub fn is_due(&mut self) -> bool {
        let is_due = self.passed >= self.due;
        if is_due {
            self.due = self.due.saturating_mul(SELDOM);
        }
        is_due
    }

    /// Whether the exchanges make much more sense seen again; the bank of the look and its learning then are what came of it.
    pub fn convinces(&mut self, look: Look<'_>) -> bool {
        let Some(begin) = begin(&self.last, look.rate, look.asymmetry) else { return false };
        let Look { scratch, learning, roster, .. } = look;
        self.told.clear();
        self.told.extend(self.last.iter().map(|taken| taken.told));
        let before = self.judge(learning, roster);
        self.mixtures.take_over(learning.mixtures(), learning.components());
        for _ in 0..LOOKS {
            *scratch = Bank::begin(&begin, roster);
            self.told.clear();
            for taken in &self.last {
                scratch.predict(taken.interval, self.mixtures.densities(), roster);
                self.told.push(scratch.observe(&taken.sights, self.mixtures.densities(), roster));
                scratch.for_groups(|group| group.follow(taken.step));
            }
            self.mixtures.relearn(&self.told, learning.components());
        }
        let after = likelihood(&self.mixtures, &self.told, roster);
        if after - before < GAIN {
            return false;
        }
        learning.replace(&self.mixtures, &self.told);
        true
    }

    /// How likely the exchanges are, each as it was told, to densities that learned from them.
    fn judge(&mut self, learning: &Learning, roster: &Roster) -> f64 {
        self.mixtures.take_over(learning.mixtures(), learning.components());
        for _ in 0..LOOKS {
            self.mixtures.relearn(&self.told, learning.components());
        }
        likelihood(&self.mixtures, &self.told, roster)
    }
}

fn likelihood(mixtures: &Mixtures, told: &[[Told; 2]], roster: &Roster) -> f64 {
    let families = Family::BOTH.into_iter().filter(|family| roster.families[family.index()]);
    families.map(|family| mixtures.likelihood(told, family)).fold(f64::NEG_INFINITY, f64::max)
}

/// Where the fastest packets place the beginning, given a rate to begin with, ppm, and the asymmetry of the floors, us: of n packets that queue for m on
/// average the fastest queues for m/n. None if an ordinary oscillator has wandered by more than that meanwhile.
fn begin(last: &VecDeque<Taken>, rate: f64, asymmetry: f64) -> Option<Begin> {
    let count = last.len() as f64;
    let time: f64 = last.iter().map(|taken| taken.interval).sum();
    let (rate, Envelope { fastest: [forward, backward], queueing }) = fit(last, rate, time);
    let deviation = (queueing[0] + queueing[1]) / count + GRAIN;
    let wander = USUAL_WALK * libm::sqrt(time * time * time / 3.0);
    if wander > deviation {
        return None;
    }
    let theta = 0.5 * (forward - backward - asymmetry);
    let rate_deviation = (queueing[0].min(queueing[1]) + GRAIN) / time;
    let floors = [forward - theta, backward + theta];
    Some(Begin { theta, rate, rate_variance: rate_deviation * rate_deviation, floors, variance: deviation * deviation })
}

/// The rate at which the packets are likeliest if each way queues them exponentially, for a time of its own: the quieter way has more to say.
fn fit(last: &VecDeque<Taken>, mut rate: f64, time: f64) -> (f64, Envelope) {
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
    fn of(last: &VecDeque<Taken>, rate: f64) -> Self {
        let (mut time, mut origin) = (0.0, 0.0);
        let (mut fastest, mut sum) = ([f64::INFINITY; 2], [0.0; 2]);
        for taken in last {
            time += taken.interval;
            let [forward, backward] = taken.sights;
            let theta = rate * time - origin;
            let delays = [forward.delay - theta + rate * forward.trip, backward.delay + theta];
            fastest = core::array::from_fn(|way| fastest[way].min(delays[way]));
            sum = core::array::from_fn(|way| sum[way] + delays[way]);
            origin += taken.step;
        }
        let count = last.len().max(1) as f64;
        Envelope { fastest, queueing: core::array::from_fn(|way| sum[way] / count - fastest[way]) }
    }

    /// The logarithm of the queueing: minus the packets' likelihood, each.
    fn cost(&self) -> f64 {
        self.queueing.iter().map(|queueing| libm::log(queueing.max(0.0) + GRAIN)).sum()
    }
}
