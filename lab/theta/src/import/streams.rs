//! Captures of clients that do not wait for replies: streams of TCP put together again, and the requests and replies in
//! them, by protocol.
//!
//! Nothing is guessed. A connection is read from its first byte (SYN) on, or not at all; behind a gap in which a
//! message may begin it is not read further; what is passed over is counted by reason. Memory is bounded: 8 MiB of
//! segments that wait for earlier ones in each direction, 256 MiB in all, and 65536 connections, open requests of each,
//! and replies that wait for one. Bytes of messages are not kept.

mod connection;
mod found;
mod framed;
mod messages;
mod pairs;
mod reassembly;
mod redis;

pub use messages::{StreamMessages, StreamsPassedOver};

use super::ImportError;
use super::capture::Capture;
use super::packet::{TcpSegment, segment};
use connection::{ALL_WAITING_BYTES_MAX, Connection, SeenSegment};
use found::Side;
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::net::{IpAddr, SocketAddr};

/// More servers are refused.
const SERVERS_MAX: usize = 1000;
/// More connections are not followed at once.
const CONNECTIONS_MAX: usize = 1 << 16;
/// Captures of several processors or devices mix up packets by less than this.
const MIXED_UP_NS: i64 = 5_000_000;
/// More requests are refused.
const REQUESTS_MAX: usize = 1 << 24;

const FIN: u8 = 1;
const SYN: u8 = 1 << 1;
const RST: u8 = 1 << 2;
const ACK: u8 = 1 << 4;

/// What the streams consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamProtocol {
    /// RESP 2 and 3: replies in the order of their commands.
    Redis,
    /// Without encryption and from the preface on: the first headers of a stream in each direction.
    Http2,
    /// Correlation ids.
    Kafka,
    /// Messages that begin with their length in 2 octets, highest first; replies in the order of their requests.
    Length2Big,
    /// The same, lowest first.
    Length2Little,
    /// The same in 4 octets, highest first.
    Length4Big,
    /// The same in 4 octets, lowest first.
    Length4Little,
}

/// What to take from a capture.
#[derive(Clone, Copy, Debug)]
pub struct StreamOptions {
    /// The client.
    pub client: IpAddr,
    /// The port of the servers.
    pub port: u16,
    /// What is spoken there.
    pub protocol: StreamProtocol,
}

/// Reads the exchanges of a client from a capture.
///
/// # Errors
/// [`ImportError`]. A truncated capture gives what came before the cut, and says so.
pub fn read_streams(capture: impl Read, options: StreamOptions) -> Result<StreamMessages, ImportError> {
    let mut streams = Streams::new(options);
    let mut capture = Capture::open(capture)?;
    loop {
        match capture.next_packet() {
            Ok(None) => break,
            Ok(Some(captured)) => {
                let at_ns = i64::try_from(captured.at_ns).ok();
                if let Some((at_ns, segment)) = at_ns.zip(segment(captured.link, captured.bytes)) {
                    streams.take(at_ns, &segment)?;
                }
            }
            Err(ImportError::Format(words)) => {
                streams.into.cut = Some(words);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let into = streams.finish();
    if into.connections == 0 {
        let StreamOptions { client, port, .. } = options;
        return Err(into.cut.map_or(ImportError::Nothing { client, port }, ImportError::Format));
    }
    Ok(into)
}

/// The client's side and the server's.
type Ends = (SocketAddr, SocketAddr);

/// Follows the connections of a client.
struct Streams {
    options: StreamOptions,
    connections: BTreeMap<Ends, Connection>,
    /// Connections that a side has closed, in this order: the first to make room.
    closed: VecDeque<Ends>,
    servers: BTreeMap<IpAddr, usize>,
    waiting_bytes: usize,
    /// The latest packet since the clock was last set back.
    latest_ns: i64,
    into: StreamMessages,
}

impl Streams {
    fn new(options: StreamOptions) -> Self {
        let (connections, closed, servers) = (BTreeMap::new(), VecDeque::new(), BTreeMap::new());
        let (into, latest_ns) = (StreamMessages::new(options.client), i64::MIN);
        Streams { options, connections, closed, servers, waiting_bytes: 0, latest_ns, into }
    }

    fn take(&mut self, at_ns: i64, segment: &TcpSegment<'_>) -> Result<(), ImportError> {
        let StreamOptions { client, port, .. } = self.options;
        let (side, ends) = if segment.from.ip() == client && segment.to.port() == port {
            (Side::Requests, (segment.from, segment.to))
        } else if segment.to.ip() == client && segment.from.port() == port {
            (Side::Replies, (segment.to, segment.from))
        } else {
            return Ok(());
        };
        self.note_time(at_ns);
        let is_first = segment.flags & SYN != 0;
        let first = segment.sequence.wrapping_add(is_first.into());
        if is_first && side == Side::Requests && segment.flags & ACK == 0 {
            let is_known = self.connections.get(&ends).is_some_and(|connection| connection.begins_with(first));
            if !is_known {
                self.finish_one(&ends);
            }
        }
        if (is_first || segment.length > 0) && !self.follow(ends)? {
            return Ok(());
        }
        let Some(connection) = self.connections.get_mut(&ends) else { return Ok(()) };
        if is_first {
            connection.begin(side, first);
        }
        if segment.length > 0 {
            let are_full = self.waiting_bytes > ALL_WAITING_BYTES_MAX;
            let before = connection.waiting_bytes();
            connection.take(&SeenSegment { side, first, segment, at_ns, are_full }, &mut self.into);
            self.waiting_bytes = self.waiting_bytes - before + connection.waiting_bytes();
        }
        if segment.flags & (FIN | RST) != 0 {
            self.closed.extend(connection.close().then_some(ends));
        }
        if self.into.messages.len() > REQUESTS_MAX { Err(ImportError::TooManyRequests(REQUESTS_MAX)) } else { Ok(()) }
    }

    fn note_time(&mut self, at_ns: i64) {
        let is_set_back = at_ns < self.latest_ns.saturating_sub(MIXED_UP_NS);
        self.into.passed_over.steps_back += u64::from(is_set_back);
        self.latest_ns = if is_set_back { at_ns } else { self.latest_ns.max(at_ns) };
    }

    /// Follows a connection, from now on if it is new. Whether there is room.
    fn follow(&mut self, ends: Ends) -> Result<bool, ImportError> {
        if self.connections.contains_key(&ends) {
            return Ok(true);
        }
        while self.connections.len() >= CONNECTIONS_MAX {
            let Some(closed) = self.closed.pop_front() else {
                self.into.passed_over.too_many += 1;
                return Ok(false);
            };
            // The same ends may have opened another one since.
            if self.connections.get(&closed).is_some_and(Connection::is_closed) {
                self.finish_one(&closed);
            }
        }
        let next = self.servers.len();
        if next >= SERVERS_MAX && !self.servers.contains_key(&ends.1.ip()) {
            return Err(ImportError::TooManyServers(SERVERS_MAX));
        }
        let server = *self.servers.entry(ends.1.ip()).or_insert(next);
        if server == next {
            self.into.servers.push(ends.1.ip());
        }
        self.into.connections += 1;
        self.connections.insert(ends, Connection::new(self.options.protocol, server));
        Ok(true)
    }

    fn finish_one(&mut self, ends: &Ends) {
        if let Some(mut connection) = self.connections.remove(ends) {
            self.waiting_bytes -= connection.waiting_bytes();
            connection.finish(&mut self.into);
        }
    }

    fn finish(mut self) -> StreamMessages {
        for connection in self.connections.values_mut() {
            connection.finish(&mut self.into);
        }
        self.into.finish();
        self.into
    }
}
