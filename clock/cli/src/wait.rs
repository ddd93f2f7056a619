//! `ffclock wait`: until the clock is good enough, or patience ends.

use crate::failure::Failure;
use crate::page::{self, PublishedTime};
use crate::{Global, output, std_duration, text, waiting_time};
use ffclock_units::{Bound, Span, Status};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Options of `ffclock wait`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ ffclock wait --bound '1 ms' --timeout '60 s' && run-the-experiment
  2026-11-22T18:21:28.511382317Z  +- 2.3767 us  synchronised (standard uncertainty 149.4773 ns, noise 59.139 ns)

Exit code: 0 as soon as the clock is good enough, 3 when it was not in time. The daemon need not run
yet: its page is looked for again and again.")]
pub(crate) struct Args {
    /// Wait until the bound is at most this, whether warmed up or not; without it, until the clock is synchronised
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    bound: Option<Bound>,
    /// How long to wait at most
    #[arg(long, value_name = "SPAN", default_value = "60 s", value_parser = waiting_time, allow_hyphen_values = true)]
    timeout: Span,
}

/// Short against the second or so that a first synchronisation takes, long against the cost of a look.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// What `--json` shows.
#[derive(Serialize)]
struct WaitReport {
    in_time: bool,
    waited_s: f64,
    #[serde(flatten)]
    reading: Option<page::TimeReport>,
}

/// Looks at the clock until it is good enough or the time is up.
pub(crate) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let begin = Instant::now();
    let deadline = begin + std_duration(args.timeout);
    loop {
        // Opened again each time: the daemon may start, or restart, while we wait.
        let look = page::open(global).and_then(|clock| page::read(&clock));
        match look {
            Ok(time) if good_enough(args.bound, &time) => return succeed(global, begin.elapsed(), &time),
            look if Instant::now() >= deadline => return give_up(global, args.bound, begin.elapsed(), look),
            _ => std::thread::sleep(deadline.saturating_duration_since(Instant::now()).min(BETWEEN_LOOKS)),
        }
    }
}

/// The same rule as the client's `Clock::wait_until`: where a bound is given, it is enough that the time is known
/// within it.
fn good_enough(bound: Option<Bound>, time: &PublishedTime) -> bool {
    match (time.reading.status, bound) {
        (status, None) => status == Status::Synchronised,
        (status, Some(bound)) => status != Status::Unsynchronised && time.reading.bound <= bound,
    }
}

fn succeed(global: &Global, waited: Duration, time: &PublishedTime) -> Result<(), Failure> {
    if global.json {
        output::json(&WaitReport {
            in_time: true,
            waited_s: waited.as_secs_f64(),
            reading: Some(page::TimeReport::of(time)),
        })
    } else {
        output::line(&page::sentence(&text::utc(time.reading.time), time))
    }
}

fn give_up(
    global: &Global,
    bound: Option<Bound>,
    waited: Duration,
    look: Result<PublishedTime, Failure>,
) -> Result<(), Failure> {
    if global.json {
        let reading = look.as_ref().ok().map(page::TimeReport::of);
        output::json(&WaitReport { in_time: false, waited_s: waited.as_secs_f64(), reading })?;
    }
    let last = match look {
        Ok(time) => format!("it is {}, +- {}", time.reading.status.name(), time.reading.bound),
        Err(failure) => failure.message,
    };
    let wanted =
        bound.map_or_else(|| "not synchronised".to_owned(), |bound| format!("the bound did not fall to {bound}"));
    Err(Failure::unsynchronised(format!("{wanted} after {:.1} s: {last}", waited.as_secs_f64())))
}
