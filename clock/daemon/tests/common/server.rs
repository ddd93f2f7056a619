//! A reference server for the tests: its time is a known function of the counter, and it can be made to misbehave.

use ffclock_counter::CounterId;
use ffclock_units::{Bound, Counter, LeapTable, Moment, Period, Span, Tai, Utc};
use ffclock_wire::{HEADER_BYTES, LeapIndicator, LogSeconds, NtpTimestamp, Packet, Version};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The true time as a function of the counter.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    kind: CounterId,
    origin: Counter,
    time: Moment<Tai>,
    period: Period,
}

impl Truth {
    /// The system clock's time, from the closest pair of readings of many: this program may be held up between two.
    pub fn beginning_now(kind: CounterId) -> Self {
        let pairs = (0..64).map(|_| {
            let before = ffclock_counter::read_ordered(kind);
            let truth = Self::beginning_at(kind, ffclock_sys::system_utc_now());
            (truth.origin - before, truth)
        });
        pairs.min_by_key(|(apart, _)| *apart).expect("there are pairs").1
    }

    /// A truth in which it is `time` now.
    pub fn beginning_at(kind: CounterId, time: Moment<Utc>) -> Self {
        let period = ffclock_counter::nominal(kind).expect("the counter has a nominal period").period;
        let time = LeapTable::built_in().tai_from_utc(time);
        Truth { kind, origin: ffclock_counter::read_ordered(kind), time, period }
    }

    pub fn at(&self, counter: Counter) -> Moment<Tai> {
        self.time + self.period * (counter - self.origin)
    }

    fn now(&self) -> Moment<Tai> {
        self.at(ffclock_counter::read_ordered(self.kind))
    }
}

/// The server's behaviour on a request.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// Added to the true time.
    pub lie: Span,
    pub stratum: u8,
    pub leap: LeapIndicator,
    /// The leap seconds that its UTC contains.
    pub leaps: LeapTable,
    pub reference_id: u32,
    pub root_dispersion: Bound,
    /// Answers nothing.
    pub silent: bool,
    /// Answers from another port than it was asked at.
    pub elsewhere: bool,
    /// Sends these datagrams before the proper reply, each made from the request's transmit field.
    pub before: Vec<fn(&Packet, &Packet) -> Vec<u8>>,
    /// How often the reply is sent.
    pub copies: usize,
    /// The number of packets without an answer that are sent in place of a reply, as fast as possible.
    pub flood: usize,
}

impl Default for Behaviour {
    fn default() -> Self {
        Behaviour {
            lie: Span::ZERO,
            stratum: 1,
            leap: LeapIndicator::None,
            leaps: LeapTable::built_in(),
            reference_id: u32::from_be_bytes(*b"TEST"),
            root_dispersion: Bound::of(Span::from_micros(1)),
            silent: false,
            elsewhere: false,
            before: Vec::new(),
            copies: 1,
            flood: 0,
        }
    }
}

/// A running server; it ends when dropped.
pub struct TestServer {
    pub address: SocketAddr,
    behaviour: Arc<Mutex<Behaviour>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    pub fn start(listen: &str, truth: Truth) -> Self {
        let socket = UdpSocket::bind(listen).expect("a loopback port");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        let address = socket.local_addr().expect("an address");
        let behaviour = Arc::new(Mutex::new(Behaviour::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, stopping) = (Arc::clone(&behaviour), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            while !stopping.load(Ordering::Relaxed) {
                serve_one(&socket, &truth, &shared);
            }
        });
        TestServer { address, behaviour, stop, thread: Some(thread) }
    }

    /// Changes what the server does from now on.
    pub fn behave(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.behaviour.lock().expect("no panic in the server"));
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve_one(socket: &UdpSocket, truth: &Truth, behaviour: &Mutex<Behaviour>) {
    let mut buffer = [0; 512];
    let Ok((length, from)) = socket.recv_from(&mut buffer) else { return };
    let received = truth.now();
    let behaviour = behaviour.lock().expect("no panic in the tests").clone();
    let Ok(request) = Packet::decode(&buffer[..length]) else { return };
    if behaviour.silent {
        return;
    }
    for _ in 0..behaviour.flood {
        let _ = socket.send_to(&[0x24; HEADER_BYTES], from);
    }
    if behaviour.flood > 0 {
        return;
    }
    let claimed = |moment: Moment<Tai>| {
        let utc = behaviour.leaps.utc_from_tai(moment + behaviour.lie);
        NtpTimestamp::from_server(Moment::from_origin(utc.since_origin()))
    };
    let myself = Packet {
        stratum: behaviour.stratum,
        leap: behaviour.leap,
        precision: LogSeconds::from_exponent(-25),
        root_dispersion: behaviour.root_dispersion,
        reference_id: behaviour.reference_id,
        ..Packet::request(Version::V4, NtpTimestamp::MISSING)
    };
    let reply = myself.reply_to(&request, claimed(received), claimed(truth.now()));
    for make in &behaviour.before {
        let _ = socket.send_to(&make(&request, &reply), from);
    }
    let other = behaviour.elsewhere.then(|| {
        let address = socket.local_addr().expect("an address");
        UdpSocket::bind((address.ip(), 0)).expect("another port")
    });
    let socket = other.as_ref().unwrap_or(socket);
    let bytes: [u8; HEADER_BYTES] = myself.reply_to(&request, claimed(received), claimed(truth.now())).encode();
    for _ in 0..behaviour.copies {
        let _ = socket.send_to(&bytes, from);
    }
}
