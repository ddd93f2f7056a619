//! Which events belong to which copy, and which packets to one another.

use super::capture::{Copy, PacketIdentity};
use super::kernel::{KernelEvent, What};
use super::{Role, WatchCounts};
use crate::passages::PacketPassages;
use crate::payload::Direction;
use crate::site::Site;
use ffclock_units::Counter;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What mapping the tap's stamp may err, and how far its event may lie away [us].
const SLACK_US: f64 = 2.0;
const NEAR_US: f64 = 500.0;
/// How long a packet may lie between its system call and its device, or in its socket [us].
const LONG_US: f64 = 1e6;

/// Ticks of a microsecond.
#[derive(Clone, Copy)]
pub(super) struct TickScale {
    pub(super) ticks_per_us: f64,
}

impl TickScale {
    fn ticks(self, us: f64) -> i64 {
        (us * self.ticks_per_us) as i64
    }
}

/// Whose packets are looked at.
pub(super) struct Whose {
    pub(super) port: u16,
    pub(super) role: Role,
    pub(super) loopback: u32,
}

impl Whose {
    /// On loopback every packet goes out and comes in; one of the two is the peer's.
    fn is_ours(&self, copy: &Copy) -> bool {
        if copy.device != self.loopback {
            return true;
        }
        let own = if copy.passed == Direction::Outgoing { copy.identity.source } else { copy.identity.destination };
        (own.port() == self.port) == (self.role == Role::Server)
    }
}

/// Events in the order of time, by what they are looked up with; ticks since the beginning.
#[derive(Default)]
pub(super) struct TimedEvents {
    /// By device and length: packets handed to the driver, packets taken by the stack, as (ticks, buffer).
    started: BTreeMap<(u32, u64), Vec<(i64, u64)>>,
    stack: BTreeMap<(u32, u64), Vec<(i64, u64)>>,
    /// By buffer, as (ticks, thread).
    queued: BTreeMap<u64, Vec<(i64, u32)>>,
    done: BTreeMap<u64, Vec<(i64, u32)>>,
    came: BTreeMap<u64, Vec<(i64, u32)>>,
    /// By thread.
    sends: BTreeMap<u32, Vec<(i64, u32)>>,
    /// By bytes; 0 for calls that return several packets, once for each of them.
    received: BTreeMap<u64, Vec<(i64, u32)>>,
}

impl TimedEvents {
    pub(super) fn of(events: &[KernelEvent], begin: Counter) -> Self {
        let mut sorted: Vec<(i64, &KernelEvent)> =
            events.iter().map(|event| ((event.counter - begin).raw(), event)).collect();
        sorted.sort_by_key(|(ticks, _)| *ticks);
        let mut timed = TimedEvents::default();
        // What a thread reads from the error queue is no packet that came.
        let mut of_errors: BTreeMap<u32, bool> = BTreeMap::new();
        for (ticks, event) in sorted {
            let by_thread = (ticks, event.thread);
            match event.what {
                What::Queued => timed.queued.entry(event.buffer).or_default().push(by_thread),
                What::Done => timed.done.entry(event.buffer).or_default().push(by_thread),
                What::Started(length) => {
                    timed.started.entry((event.device, length)).or_default().push((ticks, event.buffer));
                }
                What::Came(Site::StackIn, length) => {
                    timed.stack.entry((event.device, length)).or_default().push((ticks, event.buffer));
                }
                What::Came(..) => timed.came.entry(event.buffer).or_default().push(by_thread),
                What::Sends => timed.sends.entry(event.thread).or_default().push(by_thread),
                What::Receives { error_queue, .. } => drop(of_errors.insert(event.thread, error_queue)),
                What::Received(_) | What::ReceivedMany(_) if of_errors.get(&event.thread) == Some(&true) => {}
                What::Received(bytes) => timed.received.entry(bytes).or_default().push(by_thread),
                What::ReceivedMany(count) => {
                    let calls = timed.received.entry(0).or_default();
                    (0..count.min(1024)).for_each(|_| calls.push(by_thread));
                }
            }
        }
        timed
    }
}

fn last_before<T: core::marker::Copy>(events: Option<&Vec<(i64, T)>>, ticks: i64) -> Option<(i64, T)> {
    let events = events?;
    events.get(events.partition_point(|(at, _)| *at <= ticks).checked_sub(1)?).copied()
}

fn first_after<T: core::marker::Copy>(events: Option<&Vec<(i64, T)>>, ticks: i64) -> Option<(i64, T)> {
    let events = events?;
    events.get(events.partition_point(|(at, _)| *at < ticks)).copied()
}

type SiteTimes = BTreeMap<Site, i64>;

/// A copy that the tap has of a packet, and its stamp in ticks.
#[derive(Clone, core::marker::Copy)]
struct StampedCopy<'a> {
    at: i64,
    copy: &'a Copy,
}

/// A packet with its stamps.
struct ServicePacket {
    passed: Direction,
    identity: PacketIdentity,
    at: i64,
    row: SiteTimes,
}

/// The packets that were found, and how many fitted nothing.
pub(super) struct MatchedPackets {
    pub(super) passages: PacketPassages,
    pub(super) counts: WatchCounts,
    /// From a request to its reply at the tap, in ticks.
    pub(super) turnarounds: Vec<i64>,
}

pub(super) struct Matching<'a> {
    scale: TickScale,
    events: &'a TimedEvents,
    is_traced: bool,
    /// Receptions that belong to a packet already, by bytes: how many from the beginning.
    taken: BTreeMap<u64, usize>,
}

impl<'a> Matching<'a> {
    pub(super) fn new(scale: TickScale, events: &'a TimedEvents) -> Self {
        Matching { scale, events, is_traced: true, taken: BTreeMap::new() }
    }

    /// Where nothing was traced, that events are missing is not worth counting.
    pub(super) fn untraced(self) -> Self {
        Matching { is_traced: false, ..self }
    }

    /// Joins `copies` (with their ticks) with the events.
    pub(super) fn run(mut self, copies: &[(i64, Copy)], whose: &Whose, mut counts: WatchCounts) -> MatchedPackets {
        let mut all: Vec<&(i64, Copy)> = copies.iter().collect();
        all.sort_by_key(|(ticks, _)| *ticks);
        let ours: Vec<&(i64, Copy)> = all.iter().copied().filter(|(_, copy)| whose.is_ours(copy)).collect();
        let mut packets = Vec::new();
        for StampedCopy { at, copy } in self.once_each(&ours, &mut counts) {
            *(if copy.passed == Direction::Outgoing { &mut counts.outgoing } else { &mut counts.incoming }) += 1;
            let row = self.row(StampedCopy { at, copy }, &all, &mut counts);
            packets.push(ServicePacket { passed: copy.passed, identity: copy.identity.clone(), at, row });
        }
        self.pair(&packets, whose.port, counts)
    }

    /// The thread that queued one of `copies`; none where packets are merely passed on, by whatever thread was
    /// interrupted.
    pub(super) fn sender(&self, copies: &[(i64, Copy)], whose: &Whose) -> Option<u32> {
        let all: Vec<&(i64, Copy)> = copies.iter().collect();
        let ours = copies.iter().filter(|(_, copy)| copy.passed == Direction::Outgoing && whose.is_ours(copy));
        let mut threads = ours.filter_map(|(at, copy)| match self.event_of(*at, copy, &all) {
            Nearest::One(ticks, buffer) => {
                last_before(self.events.queued.get(&buffer), ticks).map(|(_, thread)| thread)
            }
            _ => None,
        });
        threads.find(|thread| *thread != 0)
    }

    /// Of several copies of a packet the one nearest to the wire: the last on the way out, the first on the way in.
    fn once_each<'b>(&self, ours: &[&'b (i64, Copy)], counts: &mut WatchCounts) -> Vec<StampedCopy<'b>> {
        let mut kept: Vec<StampedCopy<'_>> = Vec::new();
        let mut last: BTreeMap<(Direction, &PacketIdentity), usize> = BTreeMap::new();
        for (at, copy) in ours.iter().map(|one| (one.0, &one.1)) {
            let key = (copy.passed, &copy.identity);
            let before = last.get(&key).copied().filter(|place| {
                let before = kept[*place];
                before.copy.device != copy.device && at - before.at < self.scale.ticks(NEAR_US)
            });
            match before {
                None => {
                    last.insert(key, kept.len());
                    kept.push(StampedCopy { at, copy });
                }
                Some(place) => {
                    counts.seen_again += 1;
                    if copy.passed == Direction::Outgoing {
                        kept[place] = StampedCopy { at, copy };
                    }
                }
            }
        }
        kept
    }

    fn row(&mut self, stamped: StampedCopy<'_>, all: &[&(i64, Copy)], counts: &mut WatchCounts) -> SiteTimes {
        let StampedCopy { at, copy } = stamped;
        let is_outgoing = copy.passed == Direction::Outgoing;
        let mut row = SiteTimes::from([(if is_outgoing { Site::TapOut } else { Site::TapIn }, at)]);
        if !self.is_traced {
            return row;
        }
        match self.event_of(at, copy, all) {
            Nearest::None => counts.without_events += 1,
            Nearest::Several => {
                counts.ambiguous += 1;
                return row;
            }
            Nearest::One(ticks, buffer) if is_outgoing => self.outgoing(&mut row, ticks, buffer),
            Nearest::One(ticks, buffer) => self.incoming(&mut row, ticks, buffer),
        }
        if !is_outgoing {
            row.extend(self.reception(at, copy.payload).map(|ticks| (Site::UserReceive, ticks)));
        }
        let user = if is_outgoing { Site::UserSend } else { Site::UserReceive };
        counts.without_calls += u64::from(!row.contains_key(&user));
        row
    }

    /// The event that this copy was made next to: behind the stamp, and the only one that is not as near to another
    /// copy.
    fn event_of(&self, at: i64, copy: &Copy, copies: &[&(i64, Copy)]) -> Nearest {
        let all = if copy.passed == Direction::Outgoing { &self.events.started } else { &self.events.stack };
        let Some(all) = all.get(&(copy.device, copy.length)) else { return Nearest::None };
        let from = at - self.scale.ticks(SLACK_US);
        let begin = all.partition_point(|(ticks, _)| *ticks < from);
        // The next copy of the same kind takes what lies behind it.
        let next = copies.iter().skip(copies.partition_point(|(ticks, _)| *ticks <= at));
        let same = |other: &&&(i64, Copy)| {
            (other.1.passed, other.1.device, other.1.length) == (copy.passed, copy.device, copy.length)
        };
        let near = at + self.scale.ticks(NEAR_US);
        let until =
            next.take_while(|one| one.0 < near).find(same).map_or(near, |one| one.0 - self.scale.ticks(SLACK_US));
        let candidates: Vec<(i64, u64)> =
            all[begin..].iter().take_while(|(ticks, _)| *ticks < until.max(from + 1)).copied().collect();
        match candidates.as_slice() {
            [] => Nearest::None,
            [(ticks, buffer)] => Nearest::One(*ticks, *buffer),
            // Packets of the same length that are none of the service's: the nearest one, if it is nearest by far.
            [(ticks, buffer), (second, _), ..] if second - ticks > 2 * (ticks - from) => Nearest::One(*ticks, *buffer),
            _ => Nearest::Several,
        }
    }

    fn outgoing(&self, row: &mut SiteTimes, started: i64, buffer: u64) {
        let near = self.scale.ticks(LONG_US);
        row.insert(Site::DriverOut, started);
        let done = first_after(self.events.done.get(&buffer), started).filter(|(ticks, _)| ticks - started < near);
        row.extend(done.map(|(ticks, _)| (Site::DoneOut, ticks)));
        let queued = last_before(self.events.queued.get(&buffer), started).filter(|(ticks, _)| started - ticks < near);
        let Some((queued, thread)) = queued else { return };
        row.insert(Site::QueueOut, queued);
        let sent = last_before(self.events.sends.get(&thread), queued).filter(|(ticks, _)| queued - ticks < near);
        row.extend(sent.map(|(ticks, _)| (Site::UserSend, ticks)));
    }

    fn incoming(&self, row: &mut SiteTimes, taken: i64, buffer: u64) {
        row.insert(Site::StackIn, taken);
        let came = last_before(self.events.came.get(&buffer), taken);
        let came = came.filter(|(ticks, _)| taken - ticks < self.scale.ticks(LONG_US));
        row.extend(came.map(|(ticks, _)| (Site::DriverIn, ticks)));
    }

    /// Sockets hand packets over in the order in which they came: the first reception of that length that no packet has
    /// yet.
    fn reception(&mut self, at: i64, bytes: u64) -> Option<i64> {
        let (events, scale) = (self.events, self.scale);
        let single = self.next_of(bytes, at).map(|(place, ticks)| (bytes, place, ticks));
        let many = self.next_of(0, at).map(|(place, ticks)| (0, place, ticks));
        let (key, place, ticks) = match (single, many) {
            (Some(single), Some(many)) => {
                if many.2 < single.2 {
                    many
                } else {
                    single
                }
            }
            (single, many) => single.or(many)?,
        };
        debug_assert!(place < events.received.get(&key).map_or(0, Vec::len));
        if ticks - at > scale.ticks(LONG_US) {
            return None;
        }
        self.taken.insert(key, place + 1);
        Some(ticks)
    }

    fn next_of(&self, bytes: u64, at: i64) -> Option<(usize, i64)> {
        let calls = self.events.received.get(&bytes)?;
        let after = calls.partition_point(|(ticks, _)| *ticks < at);
        let place = after.max(self.taken.get(&bytes).copied().unwrap_or(0));
        calls.get(place).map(|(ticks, _)| (place, *ticks))
    }

    /// Requests and replies: the next packet of the same two ends in the opposite direction. A request goes to the
    /// service's port, a reply comes from it; where both ends have it, the end that speaks first asks.
    fn pair(&self, packets: &[ServicePacket], port: u16, mut counts: WatchCounts) -> MatchedPackets {
        let mut open: BTreeMap<(SocketAddr, SocketAddr), &ServicePacket> = BTreeMap::new();
        let mut found: Vec<(i64, SiteTimes)> = Vec::new();
        let mut turnarounds = Vec::new();
        for packet in packets {
            let PacketIdentity { source, destination, .. } = packet.identity;
            let is_reply = source.port() == port;
            let is_request = destination.port() == port;
            let request = if is_reply { open.remove(&(destination, source)) } else { None }.filter(|request| {
                request.passed != packet.passed && packet.at - request.at < self.scale.ticks(LONG_US)
            });
            let Some(request) = request else {
                // A reply whose request was not seen must not wait for the next request.
                if !is_request {
                    counts.single += 1;
                    found.push((packet.at, packet.row.clone()));
                    continue;
                }
                if let Some(unanswered) = open.insert((source, destination), packet) {
                    counts.single += 1;
                    found.push((unanswered.at, unanswered.row.clone()));
                }
                continue;
            };
            if packet.passed == Direction::Incoming {
                counts.asked += 1;
                let both = request.row.iter().chain(&packet.row).map(|(site, ticks)| (*site, *ticks)).collect();
                found.push((request.at, both));
            } else {
                counts.answered += 1;
                turnarounds.push(packet.at - request.at);
                found.extend([(request.at, request.row.clone()), (packet.at, packet.row.clone())]);
            }
        }
        counts.single += open.len() as u64;
        found.extend(open.into_values().map(|packet| (packet.at, packet.row.clone())));
        found.sort_by_key(|(at, _)| *at);
        let mut passages = PacketPassages::default();
        for (_, row) in found {
            let kept = passages.restore(row);
            debug_assert_eq!(kept, Ok(()), "these are stamps of one watch");
        }
        MatchedPackets { passages, counts, turnarounds }
    }
}

enum Nearest {
    None,
    One(i64, u64),
    Several,
}

#[cfg(test)]
mod tests;
