//! "It allocates when made, then never": every allocation of this thread is counted while an estimator lives through a
//! day in which much goes wrong. And how much a recording takes that is kept to be smoothed.
//!
//! The allocator is the program's, so this test has a file, and thus a program, of its own.

mod common;
mod counting;

use common::{DAY, HOUR, World};
use counting::{allocations, live};
use ffclock_estimator::{
    Classic, ClassicConfig, Ensemble, Estimator, Event, Learned, LearnedConfig, SmoothedTime, Smoother,
};
use ffclock_units::Period;

/// The learned estimator looks at what it learned after 40, 160 and 640 exchanges; there are more than these before the
/// restart and after it.
const LAST_LOOK: usize = 640;
const RESTART: usize = 4_000;

/// Changes of route in both directions and in one, a lie that ends and one that stays, a server that is another,
/// congestion, two hours without packets.
fn upset(world: &mut World) {
    let hour = world.time() / HOUR;
    let within = |begin: f64, end: f64| (begin..end).contains(&hour);
    world.forward_floor = if within(5.0, 7.0) { 1_040e-6 } else { 140e-6 };
    world.backward_floor = match () {
        () if within(6.0, 8.0) => 590e-6,
        () if within(20.0, 21.0) => 40e-6,
        () => 140e-6,
    };
    world.lie = match () {
        () if within(9.0, 9.1) => 150e-3,
        () if hour >= 22.0 => -30e-3,
        () => 0.0,
    };
    world.identity = if hour >= 17.0 { 0x5050_5300 } else { 0x4750_5300 };
    world.congestion = if within(11.0, 14.0) { (2e-3, 0.0) } else { (0.0, 0.0) };
    world.wave = if hour >= 18.0 { (0.3e-6, 1_000.0) } else { (0.0, 1_000.0) };
    if within(15.0, 17.0) {
        world.advance(17.0 * HOUR);
    }
}

/// The exchanges of a day at 16 s polls, after each of which the clock is read as the daemon reads it. Returns
/// (exchange, allocations) where there were any.
fn day(estimator: &mut dyn Estimator) -> Vec<(usize, u64)> {
    let mut world = World::lan(5);
    let mut found = Vec::new();
    let mut number = 0;
    let mut seen = [Event::FloorShiftUp, Event::FloorShiftDown, Event::ServerStepAccepted].map(|kind| (kind, 0));
    while world.time() < DAY {
        world.advance(world.time() + 16.0);
        upset(&mut world);
        let exchange = world.exchange();
        // A suspend begins the estimator again, which is no steady state.
        if number == RESTART {
            estimator.restart();
        }
        let (count, outcome) = allocations(|| {
            let outcome = estimator.update(&exchange);
            std::hint::black_box((estimator.estimate(), estimator.summary(), estimator.memory()));
            outcome
        });
        seen.iter_mut().for_each(|(kind, times)| *times += usize::from(outcome.events.contains(*kind)));
        if count > 0 {
            found.push((number, count));
        }
        number += 1;
    }
    assert!(number > RESTART + LAST_LOOK, "{number}");
    assert!(seen.iter().all(|(_, times)| *times > 0), "what was to happen did not: {seen:?}");
    found
}

#[test]
fn an_estimator_allocates_when_it_is_made_and_never_after() {
    let nominal = Period::from_hertz(1e9).expect("a counter has a frequency");
    let (count, mut classic) = allocations(|| Classic::new(ClassicConfig::default(), nominal, None));
    assert!(count > 0, "nothing is counted");
    assert_eq!(day(&mut classic), []);
    let (count, mut learned) =
        allocations(|| Learned::new(LearnedConfig::default(), ClassicConfig::default(), nominal, None));
    assert!(count > 0, "nothing is counted");
    assert_eq!(day(&mut learned), []);
}

#[test]
fn an_ensemble_allocates_when_it_is_made_and_never_after() {
    const SERVERS: usize = 3;
    let nominal = Period::from_hertz(1e9).expect("a counter has a frequency");
    let (config, classic) = (LearnedConfig::default(), ClassicConfig::default());
    let mut own: Vec<Learned> =
        (0..SERVERS).map(|_| Learned::new(config.clone(), classic.clone(), nominal, None)).collect();
    let (count, mut ensemble) = allocations(|| Ensemble::new(config, &classic, nominal, SERVERS));
    assert!(count > 0, "nothing is counted");
    let mut world = World::lan(5);
    for number in 0..4_000 {
        world.advance(world.time() + 16.0);
        upset(&mut world);
        let (server, exchange) = (number % SERVERS, world.exchange());
        own[server].update(&exchange);
        let (count, _) = allocations(|| {
            std::hint::black_box(ensemble.update(server, &exchange, &own[server]));
            ensemble.believe([true, number % 50 > 9, true]);
            std::hint::black_box(ensemble.estimate())
        });
        assert_eq!(count, 0, "exchange {number}");
    }
}

/// The figures of docs/algorithm/ensemble.md: a server's part of the common clock, and with its own estimator for as
/// many servers as keep the whole within the same limit. `bytes` says what is really allocated.
#[test]
fn a_server_takes_at_most_two_mebibytes_of_the_common_clock() {
    const LIMIT: usize = 2 << 20;
    const MOST_WITH_OWN: usize = 7;
    let nominal = Period::from_hertz(1e9).expect("a counter has a frequency");
    let (config, classic) = (LearnedConfig::default(), ClassicConfig::default());
    let before = live();
    let own = Learned::new(config.clone(), classic.clone(), nominal, None);
    let alone = live() - before;
    println!("one estimator: {alone} bytes, {} by its own account", own.bytes());
    assert!(alone.abs_diff(own.bytes()) < alone / 50, "{alone}, {}", own.bytes());
    for servers in [2, 4, 7, 16] {
        let before = live();
        let ensemble = Ensemble::new(config.clone(), &classic, nominal, servers);
        let shared = live() - before;
        let each = alone + shared / servers;
        println!(
            "{servers} servers: {shared} bytes together, {} by its own account, {each} a server",
            ensemble.bytes()
        );
        assert!(shared.abs_diff(ensemble.bytes()) < shared / 50, "{shared}, {}", ensemble.bytes());
        assert!(shared / servers <= LIMIT, "{servers} servers: {shared}");
        assert!(servers > MOST_WITH_OWN || each <= LIMIT, "{servers} servers: {each}");
    }
}

/// The figures of docs/algorithm/smooth.md. Vectors double as they grow, so they are full at powers of two, and at
/// worst half empty.
#[test]
fn a_recording_to_be_smoothed_takes_three_hundred_bytes_an_exchange() {
    const EXCHANGES: usize = 8_192;
    let nominal = Period::from_hertz(1e9).expect("a counter has a frequency");
    let mut smoother = Smoother::new(LearnedConfig::default(), ClassicConfig::default(), nominal);
    let mut world = World::lan(5);
    let before = live();
    let mut kept = 0;
    while kept < EXCHANGES {
        world.advance(world.time() + 16.0);
        kept += usize::from(smoother.update(&world.exchange()));
    }
    let each = (live() - before) as f64 / EXCHANGES as f64;
    let result = size_of::<SmoothedTime>();
    println!("{each:.1} bytes for each exchange while they come, {result} of its smoothed time");
    assert!((250.0..310.0).contains(&each), "{each}");
}
