//! ptp4l at the other end of a pair of network devices, live and both ways: our follower follows it, and it follows our
//! grandmaster. The driver below has the least that a driver needs, with stamps of user space.
//!
//! Each test runs itself again on a host of its own, a network namespace that ends with it. Where none may be made, or
//! ptp4l is not unpacked (tools/setup peers), it prints `SKIP: reason`.

use ffclock_ptp::*;
use ffclock_units::{
    Bound, Counter, Exchange, LeapTable, Moment, Mono, Period, Server, Span, Stamp, StampLocation, StandardUncertainty,
    Status, Tai, TaiReading, Ticks,
};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const OURS: Ipv4Addr = Ipv4Addr::new(10, 81, 0, 1);
const THEIRS: Ipv4Addr = Ipv4Addr::new(10, 81, 0, 2);
const EVERYONE: Ipv4Addr = Ipv4Addr::new(224, 0, 1, 129);
const NEIGHBOUR: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 107);
/// Set for a process that runs on a host of its own.
const ON_HOST: &str = "FFCLOCK_PTP_HOST";
const PATIENCE: Duration = Duration::from_secs(40);
/// More than a busy machine delays a message.
const SLOWEST: Span = Span::from_millis(500);

fn peer() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/peers/ptp4l")
}

fn succeeds(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether the test goes on: on a host of its own. Outside of one it is run again inside, and must succeed there.
fn is_on_a_host(test: &str) -> bool {
    if std::env::var_os(ON_HOST).is_some() {
        return true;
    }
    if !succeeds(peer(), &["--version"]) {
        println!("SKIP: ptp4l does not start here (tools/setup peers says why)");
        return false;
    }
    if !succeeds("unshare", &["--net", "ip", "link", "add", "ours0", "type", "veth", "peer", "name", "ours1"]) {
        println!("SKIP: no network namespace may be made here, so {test} was left out");
        return false;
    }
    let mut again = Command::new("setpriv");
    again.args(["--pdeathsig", "KILL", "unshare", "--net", "--"]);
    again.arg(std::env::current_exe().expect("a path")).args(["--exact", test, "--nocapture"]).env(ON_HOST, "1");
    let ended = again.output().expect("setpriv");
    let said = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
    false
}

/// Ended when dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The other host, with ptp4l on it.
struct Other {
    ptp4l: Process,
    _holder: Process,
    scratch: PathBuf,
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

fn ip(arguments: &str) {
    let words: Vec<_> = arguments.split(' ').collect();
    assert!(succeeds("ip", &words), "ip {arguments}");
}

impl Other {
    /// Joins this process's namespace and a new one, in which ptp4l runs with these options and this configuration.
    fn join(options: &str, configuration: &str) -> Other {
        let mut holding = Command::new("setpriv");
        holding.args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", "1000"]).stdin(Stdio::null());
        let holder = Process(holding.spawn().expect("setpriv"));
        let its = format!("/proc/{}/ns/net", holder.0.id());
        let own = std::fs::read_link("/proc/self/ns/net").expect("/proc");
        while std::fs::read_link(&its).is_ok_and(|network| network == own) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let inside = holder.0.id().to_string();
        ip(&format!("link add ours0 type veth peer name theirs0 netns {inside}"));
        ip(&format!("address add {OURS}/24 dev ours0"));
        ip("link set ours0 up");
        ip("route add 224.0.0.0/4 dev ours0");
        let there = format!("ip address add {THEIRS}/24 dev theirs0 && ip link set theirs0 up && ip link set lo up");
        assert!(succeeds("nsenter", &["--net", "--target", &inside, "--", "sh", "-c", &there]), "{there}");
        let scratch = std::env::temp_dir().join(format!("ffclock-ptp-{}", std::process::id()));
        std::fs::create_dir_all(&scratch).expect("a directory");
        let file = scratch.join("ptp4l.conf");
        std::fs::write(&file, format!("[global]\n{configuration}")).expect("a file");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "nsenter", "--net", "--target", &inside, "--"]).arg(peer());
        command.args(["-S", "-4", "-m", "-i", "theirs0", "--free_running", "1", "--uds_address"]);
        command.arg(scratch.join("uds")).arg("-f").arg(file).args(options.split_whitespace());
        command.args("--logSyncInterval -2 --logAnnounceInterval -1 --logMinDelayReqInterval -2".split(' '));
        command.args("--logMinPdelayReqInterval -2 --summary_interval -2".split(' '));
        let ptp4l = Process(command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().expect("setpriv"));
        Other { ptp4l, _holder: holder, scratch }
    }
}

/// Both sockets, and the clocks of this host.
struct Wire {
    event: UdpSocket,
    general: UdpSocket,
    begin: Instant,
    utc_at_begin: Span,
}

impl Wire {
    fn open() -> Wire {
        let bound = |port| {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).expect("a port of our own host");
            for group in [EVERYONE, NEIGHBOUR] {
                socket.join_multicast_v4(&group, &OURS).expect("a group");
            }
            socket.set_multicast_loop_v4(false).expect("an option");
            socket.set_nonblocking(true).expect("an option");
            socket
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let utc_at_begin = Span::from_nanos(since.as_nanos() as i128);
        Wire { event: bound(319), general: bound(320), begin: Instant::now(), utc_at_begin }
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
            Audience::One(_) => THEIRS,
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
    if !is_on_a_host("ptp4l_is_followed_by_multicast") {
        return;
    }
    let _other = Other::join("", "");
    let wire = Wire::open();
    let seen = follow(&wire, config(), |seen| seen.exchanges.len() >= 5);
    assert!(seen.observations > seen.exchanges.len());
    check_causality(&wire, &seen.exchanges);
}

#[test]
fn ptp4l_is_followed_by_unicast() {
    if !is_on_a_host("ptp4l_is_followed_by_unicast") {
        return;
    }
    let _other = Other::join("--unicast_listen 1 --inhibit_multicast_service 1", "");
    let wire = Wire::open();
    let config = FollowerConfig { delivery: Delivery::Unicast(address(THEIRS.into())), ..config() };
    check_causality(&wire, &follow(&wire, config, |seen| seen.exchanges.len() >= 5).exchanges);
}

#[test]
fn a_link_to_ptp4l_is_measured() {
    if !is_on_a_host("a_link_to_ptp4l_is_measured") {
        return;
    }
    let _other = Other::join("-P", "");
    let wire = Wire::open();
    let config = FollowerConfig { mechanism: DelayMechanism::PeerToPeer, ..config() };
    let seen = follow(&wire, config, |seen| seen.links.len() >= 5 && seen.observations >= 5);
    for link in seen.links {
        let trip = Span::from_nanos(i128::from((link.received.counter - link.sent.counter).raw()));
        assert!(link.turnaround <= trip + Span::from_micros(100) && trip < SLOWEST, "{link:?}");
    }
}

/// Serves the time of the system clock until ptp4l says what it thinks of it; its offset from its master [ns].
fn serve(other: &mut Other, config: GrandmasterConfig) -> i64 {
    let wire = Wire::open();
    let said = other.ptp4l.0.stdout.take().expect("a pipe");
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
        let claim = GrandmasterClaim::of(&reading, &GrandmasterLimits::default(), &LeapTable::built_in());
        grandmaster.set_claim(claim);
        if let Some((length, from)) = wire.receive(&mut bytes) {
            let arrived = (wire.tai(wire.elapsed()), address(from.ip()));
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
    if !is_on_a_host("ptp4l_follows_our_grandmaster_by_multicast") {
        return;
    }
    check_offset(serve(&mut Other::join("-s", ""), served(GroupService::Multicast)));
}

#[test]
fn ptp4l_follows_our_grandmaster_over_a_measured_link() {
    if !is_on_a_host("ptp4l_follows_our_grandmaster_over_a_measured_link") {
        return;
    }
    check_offset(serve(&mut Other::join("-s -P", ""), served(GroupService::Multicast)));
}

#[test]
fn ptp4l_follows_our_grandmaster_by_unicast() {
    if !is_on_a_host("ptp4l_follows_our_grandmaster_by_unicast") {
        return;
    }
    let table = "inhibit_multicast_service 1\n[unicast_master_table]\ntable_id 1\nlogQueryInterval -1\n";
    let table = format!("{table}UDPv4 {OURS}\n[theirs0]\nunicast_master_table 1\n");
    check_offset(serve(&mut Other::join("-s", &table), served(GroupService::UnicastOnly)));
}
