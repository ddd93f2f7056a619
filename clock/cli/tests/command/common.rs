//! What the tests of both commands share: pages made here, a daemon that is a thread with ready answers, and the
//! command itself.

use ffclock_counter::{CounterId, read_ordered};
use ffclock_page::{BootId, PageMemory, Publication, Writer};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowthRate, LeapTable, Moment, Period, Rate, Span, StandardUncertainty,
    Status, Tai, Ticks, Utc,
};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};

/// The time that the pages of the tests show when they are made: 2026-11-21T09:30:00Z.
pub const UTC_SECOND: i64 = 1_795_253_400;

/// The epoch of the pages of the tests.
pub const EPOCH: u64 = 3;

/// A directory of its own for each test, removed when the test ends well.
pub struct Place {
    directory: PathBuf,
}

impl Place {
    pub fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("ffclock-command-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        Place { directory }
    }

    pub fn page(&self) -> PathBuf {
        self.directory.join("page")
    }

    pub fn control(&self) -> PathBuf {
        self.directory.join("control")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Publishes a clock that was right when this is called, believable for an hour.
    pub fn publish(&self, status: Status) {
        self.publish_by(&publication(status));
    }

    /// Writes a page with this publication.
    pub fn publish_by(&self, publication: &Publication) {
        let mut writer = Writer::open(PageMemory::new(), boot());
        writer.publish(publication);
        self.write_page(writer.memory());
    }

    /// Writes a page in which nothing was published.
    pub fn publish_nothing(&self) {
        self.write_page(Writer::open(PageMemory::new(), boot()).memory());
    }

    fn write_page(&self, memory: &PageMemory) {
        let words = memory.as_ref().iter();
        let bytes: Vec<u8> = words.flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        std::fs::write(self.page(), bytes).unwrap();
    }

    /// A daemon that answers every question with `line`, for as long as the test runs.
    pub fn answer(&self, line: &str) {
        let listener = UnixListener::bind(self.control()).unwrap();
        let line = format!("{line}\n");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut question = String::new();
                BufReader::new(&stream).read_line(&mut question).unwrap();
                assert!(question.starts_with("{\"command\":"), "{question}");
                stream.write_all(line.as_bytes()).unwrap();
            }
        });
    }

    /// The command with the page of this place, and with the control socket, which is found beside the page.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(crate::PROGRAM);
        command.arg("--page").arg(self.page()).args(arguments);
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        Ended::from(self.command(arguments).output().unwrap())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Ended {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ended {
    /// What it printed, when it ended well.
    #[track_caller]
    pub fn well(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        assert_eq!(self.err, "");
        self.out
    }

    /// What it printed as one JSON value.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A clock that is right now, believable for an hour.
pub fn publication(status: Status) -> Publication {
    let estimate = estimate(status);
    Publication {
        counter_id: CounterId::MonotonicRaw,
        epoch: CounterEpoch::from_raw(EPOCH),
        epoch_begin: Counter::from_raw(0),
        estimate,
        leap: LeapTable::built_in().step_around(estimate.time),
        valid_until: estimate.counter + Ticks::from_raw(3_600_000_000_000),
        server: None,
    }
}

pub fn boot() -> Option<BootId> {
    BootId::parse(&ffclock_counter::boot_id())
}

fn estimate(status: Status) -> Estimate {
    let utc = Moment::<Utc>::from_origin(Span::from_secs(UTC_SECOND));
    let time: Moment<Tai> = LeapTable::built_in().tai_from_utc(utc);
    let period = Period::from_hertz(1e9).unwrap();
    Estimate {
        counter: read_ordered(CounterId::MonotonicRaw),
        time,
        period,
        uncertainty: StandardUncertainty::of(Span::from_micros(14)),
        noise: StandardUncertainty::of(Span::from_micros(9)),
        uncertainty_growth: GrowthRate::of(Rate::from_ppb(10.0)),
        bound: Bound::of(Span::from_micros(812)),
        bound_growth: GrowthRate::of(Rate::from_ppb(20.0)),
        difference_period: period,
        difference_bound: GrowthRate::of(Rate::from_ppb(30.0)),
        difference_uncertainty: GrowthRate::of(Rate::from_ppb(5.0)),
        status,
    }
}
