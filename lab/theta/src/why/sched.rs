//! Who ran on each processor, from a text of the kernel's tracer (`sched_switch`).
//!
//! The tracer must stamp with the counter of the run: trace_clock `x86-tsc` for the counter `tsc` (whole ticks), or
//! `mono_raw` for `monotonic-raw` (seconds). Lines of other events are passed over, and so is what is no line of the
//! tracer.

use ffclock_units::Counter;
use serde::Serialize;
use std::collections::BTreeMap;

/// More switches do not fit into memory at once.
const SWITCHES_MAX: usize = 10_000_000;

/// One switch of a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SchedSwitch {
    at: u64,
    processor: u32,
    /// Who runs from now on, "name-pid".
    next: String,
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

/// The switches of all processors.
#[derive(Clone, Debug, Default)]
pub struct SchedTrace {
    switches: Vec<SchedSwitch>,
}

impl SchedTrace {
    /// Reads the text.
    ///
    /// # Errors
    /// [`SchedFault`].
    pub fn parse(text: &str) -> Result<Self, SchedFault> {
        let mut switches: Vec<_> = text.lines().filter_map(switch).take(SWITCHES_MAX + 1).collect();
        if switches.len() > SWITCHES_MAX {
            return Err(SchedFault::TooLong);
        }
        if switches.is_empty() {
            return Err(SchedFault::Empty);
        }
        switches.sort_by_key(|switch| switch.at);
        Ok(SchedTrace { switches })
    }

    /// Who ran while the counter went from `from` to `to`: on each processor, the longest first, with a share of at
    /// least 1 %. Empty if the trace does not reach over the range.
    pub fn shares(&self, from: Counter, to: Counter) -> Vec<SchedShare> {
        let (from, to) = (from.raw(), to.raw());
        let covers = self.switches.first().is_some_and(|first| first.at <= from)
            && self.switches.last().is_some_and(|last| last.at >= to);
        if !covers || from >= to {
            return vec![];
        }
        let mut running: BTreeMap<u32, (u64, &str)> = BTreeMap::new();
        let mut ran: BTreeMap<(u32, &str), u64> = BTreeMap::new();
        let overlap = |since: u64, until: u64| until.min(to).saturating_sub(since.max(from));
        for switch in self.switches.iter().take_while(|switch| switch.at < to) {
            if let Some((since, thread)) = running.insert(switch.processor, (switch.at, &switch.next)) {
                *ran.entry((switch.processor, thread)).or_default() += overlap(since, switch.at);
            }
        }
        for (processor, (since, thread)) in running {
            *ran.entry((processor, thread)).or_default() += overlap(since, to);
        }
        let range = (to - from) as f64;
        let share = |((processor, thread), lasted): ((u32, &str), u64)| SchedShare {
            processor,
            thread: thread.to_owned(),
            share: lasted as f64 / range,
        };
        let mut shares: Vec<_> = ran.into_iter().map(share).filter(|share| share.share >= 0.01).collect();
        shares.sort_by(|one, other| one.processor.cmp(&other.processor).then(other.share.total_cmp(&one.share)));
        shares
    }
}

/// `  name-12 [001] d..2. 123456: sched_switch: prev_comm=... ==> next_comm=name next_pid=34 next_prio=120`
fn switch(line: &str) -> Option<SchedSwitch> {
    let (head, switched) = line.split_once(": sched_switch: ")?;
    let (_, after) = switched.split_once("==> ")?;
    let name = after.strip_prefix("next_comm=")?;
    let (name, rest) = name.split_once(" next_pid=")?;
    let pid = rest.split_whitespace().next()?;
    let at = head.split_whitespace().next_back()?;
    let processor = head.rsplit_once('[')?.1.split_once(']')?.0.parse().ok()?;
    Some(SchedSwitch { at: ticks(at)?, processor, next: format!("{name}-{pid}") })
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

    #[test]
    fn who_ran_is_a_share_of_the_range() {
        let trace = SchedTrace::parse(TEXT).expect("switches");
        let shares = trace.shares(Counter::from_raw(1200), Counter::from_raw(2000));
        let shares: Vec<_> = shares.iter().map(|share| (share.processor, share.thread.as_str(), share.share)).collect();
        assert_eq!(shares, [(0, "kworker/0:1-3", 0.625), (1, "stress-9", 0.625), (1, "my app-7", 0.375)]);
        assert_eq!(trace.shares(Counter::from_raw(900), Counter::from_raw(2000)), [], "it begins later");
        assert_eq!(trace.shares(Counter::from_raw(1200), Counter::from_raw(9000)), [], "it ends before");
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        assert_eq!(SchedTrace::parse("nothing").err(), Some(SchedFault::Empty));
        assert_eq!(ticks("12.000001"), Some(12_000_001_000));
        assert_eq!((ticks("1."), ticks("x"), ticks("1.0000000001")), (None, None, None));
    }
}
