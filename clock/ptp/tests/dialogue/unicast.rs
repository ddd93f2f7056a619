//! Unicast negotiation (IEEE 1588-2019, 16.1): a follower and a grandmaster of ours talk to each other.

use crate::script::{announcement, config, observations, own, port, stamp_at, tai};
use ffclock_ptp::*;
use ffclock_units::{Direction, Moment, Mono, Span};

const MASTER: NetworkAddress = NetworkAddress([1; 16]);
const CLIENT: NetworkAddress = NetworkAddress([2; 16]);
const WAY: Span = Span::from_micros(100);

/// A claim of class 6.
pub fn claim() -> GrandmasterClaim {
    let Announcement { utc_offset, quality, time_source, flags, .. } = announcement(port(1));
    GrandmasterClaim { quality, flags, utc_offset, time_source }
}

/// Both ends of one path, in virtual time.
struct Pair {
    follower: Follower,
    grandmaster: Grandmaster,
    now: Moment<Mono>,
    /// Whether the master's messages arrive.
    is_cut: bool,
    audiences: Vec<Audience>,
    seen: Vec<PtpEvent>,
}

impl Pair {
    fn new(follower: FollowerConfig, grandmaster: GrandmasterConfig) -> Self {
        let now = Moment::from_origin(Span::from_secs(1));
        let mut grandmaster = Grandmaster::new(grandmaster, port(1), now);
        grandmaster.set_claim(claim(), now);
        let follower = Follower::new(follower, own(), now);
        Pair { follower, grandmaster, now, is_cut: false, audiences: Vec::new(), seen: Vec::new() }
    }

    fn unicast(seconds: u32, grants_max: usize) -> Self {
        let follower = FollowerConfig { delivery: Delivery::Unicast(MASTER), grant_seconds: seconds, ..config() };
        Self::new(
            follower,
            GrandmasterConfig { group: GroupService::UnicastOnly, grants_max, ..GrandmasterConfig::default() },
        )
    }

    fn exchange_messages(&mut self) {
        loop {
            let ours = self.follower.poll_transmit();
            let theirs = self.grandmaster.poll_transmit();
            if ours.is_none() && theirs.is_none() {
                return;
            }
            if let Some(transmit) = ours {
                let arrived = tai(self.now) + WAY;
                transmit.ticket.into_iter().for_each(|ticket| self.follower.handle_sent(ticket, stamp_at(self.now)));
                let passage = match transmit.audience {
                    Audience::One(_) => Passage::to_us(CLIENT, MASTER),
                    Audience::Everyone | Audience::Neighbour => Passage::to_group(CLIENT),
                };
                self.grandmaster.handle_message(transmit.octets.as_slice(), (arrived, passage), self.now);
            }
            if let Some(transmit) = theirs {
                self.audiences.push(transmit.audience);
                let left = tai(self.now) + WAY + WAY;
                transmit.ticket.into_iter().for_each(|ticket| self.grandmaster.handle_sent(ticket, left));
                if !self.is_cut {
                    self.follower.handle_message(
                        transmit.octets.as_slice(),
                        stamp_at(self.now + WAY + WAY + WAY),
                        self.now,
                    );
                }
            }
        }
    }

    fn run(&mut self, span: Span) -> Vec<PtpEvent> {
        let end = self.now + span;
        loop {
            self.exchange_messages();
            self.seen.extend(std::iter::from_fn(|| self.grandmaster.poll_event()));
            self.seen.extend(std::iter::from_fn(|| self.follower.poll_event()));
            let deadlines = [self.follower.poll_timeout(), self.grandmaster.poll_timeout()];
            let Some(next) = deadlines.into_iter().flatten().min().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            self.follower.handle_timeout(self.now, 0x8000_0000_0000_0000);
            self.grandmaster.handle_timeout(self.now);
        }
        self.now = end;
        std::mem::take(&mut self.seen)
    }
}

fn rejections(events: &[PtpEvent]) -> Vec<PtpRejection> {
    events
        .iter()
        .filter_map(|event| if let PtpEvent::Rejected(reason) = event { Some(*reason) } else { None })
        .collect()
}

fn both_ways(events: &[PtpEvent]) -> (usize, usize) {
    let seen = observations(events);
    let incoming = seen.iter().filter(|seen| seen.direction == Direction::Incoming).count();
    (incoming, seen.len() - incoming)
}

/// IEEE 1588-2019, 11.2 and 11.3, between ours.
#[test]
fn our_follower_follows_our_grandmaster_by_multicast() {
    let mut pair = Pair::new(config(), GrandmasterConfig::default());
    let events = pair.run(Span::from_secs(60));
    let (incoming, outgoing) = both_ways(&events);
    assert!((57..=59).contains(&incoming) && (50..=60).contains(&outgoing), "{incoming} {outgoing}");
    // Its first Syncs come before it has chosen.
    assert!(rejections(&events).iter().all(|reason| *reason == PtpRejection::NotMaster), "{:?}", rejections(&events));
    for seen in observations(&events) {
        let ours = Span::from_nanos(i128::from(seen.ours.counter.raw()));
        let delay = tai(Moment::from_origin(ours)) - seen.theirs;
        let delay = if seen.direction == Direction::Incoming { delay } else { -delay };
        assert!((delay - WAY).abs() < Span::from_nanos(2), "{delay:?}");
    }
}

/// IEEE 1588-2019, 11.4, between ours.
#[test]
fn links_between_ours_are_measured_from_both_ends() {
    let follower = FollowerConfig { mechanism: DelayMechanism::PeerToPeer, ..config() };
    let mut pair = Pair::new(follower, GrandmasterConfig::default());
    let events = pair.run(Span::from_secs(10));
    let measured = |event: &PtpEvent| if let PtpEvent::LinkDelay(delay) = event { Some(*delay) } else { None };
    let delays: Vec<LinkDelay> = events.iter().filter_map(measured).collect();
    assert!((9..=11).contains(&delays.len()), "{delays:?}");
    // The neighbour is the grandmaster, and says when requests arrived.
    let stated: Vec<PtpObservation> = delays.iter().filter_map(LinkDelay::observation).collect();
    assert!(stated.len() >= 7, "all but those before it was chosen: {stated:?}");
    for seen in stated {
        let ours = tai(Moment::from_origin(Span::from_nanos(i128::from(seen.ours.counter.raw()))));
        assert!((seen.theirs - ours - WAY).abs() < Span::from_nanos(2), "{seen:?}");
    }
    assert_eq!(both_ways(&events).1, 0, "no Delay_Req");
}

/// IEEE 1588-2019, 16.1.1: what is granted comes, to one address, and is asked for again before it ends.
#[test]
fn grants_are_kept_alive() {
    let mut pair = Pair::unicast(20, 3);
    let events = pair.run(Span::from_secs(120));
    let (incoming, outgoing) = both_ways(&events);
    assert!((112..=120).contains(&incoming) && (100..=120).contains(&outgoing), "{incoming} {outgoing}");
    assert_eq!(rejections(&events), []);
    assert!(pair.audiences.iter().all(|audience| *audience == Audience::One(CLIENT)));
    let granted =
        |service| events.iter().filter(|event| matches!(event, PtpEvent::Granted(of, _) if *of == service)).count();
    // Both ends report each: every 15 s of 120 s, Announce from the beginning on, the others from the third second on.
    assert_eq!(UnicastService::ALL.map(granted), [18, 16, 16]);
}

/// IEEE 1588-2019, 16.1.1: a master that was started again has forgotten its grants. It is asked again as soon as it
/// counts as silent.
#[test]
fn a_master_that_forgets_is_asked_again() {
    let mut pair = Pair::unicast(300, 3);
    assert!(both_ways(&pair.run(Span::from_secs(20))).0 > 10);
    let config = GrandmasterConfig { group: GroupService::UnicastOnly, grants_max: 3, ..GrandmasterConfig::default() };
    pair.grandmaster = Grandmaster::new(config, port(1), pair.now);
    pair.grandmaster.set_claim(claim(), pair.now);
    let events = pair.run(Span::from_secs(25));
    assert!(events.iter().any(|event| matches!(event, PtpEvent::MasterLost(_))));
    assert!(both_ways(&events).0 > 5, "{events:?}");
}

/// IEEE 1588-2019, 16.1.4.2.5: with no place left the grandmaster grants no time, which refuses, and the client says
/// so.
#[test]
fn a_grant_beyond_the_last_place_is_refused() {
    let mut pair = Pair::unicast(20, 2);
    let events = pair.run(Span::from_secs(10));
    assert!(events.contains(&PtpEvent::Denied(UnicastService::DelayResp)));
    assert_eq!(rejections(&events), [PtpRejection::TooManyClients]);
    assert_eq!(pair.grandmaster.grants(), 2);
    let (incoming, outgoing) = both_ways(&events);
    assert!(incoming > 5 && outgoing == 0, "Syncs come, and no delay is asked for: {incoming} {outgoing}");
}

/// No clause: a request without an answer is repeated after 1 s, and then after twice the time of the last, up to 64 s.
#[test]
fn an_unanswered_request_is_repeated_more_and_more_seldom() {
    let mut pair = Pair::unicast(20, 3);
    pair.is_cut = true;
    let events = pair.run(Span::from_secs(126));
    let unanswered = events.iter().filter(|event| **event == PtpEvent::Unanswered(UnicastService::Announce)).count();
    assert_eq!(unanswered, 6, "after 1, 2, 4, 8, 16, 32 s and no more before 127 s");
}

/// IEEE 1588-2019, 16.1.4.2.5: grants end with their time when the client has gone.
#[test]
fn grants_of_a_client_that_is_gone_end() {
    let mut pair = Pair::unicast(20, 3);
    pair.run(Span::from_secs(5));
    assert_eq!(pair.grandmaster.grants(), 3);
    pair.is_cut = true;
    let later = pair.now + Span::from_secs(21);
    pair.grandmaster.handle_timeout(later);
    assert_eq!(pair.grandmaster.grants(), 0);
}

/// IEEE 1588-2019, 16.1.4.3 and 16.1.4.4: a client that cancels is answered, and gets no more.
#[test]
fn a_cancellation_is_acknowledged() {
    let mut pair = Pair::unicast(20, 3);
    pair.run(Span::from_secs(5));
    let cancel = crate::grandmaster::signal(own(), &[0, 6, 0, 2, 0xb0, 0]);
    pair.grandmaster.handle_message(&cancel, (tai(pair.now), Passage::to_us(CLIENT, MASTER)), pair.now);
    assert_eq!(pair.grandmaster.grants(), 2);
    let answer = std::iter::from_fn(|| pair.grandmaster.poll_transmit()).last().expect("an answer");
    let (_, tlvs) = PtpMessage::decode(answer.octets.as_slice()).expect("a message");
    let words: Vec<_> = tlvs.flatten().filter_map(|tlv| UnicastWord::read(&tlv)).collect();
    assert_eq!(words, [UnicastWord::AcknowledgeCancel(UnicastService::Announce)]);
}

/// IEEE 1588-2019, 16.1.4.3: who cancels from another address, or as another port, ends nothing.
#[test]
fn a_cancellation_by_another_changes_nothing() {
    let mut pair = Pair::unicast(20, 3);
    pair.run(Span::from_secs(5));
    for (source, from) in [(own(), NetworkAddress([3; 16])), (port(9), CLIENT)] {
        for service in [0xb0, 0x00, 0x90] {
            let cancel = crate::grandmaster::signal(source, &[0, 6, 0, 2, service, 0]);
            pair.grandmaster.handle_message(&cancel, (tai(pair.now), Passage::to_us(from, MASTER)), pair.now);
        }
    }
    assert_eq!(pair.grandmaster.grants(), 3);
    assert!(std::iter::from_fn(|| pair.grandmaster.poll_event()).next().is_none());
}

/// IEEE 1588-2019, 16.1.1: a client is a port at an address. Two at one address have their own grants; one address has
/// four at most, and one that comes again as another port finds a place.
#[test]
fn clients_at_one_address_have_grants_of_their_own() {
    let now = Moment::from_origin(Span::from_secs(1));
    let granted = |grants_max: usize, ports: &[u8]| {
        let config = GrandmasterConfig { grants_max, ..GrandmasterConfig::default() };
        let mut grandmaster = Grandmaster::new(config, port(1), now);
        grandmaster.set_claim(claim(), now);
        for number in ports {
            let ask = crate::grandmaster::signal(port(*number), &[0, 4, 0, 6, 0xb0, 1, 0, 0, 0, 60]);
            grandmaster.handle_message(&ask, (tai(now), Passage::to_us(CLIENT, MASTER)), now);
        }
        let refused = grandmaster.statistics().rejected(PtpRejection::TooManyClients);
        (grandmaster.grants(), refused)
    };
    assert_eq!(granted(512, &[3, 4, 3, 4]), (2, 0));
    assert_eq!(granted(512, &[3, 4, 5, 6, 7, 8, 9]), (4, 0));
    assert_eq!(granted(1, &[3, 4]), (1, 0));
}

/// IEEE 1588-2019, 16.1.4.2.4: a master may grant less than was asked for. What comes less often is not missed.
#[test]
fn an_interval_that_was_granted_is_what_is_waited_for() {
    let mut pair = Pair::unicast(300, 3);
    let begin = pair.now;
    pair.follower.handle_timeout(begin, 0);
    let hear = |pair: &mut Pair, bytes: &[u8]| pair.follower.handle_message(bytes, stamp_at(pair.now), pair.now);
    // Announce each 16 s, where each 2 s was asked for.
    hear(&mut pair, &crate::grandmaster::signal(port(1), &[0, 5, 0, 8, 0xb0, 4, 0, 0, 1, 0x2c, 0, 1]));
    for second in [0, 16, 32, 48] {
        pair.now = begin + Span::from_secs(second);
        pair.follower.handle_timeout(pair.now, 0);
        let announced = crate::script::message(port(1), 1, PtpBody::Announce(announcement(port(1))));
        hear(&mut pair, announced.encode().as_slice());
        let is_followed = pair.follower.master().is_some();
        assert_eq!(is_followed, second > 0, "{second}");
    }
    // Sync each 8 s, where each second was asked for.
    hear(&mut pair, &crate::grandmaster::signal(port(1), &[0, 5, 0, 8, 0x00, 3, 0, 0, 1, 0x2c, 0, 1]));
    let sync = crate::script::message(port(1), 1, PtpBody::Sync(crate::script::timestamp(pair.now)));
    hear(&mut pair, sync.encode().as_slice());
    assert_eq!(pair.follower.sync_interval(), Span::from_secs(8));
}

/// IEEE 1588-2019, 16.1.4.3 and 16.1.4.4: a master that cancels is answered, asked no more for delays, and left alone
/// for a minute; a grant that nothing asked for changes nothing.
#[test]
fn what_the_master_cancels_is_left() {
    let mut pair = Pair::unicast(300, 3);
    pair.run(Span::from_secs(10));
    let hear = |pair: &mut Pair, tail: &[u8]| {
        pair.follower.handle_message(&crate::grandmaster::signal(port(1), tail), stamp_at(pair.now), pair.now);
        std::iter::from_fn(|| pair.follower.poll_event()).collect::<Vec<_>>()
    };
    let grant = [0, 5, 0, 8, 0xb0, 1, 0, 0, 0, 60, 0, 1];
    assert_eq!(hear(&mut pair, &grant), [PtpEvent::Rejected(PtpRejection::NotAsked)]);
    let cancel = [0, 6, 0, 2, 0x90, 0];
    assert_eq!(hear(&mut pair, &cancel), [PtpEvent::Cancelled(UnicastService::DelayResp)]);
    let answer = pair.follower.poll_transmit().expect("an acknowledgement");
    assert_eq!(answer.octets.as_slice()[44..], [0, 7, 0, 2, 0x90, 0]);
    let quiet = pair.run(Span::from_secs(55));
    assert_eq!(both_ways(&quiet).1, 0);
    assert!(both_ways(&pair.run(Span::from_secs(20))).1 > 5, "after a minute it asks again");
}

/// IEEE 1588-2019, 16.1.4.2.4: ptp4l grants the interval that was asked for, and states its own in the messages (seen
/// with 3.1.1): a master that announces each 2 s is not lost because it says 0.5 s.
#[test]
fn what_was_granted_counts_and_not_what_a_message_says() {
    let mut pair = Pair::unicast(60, 3);
    let begin = pair.now;
    for second in [0, 2, 4, 6] {
        pair.now = begin + Span::from_secs(second);
        pair.follower.handle_timeout(pair.now, 0);
        let announced = crate::script::message(port(1), 1, PtpBody::Announce(announcement(port(1))));
        let announced = PtpMessage { log_interval: -1, ..announced };
        pair.follower.handle_message(announced.encode().as_slice(), stamp_at(pair.now), pair.now);
    }
    assert_eq!(pair.follower.master().map(|master| master.port), Some(port(1)));
}
