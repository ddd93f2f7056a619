//! When a UDP packet of ours passed the boundary to the driver, by the raw counter itself.
//!
//! The events `net_dev_start_xmit` and `netif_receive_skb` come with the length of the packet but not with its bytes.
//! Which event belongs to which packet is told by the software stamp of the same packet, which the kernel takes within
//! the same functions: right after the first event, and right before the second one.

use super::format::{EventFormat, Field};
use super::instance::{TraceEvent, TraceInstance, TraceUnavailable};
use ffclock_counter::CounterKind;
use ffclock_units::{Counter, Stamp, StampLocation, Ticks};
use std::collections::VecDeque;
use std::io;

const OUTGOING: &str = "net/net_dev_start_xmit";
const INCOMING: &str = "net/netif_receive_skb";
/// For each CPU. Packets of these lengths are few, and drained with every one of ours.
const BUFFER_KILOBYTES: u32 = 64;
/// Events that wait for their packets, at most.
const REMEMBERED: usize = 2048;
const UDP_HEADER: u32 = 8;
/// Of IPv4 and IPv6 without options.
const IP_HEADERS: [u32; 2] = [20, 40];
/// Ethernet with room for two VLAN tags and tunnels.
const LONGEST_LINK_HEADER: u32 = 64;

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the network.
    Outgoing,
    /// From the network.
    Incoming,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PacketEvent {
    counter: Counter,
    direction: Direction,
    /// Bytes of the UDP payload (outgoing) or of the whole IP packet (incoming).
    length: u32,
}

/// Traces the UDP packets of this host with payloads of certain lengths.
#[derive(Debug)]
pub struct PacketTracer {
    instance: TraceInstance,
    outgoing: OutgoingFields,
    incoming: IncomingFields,
    recent: VecDeque<PacketEvent>,
    /// An event and the software stamp of the same packet are never further apart.
    reach: Ticks,
}

#[derive(Debug)]
struct OutgoingFields {
    id: u16,
    length: Field,
    transport_offset: Field,
}

#[derive(Debug)]
struct IncomingFields {
    id: u16,
    length: Field,
}

impl PacketTracer {
    /// Begins to trace packets whose UDP payload is of one of these lengths [bytes]. `reach` is how far a software stamp may lie from
    /// the event of the same packet: 100 us allow for an interrupt in between.
    ///
    /// # Errors
    /// The kernel or its rights do not allow it; each error says what would help.
    pub fn create(counter: CounterKind, payloads: &[u32], reach: Ticks) -> Result<Self, TraceUnavailable> {
        let mut instance = TraceInstance::create(counter, BUFFER_KILOBYTES)?;
        let shortest = payloads.iter().copied().min().unwrap_or(0) + IP_HEADERS[0] + UDP_HEADER;
        let longest = payloads.iter().copied().max().unwrap_or(0) + IP_HEADERS[1] + UDP_HEADER + LONGEST_LINK_HEADER;
        let sent = format!("len >= {shortest} && len <= {longest}");
        let outgoing = OutgoingFields::of(&instance.enable(OUTGOING, &sent)?)?;
        let lengths = payloads.iter().flat_map(|payload| IP_HEADERS.map(|header| payload + header + UDP_HEADER));
        let came: Vec<String> = lengths.map(|length| format!("len == {length}")).collect();
        let incoming = IncomingFields::of(&instance.enable(INCOMING, &came.join(" || "))?)?;
        Ok(PacketTracer { instance, outgoing, incoming, recent: VecDeque::with_capacity(REMEMBERED), reach })
    }

    /// When the packet with `payload` bytes, which the kernel's software stamp says passed at `software`, passed the boundary to the
    /// driver; `None` where there is no such event. Call it in the order in which the packets' stamps come.
    ///
    /// # Errors
    /// The kernel's buffer cannot be read.
    pub fn stamp(&mut self, direction: Direction, payload: u32, software: Stamp) -> io::Result<Option<Stamp>> {
        self.drain()?;
        let matches = |event: &PacketEvent| event.direction == direction && event.is_of(payload);
        let candidates = self.recent.iter().filter(|event| matches(event)).map(|event| event.counter);
        let distance = |counter: Counter| (counter - software.counter).abs();
        let nearest = candidates.min_by_key(|counter| distance(*counter));
        let found = nearest.filter(|counter| distance(*counter) <= self.reach + software.width.halved());
        self.recent.retain(|event| event.counter.is_after(software.counter - self.reach - self.reach));
        Ok(found.map(|counter| Stamp { counter, width: Ticks::ZERO, location: StampLocation::Kernel }))
    }

    fn drain(&mut self) -> io::Result<()> {
        let (outgoing, incoming, recent) = (&self.outgoing, &self.incoming, &mut self.recent);
        self.instance.drain(|event| {
            let Some(event) = outgoing.read(&event).or_else(|| incoming.read(&event)) else { return };
            if recent.len() == REMEMBERED {
                recent.pop_front();
            }
            recent.push_back(event);
        })?;
        Ok(())
    }
}

impl PacketEvent {
    fn is_of(&self, payload: u32) -> bool {
        match self.direction {
            Direction::Outgoing => self.length == payload,
            Direction::Incoming => IP_HEADERS.iter().any(|header| self.length == payload + header + UDP_HEADER),
        }
    }
}

impl OutgoingFields {
    fn of(format: &EventFormat) -> Result<Self, TraceUnavailable> {
        Ok(OutgoingFields {
            id: format.id(),
            length: wanted(format, OUTGOING, "len")?,
            transport_offset: wanted(format, OUTGOING, "transport_offset")?,
        })
    }

    fn read(&self, event: &TraceEvent<'_>) -> Option<PacketEvent> {
        if event.id()? != self.id {
            return None;
        }
        let length = u32::try_from(self.length.number(event.bytes)?).ok()?;
        let offset = u32::try_from(self.transport_offset.number(event.bytes)?).ok()?;
        let payload = length.checked_sub(offset)?.checked_sub(UDP_HEADER)?;
        Some(PacketEvent { counter: event.counter, direction: Direction::Outgoing, length: payload })
    }
}

impl IncomingFields {
    fn of(format: &EventFormat) -> Result<Self, TraceUnavailable> {
        Ok(IncomingFields { id: format.id(), length: wanted(format, INCOMING, "len")? })
    }

    fn read(&self, event: &TraceEvent<'_>) -> Option<PacketEvent> {
        if event.id()? != self.id {
            return None;
        }
        let length = u32::try_from(self.length.number(event.bytes)?).ok()?;
        Some(PacketEvent { counter: event.counter, direction: Direction::Incoming, length })
    }
}

fn wanted(format: &EventFormat, event: &str, name: &str) -> Result<Field, TraceUnavailable> {
    let missing = || TraceUnavailable::NoField { event: event.to_owned(), field: name.to_owned() };
    format.field(name).cloned().ok_or_else(missing)
}
