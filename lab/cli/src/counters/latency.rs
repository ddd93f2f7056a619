//! `ffclock-lab counters latency`: how long reading takes.

mod ratios;

use super::campaign::{CampaignOptions, base_period, cpus, interval};
use super::conditions::Conditions;
use super::list::handover_line;
use super::record::RecordTarget;
use crate::columns::table;
use crate::failure::Failure;
use crate::{GlobalOptions, text};
use ffclock_counters::campaign::{self, CampaignCourse, CampaignPhase};
use ffclock_counters::handover::{Handover, play_all};
use ffclock_counters::latency::{BATCH, Figures, LatencyAbout, LatencyMeasurement, LatencyPlan, Outlier, Overhead};
use ffclock_counters::recording::{Recorded, RecordingError};
use ffclock_units::Span;
use std::fmt::Write;

/// Options of `ffclock-lab counters latency`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab counters latency
  $ ffclock-lab counters latency --only tsc,monotonic-raw --for '1 min'
  $ ffclock-lab counters latency --stress cpu,network --phase '20 s' --record latency.jsonl
  $ ffclock-lab counters latency --for '1 s' --json | jq 'select(.record == \"figures\") | .ns.median'

A reading is timed by the CPU's counter before and after. What that costs by itself is measured in the
same round and subtracted. Arrangements: first (after a pause, as in the papers), single, back-to-back,
all-cpus (while every CPU reads), kernel (inside the kernel, with the module ffcounter).")]
pub(super) struct Args {
    #[command(flatten)]
    campaign: CampaignOptions,
    /// How often to measure (the papers: every 0.5 s)
    #[arg(long, value_name = "SPAN", default_value = "100 ms", value_parser = interval)]
    every: Span,
    /// Readings of each way in a round
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    burst: u32,
}

/// Measures the latencies, records them and prints the figures.
pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let period = base_period()?;
    let (phases, cpus) = (args.campaign.phases()?, cpus()?);
    let ways = args.campaign.ways(period)?;
    let mut conditions = Conditions::prepare(&phases)?;
    let mut latency =
        LatencyMeasurement::new(LatencyPlan { ways, cpus: cpus.clone(), burst: args.burst as usize, period });
    let about = latency.about();
    let mut record = RecordTarget::begin(global, args.campaign.record.as_deref(), "latency", &about)?;
    let CampaignCourse { phases, ended } = campaign::run(&phases, args.every, &mut conditions, |phase, t| {
        let rounds = latency.round(phase.number, t).map_err(|error| Failure::from(error.to_string()))?;
        record.extend("round", &rounds)
    });
    drop(conditions);
    let (handovers, ended) = match play_all(&cpus) {
        Ok(handovers) => (handovers, ended),
        Err(error) => (Vec::new(), ended.and(Err(error.into()))),
    };
    record.extend("phase", &phases)?;
    let result = LatencyRun {
        phases,
        about,
        figures: latency.figures(),
        overheads: latency.overheads(),
        outliers: latency.outliers(),
        handovers,
    };
    result.record(&mut record)?;
    record.extend("histogram", &latency.bins())?;
    record.conclude(ended, || result.page())
}

/// The figures of a run.
pub(super) struct LatencyRun {
    phases: Vec<CampaignPhase>,
    about: LatencyAbout,
    figures: Vec<Figures>,
    overheads: Vec<Overhead>,
    outliers: Vec<Outlier>,
    handovers: Vec<Handover>,
}

impl LatencyRun {
    /// As a recording has it.
    pub(super) fn of(recorded: &Recorded) -> Result<Self, RecordingError> {
        let about = recorded.about_as()?;
        Ok(LatencyRun {
            phases: recorded.all("phase")?,
            about,
            figures: recorded.all("figures")?,
            overheads: recorded.all("overhead")?,
            outliers: recorded.all("outlier")?,
            handovers: recorded.all("handover")?,
        })
    }

    fn record(&self, record: &mut RecordTarget) -> Result<(), Failure> {
        record.extend("figures", &self.figures)?;
        record.extend("overhead", &self.overheads)?;
        record.extend("outlier", &self.outliers)?;
        record.extend("handover", &self.handovers)
    }

    /// The tables as text.
    pub(super) fn page(&self) -> String {
        let LatencyAbout { step, hertz, .. } = &self.about;
        let ns = *step as f64 / hertz * 1e9;
        let mut page =
            format!("The CPU's counter has {} and steps of {step} ticks ({ns:.1} ns).\n\n", text::hertz(*hertz));
        for phase in &self.phases {
            self.phase(phase, &mut page);
        }
        let _ = writeln!(page, "slowest readings");
        page += &table(OUTLIER_HEADING, self.outliers.iter().map(|slow| self.outlier(slow)));
        page.push('\n');
        for handover in &self.handovers {
            let _ = writeln!(page, "{}", handover_line(handover, Some(self.about.hertz)));
        }
        page
    }

    fn phase(&self, phase: &CampaignPhase, page: &mut String) {
        let of_phase: Vec<Figures> = self.figures.iter().filter(|f| f.phase == phase.number).cloned().collect();
        if of_phase.is_empty() {
            return;
        }
        if self.phases.len() > 1 {
            let _ = writeln!(page, "phase {}: {}", phase.number + 1, phase.name());
        }
        *page += &table(HEADING, of_phase.iter().map(row));
        for overhead in self.overheads.iter().filter(|overhead| overhead.phase == phase.number) {
            let _ = writeln!(page, "{}", overhead_line(overhead));
        }
        for ratio in ratios::ratios(&of_phase) {
            let _ = writeln!(page, "{}", ratio.line());
        }
        page.push('\n');
    }

    fn outlier(&self, slow: &Outlier) -> Vec<String> {
        let phase = self.phases.get(slow.phase).map_or("-", CampaignPhase::name);
        vec![
            format!("{:.3} s", slow.t),
            phase.to_owned(),
            slow.cpu.to_string(),
            text::printable(&slow.counter),
            text::printable(&slow.access),
            slow.arrangement.to_string(),
            slow.ticks.to_string(),
            format!("{:.0}", slow.ns),
        ]
    }
}

const HEADING: &str = "COUNTER|READ BY|ARRANGEMENT|>COUNT|>CYCLES|>MIN ns|>25 %|>MEDIAN|>75 %|>95 %|>99 %|>99.9 %|>MAX";

const OUTLIER_HEADING: &str = ">AT|PHASE|>CPU|COUNTER|READ BY|ARRANGEMENT|>CYCLES|>ns";

fn row(figures: &Figures) -> Vec<String> {
    let names = [text::printable(&figures.counter), text::printable(&figures.access), figures.arrangement.to_string()];
    let ns = figures.ns;
    let values = [ns.min, ns.p25, ns.median, ns.p75, ns.p95, ns.p99, ns.p999, ns.max];
    let counts = [figures.count.to_string(), format!("{:.0}", figures.ticks.median)];
    names.into_iter().chain(counts).chain(values.map(|value| format!("{value:.1}"))).collect()
}

fn overhead_line(overhead: &Overhead) -> String {
    let Overhead { arrangement, subtracted_ns, left_ns, left_iqr_ns, .. } = overhead;
    let each = if overhead.arrangement.readings() > 1 { format!(" ({BATCH} share it)") } else { String::new() };
    format!(
        "own overhead, {arrangement}: {subtracted_ns:.1} ns a reading{each}, measured and subtracted; \
         measured again, {left_ns:.1} ns are left (IQR {left_iqr_ns:.1} ns)"
    )
}
