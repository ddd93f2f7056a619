//! What the assumed wander costs in bound and error, and what waves of a day do: the tables of
//! docs/algorithm/classic.md.
//!
//! `cargo run --release -p ffclock-estimator --example wander`

#[path = "../tests/common/mod.rs"]
mod common;

use common::{DAY, HOUR, Lab, World};
use ffclock_estimator::{ClassicConfig, Estimator, Event, Learned, LearnedConfig};
use ffclock_units::{Period, Rate};

/// Names, one-way delays in s, polls in s and lengths in days.
const PLACES: [(&str, f64, f64, f64); 6] = [
    ("LAN", 140e-6, 1.0, 3.0),
    ("LAN", 140e-6, 16.0, 3.0),
    ("LAN", 140e-6, 64.0, 3.0),
    ("LAN", 140e-6, 1024.0, 8.0),
    ("1 ms", 1e-3, 64.0, 3.0),
    ("19 ms", 19e-3, 64.0, 3.0),
];

fn world(delay: f64, seed: u64) -> World {
    if delay > 10e-3 {
        return World::far(seed);
    }
    let mut world = World::lan(seed);
    (world.forward_floor, world.backward_floor) = (delay, delay);
    if delay > 0.5e-3 {
        (world.queueing, world.tail) = (30e-6, 300e-6);
    }
    world
}

fn main() {
    for (name, delay, poll, days) in PLACES {
        for (wave, wander) in [(0.0, 0.5), (0.0, 1.0), (0.0, 2.0), (0.0, 3.0), (0.5, 1.0), (1.0, 1.0), (2.0, 1.0)] {
            let mut world = world(delay, 1);
            world.wave = (wave * 1e-6, DAY);
            let nominal = Period::from_hertz(world.hertz).expect("a frequency");
            let config = ClassicConfig { wander: Rate::from_ppm(wander), ..ClassicConfig::default() };
            let mut lab = Lab::of(world, Learned::new(LearnedConfig::default(), config, nominal, None));
            lab.strict = false;
            lab.run(poll, days * DAY, |_| ());
            let mut bounds = lab.report.bounds.clone();
            bounds.sort_by(f64::total_cmp);
            println!(
                "{name:>5} {poll:4} s, wave {wave} ppm, wander {wander} ppm: {} restarts, learned {} times, IQR {:.2} us, \
                 largest {:.1} us, median bound {:.1} us, {} outside",
                lab.report.count(Event::FilterRestarted),
                lab.report.count(Event::WanderExceeded),
                1e6 * lab.report.iqr(6.0 * HOUR),
                1e6 * lab.report.worst(6.0 * HOUR, f64::INFINITY),
                1e6 * bounds[bounds.len() / 2],
                lab.report.escaped
            );
            debug_assert!(lab.classic.summary().wander >= Rate::from_ppm(wander));
        }
    }
}
