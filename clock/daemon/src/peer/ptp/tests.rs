//! Masters that come and go within one turn of the event loop, and sockets that cannot be had.

use super::*;
use crate::calibrator::Calibrator;
use crate::config::{Config, DaemonConfig, DeviceStamps};
use crate::host_counter::Past;
use crate::journal::Journal;
use crate::peer::{Pace, Peer};
use ffclock_counter::CounterId;
use ffclock_estimator::Estimator;
use ffclock_ptp::{
    Announcement, ClockAccuracy, ClockClass, ClockQuality, PtpFlags, PtpObservation, ScaledVariance, TimeSource,
};
use ffclock_sys::Stamper;
use ffclock_units::{Counter, CounterEpoch, Direction, Stamp, StampLocation, Status, Ticks};

fn environment() -> Environment {
    Environment {
        nominal: Period::from_hertz(1e9).unwrap(),
        epoch: CounterEpoch::from_raw(1),
        stamps: StampChoice::Kernel,
        device_stamps: DeviceStamps::Leave,
        leaps: LeapTable::built_in(),
    }
}

fn context() -> Context {
    let now = ffclock_sys::mono_now();
    Context {
        published: None,
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
    Config::parse(text).unwrap().servers.remove(0)
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

/// A message that passed our end at this number of microseconds, of a way of 100 us; the counter shows true time.
fn message(direction: Direction, ours_us: u64) -> PtpEvent {
    let counter = Counter::from_raw(ours_us * 1000);
    let ours = Stamp { counter, width: Ticks::from_raw(200), location: StampLocation::Kernel };
    let way = if direction == Direction::Outgoing { 100 } else { -100 };
    let theirs = Span::from_secs(1_795_219_237) + Span::from_micros(ours_us as i64 + way);
    PtpEvent::Observation(PtpObservation { direction, ours, theirs: Moment::from_origin(theirs) })
}

/// A request and the Sync after it: one exchange, or the halves of two.
fn pair(ptp: &mut Ptp, at_us: u64) {
    ptp.take(message(Direction::Outgoing, at_us), ffclock_sys::mono_now());
    ptp.take(message(Direction::Incoming, at_us + 1000), ffclock_sys::mono_now());
}

fn kinds(notes: &[Note]) -> Vec<&'static str> {
    notes.iter().map(|note| note.kind).collect()
}

/// A server that has had `exchanges` with the master 1.
fn peer_of_one(exchanges: u64, context: &mut Context) -> Peer {
    let mut peer = Peer::new(config(), environment(), None, context.now);
    let mut first = ptp();
    first.take(PtpEvent::MasterChosen(master(1)), context.now);
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
    turn.take(PtpEvent::MasterChosen(master(1)), now);
    pair(&mut turn, 30_000_000);
    turn.take(message(Direction::Outgoing, 31_000_000), now);
    turn.take(PtpEvent::MasterLost(master(1).port), now);
    turn.take(PtpEvent::MasterChosen(master(2)), now);
    turn.take(message(Direction::Incoming, 31_500_000), now);
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

#[test]
fn the_estimate_of_a_master_that_is_lost_is_held_until_the_next_gives_time() {
    let (mut context, now) = (context(), ffclock_sys::mono_now());
    let mut peer = peer_of_one(20, &mut context);
    let before = peer.estimate().unwrap();
    assert_ne!(before.status, Status::Holdover);
    let mut turn = ptp();
    turn.take(PtpEvent::MasterChosen(master(1)), now);
    turn.take(PtpEvent::MasterLost(master(1).port), now);
    turn.take(PtpEvent::MasterChosen(master(2)), now);
    assert_eq!(kinds(&turn.notes)[1], "the master has fallen silent, and there is no other");
    peer.feed = Some(Box::new(turn));
    peer.digest(0, &mut context);
    let held = peer.estimate().unwrap();
    assert_eq!((held.status, held.time, held.counter), (Status::Holdover, before.time, before.counter));
    assert_eq!(peer.basis.counterpart, Some(Counterpart::Master(master(1).port, 0)));
}

#[test]
fn the_same_master_goes_on_where_it_was() {
    let (mut context, now) = (context(), ffclock_sys::mono_now());
    let mut peer = peer_of_one(20, &mut context);
    let mut turn = ptp();
    turn.take(PtpEvent::MasterChosen(master(1)), now);
    turn.take(PtpEvent::MasterLost(master(1).port), now);
    turn.take(PtpEvent::MasterChosen(master(1)), now);
    pair(&mut turn, 40_000_000);
    peer.feed = Some(Box::new(turn));
    peer.digest(0, &mut context);
    assert_eq!(peer.estimator.summary().exchanges, 21);
}

#[test]
fn what_a_master_claims_later_is_not_of_the_exchanges_before() {
    let (mut server, now) = (ptp(), ffclock_sys::mono_now());
    server.take(PtpEvent::MasterChosen(master(1)), now);
    pair(&mut server, 1_000_000);
    let mut changed = master(1);
    (changed.announcement.quality.class, changed.announcement.steps_removed) = (ClockClass::PRIMARY, 2);
    server.take(PtpEvent::MasterChanged(changed), now);
    pair(&mut server, 2_000_000);
    let strata: Vec<u8> = server.exchanges.iter().map(|exchange| exchange.server.identity.stratum).collect();
    assert_eq!(strata, [2, 3]);
    assert!(kinds(&server.notes).contains(&"the master says something else about itself"));
}

#[test]
fn a_break_of_the_counter_leaves_nothing_that_was_stamped() {
    let (mut server, now) = (ptp(), ffclock_sys::mono_now());
    server.take(PtpEvent::MasterChosen(master(1)), now);
    pair(&mut server, 1_000_000);
    server.take(message(Direction::Outgoing, 2_000_000), now);
    server.begin_epoch(&Beginning { environment: environment(), past: Past::Rate, pace: Pace::AtOnce }, now);
    assert_eq!((server.take_exchanges(), server.standing()), (Vec::new(), Reachability::Untried));
    server.take(message(Direction::Incoming, 2_001_000), now);
    assert_eq!(server.take_exchanges(), [], "the request was before the break");
    assert_eq!(server.follower.master(), None);
}

#[test]
fn a_master_announces_a_leap_second() {
    let (mut server, now) = (ptp(), ffclock_sys::mono_now());
    let mut announcing = master(1);
    announcing.announcement.flags = PtpFlags(PtpFlags::PTP_TIMESCALE.0 | PtpFlags::LEAP_61.0);
    server.take(PtpEvent::MasterChosen(announcing), now);
    pair(&mut server, 1_000_000);
    // The end of November 2026.
    assert_eq!(server.announced(), Some(LeapAnnouncement { utc_second: 1_796_083_200, change: 1 }));
    server.take(PtpEvent::MasterChanged(master(1)), now);
    pair(&mut server, 2_000_000);
    assert_eq!(server.announced(), None, "it was withdrawn");
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
    server.take(PtpEvent::MasterChosen(master(1)), now);
    pair(&mut server, 1_000_000);
    assert_eq!(server.standing(), Reachability::Reachable);
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
