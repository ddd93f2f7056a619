//! `ffclock watch`: the clock live, on a whole terminal, or a line for each look where there is no terminal.

mod look;
mod screen;
mod terminal;

use crate::failure::Failure;
use crate::page::PublishedTime;
use crate::{Global, output, std_duration, text, waiting_time};
use ffclock_sys::mono_now;
use ffclock_units::{Moment, Mono, Rate, Span};
use look::Look;
use screen::LookHistory;
use std::io::IsTerminal;
use terminal::{Key, Terminal};

/// Options of `ffclock watch`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock watch
  $ ffclock watch --interval '200 ms'
  $ ffclock watch --count 3 | cat
  2026-11-22T18:21:28.587917008Z  offset -1.252 us  bound 2.4564 us  uncertainty 151.3399 ns  noise 61.0016 ns  synchronised
  $ ffclock watch --json --count 1 | jq .offset_s

On a terminal, q or Ctrl-C ends it. The offset is the published clock minus the system clock. Where
the daemon answers, rate and floor stand before the status.")]
pub(crate) struct Args {
    /// How long to wait between two looks
    #[arg(long, value_name = "SPAN", default_value = "1 s", value_parser = waiting_time, allow_hyphen_values = true)]
    interval: Span,
    /// Stop after this many looks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// Where the looks go.
enum WatchOutput {
    Json,
    Lines,
    Screen(Terminal, LookHistory),
}

/// Looks until the user or `--count` ends it.
pub(crate) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let first = Look::take(global);
    if first.is_blind() {
        return Err(first.explain().into());
    }
    let mut view = WatchOutput::choose(global)?;
    let mut next = mono_now();
    let mut look = first;
    let mut left = args.count.unwrap_or(u64::MAX);
    loop {
        view.show(&look)?;
        left -= 1;
        next = next + args.interval;
        if left == 0 || view.pause_until(next)? == Key::Leave {
            return Ok(());
        }
        look = Look::take(global);
    }
}

impl WatchOutput {
    /// A whole screen only on a terminal, and only without `--json`.
    fn choose(global: &Global) -> Result<Self, Failure> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        if global.json {
            Ok(WatchOutput::Json)
        } else if terminal && !dumb {
            Ok(WatchOutput::Screen(Terminal::take()?, LookHistory::default()))
        } else {
            Ok(WatchOutput::Lines)
        }
    }

    fn show(&mut self, look: &Look) -> Result<(), Failure> {
        match self {
            WatchOutput::Json => output::json(&look.report()),
            WatchOutput::Lines => output::line(&line(look)),
            WatchOutput::Screen(terminal, history) => {
                history.push(look);
                let size = terminal.size();
                terminal.draw(&screen::render(look, history, size))
            }
        }
    }

    fn pause_until(&mut self, next: Moment<Mono>) -> Result<Key, Failure> {
        match self {
            WatchOutput::Screen(terminal, _) => terminal.wait_until(next),
            WatchOutput::Json | WatchOutput::Lines => {
                std::thread::sleep(std_duration(next - mono_now()));
                Ok(Key::None)
            }
        }
    }
}

/// One look on one line.
fn line(look: &Look) -> String {
    let Ok(PublishedTime { reading, noise, .. }) = &look.published else {
        return look.explain();
    };
    let offset = look.offset.map_or_else(|| "-".to_owned(), |offset| offset.to_string());
    let (time, status) = (text::utc(reading.time), reading.status.name());
    let (bound, uncertainty) = (reading.bound, reading.uncertainty);
    let errors = format!("bound {bound}  uncertainty {uncertainty}  noise {noise}");
    format!("{time}  offset {offset}  {errors}{}  {status}", rate_and_floor(look))
}

/// What only the daemon knows, where it answers.
fn rate_and_floor(look: &Look) -> String {
    let Ok(report) = &look.daemon else {
        return String::new();
    };
    let rate = report.clock.as_ref().map(|clock| format!("  rate {}", Rate::from_ppm(clock.rate_ppm)));
    let floor = look.followed().map(|source| format!("  floor {}", text::span_or_dash(source.floor_s)));
    rate.unwrap_or_default() + &floor.unwrap_or_default()
}
