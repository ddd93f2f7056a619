//! `ffclock-lab theta why`: the story of a large ratio.

use super::input::{failure, open};
use crate::drawing::{self, Drawing};
use crate::{Failure, GlobalOptions, output};
use ffclock_theta::analysis::Clocks;
use ffclock_theta::log::LogReader;
use ffclock_theta::record::{ProcessId, Round};
use ffclock_theta::why::{PeakStory, SchedShare, SchedTrace, SlowPart, StoryMessage, WhyError, why};
use ffclock_units::{Counter, Span};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// Options of `ffclock-lab theta why`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab theta why run-1
  $ ffclock-lab theta why run-1 --round 77
  $ ffclock-lab theta why run-1 --sched trace.txt --picture why.png
  $ ffclock-lab theta why run-1 --json | jq -c '[.round, .ratio, .slow_part]'

Names the message that was slow when the ratio was largest, where on its way it was, whether its siblings were slow too, and with --sched who ran on
the processors of its receiver meanwhile. The trace is the text of /sys/kernel/tracing/trace with the event sched_switch, on the receiver's host,
stamped by the counter of the run: trace_clock x86-tsc for tsc, mono_raw for monotonic-raw. Times are those of the hosts' clocks.")]
pub(super) struct Args {
    /// The log
    #[arg(value_name = "DIR")]
    log: PathBuf,
    /// The switch to this round instead of the one with the largest ratio
    #[arg(long, value_name = "ROUND")]
    round: Option<u64>,
    /// What the scheduler of the receiver's host did
    #[arg(long, value_name = "FILE")]
    sched: Option<PathBuf>,
    /// Draw what was in transit into this PNG file
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// The interpreter that has the Python package, for --picture
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: PathBuf,
}

/// The story for people and programs.
#[derive(Serialize)]
struct StoryAnswer {
    #[serde(flatten)]
    story: PeakStory,
    /// Who ran on the receiver's host while the slow message was on its way; only with a trace.
    ran: Option<Vec<SchedShare>>,
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let log = open(&args.log)?;
    let story = why(&log, args.round.map(Round)).map_err(|error| match error {
        WhyError::NoSuchRound(_) => Failure::usage(error.to_string()),
        _ => failure(&args.log, &error),
    })?;
    let ran = args.sched.as_ref().map(|path| ran(&log, &story, path)).transpose()?;
    let answer = StoryAnswer { story, ran };
    if let Some(file) = &args.picture {
        let title = format!("Round {}, ratio {:.2}", answer.story.round.0, answer.story.ratio);
        let drawing = Drawing { module: "ffclock.theta_why", python: &args.python, output: file };
        drawing::draw(&drawing, &title, &output::to_json(&answer)?)?;
    }
    global.answer(&answer, || render(&answer, &log))?;
    match log.damage().first() {
        Some(damage) => Err(Failure::from(format!("{}: the log is partial: {damage}", args.log.display()))),
        None => Ok(()),
    }
}

/// Who ran while the slow message was on its way, by the counter of its receiver's host.
fn ran(log: &LogReader, story: &PeakStory, path: &PathBuf) -> Result<Vec<SchedShare>, Failure> {
    let named = |error: &dyn std::fmt::Display| Failure::from(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
    let trace = SchedTrace::parse(&text).map_err(|error| named(&error))?;
    let Some(slow) = story.slow else { return Ok(vec![]) };
    let clocks = Clocks::new(log.run(), log.clocks()).map_err(|error| named(&error))?;
    let counter = |time_ps| clocks.counter_at(slow.receiver.index(), time_ps);
    let range = counter(slow.sent_ps).zip(counter(slow.perceived_ps));
    let (from, to): (Counter, Counter) = range.ok_or_else(|| named(&"the clock of the host has no counter for it"))?;
    let shares = trace.shares(from, to);
    if shares.is_empty() {
        return Err(named(&"the trace does not reach over the message: was it recorded with the counter of the run?"));
    }
    Ok(shares)
}

fn render(StoryAnswer { story, ran }: &StoryAnswer, log: &LogReader) -> String {
    let name = |process: ProcessId| {
        let run = log.run();
        format!("{} ({})", process.0, run.hosts[run.host_of[process.index()].index()].name)
    };
    let PeakStory { round, process, at_ps, ratio, relevant_ps, contributors, .. } = story;
    let mut text =
        format!("ratio {ratio:.3} at {}, when process {} went on to round {}\n", time(*at_ps), name(*process), round.0);
    let _ = writeln!(
        text,
        "it went on by {} messages, the slowest after {} (tau_r-):",
        contributors.len(),
        span(*relevant_ps)
    );
    for message in contributors {
        let _ = writeln!(
            text,
            "  {:>12}  round {} from {}",
            span(message.delay_ps()),
            message.round.0,
            name(message.sender)
        );
    }
    let Some(slow) = &story.slow else { return text + "nothing was in transit\n" };
    let StoryMessage { round, sender, receiver, sent_ps, .. } = *slow;
    let (from, to) = (name(sender), name(receiver));
    let _ = writeln!(
        text,
        "meanwhile in transit, {} (tau+): round {} from {from} to {to}, sent at {}",
        span(slow.delay_ps()),
        round.0,
        time(sent_ps)
    );
    let _ = writeln!(text, "  it was on its way over {} first switches", story.switches_meanwhile);
    for stage in story.stages.iter().filter(|_| story.stages.len() > 1) {
        let _ = writeln!(text, "  {:>12}  from {} to {}", span(stage.lasts_ps), stage.from, stage.to);
    }
    siblings(&mut text, story);
    for SchedShare { processor, thread, share } in ran.iter().flatten() {
        let _ = writeln!(text, "  processor {processor}: {thread} ran for {:.0} % of it", 100.0 * share);
    }
    text
}

fn siblings(text: &mut String, story: &PeakStory) {
    let others =
        [("the others of its broadcast", story.of_sender), ("others to its receiver meanwhile", story.to_receiver)];
    for (who, found) in others {
        if let Some(found) = found {
            let _ = writeln!(text, "  {who}: {} in the median of {}", span(found.median_ps), found.messages);
        }
    }
    let part = match story.slow_part {
        SlowPart::Sender => "the sender was slow: its other messages were too",
        SlowPart::Receiver => "the receiver was slow: other messages to it were too",
        SlowPart::Both => "sender and receiver were slow, or all was: other messages of both were too",
        SlowPart::Alone => "this message alone was slow: neither other messages of its sender nor to its receiver were",
        SlowPart::Unknown => "there are no other messages to compare with",
    };
    let _ = writeln!(text, "so {part}");
    if let Some(stage) = story.longest_stage() {
        let _ = writeln!(text, "most of the time went by from {} to {}", stage.from, stage.to);
    }
}

fn span(picoseconds: i64) -> String {
    Span::from_seconds(picoseconds as f64 * 1e-12).to_string()
}

fn time(picoseconds: i64) -> String {
    format!("{:.6} s", picoseconds as f64 * 1e-12)
}
