//! What becomes of the brackets: distributions, the time series, the slowest.

use super::sampling::{Arrangement, Burst};
use crate::ways::CounterWay;
use ffclock_statistics::{LogHistogram, Spread};
use ffclock_units::Period;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many of the slowest readings are reported.
const OUTLIERS: usize = 20;

/// The distribution of one way in one phase and arrangement; the instrument's own cost is subtracted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Number of the phase.
    pub phase: usize,
    /// What was read.
    pub counter: String,
    /// How it was read: the instruction or the system call.
    pub access: String,
    /// In which arrangement.
    pub arrangement: Arrangement,
    /// Brackets.
    pub count: u64,
    /// Ticks of the CPU's counter per reading.
    pub ticks: Spread,
    /// Nanoseconds per reading.
    pub ns: Spread,
}

/// How often each latency was seen: what [`Figures`] summarise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bins {
    /// Number of the phase.
    pub phase: usize,
    /// What was read.
    pub counter: String,
    /// How it was read: the instruction or the system call.
    pub access: String,
    /// In which arrangement.
    pub arrangement: Arrangement,
    /// Ticks per reading, and how often.
    pub bins: Vec<(f64, u64)>,
}

/// What the instrument itself costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// Number of the phase.
    pub phase: usize,
    /// In which arrangement.
    pub arrangement: Arrangement,
    /// Per reading, as it was subtracted, ns.
    pub subtracted_ns: f64,
    /// What was left of it when it was measured again and treated like a counter, ns: the median.
    pub left_ns: f64,
    /// The distance between the quartiles of the same, ns.
    pub left_iqr_ns: f64,
}

/// A slow reading.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outlier {
    /// Seconds since the beginning.
    pub t: f64,
    /// Number of the phase.
    pub phase: usize,
    /// On which CPU.
    pub cpu: usize,
    /// What was read.
    pub counter: String,
    /// How it was read: the instruction or the system call.
    pub access: String,
    /// In which arrangement.
    pub arrangement: Arrangement,
    /// Ticks of the bracket.
    pub ticks: u64,
    /// The same in ns.
    pub ns: f64,
}

/// One way in one round, ticks per reading without the instrument's own cost in that round: a point of the time series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundFigures {
    /// Seconds since the beginning.
    pub t: f64,
    /// Number of the phase.
    pub phase: usize,
    /// On which CPU.
    pub cpu: usize,
    /// What was read.
    pub counter: String,
    /// How it was read: the instruction or the system call.
    pub access: String,
    /// In which arrangement.
    pub arrangement: Arrangement,
    /// The fastest.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The slowest.
    pub max: f64,
}

/// Which brackets are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BracketKey {
    phase: usize,
    /// Which of the ways.
    way: usize,
    arrangement: Arrangement,
}

impl BracketKey {
    /// The same for another way.
    fn with_way(self, way: usize) -> Self {
        BracketKey { way, ..self }
    }
}

#[derive(Debug)]
pub(super) struct BracketTally {
    ways: Vec<CounterWay>,
    period: Period,
    brackets: BTreeMap<BracketKey, LogHistogram>,
    slowest: Vec<(u64, Outlier)>,
}

impl BracketTally {
    pub(super) fn new(ways: Vec<CounterWay>, period: Period) -> Self {
        BracketTally { ways, period, brackets: BTreeMap::new(), slowest: Vec::new() }
    }

    /// The first way is the instrument's own cost, the last one its check; neither is a counter.
    fn is_counter(&self, way: usize) -> bool {
        way != 0 && way + 1 != self.ways.len()
    }

    pub(super) fn add(&mut self, phase: usize, at_s: f64, bursts: &[Burst]) -> Vec<RoundFigures> {
        let mut rounds = Vec::new();
        for burst in bursts {
            let ticks = burst.ticks.as_deref().unwrap_or_default();
            let histogram =
                self.brackets.entry(BracketKey { phase, way: burst.way, arrangement: burst.arrangement }).or_default();
            ticks.iter().for_each(|bracket| histogram.add(*bracket));
            if self.is_counter(burst.way) {
                self.note_slowest(phase, at_s, burst);
                rounds.extend(self.point(phase, at_s, burst, &bursts_overhead(bursts, burst)));
            }
        }
        rounds
    }

    fn note_slowest(&mut self, phase: usize, at_s: f64, burst: &Burst) {
        // A bracket of many readings says nothing about a single slow one.
        let Some(&ticks) = burst.ticks.iter().flatten().max().filter(|_| burst.arrangement.readings() == 1) else {
            return;
        };
        let floor = if self.slowest.len() < OUTLIERS { 0 } else { self.slowest.last().map_or(0, |last| last.0) };
        if ticks <= floor {
            return;
        }
        let way = &self.ways[burst.way];
        let outlier = Outlier {
            t: at_s,
            phase,
            cpu: burst.cpu,
            counter: way.counter().to_owned(),
            access: way.access().to_owned(),
            arrangement: burst.arrangement,
            ticks,
            ns: self.nanos(ticks as f64),
        };
        self.slowest.push((ticks, outlier));
        self.slowest.sort_by_key(|slow| core::cmp::Reverse(slow.0));
        self.slowest.truncate(OUTLIERS);
    }

    fn point(&self, phase: usize, at_s: f64, burst: &Burst, overhead: &[u64]) -> Option<RoundFigures> {
        let as_floats = |ticks: &[u64]| ticks.iter().map(|&tick| tick as f64).collect::<Vec<f64>>();
        let own = Spread::of(&as_floats(overhead))?.median;
        let readings = burst.arrangement.readings() as f64;
        let net = Spread::of(&as_floats(burst.ticks.as_deref()?))?.map(|ticks| (ticks - own).max(0.0) / readings);
        let way = &self.ways[burst.way];
        Some(RoundFigures {
            t: at_s,
            phase,
            cpu: burst.cpu,
            counter: way.counter().to_owned(),
            access: way.access().to_owned(),
            arrangement: burst.arrangement,
            min: net.min,
            median: net.median,
            max: net.max,
        })
    }

    fn nanos(&self, ticks: f64) -> f64 {
        ticks * self.period.as_seconds() * 1e9
    }

    /// Ticks per reading of a way, less the median of the instrument's own cost.
    fn net(&self, key: BracketKey) -> Option<Spread> {
        let own = self.brackets.get(&key.with_way(0))?.spread()?.median;
        let readings = key.arrangement.readings() as f64;
        let all = self.brackets.get(&key)?.spread()?;
        Some(all.map(|ticks| (ticks - own).max(0.0) / readings))
    }

    pub(super) fn figures(&self) -> Vec<Figures> {
        let counters = self.brackets.iter().filter(|(key, _)| self.is_counter(key.way));
        counters
            .filter_map(|(&key, histogram)| {
                let BracketKey { phase, way, arrangement } = key;
                let ticks = self.net(key)?;
                let way = &self.ways[way];
                let (counter, access) = (way.counter().to_owned(), way.access().to_owned());
                let ns = ticks.map(|ticks| self.nanos(ticks));
                Some(Figures { phase, counter, access, arrangement, count: histogram.count(), ticks, ns })
            })
            .collect()
    }

    pub(super) fn bins(&self) -> Vec<Bins> {
        let counters = self.brackets.iter().filter(|(key, _)| self.is_counter(key.way));
        counters
            .filter_map(|(&key, histogram)| {
                let BracketKey { phase, way, arrangement } = key;
                let own = self.brackets.get(&key.with_way(0))?.spread()?.median;
                let net = |ticks: f64| (ticks - own).max(0.0) / arrangement.readings() as f64;
                let bins = histogram.bins().map(|(ticks, count)| (net(ticks), count)).collect();
                let way = &self.ways[way];
                let (counter, access) = (way.counter().to_owned(), way.access().to_owned());
                Some(Bins { phase, counter, access, arrangement, bins })
            })
            .collect()
    }

    pub(super) fn overheads(&self) -> Vec<Overhead> {
        let last = self.ways.len() - 1;
        let own = self.brackets.iter().filter(|(key, _)| key.way == 0);
        own.filter_map(|(&key, histogram)| {
            let BracketKey { phase, arrangement, .. } = key;
            let subtracted = histogram.spread()?.median / arrangement.readings() as f64;
            let check = self.brackets.get(&key.with_way(last))?.spread()?;
            let left = check.map(|ticks| self.nanos(ticks / arrangement.readings() as f64 - subtracted));
            let (left_ns, left_iqr_ns) = (left.median, left.iqr());
            Some(Overhead { phase, arrangement, subtracted_ns: self.nanos(subtracted), left_ns, left_iqr_ns })
        })
        .collect()
    }

    pub(super) fn outliers(&self) -> Vec<Outlier> {
        self.slowest.iter().map(|(_, outlier)| outlier.clone()).collect()
    }
}

/// The instrument's own brackets of the same round, CPU and arrangement.
fn bursts_overhead(bursts: &[Burst], of: &Burst) -> Vec<u64> {
    let same = |burst: &&Burst| burst.way == 0 && burst.cpu == of.cpu && burst.arrangement == of.arrangement;
    bursts.iter().find(same).and_then(|burst| burst.ticks.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(way: usize, ticks: &[u64]) -> Burst {
        Burst { way, cpu: 3, arrangement: Arrangement::Single, ticks: Some(ticks.to_vec()) }
    }

    #[test]
    fn the_instruments_own_cost_is_subtracted() {
        let ways = vec![CounterWay::nothing(), crate::ways::empty_system_call(), CounterWay::nothing()];
        let mut tally = BracketTally::new(ways, Period::from_hertz(2e9).unwrap());
        let bursts = [burst(0, &[50, 50, 60]), burst(1, &[150, 150, 5150]), burst(2, &[50, 54, 70])];
        let rounds = tally.add(0, 1.5, &bursts);
        assert_eq!(rounds.len(), 1);
        assert_eq!((rounds[0].min, rounds[0].median, rounds[0].max, rounds[0].cpu), (100.0, 100.0, 5100.0, 3));
        let figures = tally.figures();
        assert_eq!((figures.len(), figures[0].ticks.median), (1, 100.0));
        assert!((figures[0].ns.median - 50.0).abs() < 1e-9);
        assert_eq!(figures[0].ticks.max, 5100.0);
        assert_eq!(tally.bins()[0].bins[0], (100.0, 2));
        let overhead = tally.overheads();
        assert!((overhead[0].subtracted_ns - 25.0).abs() < 1e-9 && (overhead[0].left_ns - 2.0).abs() < 1e-9);
        let slowest = tally.outliers();
        assert_eq!((slowest.len(), slowest[0].ticks, slowest[0].t), (1, 5150, 1.5));
    }

    #[test]
    fn the_slowest_are_kept_in_order() {
        let ways = vec![CounterWay::nothing(), crate::ways::empty_system_call(), CounterWay::nothing()];
        let mut tally = BracketTally::new(ways, Period::from_hertz(1e9).unwrap());
        for size in 0..100 {
            tally.add(0, size as f64, &[burst(0, &[1]), burst(1, &[(size * 37) % 100 + 1])]);
        }
        let slowest: Vec<u64> = tally.outliers().iter().map(|outlier| outlier.ticks).collect();
        assert_eq!(slowest, (81..=100).rev().collect::<Vec<u64>>());
    }
}
