//! The pulses of a PPS input as readings of the base: by the raw counter where the kernel's tracing gives it, else by
//! the system clock, which is carried to the base between two looks at both.

use super::pulse_events::{NoPulseEvents, PulseEvents};
use crate::beside::{BracketedReading, narrowest};
use crate::ffi::{self, Pulse};
use crate::posix_clock::PosixClock;
use crate::ways::vdso;
use core::fmt;
use ffclock_counter::{CounterId, nominal};
use ffclock_sys::{mono_now, poll};
use ffclock_units::{Period, Span};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// What stamps pulses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stamped_by", rename_all = "kebab-case")]
pub enum PulseStamps {
    /// The raw counter of the CPU, in the kernel.
    RawCounter,
    /// The system clock, which is carried to the counter.
    SystemClock {
        /// Why it is not the raw counter.
        reason: String,
    },
}

impl fmt::Display for PulseStamps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PulseStamps::RawCounter => f.write_str("pulses are stamped with the raw counter by the kernel's tracing"),
            PulseStamps::SystemClock { reason } => {
                write!(f, "pulses are stamped with the system clock, which is carried to the counter: {reason}")
            }
        }
    }
}

/// A PPS input whose pulses are whole seconds.
#[derive(Debug)]
pub struct PulseClock {
    device: File,
    path: PathBuf,
    events: Result<PulseEvents, String>,
    /// The number of the last pulse that was handed over.
    last: Option<u32>,
    /// The system clock at the last look.
    looked: Option<BracketedReading>,
    nominal: Option<Period>,
    missed: MissedPulses,
}

/// Pulses in a row that tracing did not show.
#[derive(Debug, Default)]
struct MissedPulses(u32);

/// More pulses in a row are not lost by chance: tracing has gone away, as where another user removes all probes.
const MISSED_AT_MOST: u32 = 10;

impl MissedPulses {
    /// The counter at a pulse. One that tracing lost is left out.
    fn counted(&mut self, counter: Option<u64>) -> io::Result<Option<u64>> {
        self.0 = if counter.is_some() { 0 } else { self.0 + 1 };
        if self.0 > MISSED_AT_MOST {
            return Err(io::Error::other(format!(
                "{} pulses in a row came that the kernel's tracing did not show",
                self.0
            )));
        }
        Ok(counter)
    }
}

/// How long the first pulse is awaited: pulses of a second's distance come twice.
const PATIENCE: Span = Span::from_millis(2500);
/// Between two looks at a device whose pulse is awaited.
const PAUSE: Span = Span::from_millis(20);
/// A driver that stamps in the interrupt calls the kernel's function within some us of its stamp. Where this [s] has
/// passed, the stamp was taken elsewhere, or the driver was held up in between: the event is not the pulse.
const LATEST: f64 = 100e-6;

/// Why a device's pulses come by the system clock.
#[derive(Debug, thiserror::Error)]
enum NoRawPulses {
    #[error(transparent)]
    Events(#[from] NoPulseEvents),
    #[error(
        "its driver took the stamp {us:.0} us before it handed the pulse to the kernel, so the stamp is the better one"
    )]
    Late {
        /// How long before, us.
        us: f64,
    },
    #[error("the kernel had the pulse {us:.0} us before the time of its stamp, so one of the two is wrong")]
    Early {
        /// How long before, us.
        us: f64,
    },
    #[error("the kernel's tracing showed no event with the stamp of a pulse that came")]
    Unseen,
    #[error("the rate of the CPU's counter is not known, so stamps cannot be compared with it")]
    NoRate,
    #[error("no pulse came within {PATIENCE} to try it with")]
    NoPulse,
    #[error("pulses came, but the system clock did not run evenly around any of them, so none could be tried")]
    Unplaced,
    #[error("{0}")]
    Device(#[from] io::Error),
}

impl PulseClock {
    /// Opens the device `path`. Where the kernel's tracing can be had, waits for a pulse to see whether it is traced.
    ///
    /// # Errors
    /// It cannot be opened, or is no PPS device.
    pub fn open(path: &Path) -> io::Result<Self> {
        let device = File::open(path)?;
        ffi::latest_pulse(&device)?;
        let nominal = nominal(CounterId::CPU).ok().map(|found| found.period);
        let events = Err(String::new());
        let (path, missed) = (path.to_owned(), MissedPulses::default());
        let mut clock = PulseClock { device, path, events, last: None, looked: None, nominal, missed };
        clock.events = clock.tried_events().map_err(|error| error.to_string());
        Ok(clock)
    }

    /// Its device.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What stamps its pulses.
    pub fn stamps(&self) -> PulseStamps {
        match &self.events {
            Ok(_) => PulseStamps::RawCounter,
            Err(reason) => PulseStamps::SystemClock { reason: reason.clone() },
        }
    }

    /// The latest pulse; `None` when there is nothing new.
    pub(super) fn point(&mut self) -> io::Result<Option<BracketedReading>> {
        let (pulse, stamped) = self.stamped_pulse()?;
        let (Some(pulse), Ok(events)) = (pulse, &mut self.events) else { return Ok(stamped) };
        let Some(counter) = self.missed.counted(events.counter_at(pulse)?)? else { return Ok(None) };
        let is_late = self.seconds_after(counter, stamped).is_some_and(|seconds| seconds.abs() > LATEST);
        Ok((!is_late).then(|| BracketedReading { base: counter, width: 0, value: second_of(pulse) }))
    }

    /// Events that were found to be the pulses of this device.
    fn tried_events(&mut self) -> Result<PulseEvents, NoRawPulses> {
        let nominal = self.nominal.ok_or(NoRawPulses::NoRate)?;
        let mut events = PulseEvents::begin()?;
        let (deadline, mut came) = (mono_now() + PATIENCE, false);
        while mono_now() < deadline {
            let (pulse, stamped) = self.stamped_pulse()?;
            came |= pulse.is_some();
            // Without a reading by the stamp, as after a step, the next pulse may have one.
            let (Some(pulse), Some(stamped)) = (pulse, stamped) else {
                poll(&mut [], Some(mono_now() + PAUSE))?;
                continue;
            };
            let counter = events.counter_at(pulse)?.ok_or(NoRawPulses::Unseen)?;
            return NoRawPulses::by_delay(seconds_between(stamped.base, counter, nominal)).map_or(Ok(events), Err);
        }
        Err(if came { NoRawPulses::Unplaced } else { NoRawPulses::NoPulse })
    }

    /// A new pulse, and its reading by the stamp of the system clock.
    fn stamped_pulse(&mut self) -> io::Result<(Option<Pulse>, Option<BracketedReading>)> {
        let pulse = ffi::latest_pulse(&self.device)?;
        let now = narrowest(|| vdso(PosixClock::Realtime).read().map(i128::from));
        let looks = self.looked.zip(now);
        self.looked = now;
        let new = new_pulse(&mut self.last, pulse);
        let place = |pulse| pulse_point(pulse, looks?, self.nominal?);
        Ok((new, new.and_then(place)))
    }

    /// How long after the stamp the counter was read [s].
    fn seconds_after(&self, counter: u64, stamped: Option<BracketedReading>) -> Option<f64> {
        Some(seconds_between(stamped?.base, counter, self.nominal?))
    }
}

/// From one reading of the counter to another [s].
fn seconds_between(from: u64, to: u64, nominal: Period) -> f64 {
    to.wrapping_sub(from).cast_signed() as f64 / nominal.as_hertz()
}

impl NoRawPulses {
    /// What is wrong with an event that came this long after the stamp of its pulse [s]; nothing where it is the pulse.
    fn by_delay(seconds: f64) -> Option<Self> {
        let us = seconds.abs() * 1e6;
        match seconds {
            seconds if seconds.abs() <= LATEST => None,
            seconds if seconds > 0.0 => Some(NoRawPulses::Late { us }),
            _ => Some(NoRawPulses::Early { us }),
        }
    }
}

fn new_pulse(last: &mut Option<u32>, pulse: Pulse) -> Option<Pulse> {
    let is_new = *last != Some(pulse.sequence);
    // The first one may be old.
    let known = last.replace(pulse.sequence).is_some();
    (is_new && known && pulse.realtime > 0).then_some(pulse)
}

/// Its true time, ns: a whole second.
fn second_of(pulse: Pulse) -> i128 {
    (pulse.realtime + 500_000_000).div_euclid(1_000_000_000) * 1_000_000_000
}

/// Between two looks the system clock runs at its own rate, by what it is slewed and by what the nominal period of the
/// base is off. A rate farther from 1 than this [s/s] is a step.
const RATE_MAX: f64 = 0.001;

/// The pulse came between two looks at the system clock, or shortly before the first: the line through both makes it a
/// reading of the base. `None` where the clock was stepped in between, or the pulse belongs to another time.
fn pulse_point(
    pulse: Pulse,
    (before, now): (BracketedReading, BracketedReading),
    nominal: Period,
) -> Option<BracketedReading> {
    let (span_ns, span) = (now.value - before.value, i128::from(now.base.wrapping_sub(before.base)));
    let rate = span_ns as f64 * 1e-9 * nominal.as_hertz() / span as f64 - 1.0;
    let since_ns = pulse.realtime - before.value;
    let is_of_now = -2_000_000_000 < since_ns && since_ns <= span_ns;
    (rate.abs() <= RATE_MAX && is_of_now).then(|| BracketedReading {
        base: before.base.wrapping_add((since_ns * span / span_ns) as u64),
        width: before.width.max(now.width),
        value: second_of(pulse),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_says_what_stamped_the_pulses() {
        let stamps = PulseStamps::SystemClock { reason: "no root".to_owned() };
        let text = serde_json::to_string(&stamps).unwrap();
        assert_eq!(text, r#"{"stamped_by":"system-clock","reason":"no root"}"#);
        assert_eq!(serde_json::from_str::<PulseStamps>(&text).unwrap(), stamps);
        assert_eq!(serde_json::to_string(&PulseStamps::RawCounter).unwrap(), r#"{"stamped_by":"raw-counter"}"#);
        let earlier = r#"{"base_hertz":1e9,"counters":[],"reference":"/dev/pps0","every_s":1.0}"#;
        let earlier: crate::stability::StabilityAbout = serde_json::from_str(earlier).unwrap();
        assert_eq!(earlier.pulses, None, "an earlier recording does not say it");
    }

    #[test]
    fn a_pulse_that_tracing_lost_is_left_out_and_tracing_that_went_away_is_an_error() {
        let mut missed = MissedPulses::default();
        for _ in 0..3 {
            (0..MISSED_AT_MOST).for_each(|_| assert_eq!(missed.counted(None).unwrap(), None));
            assert_eq!(missed.counted(Some(7)).unwrap(), Some(7));
        }
        (0..MISSED_AT_MOST).for_each(|_| assert_eq!(missed.counted(None).unwrap(), None));
        assert!(missed.counted(None).unwrap_err().to_string().starts_with("11 pulses in a row"));
    }

    #[test]
    fn an_event_that_is_not_the_pulse_is_said_to_be_late_or_early() {
        let said = |us: f64| NoRawPulses::by_delay(us * 1e-6).map(|reason| reason.to_string()).unwrap_or_default();
        assert_eq!([said(99.0), said(-99.0)], ["", ""]);
        assert!(said(300.0).contains("took the stamp 300 us before it handed"), "{}", said(300.0));
        assert!(said(-300.0).contains("the pulse 300 us before the time of its stamp"), "{}", said(-300.0));
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
