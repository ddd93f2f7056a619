//! How many exchanges a second one core takes in, and how much memory a source occupies.
//!
//! `cargo run --release -p ffclock-estimator --example throughput`

#[path = "../tests/common/mod.rs"]
mod common;

use common::World;
use ffclock_estimator::{Classic, ClassicConfig, Estimator};
use ffclock_units::{Exchange, Period};
use std::time::Instant;

fn main() {
    for poll in [0.25, 1.0, 16.0, 64.0] {
        let mut world = World::lan(1);
        let exchanges: Vec<Exchange> = (0..200_000)
            .map(|_| {
                world.advance(world.time() + poll);
                world.exchange()
            })
            .collect();
        let nominal = Period::from_hertz(world.hertz).expect("a counter has a frequency");
        let mut classic = Classic::new(ClassicConfig::default(), nominal, None);
        let mut fastest = f64::INFINITY;
        // The fastest of many blocks: the others were interrupted.
        for block in exchanges.chunks(5_000) {
            let begun = Instant::now();
            block.iter().for_each(|exchange| assert!(classic.update(exchange).round_trip().is_some()));
            fastest = fastest.min(begun.elapsed().as_nanos() as f64 / block.len() as f64);
        }
        println!(
            "poll {poll} s: {:.2} million exchanges/s ({fastest:.0} ns each), {} bytes",
            1e3 / fastest,
            classic.bytes()
        );
    }
}
