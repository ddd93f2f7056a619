//! `ffclock-lab counters stability`: how steadily counters run.

use super::campaign::{CampaignOptions, base_period, interval};
use super::conditions::Conditions;
use super::record::RecordTarget;
use crate::columns::table;
use crate::failure::Failure;
use crate::{GlobalOptions, text};
use ffclock_counters::campaign::{self, CampaignCourse, CampaignPhase};
use ffclock_counters::recording::{Recorded, RecordingError};
use ffclock_counters::stability::{
    CountersSample, Deviation, ReferenceClock, Stability, StabilityAbout, Steadiness, analyse, check_file,
    points_of_file, with_reference,
};
use ffclock_counters::ways::one_for_each_counter;
use ffclock_units::Span;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Options of `ffclock-lab counters stability`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab counters stability --for '10 min' --against ffclock
  $ ffclock-lab counters stability --against /dev/pps0 --for '7 d' --record week.jsonl
  $ ffclock-lab counters stability --stress cpu,cpu,network --record stress.jsonl
  $ ffclock-lab counters stability --for '10 s' --json | jq 'select(.record == \"steadiness\")'

Every counter is read between two readings of the CPU's own, which is called base. Rates are ppm, positive
when the counter is fast; those from sample to sample are relative to the mean of the quiet phases.
A file for --against must be there at the beginning and is read at the end: lines of the base's reading,
a comma, and the time in s.")]
pub(super) struct Args {
    #[command(flatten)]
    campaign: CampaignOptions,
    /// How often to read the counters
    #[arg(long, value_name = "SPAN", default_value = "1 s", value_parser = interval)]
    every: Span,
    /// The reference: ffclock (the published clock), /dev/ptpN, /dev/ppsN, or a file
    #[arg(long, value_name = "REFERENCE")]
    against: Option<Against>,
}

/// What to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Against {
    Published,
    Device(PathBuf),
    File(PathBuf),
}

impl FromStr for Against {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "ffclock" => Against::Published,
            text if text.starts_with("/dev/") => Against::Device(text.into()),
            text => Against::File(text.into()),
        })
    }
}

/// Reads the counters at even intervals, records the readings and prints the figures.
pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let period = base_period()?;
    let phases = args.campaign.phases()?;
    // Before the reference: from here on an interrupt ends the measurement in good order, and what the reference made
    // in the kernel goes with it.
    let mut conditions = Conditions::prepare(&phases)?;
    let failed = |error: &dyn std::fmt::Display| Failure::from(error.to_string());
    let reference = match &args.against {
        Some(Against::Published) => {
            Some(ReferenceClock::published(global.page.as_deref()).map_err(|error| failed(&error))?)
        }
        Some(Against::Device(path)) => Some(ReferenceClock::device(path).map_err(|error| failed(&error))?),
        _ => None,
    };
    if let Some(Against::File(path)) = &args.against {
        check_file(path).map_err(|error| failed(&error))?;
    }
    let ways = one_for_each_counter(args.campaign.ways(period)?);
    let mut stability = Stability::new(ways, reference, period).map_err(|error| failed(&error))?;
    let mut about = stability.about(args.every.as_seconds());
    if let Some(Against::File(path)) = &args.against {
        about.reference = Some(path.display().to_string());
    }
    if let (Some(name), Some(stamps)) = (&about.reference, &about.pulses) {
        eprintln!("{name}: {}", text::printable(&stamps.to_string()));
    }
    let mut record = RecordTarget::begin(global, args.campaign.record.as_deref(), "stability", &about)?;
    let mut samples = Vec::new();
    let CampaignCourse { phases, ended } = campaign::run(&phases, args.every, &mut conditions, |phase, t| {
        let sample = stability.sample(phase.number, t).map_err(|error| failed(&error))?;
        record.append("sample", &sample)?;
        samples.push(sample);
        Ok(())
    });
    drop(conditions);
    record.extend("phase", &phases)?;
    let joined = match &args.against {
        Some(Against::File(path)) => {
            join(&about, &mut samples, path).and_then(|before| record.extend("sample", &samples[before..]))
        }
        _ => Ok(()),
    };
    let ended = ended.and(joined).and_then(|()| compared(&about, &samples));
    let result = StabilityRun::new(phases, &about, &samples);
    record.extend("steadiness", &result.found)?;
    record.conclude(ended, || result.page())
}

/// Adds the points of a file; returns how many samples there were before.
fn join(about: &StabilityAbout, samples: &mut Vec<CountersSample>, path: &Path) -> Result<usize, Failure> {
    let points = points_of_file(path).map_err(|error| Failure::from(error.to_string()))?;
    let count = samples.len();
    *samples = with_reference(about, samples, &points);
    Ok(count)
}

/// A reference without samples is no reference, even where the counters could be compared with one another.
fn compared(about: &StabilityAbout, samples: &[CountersSample]) -> Result<(), Failure> {
    let Some(reference) = &about.reference else { return Ok(()) };
    let count = samples.iter().filter(|sample| sample.reference.is_some()).count();
    if count >= 2 {
        return Ok(());
    }
    let few = if count == 0 { "none".to_owned() } else { format!("only {count}") };
    Err(format!(
        "{few} of the times that {reference} should give came while it was measured, and a rate needs two: measure for longer, and see \
         whether its signal is connected (`ffclock-lab counters` lists the devices)"
    )
    .into())
}

/// The figures of a run.
pub(super) struct StabilityRun {
    phases: Vec<CampaignPhase>,
    found: Vec<Steadiness>,
}

impl StabilityRun {
    fn new(phases: Vec<CampaignPhase>, about: &StabilityAbout, samples: &[CountersSample]) -> Self {
        let found = analyse(about, samples).iter().map(|curve| curve.steadiness(&phases)).collect();
        StabilityRun { phases, found }
    }

    /// As a recording has it.
    pub(super) fn of(recorded: &Recorded) -> Result<Self, RecordingError> {
        Ok(StabilityRun { phases: recorded.all("phase")?, found: recorded.all("steadiness")? })
    }

    /// The tables as text.
    pub(super) fn page(&self) -> String {
        let mut page = table(RATE_HEADING, self.found.iter().flat_map(|found| self.rate_rows(found)));
        for found in &self.found {
            let _ = writeln!(
                page,
                "\nstability of {} against {}",
                text::printable(&found.counter),
                text::printable(&found.against)
            );
            page += &table(DEVIATION_HEADING, found.deviations.iter().map(deviation_row));
        }
        page
    }

    fn rate_rows(&self, found: &Steadiness) -> Vec<Vec<String>> {
        let of_phase = |phase: &CampaignPhase| {
            let rates = found.rates_ppm.get(phase.number).copied().flatten();
            let spread = |value: fn(&ffclock_statistics::Spread) -> f64| {
                rates.as_ref().map_or("-".to_owned(), |rates| format!("{:+.4}", value(rates)))
            };
            vec![
                text::printable(&found.counter),
                text::printable(&found.against),
                phase.name().to_owned(),
                found.rate_ppm.map_or("-".to_owned(), |rate| format!("{rate:+.4}")),
                spread(|rates| rates.median),
                spread(|rates| rates.iqr()),
                spread(|rates| rates.min),
                spread(|rates| rates.max),
                found.width_ns.map_or("-".to_owned(), |width| format!("{width:.0}")),
            ]
        };
        self.phases.iter().map(of_phase).collect()
    }
}

const RATE_HEADING: &str = "COUNTER|AGAINST|PHASE|>MEAN ppm|>STRAY ppm|>IQR|>MIN|>MAX|>WIDTH ns";

const DEVIATION_HEADING: &str = ">TAU s|>ALLAN|>MODIFIED|>COUNT";

fn deviation_row(deviation: &Deviation) -> Vec<String> {
    vec![
        format!("{:.3}", deviation.tau_s),
        format!("{:.3e}", deviation.adev),
        deviation.mdev.map_or("-".to_owned(), |mdev| format!("{mdev:.3e}")),
        deviation.count.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_recognised_by_their_form() {
        let of = |text: &str| text.parse::<Against>().unwrap();
        assert_eq!(of("ffclock"), Against::Published);
        assert_eq!(of("/dev/pps0"), Against::Device("/dev/pps0".into()));
        assert_eq!(of("gps.csv"), Against::File("gps.csv".into()));
    }
}
