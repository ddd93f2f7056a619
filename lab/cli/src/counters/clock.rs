//! `ffclock-lab counters clock`: how good a clock each counter and each kind of packet stamp makes, all from the
//! same packets.
//!
//! The experiment is `ffclock_counters::clocks`. Here a server is started for it on loopback, whose time is a known
//! function of the CPU's counter, and its figures become tables and records.

mod served;

use super::campaign::{CampaignOptions, base_period, interval};
use super::conditions::Conditions;
use super::record::RecordTarget;
use crate::columns::table;
use crate::failure::Failure;
use crate::lab::truth::Truth;
use crate::{GlobalOptions, text, waiting_time};
use ffclock_counter::{CounterId, read_ordered};
use ffclock_counters::campaign::{self, CampaignCourse, CampaignPhase};
use ffclock_counters::clocks::tracks::{ClockFigures, StampFigures, Tracks};
use ffclock_counters::recording::{Recorded, RecordingError};
use ffclock_counters::ways::one_for_each_counter;
use ffclock_sys::system_utc_now;
use ffclock_units::{LeapTable, Period, Rate, Span};
use serde::{Deserialize, Serialize};
use served::Served;
use std::fmt::Write;

/// Options of `ffclock-lab counters clock`.
#[derive(clap::Args)]
#[command(mut_arg("length", |length| length.default_value("2 min")))]
#[command(after_help = "Examples:
  $ ffclock-lab counters clock
  $ ffclock-lab counters clock --only tsc,monotonic-raw --stress cpu,network --phase '1 min' --record clock.jsonl
  $ ffclock-lab counters clock --for '1 min' --json | jq 'select(.record == \"clock\") | .iqr_s'

Packets go over loopback to a server whose time is a known function of the CPU's counter, so the error of
each clock is known. Stamps: user (by each counter itself, in this program), socket (by the kernel at the
driver), trace (by the kernel's tracepoints with the raw TSC), module (by the module ffcounter). Those of
the kernel are carried over to each counter by readings of both right before and after the packet. Each
makes two clocks: by the estimator that ffclockd runs (learned) and by that of the papers (classic).")]
pub(super) struct Args {
    #[command(flatten)]
    campaign: CampaignOptions,
    /// Time between two requests
    #[arg(long, value_name = "SPAN", default_value = "250 ms", value_parser = interval)]
    poll: Span,
    /// Leave this much time at the start out of the figures
    #[arg(long, value_name = "SPAN", default_value = "30 s", value_parser = waiting_time)]
    warm_up: Span,
    /// The server's rate against the nominal rate of the CPU's counter
    #[arg(long, value_name = "RATE", default_value = "-37 ppm", allow_hyphen_values = true)]
    skew: Rate,
    /// The largest deviation of the server's rate from its mean, in a swing of one minute
    #[arg(long, value_name = "RATE", default_value = "0.05 ppm")]
    wander: Rate,
}

/// What a recording says about the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ClockAbout {
    base_hertz: f64,
    poll_s: f64,
    warm_up_s: f64,
    skew_ppm: f64,
    wander_ppm: f64,
    clocks: Vec<String>,
    /// Kinds of stamps that the host has not; recordings of earlier versions do not name them.
    #[serde(default)]
    missing: Vec<String>,
}

/// Runs the clocks, records their readings and prints the figures.
pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let period = base_period()?;
    let phases = args.campaign.phases()?;
    check_warm_up(args.warm_up, &phases)?;
    let ways = one_for_each_counter(args.campaign.ways(period)?);
    let mut conditions = Conditions::prepare(&phases)?;
    let truth = truth(args, period);
    let mut served = Served::begin(&truth, period, ways)?;
    let packets = served.packets();
    let tracks = Tracks::new(packets.ways(), &packets.driver_sources(), truth, period);
    let mut tracks = tracks.map_err(|error| Failure::from(error.to_string()))?.after(args.warm_up);
    let about = ClockAbout {
        base_hertz: period.as_hertz(),
        poll_s: args.poll.as_seconds(),
        warm_up_s: args.warm_up.as_seconds(),
        skew_ppm: args.skew.as_fraction() * 1e6,
        wander_ppm: args.wander.as_fraction() * 1e6,
        clocks: tracks.names(),
        missing: packets.missing().to_vec(),
    };
    let mut record = RecordTarget::begin(global, args.campaign.record.as_deref(), "clock", &about)?;
    let CampaignCourse { phases, ended } = campaign::run(&phases, args.poll, &mut conditions, |phase, t| {
        if let Some(errors) = tracks.check(phase.number, t, &served.beside_base()?) {
            record.append("errors", &errors)?;
        }
        match served.exchange()? {
            Some(exchanged) => record.append("exchange", &tracks.feed(phase.number, t, &exchanged)),
            None => record.append("lost", &serde_json::json!({ "t": t, "phase": phase.number })),
        }
    });
    drop((conditions, served));
    record.extend("phase", &phases)?;
    let result = ClockRun { phases, clocks: tracks.figures(), stamps: tracks.stamp_figures(), missing: about.missing };
    record.extend("clock", &result.clocks)?;
    record.extend("stamps", &result.stamps)?;
    let ended = ended.and_then(|()| if result.clocks.is_empty() { Err(NOTHING.into()) } else { Ok(()) });
    record.conclude(ended, || result.page())
}

const NOTHING: &str = "nothing was measured after the warm-up: measure for longer, or shorten --warm-up";

/// Minutes of measuring that would give no figures are refused before they begin.
fn check_warm_up(warm_up: Span, phases: &[CampaignPhase]) -> Result<(), Failure> {
    let length = Span::from_seconds(phases.iter().map(|phase| phase.length_s).sum());
    if length > warm_up {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "after the warm-up of {warm_up} nothing is left of {length}: give more with --for (with --stress: --phase), or less with --warm-up"
    )))
}

fn truth(args: &Args, period: Period) -> Truth {
    Truth {
        origin: read_ordered(CounterId::CPU),
        time: LeapTable::built_in().tai_from_utc(system_utc_now()),
        period: period.stretched(args.skew),
        wander: args.wander,
        swing: Span::from_secs(60),
    }
}

/// The figures of a run.
pub(super) struct ClockRun {
    phases: Vec<CampaignPhase>,
    clocks: Vec<ClockFigures>,
    stamps: Vec<StampFigures>,
    missing: Vec<String>,
}

impl ClockRun {
    /// As a recording has it.
    pub(super) fn of(recorded: &Recorded) -> Result<Self, RecordingError> {
        let ClockAbout { missing, .. } = recorded.about_as()?;
        Ok(ClockRun {
            missing,
            phases: recorded.all("phase")?,
            clocks: recorded.all("clock")?,
            stamps: recorded.all("stamps")?,
        })
    }

    /// The tables as text.
    pub(super) fn page(&self) -> String {
        if self.clocks.is_empty() {
            return format!("{NOTHING}\n");
        }
        let mut page = table(CLOCK_HEADING, self.clocks.iter().map(|clock| self.clock_row(clock)));
        let reference = self.stamps.first().map_or("socket", |stamps| &stamps.reference);
        let _ = writeln!(
            page,
            "\nhow far stamps lie outside those at the driver ({}): earlier on the way out, later on the way in",
            text::printable(reference)
        );
        page += &table(STAMP_HEADING, self.stamps.iter().map(|stamps| self.stamp_row(stamps)));
        for missing in &self.missing {
            let _ = writeln!(page, "missing: {missing}");
        }
        page
    }

    fn phase(&self, number: usize) -> String {
        self.phases.get(number).map_or("-", CampaignPhase::name).to_owned()
    }

    fn clock_row(&self, clock: &ClockFigures) -> Vec<String> {
        let spans = [clock.median_s, clock.iqr_s, clock.p1_s, clock.p25_s, clock.p75_s, clock.p99_s];
        let first = vec![
            text::printable(&clock.counter),
            text::printable(&clock.stamps),
            text::printable(&clock.estimator),
            self.phase(clock.phase),
            clock.count.to_string(),
        ];
        // A damaged recording may claim anything.
        let held = format!("{} of {}", clock.count.saturating_sub(clock.outside), clock.count);
        first.into_iter().chain(spans.map(text::span)).chain([held]).collect()
    }

    fn stamp_row(&self, stamps: &StampFigures) -> Vec<String> {
        let ns = stamps.ns;
        let first =
            vec![stamps.stamps.clone(), stamps.direction.clone(), self.phase(stamps.phase), stamps.count.to_string()];
        let values = [ns.min, ns.p25, ns.median, ns.p75, ns.p95, ns.p99, ns.max];
        first.into_iter().chain(values.map(|value| format!("{value:.0}"))).collect()
    }
}

const CLOCK_HEADING: &str = "COUNTER|STAMPS|ESTIMATOR|PHASE|>COUNT|>MEDIAN|>IQR|>1 %|>25 %|>75 %|>99 %|>BOUND HELD";

const STAMP_HEADING: &str = "STAMPS|DIRECTION|PHASE|>COUNT|>MIN ns|>25 %|>MEDIAN|>75 %|>95 %|>99 %|>MAX";
