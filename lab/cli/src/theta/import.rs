//! `ffclock-lab theta import`.

use crate::{Failure, GlobalOptions};
use ffclock_theta::import::{
    ImportError, ImportOptions, ImportSummary, OverlapRule, ServerCapture, TwoSidedOptions, import, import_two_sided,
};
use ffclock_units::{Rate, Span};
use std::fmt::Write;
use std::fs::File;
use std::io::BufReader;
use std::net::IpAddr;
use std::path::PathBuf;

/// Options of `ffclock-lab theta import`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ tcpdump -i eth0 -s 96 -w client.pcap 'host 10.0.0.9 and port 7000'
  $ ffclock-lab theta import client.pcap --client 10.0.0.9 --port 7000 --tolerated 1 --output run-1
  $ ffclock-lab theta analyse run-1
  $ ffclock-lab theta import client.pcap --server a.pcap --server b.pcap --client 10.0.0.9 --port 7000 --output run-2
  $ ffclock-lab theta analyse run-2 --certify

The client's k-th request to a server is that server's message of round k, perceived by the client when the reply passes: one capture, one clock.
With captures of the servers too, a reply is a message from where it left to where it arrived; their clocks are compared by the packets.
docs/theta-log.md defines Omega for such a log. The command needs the right to read the capture, and does not trust its content.")]
pub(super) struct Args {
    /// A capture at the client (classic or pcapng, UDP or TCP)
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// A capture of the same time at a server; several for several servers
    #[arg(long, value_name = "CAPTURE")]
    server: Vec<PathBuf>,
    /// How fast the clocks of two captures may drift against each other
    #[arg(long, value_name = "RATE", default_value = "100 ppm", requires = "server")]
    drift: Rate,
    /// The address whose requests are taken
    #[arg(long, value_name = "ADDRESS")]
    client: IpAddr,
    /// The servers' port
    #[arg(long)]
    port: u16,
    /// How many servers' replies the client need not wait for
    #[arg(long, value_name = "F", default_value_t = 0)]
    tolerated: u32,
    /// Take all that the client writes on a connection before a reply for one request; otherwise that is refused
    #[arg(long)]
    one_request_at_a_time: bool,
    /// The log to be made
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let found = imported(args)?;
    let json = serde_json::json!({
        "servers": found.servers, "rounds": found.rounds, "replies": found.replies, "unmatched": found.unmatched,
        "bound_ps": found.bound_ps, "cut": found.cut,
    });
    global.answer(&json, || render(&found, args))?;
    found.cut.map_or(Ok(()), |words| Err(Failure::from(format!("the log is partial: {words}"))))
}

fn imported(args: &Args) -> Result<ImportSummary, Failure> {
    let open = |path: &PathBuf| {
        let complaint = |error| Failure::from(format!("{}: {error}", path.display()));
        File::open(path).map(BufReader::new).map_err(complaint)
    };
    let overlap = if args.one_request_at_a_time { OverlapRule::SameRequest } else { OverlapRule::Refuse };
    let options = ImportOptions { client: args.client, port: args.port, tolerated: args.tolerated, overlap };
    let client = open(&args.capture)?;
    let named = |error: ImportError| Failure::from(format!("{}: {error}", args.capture.display()));
    if args.server.is_empty() {
        return import(client, options, &args.output).map_err(named);
    }
    let server = |path: &PathBuf| Ok(ServerCapture { name: path.display().to_string(), input: open(path)? });
    let servers = args.server.iter().map(server).collect::<Result<Vec<_>, Failure>>()?;
    import_two_sided(client, servers, TwoSidedOptions { import: options, drift: args.drift }, &args.output)
        .map_err(named)
}

fn render(found: &ImportSummary, args: &Args) -> String {
    let ImportSummary { servers, rounds, replies, unmatched, bound_ps, .. } = found;
    let place = args.output.display();
    let mut text = format!("{rounds} rounds, {replies} replies of {} servers in {place}\n", servers.len());
    if let Some(bound_ps) = bound_ps {
        let bound = Span::from_seconds(*bound_ps as f64 * 1e-12);
        let _ = writeln!(text, "{unmatched} replies are not in both captures; clocks known to +- {bound}");
    }
    text
}
