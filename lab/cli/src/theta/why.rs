//! `ffclock-lab theta why`: the story of a large ratio.

use super::input::{StampingChoice, failure, not_negative, open, range, whole};
use crate::drawing::{self, Drawing};
use crate::{Failure, GlobalOptions, output};
use ffclock_theta::log::LogReader;
use ffclock_theta::record::{ProcessId, Round};
use ffclock_theta::why::{
    OwnThread, PeakStory, SchedGap, SchedGapReason, SchedShare, SchedStory, SchedTrace, SlowPart, StoryMessage,
    WhyError, WhyOptions, who_ran, why,
};
use ffclock_units::Span;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Options of `ffclock-lab theta why`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab theta why run-1
  $ ffclock-lab theta why run-1 --round 77
  $ ffclock-lab theta why run-1 --trim '1 s' --stamp before
  $ ffclock-lab theta why run-1 --sched trace.txt --picture why.png
  $ ffclock-lab theta why run-1 --json | jq -c '[.round, .ratio, .slow_part]'

Names the message that was slow when the ratio was largest, where on its way it was, whether its siblings were slow too, and with --sched who ran on
the processors of its receiver's host meanwhile, or of its sender's if that was the slow one. The trace is the text of /sys/kernel/tracing/trace with
the event sched_switch, on that host, stamped by the counter of the run: trace_clock x86-tsc for tsc, mono_raw for monotonic-raw. Times are those of
the hosts' clocks.")]
pub(super) struct Args {
    /// The log
    #[arg(value_name = "DIR")]
    log: PathBuf,
    /// The switch to this round instead of the one with the largest ratio
    #[arg(long, value_name = "ROUND")]
    round: Option<u64>,
    /// Place a switch before or after the broadcast of its new round
    #[arg(long, value_name = "WHERE", default_value = "after")]
    stamp: StampingChoice,
    /// Leave out this much at the start and at the end
    #[arg(long, value_name = "SPAN", value_parser = not_negative)]
    trim: Option<Span>,
    /// What the scheduler did, of the host of the receiver, or of the sender if that was slow
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
    /// Who ran while the slow message was on its way; only with a trace.
    ran: Option<Vec<SchedShare>>,
    /// Beside whom, and of which processors that is not known; only with a trace.
    sched: Option<SchedBeside>,
}

/// What a trace shows beside who ran.
#[derive(Serialize)]
struct SchedBeside {
    process: ProcessId,
    own: Option<OwnThread>,
    not_known: Vec<SchedGap>,
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let log = open(&args.log)?;
    let range = range(&args.log, &log, args.trim)?;
    let options = WhyOptions { round: args.round.map(Round), stamping: args.stamp.into(), range };
    let story = why(&log, &options).map_err(|error| match error {
        WhyError::NoSuchRound(_) => Failure::usage(error.to_string()),
        _ => failure(&args.log, &error),
    })?;
    let found = args.sched.as_ref().map(|path| ran(&log, &story, path)).transpose()?.flatten();
    let (ran, sched) = found.map_or((args.sched.as_ref().map(|_| vec![]), None), parted);
    let answer = StoryAnswer { story, ran, sched };
    if let Some(file) = &args.picture {
        let title = format!("Round {}, ratio {:.2}", answer.story.round.0, answer.story.ratio);
        let drawing = Drawing { module: "ffclock.theta_why", python: &args.python, output: file };
        drawing::draw(&drawing, &title, &output::to_json(&answer)?)?;
    }
    global.answer(&answer, || render(&answer, &log))?;
    whole(&args.log, &log)
}

fn parted(SchedStory { process, own, ran, not_known }: SchedStory) -> (Option<Vec<SchedShare>>, Option<SchedBeside>) {
    (Some(ran), Some(SchedBeside { process, own, not_known }))
}

/// Who ran while the slow message was on its way, by a trace of the host of the slow process.
fn ran(log: &LogReader, story: &PeakStory, path: &Path) -> Result<Option<SchedStory>, Failure> {
    let named = |error: &dyn std::fmt::Display| Failure::from(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
    let trace = SchedTrace::parse(&text).map_err(|error| named(&error))?;
    who_ran(log, story, &trace).map_err(|error| named(&error))
}

fn render(StoryAnswer { story, ran, sched }: &StoryAnswer, log: &LogReader) -> String {
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
    if let Some(SchedBeside { process, own: Some(own), .. }) = sched {
        let _ = writeln!(text, "  {} was to run on processor {}, as {}", name(*process), own.processor, own.thread);
    }
    for SchedShare { processor, thread, share } in ran.iter().flatten() {
        let _ = writeln!(text, "  processor {processor}: {thread} ran for {:.0} % of it", 100.0 * share);
    }
    sched.iter().for_each(|sched| not_known(&mut text, &sched.not_known));
    text
}

/// The processors that the trace says nothing about, by the reason.
fn not_known(text: &mut String, gaps: &[SchedGap]) {
    use SchedGapReason::{BeginsLater, EndsBefore, LostEvents};
    for reason in [BeginsLater, EndsBefore, LostEvents] {
        let of_it = gaps.iter().filter(|gap| gap.reason == reason).map(|gap| gap.processor.to_string());
        let processors: Vec<String> = of_it.collect();
        let why = match reason {
            BeginsLater => "the trace begins later",
            EndsBefore => "the trace ends before",
            LostEvents => "events were lost: a larger buffer_size_kb holds more",
        };
        if !processors.is_empty() {
            let _ = writeln!(text, "  processor {}: not known, {why}", processors.join(", "));
        }
    }
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
