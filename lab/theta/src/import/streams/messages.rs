//! What the streams of a capture say: requests and the replies to them, and what was passed over.

use super::found::StreamFault;
use crate::import::{MessageError, MessageLine, MessageOptions, MessageRounds, MessageTable, import_messages};
use serde::Serialize;
use std::io::Write;
use std::net::IpAddr;
use std::path::Path;

/// A request and its reply: a message of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamMessage {
    /// The number of the server.
    pub(super) server: usize,
    /// When the request was seen.
    pub(super) sent_ns: i64,
    /// When the reply was; none if it was not.
    pub(super) perceived_ns: Option<i64>,
}

/// What was passed over, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamsPassedOver {
    /// Connections whose begin was not captured.
    pub begun_before: u64,
    /// Connections that are not read behind a gap in the capture.
    pub gaps: u64,
    /// Connections that are not of the protocol, from where that shows.
    pub not_understood: u64,
    /// Connections from where they no longer have a reply for each request.
    pub other_mode: u64,
    /// Connections on which a reply came before any request that it could answer.
    pub out_of_step: u64,
    /// Connections with more open requests than are remembered.
    pub too_many_open: u64,
    /// Segments of connections beyond those that are followed at once.
    pub too_many: u64,
    /// Packets that are earlier than one before them by more than captures mix up: the clock was set back.
    pub steps_back: u64,
    /// Replies without a request.
    pub unasked: u64,
    /// Requests without a reply.
    pub unanswered: u64,
    /// What servers sent without being asked, as the protocol permits.
    pub pushed: u64,
    /// Segments that brought nothing new: retransmissions.
    pub repeated_segments: u64,
    /// Bytes that were not captured, where that does harm and where it does not.
    pub missing_bytes: u64,
    /// Bytes that came on connections after these were no longer read.
    pub unread_bytes: u64,
}

impl StreamsPassedOver {
    /// Connections and replies without which the figures may be wrong, and steps of the clock. Not among them are
    /// requests without a reply, what servers push, and connections that change their mode.
    pub const fn damage(&self) -> u64 {
        let StreamsPassedOver { begun_before, gaps, not_understood, out_of_step, too_many_open, too_many, .. } = *self;
        begun_before + gaps + not_understood + out_of_step + too_many_open + too_many + self.unasked + self.steps_back
    }

    pub(super) const fn connections(&mut self, fault: StreamFault) -> &mut u64 {
        match fault {
            StreamFault::BegunBefore => &mut self.begun_before,
            StreamFault::Gap => &mut self.gaps,
            StreamFault::NotUnderstood => &mut self.not_understood,
            StreamFault::OtherMode => &mut self.other_mode,
            StreamFault::Unasked => &mut self.out_of_step,
            StreamFault::TooManyOpen => &mut self.too_many_open,
        }
    }
}

/// The requests of a client and the replies to them.
#[derive(Debug)]
pub struct StreamMessages {
    pub(super) client: IpAddr,
    pub(super) servers: Vec<IpAddr>,
    pub(super) messages: Vec<StreamMessage>,
    /// Connections that were followed.
    pub connections: u64,
    /// What was passed over.
    pub passed_over: StreamsPassedOver,
    /// The fault at the end of the capture; the messages are those before.
    pub cut: Option<String>,
}

impl StreamMessages {
    pub(super) fn new(client: IpAddr) -> Self {
        let passed_over = StreamsPassedOver::default();
        StreamMessages { client, servers: vec![], messages: vec![], connections: 0, passed_over, cut: None }
    }

    /// No more will come. The messages are put in the order in which their requests were seen.
    pub(super) fn finish(&mut self) {
        self.messages.sort_by_key(|message| message.sent_ns);
        self.passed_over.unanswered =
            self.messages.iter().filter(|message| message.perceived_ns.is_none()).count() as u64;
    }

    /// Requests.
    pub fn requests(&self) -> u64 {
        self.messages.len() as u64
    }

    /// Requests with a reply.
    pub fn exchanges(&self) -> u64 {
        self.requests() - self.passed_over.unanswered
    }

    /// The servers that were asked, in the order in which they first were.
    pub fn servers(&self) -> Vec<IpAddr> {
        let mut asked = vec![];
        let mut is_seen = vec![false; self.servers.len()];
        for message in &self.messages {
            if !std::mem::replace(&mut is_seen[message.server], true) {
                asked.push(self.servers[message.server]);
            }
        }
        asked
    }

    /// What makes a log of these messages partial.
    pub fn damage(&self) -> u64 {
        self.passed_over.damage() + u64::from(self.cut.is_some())
    }

    /// Each message with its id: the k-th request to a server is number k.
    fn numbered(&self) -> impl Iterator<Item = (usize, u64, StreamMessage)> + '_ {
        let mut asked = vec![0; self.servers.len()];
        self.messages.iter().map(move |message| {
            asked[message.server] += 1;
            (message.server, asked[message.server], *message)
        })
    }

    /// Writes the messages as a list, with times in nanoseconds.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_list(&self, to: &mut dyn Write) -> std::io::Result<()> {
        writeln!(to, "sender,receiver,id,sent,perceived")?;
        for (server, id, StreamMessage { sent_ns, perceived_ns, .. }) in self.numbered() {
            let (sender, receiver) = (self.servers[server], self.client);
            let perceived = perceived_ns.map_or_else(String::new, |at_ns| at_ns.to_string());
            writeln!(to, "{sender},{receiver},{id},{sent_ns},{perceived}")?;
        }
        Ok(())
    }

    /// Makes a log in `directory`: the messages of the same number are a round, and the client goes on when all servers
    /// but `tolerated` have answered.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn import(&self, tolerated: u32, directory: &Path) -> Result<MessageRounds, MessageError> {
        let receiver = self.client.to_string();
        let names: Vec<_> = self.servers.iter().map(ToString::to_string).collect();
        let mut table = MessageTable::incomplete(self.damage());
        for (number, (server, id, StreamMessage { sent_ns, perceived_ns, .. })) in (1..).zip(self.numbered()) {
            let (sender, id) = (names[server].as_str(), id.to_string());
            table.add(&MessageLine { number, sender, receiver: &receiver, id: &id, sent_ns, perceived_ns })?;
        }
        table.finish();
        let senders = self.servers().iter().map(ToString::to_string).collect();
        let (longest_ns, rounds_open) = (u64::MAX, usize::MAX);
        let options = MessageOptions { receiver, senders, tolerated, longest_ns, rounds_open };
        import_messages(&table, options, directory).map(|imported| imported.rounds)
    }
}
