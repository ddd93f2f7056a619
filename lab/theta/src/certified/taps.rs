//! What an observer between the hosts saw: each message when it left the one host and when it came to the other, by
//! one clock that belongs to neither.
//!
//! The observer is one more host, whose clock promises nothing but its rate: a broadcast happened before its packet was
//! seen, and a perception after that. These are two messages of the kind that [`Corrections`] orders, from the sender
//! to the observer and from the observer to the receiver. So what the observer saw bounds every delay by itself, with
//! no promise of any host's clock ([`TapCheck::seen`]); and if corrections exist that satisfy both the promises and the
//! observer, the interval that the hosts state for each message overlaps what was seen of it.

use super::gather::{ClockStamp, GatheredMessage, JoinedLog};
use super::{Certified, CertifyError, CertifyOptions, Corrections, Lie};
use crate::log::LogReader;
use crate::record::{ClockSample, HostId, ProcessId, Round, RunDescription, RunHost};
use ffclock_units::{Counter, Period, Rate};
use serde::Serialize;
use std::collections::BTreeMap;

/// A message passed a tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapPassage {
    /// The host whose link it is.
    pub host: HostId,
    /// Who sent the message.
    pub sender: ProcessId,
    /// Who was to receive it.
    pub receiver: ProcessId,
    /// Its round.
    pub round: Round,
    /// When it passed, by the clock of all taps, nanoseconds.
    pub at_ns: u64,
}

/// What the taps say of a run.
#[derive(Clone, Debug, Serialize)]
pub struct TapCheck {
    /// Messages between hosts.
    pub messages: usize,
    /// Of them, how many were seen leaving the sender's host.
    pub departures: usize,
    /// How many were seen coming to the receiver's host.
    pub arrivals: usize,
    /// The time between both taps, the longest, in picoseconds.
    pub link_max_ps: i64,
    /// By the promises of the hosts' clocks, without the taps.
    pub promised: Certified,
    /// By what was seen, whatever the clocks promise.
    pub seen: Certified,
    /// By both.
    pub both: Certified,
}

/// A promise so wide that it says nothing: half an hour, in picoseconds.
const ANY_TIME_PS: u64 = 1_800_000_000_000_000;
/// The name of the observer among the hosts.
const OBSERVER: &str = "the taps";

/// Compares a log with what passed the taps. `drift` is how fast the clock of the taps may drift.
///
/// # Errors
/// As [`certify`](super::certify). A clock that lied is one: it broke its promise, or contradicts itself or the taps.
pub fn check_by_taps(
    log: &LogReader,
    passages: &[TapPassage],
    drift: Rate,
    options: &CertifyOptions,
) -> Result<TapCheck, CertifyError> {
    let gathered = JoinedLog::from_log(log, options.stamping)?;
    let observed = Observed::new(log, &gathered, passages, drift);
    if observed.departures + observed.arrivals == 0 {
        return Err(CertifyError::NothingSeen);
    }
    let bounds = |crossings: &[GatheredMessage], clocks: &[ClockSample]| {
        Corrections::new(&observed.run, clocks, crossings, options.epoch_ps)
            .map_err(|lie| CertifyError::Lied(named(lie)))
    };
    // First without any promise: a clock that contradicts what was seen of it needs no other host to be named.
    let seen = bounds(&observed.crossings, &observed.unpromised)?;
    let mut all = gathered.crossings.clone();
    let promised = bounds(&all, &observed.clocks)?;
    all.extend(&observed.crossings);
    let both = bounds(&all, &observed.clocks)?;
    let certified = |corrections: Corrections| Certified::new(&gathered, &corrections.without_last(), options);
    Ok(TapCheck {
        messages: gathered.crossings.len(),
        departures: observed.departures,
        arrivals: observed.arrivals,
        link_max_ps: observed.link_max_ps,
        promised: certified(promised),
        seen: certified(seen),
        both: certified(both),
    })
}

/// The taps are not under suspicion.
fn named(mut lie: Lie) -> Lie {
    lie.suspects.retain(|name| name != OBSERVER);
    lie
}

/// The run with the observer as its last host.
struct Observed {
    run: RunDescription,
    clocks: Vec<ClockSample>,
    /// The same clocks without their promises.
    unpromised: Vec<ClockSample>,
    crossings: Vec<GatheredMessage>,
    departures: usize,
    arrivals: usize,
    link_max_ps: i64,
}

/// (round, sender, receiver), and when it left and came.
type Sightings = BTreeMap<(u64, u32, u32), [Option<i64>; 2]>;

impl Observed {
    fn new(log: &LogReader, gathered: &JoinedLog, passages: &[TapPassage], drift: Rate) -> Self {
        let host = log.run().hosts.len();
        let mut run = log.run().clone();
        run.hosts.push(RunHost { name: OBSERVER.to_owned(), ..run.hosts[0].clone() });
        // What holds between two hosts need not hold between a host and its own tap.
        run.delay_min_ps = 0;
        let sightings = sightings(&run, gathered, passages);
        let stamp = |clock_ps| ClockStamp { clock_ps, host };
        let mut observed = Observed {
            run,
            clocks: log.clocks().to_vec(),
            unpromised: vec![],
            crossings: vec![],
            departures: 0,
            arrivals: 0,
            link_max_ps: 0,
        };
        for message in &gathered.crossings {
            let [left, came] = sightings.get(&message.key).copied().unwrap_or_default();
            let to_tap = left.map(|at| GatheredMessage { perceived: stamp(at), ..*message });
            let from_tap = came.map(|at| GatheredMessage { sent: stamp(at), ..*message });
            observed.departures += usize::from(left.is_some());
            observed.arrivals += usize::from(came.is_some());
            observed.link_max_ps = left.zip(came).map_or(0, |(left, came)| came - left).max(observed.link_max_ps);
            observed.crossings.extend(to_tap.into_iter().chain(from_tap));
        }
        observed.clocks.push(ClockSample {
            host: HostId(host as u32),
            counter: Counter::from_raw(0),
            time_ps: 0,
            bound_ps: ANY_TIME_PS,
            period: Period::from_seconds(1e-9).expect("a nanosecond is a period"),
            drift_bound: drift,
        });
        observed.unpromised =
            observed.clocks.iter().map(|sample| ClockSample { bound_ps: ANY_TIME_PS, ..*sample }).collect();
        observed
    }
}

/// The passages by message, in picoseconds from a point near the origin of the run. Of a packet that was seen twice at
/// a tap the last departure and the first arrival count, which claim least.
fn sightings(run: &RunDescription, gathered: &JoinedLog, passages: &[TapPassage]) -> Sightings {
    let begun_ns = passages.iter().map(|passage| passage.at_ns).min().unwrap_or(0);
    let begun_ps = gathered.crossings.iter().map(|message| message.sent.clock_ps).min().unwrap_or(0);
    let host_of = |process: ProcessId| run.host_of.get(process.index());
    let mut sightings = Sightings::new();
    for TapPassage { host, sender, receiver, round, at_ns } in passages {
        let at_ps = begun_ps.saturating_add(i64::try_from(at_ns - begun_ns).unwrap_or(i64::MAX).saturating_mul(1000));
        let [left, came] = sightings.entry((round.0, sender.0, receiver.0)).or_default();
        if host_of(*sender) == Some(host) {
            *left = Some(left.map_or(at_ps, |before| before.max(at_ps)));
        } else if host_of(*receiver) == Some(host) {
            *came = Some(came.map_or(at_ps, |before| before.min(at_ps)));
        }
    }
    sightings
}
