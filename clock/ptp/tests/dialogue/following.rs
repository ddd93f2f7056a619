//! A follower and masters that keep to the rules: which is followed, and what becomes of their messages.

use crate::script::*;
use ffclock_ptp::*;
use ffclock_units::{Bound, Direction, Exchange, LeapTable, Moment, Server, Span, Stamp};

fn master_of(events: &[PtpEvent]) -> Option<PortIdentity> {
    events.iter().find_map(|event| match event {
        PtpEvent::MasterChosen(master) => Some(master.port),
        _ => None,
    })
}

/// IEEE 1588-2019, 9.3.2.5 b): a master counts from its second Announce message within four intervals on.
#[test]
fn a_master_qualifies_by_its_second_announcement() {
    let mut script = Script::with(config());
    assert_eq!(script.announce(), []);
    script.pass(Span::from_secs(9)); // of 2 s each: silent for longer than the window, and forgotten
    assert_eq!(script.announce(), []);
    script.pass(Span::from_secs(2));
    assert_eq!(master_of(&script.announce()), Some(script.master));
}

/// IEEE 1588-2019, 9.2.6.12: without Announce messages for announceReceiptTimeout intervals the master is gone.
#[test]
fn a_silent_master_is_lost_after_three_intervals() {
    let mut script = Script::acquainted(config());
    script.pass(Span::from_secs(5));
    assert_eq!(script.events(), []);
    script.pass(Span::from_secs(1));
    assert_eq!(script.events(), [PtpEvent::MasterLost(script.master)]);
    assert_eq!(script.follower.claim(), None);
    assert_eq!(script.sent(), [], "nothing is asked of it any longer");
}

/// IEEE 1588-2019, 9.2.6.12 and 13.3.2.14: what a master says of its intervals counts as far as it shows it. One that
/// says 1/128 s and announces every 2 s qualifies and is kept; one that says 2^60 s and falls silent is soon gone.
#[test]
fn intervals_count_as_they_are_shown() {
    let announce = |script: &mut Script, log_interval| {
        let (announced, sequence) = (script.announced, script.next_sequence());
        let message = message(script.master, sequence, PtpBody::Announce(announced));
        script.deliver(&PtpMessage { log_interval, ..message })
    };
    let mut script = Script::with(config());
    announce(&mut script, -7);
    script.pass(Span::from_secs(2));
    assert_eq!(master_of(&announce(&mut script, -7)), Some(script.master));
    for _ in 0..5 {
        script.pass(Span::from_secs(2));
        assert_eq!(announce(&mut script, -7), []);
    }
    let mut script = Script::with(config());
    announce(&mut script, 60);
    script.pass(Span::from_secs(1));
    assert_eq!(master_of(&announce(&mut script, 60)), Some(script.master));
    script.pass(Span::from_secs(6));
    assert_eq!(script.events(), [PtpEvent::MasterLost(script.master)]);
}

/// IEEE 1588-2019, 9.3.4: the better data set is followed, and the other one again when it is gone.
#[test]
fn the_better_of_two_masters_is_followed() {
    let mut script = Script::acquainted(config());
    let better = Announcement { priority_1: 1, ..announcement(port(9)) };
    script.announce_by(port(9), better);
    script.announce();
    let events = script.announce_by(port(9), better);
    assert_eq!(master_of(&events), Some(port(9)));
    // The old one goes on. The new one falls silent.
    for _ in 0..4 {
        script.pass(Span::from_millis(1600));
        script.announce();
    }
    assert_eq!(script.follower.master().map(|master| master.port), Some(port(1)));
}

/// IEEE 1588-2019, 9.5.3 and table 33: each Announce message of the master that is followed brings its data sets up to
/// date.
#[test]
fn a_master_that_says_something_else_is_named_once() {
    let mut script = Script::acquainted(config());
    script.announced.quality.class = ClockClass::HOLDOVER;
    let expected = Master { port: script.master, announcement: script.announced };
    let arrived = stamp_at(script.now).counter;
    assert_eq!(script.announce(), [PtpEvent::MasterChanged(expected, arrived)]);
    assert_eq!(script.announce(), []);
}

/// IEEE 1588-2019, 11.2, one step: the Sync says itself when it left, and its correction belongs to that.
#[test]
fn a_sync_of_one_step_is_an_observation() {
    let mut script = Script::acquainted(config());
    let left = PtpBody::Sync(timestamp(script.now - WAY));
    let sync = PtpMessage { correction: Correction::of(Span::from_micros(40)), ..message(script.master, 5, left) };
    let events = script.deliver(&sync);
    let [seen] = observations(&events)[..] else { panic!("{events:?}") };
    assert_eq!((seen.direction, seen.ours), (Direction::Incoming, stamp_at(script.now)));
    let held = seen.theirs - tai(script.now - WAY);
    assert!((held - Span::from_micros(40)).abs() < Span::from_nanos(2), "{held:?}");
}

/// IEEE 1588-2019, 11.2, two steps: preciseOriginTimestamp, and the corrections of both messages.
#[test]
fn a_follow_up_completes_its_sync() {
    let mut script = Script::acquainted(config());
    let (sync, follow_up) = script.sync_pair();
    let correction = Correction::of(Span::from_micros(30));
    assert_eq!(script.deliver(&PtpMessage { correction, ..sync }), []);
    let received = script.now;
    script.pass(Span::from_millis(3));
    let [seen] = observations(&script.deliver(&PtpMessage { correction, ..follow_up }))[..] else { panic!("nothing") };
    assert_eq!(seen.ours, stamp_at(received), "the stamp of the Sync, not of the Follow_Up");
    let held = seen.theirs - tai(received - WAY);
    assert!((held - Span::from_micros(60)).abs() < Span::from_nanos(2), "{held:?}");
}

/// IEEE 1588-2019, 9.5.10: the network may deliver the Follow_Up first, and those of two Syncs crossed.
#[test]
fn follow_ups_that_are_swapped_find_their_syncs() {
    let mut script = Script::acquainted(config());
    let (first, first_follow_up) = script.sync_pair();
    let (second, second_follow_up) = script.sync_pair();
    assert_eq!(script.deliver(&second_follow_up), []);
    assert_eq!(script.deliver(&first), []);
    assert_eq!(observations(&script.deliver(&second)).len(), 1);
    assert_eq!(observations(&script.deliver(&first_follow_up)).len(), 1);
}

/// IEEE 1588-2019, 11.3: t3 is our transmit stamp, t4 less the correction is when it arrived.
#[test]
fn a_delay_request_and_its_response_are_an_observation() {
    let mut script = Script::acquainted(config());
    script.two_step();
    let (request, ticket) = script.request();
    assert_eq!(request.source, own());
    assert_eq!((request.body, request.log_interval), (PtpBody::DelayReq(PtpTimestamp::ZERO), LOG_INTERVAL_NONE));
    script.follower.handle_sent(ticket, stamp_at(script.now));
    let response = PtpMessage { correction: Correction::of(Span::from_micros(20)), ..script.response(&request) };
    let [seen] = observations(&script.deliver(&response))[..] else { panic!("nothing") };
    assert_eq!((seen.direction, seen.ours), (Direction::Outgoing, stamp_at(script.now)));
    let arrived = seen.theirs - tai(script.now + WAY);
    assert!((arrived + Span::from_micros(20)).abs() < Span::from_nanos(2), "{arrived:?}");
}

/// IEEE 1588-2019, 11.3: t3 is this host's own stamp. It may come after the response, which says t4.
#[test]
fn a_late_stamp_completes_a_response() {
    let mut script = Script::acquainted(config());
    script.two_step();
    let (request, ticket) = script.request();
    assert_eq!(script.deliver(&script.response(&request)), []);
    script.follower.handle_sent(ticket, stamp_at(script.now));
    assert_eq!(observations(&script.events()).len(), 1);
}

/// IEEE 1588-2019, 9.5.11.2 and 13.3.2.14: requests come at random times, half of the interval's double on average, and
/// the master says the interval.
#[test]
fn the_master_sets_how_often_it_is_asked() {
    let mut script = Script::acquainted(FollowerConfig { announce_timeout: 255, ..config() });
    script.two_step();
    let (request, _) = script.request();
    let response = PtpMessage { log_interval: 3, ..script.response(&request) };
    script.deliver(&response);
    script.pass(Span::from_secs(64));
    let count = script.sent().len();
    assert!((7..=9).contains(&count), "{count} requests in 64 s at 8 s, the script's random number being the middle");
}

/// IEEE 1588-2019, 11.2 and 11.3 give t1 to t4. No clause makes an exchange for the estimator of a Delay_Req and the
/// next Sync, with the claim of the master.
#[test]
fn observations_become_exchanges() {
    let mut script = Script::acquainted(config());
    let mut pairing = ExchangePairing::new(config().period, Bound::of(Span::from_secs(1)));
    let mut exchanges: Vec<Exchange> = Vec::new();
    for _ in 0..6 {
        script.announce();
        let mut events = script.two_step();
        for transmit in script.sent() {
            let (request, _) = PtpMessage::decode(transmit.octets.as_slice()).expect("a message");
            script.follower.handle_sent(transmit.ticket.expect("an event"), stamp_at(script.now));
            events.extend(script.deliver(&script.response(&request)));
        }
        let claim = script.follower.claim().expect("a master is followed");
        let paired = observations(&events).into_iter().map(|seen| pairing.observe(seen, claim).expect("possible"));
        exchanges.extend(paired.flatten());
        script.pass(Span::from_secs(2));
    }
    assert!(exchanges.len() >= 3, "{}", exchanges.len());
    for exchange in exchanges {
        let trip = Span::from_nanos(i128::from((exchange.received.counter - exchange.sent.counter).raw()));
        let net = trip - (exchange.server_out - exchange.server_in);
        assert!((net - WAY - WAY).abs() < Span::from_nanos(3), "{net:?}");
        assert_eq!(exchange.server.identity.stratum, 1);
    }
}

/// IEEE 1588-2019, 7.2.1: an arbitrary scale is refused unless the configuration says that it is UTC.
#[test]
fn an_arbitrary_timescale_is_refused_or_utc() {
    let mut script = Script::with(config());
    script.announced.flags = PtpFlags::default();
    let announced = script.announced;
    let begin = |script: &mut Script| {
        script.announced = announced;
        script.announce();
        script.announce();
        script.two_step()
    };
    assert_eq!(begin(&mut script), rejected(PtpRejection::ArbitraryTimescale));
    let mut script = Script::with(FollowerConfig { arbitrary: ArbitraryTimescale::Utc, ..config() });
    let seen = observations(&begin(&mut script))[0].theirs;
    let utc = ffclock_units::Moment::<Server>::from_origin(tai(script.now - WAY).since_origin());
    assert!((seen - LeapTable::built_in().tai_from_server(utc)).abs() < Span::from_nanos(2));
}

/// IEEE 1588-2019, 7.2.1: of an arbitrary scale that is UTC, labels near midnight do not identify a second on the day
/// of a leap second.
#[test]
fn a_utc_scale_is_not_believed_near_a_leap_second() {
    let mut script = Script::with(FollowerConfig { arbitrary: ArbitraryTimescale::Utc, ..config() });
    script.announced.flags = PtpFlags::LEAP_61;
    script.announce();
    script.announce();
    let midnight = PtpTimestamp::of(ffclock_units::Moment::from_origin(Span::from_secs(1_798_761_599))).unwrap().0;
    let sync = message(script.master, 7, PtpBody::Sync(midnight));
    assert_eq!(script.deliver(&sync), rejected(PtpRejection::NearLeap));
}

/// IEEE 1588-2019, 7.2.4: TAI - UTC of the master, against our table.
#[test]
fn another_utc_offset_is_named_once() {
    let mut script = Script::with(config());
    script.announced.utc_offset = 36;
    script.announce();
    script.announce();
    script.events();
    assert_eq!(script.two_step()[0], PtpEvent::UtcOffsetDiffers(36, 37));
    assert_eq!(observations(&script.two_step()).len(), 1);
}

/// A request on the link, answered in two steps by `neighbour` at the other end of one way, who says when it arrived.
fn answered_link(script: &mut Script, neighbour: PortIdentity, arrived: PtpTimestamp) -> Vec<PtpEvent> {
    let asked = script.ask_link(WAY + WAY);
    let response = message(neighbour, asked.sequence, PtpBody::PdelayResp(arrived, own()));
    // Half a nanosecond more than is said.
    let correction = Correction::from_raw(-0x8000);
    assert_eq!(script.deliver(&PtpMessage { flags: PtpFlags::TWO_STEP, correction, ..response }), []);
    let follow_up = message(neighbour, asked.sequence, PtpBody::PdelayRespFollowUp(arrived, own()));
    script.deliver(&PtpMessage { correction: Correction::of(Span::from_micros(10)), ..follow_up })
}

/// IEEE 1588-2019, 11.4.2: where the neighbour is the master and says when the request arrived, that is as much as a
/// Delay_Req says; a switch, or a neighbour that says only how long it held the request, proves nothing of a Sync.
#[test]
fn a_link_to_the_master_itself_gives_exchanges() {
    let mechanism = DelayMechanism::PeerToPeer;
    let earliest = tai(Moment::from_origin(Span::ZERO));
    let mut script = Script::acquainted(FollowerConfig { mechanism, earliest, ..config() });
    let mut pairing = ExchangePairing::new(config().period, Bound::of(Span::from_secs(1)));
    for _ in 0..5 {
        let master = script.master;
        let sent = script.now + Span::from_millis(1001);
        let time = timestamp(sent + WAY);
        let arrived = tai(sent + WAY);
        let events = answered_link(&mut script, master, time);
        let [PtpEvent::LinkDelay(delay)] = events[..] else { panic!("{events:?}") };
        let observation = delay.observation().expect("the master's time");
        assert_eq!((observation.direction, observation.ours), (Direction::Outgoing, stamp_at(sent)));
        let rounded = (observation.theirs - arrived).abs();
        assert!(rounded <= Span::from_nanos(1), "{rounded:?}");
        let claim = script.follower.claim().expect("a master");
        assert_eq!(pairing.observe(observation, claim), Ok(None));
        script.now = script.now + Span::from_millis(20);
        let [PtpEvent::Observation(sync)] = script.two_step()[..] else { panic!("a Sync") };
        assert!(pairing.observe(sync, claim).is_ok_and(|exchange| exchange.is_some()));
        script.announce();
    }
    let time = timestamp(script.now + Span::from_millis(1001) + WAY);
    for (neighbour, says) in [(port(4), time), (script.master, PtpTimestamp::ZERO)] {
        let events = answered_link(&mut script, neighbour, says);
        let [PtpEvent::LinkDelay(delay), PtpEvent::Rejected(reason)] = events[..] else { panic!("{events:?}") };
        assert_eq!((delay.observation(), reason), (None, PtpRejection::NeighbourTime));
        script.announce();
    }
    let events = answered_link(&mut script, port(1), timestamp(Moment::from_origin(Span::from_secs(-100))));
    assert_eq!(events[1], PtpEvent::Rejected(PtpRejection::ImplausibleTime));
}

/// linuxptp, `hybrid_e2e`: multicast, but for Delay_Req and its answer. It goes to where the Syncs come from.
#[test]
fn the_master_alone_is_asked_in_hybrid_mode() {
    let [first, second] = [NetworkAddress([1; 16]), NetworkAddress([2; 16])];
    let mut script = Script::acquainted(FollowerConfig { delivery: Delivery::Hybrid, ..config() });
    let asked = |script: &mut Script| {
        let transmit = (0..100).find_map(|_| {
            script.pass(Span::from_millis(30));
            script.follower.poll_transmit()
        });
        let transmit = transmit.expect("a request");
        let (request, _) = PtpMessage::decode(transmit.octets.as_slice()).expect("a message");
        (transmit.audience, request.flags.has(PtpFlags::UNICAST), request, transmit.ticket.expect("an event"))
    };
    let sync_from = |script: &mut Script, source: PortIdentity, from: NetworkAddress| {
        let (sync, follow_up) = script.sync_pair();
        for message in [sync, follow_up].map(|message| PtpMessage { source, ..message }) {
            let received = (stamp_at(script.now), Passage::to_group(from));
            script.follower.handle_message_from(message.encode().as_slice(), received, script.now);
        }
        script.events()
    };
    script.two_step();
    assert_eq!(asked(&mut script).0, Audience::Everyone, "where the master is, no one has said");
    let master = script.master;
    assert_eq!(observations(&sync_from(&mut script, master, first)).len(), 1);
    sync_from(&mut script, port(9), second);
    script.pass(Span::from_secs(1));
    script.announce();
    let (audience, is_unicast, request, ticket) = asked(&mut script);
    assert_eq!((audience, is_unicast), (Audience::One(first), true), "not where another clock is");
    script.events();
    script.follower.handle_sent(ticket, stamp_at(script.now));
    let response = script.response(&request);
    script.now = script.now + WAY + WAY;
    let unicast = PtpMessage { flags: PtpFlags::UNICAST, log_interval: LOG_INTERVAL_NONE, ..response };
    let bytes = unicast.encode();
    let to_us = |bytes: &[u8], script: &mut Script| {
        let received = (stamp_at(script.now), Passage::to_us(first, second));
        script.follower.handle_message_from(bytes, received, script.now);
        script.events()
    };
    assert_eq!(observations(&to_us(bytes.as_slice(), &mut script)).len(), 1);
    let (sync, follow_up) = script.sync_pair();
    let announced = message(script.master, 1, PtpBody::Announce(script.announced));
    for stray in [sync, follow_up, announced] {
        let events = to_us(stray.encode().as_slice(), &mut script);
        assert_eq!(events, rejected(PtpRejection::NotToGroup), "it may come from any network");
    }
}

/// IEEE 1588-2019, 11.4.2: in one step the correction is the time for which the neighbour held the request.
#[test]
fn a_link_is_measured_in_one_step_and_in_two() {
    let mut script = Script::with(FollowerConfig { mechanism: DelayMechanism::PeerToPeer, ..config() });
    let held = Span::from_micros(80);
    for (is_one_step, pause) in [(true, 0), (false, 1500)] {
        script.pass(Span::from_millis(pause));
        let request = script.sent().pop().expect("a request each second");
        let (asked, _) = PtpMessage::decode(request.octets.as_slice()).expect("a message");
        let sent: Stamp = stamp_at(script.now);
        script.follower.handle_sent(request.ticket.expect("an event"), sent);
        let now = script.now;
        script.now = now + WAY + held + WAY;
        let time = if is_one_step { PtpTimestamp::ZERO } else { timestamp(now + WAY) };
        let response = message(port(4), asked.sequence, PtpBody::PdelayResp(time, own()));
        let events = if is_one_step {
            script.deliver(&PtpMessage { correction: Correction::of(held), ..response })
        } else {
            assert_eq!(script.deliver(&PtpMessage { flags: PtpFlags::TWO_STEP, ..response }), []);
            let left = PtpBody::PdelayRespFollowUp(timestamp(now + WAY + held), own());
            script.deliver(&message(port(4), asked.sequence, left))
        };
        let [PtpEvent::LinkDelay(delay)] = events[..] else { panic!("{events:?}") };
        assert_eq!((delay.neighbour, delay.sent, delay.received), (port(4), sent, stamp_at(script.now)));
        assert!((delay.turnaround - held).abs() < Span::from_nanos(2), "{:?}", delay.turnaround);
    }
}
