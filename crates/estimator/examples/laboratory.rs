//! What each part of the learned algorithm is worth: the worlds of the tests with all parts, and with each left out.
//!
//! `cargo run --release -p ffclock-estimator --example laboratory [WORLD ...]`

#[path = "../tests/common/mod.rs"]
mod common;

use common::{DAY, HOUR, Lab, World};
use ffclock_estimator::{Estimator, LearnedConfig};

const WORLDS: [&str; 6] = ["lan", "wave", "far", "route", "congested", "burst"];
const PARTS: [&str; 7] = ["cycles", "several_walks", "edges", "humps", "directions", "floor_changes", "floor_memory"];

fn world(name: &str, seed: u64) -> World {
    let mut world = if name == "far" { World::far(seed) } else { World::lan(seed) };
    if name == "wave" {
        world.wave = (0.1e-6, 1_000.0);
    }
    if name == "burst" {
        world.skew = 100e-6;
    }
    world
}

/// The world's script: what changes in it at `time`.
fn script(name: &str, world: &mut World) {
    let hours = world.time() / HOUR;
    match name {
        "route" => world.forward_floor = if (6.0..12.0).contains(&hours) { 1_040e-6 } else { 140e-6 },
        "congested" => (world.queueing, world.tail) = (60e-6, 2e-3),
        _ => {}
    }
}

fn run<E: Estimator>(name: &str, label: &str, mut lab: Lab<E>) {
    lab.strict = false;
    let (poll, settled, end) = if name == "burst" { (16.0, 16.0, HOUR) } else { (16.0, 2.0 * HOUR, DAY) };
    if name == "burst" {
        lab.run(2.0, 17.0, |_| ());
    }
    lab.run(poll, end, |world| script(name, world));
    let report = &lab.report;
    let micros = |seconds: f64| 1e6 * seconds;
    let (within, width) = report.calibration(settled, end);
    let mut bound_ratio = 0.0_f64;
    for ((_, error), bound) in report.errors.iter().zip(&report.bounds) {
        bound_ratio = bound_ratio.max(error.abs() / bound);
    }
    println!(
        "{name:10} {label:22} IQR {:6.2} us  1 % {:7.2}  median {:7.2}  99 % {:7.2}  largest {:7.2}  within 2 u {:5.1} %  width {width:.2}  escaped {} ({bound_ratio:.2})",
        micros(report.iqr(settled)),
        micros(report.quantile(settled, 0.01)),
        micros(report.quantile(settled, 0.5)),
        micros(report.quantile(settled, 0.99)),
        micros(report.worst(settled, end)),
        100.0 * within,
        report.escaped,
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ablate = arguments.iter().any(|argument| argument == "--ablate");
    let named = |name: &&str| arguments.iter().any(|argument| argument == *name);
    let chosen: Vec<&str> = WORLDS.into_iter().filter(named).collect();
    for name in if chosen.is_empty() { WORLDS.to_vec() } else { chosen } {
        run(name, "classic", Lab::new(world(name, 1)));
        run(name, "learned", Lab::learned(world(name, 1)));
        for part in PARTS.into_iter().filter(|_| ablate) {
            let mut config = LearnedConfig::default();
            config.set(part, "false").expect("a part is an option");
            run(name, &format!("without {part}"), Lab::learned_with(world(name, 1), config));
        }
    }
}
