//! A load in the context of interrupts, on any kernel and without a module.
//!
//! Many timers are armed to expire together. The kernel works them off in the interrupt of the processor that armed
//! them, before any program and whatever its priority. Arming is a system call for each, an ordinary program's work
//! that takes about as long: so the share of a processor that interrupts can be given in this way ends below a half,
//! and as much again is a load like `processor`, at the priority of this program.
//!
//! What the interrupts take is measured all the while, by the time that a loop misses when they come: of every
//! sixteenth burst this program sees the end, and the others count as these do. A loop that another program interrupted
//! says nothing. Where none is left, no share is reported.

use super::Done;
use ffclock_sys::mono_now;
use ffclock_theta_live::LoadLevel;
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::time::Duration;

/// From one burst of interrupts to the next.
const SLICE: Duration = Duration::from_micros(500);
/// As many as an ordinary program may have open, and some more.
const TIMERS: usize = 900;
/// One burst of this number is watched.
const WATCH_EVERY: u32 = 16;
/// A watched burst is over by then: the interrupt may come late.
const AFTER: Duration = Duration::from_micros(100);
/// A loop that reads the time and was not interrupted takes less.
const GAP: Duration = Duration::from_micros(1);
/// What a timer may cost, before the first burst was watched and then.
const COST_FIRST: Duration = Duration::from_nanos(400);
const COSTS: (Duration, Duration) = (Duration::from_nanos(50), Duration::from_micros(5));

/// Interrupts for the level's share of the time.
pub(super) fn interrupt(level: LoadLevel, length: Duration) -> io::Result<Done> {
    let timers = (0..TIMERS).map(|_| timer()).collect::<io::Result<Vec<OwnedFd>>>()?;
    let (begun, mut bursts) = (now(), BurstCosts::default());
    loop {
        let from = now() - begun;
        if from >= length {
            return Ok(Done {
                busy_percent: bursts.share_of(from).map(|share| 100.0 * share),
                timers: bursts.armed,
                ..Done::default()
            });
        }
        let number = (from.as_secs_f64() / SLICE.as_secs_f64()) as u32;
        let share = level.share((SLICE * number + SLICE / 2).as_secs_f64());
        let wanted = (SLICE.mul_f64(share).as_secs_f64() / bursts.cost().as_secs_f64()) as usize;
        let (timers, end) = (&timers[..wanted.min(TIMERS)], begun + SLICE * (number + 1));
        if number.is_multiple_of(WATCH_EVERY) {
            let turns = turns()?;
            let (armed, last) = arm(timers, end)?;
            let missed = missed_between(last, end + AFTER);
            bursts.note(armed, (turns == self::turns()?).then_some(missed));
        } else {
            bursts.note(arm(timers, end)?.0, None);
            std::thread::sleep(end.saturating_sub(now()));
        }
    }
}

/// What bursts of timers take.
#[derive(Clone, Copy, Debug, Default)]
struct BurstCosts {
    /// Timers of all bursts.
    armed: u64,
    /// Those of the bursts that were seen.
    seen: u64,
    /// What these took.
    missed: Duration,
}

impl BurstCosts {
    /// A burst of this number of timers, and what it took, if it was seen.
    fn note(&mut self, timers: u64, missed: Option<Duration>) {
        self.armed += timers;
        // A loop without timers may miss time as well, but not by our doing.
        if let Some(missed) = missed.filter(|_| timers > 0) {
            (self.seen, self.missed) = (self.seen + timers, self.missed + missed);
        }
    }

    /// Of one timer among others, as far as it is known.
    fn cost(&self) -> Duration {
        let seen = (self.seen > 0).then(|| self.missed.div_f64(self.seen as f64));
        seen.unwrap_or(COST_FIRST).clamp(COSTS.0, COSTS.1)
    }

    /// The share of `time` that all bursts took; `None` if none was seen.
    fn share_of(&self, time: Duration) -> Option<f64> {
        match (self.armed, self.seen) {
            (0, _) => Some(0.0),
            (_, 0) => None,
            (armed, seen) => Some(self.missed.as_secs_f64() * armed as f64 / seen as f64 / time.as_secs_f64()),
        }
    }
}

/// By the clock that timers expire by.
fn now() -> Duration {
    Duration::from_nanos(u64::try_from(mono_now().since_origin().as_nanos()).unwrap_or(0))
}

fn timer() -> io::Result<OwnedFd> {
    Ok(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?)
}

/// Arms timers to expire together at `end`, as many as there is time for before: how many, and when there was time
/// last.
fn arm(timers: &[OwnedFd], end: Duration) -> io::Result<(u64, Duration)> {
    let it_value = Timespec { tv_sec: end.as_secs() as i64, tv_nsec: end.subsec_nanos().into() };
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
    let (mut armed, mut last) = (0, now());
    while last < end && armed < timers.len() {
        timerfd_settime(&timers[armed], TimerfdTimerFlags::ABSTIME, &once)?;
        armed += 1;
        match now() {
            late if late >= end => break,
            time => last = time,
        }
    }
    Ok((armed as u64, last))
}

/// The time that a loop misses. What was before `begin` it has seen.
fn missed_between(begin: Duration, end: Duration) -> Duration {
    let (mut before, mut missed) = (begin, Duration::ZERO);
    while before < end {
        let read = now();
        missed += Some(read - before).filter(|gap| *gap > GAP).unwrap_or_default();
        before = read;
    }
    missed
}

/// How often another program had this thread's processor instead: the lines of the kernel that count it.
fn turns() -> io::Result<Vec<String>> {
    let status = std::fs::read_to_string("/proc/thread-self/status")?;
    Ok(status.lines().filter(|line| line.contains("voluntary_ctxt_switches")).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is reported was seen: not a share that was asked for, nor one that a machine is thought to need.
    #[test]
    fn the_share_is_that_of_the_bursts_that_were_seen() {
        let mut bursts = BurstCosts::default();
        let second = Duration::from_secs(1);
        assert_eq!((bursts.share_of(second), bursts.cost()), (Some(0.0), COST_FIRST));
        bursts.note(300, None);
        assert_eq!((bursts.share_of(second), bursts.cost()), (None, COST_FIRST));
        bursts.note(100, Some(Duration::from_micros(50)));
        bursts.note(0, Some(Duration::from_micros(70)));
        assert_eq!(bursts.cost(), Duration::from_nanos(500));
        // 400 timers of 500 ns.
        let share = bursts.share_of(second).unwrap();
        assert!((share - 200e-6).abs() < 1e-12, "{share}");
    }

    /// Every timer has to be armed, which takes a processor about as long as its interrupt does.
    #[test]
    fn interrupts_never_take_more_than_arming_leaves() {
        let length = Duration::from_millis(300);
        for level in ["0", "10", "90", "jumps:5..20"] {
            let done = interrupt(level.parse().unwrap(), length).unwrap();
            assert_eq!(done.timers > 0, level != "0", "{level}: {done:?}");
            match done.busy_percent {
                Some(percent) => assert!((0.0..65.0).contains(&percent), "{level}: {done:?}"),
                None => println!("SKIP: another program came in every burst that was watched: {done:?}"),
            }
        }
    }

    /// Every armed timer expires by itself while no program waits for it: in the interrupt.
    #[test]
    fn armed_timers_expire() {
        let timers: Vec<OwnedFd> = (0..64).map(|_| timer().unwrap()).collect();
        let end = now() + 200 * SLICE;
        assert_eq!(arm(&timers, end).unwrap().0, 64);
        missed_between(now(), end + AFTER);
        for timer in &timers {
            let mut expired = [0; 8];
            assert_eq!(rustix::io::read(timer, &mut expired), Ok(8));
            assert_eq!(u64::from_ne_bytes(expired), 1);
        }
        assert_eq!(arm(&timers, now()).unwrap().0, 0, "what is late is left out");
    }

    #[test]
    fn turns_of_others_are_counted() {
        let before = turns().unwrap();
        assert_eq!(before.len(), 2, "{before:?}");
        std::thread::sleep(SLICE);
        assert_ne!(turns().unwrap(), before);
    }
}
