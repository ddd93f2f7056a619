//! When the packets of a program on this host passed the boundary to the driver, for stamps that the program took of
//! them itself.
//!
//! The kernel's tracing notes every packet of NTP's length at the driver, and an exchange that the daemon recorded is
//! joined with the passages that lie between its two stamps. Two events for each packet and nothing else: no tap, no
//! program.

use crate::payload::Direction;
use ffclock_counter::{CounterId, read_ordered};
use ffclock_sys::{EventFormat, Field, TraceInstance, TraceUnavailable};
use ffclock_units::{Counter, Exchange, Period, Span, Ticks};
use std::io;

/// For each CPU; NTP asks seldom.
const BUFFER_KILOBYTES: u32 = 1024;
/// A request and a reply without extension fields, with UDP's header and IPv4's or IPv6's.
const IP_LENGTHS: [u64; 2] = [48 + 8 + 20, 48 + 8 + 40];
/// Ethernet with room for tags.
const LONGEST_LINK_HEADER: u64 = 64;
/// A stamp of the socket lies behind the boundary, and a stamp that was moved lies around it.
const SLACK: Span = Span::from_micros(50);
/// Passages that are kept of each way.
const MOST_KEPT: usize = 4_000_000;
const STARTED: &str = "net/net_dev_start_xmit";
const CAME: [&str; 3] = ["net/napi_gro_receive_entry", "net/netif_rx_entry", "net/netif_receive_skb_entry"];

/// Where the fields of one kind of event lie.
struct BoundaryEvent {
    id: u16,
    way: Direction,
    length: Field,
    network_offset: Option<Field>,
    device: Field,
}

/// Looks at the boundary.
pub struct Boundary {
    instance: TraceInstance,
    device: String,
    kinds: Vec<BoundaryEvent>,
    passed: BoundaryPassages,
    slack: i64,
}

/// The packets that passed, in ticks since the beginning.
struct BoundaryPassages {
    begin: Counter,
    out: Vec<i64>,
    back: Vec<i64>,
    lost: u64,
}

/// Every passage in the order of time.
pub struct Crossings {
    passed: BoundaryPassages,
    slack: i64,
    /// On loopback a request comes in as well, and a reply goes out.
    each_way: usize,
}

impl Boundary {
    /// Begins to look at the packets of `device`.
    ///
    /// # Errors
    /// The kernel does not trace for us.
    pub fn open(counter: CounterId, period: Period, device: &str) -> Result<Self, TraceUnavailable> {
        let mut instance = TraceInstance::create(counter, BUFFER_KILOBYTES)?;
        let (shortest, longest) = (IP_LENGTHS[0], IP_LENGTHS[1]);
        // The device is looked at afterwards: comparing names would make each event cost half as much again.
        let sent = format!("len >= {shortest} && len <= {}", longest + LONGEST_LINK_HEADER);
        let kind = BoundaryEvent::of(&instance.enable(STARTED, &sent)?, Direction::Outgoing);
        let mut kinds: Vec<BoundaryEvent> = kind.into_iter().collect();
        let came = format!("len == {shortest} || len == {longest}");
        for event in CAME {
            // A kernel without one of them receives by another.
            let format = instance.enable(event, &came).ok();
            kinds.extend(format.and_then(|format| BoundaryEvent::of(&format, Direction::Incoming)));
        }
        let has = |way| kinds.iter().any(|kind| kind.way == way);
        let missing = |event: &str| TraceUnavailable::NoField { event: event.to_owned(), field: "len".to_owned() };
        if !has(Direction::Outgoing) {
            return Err(missing(STARTED));
        }
        if !has(Direction::Incoming) {
            return Err(missing(CAME[0]));
        }
        let passed = BoundaryPassages { begin: read_ordered(counter), out: Vec::new(), back: Vec::new(), lost: 0 };
        Ok(Boundary { instance, device: device.to_owned(), kinds, passed, slack: period.ticks_in(SLACK).raw() })
    }

    /// Reads what has happened since the last call; to be called a few times a second, so that no buffer overflows.
    ///
    /// # Errors
    /// The kernel's buffer cannot be read.
    pub fn look(&mut self) -> io::Result<()> {
        let Boundary { instance, device, kinds, passed, .. } = self;
        let lost = instance.drain(|event| {
            let kind = event.id().and_then(|id| kinds.iter().find(|kind| kind.id == id));
            let Some(kind) = kind.filter(|kind| kind.is_ours(event.bytes, device)) else { return };
            let list = if kind.way == Direction::Outgoing { &mut passed.out } else { &mut passed.back };
            if list.len() < MOST_KEPT {
                list.push((event.counter - passed.begin).raw());
            } else {
                passed.lost += 1;
            }
        })?;
        passed.lost += lost.at_least();
        Ok(())
    }

    /// Reads the last events and sorts all passages by time.
    ///
    /// # Errors
    /// The kernel's buffer cannot be read.
    pub fn finish(mut self) -> io::Result<Crossings> {
        self.look()?;
        self.passed.out.sort_unstable();
        self.passed.back.sort_unstable();
        let each_way = if is_loopback(&self.device) { 2 } else { 1 };
        Ok(Crossings { passed: self.passed, slack: self.slack, each_way })
    }
}

impl BoundaryEvent {
    fn of(format: &EventFormat, way: Direction) -> Option<Self> {
        Some(BoundaryEvent {
            id: format.id(),
            way,
            length: format.field("len")?.clone(),
            network_offset: format.field("network_offset").cloned(),
            device: format.field("name")?.clone(),
        })
    }

    /// Whether the event is about a packet of NTP's length on the device.
    fn is_ours(&self, event: &[u8], device: &str) -> bool {
        let link = match (self.way, &self.network_offset) {
            (Direction::Outgoing, Some(offset)) => offset.number(event).unwrap_or(0),
            _ => 0,
        };
        let length = self.length.number(event).and_then(|length| length.checked_sub(link));
        length.is_some_and(|length| IP_LENGTHS.contains(&length)) && self.device.text(event) == Some(device)
    }
}

/// Whether what a device sends comes in by it again.
fn is_loopback(device: &str) -> bool {
    /// `ARPHRD_LOOPBACK` of <linux/if_arp.h>.
    const LOOPBACK: &str = "772";
    std::fs::read_to_string(format!("/sys/class/net/{device}/type")).is_ok_and(|kind| kind.trim() == LOOPBACK)
}

/// On which side of the boundary the stamps of an exchange lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampPlace {
    /// Certainly on the program's side: stamps of user space that were not moved.
    Program,
    /// On either side, as far as `SLACK`: the socket's stamps of packets sent lie behind the boundary, and stamps that
    /// were moved lie around it.
    Either,
}

/// An exchange at the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossed {
    /// The first packet that left at or after the request was stamped: the request, or a foreign packet that left
    /// before it.
    pub out: Counter,
    /// The last packet that came at or before the reply was stamped: the reply, or a foreign packet that came after it.
    pub back: Counter,
    /// Whether no other packet of the same length passed meanwhile, so that these are the request and the reply.
    pub is_certain: bool,
}

impl Crossings {
    /// When the request and the reply of an exchange passed the driver, each of them as near to its stamp as is
    /// possible: the delays are no longer than they were. `None` where nothing passed that could be them.
    pub fn of(&self, exchange: &Exchange, place: StampPlace) -> Option<Crossed> {
        let ticks = |counter: Counter| (counter - self.passed.begin).raw();
        let (sent, received) = (&exchange.sent, &exchange.received);
        let around = |slack: i64| (ticks(sent.counter) - slack, ticks(received.counter) + slack);
        let reach = match place {
            // A packet passes anywhere in the range of its stamp.
            StampPlace::Program => sent.width.raw().max(received.width.raw()) / 2,
            StampPlace::Either => self.slack,
        };
        let (from, to) = around(reach);
        let (out, back) = (&self.passed.out, &self.passed.back);
        let first = *out.get(out.partition_point(|at| *at < from))?;
        let last = *back.get(back.partition_point(|at| *at <= to).checked_sub(1)?)?;
        let wide = around(self.slack.max(reach));
        let between = |list: &[i64]| list.partition_point(|at| *at <= wide.1) - list.partition_point(|at| *at < wide.0);
        let is_certain = between(out) == self.each_way && between(back) == self.each_way;
        let counter = |ticks| self.passed.begin + Ticks::from_raw(ticks);
        (first < last).then(|| Crossed { out: counter(first), back: counter(last), is_certain })
    }

    /// When it began: what was stamped before was not seen.
    pub fn begin(&self) -> Counter {
        self.passed.begin
    }

    /// How many events the kernel could not keep, or were more than are kept.
    pub fn lost(&self) -> u64 {
        self.passed.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{Moment, ServerQuality, Stamp, StampLocation};

    fn crossings(each_way: usize) -> Crossings {
        let passed = BoundaryPassages {
            begin: Counter::from_raw(1_000),
            out: vec![5_020, 5_060, 9_000, 9_010, 20_000],
            back: vec![5_030, 5_070, 9_050, 9_060, 20_050],
            lost: 0,
        };
        Crossings { passed, slack: 5, each_way }
    }

    fn exchange(sent: u64, received: u64) -> Exchange {
        let stamp =
            |raw| Stamp { counter: Counter::from_raw(raw), width: Ticks::from_raw(1), location: StampLocation::User };
        let server = Moment::from_origin(Span::from_secs(1));
        Exchange {
            sent: stamp(1_000 + sent),
            server_in: server,
            server_out: server,
            received: stamp(1_000 + received),
            server: ServerQuality::default(),
        }
    }

    fn at(ticks: u64) -> Counter {
        Counter::from_raw(1_000 + ticks)
    }

    fn certain(each_way: usize, sent: u64, received: u64) -> Option<(Counter, Counter)> {
        let crossed = crossings(each_way).of(&exchange(sent, received), StampPlace::Either)?;
        crossed.is_certain.then_some((crossed.out, crossed.back))
    }

    #[test]
    fn an_exchange_is_joined_with_its_own_packets() {
        assert_eq!(certain(1, 19_990, 20_080), Some((at(20_000), at(20_050))));
        assert_eq!(certain(1, 20_004, 20_046), Some((at(20_000), at(20_050))), "stamps that were moved");
        assert_eq!(certain(2, 5_000, 5_100), Some((at(5_020), at(5_070))), "loopback");
    }

    #[test]
    fn what_is_not_certain_is_marked() {
        assert_eq!(certain(1, 8_990, 9_070), None, "two requests and two replies");
        assert_eq!(certain(2, 19_990, 20_080), None, "too few for loopback");
        for place in [StampPlace::Program, StampPlace::Either] {
            assert_eq!(crossings(1).of(&exchange(40_000, 40_100), place), None, "none");
            assert_eq!(crossings(1).of(&exchange(10_000, 10_100), place), None, "neither request nor reply");
        }
    }

    /// A request right after another one is the fastest, and the other one's packets are near.
    #[test]
    fn the_delays_of_an_uncertain_exchange_are_no_longer_than_they_were() {
        let second = crossings(1).of(&exchange(9_003, 9_065), StampPlace::Program).unwrap();
        assert_eq!(second, Crossed { out: at(9_010), back: at(9_060), is_certain: false });
        let first = crossings(1).of(&exchange(8_998, 9_055), StampPlace::Program).unwrap();
        assert_eq!(first, Crossed { out: at(9_000), back: at(9_050), is_certain: false });
        // A foreign packet nearer to the stamp makes the delay shorter, never longer.
        let slow = crossings(1).of(&exchange(8_999, 9_062), StampPlace::Program).unwrap();
        assert_eq!((slow.out, slow.back), (at(9_000), at(9_060)));
    }

    #[test]
    fn a_stamp_of_user_space_lies_before_its_packet() {
        let behind = exchange(9_002, 9_061);
        assert_eq!(crossings(1).of(&behind, StampPlace::Program).unwrap().out, at(9_010));
        assert_eq!(crossings(1).of(&behind, StampPlace::Either).unwrap().out, at(9_000), "as the socket's may not");
    }
}
