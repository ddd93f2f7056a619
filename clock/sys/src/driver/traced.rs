//! Passages as the kernel's own tracepoints see them, on a stock kernel.

use super::passages::DriverPassage;
use crate::ffi;
use crate::tracefs::{EventFormat, Field, TraceEvent, TraceInstance, TraceUnavailable};
use ffclock_counter::CounterId;
use ffclock_units::Direction;
use std::io;

const SENDING: &str = "net/net_dev_start_xmit";
const RECEIVING: &str = "net/netif_receive_skb";
/// For each CPU. Packets of interest are few, and drained with every one of ours.
const BUFFER_KILOBYTES: u32 = 128;
/// The shortest and longest packet of interest, IP header included: UDP payloads of 48 to 1024 bytes.
const LENGTHS: (usize, usize) = (76, 1072);

/// What the calling thread sends and what this host receives.
#[derive(Debug)]
pub(super) struct Traced {
    instance: TraceInstance,
    sending: TracedFields,
    receiving: TracedFields,
}

#[derive(Debug)]
struct TracedFields {
    id: u16,
    length: Field,
    /// Bytes before the IP header; none where the event has no such field.
    network_offset: Option<Field>,
}

impl Traced {
    /// Begins to trace with this counter.
    ///
    /// # Errors
    /// The kernel or its rights do not allow it; each error says what would help.
    pub(super) fn start(counter: CounterId) -> Result<Self, TraceUnavailable> {
        let mut instance = TraceInstance::create(counter, BUFFER_KILOBYTES)?;
        let (shortest, longest) = LENGTHS;
        let thread = instance.own_thread().unwrap_or_else(|| ffi::own_thread().unsigned_abs().into());
        let ours = format!("common_pid == {thread}");
        let sending = TracedFields::of(&instance.enable(SENDING, &ours)?, SENDING)?;
        let came = format!("len >= {shortest} && len <= {longest}");
        let receiving = TracedFields::of(&instance.enable(RECEIVING, &came)?, RECEIVING)?;
        Ok(Traced { instance, sending, receiving })
    }

    /// What passed since the last call.
    ///
    /// # Errors
    /// The kernel's buffer cannot be read.
    pub(super) fn drain(&mut self, keep: &mut dyn FnMut(DriverPassage)) -> io::Result<()> {
        let (sending, receiving) = (&self.sending, &self.receiving);
        self.instance.drain(|event| {
            let sent = sending.ip_length(&event).map(|length| (Direction::Outgoing, length));
            let passed = sent.or_else(|| receiving.ip_length(&event).map(|length| (Direction::Incoming, length)));
            if let Some((direction, ip_length)) = passed {
                keep(DriverPassage { counter: event.counter, direction, ip_length });
            }
        })?;
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn path(&self) -> &std::path::Path {
        self.instance.path()
    }
}

impl TracedFields {
    fn of(format: &EventFormat, event: &str) -> Result<Self, TraceUnavailable> {
        let missing = || TraceUnavailable::NoField { event: event.to_owned(), field: "len".to_owned() };
        let length = format.field("len").cloned().ok_or_else(missing)?;
        Ok(TracedFields { id: format.id(), length, network_offset: format.field("network_offset").cloned() })
    }

    /// The bytes of the packet, with its IP header and without that of the link; `None` where the event is of another
    /// kind.
    fn ip_length(&self, event: &TraceEvent<'_>) -> Option<usize> {
        if event.id()? != self.id {
            return None;
        }
        let offset = self.network_offset.as_ref().map_or(Some(0), |field| field.number(event.bytes))?;
        usize::try_from(self.length.number(event.bytes)?.checked_sub(offset)?).ok()
    }
}
