//! Delays of chance.

use crate::random::Random;
use crate::scenario::{Between, LONGEST_S, Law, Periodic, QueueSpec, Spells, When};
use ffclock_units::Direction;

/// The exponent of the lengths of self-similar spells: on-off sources with such spells add up to traffic with a Hurst
/// parameter of 0.75 (W. Willinger et al., "Self-similarity through high-variability", 1997).
const SPELL_EXPONENT: f64 = 1.5;

/// The scale with which a law has the mean that is asked for [s].
pub(crate) fn scale(spec: &QueueSpec) -> f64 {
    let mean = spec.mean.seconds();
    match spec.law {
        Law::Exponential | Law::Constant => mean,
        Law::Uniform => 2.0 * mean,
        Law::Gamma => mean / spec.shape,
        Law::Weibull => mean / libm::tgamma(1.0 + 1.0 / spec.shape),
        Law::Pareto => mean * (spec.shape - 1.0),
    }
}

/// One delay of one direction.
#[derive(Clone, Debug)]
struct Queue {
    spec: QueueSpec,
    /// The scale with which the law has its mean [s].
    scale: f64,
    busy: bool,
    spell_end: f64,
}

impl Queue {
    fn new(spec: QueueSpec) -> Self {
        Queue { spec, scale: scale(&spec), busy: true, spell_end: 0.0 }
    }

    fn draw(&self, random: &mut Random) -> f64 {
        let shape = self.spec.shape;
        let unit = match self.spec.law {
            Law::Exponential => random.exponential(),
            Law::Gamma => random.gamma(shape),
            Law::Weibull => libm::pow(random.exponential(), 1.0 / shape),
            Law::Pareto => random.pareto(shape) - 1.0,
            Law::Uniform => random.uniform(),
            Law::Constant => 1.0,
        };
        let drawn = self.scale * unit;
        // Nothing times an endless tail is no number, and is nothing.
        if drawn.is_nan() { 0.0 } else { drawn.min(LONGEST_S) }
    }

    fn is_on(&mut self, at: f64, random: &mut Random) -> bool {
        match self.spec.when {
            When::Always => true,
            When::Between(Between { at: begin, until }) => (begin.seconds()..until.seconds()).contains(&at),
            When::Periodic(Periodic { every, lasts }) => libm::fmod(at, every.seconds()) < lasts.seconds(),
            When::Markov(spells) => self.follow(spells, at, || random.exponential()),
            When::SelfSimilar(spells) => {
                let mean = SPELL_EXPONENT / (SPELL_EXPONENT - 1.0);
                self.follow(spells, at, || random.pareto(SPELL_EXPONENT) / mean)
            }
        }
    }

    /// Lives through the spells up to `at`; `length` draws one of mean 1.
    fn follow(&mut self, spells: Spells, at: f64, mut length: impl FnMut() -> f64) -> bool {
        while self.spell_end <= at {
            self.busy = !self.busy;
            let mean = if self.busy { spells.busy } else { spells.calm };
            // A spell of no length at all would never pass.
            self.spell_end += (mean.seconds() * length()).max(1e-3);
        }
        self.busy
    }
}

/// All delays of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Queues(Vec<Queue>);

impl Queues {
    pub(crate) fn new(specs: &[QueueSpec], direction: Direction) -> Self {
        let concerned = specs.iter().filter(|spec| spec.direction.holds(direction));
        Queues(concerned.map(|spec| Queue::new(*spec)).collect())
    }

    /// The delay of a packet at `at` [s].
    pub(crate) fn delay(&mut self, at: f64, random: &mut Random) -> f64 {
        let mut sum = 0.0;
        for queue in &mut self.0 {
            if queue.is_on(at, random) && (queue.spec.share >= 1.0 || random.chance(queue.spec.share)) {
                sum += queue.draw(random);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Directions, Length};
    use ffclock_units::Span;

    fn spec(law: Law, shape: f64, when: When) -> QueueSpec {
        let mean = Length(Span::from_millis(1));
        QueueSpec { law, mean, shape, share: 1.0, direction: Directions::Both, when }
    }

    fn mean(spec: QueueSpec) -> f64 {
        let (mut queues, mut random) = (Queues::new(&[spec], Direction::Outgoing), Random::new(5));
        let count = 200_000;
        (0..count).map(|second| queues.delay(f64::from(second), &mut random)).sum::<f64>() / f64::from(count)
    }

    #[test]
    fn each_law_has_the_mean_it_was_given() {
        for (law, shape) in
            [(Law::Exponential, 1.0), (Law::Gamma, 3.0), (Law::Weibull, 0.7), (Law::Pareto, 4.0), (Law::Constant, 1.0)]
        {
            let seen = mean(spec(law, shape, When::Always));
            assert!((seen - 1e-3).abs() < 2e-5, "{law:?} {seen}");
        }
    }

    #[test]
    fn spells_take_their_share_of_the_time() {
        let spells = Spells { calm: Length(Span::from_secs(30)), busy: Length(Span::from_secs(10)) };
        let seen = mean(spec(Law::Constant, 1.0, When::Markov(spells)));
        assert!((seen - 0.25e-3).abs() < 0.02e-3, "{seen}");
        let every = Periodic { every: Length(Span::from_secs(100)), lasts: Length(Span::from_secs(20)) };
        let seen = mean(spec(Law::Constant, 1.0, When::Periodic(every)));
        assert!((seen - 0.2e-3).abs() < 1e-9, "{seen}");
    }

    /// The Hurst parameter of the delays of many sources together, by the variances of means over 32 and over 1024 s:
    /// they fall as the length to the power 2 H - 2 (J. Beran, "Statistics for long-memory processes", 1994, section
    /// 4.4).
    fn hurst(when: When, seed: u64) -> f64 {
        let (sources, seconds) = (30, 1 << 16);
        let mut random = Random::new(seed);
        let each = spec(Law::Constant, 1.0, when);
        let mut all: Vec<Queues> = (0..sources).map(|_| Queues::new(&[each], Direction::Outgoing)).collect();
        let mut load = |second: u32| -> f64 {
            all.iter_mut().map(|queues| 1e3 * queues.delay(f64::from(second), &mut random)).sum()
        };
        let loads: Vec<f64> = (0..seconds).map(&mut load).collect();
        let variance = |length: usize| {
            let means: Vec<f64> = loads.chunks(length).map(|part| part.iter().sum::<f64>() / length as f64).collect();
            let mean = means.iter().sum::<f64>() / means.len() as f64;
            means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (means.len() - 1) as f64
        };
        1.0 + 0.5 * (variance(1024) / variance(32)).ln() / 32.0_f64.ln()
    }

    /// Spells with tails of exponent 1.5 add up to load with H = (3 - 1.5) / 2 (Willinger et al.); memoryless spells to
    /// load without memory.
    #[test]
    fn heavy_tailed_spells_make_self_similar_load() {
        let spells = Spells { calm: Length(Span::from_secs(3)), busy: Length(Span::from_secs(3)) };
        let seeds = 8_u32;
        let mean = |when: When| {
            let each: Vec<f64> = (1..=seeds).map(|seed| hurst(when, seed.into())).collect();
            let mean = each.iter().sum::<f64>() / f64::from(seeds);
            let square: f64 = each.iter().map(|value| (value - mean).powi(2)).sum();
            (mean, (square / f64::from(seeds * (seeds - 1))).sqrt())
        };
        let (similar, error) = mean(When::SelfSimilar(spells));
        assert!((similar - 0.75).abs() < 4.0 * error + 0.03, "{similar} +- {error}");
        let (memoryless, error) = mean(When::Markov(spells));
        assert!((memoryless - 0.5).abs() < 4.0 * error + 0.03, "{memoryless} +- {error}");
    }

    #[test]
    fn a_direction_that_is_not_meant_is_free() {
        let one_sided = QueueSpec { direction: Directions::Forward, ..spec(Law::Constant, 1.0, When::Always) };
        let mut random = Random::new(1);
        assert_eq!(Queues::new(&[one_sided], Direction::Incoming).delay(0.0, &mut random), 0.0);
        assert_eq!(Queues::new(&[one_sided], Direction::Outgoing).delay(0.0, &mut random), 1e-3);
    }
}
