//! What goes wrong on real paths and servers. In every scenario every reading is checked against its bound.

mod common;

use common::{DAY, HOUR, Lab, World};
use ffclock_estimator::{ClassicConfig, Estimator, Event, Learned, LearnedConfig, Rejection, Verdict};
use ffclock_units::{Bound, Period, Rate, RateMemory, Span, Status};

/// Half a day of settled work on a LAN.
fn settled(seed: u64) -> Lab {
    settled_in(World::lan(seed))
}

fn settled_in(world: World) -> Lab {
    let mut lab = Lab::new(world);
    lab.run(16.0, 6.0 * HOUR, |_| ());
    lab
}

#[test]
fn the_bound_holds_in_every_world() {
    for seed in 100..160 {
        let (world, poll) = World::any(seed);
        let mut lab = Lab::new(world);
        lab.run(poll, if poll < 1.0 { 2.0 * HOUR } else { 10.0 * HOUR }, |_| ());
        assert_eq!(lab.report.escaped, 0);
        assert_eq!(lab.report.verdicts(Verdict::Contradiction), 0, "seed {seed}");
        assert_eq!(lab.report.count(Event::WanderExceeded), 0, "seed {seed}");
    }
}

/// The hardest case for the bound: the server claims no error at all, and the whole round trip is spent one way, so
/// that the true time lies at the very end of the interval.
#[test]
fn the_bound_is_tight_and_holds_when_all_delay_is_one_way() {
    for (seed, forward, backward) in [(1, 300e-6, 0.0), (2, 0.0, 300e-6), (3, 30e-3, 0.0), (4, 0.0, 30e-3)] {
        let mut world = World::lan(seed);
        (world.forward_floor, world.backward_floor, world.root_distance) = (forward, backward, 0.0);
        (world.queueing, world.tail, world.width_ticks) = (1e-9, 1e-9, 0);
        world.wave = (0.3e-6, 2_000.0);
        let mut lab = Lab::new(world);
        lab.run(16.0, 12.0 * HOUR, |_| ());
        assert_eq!(lab.report.escaped, 0);
        assert_eq!(lab.report.verdicts(Verdict::Used), lab.report.outcomes.len());
        let (error, bound) =
            (lab.report.errors.last().expect("readings").1.abs(), lab.report.bounds.last().expect("readings"));
        assert!(*bound < 1.1 * error + 40e-6, "{error:e} {bound:e}");
    }
}

/// "Sanity envelope grows with the time since the last genuine update (without that a long bad spell locks the clock
/// out for ever)."
#[test]
fn a_long_bad_spell_does_not_lock_the_clock_out() {
    let mut lab = settled(24);
    lab.run(16.0, 14.0 * HOUR, |world| {
        let bad = (7.0 * HOUR..10.0 * HOUR).contains(&world.time());
        world.queueing = if bad { 20e-3 } else { 4e-6 };
    });
    assert!(lab.report.count(Event::OffsetHeld) > 20);
    assert_eq!(lab.classic.summary().server_steps, 0);
    println!("3 h with 20 ms of queueing: {:.1} us", lab.report.worst(7.0 * HOUR, 10.0 * HOUR) * 1e6);
    assert!(lab.report.worst(10.1 * HOUR, 14.0 * HOUR) < 20e-6, "{}", lab.report.worst(10.1 * HOUR, 14.0 * HOUR));
}

/// "Upward shift that never fired (history one element short)": here seen from outside.
#[test]
fn a_longer_path_is_found_after_the_shift_window() {
    let mut lab = settled(1);
    lab.run(16.0, DAY, |world| {
        if world.time() > 7.0 * HOUR {
            (world.forward_floor, world.backward_floor) = (440e-6, 440e-6);
        }
    });
    assert_eq!(lab.report.count(Event::FloorShiftUp), 1);
    let waited = lab.report.first(Event::FloorShiftUp).expect("a shift") - 7.0 * HOUR;
    assert!((1_500.0..1_800.0).contains(&waited), "{waited}");
    assert_eq!(lab.classic.summary().shifts_up, 1);
    assert!(lab.report.worst(7.0 * HOUR, DAY) < 40e-6, "{}", lab.report.worst(7.0 * HOUR, DAY));
    assert!(lab.report.worst(9.0 * HOUR, DAY) < 10e-6);
}

/// A weakness of the original: after a downward shift old exchanges kept looking good against the old floor.
#[test]
fn a_shorter_path_is_used_at_once() {
    let mut world = World::lan(2);
    (world.forward_floor, world.backward_floor) = (540e-6, 540e-6);
    let mut lab = settled_in(world);
    lab.run(16.0, DAY, |world| {
        if world.time() > 7.0 * HOUR {
            (world.forward_floor, world.backward_floor) = (140e-6, 140e-6);
        }
    });
    assert_eq!(lab.classic.summary().shifts_down, 1);
    let waited = lab.report.first(Event::FloorShiftDown).expect("a shift") - 7.0 * HOUR;
    assert!(waited < 40.0, "{waited}");
    assert!(lab.report.worst(7.0 * HOUR, DAY) < 15e-6, "{}", lab.report.worst(7.0 * HOUR, DAY));
}

/// A one-sided change of the route biases the clock by half of it, as it must without a second direction; the bound
/// says so.
#[test]
fn a_one_sided_longer_path_stays_within_the_bound() {
    let mut lab = settled(3);
    lab.run(16.0, DAY, |world| {
        if world.time() > 7.0 * HOUR {
            world.forward_floor = 1_040e-6;
        }
    });
    assert_eq!(lab.classic.summary().shifts_up, 1);
    assert!(lab.report.worst(7.0 * HOUR, DAY) < 480e-6);
}

/// Under 30 Mb/s of congestion the IQR hardly changes.
#[test]
fn congestion_hardly_shows() {
    let mut world = World::lan(4);
    world.queueing = 60e-6;
    world.tail = 2e-3;
    let mut lab = settled_in(world);
    lab.run(16.0, DAY, |_| ());
    println!("congested: IQR {:.2} us", lab.report.iqr(2.0 * HOUR) * 1e6);
    assert!(lab.report.iqr(2.0 * HOUR) < 9e-6);
    assert_eq!(lab.report.count(Event::FloorShiftUp), 0);
}

/// A server lost for 2 h: gradual drift, immediate recovery.
#[test]
fn a_lost_server_costs_the_oscillator_and_no_more() {
    let mut lab = settled(5);
    let mut lost = false;
    while lab.world.time() < 12.0 * HOUR {
        let now = lab.world.time() + 16.0;
        lab.world.advance(now);
        lost = (6.5 * HOUR..8.5 * HOUR).contains(&now);
        if lost { lab.read() } else { _ = lab.poll() }
    }
    assert!(!lost);
    println!("2 h without a server: {:.1} us", lab.report.worst(6.5 * HOUR, 8.5 * HOUR) * 1e6);
    assert!(lab.report.worst(6.5 * HOUR, 8.5 * HOUR) < 400e-6);
    assert!(lab.report.worst(8.5 * HOUR + 60.0, 12.0 * HOUR) < 40e-6);
    assert!(lab.report.worst(9.5 * HOUR, 12.0 * HOUR) < 12e-6);
    assert_eq!(lab.report.verdicts(Verdict::Contradiction), 0);
}

/// "A gap that a special rule should have covered": no rule is special; windows in time hold what there is.
#[test]
fn a_gap_of_a_day_locks_nothing_out() {
    let mut lab = settled(6);
    lab.world.advance(30.0 * HOUR);
    let outcome = lab.poll();
    assert_eq!(outcome.verdict, Verdict::Used);
    assert!(outcome.events.contains(Event::OffsetUpdated) && outcome.events.contains(Event::LocalRateLost));
    lab.run(16.0, 36.0 * HOUR, |_| ());
    assert!(lab.report.worst(31.0 * HOUR, 36.0 * HOUR) < 15e-6);
}

fn lying(by: f64, root_distance: f64) -> Lab {
    let mut world = World::lan(7);
    world.root_distance = root_distance;
    let mut lab = settled_in(world);
    lab.run(16.0, 12.0 * HOUR, |world| {
        let lies = (7.0 * HOUR..7.0 * HOUR + 300.0).contains(&world.time());
        world.lie = if lies { by } else { 0.0 };
    });
    lab
}

/// A server that lies by 150 ms for 300 s: every feedback clock follows it.
#[test]
fn a_server_that_lies_for_five_minutes_is_not_followed() {
    for by in [150e-3, -150e-3, 3_600.0, -3_600.0, 2e-3] {
        let lab = lying(by, 20e-6);
        assert!(
            lab.report.worst(6.0 * HOUR, 12.0 * HOUR) < 20e-6,
            "{by}: {}",
            lab.report.worst(6.0 * HOUR, 12.0 * HOUR)
        );
        assert!(lab.report.verdicts(Verdict::Contradiction) > 15);
        assert_eq!(lab.classic.summary().server_steps, 0);
        let during = lab.report.statuses.iter().filter(|(time, _)| (7.02 * HOUR..7.08 * HOUR).contains(time));
        assert!(during.clone().count() > 10 && during.clone().all(|(_, status)| *status == Status::Holdover));
        assert_eq!(lab.report.statuses.last().expect("readings").1, Status::Synchronised);
    }
}

/// Among several servers the vote hears what a server says now: with the second exchange that contradicts, not after
/// `step_patience`. A single one may be a stray packet.
#[test]
fn a_server_that_contradicts_itself_claims_its_new_time() {
    let mut lab = settled(23);
    let claimed = |lab: &Lab| lab.classic.claimed(lab.world.counter()).expect("the server was heard");
    let proven = |lab: &Lab| lab.classic.proven(lab.world.counter()).expect("the server was heard");
    lab.world.lie = 50e-3;
    for contradictions in 1..=3 {
        lab.world.advance(lab.world.time() + 16.0);
        assert_eq!(lab.poll().verdict, Verdict::Contradiction);
        let truth = lab.world.moment(lab.world.time());
        assert!(proven(&lab).contains(truth));
        let says = if contradictions < 2 { truth } else { truth + Span::from_millis(50) };
        assert!(claimed(&lab).contains(says), "after {contradictions}: {says:?} in {:?}", claimed(&lab));
        assert_eq!(claimed(&lab) == proven(&lab), contradictions < 2);
    }
    lab.world.lie = 0.0;
    lab.world.advance(lab.world.time() + 16.0);
    lab.poll();
    assert_eq!(claimed(&lab), proven(&lab));
}

/// A lie within what the server itself claims as its error is no contradiction, but it is no sane correction either.
#[test]
fn a_lie_within_the_claimed_error_is_not_followed_either() {
    let lab = lying(150e-3, 0.2);
    assert!(lab.report.worst(6.0 * HOUR, 12.0 * HOUR) < 20e-6);
    assert!(lab.report.count(Event::OffsetInsane) > 15);
}

/// "Values stored although sanity had failed": what was not believed leaves no trace in later estimates.
#[test]
fn a_lie_leaves_no_trace() {
    let mut honest = settled(7);
    honest.run(16.0, 12.0 * HOUR, |_| ());
    let liar = lying(150e-3, 20e-6);
    let last = |lab: &Lab| lab.report.errors.last().expect("readings").1;
    assert!((last(&honest) - last(&liar)).abs() < 3e-6);
}

/// No two answers agree with one another, and there are many of them.
#[test]
fn a_server_that_talks_nonsense_for_a_while_is_waited_for() {
    for poll in [1.0, 4.0, 16.0] {
        let mut lab = settled(7);
        let mut chance = common::Random::new(3);
        lab.run(poll, 8.0 * HOUR, |world| {
            let lies = (7.0 * HOUR..7.0 * HOUR + 600.0).contains(&world.time());
            world.lie = if lies { 1.0 + chance.uniform() } else { 0.0 };
        });
        assert!(lab.report.verdicts(Verdict::Contradiction) > 30);
        assert_eq!(lab.report.count(Event::Restarted), 0);
        let worst = lab.report.worst(6.5 * HOUR, 8.0 * HOUR);
        assert!(worst < 40e-6, "poll {poll}: {worst:e}");
    }
}

#[test]
fn a_permanent_step_is_accepted_after_patience() {
    for by in [0.15, -3_600.0, 1e9] {
        let mut lab = settled(8);
        lab.strict = false;
        lab.run(16.0, 12.0 * HOUR, |world| {
            if world.time() > 7.0 * HOUR && world.lie == 0.0 {
                world.lie = by;
            }
        });
        let accepted = lab.report.first(Event::ServerStepAccepted).expect("a step");
        assert!((900.0..960.0).contains(&(accepted - 7.0 * HOUR)), "{accepted}");
        // From then on the server's time is the truth that the clock keeps.
        let estimate = lab.classic.estimate().expect("an estimate");
        let server = lab.world.moment(lab.world.time() + lab.world.lie);
        let age = estimate.period * (lab.world.counter() - estimate.counter);
        let error = (estimate.time + age - server).abs();
        assert!(error < Span::from_micros(15), "{error:?}");
        assert!(Bound::of(error) <= estimate.bound.grown(age, estimate.bound_growth));
        assert_eq!(lab.report.statuses.last().expect("readings").1, Status::Synchronised);
    }
}

#[test]
fn a_first_exchange_that_lies_is_soon_outvoted() {
    let mut lab = Lab::new(World::lan(9));
    lab.strict = false;
    lab.world.lie = 3_600.0;
    lab.poll();
    lab.world.lie = 0.0;
    lab.run(16.0, 4.0 * HOUR, |_| ());
    let accepted = lab.report.first(Event::ServerStepAccepted).expect("a step");
    assert_eq!(lab.report.verdicts(Verdict::Contradiction), 2);
    assert!((40.0..60.0).contains(&accepted), "{accepted}");
    assert!(lab.report.worst(1_000.0, 4.0 * HOUR) < 20e-6);
}

/// "TTL flapping (equal-cost routes) that silences updates."
#[test]
fn a_flapping_identity_does_not_silence_updates() {
    let mut lab = settled(10);
    let mut polls = 0;
    lab.run(16.0, 12.0 * HOUR, |world| {
        polls += 1;
        world.identity = 77 + polls % 2;
    });
    assert_eq!(lab.report.verdicts(Verdict::FloorOnly), 2);
    assert!(lab.report.worst(6.0 * HOUR, 12.0 * HOUR) < 10e-6);
}

#[test]
fn changes_of_the_poll_just_work() {
    let mut lab = settled(11);
    lab.run(1.0, 7.0 * HOUR, |_| ());
    lab.run(64.0, 10.0 * HOUR, |_| ());
    lab.run(0.25, 11.0 * HOUR, |_| ());
    lab.run(16.0, 14.0 * HOUR, |_| ());
    assert!(lab.report.worst(2.0 * HOUR, 14.0 * HOUR) < 15e-6, "{}", lab.report.worst(2.0 * HOUR, 14.0 * HOUR));
    assert_eq!(lab.report.count(Event::FloorShiftUp), 0);
}

/// "Replies out of order or twice."
#[test]
fn late_and_doubled_replies_change_nothing() {
    let mut lab = settled(12);
    let old = lab.world.exchange();
    lab.run(16.0, 7.0 * HOUR, |_| ());
    let new = lab.world.exchange();
    assert_eq!(lab.classic.update(&new).verdict, Verdict::Used);
    let before = lab.classic.estimate();
    for again in [old, new, old, new, old] {
        assert_eq!(lab.classic.update(&again).verdict, Verdict::Rejected(Rejection::OutOfOrder));
    }
    assert_eq!(lab.classic.estimate(), before);
}

/// An exchange from the future of the counter must not lock out all that follow.
#[test]
fn a_wild_counter_reading_at_the_start_is_left_behind() {
    let mut lab = Lab::new(World::lan(13));
    lab.strict = false;
    let mut wild = lab.world.exchange();
    wild.sent.counter = wild.sent.counter + ffclock_units::Ticks::from_raw(1 << 60);
    wild.received.counter = wild.received.counter + ffclock_units::Ticks::from_raw(1 << 60);
    assert_eq!(lab.classic.update(&wild).verdict, Verdict::Used);
    lab.run(16.0, HOUR, |_| ());
    assert_eq!(lab.report.count(Event::Restarted), 1);
    assert!(lab.report.worst(1_000.0, HOUR) < 30e-6);
}

/// "A server-delay penalty that hurt good servers": a long stay in the server costs nothing.
#[test]
fn the_servers_residence_is_no_penalty() {
    let mut world = World::lan(14);
    world.residence = 5e-3;
    let lab = settled_in(world);
    assert!(lab.report.iqr(2.0 * HOUR) < 2.5e-6, "{}", lab.report.iqr(2.0 * HOUR));
}

/// "A wrong-period lock-out": a remembered rate that is wrong, and a counter outside its nominal range.
#[test]
fn wrong_beliefs_about_the_rate_are_left() {
    let mut lab = Lab::new(World::lan(15));
    lab.run(16.0, 2.0 * HOUR, |_| ());
    let mut memory = lab.classic.memory().expect("a rate");
    memory.period = memory.period.stretched(Rate::from_ppm(90.0));
    let mut misled = Lab::with(World::lan(16), ClassicConfig::default(), Some(memory));
    misled.strict = false;
    misled.run(16.0, 4.0 * HOUR, |_| ());
    assert_eq!(misled.report.count(Event::MemoryDropped), 1);
    assert!(misled.report.worst(HOUR, 4.0 * HOUR) < 15e-6);

    let mut world = World::lan(17);
    world.skew = 3_000e-6;
    let mut wild = Lab::new(world);
    wild.strict = false;
    wild.run(16.0, 8.0 * HOUR, |_| ());
    assert!(wild.report.count(Event::Restarted) >= 1);
    assert!(wild.report.worst(4.0 * HOUR, 8.0 * HOUR) < 30e-6, "{}", wild.report.worst(4.0 * HOUR, 8.0 * HOUR));
}

/// A rate that is a little off is found out after some polls, and by then the true time may have left what was carried
/// at it. From the exchange on that shows it the bound holds again.
#[test]
fn nothing_that_was_carried_at_a_wrong_rate_outlives_it() {
    for (seed, wrong_ppm) in (60..72).zip([5.0, -5.0, 7.0, -7.0, 12.0, -12.0].into_iter().cycle()) {
        let mut before = Lab::new(World::lan(seed));
        before.run(16.0, 2.0 * HOUR, |_| ());
        let memory = before.classic.memory().expect("a rate");
        let memory = RateMemory { period: memory.period.stretched(Rate::from_ppm(wrong_ppm)), ..memory };
        let mut misled = Lab::with(World::lan(seed + 100), ClassicConfig::default(), Some(memory));
        misled.strict = false;
        while misled.report.count(Event::MemoryDropped) == 0 {
            assert!(misled.world.time() < HOUR, "{wrong_ppm} ppm were never found out");
            let time = misled.world.time() + 16.0;
            misled.run(16.0, time + 1.0, |_| ());
        }
        misled.strict = true;
        misled.read();
        misled.run(16.0, HOUR, |_| ());
    }
}

/// What a link with hardware stamps shows: 1 us each way, stamps 200 ns wide, a master that claims 250 ns.
fn hardware(seed: u64, residence: f64) -> World {
    let mut world = World::lan(seed);
    (world.forward_floor, world.backward_floor, world.queueing, world.tail) = (1e-6, 1e-6, 20e-9, 0.0);
    (world.root_distance, world.width_ticks, world.residence) = (250e-9, 200, residence);
    world
}

/// How far the remembered rate is off [ppm], how often the server is asked and for how long it holds a request [s]: a
/// master of PTP until its next Sync.
const CASES: [(f64, f64, f64); 6] = [
    (35.0, 0.25, 100e-6),
    (-35.0, 0.25, 100e-6),
    (35.0, 1.0, 0.5),
    (-35.0, 1.0, 0.5),
    (35.0, 0.25, 0.2),
    (-35.0, 0.25, 0.2),
];

/// The rate was learned from a clock that ran 35 ppm fast or slow, and the server is honest now. With hardware stamps
/// its second or third exchange shows that, whichever way the rate was wrong and however often it is asked: the rate is
/// dropped at once and the filter begins again without it; the server is never doubted for it.
#[test]
fn a_rate_that_was_learned_from_a_wrong_clock_is_dropped_and_the_server_is_not_doubted() {
    for (seed, (wrong_ppm, poll, residence)) in (31..).zip(CASES) {
        let mut before = Lab::learned(hardware(seed, residence));
        before.run(poll, 400.0 * poll, |_| ());
        let memory = before.classic.memory().expect("a rate");
        let memory = RateMemory { period: memory.period.stretched(Rate::from_ppm(wrong_ppm)), ..memory };
        let world = hardware(seed + 100, residence);
        let nominal = Period::from_hertz(world.hertz).expect("a counter has a frequency");
        let learned = Learned::new(LearnedConfig::default(), ClassicConfig::default(), nominal, Some(memory));
        let mut misled = Lab::of(world, learned);
        misled.strict = false;
        misled.run(poll, 400.0 * poll, |_| ());
        let report = &misled.report;
        println!(
            "{wrong_ppm} ppm at {poll} s, held for {residence} s: dropped at {:?} s, {} of {} readings escaped, {} restarts, {:e} s",
            report.first(Event::MemoryDropped),
            report.escaped,
            report.errors.len(),
            report.count(Event::FilterRestarted),
            report.worst(10.0 * (poll + residence), f64::INFINITY),
        );
        assert_eq!(report.count(Event::MemoryDropped), 1);
        assert!(report.first(Event::MemoryDropped) <= Some(3.0 * (poll + residence)));
        assert_eq!(report.verdicts(Verdict::Contradiction), 0);
        assert_eq!(report.count(Event::FilterRestarted), 0);
        assert!(report.worst(10.0 * (poll + residence), f64::INFINITY) < 1e-6);
    }
}

#[test]
fn a_remembered_rate_is_worth_a_warm_up() {
    let mut lab = Lab::new(World::lan(15));
    lab.run(16.0, 6.0 * HOUR, |_| ());
    let memory = lab.classic.memory();
    let mut next = Lab::with(World::lan(18), ClassicConfig::default(), memory);
    next.run(16.0, 2.0 * HOUR, |_| ());
    assert!(next.report.worst(0.0, 300.0) < 30e-6, "{}", next.report.worst(0.0, 300.0));
    assert_eq!(next.report.count(Event::MemoryDropped), 0);
}

/// "Reader and daemon disagreeing on whether the local rate is used": the estimate's period is the rate that the offset
/// uses, and the summary says which it is.
#[test]
fn the_local_rate_is_in_use_when_the_summary_says_so() {
    let mut lab = settled(19);
    lab.run(16.0, 7.0 * HOUR, |_| ());
    assert!(lab.report.local_rates > 500);
    let (estimate, summary) = (lab.classic.estimate().expect("an estimate"), lab.classic.summary());
    let local = summary.local_rate.expect("a local rate");
    assert_eq!(estimate.difference_period, summary.period);
    assert!((estimate.period.relative_to(summary.period) - local).abs() < Rate::from_fraction(1e-14));
}

/// A calibrated asymmetry A = forward - backward removes a bias of A/2, and with a stated error it narrows the bound.
#[test]
fn a_configured_asymmetry_is_removed_and_narrows_the_bound() {
    let mut config = ClassicConfig::default();
    config.set("asymmetry", "300 us").expect("in range");
    let mut plain = Lab::with(World::far(20), config.clone(), None);
    plain.run(16.0, 12.0 * HOUR, |_| ());
    assert!(plain.report.quantile(2.0 * HOUR, 0.5).abs() < 10e-6);
    config.set("asymmetry_error", "100 us").expect("in range");
    let mut stated = Lab::with(World::far(20), config.clone(), None);
    stated.run(16.0, 12.0 * HOUR, |_| ());
    let last = |lab: &Lab| *lab.report.bounds.last().expect("readings");
    assert!(last(&stated) < 0.02 * last(&plain), "{:e} {:e}", last(&stated), last(&plain));
    assert_eq!(stated.report.count(Event::AsymmetryContradicted), 0);

    config.set("asymmetry", "-600 ms").expect("in range");
    let mut wrong = Lab::with(World::far(20), config, None);
    wrong.strict = false;
    wrong.run(16.0, 2.0 * HOUR, |_| ());
    assert!(wrong.report.count(Event::AsymmetryContradicted) > 10);
}

/// A counter that moves more than the configured wander: the bound gives way, is widened, and the clock is not lost.
#[test]
fn an_oscillator_that_wanders_too_much_widens_the_bound() {
    let mut lab = settled(21);
    lab.strict = false;
    lab.run(16.0, 12.0 * HOUR, |world| {
        if world.time() > 7.0 * HOUR {
            world.skew = 53e-6;
        }
    });
    assert!(lab.report.count(Event::WanderExceeded) >= 1);
    assert_eq!(lab.report.verdicts(Verdict::Contradiction), 0);
    println!("3 ppm at once: {} of {} readings escaped", lab.report.escaped, lab.report.errors.len());
    assert!(lab.report.escaped * 100 < lab.report.errors.len());
    assert!(lab.report.worst(9.0 * HOUR, 12.0 * HOUR) < 40e-6, "{}", lab.report.worst(9.0 * HOUR, 12.0 * HOUR));
}

#[test]
fn a_restart_keeps_the_rate_and_nothing_else() {
    let mut lab = settled(22);
    let memory = lab.classic.memory();
    lab.classic.restart();
    assert_eq!(lab.classic.estimate(), None);
    assert_eq!(lab.classic.memory(), memory);
    lab.world.advance(lab.world.time() + 16.0);
    lab.poll();
    let estimate = lab.classic.estimate().expect("an estimate");
    assert_eq!(estimate.status, Status::WarmingUp);
    assert!(estimate.bound_growth.as_rate() < Rate::from_ppm(3.0));
}

/// A week of polls, one a second, occupies what an hour does: a source may take 1 MiB.
#[test]
fn memory_is_constant_and_small() {
    let mut lab = Lab::new(World::lan(23));
    let before = lab.classic.bytes();
    lab.run(1.0, DAY, |_| ());
    assert_eq!(lab.classic.bytes(), before);
    println!("{before} bytes a source");
    assert!(before < 80 * 1024);
}
