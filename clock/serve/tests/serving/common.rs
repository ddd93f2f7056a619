//! A page whose truth is known, a server that reads it, and a client that knows the time.

use ffclock_counter::{CounterId, read_ordered};
use ffclock_page::{BootId, Publication, VoteCounts, VotedPart, Writer};
use ffclock_sys::SharedPage;
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowingBound, GrowthRate, LeapStep, LeapTable, Moment, Period, Rate,
    Server, ServerIdentity, Span, StandardUncertainty, Status, Tai, Ticks,
};
use ffclock_wire::{HEADER_BYTES, NtpTimestamp, Packet, Version};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The counter of the pages: it counts ns.
pub const COUNTER: CounterId = CounterId::MonotonicRaw;

/// The true time: the host's system clock at the start, and the counter since.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    origin: Counter,
    tai: Moment<Tai>,
}

impl Truth {
    pub fn new() -> Self {
        let (utc, origin) = (ffclock_sys::system_utc_now(), read_ordered(COUNTER));
        Truth { origin, tai: LeapTable::built_in().tai_from_utc(utc) }
    }

    fn tai_at(&self, counter: Counter) -> Moment<Tai> {
        self.tai + Span::from_nanos((counter - self.origin).raw().into())
    }

    /// UTC, of which no leap second is in sight.
    pub fn now(&self) -> Moment<Server> {
        self.utc_at(read_ordered(COUNTER))
    }

    /// The same at a reading of the counter of the pages.
    pub fn utc_at(&self, counter: Counter) -> Moment<Server> {
        let utc = LeapTable::built_in().utc_from_tai(self.tai_at(counter));
        Moment::from_origin(utc.since_origin())
    }
}

/// What a page says.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    /// Our time - truth.
    pub error: Span,
    pub bound: Span,
    pub strict: Span,
    pub growth: Rate,
    pub status: Status,
    pub valid_for: Span,
    pub leap: Option<LeapStep>,
    /// Who is followed.
    pub server: ServerIdentity,
}

impl Said {
    pub fn within(bound: Span) -> Self {
        Said {
            error: Span::ZERO,
            bound,
            strict: bound,
            growth: Rate::from_ppm(1.0),
            status: Status::Synchronised,
            valid_for: Span::from_secs(3600),
            leap: None,
            server: ServerIdentity { stratum: 1, reference_id: 0x4750_5300 },
        }
    }
}

/// A directory of its own, removed when dropped, with a page that is written by the test.
pub struct Place {
    pub directory: PathBuf,
    pub truth: Truth,
}

impl Place {
    pub fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("ffclock-serve-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        Place { directory, truth: Truth::new() }
    }

    pub fn writer(&self) -> Writer<SharedPage> {
        let memory = SharedPage::create(&self.directory.join("page")).unwrap();
        Writer::open(memory, BootId::parse(&ffclock_counter::boot_id()))
    }

    pub fn publish(&self, writer: &mut Writer<SharedPage>, said: Said) {
        let counter = read_ordered(COUNTER);
        let time = self.truth.tai_at(counter) + said.error;
        let period = Period::from_seconds(1e-9).unwrap();
        let uncertainty = StandardUncertainty::of(said.bound.halved());
        let growth = GrowthRate::of(said.growth);
        let estimate = Estimate {
            counter,
            time,
            period,
            uncertainty,
            noise: uncertainty,
            uncertainty_growth: growth,
            bound: Bound::of(said.bound),
            bound_growth: growth,
            difference_period: period,
            difference_bound: growth,
            difference_uncertainty: growth,
            status: said.status,
        };
        let publication = Publication {
            counter_id: COUNTER,
            epoch: CounterEpoch::from_raw(3),
            epoch_begin: Counter::from_raw(0),
            estimate,
            leap: said.leap.unwrap_or_else(|| LeapTable::built_in().step_around(time)),
            valid_until: counter + Ticks::from_raw(said.valid_for.as_nanos() as i64),
            server: Some(said.server),
        };
        let counts = VoteCounts { deciders: 3, tolerated: 1, believed: 3 };
        writer.publish_voted(
            &publication,
            &VotedPart { strict: GrowingBound { bound: Bound::of(said.strict), growth }, counts },
        );
    }

    /// Writes a configuration with these lines more, of which the first may say where to listen.
    pub fn configure(&self, more: &str) -> PathBuf {
        let (path, here) = (self.directory.join("serve.toml"), self.directory.display());
        let listen = if more.starts_with("listen") { "" } else { "listen = \"127.0.0.1:0\"\n" };
        let text = format!("page = \"{here}/page\"\ndaemon = \"off\"\ncontrol = \"{here}/status\"\n{listen}{more}\n");
        // At once: a reload that is still under way must not read half of it.
        let unfinished = path.with_extension("unfinished");
        std::fs::write(&unfinished, text).unwrap();
        std::fs::rename(&unfinished, &path).unwrap();
        path
    }

    /// Starts a server with a configuration of these lines more, and waits until it says where it listens.
    pub fn serve(&self, more: &str) -> Serving {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ffclock-serve"))
            .arg("--config")
            .arg(self.configure(more))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.by_ref().map(Result::unwrap).find(|line| line.contains("listening")).unwrap();
        let word = line.split_whitespace().find_map(|word| word.strip_prefix("address=")).unwrap();
        let address: SocketAddr = word.parse().unwrap();
        let reader = std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let serving = Serving { child, address, status: self.directory.join("status"), _reader: reader };
        serving.wait_until_it_answers();
        serving
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A running ffclock-serve; killed when dropped.
pub struct Serving {
    child: Child,
    pub address: SocketAddr,
    status: PathBuf,
    _reader: std::thread::JoinHandle<()>,
}

/// One line of the status socket at this path.
pub fn status_at(path: &Path) -> std::io::Result<serde_json::Value> {
    let mut stream = UnixStream::connect(path)?;
    stream.write_all(b"{\"command\":\"status\"}\n")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

impl Serving {
    fn wait_until_it_answers(&self) {
        let end = Instant::now() + Duration::from_secs(20);
        while UnixStream::connect(&self.status).is_err() {
            assert!(Instant::now() < end, "no status socket");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// One line of the status socket.
    pub fn status(&self) -> serde_json::Value {
        status_at(&self.status).unwrap()
    }

    pub fn count(&self, name: &str) -> u64 {
        self.status()["counts"][name].as_u64().unwrap()
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The capabilities of all its threads.
    pub fn capabilities(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        let status = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default()
        };
        let texts: Vec<String> = tasks.map(status).collect();
        texts
            .iter()
            .flat_map(|text| text.lines())
            .filter(|line| line.starts_with("CapEff"))
            .map(str::to_owned)
            .collect()
    }

    /// Ends it, and says whether it ended well.
    pub fn end(mut self) -> bool {
        self.signal("-TERM");
        self.child.wait().unwrap().success()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that knows the time.
pub struct Client {
    pub socket: UdpSocket,
    truth: Truth,
    number: u64,
}

/// The answer to one request.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    pub packet: Packet,
    pub length: usize,
    /// The server's time minus the truth, as a client computes it [s].
    pub offset: f64,
    /// Half the round trip without the server's time [s].
    pub half_delay: f64,
    /// Half the root delay and the root dispersion [s].
    pub distance: f64,
}

impl Answered {
    /// Whether the truth lies within what the reply claims: half the round trip, root distance and precision
    /// (RFC 5905, section 11.1).
    pub fn holds(&self) -> bool {
        self.offset.abs() <= self.half_delay + self.distance + self.packet.precision.as_bound().as_seconds()
    }
}

impl Client {
    pub fn of(serving: &Serving, truth: Truth) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(serving.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        Client { socket, truth, number: 1 }
    }

    /// A request with these bytes after its header; `None` if there is no answer in two seconds.
    pub fn ask_with(&mut self, tail: &[u8]) -> Option<Answered> {
        self.number += 1;
        let nonce = NtpTimestamp::from_raw(self.number);
        let mut request = Packet::request(Version::V4, nonce).encode().to_vec();
        request.extend_from_slice(tail);
        let sent = self.truth.now();
        self.socket.send(&request).unwrap();
        let mut reply = [0; 4096];
        let (length, received, packet) = loop {
            let length = self.socket.recv(&mut reply).ok()?;
            let received = self.truth.now();
            let packet = Packet::decode(&reply[..length]).unwrap();
            // An earlier request may have been given up before its answer came.
            if packet.origin == nonce {
                break (length, received, packet);
            }
        };
        assert!(length <= request.len(), "{length} bytes for {}", request.len());
        let [arrived, left] = [packet.receive, packet.transmit].map(|stamp| stamp.to_server(sent));
        let there = (arrived - sent).as_seconds();
        let back = (received - left).as_seconds();
        Some(Answered {
            packet,
            length,
            offset: (there - back) / 2.0,
            half_delay: (there + back) / 2.0,
            distance: packet.root_delay.as_seconds() / 2.0 + packet.root_dispersion.as_seconds(),
        })
    }

    pub fn ask(&mut self) -> Option<Answered> {
        self.ask_with(&[])
    }
}

/// The shortest request.
pub fn bare_request(first: u8) -> [u8; HEADER_BYTES] {
    let mut bytes = Packet::request(Version::V4, NtpTimestamp::from_raw(77)).encode();
    bytes[0] = first;
    bytes
}
