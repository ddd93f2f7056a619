//! Clients that interleave (RFC 9769): what a reply says of the one before it, and chronyd with `xleave`.

use crate::common::{Place, Said, Serving};
use ffclock_units::{Moment, Server, Span};
use ffclock_wire::{NtpTimestamp, Packet, Version};
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn said() -> Said {
    Said::within(Span::from_micros(300))
}

struct Interleaver {
    socket: UdpSocket,
    number: u64,
}

impl Interleaver {
    fn of(serving: &Serving) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(serving.address).expect("a route");
        socket.set_read_timeout(Some(Duration::from_secs(2))).expect("a timeout");
        Interleaver { socket, number: 1000 }
    }

    /// The reply to a request that names the reply with this receive time, and whether it is interleaved.
    fn ask(&mut self, named: NtpTimestamp) -> (Packet, bool) {
        self.number += 2;
        let [transmit, receive] = [self.number, self.number + 1].map(NtpTimestamp::from_raw);
        let request = Packet { origin: named, receive, ..Packet::request(Version::V4, transmit) };
        self.socket.send(&request.encode()).expect("it is sent");
        let mut bytes = [0; 100];
        assert_eq!(self.socket.recv(&mut bytes).expect("a reply"), 48);
        let reply = Packet::decode(&bytes[..48]).expect("a header");
        assert!(reply.origin == transmit || reply.origin == receive, "{reply:?}");
        assert_ne!(reply.receive, reply.transmit);
        (reply, reply.origin == receive)
    }
}

/// RFC 9769, section 2, from the first request on, with two lost replies: what is named once is not said twice.
#[test]
fn a_reply_says_when_the_one_before_left() {
    let place = Place::new();
    place.publish(&mut place.writer(), said());
    let serving = place.serve("rate_interval = \"0 s\"");
    let mut client = Interleaver::of(&serving);
    let (first, is_interleaved) = client.ask(NtpTimestamp::MISSING);
    assert!(!is_interleaved);
    let (mut before, is_interleaved) = client.ask(first.receive);
    assert!(!is_interleaved, "a client that does not interleave is not remembered");
    let (mut later, mut interleaved) = (Vec::new(), 0);
    for _ in 0..100 {
        let now: Moment<Server> = place.truth.now();
        let (reply, is_interleaved) = client.ask(before.receive);
        if !is_interleaved {
            // A thread that is kept from its work takes no stamp over that has become old.
            before = reply;
            continue;
        }
        interleaved += 1;
        let [came, left] = [before.receive, reply.transmit].map(|stamp| stamp.to_server(now));
        // The page is as good as its bound, and all times are read from it alike.
        assert!(left > came && left < reply.receive.to_server(now), "{came:?} {left:?}");
        later.push(left - came);
        before = reply;
    }
    assert!(interleaved > 50, "{interleaved} of 100");
    later.sort();
    let median = later[later.len() / 2];
    assert!(median < Span::from_millis(5), "it leaves soon after its request came: {median}");
    interleaved += u64::from(client.ask(before.receive).1);
    let (_, is_interleaved) = client.ask(before.receive);
    assert!(!is_interleaved, "nothing is said twice");
    assert_eq!(serving.count("interleaved"), interleaved);
}

/// The kernel's stamp is not after the reply was received. A basic reply states a time before it until the server knows
/// how late such replies leave, and from then on one that is closer.
#[test]
fn the_kernels_stamp_shows_how_late_a_reply_leaves_and_the_next_ones_allow_for_it() {
    let place = Place::new();
    place.publish(&mut place.writer(), said());
    let serving = place.serve("rate_interval = \"0 s\"");
    let mut client = Interleaver::of(&serving);
    let (mut named, _) = client.ask(NtpTimestamp::MISSING);
    let [mut unforeseen, mut foreseen] = [Vec::new(), Vec::new()];
    for round in 0..60 {
        // A request that names nothing that is known gets a basic reply, whose leaving is known next time.
        let (basic, is_interleaved) = client.ask(NtpTimestamp::from_raw(named.receive.raw() ^ 0x1_0000));
        assert!(!is_interleaved);
        let received = place.truth.now();
        let (reply, is_interleaved) = client.ask(basic.receive);
        named = reply;
        if !is_interleaved {
            continue;
        }
        let [stated, left] = [basic.transmit, reply.transmit].map(|stamp| stamp.to_server(received));
        assert!(left <= received + Span::from_micros(2), "{}", (left - received).as_nanos());
        // Two replies a round are stamped, and eight are wanted.
        match round {
            0..3 => {
                assert!(left >= stated, "{}", (left - stated).as_nanos());
                unforeseen.push(left - stated);
            }
            5.. => foreseen.push((left - stated).abs()),
            _ => {}
        }
    }
    assert!(unforeseen.len() > 1 && foreseen.len() > 25, "{} and {}", unforeseen.len(), foreseen.len());
    let [before, after] = [unforeseen, foreseen].map(|mut spans| {
        spans.sort();
        spans[spans.len() / 2]
    });
    println!("a reply leaves {before} after the time that it states, and then {after} from it (medians)");
    assert!(before > Span::from_nanos(100) && after < before, "{before:?} {after:?}");
}

#[test]
fn without_the_option_every_reply_is_basic() {
    let place = Place::new();
    place.publish(&mut place.writer(), said());
    let serving = place.serve("interleaved = false");
    let mut client = Interleaver::of(&serving);
    let mut named = NtpTimestamp::MISSING;
    for _ in 0..5 {
        let (reply, is_interleaved) = client.ask(named);
        assert!(!is_interleaved);
        named = reply.receive;
    }
    assert_eq!(serving.count("interleaved"), 0);
}

/// `chronyd -Q` prints how wrong it takes the system clock to be, and sets nothing.
#[test]
fn chronyd_with_xleave_is_answered_in_its_mode() {
    let chronyd = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/peers/chronyd");
    if !Command::new(&chronyd).arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("SKIP: chronyd is not unpacked");
        return;
    }
    let place = Place::new();
    place.publish(&mut place.writer(), Said { error: Span::from_millis(250), ..Said::within(Span::from_millis(300)) });
    let serving = place.serve("");
    let server = format!("server 127.0.0.1 port {} xleave iburst maxsamples 6", serving.address.port());
    let pid = format!("pidfile {}/chronyd.pid", place.directory.display());
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let output = Command::new(&chronyd)
        .args(["-u", String::from_utf8(user).unwrap().trim()])
        .args(["-Q", "-x", "-t", "30", &server, &pid, "cmdport 0", "bindcmdaddress /"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    let wrong = said.split("clock wrong by ").nth(1).and_then(|rest| rest.split(' ').next());
    let wrong: f64 = wrong.unwrap_or_else(|| panic!("{said}")).parse().unwrap();
    assert!((wrong - 0.25).abs() < 0.01, "{said}");
    assert!(serving.count("interleaved") > 0, "{}\n{said}", serving.status());
}
