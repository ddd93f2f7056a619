//! An oscillator that wanders more than assumed: waves of a day, and servers whose drift looks like one.

mod common;

use common::{DAY, HOUR, Lab, World};
use ffclock_estimator::{Classic, ClassicConfig, Estimator, Event, Learned, LearnedConfig, Verdict};
use ffclock_units::{Period, Rate};

/// A server 1 ms away.
fn near(seed: u64) -> World {
    let mut world = World::lan(seed);
    (world.forward_floor, world.backward_floor, world.queueing, world.tail) = (1e-3, 1e-3, 30e-6, 300e-6);
    world
}

/// The paths and polls of the figures, and the largest error that is allowed there, s.
const PLACES: [(&str, f64, f64); 2] = [("LAN", 16.0, 6e-6), ("1 ms", 64.0, 60e-6)];

fn place(name: &str, seed: u64) -> World {
    if name == "LAN" { World::lan(seed) } else { near(seed) }
}

fn wave(name: &str, ppm: f64, seed: u64) -> World {
    let mut world = place(name, seed);
    world.wave = (ppm * 1e-6, DAY);
    world
}

/// How often a wander had to be learned, and the wander in the end, ppm.
fn learned_wander<E: Estimator>(lab: &Lab<E>) -> (usize, f64) {
    (lab.report.count(Event::WanderExceeded), lab.classic.summary().wander.as_ppm())
}

/// The first exchanges that contradict the assumed wander are seen before the true time leaves the interval: `strict`
/// checks every reading.
#[test]
fn a_wave_of_a_day_restarts_no_filter_and_no_reading_leaves_its_bound() {
    for (name, poll, limit) in PLACES {
        for (ppm, wander) in [(0.2, (0, 1.0)), (0.5, (0, 1.0)), (1.0, (1, 2.0)), (2.0, (2, 4.0))] {
            let mut lab = Lab::learned(wave(name, ppm, 1));
            lab.run(poll, 3.0 * DAY, |_| ());
            let worst = lab.report.worst(6.0 * HOUR, 3.0 * DAY);
            println!("{name}, {ppm} ppm: largest {:.1} us, {:?}", 1e6 * worst, learned_wander(&lab));
            assert_eq!(lab.report.count(Event::FilterRestarted), 0, "{name}, {ppm} ppm");
            assert_eq!(lab.report.verdicts(Verdict::Contradiction), 0, "{name}, {ppm} ppm");
            assert_eq!(learned_wander(&lab), wander, "{name}, {ppm} ppm");
            assert!(worst < limit, "{name}, {ppm} ppm: {worst:e}");
        }
    }
}

#[test]
fn the_classic_clock_learns_the_same() {
    for (name, poll, _) in PLACES {
        let mut lab = Lab::new(wave(name, 1.0, 1));
        lab.run(poll, 3.0 * DAY, |_| ());
        assert_eq!(learned_wander(&lab), (1, 2.0), "{name}");
        let memory = lab.classic.memory().expect("a rate");
        assert_eq!(memory.wander, Some(Rate::from_ppm(2.0)), "{name}");
        let next = Lab::with(World::lan(2), ClassicConfig::default(), Some(memory));
        assert_eq!(learned_wander(&next), (0, 2.0), "it goes on after a restart");
        let nominal = Period::from_hertz(1e3).expect("a frequency");
        let other = Classic::new(ClassicConfig::default(), nominal, Some(memory));
        assert_eq!(other.summary().wander.as_ppm(), 1.0, "of another counter nothing is taken");
    }
}

/// Congestion leaves wide gaps between the fastest packets: a narrow interval must not be taken for a broken premise.
#[test]
fn an_honest_oscillator_is_not_suspected_in_congestion() {
    for seed in 1..4 {
        for (queueing, tail, poll) in [(60e-6, 2e-3, 16.0), (1e-3, 20e-3, 16.0), (1e-3, 20e-3, 64.0)] {
            let mut world = World::lan(seed);
            (world.queueing, world.tail, world.wave) = (queueing, tail, (0.5e-6, DAY));
            let mut lab = Lab::new(world);
            lab.run(poll, 2.0 * DAY, |_| ());
            assert_eq!(learned_wander(&lab), (0, 1.0), "seed {seed}, {queueing} s");
        }
    }
}

/// With one server its drift looks like a wander: it is followed, and the bound grows with what was learned.
/// A drift that leaves the interval between two polls is no oscillator.
#[test]
fn a_server_that_drifts_widens_the_bound_or_is_contradicted() {
    for (drift, followed) in [(3e-6, true), (20e-6, false)] {
        let mut lab = Lab::learned(World::lan(3));
        lab.run(16.0, 6.0 * HOUR, |_| ());
        lab.strict = false;
        let begun = lab.world.time();
        lab.run(16.0, begun + 840.0, |world| world.lie = drift * (world.time() - begun));
        let wander = lab.classic.summary().wander;
        let off = lab.report.worst(begun, begun + 840.0);
        println!("{} ppm: {:.0} us off, wander {wander:?}", 1e6 * drift, 1e6 * off);
        assert!(wander <= Rate::from_ppm(5.0) && (wander > Rate::from_ppm(1.0) || !followed), "{wander:?}");
        assert_eq!(lab.report.verdicts(Verdict::Contradiction) == 0, followed);
        assert!(followed || off < 1e-3, "{off:e}");
    }
}

/// No oscillator moves by this in a poll: what the width of the interval shows is the server's.
#[test]
fn a_lie_that_narrows_the_interval_at_once_teaches_no_wander() {
    let mut lab = Lab::new(World::far(2));
    lab.strict = false;
    lab.run(16.0, 12.0 * HOUR, |world| {
        let lies = (7.0 * HOUR..7.0 * HOUR + 300.0).contains(&world.time());
        world.lie = if lies { 14e-3 } else { 0.0 };
    });
    assert_eq!(learned_wander(&lab), (0, 1.0));
}

#[test]
fn what_was_learned_outlives_a_restart_and_ends_at_five_times_what_was_configured() {
    let config = ClassicConfig { wander: Rate::from_ppm(0.25), ..ClassicConfig::default() };
    let world = wave("LAN", 2.0, 1);
    let nominal = Period::from_hertz(world.hertz).expect("a frequency");
    let mut lab = Lab::of(world, Learned::new(LearnedConfig::default(), config.clone(), nominal, None));
    lab.strict = false;
    lab.run(16.0, DAY, |_| ());
    assert_eq!(lab.classic.summary().wander.as_ppm(), 1.25);
    lab.classic.restart();
    assert_eq!(lab.classic.summary().wander.as_ppm(), 1.25);
    assert_eq!(Classic::new(config, nominal, None).summary().wander.as_ppm(), 0.25);
}
