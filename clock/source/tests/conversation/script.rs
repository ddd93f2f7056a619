//! A script harness: one source, one virtual server reached through bytes, virtual time that moves only at a call.

use ffclock_source::{Event, Nonce, Source, SourceConfig, Ticket};
use ffclock_units::{Bound, Counter, Exchange, LeapTable, Moment, Mono, Server, Span, Stamp, StampLocation, Ticks};
use ffclock_wire::{LeapIndicator, LogSeconds, Mode, NtpTimestamp, Packet, Version};

/// 2026-11-21 00:00:00 UTC, the server's time when a script begins.
pub const BEGIN: i64 = 1_795_219_200;
/// TAI - UTC on that day [s].
pub const TAI_MINUS_UTC: i64 = 37;
/// One way of the virtual path.
pub const WAY: Span = Span::from_micros(250);
/// How long the virtual server holds a request.
pub const HOLD: Span = Span::from_micros(50);

/// A request as it left.
pub struct Asked {
    pub bytes: Vec<u8>,
    pub at: Moment<Mono>,
    ticket: Option<Ticket>,
}

impl Asked {
    pub fn packet(&self) -> Packet {
        Packet::decode(&self.bytes).expect("a request is a packet")
    }

    /// A ticket can be spent once.
    pub fn ticket(&mut self) -> Ticket {
        self.ticket.take().expect("the ticket is spent")
    }
}

pub struct Script {
    pub source: Source,
    pub now: Moment<Mono>,
    /// How the virtual server describes itself.
    pub server: Packet,
    /// The server's time when `now` is at its origin.
    pub server_begin: Moment<Server>,
    nonces: u64,
}

pub fn mono(span: Span) -> Moment<Mono> {
    Moment::from_origin(span)
}

/// The counter of this host ticks at 1 GHz.
pub fn stamp_at(at: Moment<Mono>) -> Stamp {
    let counter =
        Counter::from_raw(u64::try_from(at.since_origin().as_nanos()).expect("scripts play in the first centuries"));
    Stamp { counter, width: Ticks::from_raw(100), location: StampLocation::Kernel }
}

/// A healthy server of stratum 2.
pub fn healthy() -> Packet {
    Packet {
        leap: LeapIndicator::None,
        version: Version::V4,
        mode: Mode::Server,
        stratum: 2,
        poll: LogSeconds::default(),
        precision: LogSeconds::from_exponent(-23),
        root_delay: Span::from_millis(8),
        root_dispersion: Bound::of(Span::from_millis(2)),
        reference_id: 0xc000_0201,
        reference: NtpTimestamp::MISSING,
        origin: NtpTimestamp::MISSING,
        receive: NtpTimestamp::MISSING,
        transmit: NtpTimestamp::MISSING,
    }
}

/// A refusal with these letters, as servers send it.
pub fn refusal(letters: [u8; 4]) -> Packet {
    Packet {
        leap: LeapIndicator::Unsynchronised,
        stratum: 0,
        reference_id: u32::from_be_bytes(letters),
        root_delay: Span::ZERO,
        root_dispersion: Bound::ZERO,
        ..healthy()
    }
}

impl Script {
    pub fn begin() -> Self {
        Self::with(SourceConfig::default())
    }

    /// Without the burst at the start, so that the poll holds from the first request on.
    pub fn steady() -> Self {
        Self::with(SourceConfig { burst_count: 0, ..SourceConfig::default() })
    }

    pub fn with(config: SourceConfig) -> Self {
        let now = mono(Span::from_secs(1));
        let server_begin = Moment::from_origin(Span::from_secs(BEGIN));
        let source = Source::new(config, LeapTable::built_in(), server_begin, now);
        Script { source, now, server: healthy(), server_begin, nonces: 0x0123_4567_89ab_cdef }
    }

    /// All events since the last call.
    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.source.poll_event()).collect()
    }

    /// Moves on to the deadline of the source.
    pub fn reach_deadline(&mut self) -> Option<Asked> {
        self.now = self.now.max(self.source.poll_timeout());
        // Any odd multiplier makes a sequence without repetition.
        self.nonces = self.nonces.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        self.source.handle_timeout(self.now, Nonce::from_two_random(self.nonces, self.nonces.rotate_left(23)));
        assert!(self.source.poll_timeout() > self.now, "a deadline that has been handled must not remain");
        let transmit = self.source.poll_transmit()?;
        assert!(self.source.poll_transmit().is_none());
        Some(Asked { bytes: transmit.bytes.to_vec(), at: self.now, ticket: Some(transmit.ticket) })
    }

    /// Waits for the next request.
    pub fn ask(&mut self) -> Asked {
        (0..3).find_map(|_| self.reach_deadline()).expect("a request within three deadlines")
    }

    /// The server's time at `at`.
    pub fn server_time(&self, at: Moment<Mono>) -> Moment<Server> {
        self.server_begin + at.since_origin()
    }

    /// The reply of the virtual server.
    pub fn answer(&self, asked: &Asked) -> Packet {
        let receive = NtpTimestamp::from_server(self.server_time(asked.at + WAY));
        let transmit = NtpTimestamp::from_server(self.server_time(asked.at + WAY + HOLD));
        self.server.reply_to(&asked.packet(), receive, transmit)
    }

    /// A datagram arrives one round trip after `asked`, or now if that is past.
    pub fn deliver(&mut self, asked: &Asked, bytes: &[u8]) {
        self.now = self.now.max(asked.at + WAY + HOLD + WAY);
        self.source.handle_packet(bytes, stamp_at(self.now), self.now);
    }

    /// The server's answer arrives.
    pub fn deliver_answer(&mut self, asked: &Asked) {
        let bytes = self.answer(asked).encode();
        self.deliver(asked, &bytes);
    }

    /// The stamp of the request arrives.
    pub fn stamp(&mut self, asked: &mut Asked) {
        self.source.handle_sent(asked.ticket(), stamp_at(asked.at));
    }

    /// A request, its stamp and its answer.
    pub fn round(&mut self) -> Asked {
        let mut asked = self.ask();
        self.stamp(&mut asked);
        self.deliver_answer(&asked);
        asked
    }

    /// A request, its stamp and `reply` made of the server's answer by `change`; then the events.
    pub fn round_with(&mut self, change: impl FnOnce(&mut Packet)) -> Vec<Event> {
        let mut asked = self.ask();
        self.stamp(&mut asked);
        let mut reply = self.answer(&asked);
        change(&mut reply);
        self.deliver(&asked, &reply.encode());
        self.events()
    }
}

/// The exchanges among events.
pub fn exchanges(events: &[Event]) -> Vec<Exchange> {
    let exchange = |event: &Event| match event {
        Event::Exchange(exchange) | Event::EarlierExchange(exchange) => Some(*exchange),
        _ => None,
    };
    events.iter().filter_map(exchange).collect()
}
