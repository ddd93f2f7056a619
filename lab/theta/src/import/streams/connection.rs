//! A connection: both directions read and paired.

use super::StreamProtocol;
use super::found::{Found, FoundAt, Side, StreamFault};
use super::framed::Framed;
use super::messages::{StreamMessage, StreamMessages};
use super::pairs::Pairs;
use super::reassembly::{ByteStream, Piece};
use super::redis::{RedisCommands, RedisReplies};
use crate::import::packet::TcpSegment;

/// A direction whose waiting pieces take more has lost what is missing before them.
const WAITING_BYTES_MAX: usize = 8 << 20;
/// The same for all connections.
pub(super) const ALL_WAITING_BYTES_MAX: usize = 256 << 20;

#[derive(Debug)]
enum Parser {
    Framed(Framed),
    Commands(RedisCommands),
    Replies(RedisReplies),
}

impl Parser {
    fn new(protocol: StreamProtocol, side: Side) -> Self {
        match (Framed::new(protocol, side), side) {
            (Some(framed), _) => Parser::Framed(framed),
            (None, Side::Requests) => Parser::Commands(RedisCommands::default()),
            (None, Side::Replies) => Parser::Replies(RedisReplies::default()),
        }
    }

    fn read(&mut self, piece: &Piece, at_ns: i64, found: &mut Vec<FoundAt>) -> Result<(), StreamFault> {
        match self {
            Parser::Framed(parser) => parser.read(&piece.bytes, at_ns, found),
            Parser::Commands(parser) => parser.read(&piece.bytes, at_ns, found),
            Parser::Replies(parser) => parser.read(&piece.bytes, at_ns, found),
        }?;
        self.miss(piece.missing)
    }

    fn miss(&mut self, missing: u64) -> Result<(), StreamFault> {
        if missing == 0 {
            return Ok(());
        }
        match self {
            Parser::Framed(parser) => parser.miss(missing),
            Parser::Commands(parser) => parser.miss(missing),
            Parser::Replies(parser) => parser.miss(missing),
        }
    }
}

/// One direction.
#[derive(Debug)]
struct Direction {
    side: Side,
    /// Nothing before its begin was seen.
    stream: Option<ByteStream>,
    parser: Parser,
    /// Why it is not read any more.
    ended: Option<StreamFault>,
    /// When all bytes so far had been seen, by the clock since it was set back for this time.
    complete_ns: i64,
    steps_back: u64,
    found: Vec<FoundAt>,
}

impl Direction {
    fn new(protocol: StreamProtocol, side: Side) -> Self {
        let (parser, found) = (Parser::new(protocol, side), vec![]);
        Direction { side, stream: None, parser, ended: None, complete_ns: i64::MIN, steps_back: 0, found }
    }

    fn waiting_bytes(&self) -> usize {
        self.stream.as_ref().map_or(0, ByteStream::waiting_bytes)
    }

    fn end(&mut self, fault: StreamFault) {
        self.ended.get_or_insert(fault);
        // What waits is not needed any more.
        self.stream = None;
    }

    fn read(&mut self, piece: &Piece, steps_back: u64) -> Result<(), StreamFault> {
        if steps_back != self.steps_back {
            (self.steps_back, self.complete_ns) = (steps_back, i64::MIN);
        }
        self.complete_ns = self.complete_ns.max(piece.at_ns);
        // A request was sent when it was seen first. A reply cannot be perceived before all that precedes it.
        let at_ns = if self.side == Side::Requests { piece.at_ns } else { self.complete_ns };
        self.parser.read(piece, at_ns, &mut self.found)
    }
}

/// A connection between the client and a server.
#[derive(Debug)]
pub(super) struct Connection {
    /// The number of the server.
    pub(super) server: usize,
    requests: Direction,
    replies: Direction,
    pairs: Pairs,
    /// Whether a fault of it was counted.
    is_counted: bool,
    is_closed: bool,
}

impl Connection {
    pub(super) fn new(protocol: StreamProtocol, server: usize) -> Self {
        let [requests, replies] = [Side::Requests, Side::Replies].map(|side| Direction::new(protocol, side));
        Connection { server, requests, replies, pairs: Pairs::new(protocol), is_counted: false, is_closed: false }
    }

    /// A side has closed it; more may come all the same. Whether that is new.
    pub(super) fn close(&mut self) -> bool {
        !std::mem::replace(&mut self.is_closed, true)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The memory that waiting pieces take.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.requests.waiting_bytes() + self.replies.waiting_bytes()
    }

    fn direction(&mut self, side: Side) -> &mut Direction {
        match side {
            Side::Requests => &mut self.requests,
            Side::Replies => &mut self.replies,
        }
    }

    /// Whether the direction is known to begin with this number.
    pub(super) fn begins_with(&self, first: u32) -> bool {
        self.requests.stream.as_ref().is_some_and(|stream| stream.first() == first)
    }

    /// A direction begins with the byte of this number.
    pub(super) fn begin(&mut self, side: Side, first: u32) {
        let direction = self.direction(side);
        if direction.ended.is_none() {
            direction.stream.get_or_insert_with(|| ByteStream::new(first));
        }
    }

    /// Takes a segment with content, whose first byte has the number `first`.
    pub(super) fn take(&mut self, seen: &SeenSegment<'_>, into: &mut StreamMessages) {
        let &SeenSegment { side, first, segment, at_ns, are_full } = seen;
        let direction = self.direction(side);
        if direction.ended.is_some() {
            into.passed_over.unread_bytes += u64::from(segment.length);
            return;
        }
        let Some(stream) = &mut direction.stream else {
            self.end(Side::Requests, StreamFault::BegunBefore, into);
            self.end(Side::Replies, StreamFault::BegunBefore, into);
            into.passed_over.unread_bytes += u64::from(segment.length);
            return;
        };
        if !stream.add(first, segment, at_ns) {
            into.passed_over.repeated_segments += 1;
            return;
        }
        self.read(side, into);
        let too_much = if are_full { 0 } else { WAITING_BYTES_MAX };
        while self.direction(side).waiting_bytes() > too_much {
            self.give_up_gap(side, into);
        }
    }

    /// Reads what is complete.
    fn read(&mut self, side: Side, into: &mut StreamMessages) {
        let direction = self.direction(side);
        let mut outcome = Ok(());
        while let Some(piece) = direction.stream.as_mut().filter(|_| outcome.is_ok()).and_then(ByteStream::pop) {
            into.passed_over.missing_bytes += piece.missing;
            outcome = direction.read(&piece, into.passed_over.steps_back);
        }
        let mut found = std::mem::take(&mut direction.found);
        for (what, at_ns) in found.drain(..) {
            // What was found before the fault counts.
            if let Err(fault) = self.pair(side, (what, at_ns), into) {
                outcome = Err(fault);
                break;
            }
        }
        self.direction(side).found = found;
        if let Err(fault) = outcome {
            self.end(side, fault, into);
        }
        // Replies to the last requests that were read may still come; all later ones belong to others.
        if let Some(fault) = self.requests.ended.filter(|_| self.pairs.are_closed() && self.replies.ended.is_none()) {
            self.end(Side::Replies, fault, into);
        }
    }

    fn pair(&mut self, side: Side, (what, at_ns): FoundAt, into: &mut StreamMessages) -> Result<(), StreamFault> {
        let number = match what {
            Found::Next => None,
            Found::Numbered(number) => Some(number),
            Found::BrokenOff(number) => {
                self.pairs.break_off(number);
                return Ok(());
            }
            Found::Pushed => {
                into.passed_over.pushed += 1;
                return Ok(());
            }
        };
        if side == Side::Replies {
            if self.requests.ended.is_some() && self.pairs.are_closed() {
                return Ok(());
            }
            return self.pairs.answer(number, at_ns, &mut into.messages);
        }
        into.messages.push(StreamMessage { server: self.server, sent_ns: at_ns, perceived_ns: None });
        self.pairs.ask(number, &mut into.messages)
    }

    fn give_up_gap(&mut self, side: Side, into: &mut StreamMessages) {
        let direction = self.direction(side);
        let Some(missing) = direction.stream.as_mut().and_then(ByteStream::give_up_gap) else { return };
        into.passed_over.missing_bytes += missing;
        match direction.parser.miss(missing) {
            Ok(()) => self.read(side, into),
            Err(fault) => self.end(side, fault, into),
        }
    }

    /// A direction is not read any more. The connection is counted by its first fault.
    fn end(&mut self, side: Side, fault: StreamFault, into: &mut StreamMessages) {
        let direction = self.direction(side);
        into.passed_over.unread_bytes += direction.stream.as_ref().map_or(0, ByteStream::unread);
        direction.end(fault);
        if !std::mem::replace(&mut self.is_counted, true) {
            *into.passed_over.connections(fault) += 1;
        }
    }

    /// Nothing more will come.
    pub(super) fn finish(&mut self, into: &mut StreamMessages) {
        for side in [Side::Requests, Side::Replies] {
            while self.direction(side).waiting_bytes() > 0 {
                self.give_up_gap(side, into);
            }
        }
        let early = if self.requests.ended.is_some() { 0 } else { self.pairs.early() };
        into.passed_over.unasked += self.pairs.unasked + early;
    }
}

/// A segment as a connection takes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenSegment<'a> {
    pub(super) side: Side,
    /// The number of its first byte.
    pub(super) first: u32,
    pub(super) segment: &'a TcpSegment<'a>,
    pub(super) at_ns: i64,
    /// Whether all connections together have too many pieces that wait.
    pub(super) are_full: bool,
}
