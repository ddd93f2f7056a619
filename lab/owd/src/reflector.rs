//! The session-reflector: answers test packets with the times at which they came and left, by the page of this host.
//!
//! A reply is as long as its request, so it never amplifies; what it remembers has a fixed size ([`SenderAdmission`]).

use crate::OwdError;
use crate::admission::SenderAdmission;
use crate::error_estimate::ErrorEstimate;
use crate::packet::{NotTestPacket, PACKET_BYTES_MAX, TestReply, TestRequest, WireTime};
use crate::page_time::{PageTime, Unsynchronised};
use crate::sent::StampedPassage;
use ffclock_sys::{Received, SocketEvent, StampMode, StampedSocket, Stamper, mono_now};
use serde::Serialize;
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

/// Packets that are answered per second of each address, unless it is said otherwise.
pub const RATE: u32 = 10_000;
/// The requested buffer: a flood is to be counted, not lost in the kernel.
const BUFFER_BYTES: usize = 4 << 20;
/// Packets that are taken over between two looks at everything else.
const BATCH: usize = 256;
/// The columns of the reflector's own record.
const PASSAGE_COLUMNS: &str = "from,session,sequence,received_counter,sent_counter";

/// How the reflector numbers its replies (RFC 8762, section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// By its own count in each session, so that the sender sees in which direction packets are lost.
    Stateful,
    /// By the request's number.
    Stateless,
}

/// What a reflector is to do.
#[derive(Clone, Debug)]
pub struct ReflectorPlan {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The page, if not where the client library looks for one.
    pub page: Option<PathBuf>,
    /// Packets that it answers per second, of each address.
    pub rate: u32,
    /// Whether to answer with a clock that is not synchronised.
    pub unsynchronised: Unsynchronised,
    /// Who stamps the packets that arrive; by user space alone, replies say that the time is not known.
    pub stamps: StampMode,
    /// How replies are numbered.
    pub numbering: Numbering,
}

/// The packets by their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReflectorCounts {
    /// Packets answered.
    pub reflected: u64,
    /// Those of them whose reply says that our clock is not synchronised.
    pub unsynchronised: u64,
    /// Those of them that the kernel did not stamp. The reply of a synchronised clock says so, by the largest error
    /// estimate that there is.
    pub unstamped: u64,
    /// Packets that have no room for a reply.
    pub too_short: u64,
    /// Packets longer than what is handled.
    pub too_long: u64,
    /// Packets beyond the rate of their address.
    pub limited: u64,
    /// Replies that the kernel did not take.
    pub not_sent: u64,
}

/// A reflector at its socket.
pub struct Reflector {
    socket: StampedSocket,
    stamper: Stamper,
    page: PageTime,
    admission: SenderAdmission,
    numbering: Numbering,
    counts: ReflectorCounts,
    passages: Option<Box<dyn Write>>,
    buffer: Vec<u8>,
}

impl Reflector {
    /// Opens page and socket.
    ///
    /// # Errors
    /// The page cannot be used, or the address cannot be listened at.
    pub fn open(plan: &ReflectorPlan) -> Result<Self, OwdError> {
        let page = PageTime::open(plan.page.as_deref(), plan.unsynchronised)?;
        let listening = OwdError::network(format!("cannot listen on {}", plan.listen));
        let socket = StampedSocket::bind(plan.listen, plan.stamps).map_err(listening)?;
        let _ = socket.enlarge_receive_buffer(BUFFER_BYTES);
        Ok(Reflector {
            socket,
            stamper: page.stamper(),
            page,
            admission: SenderAdmission::new(plan.rate),
            numbering: plan.numbering,
            counts: ReflectorCounts::default(),
            passages: None,
            buffer: vec![0; PACKET_BYTES_MAX + 1],
        })
    }

    /// Writes the counter's readings of each packet as CSV from now on: with them, and a sender that reads the same
    /// counter, the true delays are known.
    ///
    /// # Errors
    /// `output` does not take the header.
    pub fn record_passages(&mut self, mut output: Box<dyn Write>) -> Result<(), OwdError> {
        writeln!(output, "{PASSAGE_COLUMNS}").map_err(OwdError::network("cannot write the passages"))?;
        self.passages = Some(output);
        Ok(())
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn address(&self) -> Result<SocketAddr, OwdError> {
        self.socket.local_address().map_err(OwdError::network("the socket has no address"))
    }

    /// The packets until now, by their outcome.
    pub fn counts(&self) -> ReflectorCounts {
        self.counts
    }

    /// Answers what has come, up to a batch; whether there may be more.
    ///
    /// # Errors
    /// The socket fails, or the passages cannot be written.
    pub fn turn(&mut self) -> Result<bool, OwdError> {
        for _ in 0..BATCH {
            let event = self.socket.next_event(&mut self.buffer, &mut self.stamper);
            match event.map_err(OwdError::network("the socket fails"))? {
                Some(SocketEvent::Received(received)) => self.answer(&received)?,
                Some(_) => {}
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Hands the passages to the system.
    ///
    /// # Errors
    /// The file does not take them.
    pub fn finish(&mut self) -> Result<(), OwdError> {
        let flushed = self.passages.as_mut().map_or(Ok(()), |output| output.flush());
        flushed.map_err(OwdError::network("cannot write the passages"))
    }

    fn answer(&mut self, received: &Received) -> Result<(), OwdError> {
        let length = received.length.min(self.buffer.len());
        let request = match TestRequest::decode(&self.buffer[..length]) {
            Ok(request) => request,
            Err(NotTestPacket::TooLong(_)) => {
                self.counts.too_long += 1;
                return Ok(());
            }
            Err(_) => {
                self.counts.too_short += 1;
                return Ok(());
            }
        };
        let now = mono_now();
        if !self.admission.admit(received.from.ip(), now) {
            self.counts.limited += 1;
            return Ok(());
        }
        let sequence = match self.numbering {
            Numbering::Stateful => self.admission.next_of(received.from, request.session, now),
            Numbering::Stateless => request.sequence,
        };
        let arrived = StampedPassage { stamp: received.best.stamp, epoch: self.page.epoch() };
        let left = self.reply(request, sequence, &arrived, length);
        match self.socket.send_to(&self.buffer[..length], received.from, &mut self.stamper) {
            Ok(_) => self.counts.reflected += 1,
            Err(_) => self.counts.not_sent += 1,
        }
        let [arrived, left] = [arrived, left].map(|passage| passage.stamp.counter.raw());
        let Some(output) = &mut self.passages else { return Ok(()) };
        let line = writeln!(output, "{},{},{},{arrived},{left}", received.from, request.session, request.sequence);
        line.map_err(OwdError::network("cannot write the passages"))
    }

    /// Makes the reply in place of the request. When it leaves: the last thing that is read before it is handed over.
    fn reply(
        &mut self,
        request: TestRequest,
        sequence: u32,
        arrived: &StampedPassage,
        length: usize,
    ) -> StampedPassage {
        let received = self.page.time_of(arrived);
        let left = self.page.passage_now();
        let sent = self.page.time_of(&left);
        self.counts.unstamped += u64::from(!received.is_stamped);
        let (error, times) = if received.is_synchronised && sent.is_synchronised {
            // When user space found the packet says nothing about how long it had waited.
            let known = received.is_stamped.then(|| ErrorEstimate::of(received.bound.max(sent.bound)));
            (known.unwrap_or(ErrorEstimate::unknown()), [received.time, sent.time])
        } else {
            self.counts.unsynchronised += 1;
            // Of one origin, also where the clock was synchronised between the two.
            (ErrorEstimate::unsynchronised(), [arrived, &left].map(|passage| self.page.free_time(passage)))
        };
        let [received, sent] = times.map(WireTime::of);
        let reply = TestReply { sequence, sent, error, received, request };
        reply.encode(&mut self.buffer[..length]);
        left
    }
}

impl AsFd for Reflector {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
