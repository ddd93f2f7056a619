//! `ffclock-lab theta import`.

mod streams;

use crate::{Failure, GlobalOptions};
use ffclock_theta::import::{
    FaultyLine, ImportError, ImportOptions, ImportSummary, ImportedMessages, LineFault, MessageOptions, MessageTable,
    OverlapRule, PassedOver, ServerCapture, TimeUnit, TwoSidedOptions, import, import_messages, import_two_sided,
};
use ffclock_units::{Rate, Span};
use std::fmt::Write;
use std::fs::File;
use std::io::BufReader;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use streams::ProtocolChoice;

/// Options of `ffclock-lab theta import`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ tcpdump -i eth0 -s 96 -w client.pcap 'host 10.0.0.9 and port 7000'
  $ ffclock-lab theta import client.pcap --client 10.0.0.9 --port 7000 --tolerated 1 --output run-1
  $ ffclock-lab theta analyse run-1
  $ ffclock-lab theta import client.pcap --server a.pcap --server b.pcap --client 10.0.0.9 --port 7000 --output run-2
  $ ffclock-lab theta analyse run-2 --certify
  $ tcpdump -i eth0 -w all.pcap 'host 10.0.0.9 and port 6379'
  $ ffclock-lab theta import all.pcap --client 10.0.0.9 --port 6379 --protocol redis --tolerated 1 --output run-3 --list calm.csv
  $ ffclock-lab theta import --messages messages.csv --receiver leader --unit us --tolerated 1 --output run-4
  $ ffclock-lab theta import --messages messages.csv --receiver leader --output run-5 --json | jq .passed_over

The client's k-th request to a server is that server's message of round k, perceived by the client when the reply passes: one capture, one clock.
Of a client that does not wait for replies, the protocol must be known (--protocol): each request is paired with its reply, from the first byte of
a connection on; what was passed over is counted by reason, and nothing is guessed.
With captures of the servers too, a reply is a message from where it left to where it arrived; their clocks are compared by the packets.
docs/theta-log.md defines Omega for such a log. The command needs the right to read the capture, and does not trust its content.")]
pub(super) struct Args {
    /// A capture at the client (classic or pcapng, UDP or TCP)
    #[arg(value_name = "CAPTURE", required_unless_present = "messages", requires_all = ["client", "port"])]
    capture: Option<PathBuf>,
    /// A list of messages instead: text, or Parquet if the name ends in .parquet
    #[arg(long, value_name = "FILE", conflicts_with_all = ["capture", "server", "client", "port"])]
    messages: Option<PathBuf>,
    /// Of a list: whose messages are taken [default: the only receiver]
    #[arg(long, value_name = "NAME", requires = "messages")]
    receiver: Option<String>,
    /// Of a list: whom the receiver hears; once for each [default: all who sent to it]
    #[arg(long, value_name = "NAME", requires = "messages")]
    sender: Vec<String>,
    /// Of a list: the unit of sent and perceived
    #[arg(long, value_name = "UNIT", default_value = "ns", requires = "messages")]
    unit: TimeUnitChoice,
    /// A capture of the same time at a server; several for several servers
    #[arg(long, value_name = "CAPTURE")]
    server: Vec<PathBuf>,
    /// How fast the clocks of two captures may drift against each other
    #[arg(long, value_name = "RATE", default_value = "100 ppm", requires = "server")]
    drift: Rate,
    /// The address whose requests are taken
    #[arg(long, value_name = "ADDRESS")]
    client: Option<IpAddr>,
    /// The servers' port
    #[arg(long)]
    port: Option<u16>,
    /// How many servers' replies the client need not wait for; of a list, how many senders
    #[arg(long, value_name = "F", default_value_t = 0)]
    tolerated: u32,
    /// Take all that the client writes on a connection before a reply for one request; otherwise that is refused
    #[arg(long)]
    one_request_at_a_time: bool,
    /// What is spoken on the connections, of which many requests may be open
    #[arg(long, value_name = "PROTOCOL", requires = "capture", conflicts_with_all = ["server", "one_request_at_a_time"])]
    protocol: Option<ProtocolChoice>,
    /// Of a protocol: the list of messages to be made, as `--messages` and `theta advise` read it
    #[arg(long, value_name = "FILE", requires = "protocol")]
    list: Option<PathBuf>,
    /// The log to be made
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    output: Option<PathBuf>,
}

/// The unit of the times in a list.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TimeUnitChoice {
    /// Nanoseconds
    Ns,
    /// Microseconds
    Us,
    /// Milliseconds
    Ms,
    /// Seconds, with a fraction as it comes
    S,
}

impl From<TimeUnitChoice> for TimeUnit {
    fn from(choice: TimeUnitChoice) -> Self {
        match choice {
            TimeUnitChoice::Ns => TimeUnit::Nanoseconds,
            TimeUnitChoice::Us => TimeUnit::Microseconds,
            TimeUnitChoice::Ms => TimeUnit::Milliseconds,
            TimeUnitChoice::S => TimeUnit::Seconds,
        }
    }
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    match (&args.messages, &args.capture, args.client.zip(args.port)) {
        (Some(list), ..) => run_messages(global, args, list),
        (None, Some(capture), Some(conversation)) if args.protocol.is_some() => {
            streams::run(global, args, (capture, conversation))
        }
        (None, Some(capture), Some(conversation)) => run_capture(global, args, (capture, conversation)),
        _ => Err(Failure::usage("a capture needs --client and --port")),
    }
}

/// The directory of the log.
fn output(args: &Args) -> Result<&Path, Failure> {
    args.output.as_deref().ok_or_else(|| Failure::usage("--output is needed"))
}

/// A capture, and the client and the port that are taken from it.
type Conversation<'a> = (&'a PathBuf, (IpAddr, u16));

fn run_capture(global: &GlobalOptions, args: &Args, conversation: Conversation) -> Result<(), Failure> {
    let found = imported(args, conversation)?;
    let json = serde_json::json!({
        "servers": found.servers, "rounds": found.rounds, "replies": found.replies, "unmatched": found.unmatched,
        "bound_ps": found.bound_ps, "cut": found.cut,
    });
    let place = output(args)?;
    global.answer(&json, || render(&found, place))?;
    found.cut.map_or(Ok(()), |words| Err(Failure::from(format!("the log is partial: {words}"))))
}

fn imported(args: &Args, (capture, (client, port)): Conversation) -> Result<ImportSummary, Failure> {
    let open = |path: &PathBuf| {
        let complaint = |error| Failure::from(format!("{}: {error}", path.display()));
        File::open(path).map(BufReader::new).map_err(complaint)
    };
    let overlap = if args.one_request_at_a_time { OverlapRule::SameRequest } else { OverlapRule::Refuse };
    let options = ImportOptions { client, port, tolerated: args.tolerated, overlap };
    let client = open(capture)?;
    let named = |error: ImportError| Failure::from(format!("{}: {error}", capture.display()));
    if args.server.is_empty() {
        return import(client, options, output(args)?).map_err(named);
    }
    let server = |path: &PathBuf| Ok(ServerCapture { name: path.display().to_string(), input: open(path)? });
    let servers = args.server.iter().map(server).collect::<Result<Vec<_>, Failure>>()?;
    import_two_sided(client, servers, TwoSidedOptions { import: options, drift: args.drift }, output(args)?)
        .map_err(named)
}

fn run_messages(global: &GlobalOptions, args: &Args, list: &Path) -> Result<(), Failure> {
    let named = |error: &dyn std::fmt::Display| Failure::from(format!("{}: {error}", list.display()));
    let table = read_list(list, args.unit)?;
    let receiver = args.receiver.clone().map_or_else(|| table.receiver(), Ok).map_err(|error| named(&error))?;
    let senders = if args.sender.is_empty() { table.senders(&receiver) } else { named_senders(&args.sender)? };
    let options = MessageOptions {
        receiver: receiver.clone(),
        senders: senders.clone(),
        tolerated: args.tolerated,
        longest_ns: u64::MAX,
        rounds_open: usize::MAX,
    };
    let imported = import_messages(&table, options, output(args)?).map_err(|error| named(&error))?;
    let ImportedMessages { rounds, passed_over, faulty } = imported;
    let json = serde_json::json!({
        "receiver": receiver, "senders": senders, "rounds": rounds.rounds(), "messages": rounds.taken(),
        "passed_over": passed_over, "faulty": faulty,
    });
    let (place, reasons) = (output(args)?.display(), reasons(&passed_over));
    global.answer(&json, || {
        let count = senders.len();
        let taken = format!("{} rounds, {} messages of {count} senders", rounds.rounds(), rounds.taken());
        let left_out =
            if reasons.is_empty() { String::new() } else { format!("passed over: {}\n", reasons.join(", ")) };
        format!("{taken} to {receiver} in {place}\n{left_out}{}", faults(&faulty, noun_of(list)))
    })?;
    match passed_over.damage() {
        0 => Ok(()),
        damage => Err(Failure::from(format!("the log is partial: {damage} messages were passed over"))),
    }
}

/// A whole list: Parquet or text, by its name.
pub(super) fn read_list(list: &Path, unit: TimeUnitChoice) -> Result<MessageTable, Failure> {
    let named = |error: &dyn std::fmt::Display| Failure::from(format!("{}: {error}", list.display()));
    let file = File::open(list).map_err(|error| named(&error))?;
    let unit = unit.into();
    let table =
        if is_parquet(list) { MessageTable::from_parquet(file, unit) } else { MessageTable::from_text(file, unit) };
    table.map_err(|error| named(&error))
}

fn is_parquet(list: &Path) -> bool {
    list.extension().is_some_and(|extension| extension == "parquet")
}

/// Senders as they were given; a name that comes twice is a slip.
pub(super) fn named_senders(names: &[String]) -> Result<Vec<String>, Failure> {
    match names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)) {
        Some((_, twice)) => Err(Failure::usage(format!("--sender {twice} is given twice"))),
        None => Ok(names.to_vec()),
    }
}

/// What was passed over, in words.
pub(super) fn reasons(passed_over: &PassedOver) -> Vec<String> {
    let PassedOver { malformed, elsewhere, strangers, lost, repeated, out_of_order, too_long, remote } = *passed_over;
    let reasons = [
        (elsewhere, "go to other receivers"),
        (lost, "were never perceived"),
        (malformed, "are no messages"),
        (strangers, "come from other senders"),
        (repeated, "repeat an id of their sender"),
        (out_of_order, "are out of the order of perception"),
        (too_long, "take longer than messages may"),
        (remote, "are more than 50 days away"),
    ];
    reasons.into_iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}")).collect()
}

/// What a message of a list stands in.
fn noun_of(list: &Path) -> &'static str {
    if is_parquet(list) { "row" } else { "line" }
}

/// The first lines that were passed over, each with its reason.
fn faults(faulty: &[FaultyLine], noun: &str) -> String {
    faulty.iter().fold(String::new(), |mut text, FaultyLine { line, reason }| {
        let reason = match reason {
            LineFault::Malformed => "is no message",
            LineFault::Strangers => "comes from another sender",
            LineFault::Repeated => "repeats an id of its sender",
            LineFault::OutOfOrder => "is out of the order of perception",
            LineFault::TooLong => "takes longer than messages may",
            LineFault::Remote => "has a time that is more than 50 days from the others",
        };
        let _ = writeln!(text, "  {noun} {line} {reason}");
        text
    })
}

fn render(found: &ImportSummary, place: &Path) -> String {
    let ImportSummary { servers, rounds, replies, unmatched, bound_ps, .. } = found;
    let place = place.display();
    let mut text = format!("{rounds} rounds, {replies} replies of {} servers in {place}\n", servers.len());
    if let Some(bound_ps) = bound_ps {
        let bound = Span::from_seconds(*bound_ps as f64 * 1e-12);
        let _ = writeln!(text, "{unmatched} replies are not in both captures; clocks known to +- {bound}");
    }
    text
}
