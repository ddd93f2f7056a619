//! `ffclock now`: the time, how far it can be off, and how far to trust it.

use crate::failure::Failure;
use crate::page::{self, PublishedTime};
use crate::stamp::StampText;
use crate::{Global, output, std_duration, text, waiting_time};
use ffclock_units::Span;

/// Options of `ffclock now`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock now
  2026-11-22T18:21:28.422946096Z  +- 2.2848 us  synchronised (standard uncertainty 147.6146 ns, noise 57.2763 ns)
  $ ffclock now --format unix --count 3 --interval '100 ms'
  $ ffclock now --json | jq .bound_s

The true time lies within the bound (after +-) as long as no believed server is false by less than
the others can see, and the counter's rate moves no more than configured (`wander`). --json adds the
strict bound (bound_strict_s), which holds although a minority of the servers is false (`ffclock
status` says how many). The standard uncertainty (k = 1) contains what is assumed of the path's
asymmetry (`asymmetry_deviation`) and of the server's own error; the noise is the part of it that
exchanges show.")]
pub(crate) struct Args {
    #[command(flatten)]
    form: TimeForm,
    /// Show the time of a stamp taken earlier with `ffclock stamp`, as `ffclock at` does
    #[arg(long, value_name = "STAMP", conflicts_with_all = ["count", "interval"])]
    at: Option<StampText>,
    /// How many readings to print
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// How long to wait between two readings
    #[arg(long, value_name = "SPAN", default_value = "1 s", value_parser = waiting_time, allow_hyphen_values = true)]
    interval: Span,
}

/// The options of every subcommand that shows times.
#[derive(clap::Args)]
pub(crate) struct TimeForm {
    /// Show International Atomic Time instead of UTC
    #[arg(long)]
    tai: bool,
    /// How the time is written
    #[arg(long, value_enum, default_value_t = TimeFormat::Iso)]
    format: TimeFormat,
}

/// How a time is written.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TimeFormat {
    /// ISO 8601 with nanoseconds
    Iso,
    /// Seconds since 1970-01-01 of the scale, with nine decimals, and nothing else
    Unix,
}

/// Prints the time.
pub(crate) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let clock = page::open(global)?;
    if let Some(stamp) = args.at {
        return print(global, &args.form, &page::read_at(&clock, stamp.0)?);
    }
    for turn in 0..args.count {
        if turn > 0 {
            std::thread::sleep(std_duration(args.interval));
        }
        print(global, &args.form, &page::read(&clock)?)?;
    }
    Ok(())
}

/// Prints a time, and judges it.
fn print(global: &Global, form: &TimeForm, time: &PublishedTime) -> Result<(), Failure> {
    show(global, form, time)?;
    page::judge(time.reading.status)
}

/// Prints a time.
pub(crate) fn show(global: &Global, form: &TimeForm, time: &PublishedTime) -> Result<(), Failure> {
    match global.json {
        true => output::json(&page::TimeReport::of(time)),
        false => output::line(&written(form, time)),
    }
}

fn written(form: &TimeForm, time: &PublishedTime) -> String {
    match (form.format, form.tai) {
        (TimeFormat::Unix, false) => text::seconds(time.reading.time),
        (TimeFormat::Unix, true) => text::seconds(time.tai),
        (TimeFormat::Iso, false) => page::sentence(&text::utc(time.reading.time), time),
        (TimeFormat::Iso, true) => page::sentence(&text::tai(time.tai), time),
    }
}
