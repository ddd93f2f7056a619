//! A conversation with a server that sends anything at any time, in the basic mode or interleaved, while stamps come
//! early, late or never: no panic, no busy loop, and never more exchanges than requests.
#![no_main]

use ffclock_source::{Event, Nonce, Source, SourceConfig, Ticket};
use ffclock_units::{Counter, LeapTable, Moment, Mono, Server, Span, Stamp, StampLocation, Ticks};
use ffclock_wire::{NtpTimestamp, Packet};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

struct Run<'a> {
    input: Unstructured<'a>,
    source: Source,
    now: Moment<Mono>,
    pivot: Moment<Server>,
    ticket: Option<Ticket>,
    request: [u8; 48],
    requests: u64,
    exchanges: u64,
}

impl Run<'_> {
    fn stamp(&mut self) -> Result<Stamp> {
        let (counter, width) = (Counter::from_raw(self.input.arbitrary()?), Ticks::from_raw(self.input.arbitrary()?));
        Ok(Stamp { counter, width, location: StampLocation::Kernel })
    }

    fn step(&mut self) -> Result<()> {
        match self.input.int_in_range(0..=8_u8)? {
            0 | 1 => self.pass_time()?,
            2 => {
                let sent = self.stamp()?;
                self.ticket.take().into_iter().for_each(|ticket| self.source.handle_sent(ticket, sent));
            }
            3 => {
                let (received, length) = (self.stamp()?, self.input.int_in_range(0..=100_usize)?);
                let bytes = self.input.bytes(length.min(self.input.len()))?;
                self.source.handle_packet(bytes, received, self.now);
            }
            4 | 5 => {
                let (received, bytes) = (self.stamp()?, self.reply()?);
                self.source.handle_packet(&bytes, received, self.now);
            }
            6 => self.source.retarget(self.now),
            7 => self.source.set_leaps(LeapTable::built_in()),
            _ => {
                let poll = Span::from_units(self.input.arbitrary()?);
                self.source.reconfigure(SourceConfig {
                    poll,
                    interleaved: self.input.arbitrary()?,
                    ..SourceConfig::default()
                });
            }
        }
        self.drain();
        Ok(())
    }

    /// Moves straight to the next deadline in half of the cases.
    fn pass_time(&mut self) -> Result<()> {
        let deadline = self.source.poll_timeout();
        let step = Span::from_nanos(i128::from(self.input.arbitrary::<u32>()?));
        self.now = if self.input.arbitrary()? { self.now.max(deadline) } else { self.now + step };
        self.source.handle_timeout(self.now, Nonce::from_two_random(self.input.arbitrary()?, self.input.arbitrary()?));
        assert!(self.source.poll_timeout() > self.now, "a busy loop");
        Ok(())
    }

    /// A datagram that resembles a reply to the last request in most fields.
    fn reply(&mut self) -> Result<[u8; 48]> {
        let mut bytes = self.request;
        let kind: u8 = self.input.arbitrary()?;
        bytes[0] = if kind < 200 { 0x24 } else { kind };
        bytes[1] = self.input.int_in_range(0..=17)?;
        // The origin of a basic reply, or of an interleaved one.
        let nonce = if self.input.arbitrary()? { 40 } else { 32 };
        bytes[24..32].copy_from_slice(&self.request[nonce..nonce + 8]);
        for field in [32, 40] {
            let offset = Span::from_nanos(i128::from(self.input.arbitrary::<i64>()?));
            let time = Packet {
                transmit: NtpTimestamp::from_server(self.pivot + offset),
                ..Packet::decode(&self.request).unwrap_or_else(|_| unreachable!())
            };
            bytes[field..field + 8].copy_from_slice(&time.encode()[40..48]);
        }
        if self.input.arbitrary()? {
            let place = self.input.int_in_range(0..=47_usize)?;
            bytes[place] = self.input.arbitrary()?;
        }
        Ok(bytes)
    }

    fn drain(&mut self) {
        if let Some(transmit) = self.source.poll_transmit() {
            self.requests += 1;
            self.request = transmit.bytes;
            self.ticket = Some(transmit.ticket);
        }
        while let Some(event) = self.source.poll_event() {
            self.exchanges += u64::from(matches!(event, Event::Exchange(_) | Event::EarlierExchange(_)));
        }
        assert!(self.exchanges <= self.requests, "an exchange without a request");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let (now, pivot) =
        (Moment::from_origin(Span::from_secs(1000)), Moment::from_origin(Span::from_secs(1_790_000_000)));
    let config = SourceConfig { interleaved: true, ..SourceConfig::default() };
    let source = Source::new(config, LeapTable::built_in(), pivot, now);
    let input = Unstructured::new(bytes);
    let mut run = Run { input, source, now, pivot, ticket: None, request: [0x23; 48], requests: 0, exchanges: 0 };
    while !run.input.is_empty() && run.step().is_ok() {}
});
