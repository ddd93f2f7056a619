//! `ffclock-lab theta import --protocol`.

use super::{Args, Conversation};
use crate::{Failure, GlobalOptions};
use ffclock_theta::import::{StreamMessages, StreamOptions, StreamProtocol, StreamsPassedOver, read_streams};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};

/// What is spoken on the connections.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ProtocolChoice {
    /// Redis (RESP 2 and 3): replies in the order of their commands
    Redis,
    /// HTTP/2 without encryption, as gRPC has it too: by stream, from headers to headers
    Http2,
    /// Kafka: by correlation id
    Kafka,
    /// Messages behind their length in 2 octets, highest first, replies in the order of their requests
    #[value(name = "length-2-big")]
    Length2Big,
    /// The same, lowest octet first
    #[value(name = "length-2-little")]
    Length2Little,
    /// The same in 4 octets, highest first
    #[value(name = "length-4-big")]
    Length4Big,
    /// The same in 4 octets, lowest first
    #[value(name = "length-4-little")]
    Length4Little,
}

impl From<ProtocolChoice> for StreamProtocol {
    fn from(choice: ProtocolChoice) -> Self {
        match choice {
            ProtocolChoice::Redis => StreamProtocol::Redis,
            ProtocolChoice::Http2 => StreamProtocol::Http2,
            ProtocolChoice::Kafka => StreamProtocol::Kafka,
            ProtocolChoice::Length2Big => StreamProtocol::Length2Big,
            ProtocolChoice::Length2Little => StreamProtocol::Length2Little,
            ProtocolChoice::Length4Big => StreamProtocol::Length4Big,
            ProtocolChoice::Length4Little => StreamProtocol::Length4Little,
        }
    }
}

pub(super) fn run(global: &GlobalOptions, args: &Args, (capture, (client, port)): Conversation) -> Result<(), Failure> {
    let named = |error: &dyn std::fmt::Display| Failure::from(format!("{}: {error}", capture.display()));
    let protocol = args.protocol.ok_or_else(|| Failure::usage("--protocol is needed"))?.into();
    let input = File::open(capture).map(BufReader::new).map_err(|error| named(&error))?;
    let found = read_streams(input, StreamOptions { client, port, protocol }).map_err(|error| named(&error))?;
    if found.exchanges() == 0 {
        let reasons = reasons(&found.passed_over).join(", ");
        return Err(named(&format!("no request with a reply on {} connections: {reasons}", found.connections)));
    }
    if let Some(list) = &args.list {
        let write = || {
            let mut file = BufWriter::new(File::create(list)?);
            found.write_list(&mut file).and_then(|()| file.flush())
        };
        write().map_err(|error| Failure::from(format!("{}: {error}", list.display())))?;
    }
    let log = args.output.as_ref().map(|directory| found.import(args.tolerated, directory)).transpose();
    let rounds = log.map_err(|error| named(&error))?.map(|log| log.rounds());
    let json = serde_json::json!({
        "servers": found.servers(), "connections": found.connections, "requests": found.requests(),
        "replies": found.exchanges(), "rounds": rounds, "passed_over": found.passed_over, "cut": found.cut,
    });
    global.answer(&json, || render(&found, rounds, args))?;
    match (found.damage(), &found.cut) {
        (0, _) => Ok(()),
        (_, Some(words)) => Err(Failure::from(format!("the messages are partial: {words}"))),
        (_, None) => Err(Failure::from("the messages are partial: not all of the streams could be read")),
    }
}

fn render(found: &StreamMessages, rounds: Option<u64>, args: &Args) -> String {
    let (exchanges, connections, servers) = (found.exchanges(), found.connections, found.servers().len());
    let mut text = format!("{exchanges} requests with replies of {servers} servers on {connections} connections\n");
    if let Some((rounds, directory)) = rounds.zip(args.output.as_ref()) {
        text += &format!("{rounds} rounds in {}\n", directory.display());
    }
    if let Some(list) = &args.list {
        text += &format!("{} messages in {}\n", found.requests(), list.display());
    }
    let reasons = reasons(&found.passed_over);
    if !reasons.is_empty() {
        text += &format!("passed over: {}\n", reasons.join(", "));
    }
    text
}

/// What was passed over, in words.
fn reasons(passed_over: &StreamsPassedOver) -> Vec<String> {
    let over = *passed_over;
    let reasons = [
        (over.begun_before, "connections whose begin was not captured"),
        (over.gaps, "connections from a gap in the capture on"),
        (over.not_understood, "connections that do not speak the protocol"),
        (over.other_mode, "connections from where they no longer have a reply for each request"),
        (over.out_of_step, "connections with a reply before any request"),
        (over.too_many_open, "connections with more open requests than are remembered"),
        (over.too_many, "segments of connections beyond those that are followed at once"),
        (over.steps_back, "steps back of the clock of the capture"),
        (over.unasked, "replies without a request"),
        (over.unanswered, "requests without a reply"),
        (over.pushed, "messages that were pushed"),
        (over.repeated_segments, "segments that brought nothing new"),
        (over.missing_bytes, "bytes that were not captured"),
        (over.unread_bytes, "bytes that were not read"),
    ];
    reasons.into_iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}")).collect()
}
