//! The records of a run: the events of every process as raw counter values, the clocks of the hosts, and a description
//! of the run.
//!
//! Simulator, live runner and importer write these records; the analysis reads them. No event carries a time: it
//! carries what the counter of its host showed. Times come later, from the [`ClockSample`]s, so that a better clock
//! can be put under an old log.

use ffclock_units::{Counter, Period, Rate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A process of the run: 0 to n-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessId(pub u32);

/// A host, with one counter: processes on it share its clock. 0 to the number of hosts less one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostId(pub u32);

/// The number that a message (init, k) carries. The first round is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Round(pub u64);

impl ProcessId {
    /// The process as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl HostId {
    /// The host as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Which rule of the algorithm let a process switch (paper, figure 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchRule {
    /// n-f messages of the current round (line 12).
    Advance,
    /// f+1 messages of a later round (line 6).
    CatchUp,
}

/// One thing that happened at one process. Events of one process are logged in the order in which they happened there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The process invoked the broadcast of (init, `round`): the paper's broadcast event.
    Broadcast {
        /// The sender.
        process: ProcessId,
        /// The round that the message carries.
        round: Round,
        /// The counter just before the primitive was invoked.
        at: Counter,
    },
    /// The kernel handed one of the broadcast's packets to the device. Not needed for the analysis.
    Transmission {
        /// The sender.
        process: ProcessId,
        /// The receiver.
        receiver: ProcessId,
        /// The round that the message carries.
        round: Round,
        /// The kernel's stamp.
        at: Counter,
    },
    /// The process has finished processing a message: the paper's perception event.
    Perception {
        /// The receiver.
        process: ProcessId,
        /// The sender, as the network identifies it.
        sender: ProcessId,
        /// The round that the message carries.
        round: Round,
        /// The counter when processing was complete.
        at: Counter,
        /// Stamps taken on its way from the wire to the process.
        way_in: WayIn,
    },
    /// The process switched to another round.
    Switch(SwitchEvent),
}

/// Stamps of a message on its way from the wire to the process; absent when not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WayIn {
    /// The kernel's receive stamp.
    pub kernel: Option<Counter>,
    /// When the receive call returned.
    pub received: Option<Counter>,
}

/// A process switched from one round to a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchEvent {
    /// The process.
    pub process: ProcessId,
    /// The round it left.
    pub from: Round,
    /// The round it is in from now on.
    pub to: Round,
    /// The counter when it switched: after the delay D, before its own broadcast.
    pub at: Counter,
    /// The counter when the rule's condition was found to hold, before the delay D. Messages perceived up to here made
    /// it switch.
    pub decided: Counter,
    /// The rule that permitted it.
    pub rule: SwitchRule,
}

impl Event {
    /// The process at which it happened.
    pub const fn process(&self) -> ProcessId {
        match self {
            Event::Broadcast { process, .. } | Event::Transmission { process, .. } => *process,
            Event::Perception { process, .. } | Event::Switch(SwitchEvent { process, .. }) => *process,
        }
    }

    /// The counter of that process's host when it happened.
    pub const fn at(&self) -> Counter {
        match self {
            Event::Broadcast { at, .. } | Event::Transmission { at, .. } => *at,
            Event::Perception { at, .. } | Event::Switch(SwitchEvent { at, .. }) => *at,
        }
    }
}

/// A reading of the clock of a host. Between two samples the clock is the straight line between them.
///
/// The promise: when the counter shows N, the time of the run is `time_ps + period * (N - counter)`, give or take
/// `bound_ps + drift_bound * |age|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockSample {
    /// The host of the clock.
    pub host: HostId,
    /// The counter.
    pub counter: Counter,
    /// The time of the clock at that counter value, in picoseconds since the origin of the run.
    pub time_ps: i64,
    /// The bound on its error, in picoseconds; 0 in the truth of a simulation.
    pub bound_ps: u64,
    /// The length of a tick.
    pub period: Period,
    /// The bound on the drift of the error: non-negative, in seconds per second.
    pub drift_bound: Rate,
}

/// The origin of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogOrigin {
    /// Real processes, real packets.
    Live,
    /// Virtual time.
    Simulated,
    /// A capture of other software: it has requests instead of rounds, and its rules are unknown.
    Imported,
}

/// Which form of the clock synchronisation ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordedForm {
    /// A jump sends the skipped rounds too.
    Repaired,
    /// As the paper's figure 1 is printed: a jump sends the new round only.
    Printed,
    /// No known algorithm: an imported log.
    Unknown,
}

/// A fault that was injected into a run, or that the run is known to have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The process stops for good.
    Crash,
    /// The process receives and never sends.
    Silence,
    /// The process starts late and misses what was sent before.
    LateStart,
    /// The process sends different messages to different processes.
    TwoFaced,
    /// The process sends rounds that it has not reached.
    EarlyMessages,
    /// The process sends old messages again.
    Replay,
    /// Two processes answer to one identity.
    DuplicateIdentity,
    /// Messages on the link get lost.
    LinkLoss,
    /// Messages on the link arrive more than once.
    LinkDuplication,
    /// The link holds messages back.
    LinkHold,
    /// A group of processes is cut off.
    Partition,
    /// The host is slow.
    SlowHost,
    /// The clock of the host steps beyond its bound.
    ClockStep,
    /// The clock of the host drifts beyond its bound.
    ClockDrift,
}

impl FaultKind {
    /// Whether the process it happens to no longer counts as correct. Faults of links, hosts and measuring clocks
    /// leave it correct.
    pub const fn makes_process_faulty(self) -> bool {
        use FaultKind::{Crash, DuplicateIdentity, EarlyMessages, LateStart, Replay, Silence, TwoFaced};
        matches!(self, Crash | Silence | LateStart | TwoFaced | EarlyMessages | Replay | DuplicateIdentity)
    }

    /// Whether a clock by which delays are measured leaves its bound.
    pub const fn makes_clock_false(self) -> bool {
        matches!(self, FaultKind::ClockStep | FaultKind::ClockDrift)
    }
}

/// A fault, with the process, link or host it acts on, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// The process it happens to; of a link: its sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessId>,
    /// The receiver, for a fault of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<ProcessId>,
    /// The host, for a fault of a host or its clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostId>,
    /// When it begins, in picoseconds since the origin of the run; absent: at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ps: Option<i64>,
    /// When it ends; absent: at the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ps: Option<i64>,
}

/// A host of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunHost {
    /// Its name.
    pub name: String,
    /// Which counter its processes read: "tsc", "monotonic-raw", "simulated".
    pub counter: String,
}

/// The description of a run: the file `run.json` of a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunDescription {
    /// The origin of the log.
    pub origin: LogOrigin,
    /// The form of the algorithm that ran.
    pub form: RecordedForm,
    /// n: how many processes there are.
    pub processes: u32,
    /// f: how many of them may be Byzantine.
    pub tolerated: u32,
    /// D: how long a process waits before it advances, in picoseconds.
    pub delay_ps: u64,
    /// No message between different processes is faster, in picoseconds; 0 when nothing more is known.
    pub delay_min_ps: u64,
    /// How far the rows of an event file may be out of the order of time, in picoseconds: at least twice the largest
    /// clock bound.
    pub disorder_ps: u64,
    /// The hosts.
    pub hosts: Vec<RunHost>,
    /// The host of each process.
    pub host_of: Vec<HostId>,
    /// Its faults.
    #[serde(default)]
    pub faults: Vec<RunFault>,
    /// Other settings of the run: load, seed, priorities, host names. Names and values are free.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Messages known to have been lost by the recording itself (full buffers), so that none is lost uncounted.
    #[serde(default)]
    pub unrecorded: u64,
}

impl RunDescription {
    /// Which processes count as correct, by index.
    pub fn correct(&self) -> Vec<bool> {
        let mut correct = vec![true; self.processes as usize];
        let faulty = self.faults.iter().filter(|fault| fault.kind.makes_process_faulty());
        for process in faulty.filter_map(|fault| fault.process) {
            if let Some(is_correct) = correct.get_mut(process.index()) {
                *is_correct = false;
            }
        }
        correct
    }

    /// n-f: how many messages of a round let a process advance.
    pub const fn advance_threshold(&self) -> u32 {
        self.processes.saturating_sub(self.tolerated)
    }

    /// f+1: how many messages of a later round let a process catch up.
    pub const fn catch_up_threshold(&self) -> u32 {
        self.tolerated.saturating_add(1)
    }
}
