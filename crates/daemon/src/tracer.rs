//! Stamps by the kernel's tracing in place of its software stamps, where that is wanted and possible.

use ffclock_counter::CounterKind;
use ffclock_sys::{Direction, PacketTracer, SocketEvent};
use ffclock_units::{Period, Span, Stamp};

/// The length of a request, and of a reply without extensions (RFC 5905 section 7.3) [bytes].
const NTP_BYTES: u32 = 48;
/// An interrupt may come between the event and the software stamp of one packet.
const REACH: Span = Span::from_micros(100);
/// So many packets in a row without an event: the kernel does not trace what we think it does.
const MOST_MISSED: u32 = 16;

/// Gives packets the stamps of the kernel's tracing.
#[derive(Debug)]
pub(crate) struct Tracer {
    packets: Option<PacketTracer>,
    unavailable: Option<String>,
    missed: u32,
}

impl Tracer {
    /// Leaves all stamps as they are.
    pub(crate) fn off() -> Self {
        Tracer { packets: None, unavailable: None, missed: 0 }
    }

    /// Traces with this counter from now on; [`unavailable`](Self::unavailable) says where the kernel does not permit it.
    pub(crate) fn start(counter: CounterKind, period: Period) -> Self {
        match PacketTracer::create(counter, &[NTP_BYTES], period.ticks_in(REACH)) {
            Ok(packets) => Tracer { packets: Some(packets), ..Self::off() },
            Err(error) => Tracer { unavailable: Some(error.to_string()), ..Self::off() },
        }
    }

    /// Why packets are not traced, although it was tried.
    pub(crate) fn unavailable(&self) -> Option<&str> {
        self.unavailable.as_deref()
    }

    /// The same event, with the stamp of the tracing in place of the software stamp where there is one.
    pub(crate) fn refine(&mut self, event: SocketEvent) -> SocketEvent {
        match event {
            SocketEvent::Transmitted(mut sent) => {
                sent.stamp = sent.stamp.map(|stamp| self.refined(Direction::Outgoing, NTP_BYTES, stamp));
                SocketEvent::Transmitted(sent)
            }
            SocketEvent::Received(mut received) => {
                let bytes = u32::try_from(received.length).unwrap_or(u32::MAX);
                received.kernel = received.kernel.map(|stamp| self.refined(Direction::Incoming, bytes, stamp));
                SocketEvent::Received(received)
            }
            other => other,
        }
    }

    fn refined(&mut self, direction: Direction, bytes: u32, software: Stamp) -> Stamp {
        let Some(packets) = &mut self.packets else { return software };
        match packets.stamp(direction, bytes, software) {
            Ok(Some(stamp)) => {
                self.missed = 0;
                return stamp;
            }
            Ok(None) => self.missed += 1,
            Err(error) => self.give_up(format!("its events cannot be read: {error}")),
        }
        if self.missed >= MOST_MISSED {
            self.give_up("its events do not come".to_owned());
        }
        software
    }

    fn give_up(&mut self, reason: String) {
        (self.packets, self.unavailable, self.missed) = (None, Some(reason), 0);
    }
}
