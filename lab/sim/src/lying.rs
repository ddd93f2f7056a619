//! Worlds of chance in which a minority of the servers lies, and what the strict bound makes of them.
//!
//! The strict bound needs the guards and the vote alone, so the filter is the classic one, which is quick, and of which
//! the guards ask nothing. All else is the product's: conversation, guards, proven intervals, vote. The polls are long,
//! since it is exchanges that cost time and not hours. What is promised: as long as the honest servers' claims about
//! themselves hold, no reading is further off than the bound, whatever the others say.

mod draw;

pub use draw::{LIES, LyingWorld};

use crate::several::GUARDS;
use crate::{Cast, Run, ShownReading, Sinks};
use ffclock_estimator::LearnedConfig;
use serde::Serialize;
use std::collections::BTreeMap;

/// At most this many worlds with a reading outside are named.
const NAMED_MAX: usize = 20;

/// A world in which a strict bound did not hold the truth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StrictEscape {
    /// The seed of the world.
    pub seed: u64,
    /// Its readings outside.
    pub outside: u64,
    /// The largest error over the bound.
    pub error_over_bound: f64,
}

/// How often the strict bound held the truth.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StrictReport {
    /// Worlds.
    pub worlds: u64,
    /// Simulated hours in which readings were judged.
    pub hours: f64,
    /// Exchanges.
    pub exchanges: u64,
    /// Readings with a strict bound.
    pub readings: u64,
    /// Those whose bound did not hold the truth.
    pub outside: u64,
    /// The largest error over the bound of any reading: below one, all were inside.
    pub largest_over_bound: f64,
    /// How many liars of each kind there were.
    pub liars: BTreeMap<&'static str, u64>,
    /// Worlds in which all liars claim the same false time.
    pub alike: u64,
    /// The worlds with the most readings outside.
    pub escapes: Vec<StrictEscape>,
}

impl StrictReport {
    /// Lives through the world of this seed, and judges every reading.
    pub fn of_world(seed: u64) -> Self {
        let world = LyingWorld::drawn(seed);
        let scenario = world.scenario();
        let run = Run { name: "lying", scenario: &scenario, seed };
        let (mut readings, mut outside, mut largest) = (0, 0, 0.0_f64);
        let from = scenario.from.0;
        let mut samples = |sample: &ShownReading<'_>| {
            let Some(strict) = sample.claims.and_then(|claims| claims.strict).filter(|_| sample.at >= from) else {
                return;
            };
            readings += 1;
            outside += u64::from(!strict.contains(sample.error));
            largest = largest.max(sample.error.as_span().as_seconds().abs() / strict.as_span().as_seconds());
        };
        let cast = Cast { clocks: &[GUARDS], learned: &LearnedConfig::default() };
        let result = run.execute_as(&cast, Sinks { rows: None, samples: Some(&mut samples) });
        let escape = StrictEscape { seed, outside, error_over_bound: largest };
        let mut liars = BTreeMap::new();
        world.lies.iter().for_each(|lie| *liars.entry(*lie).or_default() += 1);
        StrictReport {
            worlds: 1,
            hours: (scenario.duration.seconds() - scenario.from.seconds()) / 3600.0,
            exchanges: result.exchanges,
            readings,
            outside,
            largest_over_bound: largest,
            liars,
            alike: u64::from(world.is_alike),
            escapes: (outside > 0).then_some(escape).into_iter().collect(),
        }
    }

    /// Adds what another part of a campaign found. The order does not matter.
    pub fn add(&mut self, other: StrictReport) {
        self.worlds += other.worlds;
        self.hours += other.hours;
        self.exchanges += other.exchanges;
        self.readings += other.readings;
        self.outside += other.outside;
        self.largest_over_bound = self.largest_over_bound.max(other.largest_over_bound);
        self.alike += other.alike;
        for (kind, count) in other.liars {
            *self.liars.entry(kind).or_default() += count;
        }
        self.escapes.extend(other.escapes);
        self.escapes.sort_by_key(|escape| (std::cmp::Reverse(escape.outside), escape.seed));
        self.escapes.truncate(NAMED_MAX);
    }
}
