//! One thread of the server: takes requests by the batch, judges each, and answers all with one face.
//!
//! Nothing is shared with other threads but the page: the policy is a copy, the rate limit a table of its own, and the
//! tally has one writer. No request allocates memory.

use crate::arrivals::{Arrivals, ArrivedAt, Left};
use crate::face::{self, FaceOptions, ReplyMoments, ServedFace, Unserved};
use crate::interleaved::{Departure, Interleave, even, interleaved};
use crate::lateness::Lateness;
use crate::leaving::Leaving;
use crate::limit::{Chance, LimitTime, RateTable};
use crate::options::WhenUnsynchronised;
use crate::policy::{Policy, PolicyBoard};
use crate::protection::{Opened, ProtectedRequests};
use crate::served_clock::ServedClock;
use crate::tally::{Counted, Tally};
use ffclock::Snapshot;
use ffclock_counter::CounterId;
use ffclock_sys::{ArrivedPacket, PacketBatch, SentBatch, ServedSocket, mono_now};
use ffclock_units::{Counter, Ticks};
use ffclock_wire::{HEADER_BYTES, KissCode, Mode, NotServed, NtpTimestamp, ReplyTemplate, ServedRequest};
use std::hint::black_box;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How long a thread waits for a request before it looks whether it is to end.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long a thread waits for memory.
const PAUSE: Duration = Duration::from_millis(10);
/// One of this number of requests without an answer gets a refusal.
pub(crate) const KISS_SHARE: u64 = 16;

/// A batch of no more requests came to a thread that slept.
const FEW: usize = 4;
/// One of this number of lone replies is stamped when it leaves, once it is known how late that is.
const TRIED: u64 = 4;

/// The version that NTS protects (RFC 8915, section 5).
const NTS_VERSION: u8 = 4;

/// A request that gets an answer, until the batch is complete.
#[derive(Clone, Copy)]
struct PendingReply {
    place: usize,
    from: IpAddr,
    request: ServedRequest,
    interleave: Interleave,
    received: Counter,
    /// By which the sender recognises itself, where we follow it.
    loop_reference: Option<u32>,
    /// Its number among the protected requests, if it is one.
    protected: Option<usize>,
}

/// One thread, and all that it owns.
pub struct Worker {
    socket: ServedSocket,
    board: Arc<PolicyBoard>,
    policy: Arc<Policy>,
    generation: u64,
    clock: ServedClock,
    arrivals: Arrivals,
    table: RateTable,
    tally: Arc<Tally>,
    batch: PacketBatch,
    pending: Vec<PendingReply>,
    guarded: ProtectedRequests,
    /// When replies left, where clients may interleave.
    leaving: Option<Leaving>,
    /// How late lone replies leave.
    lateness: Lateness,
    /// How long it takes to make and to seal a protected reply.
    sealing: Lateness,
    /// The counter when the latest batch was sent.
    sent_at: Counter,
    chance: Chance,
}

/// What a thread is given by the server.
pub struct WorkerParts<'a> {
    /// The page.
    pub page: &'a Path,
    /// The policies.
    pub board: Arc<PolicyBoard>,
    /// Where the thread counts.
    pub tally: Arc<Tally>,
    /// The size of the table of its rate limit.
    pub table_bytes: usize,
    /// Whether other threads send from the same socket. The kernel numbers all its departures in one row, so none of
    /// them knows which are its own, and no reply is interleaved.
    pub shares_socket: bool,
}

impl Worker {
    /// A thread that answers on this socket.
    ///
    /// # Errors
    /// The socket cannot wait with an end, or there are no random numbers.
    pub fn new(socket: ServedSocket, parts: WorkerParts<'_>) -> io::Result<Self> {
        socket.set_patience(PATIENCE)?;
        let mut clock = ServedClock::new(parts.page);
        let counter = clock.snapshot().map_or(CounterId::CPU, |snapshot| snapshot.counter_id());
        let mut arrivals = Arrivals::new(counter);
        let policy = parts.board.read();
        let interleaves = policy.interleaved && !parts.shares_socket;
        let leaving = if interleaves { Leaving::start(&socket) } else { None };
        Ok(Worker {
            socket,
            leaving,
            lateness: Lateness::default(),
            sealing: Lateness::default(),
            policy,
            generation: 0,
            board: parts.board,
            clock,
            sent_at: arrivals.now(),
            arrivals,
            table: RateTable::new(parts.table_bytes),
            tally: parts.tally,
            batch: PacketBatch::new(),
            pending: Vec::with_capacity(PacketBatch::CAPACITY),
            guarded: ProtectedRequests::new()?,
            chance: Chance::new()?,
        })
    }

    /// Answers until `stop` is set.
    ///
    /// # Errors
    /// The socket fails.
    pub fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            match self.batch.receive(&self.socket) {
                Ok(count) => {
                    // After the wait: what is put up meanwhile counts for the packets that end it.
                    self.board.renew(&mut self.policy, &mut self.generation);
                    self.answer(count);
                }
                Err(error) => match Failed::by(error.kind()) {
                    Failed::Nothing => {}
                    Failed::Memory => thread::sleep(PAUSE),
                    Failed::Socket => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Answers the `count` packets of the batch.
    fn answer(&mut self, count: usize) {
        let snapshot = self.clock.snapshot();
        self.follow_counter(snapshot.as_ref());
        let left = if count < PacketBatch::CAPACITY { Left::None } else { Left::Perhaps };
        self.arrivals.take_batch(self.sent_at, left);
        let now = LimitTime::from_seconds(mono_now().since_origin().as_seconds());
        self.tally.add(Counted::Received, count as u64);
        self.pending.clear();
        self.guarded.clear();
        for place in 0..count {
            self.judge(place, now);
        }
        self.reply(snapshot.as_ref());
        let sent = self.batch.send(&self.socket);
        self.tally.add(Counted::SendFailed, sent.failed as u64);
        if self.leaving.as_ref().is_some_and(Leaving::is_waiting) {
            self.note_departures(sent, snapshot.as_ref());
        }
    }

    /// Remembers when the replies to interleaving clients left.
    fn note_departures(&mut self, sent: SentBatch, snapshot: Option<&Snapshot>) {
        let Some(mut leaving) = self.leaving.take() else { return };
        if sent.failed > 0 {
            self.leaving = leaving.restart(&self.socket).then_some(leaving);
            return;
        }
        self.arrivals.take_pair();
        let snapshot = self.clock.undisrupted(snapshot);
        let came_alone = self.came_alone();
        leaving.take_over(&self.socket, |stamped_ns| {
            let counter = self.arrivals.left(stamped_ns, self.sent_at)?;
            if came_alone {
                self.lateness.note(counter - self.sent_at);
            }
            let (snapshot, options) = (snapshot?, &self.policy.face);
            let left = even(face::timestamp(snapshot, counter, options)?);
            Some(Departure { left, bound: face::bound_at(snapshot, counter, options.bound) })
        });
        leaving.end_batch();
        self.leaving = Some(leaving);
    }

    fn follow_counter(&mut self, snapshot: Option<&Snapshot>) {
        let Some(snapshot) = snapshot else { return self.arrivals.set_period(None) };
        if snapshot.counter_id() != self.arrivals.counter() {
            self.arrivals = Arrivals::new(snapshot.counter_id());
            self.sent_at = self.arrivals.now();
            (self.lateness, self.sealing) = (Lateness::default(), Lateness::default());
        }
        self.arrivals.set_period(snapshot.estimate().map(|estimate| estimate.period));
    }

    /// Judges one packet: it is ignored, refused, or will be answered with the batch.
    fn judge(&mut self, place: usize, now: LimitTime) {
        let Some(packet) = self.batch.packet(place) else { return self.tally.add(Counted::Unreachable, 1) };
        let request = match decode(&packet) {
            Ok(request) => request,
            Err(reason) => return self.tally.add(reason, 1),
        };
        let ArrivedPacket { from, stamped_ns, .. } = packet;
        if !self.policy.access.is_served(from.ip()) {
            self.tally.add(Counted::Denied, 1);
            return self.refuse(place, &request, (KissCode::DENY, Counted::KissDeny));
        }
        if !self.table.admit(from.ip(), now, &self.policy.limit) {
            if self.chance.one_in(self.policy.leak) {
                self.tally.add(Counted::Leaked, 1);
            } else {
                self.tally.add(Counted::Limited, 1);
                return self.refuse(place, &request, (KissCode::RATE, Counted::KissRate));
            }
        }
        let Some(protected) = self.open(place, &request) else { return };
        let ArrivedAt { counter, by_kernel } = self.arrivals.at(stamped_ns);
        self.tally.add(Counted::Unstamped, u64::from(!by_kernel));
        let (from, received) = (from.ip(), counter);
        let loop_reference = self.policy.loop_reference(from);
        // The time at which a protected reply left is not remembered.
        let interleaving = self.leaving.as_mut().filter(|_| protected.is_none());
        let interleave = interleaving.map_or(Interleave::Never, |leaving| leaving.decide(from, &request));
        self.pending.push(PendingReply { place, from, request, interleave, received, loop_reference, protected });
    }

    /// Opens a request that brings more than a header: the number of a protected one, if it is one; `None` if it is
    /// refused.
    fn open(&mut self, place: usize, request: &ServedRequest) -> Option<Option<usize>> {
        let packet = self.batch.packet(place).filter(|packet| packet.bytes.len() > HEADER_BYTES);
        let (Some(keys), Some(packet)) = (&self.policy.cookies, packet) else { return Some(None) };
        if request.version != NTS_VERSION || request.reply_mode != Mode::Server {
            return Some(None);
        }
        let kiss = ReplyTemplate::kiss(KissCode::NTSN, request);
        match self.guarded.open(packet.bytes, keys, &kiss) {
            (Opened::Plain, _) => Some(None),
            (Opened::Protected(number), _) => Some(Some(number)),
            (Opened::Refused(counted), nak) => {
                self.tally.add(counted, 1);
                if let Some(nak) = nak {
                    self.batch.answer(place, nak);
                }
                None
            }
        }
    }

    /// A refusal now and then; silence otherwise.
    fn refuse(&mut self, place: usize, request: &ServedRequest, (code, counted): (KissCode, Counted)) {
        if self.policy.kiss && self.chance.one_in(KISS_SHARE) {
            self.tally.add(counted, 1);
            self.batch.answer(place, &ReplyTemplate::kiss(code, request));
        }
    }

    /// Writes the replies of the batch: the protected ones first, since their sealing takes time.
    fn reply(&mut self, snapshot: Option<&Snapshot>) {
        if self.came_alone() {
            self.warm_up(snapshot);
        }
        let mut unsealed = self.pending.iter().filter(|pending| pending.protected.is_some()).count();
        let plain = self.pending.len() - unsealed;
        for index in 0..self.pending.len() {
            if let (pending, Some(number)) = (self.pending[index], self.pending[index].protected) {
                self.reply_protected(snapshot, &pending, (number, unsealed));
                unsealed -= 1;
            }
        }
        self.reply_plainly(snapshot, plain);
    }

    /// Writes the plain replies, of this number. The time of leaving is read last of all.
    fn reply_plainly(&mut self, snapshot: Option<&Snapshot>, replies: usize) {
        let foreseen = self.foreseen();
        self.sent_at = self.arrivals.now();
        if replies == 0 {
            return;
        }
        let transmit = self.sent_at + foreseen;
        let snapshot = self.clock.undisrupted(snapshot);
        let earliest = self.pending.iter().fold(transmit, |earliest, pending| earlier(earliest, pending.received));
        let Some(face) = self.face(snapshot, &ReplyMoments { earliest, transmit, foreseen }, replies) else { return };
        let options = &self.policy.face;
        let left = stamp(snapshot, transmit, options);
        let is_alone = self.came_alone();
        let mut leaving = self.leaving.as_mut().filter(|_| face.standing.is_ok());
        if let Some(leaving) = &mut leaving {
            leaving.begin_batch();
        }
        for pending in self.pending.iter().filter(|pending| pending.protected.is_none()) {
            let received = stamp(snapshot, earlier(pending.received, transmit), options);
            let Some(leaving) = &mut leaving else {
                self.batch.answer(pending.place, &written(&face, pending, [received, left]));
                continue;
            };
            let received = leaving.receive_time(pending.from, received);
            let mut reply = written(&face, pending, [received, even(left)]);
            if let Interleave::Now(before) = &pending.interleave {
                reply = interleaved(reply, &pending.request, before);
                self.tally.add(Counted::Interleaved, 1);
            }
            let is_tried = is_alone && is_tried(&self.lateness, &mut self.chance);
            let interleaves = pending.interleave != Interleave::Never;
            if !(interleaves || is_tried) || !leaving.has_room() {
                self.batch.answer(pending.place, &reply);
            } else if self.batch.answer_stamped(pending.place, &reply) {
                leaving.expect(interleaves.then_some((pending.from, received)));
            }
        }
    }

    /// The face of this number of replies, which are counted; `None` if there are none while it claims no time.
    fn face(&mut self, snapshot: Option<&Snapshot>, moments: &ReplyMoments, replies: usize) -> Option<ServedFace> {
        let options = &self.policy.face;
        let face = match snapshot {
            Some(snapshot) => ServedFace::of(snapshot, moments, options),
            None => ServedFace::unserved(Unserved::NoPage, options),
        };
        let counted = match (face.standing, self.policy.unsynchronised) {
            (Ok(_), _) => Counted::Answered,
            (Err(_), WhenUnsynchronised::Reply) => Counted::Unsynchronised,
            (Err(_), WhenUnsynchronised::Silence) => Counted::Silent,
        };
        self.tally.add(counted, replies as u64);
        if face.standing.is_err() {
            self.clock.renew();
        }
        (counted != Counted::Silent).then_some(face)
    }

    /// Whether the requests of the batch came to a thread that slept.
    fn came_alone(&self) -> bool {
        (1..=FEW).contains(&self.pending.len())
    }

    /// How much later than now the replies will leave at least.
    fn foreseen(&self) -> Ticks {
        if self.came_alone() { self.lateness.least() } else { Ticks::ZERO }
    }

    /// Makes a face that is not sent. A thread that slept finds its caches cold, and what it has to fetch must not lie
    /// between the time of leaving and the leaving.
    fn warm_up(&mut self, snapshot: Option<&Snapshot>) {
        let now = self.arrivals.now();
        let Some(snapshot) = self.clock.undisrupted(snapshot) else { return };
        let face = ServedFace::of(snapshot, &ReplyMoments::at(now), &self.policy.face);
        for pending in &self.pending {
            let stamp = face::timestamp(snapshot, now, &self.policy.face).unwrap_or(NtpTimestamp::MISSING);
            black_box(written(&face, pending, [stamp, stamp]));
        }
    }

    /// Writes and seals one protected reply, of this number; the time of leaving is part of what is sealed. It leaves
    /// no sooner than it and the others that are `unsealed` are made, so that is foreseen, too.
    fn reply_protected(
        &mut self,
        snapshot: Option<&Snapshot>,
        pending: &PendingReply,
        (number, unsealed): (usize, usize),
    ) {
        let sealing = Ticks::from_raw(self.sealing.least().raw().saturating_mul(unsealed.min(FEW) as i64));
        let foreseen = self.foreseen() + sealing;
        let begun = self.arrivals.now();
        let transmit = begun + foreseen;
        let snapshot = self.clock.undisrupted(snapshot);
        let received = earlier(pending.received, transmit);
        let Some(face) = self.face(snapshot, &ReplyMoments { earliest: received, transmit, foreseen }, 1) else {
            return;
        };
        let stamps = [received, transmit].map(|counter| stamp(snapshot, counter, &self.policy.face));
        let header = written(&face, pending, stamps);
        let is_tried = self.came_alone() && face.standing.is_ok() && is_tried(&self.lateness, &mut self.chance);
        let (Some(keys), Some(packet)) = (&self.policy.cookies, self.batch.packet(pending.place)) else { return };
        let Some(reply) = self.guarded.seal((number, packet.bytes), keys, &header) else { return };
        self.tally.add(Counted::NtsAnswered, 1);
        match self.leaving.as_mut().filter(|leaving| is_tried && leaving.has_room()) {
            None => self.batch.answer(pending.place, reply),
            Some(leaving) => {
                if self.batch.answer_stamped(pending.place, reply) {
                    leaving.expect(None);
                }
            }
        }
        self.sealing.note(self.arrivals.now() - begun);
    }
}

/// Whether a lone reply is stamped to learn how late such ones leave.
fn is_tried(lateness: &Lateness, chance: &mut Chance) -> bool {
    !lateness.is_known() || chance.one_in(TRIED)
}

/// The earlier of two moments.
fn earlier(one: Counter, other: Counter) -> Counter {
    if one.is_after(other) { other } else { one }
}

/// The time of a counter reading as it stands in a reply.
fn stamp(snapshot: Option<&Snapshot>, counter: Counter, options: &FaceOptions) -> NtpTimestamp {
    snapshot.and_then(|snapshot| face::timestamp(snapshot, counter, options)).unwrap_or(NtpTimestamp::MISSING)
}

/// What failed when nothing could be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failed {
    /// Nothing came, or an ICMP message or a device that is down is reported in place of a packet: an earlier reply has
    /// not arrived.
    Nothing,
    /// The kernel has no memory at present.
    Memory,
    /// The socket, for good.
    Socket,
}

impl Failed {
    fn by(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::WouldBlock
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown => Failed::Nothing,
            ErrorKind::OutOfMemory => Failed::Memory,
            _ => Failed::Socket,
        }
    }
}

/// The bytes of one reply.
fn written(face: &ServedFace, pending: &PendingReply, [receive, transmit]: [NtpTimestamp; 2]) -> [u8; HEADER_BYTES] {
    let mut reply = face.template.reply(&pending.request, receive, transmit);
    if let (Some(reference), Ok(_)) = (pending.loop_reference, face.standing) {
        reply[12..16].copy_from_slice(&reference.to_be_bytes());
    }
    reply
}

/// The request in a packet, or how it is counted that there is none.
fn decode(packet: &ArrivedPacket<'_>) -> Result<ServedRequest, Counted> {
    let (ip, port) = (packet.from.ip(), packet.from.port());
    if packet.is_truncated {
        return Err(Counted::TooLong);
    }
    if port == 0 || ip.is_unspecified() || ip.is_multicast() {
        return Err(Counted::Unreachable);
    }
    // One packet in a victim's name would be answered by every server of the network.
    if packet.is_to_group {
        return Err(Counted::ToGroup);
    }
    ServedRequest::decode(packet.bytes, port).map_err(|reason| match reason {
        NotServed::Truncated => Counted::Truncated,
        NotServed::TooLong => Counted::TooLong,
        NotServed::Version => Counted::Version,
        NotServed::Mode => Counted::NotRequest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EINTR, EAGAIN, ENETDOWN, ENETUNREACH, EHOSTUNREACH, ECONNREFUSED; ENOMEM; EPERM, EBADF, EACCES, ENOTSOCK.
    #[test]
    fn what_passes_does_not_end_a_thread() {
        let failed = |number| Failed::by(io::Error::from_raw_os_error(number).kind());
        for number in [4, 11, 100, 101, 113, 111] {
            assert_eq!(failed(number), Failed::Nothing, "{number}");
        }
        assert_eq!(failed(12), Failed::Memory);
        for number in [1, 9, 13, 88] {
            assert_eq!(failed(number), Failed::Socket, "{number}");
        }
    }
}
