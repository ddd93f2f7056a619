//! The worlds of the tests, and what each part of the learned algorithm is worth in them: `--ablate` leaves out one at
//! a time.
//!
//! `cargo run --release -p ffclock-estimator --example laboratory [--ablate] [--seeds=N] [WORLD ...]`

#[path = "../tests/common/mod.rs"]
mod common;

use common::{DAY, HOUR, Lab, Report, World};
use ffclock_estimator::{Estimator, LearnedConfig};

const WORLDS: [&str; 31] = [
    "lan",
    "wave",
    "near",
    "far",
    "congested",
    "forward-congested",
    "far-forward-congested",
    "busy-host",
    "route",
    "route-near",
    "route-far",
    "symmetric",
    "small-route",
    "lie",
    "lie-far",
    "step",
    "step-far",
    "outage",
    "cold",
    "burst",
    "draught",
    "spell",
    "far-spell",
    "jump-1",
    "jump-3",
    "jump-far",
    "jump-20",
    "walk-1e-3",
    "walk-3e-3",
    "walk-1e-2",
    "rare-walk",
];

fn world(name: &str, seed: u64) -> World {
    let mut world = if name.contains("far") { World::far(seed) } else { World::lan(seed) };
    match name {
        "wave" => world.wave = (0.1e-6, 1_000.0),
        "cold" | "burst" => world.skew = 100e-6,
        "congested" => (world.queueing, world.tail) = (60e-6, 2e-3),
        "forward-congested" => world.congestion = (100e-6, 0.0),
        "far-forward-congested" => world.congestion = (1e-3, 0.0),
        "busy-host" => world.lateness = 15e-6,
        "walk-1e-3" | "rare-walk" => world.walk = 1e-9,
        "walk-3e-3" => world.walk = 3e-9,
        "walk-1e-2" => world.walk = 1e-8,
        "near" | "route-near" => {
            (world.forward_floor, world.backward_floor, world.queueing, world.tail) = (445e-6, 445e-6, 30e-6, 300e-6);
        }
        _ => {}
    }
    world
}

/// The world's script: what changes in it at `time`.
fn script(name: &str, world: &mut World) {
    let hours = world.time() / HOUR;
    let away = (6.0..12.0).contains(&hours);
    let briefly = (6.0..6.0 + 300.0 / HOUR).contains(&hours);
    match name {
        "route" => world.forward_floor = if away { 1_040e-6 } else { 140e-6 },
        "route-near" => world.backward_floor = if away { 745e-6 } else { 445e-6 },
        "route-far" => world.forward_floor = if away { 21e-3 } else { 19e-3 },
        "small-route" => world.forward_floor = if away { 160e-6 } else { 140e-6 },
        "symmetric" => {
            (world.forward_floor, world.backward_floor) = if away { (1_040e-6, 1_040e-6) } else { (140e-6, 140e-6) }
        }
        "lie" => world.lie = if briefly { 150e-3 } else { 0.0 },
        "lie-far" => world.lie = if briefly { 5e-3 } else { 0.0 },
        "step" => world.lie = if hours > 6.0 { 150e-3 } else { 0.0 },
        "step-far" => world.lie = if hours > 6.0 { 5e-3 } else { 0.0 },
        "jump-1" => world.skew = if hours > 6.0 { 51e-6 } else { 50e-6 },
        "jump-3" | "jump-far" => world.skew = if hours > 6.0 { 53e-6 } else { 50e-6 },
        "jump-20" => world.skew = if hours > 6.0 { 70e-6 } else { 50e-6 },
        "spell" => world.congestion.0 = if away { 100e-6 } else { 0.0 },
        "far-spell" => world.congestion.0 = if away { 1e-3 } else { 0.0 },
        "draught" if away && world.skew < 51e-6 => world.skew += 0.1e-6,
        _ => {}
    }
}

/// Lives through a world. Returns what was seen, and from when to when the figures count.
fn live<E: Estimator>(name: &str, mut lab: Lab<E>) -> (Report, [f64; 2]) {
    lab.strict = false;
    let poll = if name == "rare-walk" { 256.0 } else { 16.0 };
    let (settled, end) = if name == "burst" || name == "cold" { (60.0, HOUR) } else { (2.0 * HOUR, DAY) };
    if name == "burst" {
        lab.run(2.0, 17.0, |_| ());
    }
    if name == "outage" {
        lab.run(poll, 8.0 * HOUR, |_| ());
        while lab.world.time() < 10.0 * HOUR {
            lab.world.advance(lab.world.time() + poll);
            lab.read();
        }
    }
    lab.run(poll, end, |world| script(name, world));
    (lab.report, [settled, end])
}

fn run<E: Estimator>(name: &str, label: &str, lab: Lab<E>) {
    let (report, [settled, end]) = live(name, lab);
    let micros = |seconds: f64| 1e6 * seconds;
    let (within, width) = report.calibration(settled, end);
    let mut bound_ratio = 0.0_f64;
    for ((_, error), bound) in report.errors.iter().zip(&report.bounds) {
        bound_ratio = bound_ratio.max(error.abs() / bound);
    }
    println!(
        "{name:22} {label:14} IQR {:6.2} us  1 % {:7.2}  median {:7.2}  99 % {:7.2}  largest {:7.2}  within 2 u {:5.1} %  width {width:.2}  escaped {} ({bound_ratio:.2})",
        micros(report.iqr(settled)),
        micros(report.quantile(settled, 0.01)),
        micros(report.quantile(settled, 0.5)),
        micros(report.quantile(settled, 0.99)),
        micros(report.worst(settled, end)),
        100.0 * within,
        report.escaped,
    );
}

/// The error IQR without a part over that with all, seed by seed: the median and its 95 % confidence interval by order
/// statistics.
fn ablate(name: &str, seeds: u64) {
    let iqr = |seed: u64, config: LearnedConfig| {
        let (report, [settled, _]) = live(name, Lab::learned_with(world(name, seed), config));
        report.iqr(settled)
    };
    let whole: Vec<f64> = (1..=seeds).map(|seed| iqr(seed, LearnedConfig::default())).collect();
    let mut sorted = whole.clone();
    sorted.sort_by(f64::total_cmp);
    println!("{name}: IQR {:.2} us, median of {seeds} seeds", 1e6 * sorted[sorted.len() / 2]);
    let mut parts = Vec::new();
    LearnedConfig::parts(&mut |part| parts.push(part));
    for part in parts {
        let mut config = LearnedConfig::default();
        config.set(part, "false").expect("a part is an option");
        let ratio = |(seed, whole): (u64, &f64)| iqr(seed, config.clone()) / whole;
        let mut ratios: Vec<f64> = (1..=seeds).zip(&whole).map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let count = ratios.len() as f64;
        let rank = (0.5 * (count - 1.96 * libm::sqrt(count))).max(0.0) as usize;
        let (low, high) = (ratios[rank], ratios[ratios.len() - 1 - rank]);
        println!("{name}: without {part:16} {:.2} [{low:.2}, {high:.2}]", ratios[ratios.len() / 2]);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_ablation = arguments.iter().any(|argument| argument == "--ablate");
    let named = |name: &&str| arguments.iter().any(|argument| argument == *name);
    let chosen: Vec<&str> = WORLDS.into_iter().filter(named).collect();
    let chosen = if chosen.is_empty() { WORLDS.to_vec() } else { chosen };
    let seeds = arguments.iter().find_map(|argument| argument.strip_prefix("--seeds=")?.parse().ok()).unwrap_or(1);
    for name in chosen {
        if is_ablation {
            ablate(name, seeds);
            continue;
        }
        run(name, "classic", Lab::new(world(name, 1)));
        for seed in 1..=seeds {
            run(name, "learned", Lab::learned(world(name, seed)));
        }
    }
}
