//! Bad input: each a named event, and nothing lost of what is good.

use crate::script::*;
use ffclock_ptp::*;
use ffclock_units::{Bound, ServerQuality, Span};

fn acquainted() -> Script {
    Script::acquainted(config())
}

/// The script still works: a Sync is an observation.
fn still_follows(script: &mut Script) {
    assert_eq!(observations(&script.two_step()).len(), 1);
}

/// IEEE 1588-2019, 7.1 and 13.3: another domain, profile or version; a length that cannot be.
#[test]
fn a_foreign_header_is_named() {
    let mut script = acquainted();
    let (sync, _) = script.sync_pair();
    for (change, reason) in [
        (PtpMessage { domain: 24, ..sync }, PtpRejection::Domain),
        (PtpMessage { sdo: 0x100, ..sync }, PtpRejection::Profile),
        (PtpMessage { source: own(), ..sync }, PtpRejection::OwnMessage),
        (PtpMessage { source: port(3), ..sync }, PtpRejection::NotMaster),
        (PtpMessage { flags: PtpFlags::ALTERNATE_MASTER, ..sync }, PtpRejection::AlternateMaster),
        (PtpMessage { body: PtpBody::Management, ..sync }, PtpRejection::NotForUs),
        (PtpMessage { body: PtpBody::DelayReq(PtpTimestamp::ZERO), ..sync }, PtpRejection::NotForUs),
    ] {
        assert_eq!(script.deliver(&change), rejected(reason));
        assert!(script.follower.statistics().rejected(reason) > 0);
    }
    let bytes = sync.encode();
    let mut bytes = bytes.as_slice().to_vec();
    assert_eq!(script.deliver_bytes(&bytes[..43]), rejected(PtpRejection::Truncated));
    assert_eq!(script.deliver_bytes(&[0; 3000]), rejected(PtpRejection::TooLong));
    bytes[1] = 1;
    assert_eq!(script.deliver_bytes(&bytes), rejected(PtpRejection::Version));
    bytes[..2].copy_from_slice(&[0x0e, 2]);
    assert_eq!(script.deliver_bytes(&bytes), rejected(PtpRejection::Kind));
    still_follows(&mut script);
}

/// IEEE 1588-2019, 9.5.10: a Follow_Up that is lost, a minute late, or comes twice.
#[test]
fn follow_ups_are_lost_late_and_doubled() {
    let mut script = Script::acquainted(FollowerConfig { announce_timeout: 255, ..config() });
    let (sync, follow_up) = script.sync_pair();
    script.deliver(&sync);
    assert_eq!(script.deliver(&sync), rejected(PtpRejection::Duplicate));
    script.pass(Span::from_secs(1));
    assert_eq!(script.events(), rejected(PtpRejection::FollowUpMissing));
    script.pass(Span::from_secs(60));
    assert_eq!(script.deliver(&follow_up), []);
    script.pass(Span::from_secs(1));
    assert_eq!(script.events(), rejected(PtpRejection::SyncMissing));
    let (sync, follow_up) = script.sync_pair();
    script.deliver(&sync);
    assert_eq!(observations(&script.deliver(&follow_up)).len(), 1);
    assert_eq!(script.deliver(&follow_up), rejected(PtpRejection::Duplicate));
    assert_eq!(script.deliver(&sync), rejected(PtpRejection::Duplicate));
}

/// IEEE 1588-2019, 9.5.9 and 9.5.10: of two messages of one number the first counts, whichever of Sync and Follow_Up
/// comes first.
#[test]
fn a_second_message_of_a_number_changes_nothing() {
    let mut script = acquainted();
    let late = Correction::of(Span::from_micros(70));
    for is_sync_first in [true, false] {
        let (sync, follow_up) = script.sync_pair();
        let (first, second) = if is_sync_first { (sync, follow_up) } else { (follow_up, sync) };
        let begin = script.now;
        assert_eq!(script.deliver(&first), []);
        script.pass(Span::from_millis(2));
        let again = PtpMessage { correction: late, ..first };
        assert_eq!(script.deliver(&again), rejected(PtpRejection::Duplicate));
        let events = script.deliver(&second);
        let [seen] = observations(&events)[..] else { panic!("{events:?}") };
        let received = if is_sync_first { begin } else { script.now };
        assert_eq!(seen.ours, stamp_at(received), "the stamp of the Sync that counts");
        let off = seen.theirs - tai(begin - WAY);
        assert!(off.abs() < Span::from_nanos(2), "the correction of the first one, and not {off:?} more");
    }
}

/// IEEE 1588-2019, 11.2: a Sync of two steps waits for its Follow_Up. Those whose Follow_Ups never come take no more
/// than their places.
#[test]
fn a_flood_of_syncs_is_bounded() {
    let mut script = acquainted();
    let mut missing = 0;
    for _ in 0..10_000 {
        let (sync, _) = script.sync_pair();
        missing += script.deliver(&sync).len();
    }
    assert_eq!(missing, 10_000 - 16);
    script.pass(Span::from_secs(1));
    script.events();
    still_follows(&mut script);
}

/// IEEE 1588-2019, 11.3: responses to others, of others, to no request, twice, too late; and requests without stamp.
#[test]
fn a_response_that_is_none_is_named() {
    let mut script = Script::acquainted(FollowerConfig { announce_timeout: 255, ..config() });
    script.two_step();
    let (request, ticket) = script.request();
    let response = script.response(&request);
    for (change, reason) in [
        (
            PtpMessage { body: PtpBody::DelayResp(timestamp(script.now), port(8)), ..response },
            PtpRejection::ResponseToOther,
        ),
        (PtpMessage { source: port(8), ..response }, PtpRejection::NotMaster),
        (PtpMessage { sequence: request.sequence.wrapping_add(1), ..response }, PtpRejection::WrongSequence),
    ] {
        assert_eq!(script.deliver(&change), rejected(reason));
    }
    assert_eq!(script.deliver(&response), []);
    assert_eq!(script.deliver(&response), rejected(PtpRejection::Duplicate));
    script.pass(Span::from_millis(1001));
    assert_eq!(script.events(), rejected(PtpRejection::StampMissing));
    script.follower.handle_sent(ticket, stamp_at(script.now));
    assert_eq!(script.deliver(&response), rejected(PtpRejection::Late));
    script.sent();
    script.pass(Span::from_millis(1001));
    assert!(script.events().contains(&PtpEvent::Rejected(PtpRejection::ResponseMissing)));
}

/// IEEE 1588-2019, 13.3.2.9 and 5.3.3: corrections and times that cannot be.
#[test]
fn impossible_corrections_and_times_are_named() {
    let mut script = acquainted();
    let (sync, _) = script.sync_pair();
    let left = timestamp(script.now - WAY);
    let sync = PtpMessage { body: PtpBody::Sync(left), flags: PtpFlags::default(), ..sync };
    for (sequence, correction) in
        [Correction::UNKNOWN, Correction::of(Span::from_secs(1)), Correction::from_raw(i64::MIN)]
            .into_iter()
            .enumerate()
    {
        let message = PtpMessage { correction, sequence: 900 + sequence as u16, ..sync };
        assert_eq!(script.deliver(&message), rejected(PtpRejection::Correction));
    }
    let mut bytes = PtpMessage { sequence: 990, ..sync }.encode().as_slice().to_vec();
    bytes[40..44].copy_from_slice(&1_000_000_000_u32.to_be_bytes());
    assert_eq!(script.deliver_bytes(&bytes), rejected(PtpRejection::Timestamp));
    let none = PtpMessage { body: PtpBody::Sync(PtpTimestamp::ZERO), sequence: 991, ..sync };
    assert_eq!(script.deliver(&none), rejected(PtpRejection::Timestamp));
    still_follows(&mut script);
}

/// IEEE 1588-2019, 11.2, 11.3 and 13.3.2.9: corrections that may be, of 50 ms, in each message of a dialogue. What says
/// that a message arrived before it left is named, and what says that it was on its way for longer is no contradiction.
#[test]
fn corrections_that_contradict_causality_are_named() {
    let long = Span::from_millis(50);
    let of = |message: usize, place: usize, span: Span| {
        if message == place { Correction::of(span) } else { Correction::ZERO }
    };
    for (place, sign, expected) in [
        (3, 1, None),
        (0, 1, Some(PtpRejection::NegativeDelay)),
        (1, 1, Some(PtpRejection::NegativeDelay)),
        (2, 1, Some(PtpRejection::NegativeDelay)),
        (0, -1, None),
        (1, -1, None),
        (2, -1, None),
    ] {
        let mut script = acquainted();
        let mut pairing = ExchangePairing::new(config().period, Bound::of(Span::from_secs(1)));
        let correction = |message| of(message, place, if sign > 0 { long } else { -long });
        script.two_step();
        let (request, ticket) = script.request();
        script.follower.handle_sent(ticket, stamp_at(script.now));
        let response = script.response(&request);
        script.pass(WAY + WAY);
        let mut seen = script.deliver(&PtpMessage { correction: correction(2), ..response });
        script.pass(Span::from_millis(70));
        let (sync, follow_up) = script.sync_pair();
        script.deliver(&PtpMessage { correction: correction(0), ..sync });
        seen.extend(script.deliver(&PtpMessage { correction: correction(1), ..follow_up }));
        let pairs = observations(&seen).into_iter().map(|seen| pairing.observe(seen, ServerQuality::default()));
        let last = pairs.last().expect("a Sync");
        match expected {
            Some(reason) => assert_eq!(last, Err(reason), "{place}"),
            None => assert!(matches!(last, Ok(Some(_))), "{place} {sign}: {last:?}"),
        }
        still_follows(&mut script);
    }
}

/// IEEE 1588-2019, 9.3.2.5: announcements that do not count.
#[test]
fn announcements_that_do_not_count_are_named() {
    let mut script = Script::acquainted(FollowerConfig { grandmaster: Some(port(1).clock), ..config() });
    let far = Announcement { steps_removed: 255, ..script.announced };
    assert_eq!(script.announce_by(port(5), far), rejected(PtpRejection::StepsRemoved));
    assert_eq!(script.announce_by(port(5), announcement(own())), rejected(PtpRejection::OwnMessage));
    assert_eq!(script.announce_by(port(5), announcement(port(5))), rejected(PtpRejection::NotAccepted));
    let announced = message(port(5), 1, PtpBody::Announce(script.announced));
    let alternate = PtpMessage { flags: PtpFlags::ALTERNATE_MASTER, ..announced };
    assert_eq!(script.deliver(&alternate), rejected(PtpRejection::AlternateMaster));
    // A path trace (16.2) of two clocks, ours among them.
    let mut looped = announced.encode().as_slice().to_vec();
    looped.extend([0, 8, 0, 16]);
    looped.extend(port(5).clock.octets());
    looped.extend(own().clock.octets());
    let length = u16::try_from(looped.len()).unwrap();
    looped[2..4].copy_from_slice(&length.to_be_bytes());
    assert_eq!(script.deliver_bytes(&looped), rejected(PtpRejection::PathLoop));
    still_follows(&mut script);
}

/// IEEE 1588-2019, 14.1: more TLVs than any message has, one that is cut off, one of odd length.
#[test]
fn a_flood_of_tlvs_is_not_read() {
    let mut script = acquainted();
    let with = |tail: &[u8]| {
        let mut bytes = message(port(1), 3, PtpBody::Announce(announcement(port(1)))).encode().as_slice().to_vec();
        bytes.extend(tail);
        let length = u16::try_from(bytes.len()).unwrap();
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        bytes
    };
    let flood: Vec<u8> = std::iter::repeat_n([0, 9, 0, 0], 400).flatten().collect();
    for tail in [&flood[..], &[0, 9, 0, 8, 1, 2], &[0, 9, 0, 1, 1], &[0, 9]] {
        assert_eq!(script.deliver_bytes(&with(tail)), rejected(PtpRejection::Tlv));
    }
    assert_eq!(script.deliver_bytes(&with(&flood[..64])), [], "sixteen are as many as may be");
    still_follows(&mut script);
}

/// IEEE 1588-2019, 9.3.2.4.5: the table of masters is bounded, and the master that is followed keeps its place.
#[test]
fn a_hundred_thousand_senders_do_not_displace_the_master() {
    let mut script = acquainted();
    for number in 0..100_000_u32 {
        let [a, b, c, d] = number.to_be_bytes();
        let source = PortIdentity { clock: ClockIdentity::from_mac([6, 0, a, b, c, d]), port: 1 };
        let events = script.announce_by(source, Announcement { priority_1: 0, ..announcement(source) });
        let expected = if number < 15 { vec![] } else { rejected(PtpRejection::TooManyMasters) };
        assert_eq!(events, expected, "heard once, never again, and none better than the last");
    }
    assert_eq!(script.follower.master().map(|master| master.port), Some(script.master));
    still_follows(&mut script);
}

/// IEEE 1588-2019, 9.3.2.4.5 and 9.3.2.5: the same, before the master was heard twice: by senders that each claim to
/// be better than all before, and by worse ones that came before it.
#[test]
fn a_hundred_thousand_senders_do_not_displace_a_master_that_is_to_qualify() {
    let flood = |script: &mut Script, senders: u32, priority_1: u8| {
        let mut displaced = 0;
        for number in (0..senders).rev() {
            let [a, b, c, d] = number.to_be_bytes();
            let source = PortIdentity { clock: ClockIdentity::from_mac([6, 0, a, b, c, d]), port: 1 };
            let events = script.announce_by(source, Announcement { priority_1, ..announcement(source) });
            displaced += usize::from(events == rejected(PtpRejection::Displaced));
        }
        displaced
    };
    let follows = |script: &mut Script| {
        script.pass(Span::from_secs(1));
        let events = script.announce();
        assert!(matches!(events[..], [PtpEvent::MasterChosen(chosen)] if chosen.port == script.master), "{events:?}");
        still_follows(script);
    };
    let mut before_the_second_message = Script::with(config());
    before_the_second_message.announce();
    let displaced = flood(&mut before_the_second_message, 100_000, 0);
    assert_eq!(displaced, 100_000 - 15, "each pushes out another one, and is counted");
    follows(&mut before_the_second_message);

    let mut before_the_first_message = Script::with(config());
    flood(&mut before_the_first_message, 10_000, 200);
    assert_eq!(before_the_first_message.announce(), rejected(PtpRejection::Displaced), "it is better than those");
    flood(&mut before_the_first_message, 10_000, 200);
    follows(&mut before_the_first_message);
}

/// IEEE 1588-2019, 9.3.2.4.5: the same, but the senders repeat themselves and are worse: once the table is full of
/// them, each more is named.
#[test]
fn a_full_table_is_named() {
    let mut script = acquainted();
    let worse = |number: u8| Announcement { priority_1: 200, ..announcement(port(number)) };
    for _ in 0..2 {
        for number in 100..115 {
            script.announce_by(port(number), worse(number));
        }
    }
    assert_eq!(script.announce_by(port(200), worse(200)), rejected(PtpRejection::TooManyMasters));
    let better = Announcement { priority_1: 1, ..announcement(port(201)) };
    assert_eq!(script.announce_by(port(201), better), rejected(PtpRejection::Displaced), "a better one gets a place");
    assert!(matches!(script.announce_by(port(201), better)[..], [PtpEvent::MasterChosen(_)]));
}

/// IEEE 1588-2019, 9.3.3 and 9.3.4: two grandmasters that flap. Each change is an event, and no message of one is
/// taken for the other's.
#[test]
fn two_masters_that_flap_do_not_mix() {
    let mut script = acquainted();
    let other = |priority_1| Announcement { priority_1, ..announcement(port(9)) };
    script.announce_by(port(9), other(200));
    for round in 0..20 {
        let (sync, follow_up) = script.sync_pair();
        script.deliver(&sync);
        let events = script.announce_by(port(9), other(if round % 2 == 0 { 1 } else { 200 }));
        assert!(matches!(events[..], [PtpEvent::MasterChosen(_)]), "{events:?}");
        let events = script.deliver(&follow_up);
        let expected = if round % 2 == 0 { PtpRejection::NotMaster } else { PtpRejection::SyncMissing };
        if round % 2 == 0 {
            assert_eq!(events, rejected(expected));
        } else {
            assert_eq!(events, [], "the Sync of this master came while the other one was followed");
        }
        script.announce();
        script.pass(Span::from_millis(1500));
        script.events();
    }
}

/// IEEE 1588-2019, 11.4.2: a second response, a neighbour that held the request for longer than the round trip took.
#[test]
fn impossible_neighbours_are_named() {
    let mut script = Script::with(FollowerConfig { mechanism: DelayMechanism::PeerToPeer, ..config() });
    let ask = |script: &mut Script| {
        let asked = script.ask_link(Span::from_micros(100));
        message(port(4), asked.sequence, PtpBody::PdelayResp(PtpTimestamp::ZERO, own()))
    };
    let response = ask(&mut script);
    let two_steps = PtpMessage { flags: PtpFlags::TWO_STEP, ..response };
    assert_eq!(script.deliver(&two_steps), []);
    assert_eq!(script.deliver(&two_steps), rejected(PtpRejection::Duplicate));
    for held in [Span::from_micros(101), Span::from_millis(50)] {
        let correction = Correction::of(held);
        let response = ask(&mut script);
        assert_eq!(script.deliver(&PtpMessage { correction, ..response }), rejected(PtpRejection::NegativeDelay));
        let response = ask(&mut script);
        assert_eq!(script.deliver(&PtpMessage { flags: PtpFlags::TWO_STEP, ..response }), []);
        let body = PtpBody::PdelayRespFollowUp(PtpTimestamp::ZERO, own());
        let left = PtpMessage { body, correction, ..response };
        assert_eq!(script.deliver(&left), rejected(PtpRejection::NegativeDelay), "two steps");
    }
    let response = ask(&mut script);
    let early = PtpMessage { correction: Correction::from_raw(-65_536), ..response };
    assert_eq!(script.deliver(&early), rejected(PtpRejection::Correction));
    let response = ask(&mut script);
    let other = PtpMessage { body: PtpBody::PdelayResp(PtpTimestamp::ZERO, port(3)), ..response };
    assert_eq!(script.deliver(&other), rejected(PtpRejection::ResponseToOther));
}

/// IEEE 1588-2019, 11.4.2: of two Follow_Ups the first counts, also before its response.
#[test]
fn a_second_follow_up_of_the_link_changes_nothing() {
    let mut script = Script::with(FollowerConfig { mechanism: DelayMechanism::PeerToPeer, ..config() });
    let held = Span::from_micros(80);
    script.pass(Span::ZERO);
    let request = script.sent().pop().expect("a request at the beginning");
    let (asked, _) = PtpMessage::decode(request.octets.as_slice()).expect("a message");
    script.follower.handle_sent(request.ticket.expect("an event"), stamp_at(script.now));
    let begin = script.now;
    script.now = begin + WAY + held + WAY;
    let left = |at| message(port(4), asked.sequence, PtpBody::PdelayRespFollowUp(timestamp(at), own()));
    let first = left(begin + WAY + held);
    assert_eq!(script.deliver(&first), []);
    assert_eq!(script.deliver(&left(begin + WAY)), rejected(PtpRejection::Duplicate));
    let response = message(port(4), asked.sequence, PtpBody::PdelayResp(timestamp(begin + WAY), own()));
    let response = PtpMessage { flags: PtpFlags::TWO_STEP, ..response };
    let events = script.deliver(&response);
    let [PtpEvent::LinkDelay(delay)] = events[..] else { panic!("{events:?}") };
    assert_eq!((delay.neighbour, delay.turnaround), (port(4), held));
    for again in [response, first] {
        assert_eq!(script.deliver(&again), rejected(PtpRejection::Duplicate));
    }
}

/// IEEE 1588-2019, 11.4: a link has one neighbour. Where two answer, before the measurement is complete or after it,
/// neither is believed, until a request is answered by one alone.
#[test]
fn of_two_neighbours_none_is_believed() {
    for first_is_complete in [false, true] {
        let mut script = Script::with(FollowerConfig { mechanism: DelayMechanism::PeerToPeer, ..config() });
        let mut answers = |seconds: &[u8]| {
            let asked = script.ask_link(WAY + WAY);
            let response = message(port(4), asked.sequence, PtpBody::PdelayResp(PtpTimestamp::ZERO, own()));
            let two_steps = PtpMessage { flags: PtpFlags::TWO_STEP, ..response };
            let left = PtpMessage { body: PtpBody::PdelayRespFollowUp(PtpTimestamp::ZERO, own()), ..response };
            let mut events = if first_is_complete { script.deliver(&response) } else { script.deliver(&two_steps) };
            for second in seconds {
                events.extend(script.deliver(&PtpMessage { source: port(*second), ..response }));
            }
            if !first_is_complete {
                events.extend(script.deliver(&left));
            }
            events
        };
        let second = || PtpEvent::Rejected(PtpRejection::SecondNeighbour);
        let is_measured = |events: &[PtpEvent]| events.iter().any(|event| matches!(event, PtpEvent::LinkDelay(_)));
        assert!(answers(&[5]).contains(&second()));
        for _ in 0..3 {
            let events = answers(&[5]);
            assert!(!is_measured(&events) && events.contains(&second()), "{events:?}");
        }
        assert_eq!(answers(&[]), [second()], "the last one was answered by two");
        let events = answers(&[]);
        assert!(is_measured(&events), "{events:?}");
    }
}

/// IEEE 1588-2019, 11.4.2: a neighbour's Pdelay_Resp has its Follow_Up, however many others ask meanwhile.
#[test]
fn a_flood_of_requests_pushes_out_no_response() {
    let mut script = Script::with(FollowerConfig { mechanism: DelayMechanism::PeerToPeer, ..config() });
    let ask = |script: &mut Script, source: PortIdentity| {
        script.deliver(&message(source, 7, PtpBody::PdelayReq(PtpTimestamp::ZERO)))
    };
    assert_eq!(ask(&mut script, port(4)), []);
    let response = script.sent().pop().expect("a response");
    for number in 0..100_000_u32 {
        let [a, b, c, d] = number.to_be_bytes();
        let source = PortIdentity { clock: ClockIdentity::from_mac([6, 0, a, b, c, d]), port: 1 };
        let expected = if number < 15 { vec![] } else { rejected(PtpRejection::TooManyNeighbours) };
        assert_eq!(ask(&mut script, source), expected);
    }
    script.sent();
    script.follower.handle_sent(response.ticket.expect("an event"), stamp_at(script.now));
    let sent = script.sent();
    let (follow_up, _) = PtpMessage::decode(sent[0].octets.as_slice()).expect("a message");
    assert!(matches!(follow_up.body, PtpBody::PdelayRespFollowUp(_, requester) if requester == port(4)));
    assert_eq!(ask(&mut script, port(4)), [], "its place is free again");
    assert_eq!(ask(&mut script, port(4)), rejected(PtpRejection::TooManyNeighbours));
    script.pass(Span::from_secs(1));
    script.events();
    assert_eq!(ask(&mut script, port(4)), [], "stamps that do not come are not waited for");
}

/// IEEE 1588-2019, 13.3.2.8: a master that is not sure of its time (synchronizationUncertain) gives no observations.
#[test]
fn an_uncertain_master_gives_no_observations() {
    let mut script = acquainted();
    script.announced.flags = script.announced.flags.and(PtpFlags::UNCERTAIN);
    script.announce();
    assert_eq!(script.two_step(), rejected(PtpRejection::Uncertain));
}
