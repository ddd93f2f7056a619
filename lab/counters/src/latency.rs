//! How long it takes to read a counter, by the CPU's own counter before and after.
//!
//! As in the papers (counter-availability, sections III-C and IV-A): the CPU's counter is read, then the one in
//! question, then the CPU's again. What the two outer readings cost by themselves is measured in the same round, with
//! nothing between them, and subtracted. That is done a second time and treated like a counter: what it shows is the
//! error that is left.

mod sampling;
mod tally;

pub use sampling::{Arrangement, BATCH};
pub use tally::{Bins, Figures, Outlier, Overhead, RoundFigures};

use crate::ways::{CounterWay, Unread};
use ffclock_counter::{CounterId, read_ordered};
use ffclock_units::Period;
use sampling::{Burst, burst_on, bursts_everywhere};
use serde::{Deserialize, Serialize};
use std::io;
use tally::BracketTally;

/// Why latencies cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum LatencyError {
    /// A thread cannot be started or put on its CPU.
    #[error(
        "threads cannot be started, or put on their CPUs: {0}; run it where there is room for them, and where the allowed CPUs do not change (see taskset, cpuset)"
    )]
    Cpus(#[from] io::Error),
    /// A counter that could be read cannot be read now.
    #[error("{way} cannot be read any more: {why}")]
    Unread {
        /// Which way of reading.
        way: String,
        /// Why it cannot be read.
        why: Unread,
    },
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct LatencyPlan {
    /// The ways to read.
    pub ways: Vec<CounterWay>,
    /// The CPUs to do it on.
    pub cpus: Vec<usize>,
    /// Readings of each way in a round.
    pub burst: usize,
    /// Of the CPU's counter.
    pub period: Period,
}

/// What a recording says about the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyAbout {
    /// CPUs that took turns.
    pub cpus: Vec<usize>,
    /// Readings of each way in a round.
    pub burst: usize,
    /// Readings between two looks at the CPU's counter, back to back.
    pub batch: usize,
    /// Nominal ticks per second of the CPU's counter.
    pub hertz: f64,
    /// The smallest step in which it was seen to count, ticks: what is shorter cannot be seen in a single reading.
    pub step: u64,
}

/// A measurement under way.
#[derive(Debug)]
pub struct LatencyMeasurement {
    plan: LatencyPlan,
    rounds: usize,
    tally: BracketTally,
}

impl LatencyMeasurement {
    /// Prepares a measurement; the instrument's own cost is measured beside what the plan names.
    pub fn new(mut plan: LatencyPlan) -> Self {
        plan.ways.insert(0, CounterWay::nothing());
        plan.ways.push(CounterWay::nothing());
        let tally = BracketTally::new(plan.ways.clone(), plan.period);
        LatencyMeasurement { plan, rounds: 0, tally }
    }

    /// What is to be measured and how.
    pub fn about(&self) -> LatencyAbout {
        let LatencyPlan { cpus, burst, period, .. } = &self.plan;
        LatencyAbout { cpus: cpus.clone(), burst: *burst, batch: BATCH, hertz: period.as_hertz(), step: step_of_base() }
    }

    /// Measures every way once: on the CPU whose turn it is, then on all CPUs at once. `phase` and `at_s` are noted.
    ///
    /// # Errors
    /// [`LatencyError`].
    pub fn round(&mut self, phase: usize, at_s: f64) -> Result<Vec<RoundFigures>, LatencyError> {
        let cpu = self.plan.cpus[self.rounds % self.plan.cpus.len()];
        let mut bursts = burst_on(cpu, &self.plan.ways, self.plan.burst, self.rounds)?;
        self.rounds += 1;
        if self.plan.cpus.len() > 1 {
            bursts.extend(bursts_everywhere(&self.plan.cpus, &self.plan.ways, self.plan.burst)?);
        }
        self.check(&bursts)?;
        Ok(self.tally.add(phase, at_s, &bursts))
    }

    fn check(&self, bursts: &[Burst]) -> Result<(), LatencyError> {
        match bursts.iter().find(|burst| burst.ticks.is_none()) {
            None => Ok(()),
            Some(burst) => {
                let way = &self.plan.ways[burst.way];
                Err(LatencyError::Unread { way: way.name(), why: way.why_unread() })
            }
        }
    }

    /// The distributions so far, by phase, way and arrangement.
    pub fn figures(&self) -> Vec<Figures> {
        self.tally.figures()
    }

    /// The whole distributions, likewise.
    pub fn bins(&self) -> Vec<Bins> {
        self.tally.bins()
    }

    /// What the instrument itself costs, by phase and arrangement.
    pub fn overheads(&self) -> Vec<Overhead> {
        self.tally.overheads()
    }

    /// The slowest readings, slowest first.
    pub fn outliers(&self) -> Vec<Outlier> {
        self.tally.outliers()
    }
}

/// The greatest common divisor of many differences: some CPUs count in steps of many ticks.
fn step_of_base() -> u64 {
    let readings: Vec<u64> = (0..1000).map(|_| read_ordered(CounterId::CPU).raw()).collect();
    let steps = readings.windows(2).map(|two| two[1].wrapping_sub(two[0]));
    steps.fold(0, common_divisor)
}

fn common_divisor(first: u64, second: u64) -> u64 {
    let (mut a, mut b) = (first, second);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posix_clock::PosixClock;
    use crate::ways::{empty_system_call, every_way, system_call, vdso};
    use ffclock_counter::{allowed_cpus, nominal};

    fn plan(ways: Vec<CounterWay>) -> LatencyPlan {
        let period = nominal(CounterId::CPU).unwrap().period;
        LatencyPlan { ways, cpus: allowed_cpus().unwrap(), burst: 20, period }
    }

    #[test]
    fn every_way_is_measured_in_every_arrangement() {
        let ways = every_way(1e9);
        let mut latency = LatencyMeasurement::new(plan(ways.clone()));
        let rounds: Vec<RoundFigures> = (0..4).flat_map(|round| latency.round(round % 2, 0.1).unwrap()).collect();
        let arrangements = if latency.plan.cpus.len() > 1 { 4 } else { 3 };
        assert_eq!(latency.figures().len(), ways.len() * arrangements * 2);
        assert_eq!(latency.overheads().len(), arrangements * 2);
        for figures in latency.figures() {
            let ticks = figures.ticks;
            assert!(ticks.min <= ticks.p25 && ticks.median <= ticks.p75 && ticks.p999 <= ticks.max, "{figures:?}");
            assert!(figures.count > 0 && ticks.min >= 0.0, "{figures:?}");
        }
        assert!(rounds.iter().all(|round| round.min <= round.median && round.median <= round.max));
        assert!(!latency.outliers().is_empty());
    }

    #[test]
    fn a_counter_that_vanishes_is_named_with_a_remedy() {
        let mut latency = LatencyMeasurement::new(plan(vec![empty_system_call(), CounterWay::vanished()]));
        let error = latency.round(0, 0.0).unwrap_err().to_string();
        assert!(error.contains("ptp7 clock_gettime cannot be read any more") && error.contains("--only"), "{error}");
    }

    #[test]
    fn the_step_of_the_counter_divides_every_difference() {
        assert_eq!([52, 78, 26, 0].into_iter().fold(0, common_divisor), 26);
        assert!(step_of_base() >= 1);
    }

    /// Every way has a start of its own, as cold as that of the instrument's own cost, which must not swallow what is
    /// measured.
    #[test]
    fn a_first_reading_costs_no_less_than_one_among_others_of_its_kind() {
        let accesses = ["system call", "vDSO", "empty system call"];
        let ways = vec![system_call(PosixClock::Monotonic), vdso(PosixClock::Monotonic), empty_system_call()];
        let mut latency = LatencyMeasurement::new(plan(ways));
        for _ in 0..40 {
            std::thread::sleep(std::time::Duration::from_millis(10));
            latency.round(0, 0.0).unwrap();
        }
        let figures = latency.figures();
        let median = |access: &str, arrangement: Arrangement| {
            let found = figures.iter().find(|f| f.access == access && f.arrangement == arrangement);
            found.unwrap().ns.median
        };
        for access in accesses {
            let (first, single) = (median(access, Arrangement::First), median(access, Arrangement::Single));
            assert!(first > 0.5 * single && single > 0.0, "{access}: first {first} ns, single {single} ns");
        }
        for own in latency.overheads() {
            // What is left is less than the least that is measured.
            assert!(own.left_ns.abs() < 0.5 * median("system call", own.arrangement), "{own:?}");
        }
    }

    #[test]
    fn a_system_call_does_more_than_the_vdso() {
        let ways = vec![vdso(PosixClock::MonotonicRaw), system_call(PosixClock::MonotonicRaw)];
        let mut latency = LatencyMeasurement::new(plan(ways));
        (0..10).for_each(|_| drop(latency.round(0, 0.0).unwrap()));
        let smallest = |access: &str| {
            let figures = latency.figures();
            let found = figures.iter().find(|f| f.access == access && f.arrangement == Arrangement::BackToBack);
            found.unwrap().ticks.min
        };
        if smallest("vDSO") >= smallest("system call") {
            println!("SKIP: the vDSO of this host asks the kernel");
        }
        assert!(smallest("system call") > 0.0);
    }
}
