//! Shared by the tests of the daemon: a server that can misbehave, a daemon in a directory of its own, a reader of its
//! page.
#![expect(dead_code, reason = "each test file uses a part of it")]

pub mod browser;
pub mod interpose;
pub mod namespace;
pub mod server;

use ffclock_control::protocol::{Answer, StatusReport};
use ffclock_counter::CounterId;
use ffclock_page::Reader;
use ffclock_sys::SharedPageReader;
use ffclock_units::{ClockError, LeapTable, Reading, Span};
use server::Truth;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A directory that is removed when dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ffclockd-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory for the test");
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn page(&self) -> PathBuf {
        self.0.join("page")
    }

    /// The top of a configuration that keeps all files in this directory.
    pub fn daemon_section(&self, rest: &str) -> String {
        let directory = self.0.display();
        format!(
            "page = \"{directory}/page\"\ncontrol = \"{directory}/control\"\nstate = \"{directory}/state\"\n{rest}\n"
        )
    }

    pub fn write_config(&self, text: &str) -> PathBuf {
        let path = self.0.join("ffclockd.toml");
        std::fs::write(&path, text).expect("the configuration can be written");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A `[[server]]` table for an address, polled as fast as permitted.
pub fn server_section(address: std::net::SocketAddr, rest: &str) -> String {
    format!("[[server]]\naddress = \"{}\"\nport = {}\npoll = \"125 ms\"\n{rest}\n", address.ip(), address.port())
}

/// The number of packets that were stamped at the driver, by the status.
pub fn found_at_driver(stamps: &str) -> u64 {
    let count = stamps.split_once(" (").and_then(|(_, rest)| rest.split_once(" at the driver"));
    count.and_then(|(count, _)| count.parse().ok()).unwrap_or(0)
}

/// A running ffclockd; killed when dropped.
pub struct Daemon {
    child: Child,
    scratch: PathBuf,
}

impl Daemon {
    pub fn start(scratch: &Scratch, config: &str) -> Self {
        Self::start_in(scratch, config, &[])
    }

    /// Starts it with additions to its environment.
    pub fn start_in(scratch: &Scratch, config: &str, environment: &[(&str, PathBuf)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ffclockd"));
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        Self::run(command, scratch, config)
    }

    /// Starts it through a shell that runs these commands first.
    pub fn start_after(scratch: &Scratch, config: &str, commands: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{commands} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_ffclockd")]);
        Self::run(command, scratch, config)
    }

    fn run(mut command: Command, scratch: &Scratch, config: &str) -> Self {
        let path = scratch.write_config(config);
        let log = std::fs::File::options().create(true).append(true).open(scratch.path().join("log"));
        let child = command
            .arg("--config")
            .arg(path)
            .stdin(Stdio::null())
            .stderr(log.expect("a log file"))
            .spawn()
            .expect("ffclockd starts");
        Daemon { child, scratch: scratch.path().to_owned() }
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().expect("kill runs");
        assert!(sent.success());
    }

    /// Waits for the end and returns whether the daemon succeeded.
    pub fn wait(&mut self) -> bool {
        self.child.wait().expect("the daemon can be waited for").success()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the daemon can be asked").is_none()
    }

    /// One line to the control socket, one line back.
    pub fn ask(&self, request: &str) -> Option<Answer> {
        let mut stream = UnixStream::connect(self.scratch.join("control")).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        stream.write_all(format!("{request}\n").as_bytes()).ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        Some(serde_json::from_str(&line).expect("every answer is JSON"))
    }

    pub fn status(&self) -> Option<StatusReport> {
        match self.ask("{\"command\":\"status\"}")? {
            Answer::Status(report) => Some(*report),
            other => panic!("not a status: {other:?}"),
        }
    }

    /// The number after `field` in the kernel's status of the process.
    pub fn process_status(&self, field: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the daemon runs");
        let line = text.lines().find_map(|line| line.strip_prefix(field)).expect("the kernel has it");
        line.split_ascii_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
    }

    /// Processor time used so far, in clock ticks (1/100 s).
    pub fn processor_ticks(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("the daemon runs");
        // After the name in parentheses: utime and stime are the 12th and 13th of the fields (proc(5)).
        let fields = text.rsplit(')').next().expect("a name in parentheses").split_ascii_whitespace();
        fields.skip(11).take(2).map(|number| number.parse::<u64>().expect("a number")).sum()
    }

    /// Processor time of its threads so far, by the scheduler's own account.
    pub fn processor_time(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("the daemon runs");
        let texts =
            threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok());
        let spent = texts.filter_map(|text| text.split_ascii_whitespace().next()?.parse::<u64>().ok());
        Duration::from_nanos(spent.sum())
    }

    /// The log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.scratch.join("log")).unwrap_or_default()
    }

    /// Waits until the status satisfies the condition; fails with the log after `patience`.
    pub fn wait_for(&self, what: &str, pleases: impl Fn(&StatusReport) -> bool) -> StatusReport {
        let patience = Duration::from_secs(40);
        let start = Instant::now();
        loop {
            if let Some(status) = self.status().filter(&pleases) {
                return status;
            }
            assert!(start.elapsed() < patience, "never: {what}\n{:#?}\n{}", self.status(), self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The page, as soon as there is one.
pub fn page_reader(scratch: &Scratch) -> SharedPageReader {
    let start = Instant::now();
    loop {
        match SharedPageReader::open(&scratch.page()) {
            Ok(page) => return page,
            Err(error) => assert!(start.elapsed() < Duration::from_secs(10), "no page: {error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Reads the page as a client does, and compares every reading with the truth.
pub struct Judge {
    page: SharedPageReader,
    kind: CounterId,
    truth: Truth,
    pub readings: u64,
}

impl Judge {
    pub fn new(scratch: &Scratch, kind: CounterId, truth: Truth) -> Self {
        Judge { page: page_reader(scratch), kind, truth, readings: 0 }
    }

    pub fn truth(&self) -> Truth {
        self.truth
    }

    /// One reading, if there is an estimate. Panics when the truth is outside the bound.
    pub fn read(&mut self) -> Option<(Reading, Span)> {
        let counter = ffclock_counter::read_ordered(self.kind);
        let reading = Reader::new(self.page.words()).reading_at(counter, self.kind).ok()?;
        let error = reading.time - LeapTable::built_in().utc_from_tai(self.truth.at(counter));
        assert!(
            reading.bound.contains(ClockError::new(error)),
            "the truth left the bound: error {error}, bound {}, {:?}",
            reading.bound,
            reading.status
        );
        self.readings += 1;
        Some((reading, error))
    }

    /// Reads a thousand times a second for a while; returns the last reading.
    pub fn watch(&mut self, time: Duration) -> Option<(Reading, Span)> {
        let start = Instant::now();
        let mut last = None;
        while start.elapsed() < time {
            last = self.read();
            std::thread::sleep(Duration::from_millis(1));
        }
        last
    }
}
