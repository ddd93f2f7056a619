//! The host's own delays, measured by `ffclock-lab probe calibrate` and taken off the stamps.
//!
//! A stamp is taken at some location of the host. The packet passes the driver later (on its way out) or earlier (on
//! its way in). Every packet takes at least the smallest such delay, so a stamp may be moved by that delay towards the
//! wire. The round trip becomes shorter by the known delay, and the bound with it. ("Probing the Latencies of Software
//! Timestamping", section V.)
//!
//! The smallest delays are safe for the bound, but a clock does not follow them: one packet in a thousand finds every
//! cache hot, and the clock follows the lower edge of the bulk of its packets. So both stamps are also moved in the
//! same direction, which leaves the round trip as it is. This move makes the delays that are taken off as unequal as
//! the clock finds the two directions.
//!
//! A measured smallest delay is not the smallest possible one: caches may be hotter one day. So a moved stamp becomes
//! wider by twice the possible error. That error is the stated uncertainty of the measurement, plus the spread between
//! the loads that were tried, or plus a sixteenth of the delay where that is more. The common move puts the stamp that
//! moves towards the wire in doubt by the whole move; the other stamp becomes safer.
//!
//! Another kernel, driver or machine has other delays. So a calibration names one of each and is not used for others.

use ffclock_units::{Period, Span, StampLocation, StampMove, StampShift, Ticks};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;

/// A file that is longer was not written by this program.
const LONGEST: u64 = 1 << 20;
/// A longer smallest delay is not credible: something waited in every packet. An uncertainty that is longer says
/// nothing.
const LONGEST_DELAY_NS: f64 = 1e6;
/// Rounding to ticks may take this much from a stamp's width, and from the move on one side of it.
const ROUNDING: Ticks = Ticks::from_raw(2);

/// The name for a host without load.
pub const QUIET: &str = "quiet";

/// The host and the path that a calibration is valid for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The machine's name.
    pub host: String,
    /// The kernel's release.
    pub kernel: String,
    /// The network device.
    pub device: String,
    /// The driver of that device.
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
    /// The host, and the path of packets through it.
    pub subject: Subject,
    /// The location of the stamps.
    pub location: Taken,
    /// The load during the measurement, `quiet` without any.
    pub load: String,
    /// The smallest delay from the stamp to the driver, on the way out [ns].
    pub out_ns: f64,
    /// The smallest delay from the driver to the stamp, on the way in [ns].
    pub in_ns: f64,
    /// How much longer the way out is than the way in, for a clock that follows these packets [ns]: twice its error.
    /// Absent from calibrations of earlier versions.
    #[serde(default)]
    pub unequal_ns: Option<f64>,
    /// How far the smallest delays may be off, as stated by the measurement itself [ns].
    pub uncertainty_ns: f64,
    /// The number of packets that this rests on.
    pub packets: u64,
    /// The time of the measurement, in seconds since 1970.
    pub measured_at: i64,
}

/// Everything that was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// One entry for each subject, location and load.
    pub entries: Vec<Entry>,
}

/// Why a calibration is not used.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// The file is missing or cannot be read.
    #[error("{0}; run `ffclock-lab probe calibrate` on this host, and restart ffclockd")]
    Unreadable(io::Error),
    /// The file is not a calibration, or one of its figures is impossible.
    #[error("it is no calibration: {0}; run `ffclock-lab probe calibrate` again")]
    Damaged(String),
    /// It is about another host, kernel, device or driver.
    #[error(
        "it is about {measured}, and this is {now}; take asymmetry = \"calibrated\" out of the configuration and restart ffclockd, which begins a \
         new recording; run `ffclock-lab probe calibrate` again, put it back and restart"
    )]
    Stale {
        /// The subject of the latest measurement.
        measured: String,
        /// The subject at hand.
        now: String,
    },
    /// It has no entry for stamps of this location.
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
    /// The name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Taken::User => "user",
            Taken::Kernel => "kernel",
        }
    }

    /// The location class of a stamp.
    pub fn of(location: StampLocation) -> Self {
        if location == StampLocation::Kernel { Taken::Kernel } else { Taken::User }
    }
}

impl Entry {
    /// Whether the figures can be those of a host: finite, none longer than a millisecond, the uncertainty not
    /// negative, at least one packet. An impossible figure is refused and never clamped: otherwise the bound would rest
    /// on a figure that was not measured.
    pub fn is_plausible(&self) -> bool {
        let delays = [self.out_ns, self.in_ns, self.unequal_ns.unwrap_or(0.0)];
        // A comparison with NaN is always false.
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

    /// Adds `entry`, or replaces the one for the same subject, location and load.
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

    /// The move of stamps of this location on this subject. Under load caches are hot and delays shorter, so the
    /// smallest delay of all loads counts.
    ///
    /// # Errors
    /// No entry fits, and the error names what was measured instead; or a figure is impossible.
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
            // Both stamps move the same way: the sum of what is taken off stays that of the smallest delays.
            let lean_ns = (unequal.by_ns - (out.by_ns - back.by_ns)) / 2.0;
            (out.by_ns, back.by_ns) = (out.by_ns + lean_ns, back.by_ns - lean_ns);
            // d >= least: sent + least + lean - passage <= lean, so a positive lean puts the sent stamp in doubt by the
            // lean; received - (least - lean) - passage >= lean, so a negative lean puts the received stamp in doubt.
            // The other stamp gains as much.
            out.doubt_ns += lean_ns.max(0.0) + unequal.doubt_ns;
            back.doubt_ns += (-lean_ns).max(0.0) + unequal.doubt_ns;
        }
        Ok(StampShift { sent: out.in_ticks(period), received: back.in_ticks(period) })
    }
}

/// How much longer the way out is than the way in [ns], and the possible error of that [ns], since loads differ.
struct Unequal {
    by_ns: f64,
    doubt_ns: f64,
}

impl Unequal {
    /// The value for the quiet host, or for the load that was measured first.
    fn of(entries: &[&&Entry]) -> Option<Self> {
        let by_ns = |entry: &&&Entry| entry.unequal_ns;
        let quiet = entries.iter().find(|entry| entry.load == QUIET).or(entries.first()).and_then(by_ns)?;
        let farthest = entries.iter().filter_map(by_ns).map(|other| (other - quiet).abs()).fold(0.0, f64::max);
        Some(Unequal { by_ns: quiet, doubt_ns: farthest / 2.0 })
    }
}

/// A move [ns], and its possible error [ns].
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
        // A delay that cannot be distinguished from zero counts as zero, and a stamp never moves away from the wire.
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
