//! Properties under any bytes and any sequence of calls.

use crate::script::{self, Script, stamp_at};
use ffclock_source::{Event, Nonce, PollPlace, SourceConfig, Ticket};
use ffclock_units::{Bound, Moment, Mono, Span, Stamp};
use ffclock_wire::{NtpTimestamp, Packet};
use proptest::prelude::*;

/// One call that a caller might make.
#[derive(Clone, Debug)]
enum Call {
    /// Time passes [ms].
    Pass(u32),
    Timeout(u64),
    /// A datagram of any bytes.
    Noise(Vec<u8>),
    /// A reply to an earlier request, with one byte changed: steps back from the last request, place of the byte, bits
    /// to flip.
    Reply(usize, usize, u8),
    /// An interleaved reply to an earlier request: steps back from the last request, and when the reply before it left,
    /// before now [ms].
    Interleaved(usize, i64),
    /// The stamp of the oldest request that has none.
    Stamp,
    /// That stamp is lost.
    LoseStamp,
    Retarget,
    /// Poll [ms], burst count, reply timeout [ms], whether to interleave.
    Reconfigure(i64, u32, i64, bool),
    /// Poll [ms]; none returns to the configured one.
    ChoosePoll(Option<i64>),
    /// Number, and of how many.
    SetPlace(u32, u32),
    Kiss([u8; 4]),
}

fn any_call() -> impl Strategy<Value = Call> {
    prop_oneof![
        6 => (0u32..40_000).prop_map(Call::Pass),
        8 => any::<u64>().prop_map(Call::Timeout),
        1 => proptest::collection::vec(any::<u8>(), 0..80).prop_map(Call::Noise),
        8 => (0usize..6, 0usize..48, prop_oneof![4 => Just(0u8), 1 => any::<u8>()])
            .prop_map(|(back, place, change)| Call::Reply(back, place, change)),
        8 => (0usize..6, -2000i64..40_000).prop_map(|(back, left)| Call::Interleaved(back, left)),
        6 => Just(Call::Stamp),
        1 => Just(Call::LoseStamp),
        1 => Just(Call::Retarget),
        1 => (-1000i64..2_000_000, any::<u32>(), -1000i64..20_000, any::<bool>())
            .prop_map(|(poll, burst, timeout, interleaved)| Call::Reconfigure(poll, burst, timeout, interleaved)),
        1 => proptest::option::of(-1000i64..2_000_000).prop_map(Call::ChoosePoll),
        1 => (any::<u32>(), prop_oneof![0u32..17, any::<u32>()]).prop_map(|(number, of)| Call::SetPlace(number, of)),
        1 => prop_oneof![Just(*b"RATE"), Just(*b"DENY"), Just(*b"RSTR"), any::<[u8; 4]>()].prop_map(Call::Kiss),
    ]
}

/// A script with all requests sent, and the tickets that have no stamp yet.
struct Play {
    script: Script,
    requests: Vec<Packet>,
    tickets: Vec<(Ticket, Stamp)>,
    events: Vec<Event>,
    last_sent: Option<Moment<Mono>>,
    /// The last event about reachability since the conversation was restarted.
    standing: Option<Event>,
}

impl Play {
    fn call(&mut self, call: &Call) {
        let now = self.script.now;
        match call {
            Call::Pass(millis) => self.script.now = now + Span::from_millis(i64::from(*millis)),
            Call::Timeout(nonce) => self.time_out(*nonce),
            Call::Noise(bytes) => self.script.source.handle_packet(bytes, stamp_at(now), now),
            Call::Reply(back, place, change) => self.reply(*back, *place, *change),
            Call::Interleaved(back, left) => self.reply_interleaved(*back, *left),
            Call::Stamp if !self.tickets.is_empty() => {
                let (ticket, sent) = self.tickets.remove(0);
                self.script.source.handle_sent(ticket, sent);
            }
            Call::LoseStamp if !self.tickets.is_empty() => drop(self.tickets.remove(0)),
            Call::Stamp | Call::LoseStamp => {}
            Call::Retarget => {
                self.script.source.retarget(now);
                self.standing = None;
            }
            Call::Reconfigure(poll, burst_count, timeout, interleaved) => {
                let (poll, reply_timeout) = (Span::from_millis(*poll), Span::from_millis(*timeout));
                let rest = SourceConfig { interleaved: *interleaved, ..SourceConfig::default() };
                self.script.source.reconfigure(SourceConfig { poll, burst_count: *burst_count, reply_timeout, ..rest });
            }
            Call::ChoosePoll(poll) => self.script.source.choose_poll(poll.map(Span::from_millis)),
            Call::SetPlace(number, of) => self.script.source.set_place(PollPlace::new(*number, *of)),
            Call::Kiss(letters) => {
                let healthy = std::mem::replace(&mut self.script.server, script::refusal(*letters));
                self.reply(0, 0, 0);
                self.script.server = healthy;
            }
        }
        for event in self.script.events() {
            if matches!(event, Event::Reachable | Event::Unreachable) {
                assert_ne!(self.standing.replace(event), Some(event), "reported twice");
            }
            self.events.push(event);
        }
    }

    fn time_out(&mut self, nonce: u64) {
        let now = self.script.now;
        let was_due = self.script.source.poll_timeout() <= now;
        self.script.source.handle_timeout(now, Nonce::from_two_random(nonce, nonce.wrapping_mul(3)));
        assert!(self.script.source.poll_timeout() > now, "a handled deadline remains: a busy loop");
        let Some(transmit) = self.script.source.poll_transmit() else { return };
        assert!(was_due, "nothing leaves before its time");
        assert!(self.last_sent.is_none_or(|last| last <= now));
        self.last_sent = Some(now);
        self.requests.push(Packet::decode(&transmit.bytes).expect("a request is a packet"));
        self.tickets.push((transmit.ticket, stamp_at(now)));
    }

    fn reply(&mut self, back: usize, place: usize, change: u8) {
        let Some(request) = self.requests.iter().rev().nth(back) else { return };
        let now = self.script.now + Span::from_millis(1);
        self.script.now = now;
        let time = NtpTimestamp::from_server(self.script.server_time(now));
        let mut bytes = self.script.server.reply_to(request, time, time).encode();
        bytes[place] ^= change;
        self.script.source.handle_packet(&bytes, stamp_at(now), now);
    }

    fn reply_interleaved(&mut self, back: usize, left: i64) {
        let Some(request) = self.requests.iter().rev().nth(back) else { return };
        let now = self.script.now + Span::from_millis(1);
        self.script.now = now;
        let time = |at| NtpTimestamp::from_server(self.script.server_time(at));
        let basic = self.script.server.reply_to(request, time(now), time(now - Span::from_millis(left)));
        let bytes = Packet { origin: request.receive, ..basic }.encode();
        self.script.source.handle_packet(&bytes, stamp_at(now), now);
    }
}

proptest! {
    #[test]
    fn noise_is_never_an_exchange(
        packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..120), 1..20),
    ) {
        let mut script = Script::begin();
        let mut asked = script.ask();
        script.stamp(&mut asked);
        for bytes in &packets {
            script.deliver(&asked, bytes);
            for event in script.events() {
                prop_assert!(matches!(event, Event::Rejected(_)), "{event:?}");
            }
        }
        prop_assert_eq!(script.source.statistics().received, packets.len() as u64);
        let refused: u64 = script.source.statistics().rejections().map(|(_, count)| count).sum();
        prop_assert_eq!(refused, packets.len() as u64);
    }

    #[test]
    fn a_reply_with_our_nonce_and_any_other_bytes_is_at_most_one_sound_exchange(bytes in any::<[u8; 48]>()) {
        let mut script = Script::begin();
        let mut asked = script.ask();
        script.stamp(&mut asked);
        let mut reply = bytes;
        reply[24..32].copy_from_slice(&asked.bytes[40..48]);
        script.deliver(&asked, &reply);
        script.deliver(&asked, &reply);
        let exchanges = script::exchanges(&script.events());
        prop_assert!(exchanges.len() <= 1);
        for exchange in exchanges {
            prop_assert!(exchange.server_in <= exchange.server_out);
            prop_assert!(exchange.server.root_distance <= SourceConfig::default().root_distance_max);
            prop_assert!((1..=15).contains(&exchange.server.identity.stratum));
        }
    }

    #[test]
    fn no_sequence_of_calls_breaks_the_conversation(calls in proptest::collection::vec(any_call(), 1..200)) {
        let script = Script::with(SourceConfig { interleaved: true, ..SourceConfig::default() });
        let mut play =
            Play { script, requests: vec![], tickets: vec![], events: vec![], last_sent: None, standing: None };
        for call in &calls {
            play.call(call);
        }
        let statistics = play.script.source.statistics();
        let exchanges = script::exchanges(&play.events);
        prop_assert_eq!(statistics.accepted, exchanges.len() as u64);
        prop_assert_eq!(statistics.sent, play.requests.len() as u64);
        prop_assert!(statistics.accepted + statistics.lost + statistics.kissed <= statistics.sent);
        prop_assert!(statistics.interleaved <= statistics.sent);
        prop_assert_eq!(statistics.events_dropped, 0);
        for exchange in &exchanges {
            prop_assert!(exchange.received.counter.is_after(exchange.sent.counter));
            prop_assert!(exchange.server_in <= exchange.server_out);
            prop_assert!(exchange.server.root_distance <= Bound::of(Span::from_millis(1500)));
        }
        for pair in exchanges.windows(2) {
            prop_assert!(pair[1].sent.counter.is_after(pair[0].sent.counter), "exchanges come in order");
            prop_assert!(!pair[0].received.counter.is_after(pair[1].sent.counter), "and never overlap");
        }
    }
}
