//! ptp4l at the other end of a pair of network devices, live and both ways: our follower follows it, and it follows our
//! grandmaster. The driver below has the least that a driver needs, with stamps of user space.
//!
//! Each test runs itself again on a host of its own, a network namespace that ends with it. Where none may be made, or
//! ptp4l is not unpacked (tools/setup peers), it prints `SKIP: reason`.

mod hosts;

use ffclock_ptp::*;
use ffclock_units::{
    Bound, Counter, Exchange, LeapTable, Moment, Mono, Period, Server, Span, Stamp, StampLocation, StandardUncertainty,
    Status, Tai, TaiReading, Ticks,
};
use hosts::{OURS, Other, Process, THEIRS, ip, is_on_a_host};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const EVERYONE: Ipv4Addr = Ipv4Addr::new(224, 0, 1, 129);
const NEIGHBOUR: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 107);
const PATIENCE: Duration = Duration::from_secs(40);
/// More than a busy machine delays a message.
const SLOWEST: Span = Span::from_millis(500);

/// ptp4l on the other host, with these options and this configuration.
struct Ptp4l {
    process: Process,
    _other: Other,
}

impl Ptp4l {
    fn join(options: &str, configuration: &str) -> Ptp4l {
        let other = Other::join();
        ip("route add 224.0.0.0/4 dev ours0");
        let options = format!("-4 {options} --logMinPdelayReqInterval -2 --summary_interval -2");
        let process = Process::start(other.ptp4l(&options, configuration), Stdio::piped());
        Ptp4l { process, _other: other }
    }
}

/// Both sockets, and the clocks of this host.
struct Wire {
    event: UdpSocket,
    general: UdpSocket,
    begin: Instant,
    utc_at_begin: Span,
}

/// Both clocks at one moment: read again where this host was held up between them.
fn both_clocks() -> (Instant, Span) {
    loop {
        let begin = Instant::now();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        if begin.elapsed() < Duration::from_micros(100) {
            return (begin, Span::from_nanos(since.as_nanos() as i128));
        }
    }
}

impl Wire {
    fn open() -> Wire {
        let bound = |port| {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).expect("a port of our own host");
            for group in [EVERYONE, NEIGHBOUR] {
                socket.join_multicast_v4(&group, &ipv4(OURS)).expect("a group");
            }
            socket.set_multicast_loop_v4(false).expect("an option");
            socket.set_nonblocking(true).expect("an option");
            socket
        };
        let (event, general) = (bound(319), bound(320));
        let (begin, utc_at_begin) = both_clocks();
        Wire { event, general, begin, utc_at_begin }
    }

    fn elapsed(&self) -> Span {
        Span::from_nanos(self.begin.elapsed().as_nanos() as i128)
    }

    fn now(&self) -> Moment<Mono> {
        Moment::from_origin(Span::from_secs(1) + self.elapsed())
    }

    fn stamp(&self) -> Stamp {
        let counter = Counter::from_raw(self.begin.elapsed().as_nanos() as u64);
        Stamp { counter, width: Ticks::ZERO, location: StampLocation::User }
    }

    /// By the clock that ptp4l has too.
    fn tai(&self, since_begin: Span) -> Moment<Tai> {
        LeapTable::built_in().tai_from_server(Moment::<Server>::from_origin(self.utc_at_begin + since_begin))
    }

    fn true_time(&self, stamp: Stamp) -> Moment<Tai> {
        self.tai(Span::from_nanos(i128::from(stamp.counter.raw())))
    }

    fn send(&self, transmit: &PtpTransmit) {
        let (socket, port) = match transmit.channel {
            Channel::Event => (&self.event, 319),
            Channel::General => (&self.general, 320),
        };
        let to = match transmit.audience {
            Audience::Everyone => EVERYONE,
            Audience::Neighbour => NEIGHBOUR,
            Audience::One(_) => ipv4(THEIRS),
        };
        socket.send_to(transmit.octets.as_slice(), (to, port)).expect("the devices are up");
    }

    /// A datagram that is there, or nothing after a millisecond.
    fn receive(&self, bytes: &mut [u8]) -> Option<(usize, SocketAddr)> {
        let arrived = [&self.event, &self.general].into_iter().find_map(|socket| socket.recv_from(bytes).ok());
        if arrived.is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        arrived
    }
}

fn ipv4(text: &str) -> Ipv4Addr {
    text.parse().expect("an address")
}

fn address(ip: IpAddr) -> NetworkAddress {
    match ip {
        IpAddr::V4(ip) => NetworkAddress(ip.to_ipv6_mapped().octets()),
        IpAddr::V6(ip) => NetworkAddress(ip.octets()),
    }
}

fn own() -> PortIdentity {
    PortIdentity { clock: ClockIdentity::from_mac([2, 0, 0, 0, 0, 0x77]), port: 1 }
}

fn config() -> FollowerConfig {
    let config = FollowerConfig::of(Period::from_hertz(1e9).expect("a period"));
    let claims = ClaimRules { accuracy_unclaimed: Bound::of(Span::from_millis(1)), ..config.claims };
    FollowerConfig {
        arbitrary: ArbitraryTimescale::Utc,
        claims,
        log_sync_interval: -2,
        log_delay_interval: -2,
        ..config
    }
}

/// What a follower has seen.
#[derive(Default)]
struct Seen {
    observations: usize,
    links: Vec<LinkDelay>,
    exchanges: Vec<Exchange>,
}

/// Follows ptp4l until `is_enough`.
fn follow(wire: &Wire, config: FollowerConfig, is_enough: impl Fn(&Seen) -> bool) -> Seen {
    let mut follower = Follower::new(config, own(), wire.now());
    let mut pairing = ExchangePairing::new(config.period, Bound::of(Span::from_secs(1)));
    let (mut seen, mut bytes) = (Seen::default(), [0; 2048]);
    while !is_enough(&seen) {
        assert!(wire.begin.elapsed() < PATIENCE, "{:?} {:?}", follower.master(), follower.statistics());
        if let Some((length, _)) = wire.receive(&mut bytes) {
            follower.handle_message(&bytes[..length], wire.stamp(), wire.now());
        }
        follower.handle_timeout(wire.now(), wire.stamp().counter.raw() << 40);
        while let Some(transmit) = follower.poll_transmit() {
            let sent = wire.stamp();
            wire.send(&transmit);
            transmit.ticket.into_iter().for_each(|ticket| follower.handle_sent(ticket, sent));
        }
        while let Some(event) = follower.poll_event() {
            match event {
                PtpEvent::LinkDelay(delay) => seen.links.push(delay),
                PtpEvent::Observation(observation) => {
                    seen.observations += 1;
                    let claim = follower.claim().expect("a master is followed");
                    seen.exchanges.extend(pairing.observe(observation, claim).expect("possible"));
                }
                _ => {}
            }
        }
    }
    seen
}

/// Delays are not negative, by the clock that both ends have, and a millisecond for its slewing.
fn check_causality(wire: &Wire, exchanges: &[Exchange]) {
    let slack = Span::from_millis(1);
    for exchange in exchanges {
        let there = exchange.server_in - wire.true_time(exchange.sent);
        let back = wire.true_time(exchange.received) - exchange.server_out;
        for way in [there, back] {
            assert!(-slack <= way && way < SLOWEST, "{there:?} {back:?}");
        }
    }
}

#[test]
fn ptp4l_is_followed_by_multicast() {
    if !is_on_a_host("ptp4l_is_followed_by_multicast", "ptp4l") {
        return;
    }
    let _ptp4l = Ptp4l::join("", "");
    let wire = Wire::open();
    let seen = follow(&wire, config(), |seen| seen.exchanges.len() >= 5);
    assert!(seen.observations > seen.exchanges.len());
    check_causality(&wire, &seen.exchanges);
}

#[test]
fn ptp4l_is_followed_by_unicast() {
    if !is_on_a_host("ptp4l_is_followed_by_unicast", "ptp4l") {
        return;
    }
    let _ptp4l = Ptp4l::join("--unicast_listen 1 --inhibit_multicast_service 1", "");
    let wire = Wire::open();
    let config = FollowerConfig { delivery: Delivery::Unicast(address(ipv4(THEIRS).into())), ..config() };
    check_causality(&wire, &follow(&wire, config, |seen| seen.exchanges.len() >= 5).exchanges);
}

#[test]
fn a_link_to_ptp4l_is_measured() {
    if !is_on_a_host("a_link_to_ptp4l_is_measured", "ptp4l") {
        return;
    }
    let _ptp4l = Ptp4l::join("-P", "");
    let wire = Wire::open();
    let config = FollowerConfig { mechanism: DelayMechanism::PeerToPeer, ..config() };
    let seen = follow(&wire, config, |seen| seen.links.len() >= 5 && seen.observations >= 5);
    for link in seen.links {
        let trip = Span::from_nanos(i128::from((link.received.counter - link.sent.counter).raw()));
        assert!(link.turnaround <= trip + Span::from_micros(100) && trip < SLOWEST, "{link:?}");
    }
}

/// Serves the time of the system clock until ptp4l says what it thinks of it; its offset from its master [ns].
fn serve(ptp4l: &mut Ptp4l, config: GrandmasterConfig) -> i64 {
    let wire = Wire::open();
    let said = ptp4l.process.0.stdout.take().expect("a pipe");
    let (heard, offsets) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(said).lines().map_while(Result::ok) {
            println!("{line}");
            let words: Vec<_> = line.split_whitespace().collect();
            let at = words.iter().position(|word| *word == "offset").filter(|at| words[at - 1] == "master");
            let offset = at.and_then(|at| words.get(at + 1)?.parse::<i64>().ok());
            if offset.is_some_and(|offset| heard.send(offset).is_err()) {
                return;
            }
        }
    });
    let mut grandmaster = Grandmaster::new(config, own(), wire.now());
    let mut bytes = [0; 2048];
    loop {
        assert!(wire.begin.elapsed() < PATIENCE, "{:?}", grandmaster.statistics());
        if let Ok(offset) = offsets.try_recv() {
            return offset;
        }
        let uncertainty = StandardUncertainty::of(Span::from_micros(10));
        let (bound, status) = (Bound::of(Span::from_micros(50)), Status::Synchronised);
        let reading = TaiReading { time: wire.tai(wire.elapsed()), uncertainty, noise: uncertainty, bound, status };
        let claim = GrandmasterClaim::of(
            &reading,
            &GrandmasterLimits::default(),
            LeapTable::built_in().step_around(reading.time),
        );
        grandmaster.set_claim(claim, wire.now());
        if let Some((length, from)) = wire.receive(&mut bytes) {
            let arrived = (wire.tai(wire.elapsed()), Passage::to_group(address(from.ip())));
            grandmaster.handle_message(&bytes[..length], arrived, wire.now());
        }
        grandmaster.handle_timeout(wire.now());
        while let Some(transmit) = grandmaster.poll_transmit() {
            let left = wire.tai(wire.elapsed());
            wire.send(&transmit);
            transmit.ticket.into_iter().for_each(|ticket| grandmaster.handle_sent(ticket, left));
        }
    }
}

fn served(group: GroupService) -> GrandmasterConfig {
    GrandmasterConfig {
        group,
        log_announce_interval: -1,
        log_sync_interval: -2,
        log_delay_interval: -2,
        ..GrandmasterConfig::default()
    }
}

/// ptp4l compares with its system clock, ours too, and takes TAI - UTC from our announcement.
fn check_offset(nanoseconds: i64) {
    assert!(Span::from_nanos(i128::from(nanoseconds)).abs() < SLOWEST, "{nanoseconds} ns");
}

#[test]
fn ptp4l_follows_our_grandmaster_by_multicast() {
    if !is_on_a_host("ptp4l_follows_our_grandmaster_by_multicast", "ptp4l") {
        return;
    }
    check_offset(serve(&mut Ptp4l::join("-s", ""), served(GroupService::Multicast)));
}

#[test]
fn ptp4l_follows_our_grandmaster_over_a_measured_link() {
    if !is_on_a_host("ptp4l_follows_our_grandmaster_over_a_measured_link", "ptp4l") {
        return;
    }
    check_offset(serve(&mut Ptp4l::join("-s -P", ""), served(GroupService::Multicast)));
}

#[test]
fn ptp4l_follows_our_grandmaster_by_unicast() {
    if !is_on_a_host("ptp4l_follows_our_grandmaster_by_unicast", "ptp4l") {
        return;
    }
    let table = "inhibit_multicast_service 1\n[unicast_master_table]\ntable_id 1\nlogQueryInterval -1\n";
    let table = format!("{table}UDPv4 {OURS}\n[theirs0]\nunicast_master_table 1\n");
    check_offset(serve(&mut Ptp4l::join("-s", &table), served(GroupService::UnicastOnly)));
}
