//! The thread that empties the tap, the kernel's tracing and the buffer of the eBPF programs while another one sends
//! and receives.

use crate::ebpf::{self, EbpfStamps, SitePassage};
use crate::error::ProbeError;
use crate::events::{PacketEvent, PacketEvents, TracingScope};
use crate::hardware;
use crate::pairs::{ClockPoint, PairLine};
use crate::plan::{PacketTap, ProbePlan};
use crate::tap::{Tap, Tapped};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use ffclock_counter::CounterId;
use ffclock_sys::{PairReader, SystemPairs};
use ffclock_units::{Mono, Utc};
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// Between two looks at what has come.
const COLLECT_EVERY: Duration = Duration::from_millis(4);
/// The same where the kernel's tracing is all there is, whose buffers hold a second: frequent looks keep a processor
/// awake, and a program on it is woken sooner than it would be.
const COLLECT_TRACING_EVERY: Duration = Duration::from_millis(100);

/// All that the collecting thread has collected.
pub(crate) struct Collected {
    pub(crate) tapped: Vec<Tapped>,
    pub(crate) events: Vec<PacketEvent>,
    pub(crate) passages: Vec<SitePassage>,
    pub(crate) pairs: PairLine<Utc>,
    pub(crate) mono_pairs: PairLine<Mono>,
    pub(crate) tap_dropped: u64,
    pub(crate) events_lost: u64,
    pub(crate) passages_lost: u64,
}

/// What identifies the conversation to the kernel.
#[derive(Clone)]
pub(crate) struct Label {
    pub(crate) run: u64,
    pub(crate) own_port: u16,
    pub(crate) thread: u64,
}

/// Collects until it has to finish.
pub(crate) struct Collector {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Collected>>,
}

/// Where stamps come from.
struct Probing {
    tap: Option<Tap>,
    events: Option<PacketEvents>,
    stamps: Option<EbpfStamps>,
    clock: SystemPairs,
    counter: CounterId,
}

impl Collector {
    /// Everything is in place when this returns; what cannot be had is added to `unavailable`.
    pub(crate) fn start(plan: &ProbePlan, label: &Label, unavailable: &mut Vec<String>) -> Result<Self, ProbeError> {
        // The first at a tracepoint is called first: the tracing's stamps do not wait for the programs.
        let tap = open_tap(plan, unavailable);
        let events = open_events(plan, label, unavailable);
        unavailable.extend(hardware::verdict(&plan.device));
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, plan, label) = (Arc::clone(&stop), plan.clone(), label.clone());
        let (ready, is_ready) = mpsc::channel();
        // Loaded programs cannot move from thread to thread.
        let work = move || {
            let mut missing = Vec::new();
            let stamps = open_stamps(&plan, &label, &mut missing);
            let mut collected = Collected::nothing(&plan);
            let mut clock = SystemPairs::new(plan.counter);
            // What will be stamped lies behind this pair.
            collected.read_pairs(&mut clock, plan.counter);
            // There is no receiver where the run has ended already.
            let _ = ready.send(missing);
            collect(Probing { tap, events, stamps, clock, counter: plan.counter }, collected, &seen)
        };
        let thread = std::thread::Builder::new().name("ffclock-collect".to_owned()).spawn(work);
        let thread = thread.map_err(|error| ProbeError::Collector(error.to_string()))?;
        unavailable.extend(is_ready.recv().unwrap_or_default());
        Ok(Collector { stop, thread })
    }

    pub(crate) fn finish(self) -> Result<Collected, ProbeError> {
        self.stop.store(true, Ordering::Release);
        let failed = |reason: String| ProbeError::Collector(reason);
        let collected = self.thread.join().map_err(|_| failed("the thread ended unexpectedly".to_owned()))?;
        collected.map_err(|error| failed(error.to_string()))
    }
}

impl Collected {
    fn nothing(plan: &ProbePlan) -> Self {
        Collected {
            tapped: Vec::new(),
            events: Vec::new(),
            passages: Vec::new(),
            pairs: PairLine::new(plan.period),
            mono_pairs: PairLine::new(plan.period),
            tap_dropped: 0,
            events_lost: 0,
            passages_lost: 0,
        }
    }

    fn read_pairs(&mut self, clock: &mut SystemPairs, counter: CounterId) {
        self.pairs.push(clock.read_pair());
        self.mono_pairs.push(ClockPoint::read(counter));
    }
}

fn open_tap(plan: &ProbePlan, unavailable: &mut Vec<String>) -> Option<Tap> {
    if plan.probes.tap == PacketTap::LeftOut {
        return None;
    }
    let tap = Tap::open(&plan.device, plan.to.port());
    tap.map_err(|error| unavailable.push(format!("packet tap on {}: {error} (needs CAP_NET_RAW)", plan.device))).ok()
}

fn open_events(plan: &ProbePlan, label: &Label, unavailable: &mut Vec<String>) -> Option<PacketEvents> {
    if plan.probes.tracing.is_empty() {
        return None;
    }
    let ip_header = if plan.to.is_ipv4() { 20 } else { 40 };
    let (device, sites, thread) = (plan.device.as_str(), plan.probes.tracing, label.thread);
    let wire = plan.wire.as_deref();
    let scope = TracingScope { device, wire, ip_header, lengths: plan.lengths, sites, thread };
    match PacketEvents::open(plan.counter, &scope) {
        Ok((events, missing)) => {
            unavailable.extend(missing);
            Some(events)
        }
        Err(error) => {
            unavailable.push(format!("kernel tracing: {error}"));
            None
        }
    }
}

fn open_stamps(plan: &ProbePlan, label: &Label, unavailable: &mut Vec<String>) -> Option<EbpfStamps> {
    if plan.probes.ebpf.is_empty() {
        return None;
    }
    let (device, sites) = (plan.device.as_str(), plan.probes.ebpf);
    let (lengths, queue_hook) = (plan.lengths, plan.probes.queue_hook);
    match EbpfStamps::open(&ebpf::ProgramScope {
        device,
        run: label.run,
        server_port: plan.to.port(),
        own_port: label.own_port,
        lengths,
        sites,
        queue_hook,
        buffer_bytes: ebpf::BUFFER_BYTES,
    }) {
        Ok((stamps, missing)) => {
            unavailable.extend(missing);
            Some(stamps)
        }
        Err(reason) => {
            unavailable.push(format!("eBPF: {reason}"));
            None
        }
    }
}

fn collect(mut probing: Probing, mut collected: Collected, stop: &AtomicBool) -> io::Result<Collected> {
    loop {
        let is_last = stop.load(Ordering::Acquire);
        collected.read_pairs(&mut probing.clock, probing.counter);
        probing.drain(&mut collected)?;
        if is_last {
            break;
        }
        std::thread::sleep(probing.pause());
    }
    // What was stamped just now lies before these pairs.
    collected.read_pairs(&mut probing.clock, probing.counter);
    collected.tap_dropped = probing.tap.as_mut().map_or(Ok(0), Tap::dropped)?;
    collected.events_lost = probing.events.as_ref().map_or(0, PacketEvents::lost);
    collected.passages_lost = probing.stamps.as_ref().map_or(0, EbpfStamps::lost);
    Ok(collected)
}

impl Probing {
    fn pause(&self) -> Duration {
        if self.tap.is_none() && self.stamps.is_none() { COLLECT_TRACING_EVERY } else { COLLECT_EVERY }
    }

    fn drain(&mut self, collected: &mut Collected) -> io::Result<()> {
        if let Some(events) = &mut self.events {
            events.drain(|event| collected.events.push(event))?;
        }
        if let Some(stamps) = &mut self.stamps {
            stamps.drain(|passage| collected.passages.push(passage))?;
        }
        if let Some(tap) = &mut self.tap {
            tap.drain(|packet| collected.tapped.push(packet));
        }
        Ok(())
    }
}
