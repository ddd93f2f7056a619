//! The host's own delays, measured by `ffclock probe calibrate` and taken off the stamps.
//!
//! A stamp is taken at some location of the host, and the packet passes the driver later (on its way out) or earlier (on its way in). The
//! smallest such delay passes in every packet, so a stamp may be moved by it towards the wire: the round trip becomes shorter by what was
//! known of it, and the bound with it. ("Probing the Latencies of Software Timestamping", section V.)
//!
//! The smallest delays are safe for the bound, and not what a clock goes by: one packet in a thousand finds every cache hot, and a clock
//! goes by where the bulk of its packets begins. So both stamps are moved in the same direction, which leaves the round trip as it is,
//! until what is taken off is unequal by as much as the clock finds the two ways unequal.
//!
//! A smallest delay that was measured is not the smallest that there can be: caches may be hotter one day. So a moved stamp becomes wider
//! by twice what may be wrong: what the measurement itself says, and what lies between the loads that were tried, or a sixteenth of the
//! delay where that is more.
//!
//! Another kernel, driver or machine has other delays, so a calibration is about one of each and is not used for others.

use ffclock_units::{Period, Span, Stamp, StampLocation, Ticks};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;

/// A file that is longer was not written by us.
const LONGEST: u64 = 1 << 20;
/// A smallest delay that is longer is none: something waited in every packet.
const LONGEST_DELAY_NS: f64 = 1e6;

/// The load of a host without one.
pub const QUIET: &str = "quiet";

/// What a calibration is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The machine's name.
    pub host: String,
    /// The kernel's release.
    pub kernel: String,
    /// The network device.
    pub device: String,
    /// Its driver.
    pub driver: String,
}

/// Where stamps are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Taken {
    /// In user space.
    User,
    /// By the kernel, at the socket.
    Kernel,
}

/// The smallest delays of one location under one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The host and the way that packets take in it.
    pub subject: Subject,
    /// Where.
    pub location: Taken,
    /// Under which load, `quiet` without.
    pub load: String,
    /// The smallest delay from the stamp to the driver, on the way out [ns].
    pub out_ns: f64,
    /// The smallest delay from the driver to the stamp, on the way in [ns].
    pub in_ns: f64,
    /// By how much longer the way out is than the way in for a clock that goes by these packets [ns]: twice its error. Calibrations of
    /// before do not have it.
    #[serde(default)]
    pub unequal_ns: Option<f64>,
    /// How far the smallest delays may be off, as the measurement itself says [ns].
    pub uncertainty_ns: f64,
    /// How many packets this rests on.
    pub packets: u64,
    /// When it was measured, seconds since 1970.
    pub measured_at: i64,
}

/// Everything that was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// By subject, location and load.
    pub entries: Vec<Entry>,
}

/// Why a calibration is not used.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// It is not there, or cannot be read.
    #[error("{0}; run `ffclock probe calibrate` on this host")]
    Unreadable(io::Error),
    /// It is something else.
    #[error("it is no calibration: {0}; run `ffclock probe calibrate` again")]
    Damaged(String),
    /// It is about something else.
    #[error("it is about {measured}, and this is {now}; run `ffclock probe calibrate` again")]
    Stale {
        /// What was measured.
        measured: String,
        /// What is here.
        now: String,
    },
    /// It has nothing about stamps of this location.
    #[error("it has nothing about {0} stamps; run `ffclock probe calibrate` again")]
    NotMeasured(&'static str),
}

impl Subject {
    /// This host, for packets that pass `device`.
    pub fn here(device: &str) -> Self {
        let line = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
        let driver = fs::read_link(format!("/sys/class/net/{device}/device/driver")).ok();
        let driver = driver.and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
        Subject {
            host: line("/proc/sys/kernel/hostname"),
            kernel: line("/proc/sys/kernel/osrelease"),
            device: device.to_owned(),
            driver: driver.unwrap_or_else(|| "virtual".to_owned()),
        }
    }

    fn describe(&self) -> String {
        format!("{} ({}) of {} with Linux {}", self.device, self.driver, self.host, self.kernel)
    }
}

impl Taken {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Taken::User => "user",
            Taken::Kernel => "kernel",
        }
    }

    /// Of a stamp.
    pub fn of(location: StampLocation) -> Self {
        if location == StampLocation::Kernel { Taken::Kernel } else { Taken::User }
    }
}

impl Calibration {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is no calibration.
    pub fn read(path: &Path) -> Result<Self, CalibrationError> {
        let length = fs::metadata(path).map_err(CalibrationError::Unreadable)?.len();
        if length > LONGEST {
            return Err(CalibrationError::Damaged(format!("{length} bytes are too many")));
        }
        let text = fs::read(path).map_err(CalibrationError::Unreadable)?;
        serde_json::from_slice(&text).map_err(|error| CalibrationError::Damaged(error.to_string()))
    }

    /// Puts `entry` in the place of what was known about the same subject, location and load.
    pub fn replace(&mut self, entry: Entry) {
        let key = |entry: &Entry| (entry.subject.clone(), entry.location, entry.load.clone());
        self.entries.retain(|old| key(old) != key(&entry));
        self.entries.push(entry);
    }

    /// Writes the file whole, or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::other)?;
        let beside = path.with_extension("new");
        fs::write(&beside, text)?;
        fs::rename(&beside, path)
    }

    /// By how much stamps of this location may be moved on this subject. Under load caches are hot and delays shorter, so the smallest of
    /// all loads counts.
    ///
    /// # Errors
    /// Nothing fits; the error says what was measured instead.
    pub fn shift(&self, subject: &Subject, location: Taken, period: Period) -> Result<Shift, CalibrationError> {
        let at_location: Vec<&Entry> = self.entries.iter().filter(|entry| entry.location == location).collect();
        let Some(latest) = at_location.last() else { return Err(CalibrationError::NotMeasured(location.name())) };
        let fitting: Vec<&&Entry> = at_location.iter().filter(|entry| entry.subject == *subject).collect();
        if fitting.is_empty() {
            return Err(CalibrationError::Stale { measured: latest.subject.describe(), now: subject.describe() });
        }
        let move_by =
            |delay: fn(&Entry) -> f64| Move::of(fitting.iter().map(|entry| (delay(entry), entry.uncertainty_ns)));
        let (mut out, mut back) = (move_by(|entry| entry.out_ns), move_by(|entry| entry.in_ns));
        if let Some(unequal) = Unequal::of(&fitting) {
            // Both stamps move the same way: what is taken off in sum stays the smallest delays.
            let lean_ns = (unequal.by_ns - (out.by_ns - back.by_ns)) / 2.0;
            (out.by_ns, back.by_ns) = (out.by_ns + lean_ns, back.by_ns - lean_ns);
            let doubt_ns = lean_ns.abs() + unequal.doubt_ns;
            (out.doubt_ns, back.doubt_ns) = (out.doubt_ns + doubt_ns, back.doubt_ns + doubt_ns);
        }
        Ok(Shift { out: out.in_ticks(period), back: back.in_ticks(period) })
    }
}

/// By how much longer the way out is than the way in [ns], and how much of it may be wrong, since loads differ [ns].
struct Unequal {
    by_ns: f64,
    doubt_ns: f64,
}

impl Unequal {
    /// The quiet host's, or that of the load that was measured first.
    fn of(entries: &[&&Entry]) -> Option<Self> {
        let by_ns = |entry: &&&Entry| Some(entry.unequal_ns?.clamp(-LONGEST_DELAY_NS, LONGEST_DELAY_NS));
        let quiet = entries.iter().find(|entry| entry.load == QUIET).or(entries.first()).and_then(by_ns)?;
        let farthest = entries.iter().filter_map(by_ns).map(|other| (other - quiet).abs()).fold(0.0, f64::max);
        Some(Unequal { by_ns: quiet, doubt_ns: farthest / 2.0 })
    }
}

/// A move [ns], and how much of it may be wrong [ns].
struct Move {
    by_ns: f64,
    doubt_ns: f64,
}

impl Move {
    /// Of smallest delays under several loads, each with its uncertainty.
    fn of(delays: impl Iterator<Item = (f64, f64)>) -> Self {
        let (mut low, mut high, mut uncertainty) = (LONGEST_DELAY_NS, 0.0_f64, 0.0_f64);
        for (delay, its_uncertainty) in delays {
            (low, high, uncertainty) = (low.min(delay), high.max(delay), uncertainty.max(its_uncertainty));
        }
        // A delay that may as well be none is none, and a stamp never moves away from the wire.
        let by_ns = if low > uncertainty { low } else { 0.0 };
        Move { by_ns, doubt_ns: if by_ns > 0.0 { uncertainty.abs() + (high - low).max(by_ns / 16.0) } else { 0.0 } }
    }

    fn in_ticks(&self, period: Period) -> (Ticks, Ticks) {
        let ticks = |ns: f64| period.ticks_in(Span::from_seconds(ns.clamp(-LONGEST_DELAY_NS, LONGEST_DELAY_NS) * 1e-9));
        (ticks(self.by_ns), ticks(2.0 * self.doubt_ns))
    }
}

/// By how much stamps are moved towards the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shift {
    /// On the way out: by how much, and how much wider they become.
    out: (Ticks, Ticks),
    /// On the way in.
    back: (Ticks, Ticks),
}

impl Shift {
    /// Of a packet sent: it passed the driver later than this location.
    pub fn sent(self, stamp: Stamp) -> Stamp {
        Stamp { counter: stamp.counter + self.out.0, width: stamp.width + self.out.1, ..stamp }
    }

    /// Of a packet received: it passed the driver earlier than this location.
    pub fn received(self, stamp: Stamp) -> Stamp {
        Stamp { counter: stamp.counter - self.back.0, width: stamp.width + self.back.1, ..stamp }
    }

    /// How much shorter every round trip becomes.
    pub fn together(self, period: Period) -> Span {
        period * (self.out.0 + self.back.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Counter;

    fn subject(kernel: &str) -> Subject {
        Subject { host: "h".into(), kernel: kernel.into(), device: "eth0".into(), driver: "igb".into() }
    }

    fn entry(kernel: &str, load: &str, delays: (f64, f64)) -> Entry {
        Entry {
            subject: subject(kernel),
            location: Taken::User,
            load: load.into(),
            out_ns: delays.0,
            in_ns: delays.1,
            unequal_ns: None,
            uncertainty_ns: 100.0,
            packets: 1000,
            measured_at: 1_790_000_000,
        }
    }

    fn ghz() -> Period {
        Period::from_hertz(1e9).unwrap()
    }

    fn stamp() -> Stamp {
        Stamp { counter: Counter::from_raw(1_000_000), width: Ticks::from_raw(20), location: StampLocation::User }
    }

    #[test]
    fn stamps_move_towards_the_wire_by_what_is_certain() {
        let mut calibration = Calibration::default();
        calibration.replace(entry("6.1", "quiet", (20_000.0, 5_000.0)));
        calibration.replace(entry("6.1", "cpu", (3_000.0, 6_000.0)));
        let shift = calibration.shift(&subject("6.1"), Taken::User, ghz()).unwrap();
        assert_eq!(shift.sent(stamp()).counter, Counter::from_raw(1_003_000), "the smaller delay under load counts");
        assert_eq!(shift.received(stamp()).counter, Counter::from_raw(995_000));
        assert!((shift.together(ghz()).as_seconds() - 8e-6).abs() < 1e-12);
        // What lies between the loads is in doubt, and 100 ns; it may be wrong to either side.
        assert_eq!(shift.sent(stamp()).width, Ticks::from_raw(20 + 2 * 17_100));
        assert_eq!(shift.received(stamp()).width, Ticks::from_raw(20 + 2 * 1_100));
    }

    #[test]
    fn a_delay_that_is_not_certain_moves_nothing() {
        let mut calibration = Calibration::default();
        calibration.replace(entry("6.1", "quiet", (-400.0, 60.0)));
        let shift = calibration.shift(&subject("6.1"), Taken::User, ghz()).unwrap();
        assert_eq!((shift.sent(stamp()), shift.received(stamp())), (stamp(), stamp()));
    }

    #[test]
    fn the_clock_decides_what_is_unequal_and_the_minima_what_is_certain() {
        let mut calibration = Calibration::default();
        // One packet in a thousand found every cache hot.
        calibration.replace(Entry { unequal_ns: Some(35_000.0), ..entry("6.1", "quiet", (4_000.0, 8_000.0)) });
        let shift = calibration.shift(&subject("6.1"), Taken::User, ghz()).unwrap();
        assert!((shift.together(ghz()).as_seconds() - 12e-6).abs() < 1e-12, "no more than is certain");
        let (sent, received) = (shift.sent(stamp()), shift.received(stamp()));
        assert_eq!(sent.counter, Counter::from_raw(1_023_500));
        assert_eq!(received.counter, Counter::from_raw(1_011_500));
        // Both by the same 19.5 us too far at most, beside a sixteenth of the delay and 100 ns.
        assert_eq!(sent.width, Ticks::from_raw(20 + 2 * (19_500 + 250 + 100)));
        calibration.replace(Entry { unequal_ns: Some(31_000.0), ..entry("6.1", "cpu", (4_000.0, 8_000.0)) });
        let busy = calibration.shift(&subject("6.1"), Taken::User, ghz()).unwrap();
        assert_eq!(busy.sent(stamp()).counter, sent.counter, "the quiet host counts");
        assert_eq!(busy.sent(stamp()).width, sent.width + Ticks::from_raw(2 * 2_000), "and the load is in doubt");
    }

    #[test]
    fn a_file_of_before_goes_by_the_minima() {
        let text = r#"{"entries":[{"subject":{"host":"h","kernel":"6.1","device":"eth0","driver":"igb"},"location":"user",
            "load":"quiet","out_ns":1000.0,"in_ns":1000.0,"uncertainty_ns":1.0,"packets":10,"measured_at":1}]}"#;
        let calibration: Calibration = serde_json::from_str(text).unwrap();
        let shift = calibration.shift(&subject("6.1"), Taken::User, ghz()).unwrap();
        assert_eq!(shift.sent(stamp()).counter, Counter::from_raw(1_001_000));
    }

    #[test]
    fn another_kernel_makes_it_stale() {
        let mut calibration = Calibration::default();
        calibration.replace(entry("6.1", "quiet", (1_000.0, 1_000.0)));
        let error = calibration.shift(&subject("6.2"), Taken::User, ghz()).unwrap_err().to_string();
        assert!(error.contains("Linux 6.1") && error.contains("Linux 6.2") && error.contains("calibrate"), "{error}");
        let error = calibration.shift(&subject("6.1"), Taken::Kernel, ghz()).unwrap_err().to_string();
        assert!(error.contains("kernel stamps"), "{error}");
    }

    #[test]
    fn a_newer_measurement_replaces_an_older_one() {
        let mut calibration = Calibration::default();
        calibration.replace(entry("6.1", "quiet", (1_000.0, 1_000.0)));
        calibration.replace(entry("6.1", "quiet", (5_000.0, 5_000.0)));
        calibration.replace(entry("6.2", "quiet", (1_000.0, 1_000.0)));
        assert_eq!(calibration.entries.len(), 2);
        let shift = calibration.shift(&subject("6.1"), Taken::User, ghz()).unwrap();
        assert_eq!(shift.sent(stamp()).counter, Counter::from_raw(1_005_000));
    }

    #[test]
    fn a_file_is_read_back_and_damage_is_named() {
        let directory = std::env::temp_dir().join(format!("ffclock-calibration-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("calibration.json");
        assert!(matches!(Calibration::read(&path), Err(CalibrationError::Unreadable(_))));
        let mut calibration = Calibration::default();
        calibration.replace(entry("6.1", "quiet", (1.0, 2.0)));
        calibration.write(&path).unwrap();
        assert_eq!(Calibration::read(&path).unwrap(), calibration);
        fs::write(&path, "{\"entries\": 3}").unwrap();
        assert!(matches!(Calibration::read(&path), Err(CalibrationError::Damaged(_))));
        fs::remove_dir_all(directory).unwrap();
    }
}
