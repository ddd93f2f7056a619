//! Scripted dialogues with a virtual server: when requests leave, and which replies become exchanges.

use crate::script::{HOLD, Script, TAI_MINUS_UTC, WAY, exchanges, healthy, refusal, stamp_at};
use ffclock_source::{Event, PollPlace, Reachability, Rejection, SourceConfig};
use ffclock_units::{Bound, Leap, LeapAnnouncement, LeapTable, Moment, ServerIdentity, Span, Tai};
use ffclock_wire::{KissCode, LeapIndicator, LogSeconds, Mode, NtpTimestamp, PACKET_BYTES_MAX};

fn rejected(reason: Rejection) -> Vec<Event> {
    vec![Event::Rejected(reason)]
}

fn tai(script: &Script, at: ffclock_units::Moment<ffclock_units::Mono>) -> Moment<Tai> {
    Moment::from_origin(script.server_time(at).since_origin() + Span::from_secs(TAI_MINUS_UTC))
}

/// A script after its first exchange, with no event left.
fn acquainted() -> Script {
    let mut script = Script::steady();
    script.round();
    script.events();
    script
}

#[test]
fn an_exchange_has_the_stamps_of_both_sides() {
    let mut script = Script::begin();
    let asked = script.round();
    let events = script.events();
    assert_eq!(events[0], Event::Reachable);
    let [exchange] = exchanges(&events)[..] else { panic!("{events:?}") };
    assert_eq!(exchange.sent, stamp_at(asked.at));
    assert_eq!(exchange.received, stamp_at(asked.at + WAY + HOLD + WAY));
    let step = Span::from_nanos(1); // a timestamp counts 0.23 ns
    assert!((exchange.server_in - tai(&script, asked.at + WAY)).abs() < step);
    assert!((exchange.server_out - tai(&script, asked.at + WAY + HOLD)).abs() < step);
    assert_eq!(exchange.server.identity, ServerIdentity { stratum: 2, reference_id: 0xc000_0201 });
    assert_eq!(exchange.server.leap, Leap::None);
    assert!(exchange.server.root_distance >= Bound::of(Span::from_millis(6)));
    assert!(exchange.server.root_distance < Bound::of(Span::from_millis(6) + Span::from_micros(33)));
    assert_eq!(script.source.reachability(), Reachability::Reachable);
}

#[test]
fn a_request_discloses_nothing_but_a_fresh_nonce() {
    let mut script = Script::begin();
    let (first, second) = (script.round(), script.round());
    for asked in [&first, &second] {
        assert_eq!(asked.bytes[..4], [0b00_100_011, 0, 0, 0x20]);
        assert!(asked.bytes[4..40].iter().all(|&byte| byte == 0));
        assert!(!asked.packet().transmit.is_missing());
    }
    assert_ne!(first.packet().transmit, second.packet().transmit);
}

#[test]
fn the_version_is_as_configured() {
    let mut script = Script::with(SourceConfig { version: 3, ..SourceConfig::default() });
    let asked = script.round();
    assert_eq!(asked.bytes[0], 0b00_011_011);
    assert_eq!(exchanges(&script.events()).len(), 1);
}

#[test]
fn a_burst_comes_first_and_then_the_poll() {
    let mut script = Script::begin();
    let times: Vec<_> = (0..11).map(|_| script.round().at).collect();
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps[..7], [Span::from_secs(2); 7]);
    assert_eq!(gaps[7..], [Span::from_secs(16); 3]);
    assert_eq!(exchanges(&script.events()).len(), 11);
}

#[test]
fn without_a_burst_the_first_request_still_leaves_at_once() {
    let mut script = Script::steady();
    let begin = script.now;
    assert_eq!(script.round().at, begin);
    assert_eq!(script.round().at - begin, Span::from_secs(16));
}

#[test]
fn a_fast_poll_is_not_slowed_down_by_its_burst() {
    let mut script = Script::with(SourceConfig { poll: Span::from_millis(125), ..SourceConfig::default() });
    let times: Vec<_> = (0..20).map(|_| script.round().at).collect();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == Span::from_millis(125)));
}

#[test]
fn a_call_too_early_does_nothing() {
    let mut script = acquainted();
    let before = script.source.poll_timeout();
    script.source.handle_timeout(before - Span::from_nanos(1), ffclock_source::Nonce::from_random(9));
    assert!(script.source.poll_transmit().is_none());
    assert_eq!(script.source.poll_timeout(), before);
    assert_eq!(script.events(), []);
}

#[test]
fn a_poll_without_reply_is_lost_and_the_next_one_keeps_its_time() {
    let mut script = acquainted();
    let mut asked = script.ask();
    script.stamp(&mut asked);
    assert_eq!(script.source.poll_timeout() - asked.at, Span::from_secs(2));
    assert!(script.reach_deadline().is_none());
    assert_eq!(script.events(), [Event::Lost]);
    assert_eq!(script.round().at - asked.at, Span::from_secs(16));
    assert_eq!(exchanges(&script.events()).len(), 1);
    assert_eq!(script.source.statistics().lost, 1);
}

#[test]
fn a_path_longer_than_the_poll_still_works() {
    let mut script = Script::with(SourceConfig { poll: Span::from_millis(125), ..SourceConfig::default() });
    for _ in 0..5 {
        let mut asked = script.ask();
        script.stamp(&mut asked);
        script.now = asked.at + Span::from_millis(600);
        script.deliver_answer(&asked);
    }
    assert_eq!(exchanges(&script.events()).len(), 5);
}

#[test]
fn a_reply_after_its_time_is_late() {
    let mut script = acquainted();
    let mut asked = script.ask();
    script.stamp(&mut asked);
    script.reach_deadline();
    script.deliver_answer(&asked);
    assert_eq!(script.events(), [Event::Lost, Event::Rejected(Rejection::Late)]);
}

#[test]
fn a_late_reply_after_a_newer_answer_is_out_of_order() {
    let mut script = acquainted();
    let mut slow = script.ask();
    script.stamp(&mut slow);
    script.round();
    script.events();
    script.deliver_answer(&slow);
    assert_eq!(script.events(), rejected(Rejection::OutOfOrder));
}

#[test]
fn a_second_copy_is_a_duplicate_and_later_a_replay() {
    let mut script = Script::steady();
    let asked = script.round();
    script.events();
    script.deliver_answer(&asked);
    assert_eq!(script.events(), rejected(Rejection::Duplicate));
    let mut next = script.ask();
    script.stamp(&mut next);
    script.deliver_answer(&asked);
    assert_eq!(script.events(), rejected(Rejection::Duplicate), "the next request is not answered yet");
    script.deliver_answer(&next);
    script.events();
    script.deliver_answer(&asked);
    assert_eq!(script.events(), rejected(Rejection::Replayed));
    assert_eq!(script.source.statistics().accepted, 2);
}

#[test]
fn a_replay_from_long_ago_is_recognised_as_not_ours() {
    let mut script = Script::steady();
    let asked = script.round();
    for _ in 0..4 {
        script.round();
    }
    script.events();
    script.deliver_answer(&asked);
    assert_eq!(script.events(), rejected(Rejection::WrongOrigin));
}

#[test]
fn a_forger_without_the_nonce_changes_nothing() {
    let mut script = acquainted();
    let mut asked = script.ask();
    script.stamp(&mut asked);
    let mut forged = script.answer(&asked);
    forged.origin = NtpTimestamp::from_raw(forged.origin.raw() ^ 1);
    script.deliver(&asked, &forged.encode());
    forged.origin = NtpTimestamp::MISSING;
    script.deliver(&asked, &forged.encode());
    let mut denial = refusal(*b"DENY");
    denial.origin = NtpTimestamp::from_raw(77);
    script.deliver(&asked, &denial.encode());
    assert_eq!(script.events(), [Event::Rejected(Rejection::WrongOrigin); 3]);
    script.deliver_answer(&asked);
    assert_eq!(exchanges(&script.events()).len(), 1, "the true answer still counts");
}

#[test]
fn a_datagram_that_is_no_reply_leaves_the_request_open() {
    let mut script = acquainted();
    let mut asked = script.ask();
    script.stamp(&mut asked);
    let reply = script.answer(&asked).encode();
    let mut version_7 = reply;
    version_7[0] |= 0b00_111_000;
    let mut long = reply.to_vec();
    long.resize(PACKET_BYTES_MAX + 1, 0);
    for (bytes, reason) in [
        (&reply[..47], Rejection::Truncated),
        (&[][..], Rejection::Truncated),
        (&version_7[..], Rejection::Version),
        (&long[..], Rejection::TooLong),
        (&asked.bytes.clone()[..], Rejection::Mode),
    ] {
        script.deliver(&asked, bytes);
        assert_eq!(script.events(), rejected(reason));
    }
    for mode in [Mode::Reserved, Mode::SymmetricPassive, Mode::Broadcast, Mode::Control, Mode::Private] {
        let mut other = script.answer(&asked);
        other.mode = mode;
        script.deliver(&asked, &other.encode());
        assert_eq!(script.events(), rejected(Rejection::Mode), "{mode:?}");
    }
    script.deliver(&asked, &long[..PACKET_BYTES_MAX]);
    assert_eq!(exchanges(&script.events()).len(), 1, "what follows the header is not read");
}

#[test]
fn unusable_replies_are_rejected_with_their_reason() {
    let mut script = acquainted();
    let huge = Span::from_secs(3);
    let unsynchronised = script.round_with(|reply| reply.leap = LeapIndicator::Unsynchronised);
    assert_eq!(unsynchronised, rejected(Rejection::Unsynchronised));
    assert_eq!(script.round_with(|reply| reply.stratum = 16), rejected(Rejection::Stratum));
    assert_eq!(script.round_with(|reply| reply.stratum = 255), rejected(Rejection::Stratum));
    let no_receive = script.round_with(|reply| reply.receive = NtpTimestamp::MISSING);
    assert_eq!(no_receive, rejected(Rejection::TimestampMissing));
    let no_transmit = script.round_with(|reply| reply.transmit = NtpTimestamp::MISSING);
    assert_eq!(no_transmit, rejected(Rejection::TimestampMissing));
    let reversed = script.round_with(|reply| std::mem::swap(&mut reply.receive, &mut reply.transmit));
    assert_eq!(reversed, rejected(Rejection::ServerTimesReversed));
    let far = script.round_with(|reply| reply.root_delay = huge);
    assert_eq!(far, rejected(Rejection::RootDistance));
    assert_eq!(script.source.statistics().rejections().map(|(_, count)| count).sum::<u64>(), 7);
    assert_eq!(script.source.statistics().accepted, 1);
}

/// RFC 5905, section 6: the bits below the precision are random, in both times.
#[test]
fn times_reversed_by_no_more_than_the_precision_are_taken() {
    let mut script = acquainted();
    let before = exchanges(&script.round_with(|reply| reply.transmit = reply.receive))[0];
    assert_eq!(before.server_in, before.server_out);
    // A timestamp counts 2^-32 s, and the precision is 2^-23 s.
    let reversed = |script: &mut Script, by| {
        script.round_with(|reply| reply.transmit = NtpTimestamp::from_raw(reply.receive.raw() - by))
    };
    let reversal = Span::from_units(512 << 32);
    let taken = exchanges(&reversed(&mut script, 512))[0];
    assert_eq!(taken.server_in, taken.server_out);
    let receive = taken.server_in + reversal.halved();
    assert_eq!((receive - before.server_in).units() % (1 << 32), 0, "in the middle of two times");
    assert_eq!(taken.server.root_distance, before.server.root_distance + Bound::of(reversal));
    assert_eq!(reversed(&mut script, 513), rejected(Rejection::ServerTimesReversed));
}

/// Exactly the rejections that end a request make the next one due by the poll and not by the timeout of a reply.
#[test]
fn a_reason_that_ends_a_request_says_so() {
    let mut script = acquainted();
    let mut asked = script.ask();
    script.stamp(&mut asked);
    let waits_until = script.source.poll_timeout();
    script.deliver(&asked, b"short");
    let mut wrong = script.answer(&asked);
    wrong.origin = NtpTimestamp::from_raw(7);
    script.deliver(&asked, &wrong.encode());
    for event in script.events() {
        assert!(matches!(event, Event::Rejected(reason) if !reason.ends_request()), "{event:?}");
    }
    assert_eq!(script.source.poll_timeout(), waits_until);
    script.server.stratum = 16;
    script.deliver_answer(&asked);
    assert!(matches!(script.events()[..], [Event::Rejected(reason)] if reason.ends_request()));
    assert!(script.source.poll_timeout() > waits_until);
}

#[test]
fn each_part_of_the_root_distance_counts() {
    for change in [
        (|reply| reply.root_delay = Span::from_millis(3001)) as fn(&mut ffclock_wire::Packet),
        |reply| reply.root_dispersion = Bound::of(Span::from_millis(1500)),
        |reply| reply.precision = LogSeconds::from_exponent(1),
        |reply| reply.precision = LogSeconds::from_exponent(127),
    ] {
        assert_eq!(acquainted().round_with(change), rejected(Rejection::RootDistance));
    }
    let within = acquainted().round_with(|reply| reply.root_delay = Span::from_millis(2900));
    assert_eq!(exchanges(&within).len(), 1);
}

/// RFC 5905, appendix A.5.5.3 (fit): a server that follows us makes a loop.
#[test]
fn a_server_that_follows_this_host_gives_no_time() {
    let mut script = acquainted();
    script.source.set_own_references(vec![0xc633_6407, 0xc000_0201]);
    assert_eq!(script.round_with(|_| {}), rejected(Rejection::Loop));
    assert_eq!(exchanges(&script.round_with(|reply| reply.reference_id = 0xc000_0202)).len(), 1, "it follows another");
    assert_eq!(exchanges(&script.round_with(|reply| reply.stratum = 1)).len(), 1, "it names the kind of its reference");
    assert_eq!(script.source.statistics().rejected(Rejection::Loop), 1);
    for _ in 0..script.source.config().unreachable_after {
        script.round_with(|_| {});
    }
    assert_eq!(script.source.reachability(), Reachability::Unreachable, "it is no source");
}

#[test]
fn the_limits_of_stratum_and_hold_are_inside() {
    let mut script = acquainted();
    for stratum in [1, 15] {
        assert_eq!(exchanges(&script.round_with(|reply| reply.stratum = stratum)).len(), 1);
    }
    assert_eq!(exchanges(&script.round_with(|reply| reply.transmit = reply.receive)).len(), 1);
}

#[test]
fn a_reply_that_cannot_be_used_closes_its_request() {
    let mut script = acquainted();
    let mut asked = script.ask();
    script.stamp(&mut asked);
    let mut bad = script.answer(&asked);
    bad.leap = LeapIndicator::Unsynchronised;
    script.deliver(&asked, &bad.encode());
    script.deliver_answer(&asked);
    let expected = [Event::Rejected(Rejection::Unsynchronised), Event::Rejected(Rejection::Duplicate)];
    assert_eq!(script.events(), expected);
    assert_eq!(script.source.poll_timeout() - asked.at, Span::from_secs(16), "no reply is awaited");
}

#[test]
fn the_stamp_may_come_after_the_reply() {
    let mut script = acquainted();
    let mut asked = script.ask();
    script.deliver_answer(&asked);
    assert_eq!(script.events(), []);
    script.deliver_answer(&asked);
    assert_eq!(script.events(), rejected(Rejection::Duplicate));
    script.stamp(&mut asked);
    let [exchange] = exchanges(&script.events())[..] else { panic!("no exchange") };
    assert_eq!(exchange.sent, stamp_at(asked.at));
}

#[test]
fn without_a_stamp_there_is_no_exchange() {
    let mut script = acquainted();
    let mut asked = script.ask();
    script.deliver_answer(&asked);
    assert!(script.reach_deadline().is_none());
    assert_eq!(script.events(), rejected(Rejection::StampMissing));
    assert_eq!(script.now - asked.at, Span::from_secs(2));
    script.stamp(&mut asked);
    assert_eq!(script.events(), [], "too late is never");
    assert_eq!(script.source.reachability(), Reachability::Reachable, "the server did answer");
}

#[test]
fn a_stamp_never_lands_in_another_exchange() {
    let mut script = Script::steady();
    let mut first = script.ask();
    script.reach_deadline();
    let second = script.ask();
    script.stamp(&mut first);
    script.deliver_answer(&second);
    assert!(exchanges(&script.events()).is_empty());
}

#[test]
fn a_reply_stamped_before_its_request_is_not_believed() {
    let mut script = acquainted();
    let mut asked = script.ask();
    script.deliver_answer(&asked);
    script.source.handle_sent(asked.ticket(), stamp_at(script.now));
    assert_eq!(script.events(), rejected(Rejection::StampsReversed));
}

#[test]
fn rate_slows_down_until_another_poll_is_configured() {
    let mut script = Script::begin();
    script.server = refusal(*b"RATE");
    let mut last = script.round().at;
    assert_eq!(script.events(), [Event::Kissed(KissCode::RATE)]);
    for poll in [32, 64, 128, 256, 512, 1024, 1024] {
        assert_eq!(script.source.poll_interval(), Span::from_secs(poll));
        let at = script.round().at;
        assert_eq!(at - last, Span::from_secs(poll), "the burst is over too");
        last = at;
    }
    script.server = healthy();
    let now = script.now;
    script.source.retarget(now);
    script.round();
    assert_eq!(script.round().at - now, Span::from_secs(1024), "another address may be the same server");
    script.source.reconfigure(SourceConfig { burst_count: 3, ..SourceConfig::default() });
    assert_eq!(script.source.poll_interval(), Span::from_secs(1024), "the poll is not new");
    script.source.reconfigure(SourceConfig { poll: Span::from_secs(20), ..SourceConfig::default() });
    assert_eq!(script.source.poll_interval(), Span::from_secs(20));
    assert_eq!(script.source.statistics().kissed, 8);
}

/// The range of the tests of chosen polls: 16 s to 512 s.
fn adaptive() -> Script {
    let mut script =
        Script::with(SourceConfig { burst_count: 0, poll_max: Span::from_secs(512), ..Default::default() });
    script.round();
    script.events();
    script
}

#[test]
fn a_chosen_poll_counts_from_the_last_request_and_keeps_its_range() {
    let mut script = adaptive();
    let first = script.now;
    for (wanted, chosen) in [(100, 100), (110, 100), (90, 90), (1, 16), (19, 16), (20, 20), (500, 500), (512, 512)] {
        script.source.choose_poll(Some(Span::from_secs(wanted)));
        assert_eq!(script.source.poll_interval(), Span::from_secs(chosen), "{wanted} s");
    }
    script.source.choose_poll(Some(Span::from_secs(64)));
    assert!((script.round().at - first - Span::from_secs(64)).abs() < Span::from_millis(1));
    script.source.retarget(script.now);
    script.round();
    assert_eq!(script.source.poll_interval(), Span::from_secs(64), "another address is no other choice");
    script.source.choose_poll(None);
    assert_eq!(script.source.poll_interval(), Span::from_secs(16), "as configured");
}

/// RFC 5905, section 7.4: what RATE said in one conversation holds in another one with the same server.
#[test]
fn a_slowdown_of_another_conversation_is_heeded() {
    let mut script = Script::begin();
    assert_eq!(script.source.slowed_to(), None);
    let poll = script.source.poll_interval();
    script.source.heed_slowdown(poll + poll);
    assert_eq!((script.source.poll_interval(), script.source.is_slowed()), (poll + poll, true));
    script.source.heed_slowdown(poll);
    assert_eq!(script.source.slowed_to(), Some(poll + poll), "a shorter one changes nothing");
    script.round();
    assert!(script.source.poll_timeout() - script.now >= poll, "and there is no burst");
}

/// RFC 5905, section 7.4: RATE asks for a slower poll, whatever the poll is chosen by.
#[test]
fn rate_is_obeyed_whatever_poll_is_chosen() {
    let mut script = adaptive();
    script.source.choose_poll(Some(Span::from_secs(64)));
    script.server = refusal(*b"RATE");
    let refused = script.round().at;
    assert_eq!(script.events(), [Event::Kissed(KissCode::RATE)]);
    assert!(script.source.is_slowed());
    for wanted in [16, 64, 100] {
        script.source.choose_poll(Some(Span::from_secs(wanted)));
        assert_eq!(script.source.poll_interval(), Span::from_secs(128));
    }
    script.server = healthy();
    assert_eq!(script.round().at - refused, Span::from_secs(128), "a failure is no reason to ask sooner");
    script.source.choose_poll(Some(Span::from_secs(256)));
    assert_eq!((script.source.poll_interval(), script.source.is_slowed()), (Span::from_secs(256), false));
    let range = SourceConfig { poll_min: Span::from_secs(32), ..SourceConfig::default() };
    script.source.reconfigure(range);
    script.source.choose_poll(Some(Span::from_secs(1)));
    assert_eq!(script.source.poll_interval(), Span::from_secs(32), "another range lifts it");
}

#[test]
fn a_lost_request_of_a_long_poll_is_repeated_soon_and_a_dead_server_is_asked_least() {
    let mut script = adaptive();
    script.source.choose_poll(Some(Span::from_secs(256)));
    let asked = script.ask().at;
    let mut last = asked;
    for _ in 0..7 {
        let again = script.ask().at;
        assert_eq!(again - last, Span::from_secs(16));
        last = again;
    }
    assert!(script.reach_deadline().is_none());
    assert_eq!(script.events().last(), Some(&Event::Unreachable));
    assert_eq!(script.ask().at - last, Span::from_secs(512));
    let events = script.round_with(|_| {});
    assert!(events.contains(&Event::Reachable), "{events:?}");
    assert_eq!(script.source.poll_interval(), Span::from_secs(256), "the chosen poll again");
}

#[test]
fn several_servers_are_asked_in_turn() {
    let of = 3;
    let mut scripts: Vec<Script> = (0..of).map(|_| Script::begin()).collect();
    for (number, script) in scripts.iter_mut().enumerate() {
        script.source.set_place(PollPlace::new(number as u32, of));
        (0..14).for_each(|_| _ = script.round());
    }
    let mut times: Vec<Vec<f64>> = Vec::new();
    for script in &mut scripts {
        let asked = (0..3).map(|_| script.round().at);
        times.push(asked.map(|at| at.since_origin().as_seconds()).collect());
    }
    assert!(times.iter().flat_map(|times| times.windows(2)).all(|pair| (pair[1] - pair[0] - 16.0).abs() < 1e-3));
    let mut places: Vec<f64> = times.iter().map(|times| times[0].rem_euclid(16.0)).collect();
    places.sort_by(f64::total_cmp);
    for (one, other, apart) in [(0, 1, 5.3), (1, 2, 5.3)] {
        assert!((places[other] - places[one] - apart).abs() < 1.4, "{places:?}");
    }
}

#[test]
fn denial_stops_everything_until_another_target() {
    for code in [KissCode::DENY, KissCode::RSTR] {
        let mut script = acquainted();
        script.server = refusal(code.bytes());
        script.round();
        assert_eq!(script.events(), [Event::Kissed(code), Event::Unreachable]);
        assert_eq!(script.source.reachability(), Reachability::Denied);
        for _ in 0..3 {
            assert!(!script.source.take_resolve_wish());
            let before = script.now;
            assert!(script.reach_deadline().is_none(), "not one packet more");
            assert_eq!(script.now - before, Span::from_secs(3600));
            assert!(script.source.take_resolve_wish());
        }
        script.server = healthy();
        script.source.retarget(script.now);
        assert_eq!(script.source.reachability(), Reachability::Untried);
        let again = script.now;
        assert_eq!(script.round().at, again);
        assert_eq!(script.events()[0], Event::Reachable);
        assert_eq!(script.source.statistics().sent, 3);
    }
}

#[test]
fn other_kisses_are_reported_and_change_nothing() {
    let mut script = acquainted();
    script.server = refusal(*b"INIT");
    let asked = script.round();
    assert_eq!(script.events(), [Event::Kissed(KissCode::from_bytes(*b"INIT"))]);
    script.server = healthy();
    assert_eq!(script.round().at - asked.at, Span::from_secs(16));
    assert_eq!(exchanges(&script.events()).len(), 1);
}

#[test]
fn silence_makes_unreachable_and_an_answer_brings_a_short_burst() {
    let mut script = acquainted();
    for _ in 0..8 {
        script.ask();
    }
    assert_eq!(script.events(), [Event::Lost; 7]);
    assert!(!script.source.take_resolve_wish());
    assert!(script.reach_deadline().is_none());
    assert_eq!(script.events(), [Event::Lost, Event::Unreachable]);
    assert!(script.source.take_resolve_wish());
    assert!(!script.source.take_resolve_wish(), "a wish is taken once");
    for _ in 0..9 {
        script.ask();
    }
    assert_eq!(script.events(), [Event::Lost; 8], "unreachable is reported once");
    assert!(script.source.take_resolve_wish(), "but the wish returns");
    script.reach_deadline();
    script.events();

    let times: Vec<_> = (0..6).map(|_| script.round().at).collect();
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps[..4], [Span::from_secs(2); 4]);
    assert_eq!(gaps[4], Span::from_secs(16));
    let events = script.events();
    assert_eq!(events[0], Event::Reachable);
    assert_eq!(exchanges(&events).len(), 6);
}

#[test]
fn answers_without_use_make_unreachable_too() {
    let mut script = acquainted();
    script.server.leap = LeapIndicator::Unsynchronised;
    for _ in 0..8 {
        script.round();
    }
    assert_eq!(script.events().last(), Some(&Event::Unreachable));
    assert_eq!(script.source.reachability(), Reachability::Unreachable);
}

#[test]
fn forged_packets_do_not_keep_a_dead_server_alive() {
    let mut script = acquainted();
    for _ in 0..9 {
        let asked = script.ask();
        let mut forged = script.answer(&asked);
        forged.origin = NtpTimestamp::from_raw(1);
        script.deliver(&asked, &forged.encode());
    }
    assert!(script.events().contains(&Event::Unreachable));
}

#[test]
fn another_address_restarts_and_keeps_the_counts() {
    let mut script = Script::begin();
    script.round();
    let mut open = script.ask();
    script.events();
    script.source.retarget(script.now);
    assert_eq!(script.source.reachability(), Reachability::Untried);
    assert_eq!(script.source.poll_timeout(), script.now);
    script.stamp(&mut open);
    script.deliver_answer(&open);
    assert_eq!(script.events(), rejected(Rejection::WrongOrigin), "an answer of the old address belongs to no request");
    let times: Vec<_> = (0..9).map(|_| script.round().at).collect();
    assert_eq!(times[7] - times[0], Span::from_secs(14), "a whole burst");
    assert_eq!(times[8] - times[7], Span::from_secs(16));
    assert_eq!(script.source.statistics().sent, 11);
    assert_eq!(script.source.statistics().accepted, 10);
}

#[test]
fn another_poll_counts_from_the_last_request() {
    let mut script = acquainted();
    let asked = script.round();
    let reconfigured = |poll| SourceConfig { poll: Span::from_secs(poll), ..SourceConfig::default() };
    for poll in [64, 4] {
        script.source.reconfigure(reconfigured(poll));
        assert_eq!(script.source.poll_timeout() - asked.at, Span::from_secs(poll));
    }
    assert_eq!(script.round().at - asked.at, Span::from_secs(4));
    assert_eq!(script.source.reachability(), Reachability::Reachable);
    assert_eq!(exchanges(&script.events()).len(), 2);
}

#[test]
fn a_leap_second_is_announced_and_its_seconds_are_left_out() {
    let mut script = Script::with(SourceConfig { poll: Span::from_secs(1), burst_count: 0, ..SourceConfig::default() });
    // 2026-12-31 23:59:50 and the midnight after it.
    let midnight = 1_798_761_600;
    script.server_begin = Moment::from_origin(Span::from_secs(midnight - 11));
    script.server.leap = LeapIndicator::Insert;
    let leap = LeapAnnouncement { utc_second: midnight, change: 1 };
    let mut seconds_left_out = 0;
    script.round();
    assert_eq!(script.events()[..2], [Event::Reachable, Event::LeapAnnounced(leap)]);
    script.source.set_leaps(LeapTable::with(leap));
    let mut exchanges_seen = Vec::new();
    for second in -9..10 {
        if second == 0 {
            // The inserted second: the server's clock steps back and shows 23:59:59 again.
            script.server_begin = script.server_begin - Span::from_secs(1);
        }
        script.round();
        let events = script.events();
        seconds_left_out += events.iter().filter(|&&event| event == Event::Rejected(Rejection::NearLeap)).count();
        exchanges_seen.extend(exchanges(&events));
    }
    assert_eq!(seconds_left_out, 5, "23:59:58 to 00:00:01, one of them twice");
    assert_eq!(exchanges_seen.len(), 14);
    for pair in exchanges_seen.windows(2) {
        let gap = pair[1].server_in - pair[0].server_in;
        let expected = if gap > Span::from_secs(2) { Span::from_secs(6) } else { Span::from_secs(1) };
        assert!((gap - expected).abs() < Span::from_nanos(1), "TAI runs on through the leap: {gap:?}");
    }
    assert_eq!(script.source.reachability(), Reachability::Reachable);
}

#[test]
fn a_leap_second_that_only_we_know_of_is_left_out_too() {
    let mut script = acquainted();
    let now = script.server_time(script.now).whole_seconds();
    script.source.set_leaps(LeapTable::with(LeapAnnouncement { utc_second: now + 16, change: 1 }));
    script.round();
    assert_eq!(script.events(), rejected(Rejection::NearLeap));
}

#[test]
fn an_announcement_may_be_withdrawn() {
    let mut script = acquainted();
    script.server.leap = LeapIndicator::Delete;
    script.round();
    let leap = LeapAnnouncement { utc_second: 1_796_083_200, change: -1 }; // 2026-12-01
    assert_eq!(script.events()[0], Event::LeapAnnounced(leap));
    script.server.leap = LeapIndicator::None;
    script.round();
    assert_eq!(script.events()[0], Event::LeapWithdrawn(leap));
}

#[test]
fn one_wild_answer_does_not_shift_the_era() {
    let mut script = acquainted();
    let honest = script.server_begin;
    script.server_begin = honest + Span::from_secs(60 * 31_556_952);
    script.round();
    script.server_begin = honest;
    let asked = script.round();
    let seen = exchanges(&script.events());
    assert_eq!(seen.len(), 2, "whether a server is right is not judged here");
    assert!((seen[1].server_in - tai(&script, asked.at + WAY)).abs() < Span::from_nanos(1));
}

#[test]
fn the_change_of_the_era_has_no_effect() {
    let mut script = Script::steady();
    // 2036-02-07 06:28:00 UTC, 16 s before the seconds of the packets begin again at zero.
    script.server_begin = Moment::from_origin(Span::from_secs(2_085_978_480));
    let times: Vec<_> = (0..4).map(|_| script.round().at).collect();
    let seen = exchanges(&script.events());
    for (exchange, at) in seen.iter().zip(times) {
        assert!((exchange.server_in - tai(&script, at + WAY)).abs() < Span::from_nanos(1));
    }
    assert_eq!(seen.len(), 4);
}

#[test]
fn a_caller_that_never_fetches_events_loses_them_and_sees_the_count() {
    let mut script = Script::steady();
    for _ in 0..20 {
        let asked = script.round();
        script.deliver_answer(&asked);
    }
    let events = script.events();
    assert_eq!(events.len(), 32);
    assert_eq!(exchanges(&events).len(), 20);
    assert_eq!(script.source.statistics().events_dropped, 41 - 32);
}
