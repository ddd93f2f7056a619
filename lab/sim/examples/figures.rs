//! The figures of the feed-forward clocks in the worlds of some files, to the last bit: where there is one server, live
//! and in retrospect, of seed 1; where there are several, of the first seeds, since their paths differ by the seed.
//! `tools/mutation` compares them.
//!
//! `cargo run --release -p ffclock-sim --example figures -- SEEDS FILE.toml ...`

use ffclock_estimator::{ClassicConfig, LearnedConfig, Smoother};
use ffclock_sim::{Run, Scenario};
use ffclock_trace::TraceRow;
use ffclock_units::{CounterEpoch, Ticks};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A smoother that restarts at every epoch of the counter.
struct Retrospect {
    smoother: Smoother,
    epoch: Option<CounterEpoch>,
    epochs: usize,
}

impl Retrospect {
    fn feed(&mut self, row: &TraceRow) {
        if self.epoch.replace(row.epoch).is_some_and(|before| before != row.epoch) {
            self.smoother.restart();
            self.epochs += 1;
        }
        if let Some(exchange) = &row.exchange {
            self.smoother.update(exchange);
        }
    }

    /// A digest of the time at every exchange, and a little after it.
    fn digest(self) -> u64 {
        let smoothed = self.smoother.finish(&mut |_, _| ());
        let mut hasher = DefaultHasher::new();
        for time in smoothed.times() {
            let later =
                (0..=self.epochs).find_map(|epoch| smoothed.at(epoch, time.counter + Ticks::from_raw(1_000_000)));
            format!("{time:?} {later:?}").hash(&mut hasher);
        }
        hasher.finish()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let seeds: u64 = words.next().ok_or("how many seeds?")?.parse()?;
    for name in words {
        let scenario = Scenario::parse(&name, &std::fs::read_to_string(&name)?)?;
        let run = |seed| Run { name: &name, scenario: &scenario, seed };
        if !scenario.servers.is_empty() {
            let clocks: Vec<_> = (1..=seeds).map(|seed| run(seed).execute_with(&["joint"], None).clocks).collect();
            println!("{name} {clocks:?}");
            continue;
        }
        let nominal = scenario.counter.nominal();
        let smoother = Smoother::new(LearnedConfig::default(), ClassicConfig::default(), nominal);
        let mut retrospect = Retrospect { smoother, epoch: None, epochs: 0 };
        let mut feed = |row: &TraceRow| retrospect.feed(row);
        let result = run(1).execute_with(&["classic", "learned"], Some(&mut feed));
        println!("{name} {:?} {:x}", result.clocks, retrospect.digest());
    }
    Ok(())
}
