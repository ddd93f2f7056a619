//! A load in the context of interrupts, on any kernel and without a module.
//!
//! Many timers are armed to expire together. The kernel works them off in the interrupt of the processor that armed
//! them, before any program and whatever its priority. Arming is a system call for each, an ordinary program's work
//! that takes about as long: so the share of a processor that interrupts can be given in this way ends below a half,
//! and as much again is a load like `processor`, at the priority of this program. What one timer costs is measured
//! first, by the gaps that its interrupt leaves in a loop that reads the time.

use super::Done;
use ffclock_theta_live::LoadLevel;
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::time::{Duration, Instant};

/// From one burst of interrupts to the next.
const SLICE: Duration = Duration::from_micros(500);
/// As many as an ordinary program may have open, and some more.
const TIMERS: usize = 900;
/// Timers of a measurement, and how often it is repeated.
const MEASURED: usize = 64;
const REPEATS: usize = 15;
/// A loop that reads the time and was not interrupted takes less.
const GAP: Duration = Duration::from_nanos(500);
/// What a timer may cost: a measurement beyond it met something else.
const COSTS: (Duration, Duration) = (Duration::from_nanos(100), Duration::from_micros(5));

/// Interrupts for the level's share of the time.
pub(super) fn interrupt(level: LoadLevel, length: Duration) -> io::Result<Done> {
    let timers = (0..TIMERS).map(|_| timer()).collect::<io::Result<Vec<OwnedFd>>>()?;
    let cost = cost_of_one(&timers)?;
    let begun = Instant::now();
    let mut busy = Duration::ZERO;
    while begun.elapsed() < length {
        let from = begun.elapsed();
        let number = (from.as_secs_f64() / SLICE.as_secs_f64()) as u32;
        let end = SLICE * (number + 1);
        let share = level.share((SLICE * number + SLICE / 2).as_secs_f64());
        let wanted = (SLICE.mul_f64(share).as_secs_f64() / cost.as_secs_f64()) as usize;
        let mut armed = 0;
        // The rest is left out where arming takes the whole slice: what is reported is what was done.
        while armed < wanted.min(TIMERS) && begun.elapsed() < end {
            expire_in(&timers[armed], end.saturating_sub(begun.elapsed()))?;
            armed += 1;
        }
        busy += cost * armed as u32;
        std::thread::sleep(end.saturating_sub(begun.elapsed()));
    }
    Ok(Done { busy_percent: 100.0 * busy.as_secs_f64() / begun.elapsed().as_secs_f64(), ..Done::default() })
}

fn timer() -> io::Result<OwnedFd> {
    Ok(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?)
}

fn expire_in(timer: &OwnedFd, time: Duration) -> io::Result<()> {
    // A timer of nothing is disarmed.
    let time = time.max(Duration::from_nanos(1));
    let it_value = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &once)?;
    Ok(())
}

/// How long the kernel takes for a timer that expires among others.
fn cost_of_one(timers: &[OwnedFd]) -> io::Result<Duration> {
    let median = |count: usize| -> io::Result<Duration> {
        let mut gaps = (0..REPEATS).map(|_| gaps(&timers[..count])).collect::<io::Result<Vec<Duration>>>()?;
        gaps.sort_unstable();
        Ok(gaps[REPEATS / 2])
    };
    let cost = median(MEASURED)?.saturating_sub(median(0)?) / MEASURED as u32;
    Ok(cost.clamp(COSTS.0, COSTS.1))
}

/// The time that a loop misses while these timers expire.
fn gaps(timers: &[OwnedFd]) -> io::Result<Duration> {
    let soon = SLICE / 2;
    for timer in timers {
        expire_in(timer, soon)?;
    }
    let begun = Instant::now();
    let (mut before, mut missed) = (Duration::ZERO, Duration::ZERO);
    while before < 2 * soon {
        let now = begun.elapsed();
        missed += Some(now - before).filter(|gap| *gap > GAP).unwrap_or_default();
        before = now;
    }
    Ok(missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A busy machine leaves less than was asked for, and never more than a slice beyond.
    #[test]
    fn interrupts_take_as_much_as_is_reported() {
        let length = Duration::from_millis(300);
        for (level, percent) in [("0", 0.0), ("10", 10.0), ("jumps:5..20", 12.5)] {
            let done = interrupt(level.parse().unwrap(), length).unwrap();
            assert!(
                done.busy_percent <= percent + 1.0 && (done.busy_percent > 0.0) == (percent > 0.0),
                "{level}: {done:?}"
            );
        }
    }

    /// Every armed timer expires by itself while no program waits for it: in the interrupt.
    #[test]
    fn armed_timers_expire() {
        let timers: Vec<OwnedFd> = (0..MEASURED).map(|_| timer().unwrap()).collect();
        gaps(&timers).unwrap();
        for timer in &timers {
            let mut expired = [0; 8];
            assert_eq!(rustix::io::read(timer, &mut expired), Ok(8));
            assert_eq!(u64::from_ne_bytes(expired), 1);
        }
        let cost = cost_of_one(&timers).unwrap();
        assert!((COSTS.0..=COSTS.1).contains(&cost), "{cost:?}");
    }
}
