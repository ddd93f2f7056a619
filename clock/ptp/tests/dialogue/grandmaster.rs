//! A grandmaster: what it sends and when, what it answers, and when it is silent.

use crate::script::{announcement, message, own, port, rejected, tai};
use crate::unicast::claim;
use ffclock_ptp::*;
use ffclock_units::{Moment, Mono, Span};

const FROM: Passage = Passage::to_group(NetworkAddress([2; 16]));

/// A Signaling message to all ports, with these octets after it.
pub fn signal(source: PortIdentity, tail: &[u8]) -> Vec<u8> {
    let mut bytes = message(source, 1, PtpBody::Signaling(PortIdentity::ANY)).encode().as_slice().to_vec();
    bytes.extend(tail);
    let length = u16::try_from(bytes.len()).expect("short");
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

fn start() -> Moment<Mono> {
    Moment::from_origin(Span::from_secs(1))
}

fn serving() -> Grandmaster {
    let mut grandmaster = Grandmaster::new(GrandmasterConfig::default(), port(1), start());
    grandmaster.set_claim(claim(), start());
    grandmaster
}

fn sent(grandmaster: &mut Grandmaster) -> Vec<(PtpMessage, PtpTransmit)> {
    let decoded =
        |transmit: PtpTransmit| (PtpMessage::decode(transmit.octets.as_slice()).expect("a message").0, transmit);
    std::iter::from_fn(|| grandmaster.poll_transmit()).map(decoded).collect()
}

fn events(grandmaster: &mut Grandmaster) -> Vec<PtpEvent> {
    std::iter::from_fn(|| grandmaster.poll_event()).collect()
}

/// IEEE 1588-2019, 7.6.2.5: class 248 in a last Announce message. No clause has what follows: a grandmaster without a
/// time says nothing.
#[test]
fn without_a_time_it_is_silent() {
    let mut grandmaster = Grandmaster::new(GrandmasterConfig::default(), port(1), start());
    grandmaster.handle_timeout(start());
    assert_eq!((sent(&mut grandmaster).len(), grandmaster.poll_timeout()), (0, None));
    let request = message(own(), 1, PtpBody::DelayReq(PtpTimestamp::ZERO));
    grandmaster.handle_message(request.encode().as_slice(), (tai(start()), FROM), start());
    assert_eq!(events(&mut grandmaster), [PtpEvent::Rejected(PtpRejection::NotForUs)]);
    grandmaster.set_claim(claim(), start());
    grandmaster.handle_timeout(start());
    assert_eq!(sent(&mut grandmaster).len(), 2);
    grandmaster.set_claim(GrandmasterClaim::NONE, start());
    let last = sent(&mut grandmaster);
    let [(PtpMessage { body: PtpBody::Announce(announced), sequence: 1, .. }, _)] = &last[..] else {
        panic!("{last:?}")
    };
    let quality = announced.quality;
    assert_eq!((quality.class, quality.accuracy), (ClockClass::DEFAULT, ClockAccuracy::UNKNOWN));
    assert!(!announced.flags.has(PtpFlags::TIME_TRACEABLE) && !announced.is_tai());
    grandmaster.set_claim(GrandmasterClaim::NONE, start());
    grandmaster.handle_timeout(start() + Span::from_secs(10));
    assert_eq!(sent(&mut grandmaster).len(), 0, "once is enough");
}

/// IEEE 1588-2019, 9.5.8 to 9.5.10: Announce and Sync in their intervals; the Follow_Up says when the Sync left.
#[test]
fn announcements_and_syncs_come_in_their_intervals() {
    let mut grandmaster = serving();
    let mut counts = [0; 3];
    let mut now = start();
    while now < start() + Span::from_millis(9_500) {
        now = now.max(grandmaster.poll_timeout().expect("something is due"));
        grandmaster.handle_timeout(now);
        for (message, transmit) in sent(&mut grandmaster) {
            assert_eq!(transmit.audience, Audience::Everyone);
            match message.body {
                PtpBody::Announce(announced) => {
                    assert_eq!((message.sequence, message.log_interval), (counts[0], 1));
                    assert_eq!(announced, announcement(port(1)));
                    counts[0] += 1;
                }
                PtpBody::Sync(_) => {
                    assert_eq!((message.sequence, message.log_interval), (counts[1], 0));
                    assert!(message.flags.has(PtpFlags::TWO_STEP));
                    let left = tai(now) + Span::from_nanos(1) + Span::from_units(1 << 33);
                    grandmaster.handle_sent(transmit.ticket.expect("an event"), left);
                    let follow_up = sent(&mut grandmaster).remove(0).0;
                    let PtpBody::FollowUp(time) = follow_up.body else { panic!("{follow_up:?}") };
                    let said = time.since_origin().unwrap() + follow_up.correction.as_span().unwrap();
                    assert!((left.since_origin() - said).abs() < Span::from_units(1 << 20), "the fraction too");
                    assert_eq!(follow_up.sequence, message.sequence);
                    counts[1] += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(counts[..2], [6, 11]);
}

/// IEEE 1588-2019, 7.6.2.6: clockAccuracy is the error of the time that is stated, so a larger one is announced before
/// the next Sync, to all clocks and to those that negotiated; a smaller one has time.
#[test]
fn a_larger_error_is_announced_before_the_next_sync() {
    let mut grandmaster = serving();
    let ask = signal(own(), &[0, 4, 0, 6, 0x00, 0, 0, 0, 0, 60, 0, 4, 0, 6, 0xb0, 1, 0, 0, 0, 60]);
    grandmaster.handle_message(&ask, (tai(start()), FROM), start());
    grandmaster.handle_timeout(start());
    sent(&mut grandmaster);
    let mut kinds = |now: Moment<Mono>, accuracy| {
        let quality = ClockQuality { accuracy: ClockAccuracy(accuracy), ..claim().quality };
        grandmaster.set_claim(GrandmasterClaim { quality, ..claim() }, now);
        grandmaster.handle_timeout(now);
        sent(&mut grandmaster).into_iter().map(|(message, _)| message.body.kind()).collect::<Vec<_>>()
    };
    let second = start() + Span::from_secs(1);
    assert_eq!(kinds(second, 0x28), [0xb, 0, 0xb, 0], "Announce before the Sync that is due, to all and to one");
    assert_eq!(kinds(second + Span::from_millis(100), 0x29), [0xb, 0xb]);
    assert_eq!(kinds(second + Span::from_millis(200), 0x27), []);
    assert_eq!(kinds(second + Span::from_millis(300), 0x29), []);
    // After a silence, too, during which a Sync would have been due.
    let later = second + Span::from_millis(1_300);
    grandmaster.set_claim(GrandmasterClaim::NONE, later);
    sent(&mut grandmaster);
    grandmaster.set_claim(claim(), later);
    grandmaster.handle_timeout(later);
    let kinds: Vec<u8> = sent(&mut grandmaster).into_iter().map(|(message, _)| message.body.kind()).collect();
    assert_eq!(kinds, [0xb, 0]);
}

/// IEEE 1588-2019, 9.5.8 and 9.5.9: messages that were due while the host slept are not made up for, so that intervals
/// stay what they are.
#[test]
fn after_a_pause_there_is_one_message_of_each() {
    let mut grandmaster = serving();
    grandmaster.handle_timeout(start());
    sent(&mut grandmaster);
    let later = start() + Span::from_secs(1000);
    grandmaster.handle_timeout(later);
    assert_eq!(sent(&mut grandmaster).len(), 2);
    assert!(grandmaster.poll_timeout().is_some_and(|next| next > later));
}

/// IEEE 1588-2019, 11.3.2: the response has the number, the port and the correction of its request, and when it came.
#[test]
fn a_delay_request_is_answered() {
    let mut grandmaster = serving();
    let held = Correction::of(Span::from_micros(7));
    let request = PtpMessage { correction: held, ..message(own(), 77, PtpBody::DelayReq(PtpTimestamp::ZERO)) };
    let arrived = tai(start()) + Span::from_units(1 << 33);
    for (flags, audience) in [(PtpFlags::default(), Audience::Everyone), (PtpFlags::UNICAST, Audience::One(FROM.from))]
    {
        let request = PtpMessage { flags, ..request };
        grandmaster.handle_message(request.encode().as_slice(), (arrived, FROM), start());
        let (response, transmit) = sent(&mut grandmaster).remove(0);
        let PtpBody::DelayResp(time, requester) = response.body else { panic!("{response:?}") };
        assert_eq!((response.sequence, requester, transmit.audience), (77, own(), audience));
        assert_eq!(transmit.channel, Channel::General);
        let way_less = time.since_origin().unwrap() - response.correction.as_span().unwrap();
        let expected = arrived.since_origin() - Span::from_micros(7);
        assert!((way_less - expected).abs() < Span::from_units(1 << 20), "{way_less:?}");
    }
}

/// IEEE 1588-2019, 9.3.3: to a better master it yields, and serves again when that is gone.
#[test]
fn it_yields_to_a_better_master() {
    let mut grandmaster = serving();
    let hear = |grandmaster: &mut Grandmaster, now, priority_1| {
        let announced = Announcement { priority_1, ..announcement(port(9)) };
        let message = PtpMessage { log_interval: 1, ..message(port(9), 1, PtpBody::Announce(announced)) };
        grandmaster.handle_message(message.encode().as_slice(), (tai(now), FROM), now);
        events(grandmaster)
    };
    assert_eq!(hear(&mut grandmaster, start(), 200), []);
    assert_eq!(hear(&mut grandmaster, start(), 200), [], "a worse one changes nothing");
    assert!(matches!(hear(&mut grandmaster, start(), 1)[..], [PtpEvent::Yielded(_)]));
    grandmaster.handle_timeout(start());
    assert_eq!(sent(&mut grandmaster).len(), 0);
    grandmaster.handle_timeout(start() + Span::from_secs(6));
    assert_eq!(events(&mut grandmaster), [PtpEvent::Serving]);
    grandmaster.handle_timeout(start() + Span::from_secs(6));
    assert_eq!(sent(&mut grandmaster).len(), 2);
    assert!(hear(&mut grandmaster, start() + Span::from_secs(7), 1).is_empty(), "heard once");
}

/// IEEE 1588-2019, annexes C and D: by multicast masters speak to the group, and what is sent to this host alone may
/// come from any network. It silences no grandmaster; who asks this host alone is answered alone, from where it asked.
#[test]
fn what_is_sent_to_this_host_alone_silences_nothing() {
    let mut grandmaster = serving();
    let asked = Passage::to_us(FROM.from, NetworkAddress([8; 16]));
    let better = Announcement { priority_1: 1, ..announcement(port(9)) };
    for sequence in 1..4 {
        let message = message(port(9), sequence, PtpBody::Announce(better));
        grandmaster.handle_message(message.encode().as_slice(), (tai(start()), asked), start());
        assert_eq!(events(&mut grandmaster), rejected(PtpRejection::NotToGroup));
    }
    assert!(grandmaster.is_serving());
    let request = message(own(), 77, PtpBody::DelayReq(PtpTimestamp::ZERO));
    grandmaster.handle_message(request.encode().as_slice(), (tai(start()), asked), start());
    let ask = signal(own(), &[0, 4, 0, 6, 0x00, 0, 0, 0, 0, 60, 0, 4, 0, 6, 0xb0, 1, 0, 0, 0, 60]);
    grandmaster.handle_message(&ask, (tai(start()), asked), start());
    grandmaster.handle_timeout(start());
    let mut kinds = Vec::new();
    while let Some(transmit) = grandmaster.poll_transmit() {
        if transmit.audience != Audience::Everyone {
            assert_eq!((transmit.audience, transmit.from), (Audience::One(FROM.from), asked.to));
            kinds.push(transmit.octets.as_slice()[0] & 0xf);
            transmit.ticket.into_iter().for_each(|ticket| grandmaster.handle_sent(ticket, tai(start())));
        }
    }
    kinds.sort_unstable();
    assert_eq!(kinds, [0, 8, 9, 0xb, 0xc], "Sync, Follow_Up, Delay_Resp, Announce, Signaling");
}

/// IEEE 1588-2019, 9.3.2.5: what has come over 255 boundary clocks, or from a clock that is never a master, is no
/// better master.
#[test]
fn it_does_not_yield_to_what_qualifies_for_none() {
    let mut grandmaster = serving();
    let better = Announcement { priority_1: 1, ..announcement(port(9)) };
    let slave_only = ClockQuality { class: ClockClass(255), ..better.quality };
    for (announced, reason) in [
        (Announcement { steps_removed: 255, ..better }, PtpRejection::StepsRemoved),
        (Announcement { quality: slave_only, ..better }, PtpRejection::ClockClass),
    ] {
        for sequence in 1..4 {
            let message = message(port(9), sequence, PtpBody::Announce(announced));
            grandmaster.handle_message(message.encode().as_slice(), (tai(start()), FROM), start());
            assert_eq!(events(&mut grandmaster), rejected(reason));
        }
    }
    assert!(grandmaster.is_serving());
}

/// What two grandmasters on one network, which are alike, are worth at a time: it rises and falls as between two
/// measurements, of both in its own time.
fn sawtooth(second: f64, period: f64) -> GrandmasterClaim {
    let phase = (second / period).fract();
    let quality = ClockQuality {
        class: if phase > 0.9 { ClockClass::DEGRADED_FOLLOWER } else { ClockClass::PRIMARY },
        accuracy: ClockAccuracy(if phase > 0.7 { 0x27 } else { 0x26 }),
        variance: ScaledVariance(0x4f00 + (phase * 1000.0) as u16).coarse(),
    };
    GrandmasterClaim { quality, ..claim() }
}

/// IEEE 1588-2019, 9.3.3 and 9.3.4: of two grandmasters that hear each other the better one serves, and never none,
/// whatever happens to their clocks meanwhile; and which of them it is does not change with each of their measurements.
#[test]
fn of_two_grandmasters_that_are_alike_one_serves() {
    let mut both = [1, 2].map(|last| {
        let own = PortIdentity { clock: port(last).clock, port: 1 };
        Grandmaster::new(GrandmasterConfig::default(), own, start() + Span::from_millis(i64::from(last) * 700))
    });
    for step in 0..6000_i64 {
        let now = start() + Span::from_millis(step * 100);
        for (place, period) in [(0, 15.9), (1, 17.3)] {
            both[place].set_claim(sawtooth(step as f64 / 10.0, period), now);
            both[place].handle_timeout(now);
            for (_, transmit) in sent(&mut both[place]) {
                both[1 - place].handle_message(transmit.octets.as_slice(), (tai(now), FROM), now);
            }
        }
        // The last word of each is heard by now.
        let serving = both.iter().filter(|one| one.is_serving()).count();
        assert!(serving > 0, "none serves at step {step}");
        let is_change = |event: &PtpEvent| matches!(event, PtpEvent::Yielded(_) | PtpEvent::Serving);
        let changes = both.iter_mut().flat_map(events).filter(is_change).count();
        // Within the first minute each has come to claim what it is at its worst.
        assert!(step < 600 || (serving, changes) == (1, 0), "{serving} serve at step {step}, {changes} changes");
    }
}

/// IEEE 1588-2019, 11.4: a link is measured whatever the state of the port at its end, so a passive one answers
/// Pdelay_Req, and no Delay_Req.
#[test]
fn a_passive_port_answers_its_neighbour_alone() {
    let mut grandmaster = serving();
    let announced = Announcement { priority_1: 1, ..announcement(port(9)) };
    let better = PtpMessage { log_interval: 1, ..message(port(9), 1, PtpBody::Announce(announced)) };
    let mut hear = |message: PtpMessage| {
        grandmaster.handle_message(message.encode().as_slice(), (tai(start()), FROM), start());
        (events(&mut grandmaster), sent(&mut grandmaster))
    };
    hear(better);
    assert!(matches!(hear(better).0[..], [PtpEvent::Yielded(_)]));
    let (said, answers) = hear(message(port(3), 7, PtpBody::DelayReq(PtpTimestamp::ZERO)));
    assert_eq!((said, answers), (rejected(PtpRejection::NotForUs), vec![]));
    let (said, answers) = hear(message(port(3), 8, PtpBody::PdelayReq(PtpTimestamp::ZERO)));
    assert_eq!(said, []);
    let [(PtpMessage { body: PtpBody::PdelayResp(_, requester), sequence: 8, .. }, transmit)] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!((*requester, transmit.audience), (port(3), Audience::Neighbour));
}

/// IEEE 1588-2019, 9.3.3 and 16.1: a client has a grant of Sync messages when a better master comes. They wait, and so
/// does the caller's loop.
#[test]
fn what_is_due_waits_for_a_better_master_to_go() {
    let mut grandmaster = serving();
    let ask = signal(own(), &[0, 4, 0, 6, 0x00, 0, 0, 0, 0, 60]);
    grandmaster.handle_message(&ask, (tai(start()), FROM), start());
    sent(&mut grandmaster);
    let announced = Announcement { priority_1: 1, ..announcement(port(9)) };
    let better = PtpMessage { log_interval: 1, ..message(port(9), 1, PtpBody::Announce(announced)) };
    for _ in 0..2 {
        grandmaster.handle_message(better.encode().as_slice(), (tai(start()), FROM), start());
    }
    grandmaster.handle_timeout(start());
    let gone = start() + Span::from_secs(6);
    assert_eq!((sent(&mut grandmaster).len(), grandmaster.grants(), grandmaster.poll_timeout()), (0, 1, Some(gone)));
    grandmaster.handle_timeout(gone);
    let audiences: Vec<_> = sent(&mut grandmaster).into_iter().map(|(_, transmit)| transmit.audience).collect();
    assert_eq!(audiences, [Audience::Everyone, Audience::Everyone, Audience::One(FROM.from)]);
    assert!(grandmaster.poll_timeout() > Some(gone));
}

/// IEEE 1588-2019, 16.1.4.2.5: a grant for no time refuses. Requests for what cannot be: too often, for no time, of
/// messages that are not negotiated; and by more clients than there are places.
#[test]
fn impossible_requests_are_refused() {
    let mut grandmaster = serving();
    let ask = |grandmaster: &mut Grandmaster, from: u8, tail: &[u8]| {
        let bytes = signal(port(from), tail);
        grandmaster.handle_message(&bytes, (tai(start()), Passage::to_group(NetworkAddress([from; 16]))), start());
        let answers: Vec<_> = std::iter::from_fn(|| grandmaster.poll_transmit()).collect();
        assert!(answers.len() <= 1);
        let words = |transmit: &PtpTransmit| -> Vec<UnicastWord> {
            let (_, tlvs) = PtpMessage::decode(transmit.octets.as_slice()).expect("a message");
            tlvs.flatten().filter_map(|tlv| UnicastWord::read(&tlv)).collect()
        };
        answers.first().map(words).unwrap_or_default()
    };
    let refused = |service, log_interval| vec![UnicastWord::Grant(service, UnicastTerms { log_interval, seconds: 0 })];
    let too_often = [0, 4, 0, 6, 0x00, 0xf9, 0, 0, 0, 60];
    assert_eq!(ask(&mut grandmaster, 3, &too_often), refused(UnicastService::Sync, -7));
    assert_eq!(ask(&mut grandmaster, 3, &[0, 4, 0, 6, 0xb0, 1, 0, 0, 0, 0]), refused(UnicastService::Announce, 1));
    assert_eq!(ask(&mut grandmaster, 3, &[0, 4, 0, 6, 0x30, 1, 0, 0, 0, 60]), [], "Pdelay_Resp");
    // Sixteen words in one message: three are answered, and all fit into one message.
    let many: Vec<u8> = std::iter::repeat_n([0, 4, 0, 6, 0xb0, 1, 0, 0, 0, 60], 16).flatten().collect();
    assert_eq!(ask(&mut grandmaster, 3, &many).len(), 3);
    assert_eq!(grandmaster.grants(), 1, "one client, one service");
    for round in 0..2_000_u32 {
        let [_, _, a, b] = round.to_be_bytes();
        let mut address = NetworkAddress([7; 16]);
        address.0[..2].copy_from_slice(&[a, b]);
        let bytes = signal(port(3), &[0, 4, 0, 6, 0xb0, 1, 0, 0, 0, 60]);
        grandmaster.handle_message(&bytes, (tai(start()), Passage::to_group(address)), start());
        while grandmaster.poll_transmit().is_some() {}
    }
    assert_eq!(grandmaster.grants(), 512);
    assert!(grandmaster.statistics().rejected(PtpRejection::TooManyClients) == 2_000 - 511);
}

/// IEEE 1588-2019, 9.3.2.4.5: a flood of announcements does not keep a grandmaster from hearing a better one.
#[test]
fn a_hundred_thousand_senders_do_not_hide_a_better_master() {
    let mut grandmaster = serving();
    let announce = |grandmaster: &mut Grandmaster, source: PortIdentity, (priority_1, sequence): (u8, u16)| {
        let announced = Announcement { priority_1, ..announcement(source) };
        let message = PtpMessage { log_interval: 1, ..message(source, sequence, PtpBody::Announce(announced)) };
        grandmaster.handle_message(message.encode().as_slice(), (tai(start()), FROM), start());
    };
    let better = port(9);
    announce(&mut grandmaster, better, (1, 1));
    for number in (0..100_000_u32).rev() {
        let [a, b, c, d] = number.to_be_bytes();
        let source = PortIdentity { clock: ClockIdentity::from_mac([6, 0, a, b, c, d]), port: 1 };
        announce(&mut grandmaster, source, (0, 1));
    }
    assert_eq!(grandmaster.statistics().rejected(PtpRejection::Displaced), 100_000 - 15);
    assert_eq!(grandmaster.yielded_to(), None, "none was heard twice");
    announce(&mut grandmaster, better, (1, 2));
    assert_eq!(grandmaster.yielded_to().map(|master| master.port), Some(better));
}
