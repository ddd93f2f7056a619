//! What ranks and the coordinator say to one another: a line of JSON each, over TCP.

use super::{Injected, LiveError, Settings};
use ffclock_sys::give_up_silent_peer;
use ffclock_units::Span;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A longer line is refused.
const LINE_MAX: u64 = 4 << 20;
/// How long a rank, or rank 0, may take to say what it has to say at once.
pub(super) const ANSWER: Duration = Duration::from_secs(10);
/// A host whose kernel answers nothing for this long is gone.
const SILENT_HOST: Span = Span::from_secs(15);

/// The first that a rank says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) rank: u32,
    pub(super) settings: Settings,
    /// Where it receives messages.
    pub(super) address: SocketAddr,
    /// The name of its host.
    pub(super) host: String,
    /// The same for all ranks that read the same counter.
    pub(super) machine: String,
    /// Which counter.
    pub(super) counter: String,
    /// The page given for comparing hosts; empty for that of the machine.
    pub(super) page: String,
    /// Why there is no page to compare hosts by.
    pub(super) no_page: Option<String>,
}

/// The coordinator's answer, when all are there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Go {
    /// Marks the messages of this run.
    pub(super) run: u64,
    /// By rank.
    pub(super) addresses: Vec<SocketAddr>,
    /// The number of each rank's host.
    pub(super) host_of: Vec<u32>,
    /// How long the run may take, in nanoseconds; then rank 0 says that it is over.
    pub(super) limit_ns: u64,
}

/// What comes afterwards from a rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FromRank {
    /// It has come to the last round; it goes on listening.
    Done,
    /// Its log follows, packed.
    Log(Box<LogHeader>),
}

/// What a rank says about its log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LogHeader {
    /// Bytes that follow.
    pub(super) bytes: u64,
    /// Messages sent, one for each receiver.
    pub(super) sent: u64,
    /// Messages perceived.
    pub(super) perceived: u64,
    /// Replies sent, of round trips.
    pub(super) replies_sent: u64,
    /// Replies that came back.
    pub(super) replies_perceived: u64,
    /// Packets that were no messages of this run, or not from the sender that they name.
    pub(super) refused: u64,
    /// Packets that the kernel threw away because the socket's buffer was full.
    pub(super) dropped: u64,
    /// Bytes of that buffer, as the kernel granted them.
    pub(super) buffer_bytes: u64,
    /// Kernel stamps that did not come or could not be trusted.
    pub(super) unstamped: u64,
    /// Events and round trips for which there was no room.
    pub(super) unrecorded: u64,
    /// What was done on purpose.
    pub(super) injected: Injected,
    /// The round at the end.
    pub(super) round: u64,
    /// The real-time priority that was granted, or why none was.
    pub(super) priority: String,
    /// The counter at its start.
    pub(super) started: u64,
    /// What its clock said.
    pub(super) clock: Vec<ClockWord>,
    /// Why its clock gave no time.
    pub(super) no_clock: Option<String>,
    /// The nominal period, seconds a tick.
    pub(super) period_s: f64,
}

/// One look at a host's clock: around `counter` the time is `time_ps + period (N - counter)`, give or take `bound +
/// drift age`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ClockWord {
    pub(super) counter: u64,
    /// Picoseconds since 1970.
    pub(super) time_ps: i128,
    pub(super) bound_ps: u64,
    /// Parts in 10^12.
    pub(super) drift_ppt: u64,
    /// Seconds a tick.
    pub(super) period_s: f64,
}

/// What comes afterwards from the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FromCoordinator {
    /// Stop and hand over the log.
    Stop,
}

pub(super) fn write<T: Serialize>(mut stream: &TcpStream, word: &T) -> Result<(), LiveError> {
    let mut line = serde_json::to_vec(word).map_err(|error| LiveError::Protocol(error.to_string()))?;
    line.push(b'\n');
    stream.write_all(&line).map_err(LiveError::network("talking to another rank"))
}

/// Makes a connection ready for talking: words go at once, reading waits, and a host that has gone is noticed.
///
/// # Errors
/// When the kernel refuses.
pub(super) fn prepare(stream: &TcpStream) -> Result<(), LiveError> {
    let prepared = stream.set_nonblocking(false).and_then(|()| stream.set_nodelay(true));
    prepared.and_then(|()| give_up_silent_peer(stream, SILENT_HOST)).map_err(LiveError::network("a connection"))
}

/// Reads a line; what comes after it stays in the reader.
pub(super) fn read<T: DeserializeOwned>(reader: &mut BufReader<TcpStream>) -> Result<T, LiveError> {
    let in_time = || LiveError::Protocol("it did not say in time what it had to say".to_owned());
    ControlLine::default().read(reader)?.ok_or_else(in_time)
}

/// A line that is being read.
#[derive(Debug, Default)]
pub(super) struct ControlLine(Vec<u8>);

impl ControlLine {
    /// Reads on; none if there is no more for now, where the stream does not block or has a timeout. What comes after
    /// the line stays in the reader.
    ///
    /// # Errors
    /// When the connection is at its end, the line is too long, or it is no such word.
    pub(super) fn read<T: DeserializeOwned>(
        &mut self,
        reader: &mut BufReader<TcpStream>,
    ) -> Result<Option<T>, LiveError> {
        let room = LINE_MAX.saturating_sub(self.0.len() as u64);
        match reader.by_ref().take(room).read_until(b'\n', &mut self.0) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(None),
            read => read.map_err(LiveError::network("listening to another rank"))?,
        };
        if self.0.is_empty() {
            return Err(LiveError::Protocol("it closed the connection: it has died or was stopped".to_owned()));
        }
        let word = serde_json::from_slice(&self.0);
        word.map(Some).map_err(|error| LiveError::Protocol(format!("it does not speak our protocol: {error}")))
    }
}
