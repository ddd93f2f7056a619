//! Dialogues with a server that interleaves (RFC 9769): which reply completes which exchange, and what a loss costs.

use crate::script::{Asked, HOLD, Script, TAI_MINUS_UTC, WAY, exchanges, refusal, stamp_at};
use ffclock_source::{Event, Nonce, Rejection, SourceConfig};
use ffclock_units::{Exchange, Moment, Mono, Span, Tai};
use ffclock_wire::{LeapIndicator, NtpTimestamp, Packet};

/// How much later than it could say a reply of the virtual server leaves.
const LATENESS: Span = Span::from_micros(20);
/// The precision of a time in a packet.
const STEP: Span = Span::from_nanos(1);

fn interleaving() -> Script {
    Script::with(SourceConfig { interleaved: true, burst_count: 0, ..SourceConfig::default() })
}

fn tai(script: &Script, at: Moment<Mono>) -> Moment<Tai> {
    Moment::from_origin(script.server_time(at).since_origin() + Span::from_secs(TAI_MINUS_UTC))
}

/// What an interleaving server answers to `asked`, having answered `before` last.
fn interleaved(script: &Script, asked: &Asked, before: &Asked) -> Packet {
    let left = NtpTimestamp::from_server(script.server_time(before.at + WAY + HOLD + LATENESS));
    let reply = script.answer(asked);
    assert_eq!(asked.packet().origin, script.answer(before).receive, "the request names the reply before");
    Packet { origin: asked.packet().receive, transmit: left, ..reply }
}

/// A request, its stamp and the interleaved reply to it.
fn round(script: &mut Script, before: &Asked) -> Asked {
    let mut asked = script.ask();
    script.stamp(&mut asked);
    let reply = interleaved(script, &asked, before).encode();
    script.deliver(&asked, &reply);
    asked
}

/// Whether this is the exchange of `asked`, whose reply left at `left` after the request.
fn assert_exchange_of(script: &Script, (exchange, left): (&Exchange, Span), asked: &Asked) {
    assert_eq!(exchange.sent, stamp_at(asked.at));
    assert_eq!(exchange.received, stamp_at(asked.at + WAY + HOLD + WAY));
    assert!((exchange.server_in - tai(script, asked.at + WAY)).abs() < STEP);
    let error = exchange.server_out - tai(script, asked.at + left);
    assert!(error.abs() < STEP, "{} ns", error.as_nanos());
}

/// Whether the only event is the exchange of `asked`, an earlier request, whose reply left at `left` after it.
fn assert_completes(script: &mut Script, left: Span, asked: &Asked) {
    let events = script.events();
    let [Event::EarlierExchange(exchange)] = events[..] else { panic!("{events:?}") };
    assert_exchange_of(script, (&exchange, left), asked);
}

/// RFC 9769, section 2: the first request has a zero origin; the next one names the reply by its receive timestamp.
/// Receive and transmit are random, as data minimisation asks, and differ.
#[test]
fn an_interleaved_request_names_the_reply_and_discloses_nothing_else() {
    let mut script = interleaving();
    let first = script.round();
    assert!(first.packet().origin.is_missing() && first.packet().receive.is_missing());
    let second = round(&mut script, &first);
    assert_eq!(second.bytes[..4], [0b00_100_011, 0, 0, 0x20]);
    assert!(second.bytes[4..24].iter().all(|&byte| byte == 0));
    let packet = second.packet();
    assert_ne!(packet.receive, packet.transmit);
    assert!(!packet.receive.is_missing() && !packet.transmit.is_missing());
}

/// RFC 9769, section 2: an interleaved reply has the transmit timestamp of the reply before it.
#[test]
fn an_interleaved_reply_completes_the_exchange_before_it() {
    let mut script = interleaving();
    let first = script.round();
    let [_, Event::Exchange(basic)] = script.events()[..] else { panic!() };
    assert_exchange_of(&script, (&basic, WAY + HOLD), &first);
    let second = round(&mut script, &first);
    assert_eq!(script.events(), [], "the first exchange is there already, and the second is not complete");
    let third = round(&mut script, &second);
    assert_completes(&mut script, WAY + HOLD + LATENESS, &second);
    round(&mut script, &third);
    assert_completes(&mut script, WAY + HOLD + LATENESS, &third);
    assert_eq!((script.source.statistics().accepted, script.source.statistics().interleaved), (3, 3));
}

#[test]
fn a_stamp_after_the_reply_changes_nothing() {
    let mut script = interleaving();
    let first = script.round();
    let mut second = script.ask();
    let reply = interleaved(&script, &second, &first).encode();
    script.deliver(&second, &reply);
    script.stamp(&mut second);
    let mut third = script.ask();
    let reply = interleaved(&script, &third, &second).encode();
    script.events();
    script.deliver(&third, &reply);
    assert_completes(&mut script, WAY + HOLD + LATENESS, &second);
    script.stamp(&mut third);
    assert_eq!(script.events(), []);
}

/// RFC 9769, section 2: a server may always respond in the basic mode.
#[test]
fn a_server_that_does_not_interleave_gives_each_exchange_at_once() {
    let mut script = interleaving();
    for number in 0..5 {
        let asked = script.round();
        assert_eq!(!asked.packet().origin.is_missing(), number > 0);
        let [exchange] = exchanges(&script.events())[..] else { panic!() };
        assert_exchange_of(&script, (&exchange, WAY + HOLD), &asked);
    }
    assert_eq!(script.source.statistics().interleaved, 0);
}

#[test]
fn a_basic_reply_after_interleaved_ones_releases_what_was_held() {
    let mut script = interleaving();
    let first = script.round();
    let second = round(&mut script, &first);
    script.events();
    let third = script.round();
    let events = script.events();
    let [Event::EarlierExchange(held), Event::Exchange(basic)] = events[..] else { panic!("{events:?}") };
    assert_exchange_of(&script, (&held, WAY), &second);
    assert_exchange_of(&script, (&basic, WAY + HOLD), &third);
}

/// RFC 9769, section 2: after a loss the next request has the same origin, and the server answers in either mode.
#[test]
fn a_lost_reply_costs_no_exchange() {
    let mut script = interleaving();
    let first = script.round();
    let second = round(&mut script, &first);
    script.events();
    let mut lost = script.ask();
    script.stamp(&mut lost);
    assert!(script.reach_deadline().is_none());
    let events = script.events();
    let [Event::EarlierExchange(held), Event::Lost] = events[..] else { panic!("{events:?}") };
    assert_exchange_of(&script, (&held, WAY), &second);
    let mut again = script.ask();
    assert_eq!(again.packet().origin, lost.packet().origin);
    assert_ne!(again.packet().receive, lost.packet().receive);
    script.stamp(&mut again);
    let reply = interleaved(&script, &again, &second).encode();
    script.deliver(&again, &reply);
    assert_eq!(script.events(), [], "the second exchange is not given twice");
    round(&mut script, &again);
    assert_completes(&mut script, WAY + HOLD + LATENESS, &again);
    assert_eq!(script.source.statistics().accepted, 3);
}

/// RFC 9769, section 2: the client limits the requests that name one reply.
#[test]
fn after_four_requests_without_reply_they_are_basic() {
    let mut script = interleaving();
    script.round();
    let origins: Vec<bool> = (0..6).map(|_| script.ask().packet().origin.is_missing()).collect();
    assert_eq!(origins, [false, false, false, false, true, true]);
    let asked = script.round();
    assert!(asked.packet().origin.is_missing() && asked.packet().receive.is_missing());
    assert!(!script.ask().packet().origin.is_missing(), "one reply is enough to go on");
}

/// RFC 5905, section 8 (duplicates and bogus packets), for both origins that a reply can have.
#[test]
fn replays_and_swapped_packets_are_refused() {
    let mut script = interleaving();
    let first = script.round();
    let second = round(&mut script, &first);
    script.events();
    let again = interleaved(&script, &second, &first).encode();
    script.deliver(&second, &again);
    script.deliver_answer(&second);
    assert_eq!(script.events(), [Event::Rejected(Rejection::Duplicate); 2], "whichever mode it shows");
    let mut third = script.ask();
    script.stamp(&mut third);
    script.deliver(&third, &again);
    assert_eq!(script.events(), [Event::Rejected(Rejection::Duplicate)]);
    let reply = interleaved(&script, &third, &second).encode();
    script.deliver(&third, &reply);
    assert_completes(&mut script, WAY + HOLD + LATENESS, &second);
    script.deliver(&third, &again);
    assert_eq!(script.events(), [Event::Rejected(Rejection::Replayed)]);
}

#[test]
fn a_basic_request_has_no_interleaved_reply() {
    let mut script = interleaving();
    let mut asked = script.ask();
    script.stamp(&mut asked);
    let forged = Packet { origin: asked.packet().receive, ..script.answer(&asked) };
    script.deliver(&asked, &forged.encode());
    assert_eq!(script.events(), [Event::Rejected(Rejection::WrongOrigin)], "a missing origin is not ours");
    script.deliver_answer(&asked);
    assert_eq!(exchanges(&script.events()).len(), 1);
}

/// A reply leaves after its request came, and before the next request, which is sent after it has arrived.
#[test]
fn a_departure_that_cannot_be_is_not_believed() {
    for wrong in [-1, 100] {
        let mut script = interleaving();
        let first = script.round();
        let second = round(&mut script, &first);
        script.events();
        let mut third = script.ask();
        script.stamp(&mut third);
        let left = script.server_time(second.at + WAY) + Span::from_secs(wrong);
        let reply = Packet { transmit: NtpTimestamp::from_server(left), ..interleaved(&script, &third, &second) };
        script.deliver(&third, &reply.encode());
        assert_completes(&mut script, WAY, &second);
    }
}

#[test]
fn a_refusal_or_an_unusable_reply_releases_what_was_held() {
    let changes: [fn(&mut Packet); 2] =
        [|reply| *reply = Packet { origin: reply.origin, ..refusal(*b"RATE") }, |reply| reply.stratum = 16];
    for change in changes {
        let mut script = interleaving();
        let first = script.round();
        let second = round(&mut script, &first);
        script.events();
        let events = script.round_with(change);
        assert!(matches!(events[..], [Event::EarlierExchange(_), Event::Kissed(_) | Event::Rejected(_)]), "{events:?}");
        assert_exchange_of(&script, (&exchanges(&events)[0], WAY), &second);
    }
}

/// A new address, and a new epoch of the counter, have nothing to do with the stamps before.
#[test]
fn what_was_held_is_forgotten_with_the_conversation() {
    let mut script = interleaving();
    let first = script.round();
    round(&mut script, &first);
    script.events();
    script.source.retarget(script.now);
    let asked = script.round();
    assert!(asked.packet().origin.is_missing());
    assert_eq!(exchanges(&script.events()).len(), 1);
}

#[test]
fn a_long_poll_is_asked_for_in_the_basic_mode() {
    for (poll, is_basic) in [(64, false), (65, true)] {
        let poll = Span::from_secs(poll);
        let mut script =
            Script::with(SourceConfig { interleaved: true, burst_count: 0, poll, ..SourceConfig::default() });
        script.round();
        assert_eq!(script.round().packet().origin.is_missing(), is_basic);
    }
}

#[test]
fn one_random_number_or_two_equal_ones_make_a_basic_request() {
    for nonce in [Nonce::from_random(7), Nonce::from_two_random(7, 7), Nonce::from_two_random(0, 1)] {
        let mut script = interleaving();
        script.round();
        script.now = script.source.poll_timeout();
        script.source.handle_timeout(script.now, nonce);
        let request = Packet::decode(&script.source.poll_transmit().unwrap().bytes).unwrap();
        assert!(request.origin.is_missing() && request.receive.is_missing());
    }
}

/// Labels near a leap second may mean another second: from 2 s before it to 2 s after it no time is taken.
#[test]
fn a_departure_near_a_leap_second_is_not_believed() {
    let mut script = interleaving();
    script.server.leap = LeapIndicator::Insert;
    // The second request comes just before that time, and its reply leaves within it.
    let december = Moment::from_origin(Span::from_secs(1_796_083_200));
    let second_leaves = script.now.since_origin() + Span::from_secs(16);
    script.server_begin = december - Span::from_secs(2) - Span::from_micros(10) - WAY - second_leaves;
    let first = script.round();
    assert!(matches!(script.events()[..], [Event::Reachable, Event::LeapAnnounced(_), Event::Exchange(_)]));
    let second = round(&mut script, &first);
    assert_eq!(script.events(), []);
    round(&mut script, &second);
    assert_completes(&mut script, WAY, &second);
}
