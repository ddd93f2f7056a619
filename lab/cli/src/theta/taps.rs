//! `ffclock-lab theta taps`: a run of several hosts, compared with captures of their links.

use super::input::{failure, open, whole};
use super::table::span;
use crate::{Failure, GlobalOptions};
use ffclock_theta::certified::{Certified, CertifyOptions, TapCheck, TapPassage, check_by_taps};
use ffclock_theta::import::each_datagram;
use ffclock_theta::log::LogReader;
use ffclock_theta::record::{HostId, ProcessId, Round};
use ffclock_theta_live::captured_message;
use ffclock_units::Rate;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::File;
use std::io::BufReader;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Options of `ffclock-lab theta taps`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ tcpdump -i tap1 --time-stamp-precision=nano -w guest1.pcap udp &
  $ tcpdump -i tap2 --time-stamp-precision=nano -w guest2.pcap udp &
  $ ffclock-lab theta taps run-1 --tap guest1=guest1.pcap --tap guest2=guest2.pcap
  $ ffclock-lab theta taps run-1 --tap guest1=guest1.pcap --tap guest2=guest2.pcap --json | jq .

The captures are of the links of the hosts, all stamped by one clock outside of them: that of a switch, or of a machine whose guests the hosts are.
Each message left its host after its broadcast and came to the other before its perception. Exit code 1 if no clocks within their bounds agree with
that; the host that alone explains it is named.")]
pub(super) struct Args {
    /// The log
    #[arg(value_name = "DIR")]
    log: PathBuf,
    /// A host of the log and the capture of its link (classic or pcapng); once for each host
    #[arg(long, value_name = "HOST=CAPTURE", required = true, value_parser = tap)]
    tap: Vec<(String, PathBuf)>,
    /// How fast the clock of the captures may drift
    #[arg(long, value_name = "RATE", default_value = "20 ppm")]
    drift: Rate,
}

fn tap(text: &str) -> Result<(String, PathBuf), String> {
    let (host, capture) = text.split_once('=').ok_or("is no HOST=CAPTURE")?;
    Ok((host.to_owned(), PathBuf::from(capture)))
}

/// A message on a link; its receiver is an address as yet.
struct SeenMessage {
    host: HostId,
    sender: ProcessId,
    round: Round,
    to: SocketAddr,
    at_ns: u64,
}

/// All that the captures hold.
#[derive(Default)]
struct Captures {
    seen: Vec<SeenMessage>,
    runs: BTreeSet<u64>,
    /// Each process is at the address that its messages come from.
    processes: BTreeMap<SocketAddr, ProcessId>,
}

impl Captures {
    fn read(&mut self, host: HostId, capture: &Path) -> Result<(), Failure> {
        let named = |error: &dyn std::fmt::Display| Failure::from(format!("{}: {error}", capture.display()));
        let file = File::open(capture).map_err(|error| named(&error))?;
        let before = self.seen.len();
        let read = each_datagram(BufReader::new(file), |datagram| {
            let Some(message) = captured_message(datagram.content) else { return };
            let (sender, round) = (message.sender, message.round);
            self.runs.insert(message.run);
            self.processes.insert(datagram.from, sender);
            self.seen.push(SeenMessage { host, sender, round, to: datagram.to, at_ns: datagram.at_ns });
        });
        read.map_err(|error| named(&error))?;
        if self.seen.len() == before { Err(named(&"holds no message of a run")) } else { Ok(()) }
    }

    fn passages(self) -> Result<Vec<TapPassage>, Failure> {
        if self.runs.len() > 1 {
            return Err(Failure::from(format!("the captures hold messages of {} runs", self.runs.len())));
        }
        let passage = |SeenMessage { host, sender, round, to, at_ns }| {
            let receiver = *self.processes.get(&to)?;
            Some(TapPassage { host, sender, receiver, round, at_ns })
        };
        Ok(self.seen.into_iter().filter_map(passage).collect())
    }
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let log = open(&args.log)?;
    let mut captures = Captures::default();
    for (name, capture) in &args.tap {
        captures.read(host(&log, name)?, capture)?;
    }
    let options = CertifyOptions::default();
    let check =
        check_by_taps(&log, &captures.passages()?, args.drift, &options).map_err(|error| failure(&args.log, &error))?;
    global.answer(&check, || render(&check))?;
    whole(&args.log, &log)
}

fn host(log: &LogReader, name: &str) -> Result<HostId, Failure> {
    let place = log.run().hosts.iter().position(|host| host.name == name);
    let unknown = || Failure::usage(format!("--tap {name}: the log has no such host"));
    place.map(|place| HostId(place as u32)).ok_or_else(unknown)
}

fn render(TapCheck { messages, departures, arrivals, link_max_ps, promised, seen, both }: &TapCheck) -> String {
    let mut text = format!(
        "{messages} messages between hosts, {departures} seen leaving and {arrivals} seen coming; at most {} between two taps\n\
         no clock contradicts what was seen\n\n",
        span(Some(*link_max_ps))
    );
    for (name, Certified { first, half_width_max_ps, .. }) in
        [("by the clocks' bounds", promised), ("by the taps alone", seen), ("by both", both)]
    {
        let apart = span(Some(*half_width_max_ps));
        let omega = first.map(|bounds| {
            format!("; Omega over first switches between {:.4} and {:.4}", bounds.low.as_f64(), bounds.high.as_f64())
        });
        let _ = writeln!(text, "{name:<22} clocks of two hosts known to +- {apart}{}", omega.unwrap_or_default());
    }
    text
}
