//! `ffclock-lab owd send`: the session-sender.

use super::reflect::is_asked_to_end;
use super::{failure, table};
use crate::exporter::Exporter;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{GlobalOptions, files, waiting_time};
use ffclock_owd::judge::PacketFate;
use ffclock_owd::last_minute::LastMinute;
use ffclock_owd::metrics::{RunView, exposition};
use ffclock_owd::packet::{BASE_BYTES, PACKET_BYTES_MAX};
use ffclock_owd::page_time::Unsynchronised;
use ffclock_owd::record::{OwdRow, RecordWriter};
use ffclock_owd::reflector;
use ffclock_owd::sender::{Sender, SenderPlan};
use ffclock_owd::summary::OwdSummary;
use ffclock_owd::{OwdError, PORT};
use ffclock_sys::{Interest, Signals, StampMode, mono_now, poll, system_utc_now};
use ffclock_units::Span;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::path::PathBuf;

/// Options of `ffclock-lab owd send`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab owd send 192.0.2.7
  $ ffclock-lab owd send reflector.example:862 --interval '1 ms' --packets 100000 --record delays.parquet
  $ ffclock-lab owd send '[2001:db8::7]:862' --endless --metrics-listen 127.0.0.1:9100
  $ ffclock-lab owd send 192.0.2.7 --json | jq -c '.figures | [.lost_forward, .lost_backward]'
  $ ffclock-lab owd send 192.0.2.7 --interval '20 us'      (there: owd reflect --rate 60000)

Delays of each direction hold within the bounds of both clocks. Packets whose times contradict one
another prove that a clock, or its claim, is false: they are counted apart, and the exit code is 1.")]
pub(super) struct Args {
    /// The reflector: address or name, with a port unless it is 862
    #[arg(value_name = "ADDRESS[:PORT]")]
    to: String,
    /// Between two packets; below 100 us a reflector needs a higher --rate, or it leaves packets unanswered
    #[arg(long, value_name = "SPAN", default_value = "10 ms", value_parser = interval)]
    interval: Span,
    /// How many packets
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    packets: u64,
    /// Send until Ctrl-C instead; the last minute has figures of its own
    #[arg(long, conflicts_with = "packets")]
    endless: bool,
    /// How long a reply is waited for
    #[arg(long, value_name = "SPAN", default_value = "2 s", value_parser = waiting_time)]
    patience: Span,
    /// The length of a packet beyond its UDP header; what is more than 44 is padding
    #[arg(long, value_name = "BYTES", default_value_t = BASE_BYTES, value_parser = length)]
    bytes: usize,
    /// Measure although the clock is not synchronised: round trips alone
    #[arg(long)]
    unsynchronised: bool,
    /// Write a row for each packet: Parquet if the name ends in .parquet, else CSV
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Write metrics in OpenMetrics text to this file every 5 s
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Serve metrics over HTTP
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics_listen: Option<SocketAddr>,
}

fn interval(text: &str) -> Result<Span, String> {
    let span = waiting_time(text)?;
    if span < Span::from_micros(1) { Err("must be at least 1 us".to_owned()) } else { Ok(span) }
}

fn length(text: &str) -> Result<usize, String> {
    let bytes: usize = text.parse().map_err(|_| "must be a whole number".to_owned())?;
    let range = BASE_BYTES..=PACKET_BYTES_MAX;
    if range.contains(&bytes) {
        Ok(bytes)
    } else {
        Err(format!("must lie between {BASE_BYTES} and {PACKET_BYTES_MAX}"))
    }
}

/// The reflector's address.
fn resolve(text: &str) -> Result<SocketAddr, Failure> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok((address, PORT).into());
    }
    let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let found = if has_port { text.to_socket_addrs() } else { (text, PORT).to_socket_addrs() };
    let found = found.map_err(|error| format!("cannot find {text}: {error}"))?.next();
    found.ok_or_else(|| format!("{text} has no address").into())
}

/// Measures, and shows the figures.
pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let outputs = [("--record", args.record.as_deref()), ("--metrics", args.metrics.as_deref())];
    files::check(&[], &outputs)?;
    let plan = plan(global, args)?;
    if 1.0 / plan.interval.as_seconds() > f64::from(reflector::RATE) {
        eprintln!(
            "--interval {} asks for more than the {} packets per second that a reflector answers unless its --rate is higher",
            plan.interval,
            reflector::RATE
        );
    }
    let sender = Sender::open(plan.clone()).map_err(failure)?;
    let about = about(&plan, &sender);
    let exporter = Exporter::open(args.metrics.as_deref(), args.metrics_listen)?;
    let writer = args.record.as_ref().map(|path| RecordWriter::create(path, &about)).transpose();
    let writer = writer.map_err(|error| failure(OwdError::Record(error)))?;
    let (summary, minute) = (OwdSummary::default(), LastMinute::default());
    let mut run = SendingRun { sender, exporter, writer, summary, minute };
    run.measure(plan.packets)?;
    let (figures, strays, unstamped) = (run.summary.figures(), run.sender.strays(), run.sender.unstamped());
    let minute = run.minute.figures(mono_now());
    let answer =
        json!({ "about": about, "figures": figures, "minute": minute, "strays": strays, "unstamped": unstamped });
    global.answer(&answer, || {
        let minute = minute.as_ref().filter(|_| figures.lasted_s > 60.0).map(table::minute).unwrap_or_default();
        table::page(&about, &figures) + &minute + &table::unstamped(&unstamped) + &table::strays(&strays)
    })?;
    table::verdict(&figures, &strays)
}

fn plan(global: &GlobalOptions, args: &Args) -> Result<SenderPlan, Failure> {
    Ok(SenderPlan {
        to: resolve(&args.to)?,
        page: global.page.clone(),
        interval: args.interval,
        packets: (!args.endless).then_some(args.packets),
        patience: args.patience,
        bytes: args.bytes,
        unsynchronised: if args.unsynchronised { Unsynchronised::Allow } else { Unsynchronised::Refuse },
        stamps: StampMode::Kernel,
    })
}

fn about(plan: &SenderPlan, sender: &Sender) -> Value {
    json!({
        "to": plan.to, "session": sender.session(), "interval_s": plan.interval.as_seconds(), "bytes": plan.bytes,
        "patience_s": plan.patience.as_seconds(), "counter": sender.page().counter().name(),
        "counter_hz": sender.page().period().as_hertz(),
        "begin_s": system_utc_now().since_origin().as_seconds(),
    })
}

/// A run under way.
struct SendingRun {
    sender: Sender,
    exporter: Exporter,
    writer: Option<RecordWriter>,
    summary: OwdSummary,
    minute: LastMinute,
}

/// The metrics.
fn metrics(sender: &Sender, summary: &OwdSummary, minute: &LastMinute) -> String {
    let (figures, minute) = (summary.figures(), minute.figures(mono_now()));
    let (strays, unstamped) = (sender.strays(), sender.unstamped());
    exposition(&RunView { figures: &figures, minute: minute.as_ref(), strays: &strays, unstamped: &unstamped })
}

impl SendingRun {
    fn measure(&mut self, packets: Option<u64>) -> Result<(), Failure> {
        let (mut signals, mut progress, mut rows) = (Signals::install()?, Progress::new(), Vec::new());
        while !self.sender.is_finished() {
            self.wait(&signals)?;
            self.sender.turn(&mut rows).map_err(failure)?;
            for row in rows.drain(..) {
                self.take(&row).map_err(failure)?;
            }
            let SendingRun { sender, exporter, summary, minute, .. } = self;
            exporter.turn(&|| metrics(sender, summary, minute))?;
            progress.show(|| self.line(packets));
            if is_asked_to_end(&mut signals) {
                self.sender.stop();
            }
        }
        if let Some(writer) = self.writer.take() {
            writer.finish().map_err(|error| failure(OwdError::Record(error)))?;
        }
        self.exporter.write(&|| metrics(&self.sender, &self.summary, &self.minute))
    }

    fn wait(&self, signals: &Signals) -> Result<(), Failure> {
        let mut interests = vec![Interest::readable(self.sender.as_fd()), Interest::readable(signals.as_fd())];
        self.exporter.interests(&mut |interest| interests.push(interest));
        let deadline = [self.sender.deadline(), self.exporter.deadline()].into_iter().flatten().min();
        poll(&mut interests, deadline)?;
        Ok(())
    }

    fn take(&mut self, row: &OwdRow) -> Result<(), OwdError> {
        self.summary.add(row);
        self.minute.add(row, mono_now());
        if let Some(writer) = &mut self.writer {
            writer.append(row)?;
        }
        Ok(())
    }

    fn line(&self, packets: Option<u64>) -> String {
        let of = packets.map_or_else(String::new, |packets| format!(" of {packets}"));
        let (measured, lost) = (self.summary.count(PacketFate::Measured), self.summary.count(PacketFate::Lost));
        format!("{} packets{of} sent, {measured} measured, {lost} lost", self.sender.sent())
    }
}
