//! References: what counters are compared with.

use crate::beside::{BracketedReading, narrowest};
use crate::ffi::{self, Pulse};
use crate::posix_clock::PosixClock;
use crate::ways::{CounterWay, ptp_clock, vdso};
use ffclock::Clock;
use ffclock_units::Period;
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
    /// Pulses of a PPS input, mapped from the system clock to the base.
    Pulses {
        /// The device.
        device: File,
        /// Its path.
        path: PathBuf,
        /// The number of the last pulse that was handed over.
        last: Option<u32>,
        /// The system clock at the last look.
        looked: Option<BracketedReading>,
    },
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

    /// A device: `/dev/ptpN` or `/dev/ppsN`.
    ///
    /// # Errors
    /// [`ReferenceError::Device`].
    pub fn device(path: &Path) -> Result<Self, ReferenceError> {
        let failed = |error| ReferenceError::Device { path: path.to_owned(), error };
        if !path.to_string_lossy().contains("pps") {
            return ptp_clock(path).map(ReferenceClock::Ptp).map_err(failed);
        }
        let device = File::open(path).map_err(failed)?;
        ffi::latest_pulse(&device).map_err(failed)?;
        Ok(ReferenceClock::Pulses { device, path: path.to_owned(), last: None, looked: None })
    }

    /// For people.
    pub fn name(&self) -> &str {
        match self {
            ReferenceClock::Published(_) => "ffclock",
            ReferenceClock::Ptp(way) => way.counter(),
            ReferenceClock::Pulses { path, .. } => path.to_str().unwrap_or("reference"),
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
            ReferenceClock::Pulses { device, path, last, looked } => {
                let pulse =
                    ffi::latest_pulse(device).map_err(|error| ReferenceError::Device { path: path.clone(), error })?;
                let now = narrowest(|| vdso(PosixClock::Realtime).read().map(i128::from));
                let looks = looked.zip(now);
                *looked = now;
                let nominal = ffclock_counter::nominal(ffclock_counter::CounterId::CPU).ok().map(|found| found.period);
                let place = |pulse| pulse_point(pulse, looks?, nominal?);
                Ok(new_pulse(last, pulse).and_then(place))
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

fn new_pulse(last: &mut Option<u32>, pulse: Pulse) -> Option<Pulse> {
    let is_new = *last != Some(pulse.sequence);
    // The first one may be old.
    let known = last.replace(pulse.sequence).is_some();
    (is_new && known && pulse.realtime > 0).then_some(pulse)
}

/// Between two looks the system clock runs at its own rate, by what it is slewed and by what the nominal period of the
/// base is off. A rate farther from 1 than this [s/s] is a step.
const RATE_MAX: f64 = 0.001;

/// The pulse came between two looks at the system clock, or shortly before the first: the line through both makes it a
/// reading of the base. Its true time is a whole second. `None` where the clock was stepped in between, or the pulse
/// belongs to another time.
fn pulse_point(
    pulse: Pulse,
    (before, now): (BracketedReading, BracketedReading),
    nominal: Period,
) -> Option<BracketedReading> {
    let (span_ns, span) = (now.value - before.value, i128::from(now.base.wrapping_sub(before.base)));
    let rate = span_ns as f64 * 1e-9 * nominal.as_hertz() / span as f64 - 1.0;
    let since_ns = pulse.realtime - before.value;
    let is_of_now = -2_000_000_000 < since_ns && since_ns <= span_ns;
    let second = (pulse.realtime + 500_000_000).div_euclid(1_000_000_000) * 1_000_000_000;
    (rate.abs() <= RATE_MAX && is_of_now).then(|| BracketedReading {
        base: before.base.wrapping_add((since_ns * span / span_ns) as u64),
        width: before.width.max(now.width),
        value: second,
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

    #[test]
    fn a_pulse_is_handed_over_once() {
        let mut last = None;
        let pulse = |sequence| Pulse { sequence, realtime: 5_000_000_100 };
        assert_eq!(new_pulse(&mut last, pulse(7)), None);
        assert_eq!(new_pulse(&mut last, pulse(7)), None);
        assert_eq!(new_pulse(&mut last, pulse(8)), Some(pulse(8)));
    }

    /// Looks 0.25 s apart; the counter of nominally 1 GHz is 200 ppm fast and the system clock slewed by 500 ppm.
    #[test]
    fn a_pulse_is_placed_by_the_rate_that_the_two_clocks_have() {
        let nominal = Period::from_hertz(1e9).unwrap();
        let look = |seconds: f64| BracketedReading {
            base: (1u64 << 63).wrapping_add_signed((seconds * 1e9 * 1.0002) as i64),
            width: 40,
            value: 7_000_000_000 + (seconds * 1e9 * 1.0005) as i128,
        };
        let looks = (look(0.0), look(0.25));
        let at = |seconds: f64| Pulse { sequence: 1, realtime: look(seconds).value };
        for seconds in [0.2, 0.01, 0.25, -1.5] {
            let point = pulse_point(at(seconds), looks, nominal).unwrap();
            assert!(point.base.abs_diff(look(seconds).base) <= 2, "{point:?}");
            assert_eq!(point.value, if seconds < -1.0 { 5_000_000_000 } else { 7_000_000_000 });
        }
        assert_eq!(pulse_point(at(-2.5), looks, nominal), None, "of long ago");
        assert_eq!(pulse_point(at(0.26), looks, nominal), None, "of the future");
        let stepped = BracketedReading { value: looks.1.value + 1_000_000, ..looks.1 };
        assert_eq!(pulse_point(at(0.2), (looks.0, stepped), nominal), None, "the clock was stepped by 1 ms");
        assert_eq!(pulse_point(at(0.0), (looks.0, looks.0), nominal), None, "no time has passed");
    }
}
