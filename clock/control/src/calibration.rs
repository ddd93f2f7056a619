//! The host's own delays, measured by `ffclock-lab probe calibrate` and taken off the stamps.
//!
//! A stamp is taken at some location of the host, and the packet passes the driver later (on its way out) or earlier
//! (on its way in). The smallest such delay passes in every packet, so a stamp may be moved by it towards the wire: the
//! round trip becomes shorter by what was known of it, and the bound with it. ("Probing the Latencies of Software
//! Timestamping", section V.)
//!
//! The smallest delays are safe for the bound, and not what a clock goes by: one packet in a thousand finds every cache
//! hot, and a clock goes by where the bulk of its packets begins. So both stamps are moved in the same direction, which
//! leaves the round trip as it is, until what is taken off is unequal by as much as the clock finds the two ways
//! unequal.
//!
//! A smallest delay that was measured is not the smallest that there can be: caches may be hotter one day. So a moved
//! stamp becomes wider by twice what may be wrong: what the measurement itself says, and what lies between the loads
//! that were tried, or a sixteenth of the delay where that is more. Of the common move the stamp that moves towards the
//! wire is in doubt by all of it; the other one becomes safer.
//!
//! Another kernel, driver or machine has other delays, so a calibration is about one of each and is not used for
//! others.

use ffclock_units::{Period, Span, StampLocation, StampMove, StampShift, Ticks};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;

/// A file that is longer was not written by us.
const LONGEST: u64 = 1 << 20;
/// A smallest delay that is longer is none: something waited in every packet. An uncertainty that is longer says
/// nothing.
const LONGEST_DELAY_NS: f64 = 1e6;
/// What rounding to ticks may take from a stamp's width, and from the move on one side of it.
const ROUNDING: Ticks = Ticks::from_raw(2);

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
    /// By how much longer the way out is than the way in for a clock that goes by these packets [ns]: twice its error.
    /// Calibrations of before do not have it.
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
    #[error("{0}; run `ffclock-lab probe calibrate` on this host, and restart ffclockd")]
    Unreadable(io::Error),
    /// It is something else.
    #[error("it is no calibration: {0}; run `ffclock-lab probe calibrate` again")]
    Damaged(String),
    /// It is about something else.
    #[error(
        "it is about {measured}, and this is {now}; take asymmetry = \"calibrated\" out of the configuration and restart ffclockd, which begins a \
         new recording; run `ffclock-lab probe calibrate` again, put it back and restart"
    )]
    Stale {
        /// What was measured.
        measured: String,
        /// What is here.
        now: String,
    },
    /// It has nothing about stamps of this location.
    #[error("it has nothing about {0} stamps; run `ffclock-lab probe calibrate` again, and restart ffclockd")]
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

impl Entry {
    /// Whether the figures can be those of a host: finite, none longer than a millisecond, the uncertainty not
    /// negative, of some packet. A figure that cannot be is refused and never cut to size: the bound would rest on what
    /// nobody measured.
    pub fn is_plausible(&self) -> bool {
        let delays = [self.out_ns, self.in_ns, self.unequal_ns.unwrap_or(0.0)];
        // No comparison holds for what is not a number.
        delays.iter().all(|ns| ns.abs() <= LONGEST_DELAY_NS)
            && (0.0..=LONGEST_DELAY_NS).contains(&self.uncertainty_ns)
            && self.packets > 0
    }

    fn check(&self) -> Result<(), CalibrationError> {
        if self.is_plausible() { Ok(()) } else { Err(CalibrationError::Damaged(self.impossible())) }
    }

    fn impossible(&self) -> String {
        format!(
            "a figure is impossible ({} stamps, {}: out {:e} ns, in {:e} ns, unequal {:e} ns, uncertainty {:e} ns, {} packets; delays of \
             more than {LONGEST_DELAY_NS} ns are none)",
            self.location.name(),
            self.load,
            self.out_ns,
            self.in_ns,
            self.unequal_ns.unwrap_or(0.0),
            self.uncertainty_ns,
            self.packets
        )
    }
}

impl Calibration {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is no calibration, or one of its figures is impossible.
    pub fn read(path: &Path) -> Result<Self, CalibrationError> {
        let length = fs::metadata(path).map_err(CalibrationError::Unreadable)?.len();
        if length > LONGEST {
            return Err(CalibrationError::Damaged(format!("{length} bytes are too many")));
        }
        let text = fs::read(path).map_err(CalibrationError::Unreadable)?;
        let read: Self = serde_json::from_slice(&text).map_err(|error| CalibrationError::Damaged(error.to_string()))?;
        read.entries.iter().try_for_each(Entry::check)?;
        Ok(read)
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
    /// It cannot be written, or one of its figures is impossible: then the file stays as it was.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(entry) = self.entries.iter().find(|entry| !entry.is_plausible()) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, entry.impossible()));
        }
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::other)?;
        let beside = path.with_extension("new");
        fs::write(&beside, text)?;
        fs::rename(&beside, path)
    }

    /// By how much stamps of this location may be moved on this subject. Under load caches are hot and delays shorter,
    /// so the smallest of all loads counts.
    ///
    /// # Errors
    /// Nothing fits, and the error says what was measured instead; or a figure is impossible.
    pub fn shift(&self, subject: &Subject, location: Taken, period: Period) -> Result<StampShift, CalibrationError> {
        let at_location: Vec<&Entry> = self.entries.iter().filter(|entry| entry.location == location).collect();
        let Some(latest) = at_location.last() else { return Err(CalibrationError::NotMeasured(location.name())) };
        let fitting: Vec<&&Entry> = at_location.iter().filter(|entry| entry.subject == *subject).collect();
        if fitting.is_empty() {
            return Err(CalibrationError::Stale { measured: latest.subject.describe(), now: subject.describe() });
        }
        fitting.iter().try_for_each(|entry| entry.check())?;
        let move_by =
            |delay: fn(&Entry) -> f64| Move::of(fitting.iter().map(|entry| (delay(entry), entry.uncertainty_ns)));
        let (mut out, mut back) = (move_by(|entry| entry.out_ns), move_by(|entry| entry.in_ns));
        if let Some(unequal) = Unequal::of(&fitting) {
            // Both stamps move the same way: what is taken off in sum stays the smallest delays.
            let lean_ns = (unequal.by_ns - (out.by_ns - back.by_ns)) / 2.0;
            (out.by_ns, back.by_ns) = (out.by_ns + lean_ns, back.by_ns - lean_ns);
            // d >= least: sent + least + lean - passage <= lean, so a lean above zero puts the sent stamp in doubt by
            // itself, and received - (least - lean) - passage >= lean, so one below zero the received one; the other
            // stamp gains by as much.
            out.doubt_ns += lean_ns.max(0.0) + unequal.doubt_ns;
            back.doubt_ns += (-lean_ns).max(0.0) + unequal.doubt_ns;
        }
        Ok(StampShift { sent: out.in_ticks(period), received: back.in_ticks(period) })
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
        let by_ns = |entry: &&&Entry| entry.unequal_ns;
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
        let (mut low, mut high, mut uncertainty) = (f64::INFINITY, f64::NEG_INFINITY, 0.0_f64);
        for (delay, its_uncertainty) in delays {
            (low, high, uncertainty) = (low.min(delay), high.max(delay), uncertainty.max(its_uncertainty));
        }
        // A delay that may as well be none is none, and a stamp never moves away from the wire.
        let by_ns = if low > uncertainty { low } else { 0.0 };
        Move { by_ns, doubt_ns: if by_ns > 0.0 { uncertainty + (high - low).max(by_ns / 16.0) } else { 0.0 } }
    }

    /// The move in whole ticks. Both its figures are rounded: a tick to either side takes that in.
    fn in_ticks(&self, period: Period) -> StampMove {
        let ticks = |ns: f64| period.ticks_in(Span::from_seconds(ns * 1e-9));
        let is_changed = self.by_ns != 0.0 || self.doubt_ns > 0.0;
        let rounding = if is_changed { ROUNDING } else { Ticks::ZERO };
        StampMove { by: ticks(self.by_ns), wider: ticks(2.0 * self.doubt_ns) + rounding }
    }
}

#[cfg(test)]
mod tests;
