//! Whether the CPUs' counters agree: a reading passed to another CPU must never lie after a reading taken there later.
//!
//! Two pinned threads hand a reading to and fro, as in a game of ping-pong; each compares what it receives with its own
//! counter. An offset between the two counters larger than the time of a handover shows as time going backwards in one
//! of the directions.

use crate::affinity::{allowed_cpus, pin_to};
use crate::{CounterId, read_ordered};
use core::sync::atomic::{AtomicU64, Ordering};
use ffclock_units::{Counter, Ticks};
use std::io;
use std::time::{Duration, Instant};

/// Turns played between two CPUs, enough for thousands of handovers of about 100 ns within the time below.
const TURNS: u64 = 4_000;
/// The comparison of a pair of CPUs ends after this time: on a busy host the partner may not be running. On an idle one
/// they need 1 ms.
const TIME_PER_PAIR: Duration = Duration::from_millis(25);
/// Hosts with very many CPUs are checked in part.
const TIME_IN_ALL: Duration = Duration::from_millis(300);

/// What the comparison found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CpuAgreement {
    /// CPUs compared with the first one.
    pub cpus: usize,
    /// Readings handed over.
    pub handovers: u64,
    /// Readings that lay after a later one of the other CPU.
    pub violations: u64,
    /// The largest step backwards.
    pub worst: Ticks,
}

/// The comparison could not be made.
#[derive(Debug, thiserror::Error)]
pub enum AgreementError {
    /// The allowed CPUs could not be found out, or a thread could not be pinned or started.
    #[error("threads cannot be pinned to CPUs: {0}")]
    Pinning(#[from] io::Error),
    /// One of the two threads ended early.
    #[error("a thread of the comparison failed")]
    Thread,
}

/// Compares the counter of the first allowed CPU with that of every other one, within 300 ms.
///
/// # Errors
/// When threads cannot be pinned.
pub fn compare_cpus(kind: CounterId) -> Result<CpuAgreement, AgreementError> {
    let cpus = allowed_cpus()?;
    let begin = Instant::now();
    let mut all = CpuAgreement { cpus: 1, ..CpuAgreement::default() };
    let Some((&first, others)) = cpus.split_first() else { return Ok(all) };
    for &other in others {
        if begin.elapsed() > TIME_IN_ALL {
            break;
        }
        all.add(play(kind, [first, other])?);
        all.cpus += 1;
    }
    Ok(all)
}

impl CpuAgreement {
    fn add(&mut self, other: CpuAgreement) {
        self.handovers += other.handovers;
        self.violations += other.violations;
        self.worst = self.worst.max(other.worst);
    }
}

/// The ball: whose turn it is, and the last reading.
#[derive(Default)]
struct Ball {
    turn: AtomicU64,
    reading: AtomicU64,
}

fn play(kind: CounterId, cpus: [usize; 2]) -> Result<CpuAgreement, AgreementError> {
    let ball = Ball::default();
    ball.reading.store(read_ordered(kind).raw(), Ordering::Relaxed);
    let deadline = Instant::now() + TIME_PER_PAIR;
    std::thread::scope(|scope| {
        let players = [(0, cpus[0]), (1, cpus[1])].map(|(side, cpu)| {
            let ball = &ball;
            std::thread::Builder::new().spawn_scoped(scope, move || -> io::Result<CpuAgreement> {
                pin_to(cpu)?;
                Ok(play_side(kind, ball, side, deadline))
            })
        });
        let mut both = CpuAgreement::default();
        for player in players {
            both.add(player?.join().map_err(|_| AgreementError::Thread)??);
        }
        Ok(both)
    })
}

/// Plays the turns of one side (0 has the even turns), until they are used up or the time is.
fn play_side(kind: CounterId, ball: &Ball, side: u64, deadline: Instant) -> CpuAgreement {
    let mut seen = CpuAgreement::default();
    for turn in (side..TURNS).step_by(2) {
        if !wait_for(ball, turn, deadline) {
            break;
        }
        let theirs = Counter::from_raw(ball.reading.load(Ordering::Relaxed));
        let ours = read_ordered(kind);
        seen.handovers += 1;
        if theirs.is_after(ours) {
            seen.violations += 1;
            seen.worst = seen.worst.max(theirs - ours);
        }
        ball.reading.store(ours.raw(), Ordering::Relaxed);
        ball.turn.store(turn + 1, Ordering::Release);
    }
    seen
}

/// Spins until it is `turn`; false when the deadline comes first. The clock is asked rarely, so that handovers stay
/// short.
fn wait_for(ball: &Ball, turn: u64, deadline: Instant) -> bool {
    let mut spins = 0_u32;
    while ball.turn.load(Ordering::Acquire) != turn {
        core::hint::spin_loop();
        spins = spins.wrapping_add(1);
        if spins.is_multiple_of(256) && Instant::now() > deadline {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_clock_agrees_between_cpus() {
        let agreement = compare_cpus(CounterId::MonotonicRaw).unwrap();
        assert_eq!(agreement.violations, 0, "{agreement:?}");
        assert_eq!(agreement.cpus > 1, agreement.handovers > 0, "{agreement:?}");
    }

    #[test]
    fn a_reading_ahead_of_ours_is_a_violation() {
        let ball = Ball::default();
        let ahead = read_ordered(CounterId::MonotonicRaw) + Ticks::from_raw(3_600_000_000_000);
        ball.reading.store(ahead.raw(), Ordering::Relaxed);
        let seen = play_side(CounterId::MonotonicRaw, &ball, 0, Instant::now());
        assert_eq!((seen.handovers, seen.violations), (1, 1));
        assert!(seen.worst > Ticks::from_raw(3_500_000_000_000));
    }
}
