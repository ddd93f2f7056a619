//! A script harness: one follower, a virtual master reached through bytes, virtual time that moves only at a call.

use ffclock_ptp::*;
use ffclock_units::{Counter, Moment, Mono, Period, Span, Stamp, StampLocation, Tai, Ticks};

/// 2026-11-21 00:00:37 TAI, the master's time when a script's `now` is at its origin.
pub const BEGIN: i64 = 1_795_219_237;
/// One way of the virtual path.
pub const WAY: Span = Span::from_micros(250);

pub fn port(last: u8) -> PortIdentity {
    PortIdentity { clock: ClockIdentity::from_mac([2, 0, 0, 0, 0, last]), port: 1 }
}

/// Our own port.
pub fn own() -> PortIdentity {
    port(0x77)
}

/// The counter of this host ticks at 1 GHz.
pub fn stamp_at(at: Moment<Mono>) -> Stamp {
    let counter = Counter::from_raw(u64::try_from(at.since_origin().as_nanos()).expect("scripts begin after 0"));
    Stamp { counter, width: Ticks::from_raw(100), location: StampLocation::Kernel }
}

pub fn config() -> FollowerConfig {
    FollowerConfig::of(Period::from_hertz(1e9).expect("a period"))
}

/// A grandmaster behind satellites, good to 100 ns.
pub fn announcement(grandmaster: PortIdentity) -> Announcement {
    Announcement {
        utc_offset: 37,
        priority_1: 128,
        quality: ClockQuality {
            class: ClockClass::PRIMARY,
            accuracy: ClockAccuracy(0x21),
            variance: ScaledVariance(0x4e5d),
        },
        priority_2: 128,
        grandmaster: grandmaster.clock,
        steps_removed: 0,
        time_source: TimeSource::GNSS,
        flags: PtpFlags::PTP_TIMESCALE.and(PtpFlags::UTC_OFFSET_VALID),
    }
}

pub fn message(source: PortIdentity, sequence: u16, body: PtpBody) -> PtpMessage {
    let (flags, correction) = (PtpFlags::default(), Correction::ZERO);
    PtpMessage { body, sdo: 0, domain: 0, flags, correction, source, sequence, log_interval: 0 }
}

/// The master's time.
pub fn tai(at: Moment<Mono>) -> Moment<Tai> {
    Moment::from_origin(at.since_origin() + Span::from_secs(BEGIN))
}

pub fn timestamp(at: Moment<Mono>) -> PtpTimestamp {
    PtpTimestamp::of(tai(at)).expect("a date").0
}

pub struct Script {
    pub follower: Follower,
    pub now: Moment<Mono>,
    pub master: PortIdentity,
    pub announced: Announcement,
    sequence: u16,
}

impl Script {
    pub fn with(config: FollowerConfig) -> Self {
        let now = Moment::from_origin(Span::from_secs(1));
        let master = port(1);
        let follower = Follower::new(config, own(), now);
        Script { follower, now, master, announced: announcement(master), sequence: 0 }
    }

    /// A request on the link whose answer comes a round trip after it: from now on.
    pub fn ask_link(&mut self, round_trip: Span) -> PtpMessage {
        self.pass(Span::from_millis(1001));
        self.events();
        let request = self.sent().pop().expect("a request each second");
        let (asked, _) = PtpMessage::decode(request.octets.as_slice()).expect("a message");
        self.follower.handle_sent(request.ticket.expect("an event"), stamp_at(self.now));
        self.now = self.now + round_trip;
        asked
    }

    /// A script in which the master is followed, with no event left.
    pub fn acquainted(config: FollowerConfig) -> Self {
        let mut script = Self::with(config);
        script.announce();
        script.pass(Span::from_secs(1));
        script.announce();
        assert_eq!(script.follower.master().map(|master| master.port), Some(script.master));
        script.events();
        script
    }

    pub fn events(&mut self) -> Vec<PtpEvent> {
        std::iter::from_fn(|| self.follower.poll_event()).collect()
    }

    pub fn sent(&mut self) -> Vec<PtpTransmit> {
        std::iter::from_fn(|| self.follower.poll_transmit()).collect()
    }

    /// Time passes, and the follower is called at each of its deadlines.
    pub fn pass(&mut self, span: Span) {
        let end = self.now + span;
        while let Some(next) = self.follower.poll_timeout().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.follower.handle_timeout(self.now, 0x8000_0000_0000_0000);
            assert!(self.follower.poll_timeout().is_none_or(|next| next > self.now), "a busy loop");
        }
        self.now = end;
    }

    /// A message arrives now.
    pub fn deliver(&mut self, message: &PtpMessage) -> Vec<PtpEvent> {
        self.deliver_bytes(message.encode().as_slice())
    }

    pub fn deliver_bytes(&mut self, bytes: &[u8]) -> Vec<PtpEvent> {
        self.follower.handle_message(bytes, stamp_at(self.now), self.now);
        self.events()
    }

    pub fn next_sequence(&mut self) -> u16 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    /// The master announces itself.
    pub fn announce(&mut self) -> Vec<PtpEvent> {
        let announced = self.announced;
        self.announce_by(self.master, announced)
    }

    pub fn announce_by(&mut self, source: PortIdentity, announced: Announcement) -> Vec<PtpEvent> {
        let sequence = self.next_sequence();
        let message = message(source, sequence, PtpBody::Announce(announced));
        self.deliver(&PtpMessage { log_interval: 1, ..message })
    }

    /// A Sync that left one way ago, and its Follow_Up.
    pub fn sync_pair(&mut self) -> (PtpMessage, PtpMessage) {
        let sequence = self.next_sequence();
        let sync = message(self.master, sequence, PtpBody::Sync(PtpTimestamp::ZERO));
        let left = PtpBody::FollowUp(timestamp(self.now - WAY));
        (PtpMessage { flags: PtpFlags::TWO_STEP, ..sync }, message(self.master, sequence, left))
    }

    /// Both of them; the events of the second.
    pub fn two_step(&mut self) -> Vec<PtpEvent> {
        let (sync, follow_up) = self.sync_pair();
        assert_eq!(self.deliver(&sync), []);
        self.deliver(&follow_up)
    }

    /// The Delay_Req that is due, with the time at which it is sent.
    pub fn request(&mut self) -> (PtpMessage, PtpTicket) {
        let transmit = (0..100).find_map(|_| {
            self.pass(Span::from_millis(30));
            self.follower.poll_transmit()
        });
        let transmit = transmit.expect("a request within three seconds");
        let (message, _) = PtpMessage::decode(transmit.octets.as_slice()).expect("a message");
        (message, transmit.ticket.expect("an event"))
    }

    /// The request leaves now, and the master's response is here at once.
    pub fn answer(&mut self, request: PtpTransmit) -> Vec<PtpEvent> {
        let (message, _) = PtpMessage::decode(request.octets.as_slice()).expect("a message");
        self.follower.handle_sent(request.ticket.expect("an event"), stamp_at(self.now));
        let response = self.response(&message);
        self.deliver(&response)
    }

    /// The response of the master, to whom the request took one way from now.
    pub fn response(&self, request: &PtpMessage) -> PtpMessage {
        message(self.master, request.sequence, PtpBody::DelayResp(timestamp(self.now + WAY), request.source))
    }
}

pub fn observations(events: &[PtpEvent]) -> Vec<PtpObservation> {
    let observation = |event: &PtpEvent| match event {
        PtpEvent::Observation(observation) => Some(*observation),
        _ => None,
    };
    events.iter().filter_map(observation).collect()
}

pub fn rejected(reason: PtpRejection) -> Vec<PtpEvent> {
    vec![PtpEvent::Rejected(reason)]
}
