//! `ffclock-lab theta advise`: when a failure detector may suspect.

use super::import::{TimeUnitChoice, read_list};
use crate::{Failure, GlobalOptions};
use ffclock_theta::coverage::{
    BoundBasis, FailingShare, SilenceLength, SuspicionAdvice, SuspicionLimit, SuspicionModel, SuspicionOptions,
    suspicion_advice,
};
use ffclock_units::Span;
use std::fmt::Write;
use std::path::PathBuf;

/// Options of `ffclock-lab theta advise`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab theta advise heartbeats.csv --receiver leader --unit us
  $ ffclock-lab theta advise calm.csv --under loaded.csv --receiver follower --false-share 1e-6
  $ ffclock-lab theta advise calm.csv --receiver follower --json | jq -c '.limits[] | [.model, .limit]'

Chooses limits for failure detectors and election timeouts from a list of messages (docs/theta-log.md): suspect a sender after a time without a
message from it, or after a number of messages from any one other sender meanwhile. Both are chosen so that the same share of the silences in calm
exceeds them; with --under, what exceeds them under load, when all senders still lived. docs/theta.md explains the figures.")]
pub(super) struct Args {
    /// The list of messages in calm: text, or Parquet if the name ends in .parquet
    #[arg(value_name = "CALM")]
    calm: PathBuf,
    /// A list of messages under load
    #[arg(long, value_name = "LOADED")]
    under: Option<PathBuf>,
    /// Who suspects [default: the only receiver]
    #[arg(long, value_name = "NAME")]
    receiver: Option<String>,
    /// The unit of sent and perceived
    #[arg(long, value_name = "UNIT", default_value = "ns")]
    unit: TimeUnitChoice,
    /// The share of silences that may be taken for a failure
    #[arg(long, value_name = "SHARE", default_value_t = 1e-5, value_parser = false_share)]
    false_share: f64,
    /// Resamples of the bootstrap
    #[arg(long, value_name = "COUNT", default_value_t = 999, value_parser = clap::value_parser!(u32).range(39..=100_000))]
    resamples: u32,
    /// The seed of the resamples
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn false_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= 0.5);
    share.ok_or_else(|| "must be above 0 and at most 0.5, such as 1e-5".to_owned())
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let calm = read_list(&args.calm, args.unit)?;
    let loaded = args.under.as_ref().map(|path| read_list(path, args.unit)).transpose()?;
    let receiver = args.receiver.clone().map_or_else(|| calm.receiver(), Ok);
    let receiver = receiver.map_err(|error| format!("{}: {error}", args.calm.display()))?;
    let options =
        SuspicionOptions { receiver, false_share: args.false_share, resamples: args.resamples, seed: args.seed };
    let advice = suspicion_advice(&calm, loaded.as_ref(), &options).map_err(|error| error.to_string())?;
    global.answer(&advice, || render(&advice))?;
    match advice.calm.left_out + advice.loaded.map_or(0, |loaded| loaded.left_out) {
        0 => Ok(()),
        lines => Err(Failure::from(format!("partial advice: {lines} lines were left out"))),
    }
}

fn render(advice: &SuspicionAdvice) -> String {
    let mut text = format!("calm: {}\n", length(&advice.calm));
    if let Some(loaded) = &advice.loaded {
        let _ = writeln!(text, "under load: {}", length(loaded));
    }
    let _ = writeln!(text, "\nlimits that {:.6} of the calm silences exceed:", advice.false_share);
    for one in &advice.limits {
        let SuspicionLimit { model, limit, basis, interval: (low, high), calm, loaded } = *one;
        let (limit, low, high) = (value(model, limit), value(model, low), value(model, high));
        let _ = writeln!(text, "  suspect after {limit} (95 %: {low} to {high}), {}", reason(basis));
        let _ = writeln!(text, "    in calm {:.6} of the silences exceed it", calm);
        if let Some(FailingShare { share, low, high }) = loaded {
            let _ = writeln!(text, "    under load {share:.6} ({low:.6} to {high:.6}): false suspicions");
        }
    }
    if advice.limits.len() < 2 {
        text.push_str("  there is one sender: a count needs others to count\n");
    }
    text
}

fn length(length: &SilenceLength) -> String {
    let SilenceLength { silences, senders, time_ps, longest_ps, most_messages, left_out } = *length;
    let left_out = match left_out {
        0 => String::new(),
        lines => format!("; {lines} lines left out: no messages, or times more than 50 days from the others"),
    };
    format!(
        "{silences} silences of {senders} senders in {}, the longest {}, at most {most_messages} messages from another meanwhile{left_out}",
        span(time_ps),
        span(longest_ps)
    )
}

fn value(model: SuspicionModel, value: f64) -> String {
    match model {
        SuspicionModel::Timeout => span(value),
        SuspicionModel::Count => format!("{value:.0} messages from another"),
    }
}

fn reason(basis: BoundBasis) -> &'static str {
    match basis {
        BoundBasis::TailFit => "by the tail of the calm list, which is too short for this share",
        BoundBasis::Largest => "the largest of the calm list, which is too short for this share",
        BoundBasis::Measured | BoundBasis::Given => "as measured",
    }
}

fn span(picoseconds: f64) -> String {
    Span::from_seconds(picoseconds * 1e-12).to_string()
}
