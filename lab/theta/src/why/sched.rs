//! Who ran on each processor, from a text of the kernel's tracer (`sched_switch`).
//!
//! The tracer must stamp with the counter of the run: trace_clock `x86-tsc` for the counter `tsc` (whole ticks), or
//! `mono_raw` for `monotonic-raw` (seconds). Lines of other events are passed over, and so is what is no line of the
//! tracer. The kernel has a buffer for each processor, and a busy one loses its old events first: each processor is
//! judged by its own lines, and one whose lines do not reach over a range, or have lost events in it, is named.

use ffclock_units::Counter;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// More switches do not fit into memory at once.
const SWITCHES_MAX: usize = 10_000_000;
/// With fewer stamps the thread that made them is not distinguished from others.
const STAMPS_MIN: usize = 8;
/// It ran at this share of them; the tracer's own stamps may be a microsecond off.
const STAMPS_SHARE: f64 = 0.9;

/// One switch of a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SchedSwitch {
    at: u64,
    /// Who runs from now on, "name-pid".
    next: String,
    /// Whether events of this processor were lost since its switch before.
    is_after_loss: bool,
}

/// Why a text cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchedFault {
    /// No line is a switch of a processor.
    #[error("no line has a sched_switch: is it the text of /sys/kernel/tracing/trace?")]
    Empty,
    /// Too long.
    #[error("more than {SWITCHES_MAX} switches of processors: record a shorter time")]
    TooLong,
}

/// How long a thread ran on a processor within a range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SchedShare {
    /// The processor.
    pub processor: u32,
    /// Name and number of the thread; `swapper` is the idle one.
    pub thread: String,
    /// Of the range, 0 to 1.
    pub share: f64,
}

/// Why nothing is known of a processor over a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedGapReason {
    /// Its first switch comes later than the begin of the range.
    BeginsLater,
    /// Its last switch comes before the end of the range.
    EndsBefore,
    /// The tracer lost events of it within the range.
    LostEvents,
}

/// A processor of the trace of which it is not known who ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SchedGap {
    /// The processor.
    pub processor: u32,
    /// Why it is not known who ran there.
    pub reason: SchedGapReason,
}

/// The thread of a process, and where it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnThread {
    /// Name and number of the thread.
    pub thread: String,
    /// Where it ran when the range began, or else where it went on first.
    pub processor: u32,
}

/// The switches of each processor, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct SchedTrace {
    processors: BTreeMap<u32, Vec<SchedSwitch>>,
    /// Processors whose last events were lost.
    lost_at_end: BTreeSet<u32>,
}

impl SchedTrace {
    /// Reads the text.
    ///
    /// # Errors
    /// [`SchedFault`].
    pub fn parse(text: &str) -> Result<Self, SchedFault> {
        let (mut trace, mut switches) = (SchedTrace::default(), 0);
        for line in text.lines() {
            if let Some(processor) = lost(line) {
                trace.processors.entry(processor).or_default();
                trace.lost_at_end.insert(processor);
            } else if let Some((processor, at, next)) = switch(line) {
                let is_after_loss = trace.lost_at_end.remove(&processor);
                trace.processors.entry(processor).or_default().push(SchedSwitch { at, next, is_after_loss });
                switches += 1;
            }
            if switches > SWITCHES_MAX {
                return Err(SchedFault::TooLong);
            }
        }
        trace.processors.values_mut().for_each(|switches| switches.sort_by_key(|switch| switch.at));
        if switches == 0 { Err(SchedFault::Empty) } else { Ok(trace) }
    }

    /// Who ran while the counter went from `from` to `to`: on each processor, the longest first, with a share of at
    /// least 1 %. Processors that are not known over all of the range are left out: see [`SchedTrace::gaps`].
    pub fn shares(&self, from: Counter, to: Counter) -> Vec<SchedShare> {
        let (from, to) = (from.raw(), to.raw());
        let known = self.processors.iter().filter(|&(&number, _)| from < to && self.gap(number, from, to).is_none());
        let mut shares = vec![];
        for (&processor, switches) in known {
            let mut ran: BTreeMap<&str, u64> = BTreeMap::new();
            for (number, switch) in switches.iter().enumerate() {
                let until = switches.get(number + 1).map_or(to, |next| next.at).min(to);
                *ran.entry(&switch.next).or_default() += until.saturating_sub(switch.at.max(from));
            }
            let share = |(thread, lasted): (&str, u64)| SchedShare {
                processor,
                thread: thread.to_owned(),
                share: lasted as f64 / (to - from) as f64,
            };
            let mut of_it: Vec<_> = ran.into_iter().map(share).filter(|share| share.share >= 0.01).collect();
            of_it.sort_by(|one, other| other.share.total_cmp(&one.share));
            shares.append(&mut of_it);
        }
        shares
    }

    /// The processors of the trace that are not known over all of the range.
    pub fn gaps(&self, from: Counter, to: Counter) -> Vec<SchedGap> {
        let gap = |&processor: &u32| {
            let reason = self.gap(processor, from.raw(), to.raw())?;
            Some(SchedGap { processor, reason })
        };
        self.processors.keys().filter_map(gap).collect()
    }

    fn gap(&self, processor: u32, from: u64, to: u64) -> Option<SchedGapReason> {
        let switches = self.processors.get(&processor).map_or(&[][..], Vec::as_slice);
        let ends_at = switches.last().map_or(0, |last| last.at);
        let loses = |pair: &[SchedSwitch]| pair[1].is_after_loss && pair[0].at < to && pair[1].at > from;
        if switches.windows(2).any(loses) || (self.lost_at_end.contains(&processor) && ends_at < to) {
            Some(SchedGapReason::LostEvents)
        } else if switches.first().is_none_or(|first| first.at > from) {
            Some(SchedGapReason::BeginsLater)
        } else if ends_at < to {
            Some(SchedGapReason::EndsBefore)
        } else {
            None
        }
    }

    /// From the first switch to the last one, of all processors.
    pub(super) fn reach(&self) -> Option<(u64, u64)> {
        let of_all = || self.processors.values().flatten().map(|switch| switch.at);
        of_all().min().zip(of_all().max())
    }

    /// The thread that makes these stamps, and where it was to run from `from` on. A thread runs whenever it takes a
    /// stamp, and nothing but a thread that runs nearly always does so too: it is, of those that ran at nearly all
    /// stamps, the one that ran least. `None` where no thread did, or the stamps are few.
    pub fn own_thread(&self, stamps: &[Counter], from: Counter) -> Option<OwnThread> {
        let mut hits: BTreeMap<&str, usize> = BTreeMap::new();
        let mut judged = 0;
        for stamp in stamps {
            let ran: BTreeSet<&str> =
                self.processors.values().filter_map(|switches| running(switches, stamp.raw())).collect();
            judged += usize::from(!ran.is_empty());
            ran.into_iter().for_each(|thread| *hits.entry(thread).or_default() += 1);
        }
        let is_one = |&(thread, hits): &(&str, usize)| {
            hits as f64 >= STAMPS_SHARE * judged as f64 && !thread.starts_with("swapper/")
        };
        let candidates = hits.into_iter().filter(|_| judged >= STAMPS_MIN).filter(is_one).map(|(thread, _)| thread);
        let thread = candidates.min_by_key(|thread| self.ran_in_all(thread))?;
        let processor = self.next_processor(thread, from.raw())?;
        Some(OwnThread { thread: thread.to_owned(), processor })
    }

    fn ran_in_all(&self, thread: &str) -> u64 {
        let pairs = self.processors.values().flat_map(|switches| switches.windows(2));
        pairs.filter(|pair| pair[0].next == thread).map(|pair| pair[1].at - pair[0].at).sum()
    }

    /// Where it runs at `from`, or else where it goes on first after that.
    fn next_processor(&self, thread: &str, from: u64) -> Option<u32> {
        let runs = self.processors.iter().find(|(_, switches)| running(switches, from) == Some(thread));
        let next = |(&processor, switches): (&u32, &Vec<SchedSwitch>)| {
            let switch = switches.iter().find(|switch| switch.at > from && switch.next == thread)?;
            Some((switch.at, processor))
        };
        runs.map(|(&processor, _)| processor)
            .or_else(|| self.processors.iter().filter_map(next).min().map(|(_, processor)| processor))
    }
}

/// Who runs on a processor; `None` where its switches do not show it.
fn running(switches: &[SchedSwitch], at: u64) -> Option<&str> {
    let place = switches.partition_point(|switch| switch.at <= at);
    let until = switches.get(place).filter(|next| !next.is_after_loss)?;
    (until.at > at).then_some(switches.get(place.checked_sub(1)?)?.next.as_str())
}

/// `CPU:1 [LOST 12 EVENTS]`, or without a number: before the next event of this processor.
fn lost(line: &str) -> Option<u32> {
    let (processor, rest) = line.trim().strip_prefix("CPU:")?.split_once(' ')?;
    (rest.starts_with("[LOST ") && rest.ends_with("EVENTS]")).then_some(processor.parse().ok()?)
}

/// `  name-12 [001] d..2. 123456: sched_switch: prev_comm=... ==> next_comm=name next_pid=34 next_prio=120`
fn switch(line: &str) -> Option<(u32, u64, String)> {
    let (head, switched) = line.split_once(": sched_switch: ")?;
    let (_, after) = switched.split_once("==> ")?;
    let name = after.strip_prefix("next_comm=")?;
    let (name, rest) = name.split_once(" next_pid=")?;
    let pid = rest.split_whitespace().next()?;
    let at = head.split_whitespace().next_back()?;
    let processor = head.rsplit_once('[')?.1.split_once(']')?.0.parse().ok()?;
    Some((processor, ticks(at)?, format!("{name}-{pid}")))
}

/// Whole ticks, or seconds as nanoseconds.
fn ticks(text: &str) -> Option<u64> {
    match text.split_once('.') {
        None => text.parse().ok(),
        Some((seconds, fraction)) if (1..=9).contains(&fraction.len()) => {
            let nanos = fraction.parse::<u64>().ok()? * 10_u64.pow(9 - fraction.len() as u32);
            seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos)
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# tracer: nop
          <idle>-0       [001] d..2.  1000: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=my app next_pid=7 next_prio=120
          my app-7       [001] d..2.  1400: sched_switch: prev_comm=my app prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=stress next_pid=9 next_prio=120
          <idle>-0       [000] d..2.  1500: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=kworker/0:1 next_pid=3 next_prio=120
          stress-9       [001] d..2.  1900: sched_switch: prev_comm=stress prev_pid=9 prev_prio=120 prev_state=R ==> next_comm=my app next_pid=7 next_prio=120
          stress-9       [001] d..2.  1900: sched_wakeup: comm=my app pid=7
          my app-7       [001] d..2.  2100: sched_switch: prev_comm=my app prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120";

    fn shares(trace: &SchedTrace, from: u64, to: u64) -> Vec<(u32, String, f64)> {
        let shares = trace.shares(Counter::from_raw(from), Counter::from_raw(to));
        shares.into_iter().map(|share| (share.processor, share.thread, share.share)).collect()
    }

    fn gaps(trace: &SchedTrace, from: u64, to: u64) -> Vec<(u32, SchedGapReason)> {
        let gaps = trace.gaps(Counter::from_raw(from), Counter::from_raw(to));
        gaps.into_iter().map(|gap| (gap.processor, gap.reason)).collect()
    }

    #[test]
    fn who_ran_is_a_share_of_the_range() {
        let trace = SchedTrace::parse(TEXT).expect("switches");
        let ran = [(1, "stress-9".to_owned(), 0.625), (1, "my app-7".to_owned(), 0.375)];
        assert_eq!(shares(&trace, 1200, 2000), ran);
        assert_eq!(shares(&trace, 900, 2000), [], "it begins later");
        assert_eq!(shares(&trace, 1200, 9000), [], "it ends before");
    }

    /// Processor 0 switches at 1500 only: who ran on it before has been overwritten, or who ran after it.
    #[test]
    fn each_processor_reaches_over_the_range_or_is_named() {
        let trace = SchedTrace::parse(TEXT).expect("switches");
        assert_eq!(gaps(&trace, 1200, 2000), [(0, SchedGapReason::BeginsLater)]);
        assert_eq!(gaps(&trace, 1600, 2000), [(0, SchedGapReason::EndsBefore)]);
        assert_eq!(gaps(&trace, 900, 2000), [(0, SchedGapReason::BeginsLater), (1, SchedGapReason::BeginsLater)]);
    }

    #[test]
    fn lost_events_are_of_their_processor_and_time() {
        for line in ["CPU:1 [LOST 12 EVENTS]", "CPU:1 [LOST EVENTS]"] {
            let lossy = TEXT.replace(
                "          stress-9       [001] d..2.  1900: sched_switch",
                &format!("{line}\n stress-9 [001] d..2.  1900: sched_switch"),
            );
            let trace = SchedTrace::parse(&lossy).expect("switches");
            assert!(gaps(&trace, 1200, 2000).contains(&(1, SchedGapReason::LostEvents)), "{lossy}");
            assert_eq!(shares(&trace, 1200, 2000), []);
            assert_eq!(gaps(&trace, 1900, 2000), [(0, SchedGapReason::EndsBefore)], "none is lost from 1900 on");
            assert_eq!(gaps(&trace, 1100, 1400), [(0, SchedGapReason::BeginsLater)], "nor before 1400");
        }
        let trace =
            SchedTrace::parse(&format!("{TEXT}\nCPU:1 [LOST 3 EVENTS]\nCPU:2 [LOST 3 EVENTS]")).expect("switches");
        let lost = [(0, SchedGapReason::EndsBefore), (1, SchedGapReason::LostEvents), (2, SchedGapReason::LostEvents)];
        assert_eq!(gaps(&trace, 1600, 2200), lost);
    }

    /// A load that always runs on processor 0, and a thread that runs on processor 1, and at the end on 0 too.
    #[test]
    fn a_thread_is_known_by_its_stamps() {
        let line = |processor: u32, at: u64, next: &str| {
            format!(
                " x-1 [{processor:03}] d..2. {at}: sched_switch: prev_comm=x prev_pid=1 ==> next_comm={next} next_pid=5 next_prio=1\n"
            )
        };
        let mut text = line(0, 1, "load") + &line(1, 1, "idle");
        for period in 1..=20 {
            let (own, at) = (u32::from(period < 19), 100 * period);
            text += &line(own, at, "mine");
            text += &line(own, at + 10, if own == 1 { "idle" } else { "load" });
        }
        text += &(line(0, 5000, "load") + &line(1, 5000, "idle"));
        let trace = SchedTrace::parse(&text).expect("switches");
        let stamps: Vec<Counter> = (1..=20).map(|period| Counter::from_raw(100 * period + 5)).collect();
        let own = |from| trace.own_thread(&stamps, Counter::from_raw(from));
        let on = |processor| Some(OwnThread { thread: "mine-5".to_owned(), processor });
        assert_eq!((own(205), own(1750), own(1850)), (on(1), on(1), on(0)));
        assert_eq!(trace.own_thread(&stamps[..STAMPS_MIN - 1], Counter::from_raw(205)), None, "too few stamps");
        let idle: Vec<Counter> = (1..=20).map(|period| Counter::from_raw(50 + 103 * period)).collect();
        assert_ne!(trace.own_thread(&idle, Counter::from_raw(205)), on(1), "it did not run at these");
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        assert_eq!(SchedTrace::parse("nothing").err(), Some(SchedFault::Empty));
        assert_eq!(ticks("12.000001"), Some(12_000_001_000));
        assert_eq!((ticks("1."), ticks("x"), ticks("1.0000000001")), (None, None, None));
    }
}
