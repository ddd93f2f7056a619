//! References: what counters are compared with.

use super::pulses::{PulseClock, PulseStamps};
use crate::beside::{BracketedReading, narrowest};
use crate::ways::{CounterWay, ptp_clock};
use ffclock::Clock;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

/// Why there is no reference.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// The published clock cannot be read.
    #[error(
        "the published clock cannot be the reference: {0}; start ffclockd and wait with `ffclock wait`, or name another --against"
    )]
    Page(String),
    /// A device cannot be used.
    #[error(
        "{path} cannot be the reference: {error}; `ffclock-lab counters` lists the devices, and their group may read them"
    )]
    Device {
        /// The device.
        path: PathBuf,
        /// What opening or reading it gave.
        error: io::Error,
    },
    /// A file cannot be used.
    #[error(
        "{path} cannot be the reference: {reason}; each line is a reading of the CPU's counter, a comma, and the time in s"
    )]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, with the line where there is one.
        reason: String,
    },
}

/// A source of time to compare counters with.
#[derive(Debug)]
pub enum ReferenceClock {
    /// The clock that ffclockd publishes: the absolute time of a base reading.
    Published(Box<Clock>),
    /// A PTP hardware clock.
    Ptp(CounterWay),
    /// Pulses of a PPS input.
    Pulses(Box<PulseClock>),
}

impl ReferenceClock {
    /// The published clock at `page`, or at its usual place.
    ///
    /// # Errors
    /// [`ReferenceError::Page`].
    pub fn published(page: Option<&Path>) -> Result<Self, ReferenceError> {
        let clock = match page {
            Some(page) => Clock::open_at(page),
            None => Clock::open(),
        };
        let clock = clock.map_err(|error| ReferenceError::Page(error.to_string()))?;
        clock.now().map_err(|error| ReferenceError::Page(error.to_string()))?;
        Ok(ReferenceClock::Published(Box::new(clock)))
    }

    /// A device: `/dev/ptpN` or `/dev/ppsN`. Of the latter a pulse is awaited where the kernel's tracing may stamp it.
    ///
    /// # Errors
    /// [`ReferenceError::Device`].
    pub fn device(path: &Path) -> Result<Self, ReferenceError> {
        let failed = |error| ReferenceError::Device { path: path.to_owned(), error };
        if !path.to_string_lossy().contains("pps") {
            return ptp_clock(path).map(ReferenceClock::Ptp).map_err(failed);
        }
        PulseClock::open(path).map(|clock| ReferenceClock::Pulses(Box::new(clock))).map_err(failed)
    }

    /// For people.
    pub fn name(&self) -> &str {
        match self {
            ReferenceClock::Published(_) => "ffclock",
            ReferenceClock::Ptp(way) => way.counter(),
            ReferenceClock::Pulses(pulses) => pulses.path().to_str().unwrap_or("reference"),
        }
    }

    /// What stamps its pulses, where it has pulses.
    pub fn pulse_stamps(&self) -> Option<PulseStamps> {
        match self {
            ReferenceClock::Pulses(pulses) => Some(pulses.stamps()),
            ReferenceClock::Published(_) | ReferenceClock::Ptp(_) => None,
        }
    }

    /// The time now, by the base; `None` when there is nothing new.
    ///
    /// # Errors
    /// The reference is gone.
    pub fn point(&mut self) -> Result<Option<BracketedReading>, ReferenceError> {
        match self {
            ReferenceClock::Published(clock) => published_point(clock).map(Some),
            ReferenceClock::Ptp(way) => {
                narrowest(|| way.read().map(i128::from)).map(Some).ok_or_else(|| ReferenceError::Device {
                    path: PathBuf::from("/dev").join(way.counter()),
                    error: io::Error::other("it cannot be read any more"),
                })
            }
            ReferenceClock::Pulses(pulses) => {
                pulses.point().map_err(|error| ReferenceError::Device { path: pulses.path().to_owned(), error })
            }
        }
    }
}

/// The published time between two readings of the base: the daemon may keep time with another counter.
fn published_point(clock: &Clock) -> Result<BracketedReading, ReferenceError> {
    let point = narrowest(|| clock.now().ok().map(|reading| reading.time.since_origin().as_nanos()));
    point.ok_or_else(|| {
        let why = clock.now().err().map_or_else(|| "it was gone for a moment".to_owned(), |error| error.to_string());
        ReferenceError::Page(why)
    })
}

/// The longest file that is taken: a week of seconds, some ten times over.
const LONGEST_FILE: u64 = 256 << 20;

/// The points of a file: each line a reading of the CPU's counter [ticks], a comma, the time [s]. Lines that begin with
/// `#` are remarks.
///
/// # Errors
/// [`ReferenceError::File`].
pub fn points_of_file(path: &Path) -> Result<Vec<BracketedReading>, ReferenceError> {
    let points = all_points(path)?;
    if points.len() < 3 {
        let reason = format!("it has {} points, and a rate that changes needs three", points.len());
        return Err(ReferenceError::File { path: path.to_owned(), reason });
    }
    Ok(points)
}

/// Whether a file can be a reference once it has all its points: its program may just have begun to write.
///
/// # Errors
/// [`ReferenceError::File`].
pub fn check_file(path: &Path) -> Result<(), ReferenceError> {
    all_points(path).map(|_| ())
}

fn all_points(path: &Path) -> Result<Vec<BracketedReading>, ReferenceError> {
    let failed = |reason: String| ReferenceError::File { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let mut points = Vec::new();
    for (number, line) in io::BufReader::new(file.take(LONGEST_FILE)).lines().enumerate() {
        let line = line.map_err(|error| failed(error.to_string()))?;
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        points.push(file_point(&line).ok_or_else(|| failed(format!("line {} is not of this form", number + 1)))?);
    }
    Ok(points)
}

fn file_point(line: &str) -> Option<BracketedReading> {
    let (counter, seconds) = line.split_once(',')?;
    let (whole, fraction) = seconds.trim().split_once('.').unwrap_or((seconds.trim(), ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let digits = fraction.get(..fraction.len().min(9))?;
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let nanos: i128 = format!("{digits:0<9}").parse().ok()?;
    let value = whole.parse::<i64>().ok().map(i128::from)? * 1_000_000_000 + nanos;
    Some(BracketedReading { base: counter.trim().parse().ok()?, width: 0, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_a_file_are_exact() {
        let point = file_point(" 18446744073709551615, 1700000000.25").unwrap();
        assert_eq!((point.base, point.value), (u64::MAX, 1_700_000_000_250_000_000));
        assert_eq!(file_point("5,3").unwrap().value, 3_000_000_000);
        for bad in ["", "5", "5,", "x,1", "5,-1", "5,1.x", "5,1e3", "-5,1", "5,99999999999999999999", "5,1.\u{e9}"] {
            assert!(file_point(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_reference_that_is_none_is_refused_with_a_remedy() {
        let missing = ReferenceClock::published(Some(Path::new("/nonexistent/page"))).unwrap_err();
        assert!(missing.to_string().contains("start ffclockd"), "{missing}");
        for path in ["/dev/null", "/nonexistent/ptp0", "/nonexistent/pps0"] {
            assert!(matches!(ReferenceClock::device(Path::new(path)), Err(ReferenceError::Device { .. })), "{path}");
        }
        let file = std::env::temp_dir().join(format!("ffclock-reference-{}", std::process::id()));
        std::fs::write(&file, "# counter,time\n1,2\n").unwrap();
        check_file(&file).unwrap();
        let error = points_of_file(&file).unwrap_err().to_string();
        std::fs::remove_file(&file).unwrap();
        assert!(error.contains("it has 1 points"), "{error}");
    }
}
