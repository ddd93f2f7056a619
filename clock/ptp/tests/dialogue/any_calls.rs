//! Properties under any bytes and any sequence of calls.

use crate::script::{config, message, own, port, stamp_at, timestamp};
use ffclock_ptp::*;
use ffclock_units::{Moment, Mono, Span};
use proptest::prelude::*;

/// One call that a caller might make.
#[derive(Clone, Debug)]
enum Call {
    /// Time passes [ms].
    Pass(u32),
    Noise(Vec<u8>),
    /// A message: kind, sender, sequence number, requester or target, place of one octet, its change.
    Message(u8, u8, u16, u8, usize, u8),
    /// The stamp of the oldest message that has none.
    Stamp,
    LoseStamp,
}

fn any_call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => (0u32..4000).prop_map(Call::Pass),
        1 => proptest::collection::vec(any::<u8>(), 0..120).prop_map(Call::Noise),
        12 => (0u8..10, 0u8..3, 0u16..6, 0u8..3, 0usize..64, prop_oneof![3 => Just(0u8), 1 => any::<u8>()])
            .prop_map(|(kind, from, sequence, to, place, change)| Call::Message(kind, from, sequence, to, place, change)),
        4 => Just(Call::Stamp),
        1 => Just(Call::LoseStamp),
    ]
}

fn message_of(kind: u8, (from, sequence, to): (u8, u16, u8), now: Moment<Mono>) -> PtpMessage {
    let (source, time) = (port(from), timestamp(now));
    let to = if to == 0 { own() } else { port(to) };
    let body = match kind {
        0 => PtpBody::Sync(time),
        1 => PtpBody::Sync(PtpTimestamp::ZERO),
        2 => PtpBody::FollowUp(time),
        3 => PtpBody::DelayResp(time, to),
        4 => PtpBody::PdelayReq(time),
        5 => PtpBody::PdelayResp(time, to),
        6 => PtpBody::PdelayRespFollowUp(time, to),
        7 => PtpBody::Signaling(to),
        8 => PtpBody::DelayReq(time),
        _ => PtpBody::Announce(crate::script::announcement(source)),
    };
    let flags = if matches!(kind, 1 | 5) { PtpFlags::TWO_STEP } else { PtpFlags::default() };
    PtpMessage { flags, ..message(source, sequence, body) }
}

proptest! {
    /// No panic, no busy loop, no more outgoing observations than requests, and each message has one outcome at least
    /// where it is turned away.
    #[test]
    fn any_calls_keep_the_follower_sound(calls in prop::collection::vec(any_call(), 1..300), mode in 0u8..6) {
        let mechanism = if mode & 1 == 0 { DelayMechanism::EndToEnd } else { DelayMechanism::PeerToPeer };
        let delivery =
            [Delivery::Multicast, Delivery::Unicast(NetworkAddress::default()), Delivery::Hybrid][usize::from(mode / 2)];
        let mut now = Moment::from_origin(Span::from_secs(1));
        let mut follower = Follower::new(FollowerConfig { mechanism, delivery, ..config() }, own(), now);
        let mut tickets = std::collections::VecDeque::new();
        let (mut requests, mut answered) = (0_u64, 0_u64);
        for call in calls {
            match call {
                Call::Pass(millis) => {
                    now = now + Span::from_millis(i64::from(millis));
                    follower.handle_timeout(now, u64::from(millis) << 52);
                    prop_assert!(follower.poll_timeout().is_none_or(|next| next > now), "a busy loop");
                }
                Call::Noise(bytes) => follower.handle_message(&bytes, stamp_at(now), now),
                Call::Message(kind, from, sequence, to, place, change) => {
                    let mut bytes = message_of(kind, (from, sequence, to), now).encode().as_slice().to_vec();
                    let length = bytes.len();
                    bytes[place % length] ^= change;
                    follower.handle_message(&bytes, stamp_at(now), now);
                }
                Call::Stamp => {
                    tickets.pop_front().into_iter().for_each(|ticket| follower.handle_sent(ticket, stamp_at(now)));
                }
                Call::LoseStamp => drop(tickets.pop_front()),
            }
            while let Some(transmit) = follower.poll_transmit() {
                prop_assert!(PtpMessage::decode(transmit.octets.as_slice()).is_ok());
                prop_assert_eq!(transmit.ticket.is_some(), transmit.channel == Channel::Event);
                requests += u64::from(transmit.ticket.is_some());
                tickets.extend(transmit.ticket);
            }
            while let Some(event) = follower.poll_event() {
                let outgoing = matches!(event, PtpEvent::LinkDelay(_))
                    || matches!(event, PtpEvent::Observation(seen) if seen.direction == ffclock_units::Direction::Outgoing);
                answered += u64::from(outgoing);
            }
            prop_assert!(answered <= requests);
        }
    }

    /// Any bytes are a message or a reason, and what was read is written with the same octets, but for the reserved
    /// ones.
    #[test]
    fn any_bytes_decode_or_have_a_reason(mut bytes in prop::collection::vec(any::<u8>(), 0..100), kind in 0u8..16) {
        if let [first, second, high, low, ..] = &mut bytes[..] {
            (*first, *second, *high, *low) = (*first & 0xf0 | kind, 2, 0, 64);
        }
        if let Ok((message, tlvs)) = PtpMessage::decode(&bytes) {
            prop_assert!(tlvs.count() <= TLVS_MAX + 1);
            let written = message.encode();
            let again = PtpMessage::decode(written.as_slice()).expect("what was read").0;
            prop_assert_eq!(again, message);
        }
    }
}
