//! The kernel's events about packets and about the system calls of the program.

use super::{Calls, WatchPlan};
use crate::ring::device_index;
use crate::site::Site;
use ffclock_sys::{EventFormat, Field, TraceEvent, TraceInstance, TraceUnavailable};
use ffclock_units::Counter;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// For each CPU. Every packet of the host is traced, not only those of the service.
const BUFFER_KILOBYTES: u32 = 4096;
/// Longer filters are refused by the kernel; further threads are not seen, which is said.
const MOST_THREADS: usize = 24;
/// `MSG_ERRQUEUE` of <linux/socket.h>.
const ERROR_QUEUE: u64 = 0x2000;

const SENT: [(&str, SendStage); 3] = [
    ("net/net_dev_queue", SendStage::Queued),
    ("net/net_dev_start_xmit", SendStage::Started),
    ("net/net_dev_xmit", SendStage::Done),
];
const CAME: [(&str, Site); 4] = [
    ("net/napi_gro_receive_entry", Site::DriverIn),
    ("net/netif_rx_entry", Site::DriverIn),
    ("net/netif_receive_skb_entry", Site::DriverIn),
    ("net/netif_receive_skb", Site::StackIn),
];
const SENDS: [&str; 3] = ["syscalls/sys_enter_sendto", "syscalls/sys_enter_sendmsg", "syscalls/sys_enter_sendmmsg"];
/// Calls to receive, and whether they can hand over stamps.
const RECEIVES: [(&str, bool); 3] = [("recvfrom", false), ("recvmsg", true), ("recvmmsg", true)];

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A packet was queued for its device.
    Queued,
    /// A packet was handed to the driver; its bytes from the network header on.
    Started(u64),
    /// The driver is done with it.
    Done,
    /// A packet came in; its bytes from the network header on.
    Came(Site, u64),
    /// The program calls the kernel to send.
    Sends,
    /// The program calls the kernel to receive: whether that call can hand over stamps, and whether it looks at the
    /// error queue.
    Receives { with_stamps: bool, error_queue: bool },
    /// Its call returns with this number of bytes.
    Received(u64),
    /// Its call returns with this number of packets.
    ReceivedMany(u64),
}

/// An event of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KernelEvent {
    pub(super) counter: Counter,
    pub(super) what: What,
    /// The address of the packet's buffer, which no other packet has while the packet is on its way; 0 for system
    /// calls.
    pub(super) buffer: u64,
    /// The index of the device; 0 for system calls.
    pub(super) device: u32,
    /// The thread that was running.
    pub(super) thread: u32,
}

/// Where the fields of one kind of event lie, and what it means.
struct EventKind {
    id: u16,
    what: Meaning,
    buffer: Option<Field>,
    length: Option<Field>,
    network_offset: Option<Field>,
    name: Option<Field>,
    flags: Option<Field>,
    ret: Option<Field>,
}

/// How far a packet is on its way out.
#[derive(Clone, Copy)]
enum SendStage {
    Queued,
    Started,
    Done,
}

#[derive(Clone, Copy)]
enum Meaning {
    Sent(SendStage),
    Came(Site),
    Sends,
    Receives { with_stamps: bool },
    Returns { of_many: bool },
}

/// The events of one host.
pub(super) struct Kernel {
    instance: TraceInstance,
    kinds: Vec<EventKind>,
    thread: Option<Field>,
    devices: BTreeMap<String, u32>,
    lost: u64,
    sees_calls: bool,
}

impl Kernel {
    /// Begins to trace; `None`, with the reason in `unavailable`, where the kernel does not trace for us.
    pub(super) fn open(plan: &WatchPlan, unavailable: &mut Vec<String>) -> Option<Self> {
        match Kernel::try_open(plan, unavailable) {
            Ok(kernel) => Some(kernel),
            Err(error) => {
                unavailable.push(format!("kernel tracing: {error}"));
                None
            }
        }
    }

    fn try_open(plan: &WatchPlan, unavailable: &mut Vec<String>) -> Result<Self, TraceUnavailable> {
        let instance = TraceInstance::create(plan.counter, BUFFER_KILOBYTES)?;
        let mut kernel =
            Kernel { instance, kinds: Vec::new(), thread: None, devices: BTreeMap::new(), lost: 0, sees_calls: false };
        let of_device = plan.device.as_ref().map_or_else(String::new, |device| format!("name == \"{device}\""));
        for (event, sent) in SENT {
            kernel.add(event, &of_device, Meaning::Sent(sent))?;
        }
        for (event, site) in CAME {
            let added = kernel.add(event, &of_device, Meaning::Came(site));
            added.map_err(|error| unavailable.push(error.to_string())).ok();
        }
        if !plan.threads.is_empty() {
            kernel.add_calls(&plan.threads, unavailable);
        }
        Ok(kernel)
    }

    /// Traces the system calls of these threads too.
    pub(super) fn add_calls(&mut self, of: &BTreeSet<u32>, unavailable: &mut Vec<String>) {
        let threads: Vec<String> =
            of.iter().take(MOST_THREADS).map(|thread| format!("common_pid == {thread}")).collect();
        if of.len() > MOST_THREADS {
            let rest = of.len() - MOST_THREADS;
            unavailable.push(format!("the system calls of {rest} further threads: the kernel takes no longer filter"));
        }
        let filter = threads.join(" || ");
        let mut all: Vec<(String, Meaning)> = SENDS.iter().map(|event| ((*event).to_owned(), Meaning::Sends)).collect();
        for (call, with_stamps) in RECEIVES {
            all.push((format!("syscalls/sys_enter_{call}"), Meaning::Receives { with_stamps }));
            all.push((format!("syscalls/sys_exit_{call}"), Meaning::Returns { of_many: call == "recvmmsg" }));
        }
        for (event, meaning) in all {
            match self.add(&event, &filter, meaning) {
                Ok(()) => self.sees_calls = true,
                Err(error) => unavailable.push(error.to_string()),
            }
        }
    }

    fn add(&mut self, event: &str, filter: &str, what: Meaning) -> Result<(), TraceUnavailable> {
        let format = self.instance.enable(event, filter)?;
        let field = |name: &str| format.field(name).cloned();
        self.thread = self.thread.take().or_else(|| field("common_pid"));
        self.kinds.push(EventKind {
            id: EventFormat::id(&format),
            what,
            buffer: field("skbaddr"),
            length: field("len"),
            network_offset: field("network_offset"),
            name: field("name"),
            flags: field("flags"),
            ret: field("ret"),
        });
        Ok(())
    }

    /// Whether system calls of the program are among the events.
    pub(super) fn sees_calls(&self) -> bool {
        self.sees_calls
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Hands over what has happened since the last call, one CPU after another.
    pub(super) fn drain(&mut self, mut take: impl FnMut(KernelEvent)) -> io::Result<()> {
        let Kernel { instance, kinds, thread, devices, lost, .. } = self;
        let found = instance.drain(|event| {
            if let Some(event) = decode(&event, kinds, thread.as_ref(), devices) {
                take(event);
            }
        })?;
        *lost += found.at_least();
        Ok(())
    }
}

/// The index of the loopback device; 0 where there is none.
pub(super) fn loopback() -> u32 {
    device_index("lo").unwrap_or(0)
}

fn decode(
    event: &TraceEvent<'_>,
    kinds: &[EventKind],
    thread: Option<&Field>,
    devices: &mut BTreeMap<String, u32>,
) -> Option<KernelEvent> {
    let id = event.id()?;
    let kind = kinds.iter().find(|kind| kind.id == id)?;
    let number = |field: &Option<Field>| field.as_ref()?.number(event.bytes);
    let what = match kind.what {
        Meaning::Sent(SendStage::Queued) => What::Queued,
        Meaning::Sent(SendStage::Done) => What::Done,
        Meaning::Sent(SendStage::Started) => {
            What::Started(number(&kind.length)?.saturating_sub(number(&kind.network_offset)?))
        }
        Meaning::Came(site) => What::Came(site, number(&kind.length)?),
        Meaning::Sends => What::Sends,
        Meaning::Receives { with_stamps } => {
            What::Receives { with_stamps, error_queue: number(&kind.flags)? & ERROR_QUEUE != 0 }
        }
        Meaning::Returns { of_many } => {
            // A call that failed returns a negative number.
            let count = number(&kind.ret).filter(|count| *count > 0 && *count < 1 << 31)?;
            if of_many { What::ReceivedMany(count) } else { What::Received(count) }
        }
    };
    let device = kind.name.as_ref().and_then(|name| name.text(event.bytes)).map_or(0, |name| index_of(name, devices));
    Some(KernelEvent {
        counter: event.counter,
        what,
        buffer: number(&kind.buffer).unwrap_or(0),
        device,
        thread: thread.and_then(|field| field.number(event.bytes)).unwrap_or(0) as u32,
    })
}

fn index_of(name: &str, devices: &mut BTreeMap<String, u32>) -> u32 {
    if let Some(index) = devices.get(name) {
        return *index;
    }
    // A device of another network namespace has no index here, and is none that the tap sees.
    let index = device_index(name).unwrap_or(u32::MAX);
    devices.insert(name.to_owned(), index);
    index
}

/// How the program used its sockets.
pub(super) fn calls(events: &[KernelEvent]) -> Calls {
    let mut calls = Calls::default();
    for event in events {
        match event.what {
            What::Sends => calls.sends += 1,
            What::Receives { error_queue: true, .. } => calls.error_queue_reads += 1,
            What::Receives { with_stamps: true, .. } => calls.receives_with_stamps += 1,
            What::Receives { .. } => calls.receives_without += 1,
            _ => {}
        }
    }
    calls
}
