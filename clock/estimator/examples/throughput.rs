//! How many exchanges a second one core takes in, and how much memory a source occupies.
//!
//! `cargo run --release -p ffclock-estimator --example throughput`

#[path = "../tests/common/mod.rs"]
mod common;

use common::World;
use ffclock_estimator::{Classic, ClassicConfig, Ensemble, Estimator, Learned, LearnedConfig};
use ffclock_units::{Exchange, Period};
use std::time::Instant;

fn main() {
    single();
    for servers in [1, 4, 16] {
        several(servers);
    }
}

/// One clock from several servers, without the servers' own estimators and with them.
fn several(servers: usize) {
    let mut world = World::lan(1);
    let nominal = Period::from_hertz(world.hertz).expect("a counter has a frequency");
    let (config, classic) = (LearnedConfig::default(), ClassicConfig::default());
    let mut own: Vec<Learned> =
        (0..servers).map(|_| Learned::new(config.clone(), classic.clone(), nominal, None)).collect();
    let mut ensemble = Ensemble::new(config, &classic, nominal, servers);
    let mut fastest = [f64::INFINITY; 2];
    for _ in 0..20 {
        let mut spent = [0.0; 2];
        for number in 0..40 * servers {
            let server = number % servers;
            world.advance(world.time() + 16.0 / servers as f64);
            let exchange = world.exchange();
            let begun = Instant::now();
            own[server].update(&exchange);
            let owned = begun.elapsed();
            std::hint::black_box(ensemble.update(server, &exchange, &own[server]));
            let all = begun.elapsed();
            for (spent, part) in spent.iter_mut().zip([all - owned, all]) {
                *spent += part.as_nanos() as f64 / (40 * servers) as f64;
            }
        }
        fastest = core::array::from_fn(|part| fastest[part].min(spent[part]));
    }
    let [common, all] = fastest.map(|nanoseconds| 1e-3 * nanoseconds);
    let bytes = ensemble.bytes() + own.iter().map(Learned::bytes).sum::<usize>();
    println!(
        "{servers} servers: {common:.2} us an exchange, {all:.2} us with the servers' own estimators, {bytes} bytes"
    );
}

fn single() {
    for poll in [0.25, 1.0, 16.0, 64.0] {
        let mut world = World::lan(1);
        let exchanges: Vec<Exchange> = (0..200_000)
            .map(|_| {
                world.advance(world.time() + poll);
                world.exchange()
            })
            .collect();
        let nominal = Period::from_hertz(world.hertz).expect("a counter has a frequency");
        let classic = Classic::new(ClassicConfig::default(), nominal, None);
        let bytes = classic.bytes();
        time("classic", poll, classic, &exchanges, bytes);
        let learned = Learned::new(LearnedConfig::default(), ClassicConfig::default(), nominal, None);
        let bytes = learned.bytes();
        time("learned", poll, learned, exchanges.get(..20_000).unwrap_or(&exchanges), bytes);
    }
}

fn time(name: &str, poll: f64, mut estimator: impl Estimator, exchanges: &[Exchange], bytes: usize) {
    let mut fastest = f64::INFINITY;
    // The fastest of many blocks: the others were interrupted.
    for block in exchanges.chunks(exchanges.len() / 20) {
        let begun = Instant::now();
        block.iter().for_each(|exchange| assert!(estimator.update(exchange).round_trip().is_some()));
        fastest = fastest.min(begun.elapsed().as_nanos() as f64 / block.len() as f64);
    }
    println!(
        "{name}, poll {poll} s: {:.3} million exchanges/s ({:.2} us each), {bytes} bytes",
        1e3 / fastest,
        1e-3 * fastest
    );
}
