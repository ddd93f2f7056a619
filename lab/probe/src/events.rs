//! Test packets as the kernel's tracing sees them, with the raw counter.

use crate::payload::{Direction, Lengths};
use crate::site::{Site, Sites};
use ffclock_counter::CounterId;
use ffclock_sys::{EventFormat, Field, TraceEvent, TraceInstance, TraceUnavailable};
use ffclock_units::Counter;
use std::collections::BTreeMap;
use std::io;

/// For each CPU: 5,000 packets/s make some 2 MB of events a second, and the buffers are emptied every few milliseconds.
const BUFFER_KILOBYTES: u32 = 2048;
const UDP_HEADER: u64 = 8;
/// Ethernet with room for tags.
const LONGEST_LINK_HEADER: u64 = 64;
/// Packets on their way through the driver at a time, far more than queues hold.
const MOST_ON_THE_WAY: usize = 1 << 14;

const QUEUED: &str = "net/net_dev_queue";
const STARTED: &str = "net/net_dev_start_xmit";
const DONE: &str = "net/net_dev_xmit";
const RECEIVED: [Reception; 6] = [
    Reception { event: "net/napi_gro_receive_entry", site: Site::DriverIn, length: LengthField::Packet },
    Reception { event: "net/netif_rx_entry", site: Site::DriverIn, length: LengthField::Packet },
    Reception { event: "net/netif_receive_skb_entry", site: Site::DriverIn, length: LengthField::Packet },
    Reception { event: "net/netif_receive_skb", site: Site::StackIn, length: LengthField::Packet },
    Reception { event: "skb/skb_copy_datagram_iovec", site: Site::CopyIn, length: LengthField::Payload("len") },
    Reception { event: "sock/sock_recv_length", site: Site::ReadIn, length: LengthField::Payload("ret") },
];

/// An event of a packet on its way in.
#[derive(Clone, Copy)]
struct Reception {
    event: &'static str,
    site: Site,
    length: LengthField,
}

/// Which length an event has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LengthField {
    /// That of the packet from its IP header on, in the field `len`. The event names the device.
    Packet,
    /// That of the payload, in this field. The event happens in the thread that receives.
    Payload(&'static str),
}

/// A packet passed a site. Its length identifies it: by direction, and by number modulo the count of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketEvent {
    /// The site that it passed.
    pub site: Site,
    /// The counter when it passed.
    pub counter: Counter,
    /// The number modulo [`LENGTHS`](super::payload::LENGTHS).
    pub code: u64,
}

/// Which packets to follow, and where.
#[derive(Clone, Copy, Debug)]
pub struct TracingScope<'a> {
    /// The device that the packets pass.
    pub device: &'a str,
    /// The device at the other end of their link, if it is to be watched too.
    pub wire: Option<&'a str>,
    /// Bytes of an IP header: 20 or 40.
    pub ip_header: u64,
    /// The lengths of their payloads.
    pub lengths: Lengths,
    /// Where to look, of [`Sites::TRACED`]. The boundary to the driver on the way out is always among them.
    pub sites: Sites,
    /// The thread that receives, by its number.
    pub thread: u64,
}

impl TracingScope<'_> {
    /// What packets on the way out have in common: with their link header. Their device is looked at afterwards:
    /// comparing names would make each event cost half as much again.
    fn sent(&self) -> String {
        let (from, to) = self.packet_lengths();
        format!("len >= {from} && len <= {}", to + LONGEST_LINK_HEADER)
    }

    fn received(&self, length: LengthField) -> String {
        match length {
            LengthField::Packet => {
                let (from, to) = self.packet_lengths();
                format!("len >= {from} && len <= {to}")
            }
            LengthField::Payload(field) => {
                let (from, to) = self.lengths.range();
                format!("common_pid == {} && {field} >= {from} && {field} <= {to}", self.thread)
            }
        }
    }

    /// From the IP header on.
    fn packet_lengths(&self) -> (u64, u64) {
        let (shortest, longest) = self.lengths.range();
        let header = self.ip_header + UDP_HEADER;
        (shortest as u64 + header, longest as u64 + header)
    }
}

#[derive(Debug)]
struct SentFields {
    id: u16,
    skb: Field,
    device: Field,
}

#[derive(Debug)]
struct StartedFields {
    id: u16,
    skb: Field,
    length: Field,
    transport_offset: Field,
    device: Field,
}

#[derive(Debug)]
struct ReceivedFields {
    id: u16,
    site: Site,
    length: Field,
    /// Bytes before the payload.
    headers: u64,
    /// Where the event names one.
    device: Option<Field>,
}

/// An end of the link that the packets pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkEnd {
    /// This host's.
    Own,
    /// The other one.
    Far,
}

/// Follows test packets through the kernel.
#[derive(Debug)]
pub struct PacketEvents {
    instance: TraceInstance,
    decoder: EventDecoder,
    lost: u64,
}

#[derive(Debug)]
struct EventDecoder {
    device: String,
    wire: Option<String>,
    lengths: Lengths,
    queued: Option<SentFields>,
    started: StartedFields,
    done: Option<SentFields>,
    received: Vec<ReceivedFields>,
    /// By the address of the packet's buffer in the kernel: when it was queued.
    waiting: BTreeMap<u64, Counter>,
    /// By the address of the packet's buffer in the kernel: which packet it is.
    on_the_way: BTreeMap<u64, u64>,
}

impl PacketEvents {
    /// Begins to trace. Events that this kernel does not have are left out and named in the second value.
    ///
    /// # Errors
    /// The kernel does not trace for us, or has not even the event of transmission.
    pub fn open(counter: CounterId, scope: &TracingScope<'_>) -> Result<(Self, Vec<String>), TraceUnavailable> {
        let mut instance = TraceInstance::create(counter, BUFFER_KILOBYTES)?;
        let mut missing = Vec::new();
        let mut optional = |result: Result<EventFormat, TraceUnavailable>| {
            result.map_err(|error| missing.push(format!("kernel tracing: {error}"))).ok()
        };
        let sent = scope.sent();
        let started = StartedFields::of(&instance.enable(STARTED, &sent)?)?;
        let mut of_sent = |event, site| {
            let format = scope.sites.contains(site).then(|| instance.enable(event, &sent));
            format.and_then(&mut optional).and_then(|format| SentFields::of(&format))
        };
        let (queued, done) = (of_sent(QUEUED, Site::QueueOut), of_sent(DONE, Site::DoneOut));
        let mut received = Vec::new();
        for reception in RECEIVED.into_iter().filter(|reception| scope.sites.contains(reception.site)) {
            let format = optional(instance.enable(reception.event, &scope.received(reception.length)));
            received.extend(format.and_then(|format| ReceivedFields::of(&format, reception, scope.ip_header)));
        }
        let decoder = EventDecoder {
            device: scope.device.to_owned(),
            wire: scope.wire.map(str::to_owned),
            lengths: scope.lengths,
            queued,
            started,
            done,
            received,
            waiting: BTreeMap::new(),
            on_the_way: BTreeMap::new(),
        };
        Ok((PacketEvents { instance, decoder, lost: 0 }, missing))
    }

    /// Hands over what has happened since the last call.
    ///
    /// # Errors
    /// The kernel's buffer cannot be read.
    pub fn drain(&mut self, mut take: impl FnMut(PacketEvent)) -> io::Result<()> {
        let decoder = &mut self.decoder;
        let lost = self.instance.drain(|event| {
            decoder.decode(&event, &mut take);
        })?;
        self.lost += lost.at_least();
        Ok(())
    }

    /// How many events the kernel could not keep until now; at least, where it did not count them.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// How many kinds of events are traced.
    pub fn kinds(&self) -> usize {
        1 + usize::from(self.decoder.queued.is_some())
            + usize::from(self.decoder.done.is_some())
            + self.decoder.received.len()
    }
}

impl EventDecoder {
    fn decode(&mut self, event: &TraceEvent<'_>, take: &mut impl FnMut(PacketEvent)) -> Option<()> {
        let id = event.id()?;
        let counter = event.counter;
        if id == self.started.id {
            let payload = self.started.payload(event.bytes)?;
            if self.end_of(&self.started.device, event)? == LinkEnd::Far {
                let code = self.code_of(payload, Direction::Incoming)?;
                take(PacketEvent { site: Site::WireIn, counter, code });
                return Some(());
            }
            let skb = self.started.skb.number(event.bytes)?;
            let code = self.code_of(payload, Direction::Outgoing)?;
            take(PacketEvent { site: Site::DriverOut, counter, code });
            if let Some(queued) = self.waiting.remove(&skb) {
                take(PacketEvent { site: Site::QueueOut, counter: queued, code });
            }
            remember(&mut self.on_the_way, skb, code);
        } else if let Some(queued) = self.queued.as_ref().filter(|fields| fields.id == id) {
            if self.end_of(&queued.device, event) == Some(LinkEnd::Own) {
                remember(&mut self.waiting, queued.skb.number(event.bytes)?, counter);
            }
        } else if let Some(done) = self.done.as_ref().filter(|fields| fields.id == id) {
            let code = self.on_the_way.remove(&done.skb.number(event.bytes)?)?;
            take(PacketEvent { site: Site::DoneOut, counter, code });
        } else {
            let received = self.received.iter().find(|fields| fields.id == id)?;
            let end = received.device.as_ref().map_or(Some(LinkEnd::Own), |device| self.end_of(device, event))?;
            let payload = received.length.number(event.bytes)?.checked_sub(received.headers)?;
            let (site, direction) = match (end, received.site) {
                (LinkEnd::Own, site) => (site, Direction::Incoming),
                (LinkEnd::Far, Site::DriverIn) => (Site::WireOut, Direction::Outgoing),
                (LinkEnd::Far, _) => return None,
            };
            let code = self.code_of(payload, direction)?;
            take(PacketEvent { site, counter, code });
        }
        Some(())
    }

    /// At which end of the link an event happened; `None` if elsewhere.
    fn end_of(&self, device: &Field, event: &TraceEvent<'_>) -> Option<LinkEnd> {
        let name = device.text(event.bytes)?;
        if name == self.device {
            return Some(LinkEnd::Own);
        }
        (Some(name) == self.wire.as_deref()).then_some(LinkEnd::Far)
    }

    fn code_of(&self, payload: u64, wanted: Direction) -> Option<u64> {
        let (direction, code) = self.lengths.code(usize::try_from(payload).ok()?)?;
        (direction == wanted).then_some(code)
    }
}

/// Remembers up to a limit. At the limit all entries go, also those of packets that never left the driver.
fn remember<T>(map: &mut BTreeMap<u64, T>, key: u64, value: T) {
    if map.len() >= MOST_ON_THE_WAY {
        map.clear();
    }
    map.insert(key, value);
}

impl SentFields {
    fn of(format: &EventFormat) -> Option<Self> {
        Some(SentFields {
            id: format.id(),
            skb: format.field("skbaddr")?.clone(),
            device: format.field("name")?.clone(),
        })
    }
}

impl StartedFields {
    fn of(format: &EventFormat) -> Result<Self, TraceUnavailable> {
        let field = |name: &str| {
            let missing = || TraceUnavailable::NoField { event: STARTED.to_owned(), field: name.to_owned() };
            format.field(name).cloned().ok_or_else(missing)
        };
        Ok(StartedFields {
            id: format.id(),
            skb: field("skbaddr")?,
            length: field("len")?,
            transport_offset: field("transport_offset")?,
            device: field("name")?,
        })
    }

    /// The bytes of the UDP payload.
    fn payload(&self, event: &[u8]) -> Option<u64> {
        self.length.number(event)?.checked_sub(self.transport_offset.number(event)?)?.checked_sub(UDP_HEADER)
    }
}

impl ReceivedFields {
    fn of(format: &EventFormat, reception: Reception, ip_header: u64) -> Option<Self> {
        let Reception { site, length, .. } = reception;
        let (field, headers, device) = match length {
            LengthField::Packet => ("len", ip_header + UDP_HEADER, Some(format.field("name")?.clone())),
            LengthField::Payload(field) => (field, 0, None),
        };
        Some(ReceivedFields { id: format.id(), site, length: format.field(field)?.clone(), headers, device })
    }
}
