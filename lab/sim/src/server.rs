//! Servers: stratum 1, with noise and faults.

use crate::random::Random;
use crate::scenario::{FaultSpec, ServerSpec};
use ffclock_units::{Bound, LeapAnnouncement, LeapTable, Moment, Server as ServerScale, Span, Tai};
use ffclock_wire::{KissCode, LeapIndicator, LogSeconds, Mode, NtpTimestamp, Packet, Version};

/// The precision that the server claims: 2^-23 s, as a host with a fast clock does.
const PRECISION: LogSeconds = LogSeconds::from_exponent(-23);
/// The part of the residence that is always there.
const RESIDENCE_FLOOR: f64 = 0.5;
/// How fast a smear moves [s/s]: a second in a day.
const SMEAR_RATE: f64 = 1.0 / 86_400.0;

/// A reply under way: when it leaves, and its bytes.
pub(crate) struct Reply {
    pub(crate) leaves: Span,
    pub(crate) bytes: [u8; ffclock_wire::HEADER_BYTES],
}

/// A server at the true time of the last request.
pub(crate) struct Server {
    spec: ServerSpec,
    random: Random,
    begin: Moment<Tai>,
    last_request: Option<Span>,
}

impl Server {
    /// `begin` is the true time at the beginning of the world; its chance is a stream of this name.
    pub(crate) fn new(spec: &ServerSpec, begin: Moment<Tai>, (seed, stream): (u64, &str)) -> Self {
        Server { spec: spec.clone(), random: Random::named(seed, stream), begin, last_request: None }
    }

    /// Answers a request that arrives at `at`; `None` if it is no request.
    pub(crate) fn answer(&mut self, request: &[u8], at: Span) -> Option<Reply> {
        let request = Packet::decode(request).ok().filter(|packet| packet.mode == Mode::Client)?;
        let mean = self.spec.residence.seconds();
        let residence = mean * (RESIDENCE_FLOOR + (1.0 - RESIDENCE_FLOOR) * self.random.exponential());
        let leaves = at + Span::from_seconds(residence);
        let description = self.describe(at);
        let (receive, transmit) = (self.shown(at), self.shown(leaves));
        // A server's own stamps do not run backwards, however noisy.
        let stamps = (NtpTimestamp::from_server(receive), NtpTimestamp::from_server(transmit.max(receive)));
        let reply = description.reply_to(&request, stamps.0, stamps.1);
        Some(Reply { leaves, bytes: reply.encode() })
    }

    fn describe(&mut self, at: Span) -> Packet {
        let mut packet = Packet {
            leap: LeapIndicator::None,
            version: Version::V4,
            mode: Mode::Server,
            stratum: 1,
            poll: LogSeconds::from_exponent(4),
            precision: PRECISION,
            root_delay: Span::ZERO,
            root_dispersion: Bound::of(self.spec.root_dispersion.0),
            reference_id: u32::from_be_bytes(*b"GPS\0"),
            reference: NtpTimestamp::MISSING,
            origin: NtpTimestamp::MISSING,
            receive: NtpTimestamp::MISSING,
            transmit: NtpTimestamp::MISSING,
        };
        let since_last = self.last_request.replace(at).map(|last| at - last);
        for fault in &self.spec.fault {
            apply(fault, &mut packet, &AskedPacket { at, since_last, begin: self.begin });
        }
        packet
    }

    /// What the server's clock shows at the true time `at`.
    fn shown(&mut self, at: Span) -> Moment<ServerScale> {
        let noise = self.spec.noise.seconds() * self.random.normal();
        let wrong = announced_error(&self.spec, at.as_seconds());
        let tai = self.begin + at + Span::from_seconds(noise + wrong);
        label(self.leaps().utc_from_tai(tai))
    }

    fn leaps(&self) -> LeapTable {
        let leaps = self.spec.fault.iter().any(|fault| matches!(fault, FaultSpec::Leap(_)));
        if leaps { LeapTable::with(leap_at(self.begin)) } else { LeapTable::built_in() }
    }
}

/// UTC as the label that an NTP server gives it.
pub(crate) fn label(utc: Moment<ffclock_units::Utc>) -> Moment<ServerScale> {
    Moment::from_origin(utc.since_origin())
}

/// The leap second at the end of the first day, which is the last of a year.
fn leap_at(begin: Moment<Tai>) -> LeapAnnouncement {
    let utc = LeapTable::built_in().utc_from_tai(begin).whole_seconds();
    LeapAnnouncement { utc_second: utc + 86_400, change: 1 }
}

/// How far ahead of true time the faults take the server's clock at `t` [s].
pub(crate) fn announced_error(spec: &ServerSpec, t: f64) -> f64 {
    spec.fault.iter().map(|fault| error_of(fault, t)).sum()
}

/// How far ahead a fault takes the server's clock at `t` [s].
fn error_of(fault: &FaultSpec, t: f64) -> f64 {
    match fault {
        FaultSpec::Wrong(wrong) => {
            let ended = wrong.until.is_some_and(|until| t >= until.seconds());
            if t >= wrong.at.seconds() && !ended { wrong.by.seconds() } else { 0.0 }
        }
        FaultSpec::Drift(drift) if (drift.at.seconds()..drift.until.seconds()).contains(&t) => {
            drift.rate.fraction() * (t - drift.at.seconds())
        }
        FaultSpec::Smear(smear) => {
            let (size, since) = (smear.by.seconds().abs(), (t - smear.at.seconds()).max(0.0));
            (SMEAR_RATE * since).min(size) * smear.by.seconds().signum()
        }
        _ => 0.0,
    }
}

/// When a request comes.
struct AskedPacket {
    at: Span,
    since_last: Option<Span>,
    /// The beginning of the world.
    begin: Moment<Tai>,
}

/// Changes the server's description of itself as a fault has it.
fn apply(fault: &FaultSpec, packet: &mut Packet, asked: &AskedPacket) {
    let AskedPacket { at, since_last, begin } = *asked;
    match fault {
        FaultSpec::Claims(claims) if (claims.at.0..claims.until.0).contains(&at) => {
            packet.root_dispersion = Bound::of(claims.root_dispersion.0);
        }
        FaultSpec::Restart(restart) if (restart.at.0..restart.until.0).contains(&at) => {
            packet.leap = LeapIndicator::Unsynchronised;
        }
        FaultSpec::Leap(leap) => {
            let second = LeapTable::with(leap_at(begin)).utc_from_tai(begin + at).whole_seconds();
            if at >= leap.at.0 && second < leap_at(begin).utc_second {
                packet.leap = LeapIndicator::Insert;
            }
        }
        FaultSpec::RateLimit(limit) if since_last.is_some_and(|since| since < limit.shortest.0) => {
            packet.stratum = 0;
            packet.reference_id = u32::from_be_bytes(KissCode::RATE.bytes());
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDNIGHT_TAI_S: i64 = 1_798_675_200 + 37;

    fn server(fault: &str) -> Server {
        let spec = toml::from_str(&format!("fault = [{fault}]")).unwrap();
        Server::new(&spec, Moment::from_origin(Span::from_secs(MIDNIGHT_TAI_S)), (1, "server"))
    }

    fn ask(server: &mut Server, second: i64) -> Packet {
        let request = Packet::request(Version::V4, NtpTimestamp::from_raw(77));
        let reply = server.answer(&request.encode(), Span::from_secs(second)).unwrap();
        Packet::decode(&reply.bytes).unwrap()
    }

    /// How far the label of the reply is from the POSIX second that counts on from the beginning [s].
    fn ahead(server: &mut Server, second: i64) -> f64 {
        let expected = Moment::from_origin(Span::from_secs(MIDNIGHT_TAI_S - 37 + second));
        (ask(server, second).receive.to_server(expected) - expected).as_seconds()
    }

    #[test]
    fn wrong_times_begin_and_end() {
        let mut wrong = server("{ wrong = { at = \"100 s\", until = \"200 s\", by = \"150 ms\" } }");
        let errors = [50, 150, 250].map(|second| (ahead(&mut wrong, second) * 1e6).round());
        assert_eq!(errors, [0.0, 150_000.0, 0.0]);
        let mut drift = server("{ drift = { at = \"100 s\", until = \"300 s\", rate = \"1 ppm\" } }");
        let errors = [50, 200, 350].map(|second| (ahead(&mut drift, second) * 1e6).round());
        assert_eq!(errors, [0.0, 100.0, 0.0]);
        let mut smear = server("{ smear = { at = \"0 s\", by = \"-50 ms\" } }");
        let errors = [864, 100_000].map(|second| (ahead(&mut smear, second) * 1e3).round());
        assert_eq!(errors, [-10.0, -50.0]);
    }

    #[test]
    fn a_leap_second_is_announced_until_it_comes() {
        let mut server = server("{ leap = { at = \"1000 s\" } }");
        let announced = [500, 1500, 86_399, 86_402].map(|second| ask(&mut server, second).leap);
        let (none, insert) = (LeapIndicator::None, LeapIndicator::Insert);
        assert_eq!(announced, [none, insert, insert, none]);
        assert_eq!([86_000, 90_000].map(|second| ahead(&mut server, second).round()), [0.0, -1.0]);
    }

    #[test]
    fn claims_restarts_and_refusals_show_in_the_packet() {
        let mut server = server(
            "{ claims = { at = \"0 s\", until = \"100 s\", root_dispersion = \"100 ms\" } },
             { restart = { at = \"200 s\", until = \"300 s\" } },
             { rate-limit = { shortest = \"20 s\" } }",
        );
        assert!(ask(&mut server, 50).root_distance() >= Bound::of(Span::from_millis(100)));
        assert!(ask(&mut server, 150).root_distance() < Bound::of(Span::from_millis(1)));
        assert_eq!(ask(&mut server, 250).leap, LeapIndicator::Unsynchronised);
        assert_eq!(ask(&mut server, 260).kiss_code(), Some(KissCode::RATE));
        assert_eq!(ask(&mut server, 350).kiss_code(), None);
    }

    #[test]
    fn what_is_no_request_has_no_answer() {
        let mut server = server("");
        assert!(server.answer(&[0; 48], Span::ZERO).is_none());
        assert!(server.answer(&[], Span::ZERO).is_none());
    }
}
