//! `ffclock theta import`.

use crate::{Failure, Global, output};
use ffclock_theta::import::{ImportOptions, import};
use std::fs::File;
use std::io::BufReader;
use std::net::IpAddr;
use std::path::PathBuf;

/// Options of `ffclock theta import`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ tcpdump -i eth0 -s 96 -w client.pcap 'host 10.0.0.9 and port 7000'
  $ ffclock theta import client.pcap --client 10.0.0.9 --port 7000 --tolerated 1 --output run-1
  $ ffclock theta analyse run-1

The client's k-th request to a server is that server's message of round k, perceived by the client when the reply passes: one capture, one clock.
docs/theta-log.md says what Omega means then. Read with the rights of whoever may read the capture; it is not trusted.")]
pub(super) struct Args {
    /// A capture of tcpdump (classic format, UDP or TCP)
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// The address whose requests are taken
    #[arg(long, value_name = "ADDRESS")]
    client: IpAddr,
    /// The servers' port
    #[arg(long)]
    port: u16,
    /// How many servers' replies the client need not wait for
    #[arg(long, value_name = "F", default_value_t = 0)]
    tolerated: u32,
    /// The log to be made
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
}

pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let named = |error: &dyn std::error::Error| Failure::from(format!("{}: {error}", args.capture.display()));
    let capture = File::open(&args.capture).map_err(|error| named(&error))?;
    let options = ImportOptions { client: args.client, port: args.port, tolerated: args.tolerated };
    let found = import(BufReader::new(capture), options, &args.output).map_err(|error| named(&error))?;
    if global.json {
        let json = serde_json::json!({
            "servers": found.servers, "rounds": found.rounds, "replies": found.replies, "cut": found.cut,
        });
        output::json(&json)?;
    } else {
        let (servers, rounds, replies) = (found.servers.len(), found.rounds, found.replies);
        output::line(&format!("{rounds} rounds, {replies} replies of {servers} servers in {}", args.output.display()))?;
    }
    found.cut.map_or(Ok(()), |words| Err(Failure::from(format!("the log is partial: {words}"))))
}
