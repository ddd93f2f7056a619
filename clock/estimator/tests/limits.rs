//! Limits that the documents state: what happens on either side of each.

mod common;

use common::{HOUR, Lab, World};
use ffclock_estimator::{Classic, ClassicConfig, Estimator, Event, Outcome, Rejection, Verdict};
use ffclock_units::{Exchange, Period, Span, Ticks};

/// The classic clock after `exchanges` of them, 16 s apart.
fn after(exchanges: u32, seed: u64) -> Lab {
    let mut lab = Lab::new(World::lan(seed));
    lab.strict = false;
    (0..exchanges).for_each(|_| _ = next(&mut lab, 16.0));
    lab
}

fn next(lab: &mut Lab, poll: f64) -> Outcome {
    let time = lab.world.time() + poll;
    lab.world.advance(time);
    lab.poll()
}

/// An exchange whose reply comes `seconds` late while the server holds it for `residence` more.
fn stretched(seconds: f64, residence: f64) -> Exchange {
    let exchange = World::lan(1).exchange();
    let ticks = Ticks::from_raw((seconds * 1e9) as i64);
    Exchange {
        received: ffclock_units::Stamp { counter: exchange.received.counter + ticks, ..exchange.received },
        server_out: exchange.server_out + Span::from_seconds(residence),
        ..exchange
    }
}

fn judged(exchange: &Exchange) -> Verdict {
    let nominal = Period::from_hertz(1e9).expect("a frequency");
    Classic::new(ClassicConfig::default(), nominal, None).update(exchange).verdict
}

#[test]
fn a_round_trip_of_16_s_is_the_longest() {
    assert_eq!(judged(&stretched(15.9, 15.9)), Verdict::Used);
    assert_eq!(judged(&stretched(16.1, 16.1)), Verdict::Rejected(Rejection::RoundTripTooLong));
}

/// Beside the widths of the stamps and the counter's tolerance.
#[test]
fn a_server_may_be_2_us_coarse() {
    let exchange = World::lan(1).exchange();
    let nominal = Period::from_hertz(1e9).expect("a frequency");
    let trip = nominal * (exchange.received.counter - exchange.sent.counter);
    let widths = 0.5e-9 * (exchange.sent.width + exchange.received.width).as_f64();
    for (excess, verdict) in [(1.8e-6, Verdict::Used), (2.3e-6, Verdict::Rejected(Rejection::NegativeRoundTrip))] {
        // What the server claims to have kept the request for is longer than the whole round trip.
        let residence = trip.as_seconds() + widths + excess;
        let tolerated = residence * ClassicConfig::default().nominal_error.as_fraction();
        let server_out = exchange.server_in + Span::from_seconds(residence + tolerated);
        assert_eq!(judged(&Exchange { server_out, ..exchange }), verdict, "{excess:e}");
    }
}

/// One reading from the future must not lock out all that follow.
#[test]
fn eight_exchanges_in_order_outvote_one_that_came_from_the_future() {
    let mut lab = after(20, 3);
    let exchange = lab.world.exchange();
    let wild = Ticks::from_raw(3_000_000_000);
    lab.classic.update(&Exchange {
        sent: ffclock_units::Stamp { counter: exchange.sent.counter + wild, ..exchange.sent },
        received: ffclock_units::Stamp { counter: exchange.received.counter + wild, ..exchange.received },
        server_in: exchange.server_in + Span::from_secs(3),
        server_out: exchange.server_out + Span::from_secs(3),
        ..exchange
    });
    for count in 1..=8 {
        let outcome = next(&mut lab, 0.25);
        assert_eq!(outcome.verdict == Verdict::Used, count == 8, "{count}: {outcome:?}");
        assert_eq!(outcome.events.contains(Event::Restarted), count == 8);
    }
}

/// How many exchanges after a step of the server it is believed, with `past` exchanges before it.
fn believed_after(past: u32, poll: f64) -> u32 {
    let mut lab = after(past, 5);
    lab.world.lie = 3_600.0;
    (1..200).find(|_| next(&mut lab, poll).events.contains(Event::ServerStepAccepted)).expect("believed in the end")
}

#[test]
fn a_past_of_eight_exchanges_has_authority() {
    assert_eq!((1..=7).map(|past| believed_after(past, 16.0)).collect::<Vec<_>>(), [3, 3, 4, 5, 6, 7, 8]);
    // 900 s.
    assert_eq!(believed_after(8, 16.0), 58);
    assert_eq!(believed_after(100, 16.0), 58);
}

#[test]
fn patience_alone_is_not_enough_for_a_step() {
    assert_eq!(believed_after(100, 256.0), 8);
    assert_eq!(believed_after(100, 1024.0), 8);
}

/// After how many answers without sense everything begins again.
fn hopeless_after(past: u32, poll: f64) -> u32 {
    let mut lab = after(past, 6);
    let mut lie = 1.0;
    let mut is_over = |_: &u32| {
        lie += 1.0;
        lab.world.lie = lie;
        next(&mut lab, poll).events.contains(Event::Restarted)
    };
    (1..2_000).find(&mut is_over).expect("given up in the end")
}

#[test]
fn nonsense_is_given_up_after_64_answers_and_patience_or_16_at_the_beginning() {
    assert_eq!(hopeless_after(100, 16.0), 64);
    assert_eq!(hopeless_after(100, 300.0), 64);
    assert_eq!(hopeless_after(100, 1.0), 901);
    assert_eq!(hopeless_after(3, 1.0), 16);
}

#[test]
fn a_silence_of_1e6_s_ends_the_time_of_the_learned_filter() {
    for (silence, shifted) in [(0.95e6, false), (1.05e6, true)] {
        let mut lab = Lab::learned(World::lan(7));
        lab.run(16.0, HOUR, |_| ());
        lab.world.advance(HOUR + silence);
        lab.poll();
        // What begins is warming up.
        let status = lab.report.statuses.last().expect("a reading").1;
        assert_eq!(status == ffclock_units::Status::WarmingUp, shifted, "{silence}: {status:?}");
    }
}

/// A path that becomes shorter is news only if it had been known.
#[test]
fn a_floor_is_settled_after_32_exchanges() {
    let is_news = |past: u32| {
        let mut lab = after(past, 8);
        (lab.world.forward_floor, lab.world.backward_floor) = (50e-6, 50e-6);
        next(&mut lab, 16.0).events.contains(Event::FloorShiftDown)
    };
    assert_eq!((1..100).find(|past| is_news(*past)), Some(32));
}

/// A longer path shows in round trips that lie close together; congestion of any length has none.
#[test]
fn a_longer_path_has_five_witnesses_among_a_hundred_exchanges() {
    let is_believed = |every: u32| {
        let mut lab = after(200, 9);
        (lab.world.queueing, lab.world.tail) = (0.0, 0.0);
        (1..400).any(|count| {
            let queueing = if count % every == 0 { 0.0 } else { 2e-3 + 1e-4 * f64::from(count) };
            lab.world.forward_floor = 1.14e-3 + queueing;
            next(&mut lab, 16.0).events.contains(Event::FloorShiftUp)
        })
    };
    assert_eq!((is_believed(20), is_believed(26)), (true, false));
}

/// What is proven of the rate rests on a day: not on less, and no more however long it goes on.
#[test]
fn the_rate_is_proven_by_a_day() {
    let mut config = ClassicConfig::default();
    config.set("wander", "1 ppb").expect("a rate");
    let mut world = World::lan(4);
    world.walk = 0.0;
    let mut lab = Lab::with(world, config, None);
    let mut growth = |until: f64| {
        lab.run(64.0, until * HOUR, |_| ());
        lab.classic.estimate().expect("an estimate").bound_growth.as_rate().as_ppb()
    };
    let grown = [17.0, 25.0, 37.0, 73.0].map(&mut growth);
    println!("{grown:?}");
    assert!(
        grown[0] > 1.3 * grown[1] && (grown[1] / grown[2] - 1.0).abs() < 0.1 && (grown[1] / grown[3] - 1.0).abs() < 0.1
    );
}

#[test]
fn a_learned_clock_is_young_for_eight_exchanges() {
    let mut lab = Lab::learned(World::lan(4));
    let young = (1..=20).filter(|_| {
        let time = lab.world.time() + 16.0;
        lab.world.advance(time);
        lab.poll();
        lab.classic.summary().warming_up
    });
    assert_eq!(young.count(), 7);
}
