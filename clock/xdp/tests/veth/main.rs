//! The program at a device, native and generic: two hosts joined by a pair of devices answer and ask. Each test runs
//! itself again as the server's host, and from there as the client's.
//!
//! What a kernel or a user is not allowed prints `SKIP: reason`.
#![expect(clippy::unwrap_used, reason = "a test may fail by panic, helpers of tests too")]

mod hosts;
mod serving;

use ffclock_counter::HostClock;
use ffclock_units::{Moment, Span};
use ffclock_wire::{NtpTimestamp, Packet, Version};
use ffclock_xdp::{FastOutcome, FastPath, FastPathError, RequestLimit, Rules, XdpHook};
use hosts::{Client, DEVICE, PORT, SERVER, SERVER_V6, again_as_server, hindrance, place, role, run};
use serving::while_renewing;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, UdpSocket};
use std::process::Stdio;
use std::time::Duration;

/// The time that the server serves, without an error.
fn true_time() -> Moment<ffclock_units::Server> {
    Moment::from_origin(HostClock::MonotonicRaw.read().unwrap().since_origin())
}

const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the rest of a test on the server's host.
fn on_two_hosts(name: &str, part: impl FnOnce(Client)) {
    if role().is_none() {
        if let Some(reason) = hindrance() {
            return println!("SKIP: {reason}");
        }
        let (said, succeeded) = again_as_server(&["--exact", name, "--nocapture", "--test-threads=1"]);
        println!("{said}");
        assert!(succeeded, "on the server's host");
        return;
    }
    match Client::join() {
        Ok(client) => part(client),
        Err(FastPathError::Refused(reason)) if reason.contains("CAP_BPF") => println!("SKIP: XDP: {reason}"),
        Err(error) => panic!("{error}"),
    }
}

/// What the client's host saw: one line for each request.
fn client(client: &Client, task: &str) -> String {
    let myself = std::env::current_exe().unwrap();
    let mut command = client.command();
    command.arg(myself).args(["--exact", "asks", "--nocapture"]).env("FFCLOCK_XDP_TASK", task);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    said.lines().find_map(|line| line.split_once("client: ")).map(|(_, said)| said.to_owned()).unwrap_or_default()
}

fn asking(target: IpAddr) -> UdpSocket {
    let any: IpAddr = if target.is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
    let socket = UdpSocket::bind((any, 0)).unwrap();
    socket.connect((target, PORT)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    socket
}

/// Asks until there is an answer; the first request of a pair of hosts may wait for their link addresses.
fn exchange(socket: &UdpSocket, number: u64) -> Option<(Packet, Moment<ffclock_units::Server>)> {
    let request = Packet::request(Version::V4, NtpTimestamp::from_raw(number | 1 << 63));
    let sent = true_time();
    socket.send(&request.encode()).ok()?;
    let mut reply = [0; 100];
    let length = socket.recv(&mut reply).ok()?;
    assert_eq!(length, 48);
    let packet = Packet::decode(&reply[..length]).unwrap();
    assert_eq!(packet.origin, request.transmit);
    Some((packet, sent))
}

/// The part of the tests that runs on the client's host, and nothing elsewhere.
#[test]
fn asks() {
    let Ok(task) = std::env::var("FFCLOCK_XDP_TASK") else { return };
    let said = match task.as_str() {
        "claims" => [SERVER.into(), SERVER_V6.into()].map(hold_claims).iter().sum::<usize>().to_string(),
        "once" => u8::from(exchange(&asking(SERVER.into()), 1).is_some()).to_string(),
        "hundred" => {
            let socket = asking(SERVER.into());
            socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            (0..100).filter(|number| exchange(&socket, *number).is_some()).count().to_string()
        }
        "odd" => {
            let socket = asking(SERVER.into());
            [52, 12, 68].iter().for_each(|length| drop(socket.send(&vec![0x23; *length])));
            "sent".to_owned()
        }
        other => panic!("{other}"),
    };
    println!("client: {said}");
}

/// How many replies there were to a thousand requests. The time in each lies within its own claim, of what passed
/// between sending and receiving.
fn hold_claims(server: IpAddr) -> usize {
    let socket = asking(server);
    (0..1000)
        .filter_map(|number| exchange(&socket, number))
        .inspect(|(packet, sent)| {
            let received = true_time();
            let claim = packet.root_dispersion.as_span();
            // RFC 5905, appendix A.5.5.2: half the round trip and what the server states.
            let time = packet.transmit.to_server(*sent);
            assert!(time >= *sent - claim && time <= received + claim, "{sent:?} {time:?} {received:?} {claim:?}");
            assert!(claim < Span::from_millis(1), "{claim:?}");
        })
        .count()
}

fn serving(hook: XdpHook, rules: &Rules) -> FastPath {
    let mut path = FastPath::open(&place(DEVICE, hook)).unwrap();
    path.serve(&[SERVER.into(), SERVER_V6.into()]).unwrap();
    path.rule(rules).unwrap();
    path
}

fn every_claim_holds(hook: XdpHook, shown: &str) {
    let name = if hook == XdpHook::Native { "every_claim_holds_native" } else { "every_claim_holds_generic" };
    on_two_hosts(name, |host| {
        let mut path = serving(hook, &Rules::default());
        assert_eq!(path.hook(), hook);
        let link = run("ip", &["link", "show", DEVICE]);
        assert!(link.contains(shown), "{link}");
        let answered: usize = while_renewing(&mut path, || client(&host, "claims")).parse().unwrap();
        assert!(answered >= 1900, "{answered} of 2000 answered");
        assert!(path.counts().unwrap().of(FastOutcome::Replied) as usize >= answered);
    });
}

#[test]
fn every_claim_holds_native() {
    every_claim_holds(XdpHook::Native, " xdp ");
}

#[test]
fn every_claim_holds_generic() {
    every_claim_holds(XdpHook::Generic, "xdpgeneric");
}

#[test]
fn odd_requests_reach_the_socket_and_all_do_when_the_path_is_gone() {
    on_two_hosts("odd_requests_reach_the_socket_and_all_do_when_the_path_is_gone", |host| {
        let socket = UdpSocket::bind((SERVER, PORT)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut buffer = [0; 100];
        for hook in [XdpHook::Native, XdpHook::Generic] {
            let mut path = serving(hook, &Rules::default());
            let taken = while_renewing(&mut path, || {
                client(&host, "odd");
                [(); 3].map(|()| socket.recv(&mut buffer).unwrap())
            });
            assert_eq!(taken, [52, 12, 68]);
            assert_eq!(path.counts().unwrap().of(FastOutcome::PassedForm), 3);
            drop(path);
            assert!(!run("ip", &["link", "show", DEVICE]).contains("xdp"), "detached");
            assert_eq!(client(&host, "once"), "0");
            assert_eq!(socket.recv(&mut buffer).unwrap(), 48);
        }
    });
}

#[test]
fn a_limit_holds_on_the_wire() {
    on_two_hosts("a_limit_holds_on_the_wire", |host| {
        let limit = Some(RequestLimit { interval: Span::from_secs(60), burst: 8, leak: 0 });
        let mut path = serving(XdpHook::Native, &Rules { limit, ..Rules::default() });
        assert_eq!(while_renewing(&mut path, || client(&host, "hundred")), "8");
        assert_eq!(path.counts().unwrap().of(FastOutcome::Limited), 92);
    });
}

#[test]
fn another_program_is_left_alone_and_a_missing_device_is_named() {
    on_two_hosts("another_program_is_left_alone_and_a_missing_device_is_named", |_host| {
        for (first, second) in [(XdpHook::Native, XdpHook::Auto), (XdpHook::Generic, XdpHook::Native)] {
            let _there = FastPath::open(&place(DEVICE, first)).unwrap();
            let error = FastPath::open(&place(DEVICE, second)).unwrap_err();
            assert!(matches!(&error, FastPathError::Occupied { program, .. } if *program > 0), "{error}");
        }
        assert_eq!(FastPath::open(&place("nowhere", XdpHook::Auto)).unwrap_err().to_string(), "no device nowhere");
        assert_eq!(
            FastPath::open(&place("lo", XdpHook::Auto)).unwrap().hook(),
            XdpHook::Generic,
            "loopback has no XDP"
        );
        let error = FastPath::open(&place("lo", XdpHook::Native)).unwrap_err().to_string();
        assert!(error.contains("the driver has no XDP"), "{error}");
    });
}

/// Holds the program until it is killed; a part of the next test.
#[test]
fn holds() {
    if std::env::var("FFCLOCK_XDP_HOLD").is_ok() {
        let _path = serving(XdpHook::Auto, &Rules::default());
        println!("holding");
        std::thread::sleep(Duration::from_secs(100));
    }
}

#[test]
fn the_program_goes_with_a_process_that_is_killed() {
    on_two_hosts("the_program_goes_with_a_process_that_is_killed", |_host| {
        let myself = std::env::current_exe().unwrap();
        let mut command = std::process::Command::new(myself);
        command.args(["--exact", "holds", "--nocapture"]).env("FFCLOCK_XDP_HOLD", "1").stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.contains("holding")));
        assert!(run("ip", &["link", "show", DEVICE]).contains(" xdp "));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!run("ip", &["link", "show", DEVICE]).contains("xdp"), "gone");
    });
}
