//! A follower and a grandmaster in a network that sends anything at any time, while stamps come early, late or never:
//! no panic, no busy loop, never more answers than requests, and exchanges in order.
#![no_main]

use ffclock_ptp::{
    ArbitraryTimescale, DelayMechanism, Delivery, ExchangePairing, Follower, FollowerConfig, Grandmaster,
    GrandmasterClaim, GrandmasterConfig, GrandmasterLimits, GroupService, NetworkAddress, Passage, PortIdentity,
    PtpEvent, PtpMessage, PtpTicket,
};
use ffclock_units::{
    Bound, Counter, Direction, Exchange, LeapTable, Moment, Mono, Period, Span, Stamp, StampLocation,
    StandardUncertainty, Status, Tai, TaiReading, Ticks,
};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

fn port(last: u8) -> PortIdentity {
    PortIdentity { clock: ffclock_ptp::ClockIdentity::from_mac([2, 0, 0, 0, 0, last]), port: 1 }
}

struct Run<'a> {
    input: Unstructured<'a>,
    follower: Follower,
    grandmaster: Grandmaster,
    pairing: ExchangePairing,
    now: Moment<Mono>,
    ticket: Option<PtpTicket>,
    master_ticket: Option<PtpTicket>,
    /// The last messages on the wire, to be sent again with a change.
    wire: Vec<Vec<u8>>,
    requests: u64,
    answers: u64,
    last: Option<Exchange>,
}

impl Run<'_> {
    fn stamp(&mut self) -> Result<Stamp> {
        let (counter, width) = (Counter::from_raw(self.input.arbitrary()?), Ticks::from_raw(self.input.arbitrary()?));
        Ok(Stamp { counter, width, location: StampLocation::Kernel })
    }

    fn tai(&mut self) -> Result<Moment<Tai>> {
        let offset = Span::from_nanos(i128::from(self.input.arbitrary::<i64>()?));
        Ok(Moment::from_origin(Span::from_secs(1_790_000_000) + offset))
    }

    fn step(&mut self) -> Result<()> {
        match self.input.int_in_range(0..=9_u8)? {
            0 | 1 => self.pass_time()?,
            2 => {
                let sent = self.stamp()?;
                self.ticket.take().into_iter().for_each(|ticket| self.follower.handle_sent(ticket, sent));
            }
            3 => {
                let left = self.tai()?;
                self.master_ticket.take().into_iter().for_each(|ticket| self.grandmaster.handle_sent(ticket, left));
            }
            4 => {
                let length = self.input.int_in_range(0..=200_usize)?;
                let bytes = self.input.bytes(length.min(self.input.len()))?.to_vec();
                self.deliver(&bytes)?;
            }
            5 => {
                let (time, bound) = (self.tai()?, Bound::of(Span::from_units(self.input.arbitrary()?)));
                let uncertainty = StandardUncertainty::of(Span::from_units(self.input.arbitrary()?));
                let status = *self.input.choose(&Status::ALL)?;
                let reading = TaiReading { time, uncertainty, noise: uncertainty, bound, status };
                let limits = GrandmasterLimits::default();
                let step = LeapTable::built_in().step_around(reading.time);
                self.grandmaster.set_claim(GrandmasterClaim::of(&reading, &limits, step), self.now);
            }
            _ => {
                if !self.wire.is_empty() {
                    let place = self.input.choose_index(self.wire.len())?;
                    let mut bytes = self.wire[place].clone();
                    if self.input.arbitrary()? {
                        let at = self.input.choose_index(bytes.len())?;
                        bytes[at] = self.input.arbitrary()?;
                    }
                    self.deliver(&bytes)?;
                }
            }
        }
        self.drain();
        Ok(())
    }

    fn deliver(&mut self, bytes: &[u8]) -> Result<()> {
        let (received, arrived) = (self.stamp()?, self.tai()?);
        let from = NetworkAddress([self.input.int_in_range(0..=4_u8)?; 16]);
        let from = Passage { from, to: self.input.arbitrary::<bool>()?.then_some(NetworkAddress([9; 16])) };
        self.follower.handle_message_from(bytes, (received, from), self.now);
        self.grandmaster.handle_message(bytes, (arrived, from), self.now);
        Ok(())
    }

    /// Moves straight to the next deadline in half of the cases.
    fn pass_time(&mut self) -> Result<()> {
        let deadlines = [self.follower.poll_timeout(), self.grandmaster.poll_timeout()];
        let deadline = deadlines.into_iter().flatten().min().unwrap_or(self.now);
        let step = Span::from_nanos(i128::from(self.input.arbitrary::<u32>()?));
        self.now = if self.input.arbitrary()? { self.now.max(deadline) } else { self.now + step };
        self.follower.handle_timeout(self.now, self.input.arbitrary()?);
        self.grandmaster.handle_timeout(self.now);
        let is_later = |next: Option<Moment<Mono>>| next.is_none_or(|next| next > self.now);
        assert!(is_later(self.follower.poll_timeout()) && is_later(self.grandmaster.poll_timeout()), "a busy loop");
        Ok(())
    }

    fn note(&mut self, bytes: &[u8]) {
        assert!(PtpMessage::decode(bytes).is_ok(), "we send messages");
        if self.wire.len() >= 16 {
            self.wire.remove(0);
        }
        self.wire.push(bytes.to_vec());
    }

    fn drain(&mut self) {
        while let Some(transmit) = self.follower.poll_transmit() {
            self.requests += u64::from(transmit.ticket.is_some());
            self.note(transmit.octets.as_slice());
            self.ticket = transmit.ticket.or(self.ticket.take());
        }
        while let Some(transmit) = self.grandmaster.poll_transmit() {
            self.note(transmit.octets.as_slice());
            self.master_ticket = transmit.ticket.or(self.master_ticket.take());
        }
        while self.grandmaster.poll_event().is_some() {}
        assert!(self.grandmaster.grants() <= 4);
        while let Some(event) = self.follower.poll_event() {
            self.take(event);
        }
        assert!(self.answers <= self.requests, "an answer without a request");
    }

    fn take(&mut self, event: PtpEvent) {
        let PtpEvent::Observation(seen) = event else {
            self.answers += u64::from(matches!(event, PtpEvent::LinkDelay(_)));
            return;
        };
        self.answers += u64::from(seen.direction == Direction::Outgoing);
        let Some(claim) = self.follower.claim() else { return };
        let Ok(Some(exchange)) = self.pairing.observe(seen, claim) else { return };
        assert!(exchange.received.counter.is_after(exchange.sent.counter) && exchange.server_in <= exchange.server_out);
        if let Some(last) = self.last.replace(exchange) {
            assert!(exchange.received.counter.is_after(last.received.counter));
            assert!(exchange.sent.counter.is_after(last.sent.counter));
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Unstructured::new(bytes);
    let mode: u8 = input.arbitrary().unwrap_or_default();
    let now = Moment::from_origin(Span::from_secs(1000));
    let period = Period::from_hertz(1e9).expect("a period");
    let config = FollowerConfig {
        mechanism: if mode & 1 == 0 { DelayMechanism::EndToEnd } else { DelayMechanism::PeerToPeer },
        delivery: match mode & 34 {
            0 => Delivery::Multicast,
            32 => Delivery::Hybrid,
            _ => Delivery::Unicast(NetworkAddress([1; 16])),
        },
        arbitrary: if mode & 4 == 0 { ArbitraryTimescale::Utc } else { ArbitraryTimescale::Refuse },
        earliest: Moment::from_origin(Span::from_secs(if mode & 16 == 0 { 0 } else { 1_767_225_600 })),
        ..FollowerConfig::of(period)
    };
    let group = if mode & 8 == 0 { GroupService::Multicast } else { GroupService::UnicastOnly };
    let served = GrandmasterConfig { group, grants_max: 4, ..GrandmasterConfig::default() };
    let mut run = Run {
        input,
        follower: Follower::new(config, port(0x77), now),
        grandmaster: Grandmaster::new(served, port(1), now),
        pairing: ExchangePairing::new(period, Bound::of(Span::from_secs(1))),
        now,
        ticket: None,
        master_ticket: None,
        wire: Vec::new(),
        requests: 0,
        answers: 0,
        last: None,
    };
    while !run.input.is_empty() && run.step().is_ok() {}
});
