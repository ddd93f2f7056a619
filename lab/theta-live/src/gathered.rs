//! The result of a live run: counts, and one log.

use super::clocks::{CounterSpan, Hosts, StampedLog};
use super::control::{Hello, LogHeader};
use super::injector::Injected;
use super::store::{EVENT_BYTES, unpack, unpack_trip};
use super::{LiveError, Settings};
use ffclock_theta::certified::{CertifyError, check_clocks};
use ffclock_theta::faults::FaultPlan;
use ffclock_theta::log::{EventWriter, LogWriter, write_round_trips};
use ffclock_theta::record::{ClockSample, Event, LogOrigin, ProcessId, RunDescription};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Clocks of longer runs are not checked here: `ffclock-lab theta analyse --certify` does it.
const CHECKED_MESSAGES_MAX: u64 = 2_000_000;

/// The log of a rank.
pub(super) struct RankLog {
    pub(super) header: LogHeader,
    pub(super) bytes: Vec<u8>,
}

impl RankLog {
    /// The first and the last counter of its events.
    fn span(&self) -> CounterSpan {
        let at = |bytes| unpack(ProcessId(0), bytes).map(|event| event.at().raw());
        let first = self.bytes.chunks(EVENT_BYTES).find_map(at).unwrap_or(self.header.started);
        CounterSpan { first, last: self.bytes.rchunks(EVENT_BYTES).find_map(at).unwrap_or(first) }
    }
}

/// The ranks that have met, their hosts, and the faults that are injected.
pub(super) struct Company {
    pub(super) hellos: Vec<Hello>,
    pub(super) hosts: Hosts,
    pub(super) plan: FaultPlan,
}

/// The logs of all ranks.
pub struct Gathered {
    settings: Settings,
    hellos: Vec<Hello>,
    hosts: Hosts,
    plan: FaultPlan,
    logs: Vec<Option<RankLog>>,
    /// Ranks that are gone without a log.
    lost: Vec<bool>,
    control_priority: String,
    pub(super) lagging: Vec<u32>,
    pub(super) failures: Vec<String>,
}

/// Counts of a live run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LiveSummary {
    /// Messages sent, one for each receiver.
    pub sent: u64,
    /// Messages perceived.
    pub perceived: u64,
    /// Replies sent and replies received, of round trips.
    pub replies: (u64, u64),
    /// Packets that the kernel dropped because a socket buffer was full, as the kernel counts them.
    pub dropped: u64,
    /// Sent, and neither perceived nor accounted for otherwise: lost on the way, or still in transit at the end.
    pub lost: u64,
    /// Packets that were no messages of this run.
    pub refused: u64,
    /// Kernel stamps that did not come or could not be trusted.
    pub unstamped: u64,
    /// Events and round trips for which a rank had no room.
    pub unrecorded: u64,
    /// The smallest socket buffer of a rank, in bytes as the kernel counts them.
    pub buffer_bytes: u64,
    /// Injected faults.
    pub injected: Injected,
    /// The least round that a correct rank came to.
    pub least_round: u64,
    /// Correct ranks that did not come to the last round.
    pub lagging: Vec<u32>,
    /// By rank: the priority that was granted, or why none was.
    pub priorities: Vec<String>,
    /// The same for the control of the run.
    pub control_priority: String,
    /// Failures; the results are partial unless this is empty.
    pub failures: Vec<String>,
}

impl Gathered {
    pub(super) fn new(settings: Settings, company: Company, control_priority: String) -> Self {
        let Company { hellos, hosts, plan } = company;
        let size = hellos.len();
        Gathered {
            settings,
            hellos,
            hosts,
            plan,
            logs: (0..size).map(|_| None).collect(),
            lost: vec![false; size],
            control_priority,
            lagging: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Whether no fault on purpose makes the rank faulty.
    pub(super) fn is_correct(&self, rank: u32) -> bool {
        self.plan.correct()[rank as usize]
    }

    /// Whether nothing more is to come from a rank.
    pub(super) fn has_ended(&self, rank: u32) -> bool {
        self.lost[rank as usize] || self.logs[rank as usize].is_some()
    }

    /// Whether something is to come from any.
    pub(super) fn is_waiting(&self) -> bool {
        (0..self.logs.len() as u32).any(|rank| !self.has_ended(rank))
    }

    /// The log of a rank, or why there is none.
    pub(super) fn take(&mut self, rank: u32, log: Result<RankLog, String>) {
        match log {
            // The log of a rank that was given up is not believed.
            Ok(_) if self.lost[rank as usize] => (),
            Ok(log) => {
                let lost = log.header.unrecorded;
                if lost > 0 {
                    let host = &self.hellos[rank as usize].host;
                    let why = format!(
                        "rank {rank} on {host} had no room for {lost} events, which are not recorded (--events)"
                    );
                    self.failures.push(why);
                }
                self.logs[rank as usize] = Some(log);
            }
            Err(_) if self.has_ended(rank) => (),
            Err(why) => {
                self.lost[rank as usize] = true;
                self.failures.push(format!("rank {rank} on {}: {why}", self.hellos[rank as usize].host));
            }
        }
    }

    /// Nothing more is waited for.
    pub(super) fn give_up(&mut self) {
        for rank in 0..self.logs.len() as u32 {
            self.take(rank, Err("its log did not come to its end in time".to_owned()));
        }
    }

    fn headers(&self) -> impl Iterator<Item = &LogHeader> {
        self.logs.iter().flatten().map(|log| &log.header)
    }

    /// Counts of all ranks.
    pub fn summary(&self) -> LiveSummary {
        let sum = |count: fn(&LogHeader) -> u64| self.headers().map(count).sum::<u64>();
        let mut injected = Injected::default();
        self.headers().for_each(|header| injected += header.injected);
        let (sent, perceived) = (sum(|header| header.sent), sum(|header| header.perceived));
        let replies = (sum(|header| header.replies_sent), sum(|header| header.replies_perceived));
        let (dropped, refused) = (sum(|header| header.dropped), sum(|header| header.refused));
        let arrived = perceived + replies.1 + dropped + refused + injected.missed;
        let correct = self.logs.iter().enumerate().filter(|(rank, _)| self.is_correct(*rank as u32));
        LiveSummary {
            sent,
            perceived,
            replies,
            dropped,
            lost: (sent + replies.0).saturating_sub(arrived),
            refused,
            unstamped: sum(|header| header.unstamped),
            unrecorded: sum(|header| header.unrecorded),
            buffer_bytes: self.headers().map(|header| header.buffer_bytes).min().unwrap_or(0),
            injected,
            least_round: correct.filter_map(|(_, log)| Some(log.as_ref()?.header.round)).min().unwrap_or(0),
            lagging: self.lagging.clone(),
            priorities: self.headers().map(|header| header.priority.clone()).collect(),
            control_priority: self.control_priority.clone(),
            failures: self.failures.clone(),
        }
    }

    /// Writes what came as one log; it is marked as incomplete if something went wrong, a clock that broke its bound
    /// included: that is then among the failures of the summary.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&mut self, directory: &Path) -> Result<(), LiveError> {
        let mut writer = LogWriter::create(directory, &self.description())?;
        let mut trips = Vec::new();
        for (rank, log) in self.logs.iter().enumerate() {
            let Some(log) = log else { continue };
            let (rank, chunks) = (ProcessId(rank as u32), || log.bytes.chunks(EVENT_BYTES));
            let mut events = EventWriter::create(directory, &format!("rank{}", rank.0))?;
            for event in chunks().filter_map(|bytes| unpack(rank, bytes)) {
                events.append(&event)?;
            }
            events.finish()?;
            trips.extend(chunks().filter_map(|bytes| unpack_trip(rank, bytes)));
        }
        if !trips.is_empty() {
            write_round_trips(directory, &trips)?;
        }
        let samples = self.check_clocks();
        // The findings of the check belong into the log too.
        *writer.run_mut() = self.description();
        samples.into_iter().for_each(|sample| writer.clock(sample));
        if self.failures.is_empty() {
            writer.finish()?
        } else {
            writer.finish_partial()?
        }
        Ok(())
    }

    /// The clocks' samples. Clocks that broke their bounds become failures.
    fn check_clocks(&mut self) -> Vec<ClockSample> {
        let log = |log: &Option<RankLog>| {
            let log = log.as_ref()?;
            Some(StampedLog { header: log.header.clone(), span: log.span() })
        };
        let logs: Vec<_> = self.logs.iter().map(log).collect();
        let clocks = self.hosts.clocks(&logs, &self.plan);
        let is_known = !clocks.faults.is_empty();
        self.failures.extend(clocks.faults);
        let can_lie = !self.hosts.share_a_counter() || self.plan.clocks.iter().any(|faults| !faults.is_empty());
        let perceived = self.headers().map(|header| header.perceived).sum::<u64>();
        if can_lie && !is_known && perceived <= CHECKED_MESSAGES_MAX {
            // The analysis of the log finds its other faults.
            let checked = check_clocks(&self.description(), &clocks.samples, self.events());
            if let Err(error @ CertifyError::Lied(_)) = checked {
                self.failures.push(error.to_string());
            }
        }
        clocks.samples
    }

    fn events(&self) -> impl Iterator<Item = Event> {
        let of_rank = |(rank, log): (usize, &Option<RankLog>)| {
            let bytes = log.iter().flat_map(|log| log.bytes.chunks(EVENT_BYTES));
            bytes.filter_map(move |bytes| unpack(ProcessId(rank as u32), bytes)).collect::<Vec<_>>()
        };
        self.logs.iter().enumerate().flat_map(of_rank)
    }

    fn description(&self) -> RunDescription {
        let summary = self.summary();
        let mut settings = BTreeMap::from([
            ("priorities".to_owned(), summary.priorities.join("; ")),
            ("control priority".to_owned(), summary.control_priority),
            ("socket buffer".to_owned(), format!("{} bytes", summary.buffer_bytes)),
            ("dropped by full buffers".to_owned(), summary.dropped.to_string()),
        ]);
        if self.settings.replies == super::Replies::RoundTrips {
            settings.insert("replies".to_owned(), "round trips".to_owned());
        }
        if !self.settings.faults.is_empty() {
            settings.insert("faults".to_owned(), self.settings.faults.join("; "));
        }
        if !self.failures.is_empty() {
            settings.insert("failures".to_owned(), self.failures.join("; "));
        }
        RunDescription {
            origin: LogOrigin::Live,
            form: self.settings.form.into(),
            processes: self.settings.processes,
            tolerated: self.settings.tolerated,
            delay_ps: self.settings.delay_ns.saturating_mul(1000),
            delay_min_ps: 0,
            disorder_ps: 0,
            hosts: self.hosts.hosts.clone(),
            host_of: self.hosts.host_of.iter().map(|&host| ffclock_theta::record::HostId(host)).collect(),
            faults: self.plan.recorded.clone(),
            settings,
            unrecorded: summary.unrecorded,
        }
    }
}
