//! What an oracle knows of the way between the counter and the server's clock: floors, laws of delay and their spells,
//! events.

use super::density::{DelayLaw, Nature};
use super::dynamics::MICRO;
use crate::host::latencies;
use crate::noise::white_phase_deviation;
use crate::queue::scale;
use crate::scenario::{Law, QueueSpec, Scenario, Spells, When};
use ffclock_units::{Direction, Span};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A share of packets comes a second and more late.
const STRAGGLE_US: f64 = 1e6;
/// A law without any density is made this wide [us].
const LEAST_WIDTH: f64 = 1e-3;
/// More spells at a time than these are not distinguished.
const HIDDEN_MAX: usize = 4;

/// A delay that comes and goes.
#[derive(Clone, Debug)]
struct Switched {
    delay: DelayLaw,
    when: When,
}

/// One way.
#[derive(Debug)]
pub(super) struct WayLaws {
    steady: DelayLaw,
    switched: Vec<Switched>,
    /// The spells that are not announced, each with its place in `switched`.
    hidden: Vec<(usize, Spells)>,
    /// Laws that were asked for, by the set of what is there.
    made: RefCell<BTreeMap<u64, Rc<DelayLaw>>>,
}

impl WayLaws {
    pub(super) fn of(scenario: &Scenario, direction: Direction) -> Self {
        let queues = scenario.path.queue.iter().chain(&scenario.host.noise);
        let mine = queues.filter(|queue| queue.direction.holds(direction));
        let (steady, switched): (Vec<_>, Vec<_>) = mine.partition(|queue| matches!(queue.when, When::Always));
        let mut sum = stamps(scenario, direction);
        steady.into_iter().for_each(|queue| sum = sum.plus(&delay(queue)));
        if let Some(flap) = scenario.path.flap {
            let longer = if direction == Direction::Outgoing { flap.forward } else { flap.backward };
            sum = sum.plus(&DelayLaw::fixed(longer.seconds() * MICRO).for_share(flap.share));
        }
        if scenario.path.straggle > 0.0 {
            let late = Nature::Gamma { shape: 1.0, scale: STRAGGLE_US };
            sum = sum.plus(&DelayLaw::fixed(STRAGGLE_US).plus(&DelayLaw::of(late)).for_share(scenario.path.straggle));
        }
        let switched: Vec<Switched> =
            switched.into_iter().map(|queue| Switched { delay: delay(queue), when: queue.when }).collect();
        let spells = |(index, one): (usize, &Switched)| match one.when {
            When::Markov(spells) | When::SelfSimilar(spells) => Some((index, spells)),
            _ => None,
        };
        let hidden = switched.iter().enumerate().filter_map(spells).take(HIDDEN_MAX).collect();
        WayLaws { steady: sum, switched, hidden, made: RefCell::default() }
    }

    /// How many states the hidden spells can be in, together.
    pub(super) fn states(&self) -> usize {
        1 << self.hidden.len()
    }

    /// The law of a delay at `t` [s] in each of these states.
    pub(super) fn laws(&self, t: f64) -> Vec<Rc<DelayLaw>> {
        let is_on = |when: When| match when {
            When::Periodic(periodic) => libm::fmod(t, periodic.every.seconds()) < periodic.lasts.seconds(),
            When::Between(between) => (between.at.seconds()..between.until.seconds()).contains(&t),
            _ => false,
        };
        let each = self.switched.iter().enumerate();
        let announced = each.filter(|(_, one)| is_on(one.when)).fold(0, |set, (index, _)| set | 1 << index);
        let chosen = |state: usize| {
            let busy = self.hidden.iter().enumerate().filter(|(place, _)| state >> place & 1 == 1);
            busy.fold(announced, |set, (_, (index, _))| set | 1 << index)
        };
        (0..self.states()).map(|state| self.law(chosen(state))).collect()
    }

    fn law(&self, set: u64) -> Rc<DelayLaw> {
        let make = || {
            let chosen = self.switched.iter().enumerate().filter(|(index, _)| set >> index & 1 == 1);
            let sum = chosen.fold(self.steady.clone(), |sum, (_, one)| sum.plus(&one.delay));
            let smooth = if sum.is_continuous() { sum } else { sum.plus(&uniform(LEAST_WIDTH)) };
            Rc::new(smooth)
        };
        Rc::clone(self.made.borrow_mut().entry(set).or_insert_with(make))
    }

    /// The probabilities of the states when nothing is known.
    pub(super) fn usual(&self) -> Vec<f64> {
        let share = |state: usize| {
            let each = self.hidden.iter().enumerate();
            each.map(|(place, (_, spells))| {
                let busy = busy_share(spells);
                if state >> place & 1 == 1 { busy } else { 1.0 - busy }
            })
            .product()
        };
        (0..self.states()).map(share).collect()
    }

    /// Row by row, the probability of each state `interval` [s] after each. Spells are taken as memoryless: of
    /// self-similar ones the oracle knows the mean lengths.
    pub(super) fn transition(&self, interval: f64) -> Vec<f64> {
        let one = |from: usize, to: usize| {
            let each = self.hidden.iter().enumerate();
            each.map(|(place, (_, spells))| {
                let usual = busy_share(spells);
                let forgotten = 1.0 / spells.calm.seconds() + 1.0 / spells.busy.seconds();
                let was = (from >> place & 1) as f64;
                let busy = usual + (was - usual) * libm::exp(-interval * forgotten);
                if to >> place & 1 == 1 { busy } else { 1.0 - busy }
            })
            .product()
        };
        let states = self.states();
        (0..states * states).map(|cell| one(cell / states, cell % states)).collect()
    }
}

fn busy_share(spells: &Spells) -> f64 {
    spells.busy.seconds() / (spells.busy.seconds() + spells.calm.seconds())
}

fn uniform(width: f64) -> DelayLaw {
    DelayLaw::of(Nature::Uniform { width })
}

fn delay(queue: &QueueSpec) -> DelayLaw {
    let (shape, scale) = (queue.shape, scale(queue) * MICRO);
    let whole = match queue.law {
        Law::Exponential => DelayLaw::of(Nature::Gamma { shape: 1.0, scale }),
        Law::Gamma => DelayLaw::of(Nature::Gamma { shape, scale }),
        Law::Weibull => DelayLaw::of(Nature::Weibull { shape, scale }),
        Law::Pareto => DelayLaw::of(Nature::Pareto { exponent: shape, scale }),
        Law::Uniform => uniform(scale),
        Law::Constant => DelayLaw::fixed(scale),
    };
    whole.for_share(queue.share)
}

/// What the taking of stamps adds to a delay: the host, the step of the counter, the server's noise, white phase noise.
fn stamps(scenario: &Scenario, direction: Direction) -> DelayLaw {
    let [sending, receiving] = latencies(scenario.host.stamps);
    let host = if direction == Direction::Outgoing { sending } else { receiving };
    let tick = tick(scenario);
    let mut sum = uniform(tick);
    if host.varying > 0.0 {
        sum = sum.plus(&DelayLaw::of(Nature::Gamma { shape: 1.0, scale: host.varying * MICRO }));
    }
    let white = white_phase_deviation(scenario.oscillator.white_phase_at_1_s);
    let deviation = libm::hypot(scenario.server.noise.seconds(), white) * MICRO;
    if deviation > 0.0 {
        sum = sum.plus(&DelayLaw::of(Nature::Normal { deviation }));
    }
    sum
}

/// The step of the counter [us].
pub(super) fn tick(scenario: &Scenario) -> f64 {
    MICRO / scenario.counter.hertz() as f64
}

/// The smallest delay between a stamp and the server at `at` [us]. A counter that steps shows too little, so an
/// incoming packet seems early by up to a step; its law begins there.
pub(super) fn floor(scenario: &Scenario, direction: Direction, at: Span) -> f64 {
    let [sending, receiving] = latencies(scenario.host.stamps);
    let reading = 0.5 * scenario.counter.read_latency();
    let path = crate::path::floor(&scenario.path, direction, at).as_seconds();
    let (host, early) = match direction {
        Direction::Outgoing => (sending.least, 0.0),
        Direction::Incoming => (receiving.least, tick(scenario)),
    };
    (path + host + reading) * MICRO - early
}
