//! `ffclock-lab theta watch`: the figures of a running system, for as long as it runs.

mod alarm;
mod metrics;

use super::import::{TimeUnitChoice, named_senders};
use super::input::{not_negative, picoseconds};
use crate::exporter::Exporter;
use crate::owd::is_asked_to_end;
use crate::{Failure, GlobalOptions, files, output, waiting_time};
use alarm::{AlarmLimits, AlarmState};
use ffclock_sys::{Interest, Signals, mono_now, poll};
use ffclock_theta::import::{MessageOptions, PassedOver};
use ffclock_theta::watch::{MessageWatch, WatchFigures};
use ffclock_units::{Moment, Mono, Span};
use serde::Serialize;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 16;

/// Options of `ffclock-lab theta watch`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ application | ffclock-lab theta watch - --receiver leader --sender a --sender b --sender c --tolerated 1
  $ tail -n +1 -F messages.csv | ffclock-lab theta watch - --receiver leader --sender a --sender b --sender c --metrics-listen 127.0.0.1:9101
  $ ffclock-lab theta watch messages.csv --receiver leader --sender a --sender b --alarm-omega 10 --alarm-delay '200 ms' --json

Lines name sender, receiver, id, sent and perceived, in the columns that the first line gives; docs/theta-log.md describes them. They must come in
the order of their perception; where 16 in a row are more than a second earlier, the watch starts again and counts a step back. Shown are Omega, tau+
and tau_r- of the last minute and of the run. The same list, imported and analysed, gives the same figures. There may be 1000 senders. Exit code 1 if
lines had to be passed over, or a limit was broken at the end.")]
pub(super) struct Args {
    /// The list of messages; - is standard input
    #[arg(value_name = "FILE")]
    list: PathBuf,
    /// Whose messages are taken
    #[arg(long, value_name = "NAME")]
    receiver: String,
    /// Whom it hears; once for each
    #[arg(long, value_name = "NAME", required = true)]
    sender: Vec<String>,
    /// How many senders the receiver need not wait for
    #[arg(long, value_name = "F", default_value_t = 0)]
    tolerated: u32,
    /// The unit of sent and perceived
    #[arg(long, value_name = "UNIT", default_value = "ns")]
    unit: TimeUnitChoice,
    /// Messages that take longer are passed over; figures are this much behind
    #[arg(long, value_name = "SPAN", default_value = "1 s", value_parser = not_negative)]
    longest: Span,
    /// Between two lines of figures
    #[arg(long, value_name = "SPAN", default_value = "1 s", value_parser = waiting_time)]
    every: Span,
    /// Raise the alarm while Omega of the last minute is larger; 1 or more
    #[arg(long, value_name = "RATIO")]
    alarm_omega: Option<f64>,
    /// Raise the alarm while tau+ of the last minute is larger, or a message took longer than --longest
    #[arg(long, value_name = "SPAN", value_parser = not_negative)]
    alarm_delay: Option<Span>,
    /// Write metrics in OpenMetrics text to this file every 5 s
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Serve metrics over HTTP
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics_listen: Option<SocketAddr>,
}

/// A line of figures.
#[derive(Serialize)]
struct WatchLine<'a> {
    #[serde(flatten)]
    figures: &'a WatchFigures,
    alarm: bool,
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let list = (args.list != Path::new("-")).then_some(args.list.as_path());
    files::check(&[("list of messages", list)], &[("--metrics", args.metrics.as_deref())])?;
    let senders = named_senders(&args.sender)?;
    let limits = AlarmLimits::new(args.alarm_omega, args.alarm_delay, args.longest)?;
    let options = MessageOptions {
        receiver: args.receiver.clone(),
        rounds_open: MessageWatch::ROUNDS_OPEN,
        senders,
        tolerated: args.tolerated,
        longest_ns: picoseconds(args.longest) / 1000,
    };
    let watch = MessageWatch::new(options, args.unit.into()).map_err(|error| Failure::usage(error.to_string()))?;
    let input: Box<dyn ListInput> = match list {
        Some(path) => Box::new(File::open(path).map_err(|error| format!("{}: {error}", path.display()))?),
        None => Box::new(File::from(std::io::stdin().as_fd().try_clone_to_owned()?)),
    };
    let exporter = Exporter::open(args.metrics.as_deref(), args.metrics_listen)?;
    let (every, next) = (args.every, mono_now() + args.every);
    let shown = WatchFigures::default();
    let mut run = WatchedRun { global, watch, alarm: AlarmState::new(limits), exporter, every, next, shown };
    run.follow(input)?;
    run.end()
}

/// What can be waited for and read.
trait ListInput: Read + AsFd {}
impl ListInput for File {}

/// A watch under way.
struct WatchedRun<'a> {
    global: &'a GlobalOptions,
    watch: MessageWatch,
    alarm: AlarmState,
    exporter: Exporter,
    every: Span,
    next: Moment<Mono>,
    /// What was shown last.
    shown: WatchFigures,
}

impl WatchedRun<'_> {
    /// Until the end of the list, or a signal.
    fn follow(&mut self, mut input: Box<dyn ListInput>) -> Result<(), Failure> {
        let (mut signals, mut bytes) = (Signals::install()?, vec![0; READ_BYTES]);
        while !is_asked_to_end(&mut signals) {
            if self.wait(&*input, &signals)? {
                match input.read(&mut bytes) {
                    Ok(0) => break,
                    Ok(read) => self.watch.take(&bytes[..read]).map_err(|error| error.to_string())?,
                    Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                    Err(error) => return Err(format!("cannot read the list: {error}").into()),
                }
            }
            self.turn()?;
        }
        Ok(())
    }

    /// Whether there is something to read.
    fn wait(&self, input: &dyn ListInput, signals: &Signals) -> Result<bool, Failure> {
        let mut interests = vec![Interest::readable(input.as_fd()), Interest::readable(signals.as_fd())];
        self.exporter.interests(&mut |interest| interests.push(interest));
        let deadline = self.exporter.deadline().into_iter().chain([self.next]).min();
        poll(&mut interests, deadline)?;
        Ok(interests[0].is_readable())
    }

    fn turn(&mut self) -> Result<(), Failure> {
        let WatchedRun { alarm, exporter, shown, .. } = self;
        exporter.turn(&|| metrics::exposition(shown, alarm))?;
        if mono_now() < self.next {
            return Ok(());
        }
        self.next = mono_now() + self.every;
        self.shown = self.watch.figures();
        self.alarm.judge(&self.shown);
        show(self.global, &self.shown, &self.alarm)
    }

    fn end(mut self) -> Result<(), Failure> {
        let figures = self.watch.finish().map_err(|error| error.to_string())?.figures;
        self.alarm.judge(&figures);
        self.exporter.write(&|| metrics::exposition(&figures, &self.alarm))?;
        show(self.global, &figures, &self.alarm)?;
        verdict(&figures, self.alarm.words())
    }
}

fn show(global: &GlobalOptions, figures: &WatchFigures, alarm: &AlarmState) -> Result<(), Failure> {
    if global.json {
        output::json(&WatchLine { figures, alarm: alarm.is_raised() })
    } else {
        output::line(&line(figures, alarm.words().as_deref()))
    }
}

fn verdict(figures: &WatchFigures, alarm: Option<String>) -> Result<(), Failure> {
    let mut faults = super::import::reasons(&figures.passed_over);
    if figures.not_positive > 0 {
        faults.push(format!("{} arrive before they are sent: a clock is wrong", figures.not_positive));
    }
    if figures.late > 0 {
        faults.push(format!("{} belong to rounds that had been given up for want of memory", figures.late));
    }
    let known = figures.not_positive + figures.late + figures.steps_back;
    if figures.steps_back > 0 {
        faults.push(format!(
            "16 in a row are earlier than those before ({} times): a clock is wrong",
            figures.steps_back
        ));
    }
    if !faults.is_empty() && (figures.passed_over.damage() > 0 || known > 0) {
        let alarm = alarm.map_or(String::new(), |words| format!("; {words}"));
        return Err(Failure::from(format!("the figures are partial: of the messages, {}{alarm}", faults.join(", "))));
    }
    alarm.map_or(Ok(()), |words| Err(Failure::from(words)))
}

fn line(figures: &WatchFigures, alarm: Option<&str>) -> String {
    let WatchFigures { minute, messages, rounds, omega, delay_max_ps, relevant_min_ps, passed_over, .. } = figures;
    let part = |ratio: Option<f64>, delay: Option<i64>, relevant: Option<i64>| {
        let ratio = ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
        format!("Omega {ratio}, tau+ {}, tau_r- {}", span(delay), span(relevant))
    };
    let recent = minute.map_or("nothing yet".to_owned(), |minute| {
        let ratio = minute.omega.map(|peak| peak.ratio.as_f64());
        part(ratio, minute.delay_max_ps, minute.relevant_min_ps)
    });
    let whole = part(omega.map(|ratio| ratio.as_f64()), *delay_max_ps, *relevant_min_ps);
    let left_out = match left_out(passed_over) {
        0 => String::new(),
        number => format!("; {number} passed over"),
    };
    let stepped = match figures.steps_back {
        0 => String::new(),
        number => format!("; time went back {number} times"),
    };
    let alarm = alarm.map_or(String::new(), |words| format!("; ALARM: {words}"));
    format!("60 s: {recent} | run: {whole}, {messages} messages, {rounds} rounds{left_out}{stepped}{alarm}")
}

fn left_out(passed_over: &PassedOver) -> u64 {
    passed_over.damage() + passed_over.lost
}

fn span(picoseconds: Option<i64>) -> String {
    picoseconds.map_or("-".to_owned(), |picoseconds| Span::from_seconds(picoseconds as f64 * 1e-12).to_string())
}
