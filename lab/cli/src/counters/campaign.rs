//! What the long measurements have in common on the command line.

use crate::failure::Failure;
use crate::waiting_time;
use ffclock_counter::{CounterId, allowed_cpus, nominal};
use ffclock_counters::campaign::{CampaignPhase, Load, schedule};
use ffclock_counters::ways::{CounterWay, every_way};
use ffclock_units::{Period, Span};
use std::path::PathBuf;

/// Options of every measurement that takes a while.
#[derive(clap::Args)]
pub(super) struct CampaignOptions {
    /// How long to measure without stress
    #[arg(long = "for", value_name = "SPAN", default_value = "10 s", value_parser = waiting_time, conflicts_with = "stress")]
    length: Span,
    /// Alternate quiet phases with phases under these loads: cpu, network, memory, io, syscall, ip, interrupt,
    /// temperature-cycle
    #[arg(long, value_name = "LOAD,...", value_delimiter = ',')]
    stress: Vec<Load>,
    /// How long each phase lasts (the papers: 90 min)
    #[arg(long, value_name = "SPAN", default_value = "90 min", value_parser = waiting_time, requires = "stress")]
    phase: Span,
    /// Only counters and ways of reading whose name contains one of these
    #[arg(long, value_name = "TEXT,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Record everything into a file that is not there yet (docs/counters.md)
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
}

/// Less makes no sense for a phase.
const SHORTEST_PHASE: Span = Span::from_millis(100);

impl CampaignOptions {
    /// The phases that the options ask for.
    pub(super) fn phases(&self) -> Result<Vec<CampaignPhase>, Failure> {
        let length = if self.stress.is_empty() { self.length } else { self.phase };
        if length < SHORTEST_PHASE {
            return Err(Failure::usage(format!(
                "a phase of {length} is too short: at least {SHORTEST_PHASE} are needed"
            )));
        }
        Ok(schedule(&self.stress, length))
    }

    /// The ways of reading that are wanted.
    pub(super) fn ways(&self, period: Period) -> Result<Vec<CounterWay>, Failure> {
        let all = every_way(period.as_hertz());
        let names: Vec<String> = all.iter().map(CounterWay::name).collect();
        let wanted =
            |way: &CounterWay| self.only.is_empty() || self.only.iter().any(|text| way.name().contains(text.as_str()));
        let ways: Vec<CounterWay> = all.into_iter().filter(wanted).collect();
        if ways.is_empty() {
            return Err(Failure::usage(format!(
                "--only {} leaves nothing; there is {}",
                self.only.join(","),
                names.join(", ")
            )));
        }
        Ok(ways)
    }
}

/// Between two rounds: at least this, so that the rounds are not all there is.
pub(super) fn interval(text: &str) -> Result<Span, String> {
    let span = waiting_time(text)?;
    if span < Span::from_millis(1) { Err("must be at least 1 ms".to_owned()) } else { Ok(span) }
}

/// The nominal period of the CPU's counter, by which everything is timed.
pub(super) fn base_period() -> Result<Period, Failure> {
    let remedy = "the instruments time by it; `ffclock-lab counters` shows what is wrong";
    let found =
        nominal(CounterId::CPU).map_err(|error| format!("the CPU's counter cannot be used: {error}; {remedy}"))?;
    Ok(found.period)
}

/// The CPUs to measure on.
pub(super) fn cpus() -> Result<Vec<usize>, Failure> {
    allowed_cpus().map_err(|error| format!("the CPUs of this process cannot be found out: {error}").into())
}
