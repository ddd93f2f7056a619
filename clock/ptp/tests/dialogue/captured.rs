//! Messages of ptp4l, as it sent them (`tests/data`): we read them as it means them, and write the same octets.

use crate::script::{observations, stamp_at};
use ffclock_ptp::*;
use ffclock_units::{Direction, Moment, Mono, Period, Span};

const CAPTURED: &str = include_str!("../data/ptp4l-3.1.1.txt");

/// The lines of a section: from the master or not, octets.
fn section(name: &str) -> Vec<(bool, Vec<u8>)> {
    let octets = |text: &str| -> Vec<u8> {
        let digits: Vec<_> = text.chars().map(|digit| digit.to_digit(16).expect("hexadecimal") as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    };
    let heading = format!("[{name}]");
    let lines = CAPTURED.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.is_empty());
    lines
        .map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            (words[0] == "in", octets(words[2]))
        })
        .collect()
}

fn decoded(octets: &[u8]) -> PtpMessage {
    PtpMessage::decode(octets).expect("ptp4l sends messages").0
}

fn config() -> FollowerConfig {
    let config = FollowerConfig::of(Period::from_hertz(1e9).expect("a period"));
    FollowerConfig { arbitrary: ArbitraryTimescale::Utc, grant_seconds: 60, ..config }
}

/// A follower with the identity that ptp4l's follower had, and the master's messages.
struct Replay {
    follower: Follower,
    now: Moment<Mono>,
    lines: Vec<(bool, Vec<u8>)>,
}

impl Replay {
    fn of(name: &str, config: FollowerConfig) -> Self {
        let (now, lines) = (Moment::from_origin(Span::from_secs(1)), section(name));
        let (_, ours) = lines.iter().find(|(is_in, _)| !is_in).expect("the follower says something");
        Replay { follower: Follower::new(config, decoded(ours).source, now), now, lines }
    }

    /// Hands in the messages of the master, a tenth of a second apart, until the follower of ptp4l says something.
    fn until_ours(&mut self) -> (Vec<u8>, Vec<PtpEvent>) {
        let mut events = Vec::new();
        while !self.lines.is_empty() {
            let (is_in, octets) = self.lines.remove(0);
            if !is_in {
                return (octets, events);
            }
            self.step(Span::from_millis(100));
            self.follower.handle_message(&octets, stamp_at(self.now), self.now);
            events.extend(std::iter::from_fn(|| self.follower.poll_event()));
        }
        (Vec::new(), events)
    }

    fn step(&mut self, span: Span) {
        self.now = self.now + span;
        self.follower.handle_timeout(self.now, 0);
    }
}

/// IEEE 1588-2019, 13.3 and what follows it in clause 13: the formats of messages, as ptp4l writes them.
#[test]
fn every_message_is_read_and_written_with_the_same_octets() {
    let sections = ["end-to-end", "unicast", "peer-to-peer"].map(section);
    let messages: Vec<_> = sections.iter().flatten().map(|(_, octets)| octets).collect();
    assert!(messages.len() > 35, "{}", messages.len());
    for octets in messages {
        let (message, tlvs) = PtpMessage::decode(octets).expect("a message");
        if tlvs.clone().next().is_none() {
            // ptp4l pads some messages; its Follow_Up and Delay_Resp are as long as they say.
            assert_eq!(message.encode().as_slice(), octets, "{message:?}");
        }
        assert!(tlvs.flatten().all(|tlv| UnicastWord::read(&tlv).is_some()));
    }
}

/// IEEE 1588-2019, 7.6.2.6: the accuracy that ptp4l announces by default is "unknown".
#[test]
fn its_announcement_makes_no_claim() {
    let (_, octets) = &section("end-to-end")[0];
    let PtpBody::Announce(announcement) = decoded(octets).body else { panic!("not an Announce") };
    assert_eq!(announcement.quality.class, ClockClass::DEFAULT);
    assert_eq!(announcement.quality.accuracy, ClockAccuracy::UNKNOWN);
    assert_eq!(announcement.quality.variance, ScaledVariance::UNKNOWN);
    assert_eq!((announcement.priority_1, announcement.priority_2, announcement.utc_offset), (128, 128, 37));
    assert_eq!(announcement.grandmaster.to_string(), "b268b8.fffe.d92b00");
    assert_eq!(announcement.time_source, TimeSource::OSCILLATOR);
    assert!(!announcement.is_tai(), "software stamps: the system clock");
}

/// IEEE 1588-2019, 11.2 and 11.3, as ptp4l does them.
#[test]
fn a_multicast_dialogue_gives_observations_of_both_directions() {
    let mut replay = Replay::of("end-to-end", config());
    let (request, events) = replay.until_ours();
    let chosen = events.iter().filter(|event| matches!(event, PtpEvent::MasterChosen(_))).count();
    assert_eq!((chosen, replay.follower.master().map(|master| master.port.port)), (1, Some(1)));
    let incoming = observations(&events);
    assert_eq!(incoming.len(), 3, "of five Syncs, two came before the master was chosen: {events:?}");
    // 6b0392e5 s and 2efb48b4 ns UTC, and 37 s to TAI.
    let last = incoming.last().expect("a Sync").theirs.since_origin();
    assert_eq!(last, Span::from_secs(0x6b03_92e5 + 37) + Span::from_nanos(0x2efb_48b4));
    replay.step(Span::from_millis(1));
    let ours = std::iter::from_fn(|| replay.follower.poll_transmit()).next().expect("the request is due");
    assert_eq!(ours.octets.as_slice(), request, "the same octets as ptp4l");
    replay.follower.handle_sent(ours.ticket.expect("an event"), stamp_at(replay.now));
    let (_, events) = replay.until_ours();
    assert_eq!(observations(&events)[0].direction, Direction::Outgoing);
    let arrived = observations(&events)[0].theirs.since_origin();
    assert_eq!(arrived, Span::from_secs(0x6b03_92e6 + 37) + Span::from_nanos(0x214a_5de3));
}

/// IEEE 1588-2019, 16.1.4: requests and grants, as ptp4l makes them.
#[test]
fn a_unicast_dialogue_asks_in_the_same_words() {
    let mut replay =
        Replay::of("unicast", FollowerConfig { delivery: Delivery::Unicast(NetworkAddress([1; 16])), ..config() });
    for services in [&[UnicastService::Announce][..], &[UnicastService::Sync, UnicastService::DelayResp]] {
        let (request, before) = replay.until_ours();
        replay.step(Span::from_millis(1));
        let ours = replay.follower.poll_transmit().expect("a request");
        assert_eq!(ours.octets.as_slice(), request, "the same octets as ptp4l, after {before:?}");
        assert_eq!((ours.audience, ours.channel), (Audience::One(NetworkAddress([1; 16])), Channel::General));
        let asked = PtpMessage::decode(ours.octets.as_slice()).expect("a message").1.flatten();
        let words: Vec<_> = asked.filter_map(|tlv| UnicastWord::read(&tlv)).collect();
        assert_eq!(words.len(), services.len());
    }
    let (request, events) = replay.until_ours();
    let granted = |service| events.iter().any(|event| matches!(event, PtpEvent::Granted(of, _) if *of == service));
    assert!(granted(UnicastService::Sync) && granted(UnicastService::DelayResp), "{events:?}");
    assert_eq!(observations(&events).len(), 1);
    replay.step(Span::from_millis(1));
    replay.step(Span::from_millis(1));
    let ours = replay.follower.poll_transmit().expect("a Delay_Req");
    assert_eq!(ours.octets.as_slice(), request);
    replay.follower.handle_sent(ours.ticket.expect("an event"), stamp_at(replay.now));
    assert_eq!(observations(&replay.until_ours().1).len(), 1, "the response came");
}

/// IEEE 1588-2019, 11.4 and annex E, as ptp4l does them.
#[test]
fn a_dialogue_over_ethernet_measures_the_link() {
    let mut replay = Replay::of("peer-to-peer", FollowerConfig { mechanism: DelayMechanism::PeerToPeer, ..config() });
    replay.step(Span::from_millis(1));
    let ours = replay.follower.poll_transmit().expect("the link is measured at once");
    assert_eq!(ours.audience, Audience::Neighbour);
    replay.follower.handle_sent(ours.ticket.expect("an event"), stamp_at(replay.now));
    let (request, _) = replay.until_ours();
    assert_eq!(ours.octets.as_slice(), request);
    let (_, events) = replay.until_ours();
    let PtpEvent::LinkDelay(delay) = events[0] else { panic!("{events:?}") };
    // From 25c66ce2 ns to 25c7a698 ns.
    assert_eq!(delay.turnaround.as_nanos(), 0x25c7_a698 - 0x25c6_6ce2);
    // Its own request comes next; ours is answered by how long we held it.
    let response = replay.follower.poll_transmit().expect("a response");
    let sent = stamp_at(replay.now + Span::from_micros(40));
    replay.follower.handle_sent(response.ticket.expect("an event"), sent);
    let follow_up = replay.follower.poll_transmit().expect("how long it took");
    let held = decoded(follow_up.octets.as_slice()).correction.as_span().expect("40 us");
    assert!((held - Span::from_micros(40)).abs() < Span::from_nanos(1), "{held:?}");
}
