//! What simulated messages cost, without a log. Prints one JSON line per figure.
//!
//! `cargo bench -p ffclock-theta --bench simulator`; with FFCLOCK_BENCH_QUICK set, without the round of 10,000
//! processes. On one thread; time is what the process itself has used, as the operating system counts it.

use ffclock_theta::simulate::{Simulation, Spec, Unobserved};
use std::path::Path;

/// Name, scenario, and how many million messages a second there should be.
const RUNS: [(&str, &str, f64); 5] = [
    ("simulator, n = 4", "n = 4\nf = 1\nrounds = 200000", 10.0),
    ("simulator, n = 16", "n = 16\nf = 5\nrounds = 20000", 10.0),
    (
        "simulator, n = 16, lognormal links",
        "n = 16\nf = 5\nrounds = 20000\n[link]\nlaw = { kind = \"lognormal\", min = \"20 us\", median = \"10 us\", sigma = 0.5 }",
        10.0,
    ),
    ("simulator, n = 1024", "n = 1024\nf = 341\nrounds = 6", 1.0),
    // 10^8 messages in 3 minutes.
    ("simulator, one round of n = 10,000", "n = 10000\nf = 3333\nrounds = 1", 100.0 / 180.0),
];

fn main() {
    let is_quick = std::env::var_os("FFCLOCK_BENCH_QUICK").is_some();
    for (name, scenario, goal) in RUNS.iter().take(if is_quick { 4 } else { 5 }) {
        let spec = Spec::parse(scenario).expect("the scenarios above are right");
        let simulation = Simulation::new(&spec, Path::new("."), 1).expect("the scenarios above make sense");
        let begun = cpu_seconds();
        let outcome = simulation.run(&mut Unobserved, &mut |_| ()).expect("nothing is written");
        let value = outcome.perceived as f64 / (cpu_seconds() - begun) / 1e6;
        let line = serde_json::json!({
            "name": name, "value": (value * 100.0).round() / 100.0, "unit": "million/s", "against": format!("{} messages", outcome.perceived),
            "ratio": null, "goal": format!("value >= {goal:.2}"), "met": value >= *goal,
        });
        println!("{line}");
    }
}

/// CPU time of this process in seconds.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).expect("Linux counts CPU time") * 1e-9
}
