//! Masters that come and go within one turn of the event loop, and sockets that cannot be had.

use super::*;
use crate::calibrator::Calibrator;
use crate::config::{Config, DaemonConfig, DeviceStamps};
use crate::journal::Journal;
use crate::peer::{Pace, Peer};
use ffclock_counter::CounterId;
use ffclock_estimator::Estimator;
use ffclock_ptp::{
    Announcement, ClockAccuracy, ClockClass, ClockQuality, Correction, PtpBody, PtpFlags, PtpMessage, PtpObservation,
    PtpTimestamp, ScaledVariance, TimeSource,
};
use ffclock_sys::Stamper;
use ffclock_units::{Counter, CounterEpoch, Direction, LeapAnnouncement, Stamp, StampLocation, Status, Ticks};

fn environment() -> Environment {
    Environment {
        nominal: Period::from_hertz(1e9).unwrap(),
        epoch: CounterEpoch::from_raw(1),
        stamps: StampChoice::Kernel,
        device_stamps: DeviceStamps::Leave,
        leaps: LeapTable::built_in(),
    }
}

/// How long a server that steps has to insist.
const PATIENCE: Span = Span::from_secs(60);

fn context() -> Context {
    let now = ffclock_sys::mono_now();
    Context {
        published: None,
        numbers: None,
        rate: None,
        slowdowns: Default::default(),
        stamper: Stamper::new(CounterId::MonotonicRaw, environment().nominal),
        calibrator: Calibrator::new(&DaemonConfig::default(), environment().nominal),
        journal: Journal::new(now),
        ensemble: None,
        is_upset: false,
        now,
    }
}

fn config() -> ServerConfig {
    let text = "[[server]]\nprotocol = \"ptp\"\ninterface = \"nowhere9\"\naccuracy_unclaimed = \"10 us\"\n";
    let mut server = Config::parse(text).unwrap().servers.remove(0);
    server.estimator.options.step_patience = PATIENCE;
    server
}

fn ptp() -> Ptp {
    Ptp::new(&config(), &environment(), ffclock_sys::mono_now())
}

fn master(last: u8) -> Master {
    let clock = ClockIdentity::from_octets([2, 0, 0, 0xff, 0xfe, 0, 0, last]);
    let (class, accuracy, variance) = (ClockClass::DEFAULT, ClockAccuracy::UNKNOWN, ScaledVariance::UNKNOWN);
    let announcement = Announcement {
        utc_offset: 37,
        priority_1: 128,
        quality: ClockQuality { class, accuracy, variance },
        priority_2: 128,
        grandmaster: clock,
        steps_removed: 0,
        time_source: TimeSource::OSCILLATOR,
        flags: PtpFlags::PTP_TIMESCALE,
    };
    Master { port: PortIdentity { clock, port: 1 }, announcement }
}

/// The counter at this number of microseconds.
fn at_us(micros: u64) -> Counter {
    Counter::from_raw(micros * 1000)
}

/// A message that passed our end at this number of microseconds, of a way of 100 us; the counter shows true time.
fn message(direction: Direction, ours_us: u64) -> PtpEvent {
    message_of_liar(direction, ours_us, Span::ZERO)
}

/// The same of a master that is ahead of true time by `lie`.
fn message_of_liar(direction: Direction, ours_us: u64, lie: Span) -> PtpEvent {
    let counter = at_us(ours_us);
    let ours = Stamp { counter, width: Ticks::from_raw(200), location: StampLocation::Kernel };
    let way = if direction == Direction::Outgoing { 100 } else { -100 };
    let theirs = Span::from_secs(1_795_219_237) + Span::from_micros(ours_us as i64 + way) + lie;
    PtpEvent::Observation(PtpObservation { direction, ours, theirs: Moment::from_origin(theirs) })
}

/// A request and the Sync after it: one exchange, or the halves of two.
fn pair(ptp: &mut Ptp, at_us: u64) {
    pair_of_liar(ptp, at_us, Span::ZERO);
}

fn pair_of_liar(ptp: &mut Ptp, at_us: u64, lie: Span) {
    ptp.take(message_of_liar(Direction::Outgoing, at_us, lie));
    ptp.take(message_of_liar(Direction::Incoming, at_us + 1000, lie));
    ptp.judge(ffclock_sys::mono_now());
}

fn kinds(notes: &[Note]) -> Vec<&'static str> {
    notes.iter().map(|note| note.kind).collect()
}

/// A server that has had `exchanges` with the master 1.
fn peer_of_one(exchanges: u64, context: &mut Context) -> Peer {
    let mut peer = Peer::new(config(), environment(), None, context.now);
    let mut first = ptp();
    first.take(PtpEvent::MasterChosen(master(1)));
    (1..=exchanges).for_each(|number| pair(&mut first, number * 1_000_000));
    peer.feed = Some(Box::new(first));
    assert!(peer.digest(0, context));
    assert_eq!(peer.estimator.summary().exchanges, exchanges);
    peer
}

#[test]
fn no_exchange_of_the_last_master_reaches_the_estimator_of_the_next() {
    let (mut context, now) = (context(), ffclock_sys::mono_now());
    let mut peer = peer_of_one(20, &mut context);
    let used = peer.estimator.summary().used;
    // All in one turn: an exchange with the last master, a request to it, and the next master's Sync.
    let mut turn = ptp();
    turn.take(PtpEvent::MasterChosen(master(1)));
    pair(&mut turn, 30_000_000);
    turn.take(message(Direction::Outgoing, 31_000_000));
    turn.take(PtpEvent::MasterLost(master(1).port));
    turn.take(PtpEvent::MasterChosen(master(2)));
    turn.take(message(Direction::Incoming, 31_500_000));
    turn.judge(now);
    assert_eq!(turn.exchanges, [], "half of each is no exchange, and the whole one is not of this master");
    pair(&mut turn, 32_000_000);
    let [exchange] = turn.exchanges[..] else { panic!("{:?}", turn.exchanges) };
    assert_eq!(exchange.sent.counter, Counter::from_raw(32_000_000_000));
    peer.feed = Some(Box::new(turn));
    assert!(peer.digest(0, &mut context));
    assert_eq!(peer.estimator.summary().exchanges, 1, "another master is another server");
    assert_eq!(peer.basis.counterpart, Some(Counterpart::Master(master(2).port, 0)));
    assert_eq!(peer.tally.used, used, "what was used of the last one is counted on");
}

/// The second at which the clock of `peer` is ahead of the truth by this much.
fn error(peer: &Peer, second: u64) -> Span {
    let truth = Span::from_secs(1_795_219_237) + Span::from_secs(second as i64);
    let counter = Counter::from_raw(second * 1_000_000_000);
    peer.estimate().unwrap().carried_to(counter).time.since_origin() - truth
}

/// One exchange with the master `number`, which is ahead by `lie`.
fn exchange_with(peer: &mut Peer, number: u8, (second, lie): (u64, Span), context: &mut Context) {
    let mut turn = ptp();
    turn.take(PtpEvent::MasterChosen(master(number)));
    pair_of_liar(&mut turn, second * 1_000_000, lie);
    peer.feed = Some(Box::new(turn));
    assert!(peer.digest(0, context));
}

fn has_event(context: &Context, text: &str) -> bool {
    context.journal.latest().iter().any(|event| event.text.starts_with(text))
}

const OTHER_SERVER: &str = "another server contradicts what the last one proved";

#[test]
fn a_master_that_contradicts_the_last_one_is_followed_only_after_it_has_insisted() {
    let mut context = context();
    let mut peer = peer_of_one(20, &mut context);
    let lie = Span::from_millis(5);
    let begun = 30;
    for second in begun..begun + 60 {
        exchange_with(&mut peer, 2, (second, lie), &mut context);
        assert!(error(&peer, second).abs() < Span::from_micros(100), "{second}: {}", error(&peer, second));
        assert_eq!(peer.basis.counterpart, Some(Counterpart::Master(master(1).port, 0)));
    }
    assert!(has_event(&context, &format!("{OTHER_SERVER}: it has to insist: by 4.")), "{:?}", context.journal.latest());
    let accepted = "the server insisted on another time";
    assert!(!has_event(&context, accepted));
    (begun + 60..begun + 64).for_each(|second| exchange_with(&mut peer, 2, (second, lie), &mut context));
    assert!(has_event(&context, accepted), "{:?}", context.journal.latest());
    assert_eq!(peer.basis.counterpart, Some(Counterpart::Master(master(2).port, 0)));
    let late = error(&peer, begun + 64) - lie;
    assert!(late.abs() < Span::from_micros(200), "it is followed now: {late}");
    assert_eq!(peer.estimator.summary().exchanges, 84, "and its exchanges since then are not forgotten again");
}

#[test]
fn a_master_that_lies_for_a_while_leaves_nothing_behind() {
    let mut context = context();
    let mut peer = peer_of_one(20, &mut context);
    (30..40).for_each(|second| exchange_with(&mut peer, 2, (second, Span::from_millis(-5)), &mut context));
    (40..44).for_each(|second| exchange_with(&mut peer, 1, (second, Span::ZERO), &mut context));
    assert!(error(&peer, 44).abs() < Span::from_micros(100), "{}", error(&peer, 44));
    assert!(has_event(&context, OTHER_SERVER));
    assert_eq!(peer.estimator.summary().exchanges, 34, "the first master goes on where it was");
}

#[test]
fn a_master_that_agrees_with_the_last_one_takes_over_at_once() {
    let mut context = context();
    let mut peer = peer_of_one(20, &mut context);
    exchange_with(&mut peer, 2, (30, Span::from_micros(20)), &mut context);
    assert_eq!(peer.basis.counterpart, Some(Counterpart::Master(master(2).port, 0)));
    assert_eq!(peer.estimator.summary().exchanges, 1);
    assert!(!has_event(&context, OTHER_SERVER), "{:?}", context.journal.latest());
}

/// Two masters that take turns every three seconds, each as wrong as it may be by its claim (10 us).
#[test]
fn masters_that_flap_leave_the_error_within_the_bound_and_the_rate_known() {
    let mut context = context();
    let mut peer = peer_of_one(60, &mut context);
    let rate_of = |peer: &Peer| peer.estimate().unwrap().period.as_seconds() / 1e-9 - 1.0;
    assert!(rate_of(&peer).abs() < 5e-7, "{}", rate_of(&peer));
    for second in 61..361 {
        let (number, lie) = if second / 3 % 2 == 0 { (2, 8) } else { (1, -8) };
        exchange_with(&mut peer, number, (second, Span::from_micros(lie)), &mut context);
        let bound = peer.estimate().unwrap().carried_to(Counter::from_raw(second * 1_000_000_000)).bound;
        let error = error(&peer, second).abs();
        assert!(error <= bound.as_span(), "{second}: {error} with a bound of {bound}");
        assert!(bound < Bound::of(Span::from_millis(1)), "{second}: {bound}");
        assert!(rate_of(&peer).abs() < 5e-7, "{second}: {}", rate_of(&peer));
        assert_eq!(peer.basis.counterpart, Some(Counterpart::Master(master(number).port, 0)));
    }
    assert!(!has_event(&context, OTHER_SERVER), "neither contradicts the other: {:?}", context.journal.latest());
}

#[test]
fn the_estimate_of_a_master_that_is_lost_is_held_until_the_next_gives_time() {
    let mut context = context();
    let mut peer = peer_of_one(20, &mut context);
    let before = peer.estimate().unwrap();
    assert_ne!(before.status, Status::Holdover);
    let mut turn = ptp();
    turn.take(PtpEvent::MasterChosen(master(1)));
    turn.take(PtpEvent::MasterLost(master(1).port));
    turn.take(PtpEvent::MasterChosen(master(2)));
    assert_eq!(kinds(&turn.notes)[1], "the master is gone, and there is no other");
    peer.feed = Some(Box::new(turn));
    peer.digest(0, &mut context);
    let held = peer.estimate().unwrap();
    assert_eq!((held.status, held.time, held.counter), (Status::Holdover, before.time, before.counter));
    assert_eq!(peer.basis.counterpart, Some(Counterpart::Master(master(1).port, 0)));
}

#[test]
fn the_same_master_goes_on_where_it_was() {
    let mut context = context();
    let mut peer = peer_of_one(20, &mut context);
    let mut turn = ptp();
    turn.take(PtpEvent::MasterChosen(master(1)));
    turn.take(PtpEvent::MasterLost(master(1).port));
    turn.take(PtpEvent::MasterChosen(master(1)));
    pair(&mut turn, 40_000_000);
    peer.feed = Some(Box::new(turn));
    peer.digest(0, &mut context);
    assert_eq!(peer.estimator.summary().exchanges, 21);
}

#[test]
fn what_a_master_claims_later_is_not_of_the_exchanges_before() {
    let mut server = ptp();
    server.take(PtpEvent::MasterChosen(master(1)));
    pair(&mut server, 1_000_000);
    let mut changed = master(1);
    (changed.announcement.quality.class, changed.announcement.steps_removed) = (ClockClass::PRIMARY, 2);
    server.take(PtpEvent::MasterChanged(changed, at_us(1_500_000)));
    pair(&mut server, 2_000_000);
    pair(&mut server, 3_000_000);
    let strata: Vec<u8> = server.exchanges.iter().map(|exchange| exchange.server.identity.stratum).collect();
    assert_eq!(strata, [2, 3]);
    assert!(kinds(&server.notes).contains(&"the master says something else about itself"));
    assert_eq!(server.counts.rejected.get("grandmaster-change"), Some(&2), "it may have been on its way");
}

/// The claim of the master 1 with this accuracy, in an announcement that arrived at this number of microseconds.
fn claims(accuracy: u8, arrived_us: u64) -> PtpEvent {
    let mut changed = master(1);
    changed.announcement.quality.accuracy = ClockAccuracy(accuracy);
    PtpEvent::MasterChanged(changed, at_us(arrived_us))
}

/// 25 us, 1 ms and 1 us in the table of the standard.
#[test]
fn each_message_is_as_wrong_as_was_claimed_when_it_passed() {
    let (mut server, now) = (ptp(), ffclock_sys::mono_now());
    server.take(PtpEvent::MasterChosen(master(1)));
    server.take(claims(0x25, 100_000));
    server.take(claims(0x29, 5_000_000));
    pair(&mut server, 10_000_000);
    server.take(message(Direction::Outgoing, 20_000_000));
    server.take(message(Direction::Incoming, 20_001_000));
    // What comes before the Follow_Up of that Sync, or waited in the other socket, narrows nothing.
    server.take(claims(0x23, 20_002_000));
    server.judge(now);
    pair(&mut server, 20_900_000);
    pair(&mut server, 30_000_000);
    server.take(message(Direction::Outgoing, 40_000_000));
    server.take(message(Direction::Incoming, 40_001_000));
    server.take(claims(0x29, 40_002_000));
    server.judge(now);
    let claimed = server.exchanges.iter().map(|exchange| exchange.server.root_distance);
    let micros: Vec<i64> = claimed.map(|claimed| (claimed.as_seconds() * 1e6) as i64).collect();
    assert_eq!(micros, [1000, 1000, 1000, 1, 1000]);
}

/// What the log says about masters, the last word first.
fn last_words(context: &Context) -> Vec<String> {
    let kinds = ["this master is the best", "the master is gone", "the master says something else"];
    let events = context.journal.latest().into_iter().map(|event| event.text);
    let mut said: Vec<String> = events.filter(|text| kinds.iter().any(|kind| text.starts_with(kind))).collect();
    said.reverse();
    said
}

#[test]
fn the_last_word_about_masters_that_take_turns_names_the_one_in_use() {
    let mut context = context();
    let mut peer = peer_of_one(1, &mut context);
    let begin = context.now;
    let mut turn = |second: i64, events: &[PtpEvent], context: &mut Context| {
        context.now = begin + Span::from_secs(second);
        context.journal.set_now(context.now);
        let mut server = ptp();
        events.iter().for_each(|event| server.take(*event));
        peer.feed = Some(Box::new(server));
        peer.digest(0, context);
        last_words(context)
    };
    let name = |number: u8| format!("port {}", port_text(master(number).port));
    for second in 1..40 {
        let words = turn(second, &[PtpEvent::MasterChosen(master(2 + (second % 2) as u8))], &mut context);
        assert!(words.len() == 1 && words[0].contains(&name(1)), "one line in a minute: {words:?}");
    }
    let words = turn(61, &[], &mut context);
    assert!(words.len() == 2 && words[0].contains(&name(3)), "the one that is left: {words:?}");
    let words = turn(62, &[PtpEvent::MasterChosen(master(1)), PtpEvent::MasterLost(master(1).port)], &mut context);
    assert!(words[0].starts_with("the master is gone"), "{words:?}");
    assert_eq!(turn(200, &[], &mut context), words, "what was overtaken before it was logged never is");
}

#[test]
fn a_break_of_the_counter_leaves_nothing_that_was_stamped() {
    let (mut server, now) = (ptp(), ffclock_sys::mono_now());
    server.take(PtpEvent::MasterChosen(master(1)));
    pair(&mut server, 1_000_000);
    server.take(message(Direction::Outgoing, 2_000_000));
    server.begin_epoch(&Beginning { environment: environment(), remembered: None, pace: Pace::AtOnce }, now);
    assert_eq!((server.take_exchanges(), server.standing()), (Vec::new(), Reachability::Untried));
    server.take(message(Direction::Incoming, 2_001_000));
    server.judge(now);
    assert_eq!(server.take_exchanges(), [], "the request was before the break");
    assert_eq!(server.follower.master(), None);
}

#[test]
fn a_master_announces_a_leap_second() {
    let mut server = ptp();
    let mut announcing = master(1);
    announcing.announcement.flags = PtpFlags(PtpFlags::PTP_TIMESCALE.0 | PtpFlags::LEAP_61.0);
    server.take(PtpEvent::MasterChosen(announcing));
    pair(&mut server, 1_000_000);
    // The end of November 2026.
    assert_eq!(server.leap_vote(), Some(Vote::of(Some(LeapAnnouncement { utc_second: 1_796_083_200, change: 1 }))));
    server.take(PtpEvent::MasterChanged(master(1), at_us(1_500_000)));
    pair(&mut server, 3_000_000);
    assert_eq!(server.leap_vote(), Some(Vote::of(None)), "it was withdrawn");
    server.take(PtpEvent::MasterChosen(announcing));
    pair(&mut server, 4_000_000);
    server.take(PtpEvent::MasterChosen(master(2)));
    assert_eq!(server.leap_vote(), Some(Vote::of(None)), "that was the word of another");
}

#[test]
fn a_device_that_is_not_there_is_looked_for_again() {
    let (mut server, mut context) = (ptp(), context());
    server.collect(&mut context);
    let notes = server.take_notes();
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert_eq!((note.kind, note.weight), ("masters of PTP cannot be heard", crate::journal::Weight::Warning));
    assert!(note.detail.contains("there is no network device nowhere9"), "{}", note.detail);
    assert!(!server.is_open() && server.next() > context.now);
    assert_eq!(server.descriptors().map(|descriptor| descriptor.is_some()), [false; 2]);
    context.now = server.next();
    server.collect(&mut context);
    assert_eq!(kinds(&server.take_notes()), ["masters of PTP cannot be heard"]);
}

#[test]
fn silence_has_its_reasons() {
    let mut server = ptp();
    let now = server.alive + SILENT_AFTER;
    server.reject(PtpRejection::RootDistance);
    server.reject(PtpRejection::RootDistance);
    server.watch_silence(now - Span::from_millis(1));
    assert_eq!(server.standing(), Reachability::Untried);
    server.watch_silence(now);
    assert_eq!(server.standing(), Reachability::Unreachable);
    let notes = server.take_notes();
    let last = notes.last().unwrap();
    assert_eq!((last.kind, last.detail.as_str()), ("no master of PTP is heard", "turned away so far: root-distance 2"));
    server.watch_silence(now + Span::from_secs(60));
    assert_eq!(server.take_notes(), [], "it is said once");
    server.take(PtpEvent::MasterChosen(master(1)));
    pair(&mut server, 1_000_000);
    assert_eq!(server.standing(), Reachability::Reachable);
}

/// Each new reason is an event, however soon it comes after another; the rest of a flood is counted.
#[test]
fn each_reason_to_turn_a_message_away_is_an_event_once() {
    let mut context = context();
    let mut peer = Peer::new(config(), environment(), None, context.now);
    let mut server = ptp();
    for _ in 0..200 {
        PtpRejection::ALL.into_iter().for_each(|reason| server.reject(reason));
    }
    peer.feed = Some(Box::new(server));
    peer.digest(0, &mut context);
    let events = context.journal.latest();
    let begins = |reason: PtpRejection| format!("messages of PTP are turned away: {reason}; so far ");
    for reason in PtpRejection::ALL {
        assert_eq!(events.iter().filter(|event| event.text.starts_with(&begins(reason))).count(), 1, "{reason}");
    }
    assert_eq!(events.len(), PtpRejection::ALL.len(), "{events:?}");
}

/// A master that is heard by multicast chooses how often its Syncs come.
#[test]
fn a_master_whose_syncs_are_rare_is_not_silent_between_two() {
    let mut server = ptp();
    let (now, port) = (server.alive, master(1).port);
    let origin = PtpTimestamp::of(Moment::from_origin(Span::from_secs(1_795_219_237))).unwrap().0;
    let announced = PtpBody::Announce(master(1).announcement);
    let stamp = Stamp { counter: Counter::from_raw(1), width: Ticks::from_raw(200), location: StampLocation::Kernel };
    for (sequence, body) in [(1, announced), (2, announced), (3, PtpBody::Sync(origin))] {
        let (flags, correction, source) = (PtpFlags::PTP_TIMESCALE, Correction::ZERO, port);
        let message = PtpMessage { body, sdo: 0, domain: 0, flags, correction, source, sequence, log_interval: 4 };
        server.follower.handle_message(message.encode().as_slice(), stamp, now);
    }
    assert_eq!(server.follower.sync_interval(), Span::from_secs(16));
    server.watch_silence(now + Span::from_secs(100));
    assert_eq!(server.standing(), Reachability::Untried);
    server.watch_silence(now + Span::from_secs(128));
    assert_eq!(server.standing(), Reachability::Unreachable);
}

/// A master whose exchanges are further and further apart is missed at last.
#[test]
fn a_master_that_slows_down_is_silent_at_some_time() {
    let mut server = ptp();
    server.take(PtpEvent::MasterChosen(master(1)));
    for number in 1..40 {
        server.take(message(Direction::Outgoing, number * 1_000_000));
        server.take(message(Direction::Incoming, number * 1_000_000 + 1000));
        server.judge(server.silent_at() - Span::from_millis(1));
    }
    assert_eq!(server.counts.exchanges, 39);
    assert!(server.silent_at() - server.alive <= Span::from_secs(1024));
}

#[test]
fn our_own_identity_is_made_up_and_no_other_clocks() {
    let now = ffclock_sys::mono_now();
    let (one, other) = (own_port(now), own_port(now));
    assert_ne!(one, other);
    for port in [one, other] {
        assert_eq!((port.clock.octets()[0] & 3, port.port), (2, 1));
    }
}
