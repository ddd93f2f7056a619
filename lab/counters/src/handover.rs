//! How far the counters of two CPUs lie apart, by readings that are handed over like a ball.
//!
//! A reading made on one CPU and the first one made on the other after it arrived differ by the way and by the offset
//! of the two counters. The shortest ways in both directions enclose the offset, as in a round trip over a network.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ffclock_counter::{CounterId, pin_to, read_ordered};
use ffclock_units::{Counter, Ticks};
use serde::{Deserialize, Serialize};
use std::io;

/// Handovers of one pair of CPUs, both directions together.
const TURNS: u64 = 4000;
/// Spins before the partner is taken for absent: some tens of milliseconds.
const PATIENCE: u32 = 20_000_000;

/// What the handovers between two CPUs showed, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Handover {
    /// The CPUs.
    pub cpus: [usize; 2],
    /// Readings handed over.
    pub count: u64,
    /// The shortest way from the first to the second, with the offset of the second's counter.
    pub there: i64,
    /// The shortest way back, less that offset.
    pub back: i64,
    /// The median way, both directions together.
    pub median: i64,
    /// Readings that lay before one handed over: the counter ran backwards from one CPU to the other.
    pub violations: u64,
}

impl Handover {
    /// How far the second CPU's counter is ahead of the first's, and the uncertainty of that, in ticks.
    pub fn offset(&self) -> (f64, f64) {
        ((self.there - self.back) as f64 / 2.0, (self.there + self.back).max(0) as f64 / 2.0)
    }
}

struct HandoverBall {
    turn: AtomicU64,
    reading: AtomicU64,
    given_up: AtomicBool,
}

/// Plays between two CPUs; `None` when they were too busy to meet.
///
/// # Errors
/// Threads cannot be pinned or started.
pub fn play(cpus: [usize; 2]) -> io::Result<Option<Handover>> {
    let first = read_ordered(CounterId::CPU).raw();
    let ball =
        HandoverBall { turn: AtomicU64::new(0), reading: AtomicU64::new(first), given_up: AtomicBool::new(false) };
    let ways = std::thread::scope(|scope| {
        let sides = [0, 1].map(|side: usize| {
            let ball = &ball;
            std::thread::Builder::new().spawn_scoped(scope, move || -> io::Result<Vec<i64>> {
                let pinned = pin_to(cpus[side]);
                if pinned.is_err() {
                    ball.given_up.store(true, Ordering::Release);
                }
                pinned.map(|()| play_side(ball, side as u64))
            })
        });
        sides.map(|side| side.and_then(|side| side.join().map_err(|_| io::Error::other("a thread failed"))?))
    });
    let [back, there] = ways;
    Ok(summarise(cpus, &there?, &back?))
}

/// Plays one side's turns; each difference is the way to this side. The first turn of side 0 has no partner and is left
/// out.
fn play_side(ball: &HandoverBall, side: u64) -> Vec<i64> {
    let mut ways = Vec::with_capacity(TURNS as usize / 2);
    for turn in (side..TURNS).step_by(2) {
        if !wait_for(ball, turn) {
            break;
        }
        let theirs = Counter::from_raw(ball.reading.load(Ordering::Relaxed));
        let ours = read_ordered(CounterId::CPU);
        if turn > 0 {
            ways.push((ours - theirs).raw());
        }
        ball.reading.store(ours.raw(), Ordering::Relaxed);
        ball.turn.store(turn + 1, Ordering::Release);
    }
    ways
}

fn wait_for(ball: &HandoverBall, turn: u64) -> bool {
    for _ in 0..PATIENCE {
        if ball.turn.load(Ordering::Acquire) == turn {
            return true;
        }
        if ball.given_up.load(Ordering::Acquire) {
            return false;
        }
        core::hint::spin_loop();
    }
    ball.given_up.store(true, Ordering::Release);
    false
}

fn summarise(cpus: [usize; 2], there: &[i64], back: &[i64]) -> Option<Handover> {
    let mut all: Vec<i64> = there.iter().chain(back).copied().collect();
    all.sort_unstable();
    let violations = all.iter().filter(|way| Ticks::from_raw(**way) < Ticks::ZERO).count() as u64;
    Some(Handover {
        cpus,
        count: all.len() as u64,
        there: *there.iter().min()?,
        back: *back.iter().min()?,
        median: *all.get(all.len() / 2)?,
        violations,
    })
}

/// The first of `cpus` against each other one. Pairs too busy to meet are left out.
///
/// # Errors
/// Threads cannot be pinned or started.
pub fn play_all(cpus: &[usize]) -> io::Result<Vec<Handover>> {
    let Some((&first, others)) = cpus.split_first() else { return Ok(Vec::new()) };
    others.iter().filter_map(|&other| play([first, other]).transpose()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_counter::allowed_cpus;

    #[test]
    fn offsets_lie_within_the_shortest_ways() {
        let seen = summarise([0, 1], &[130, 150, 900], &[70, 90]).unwrap();
        assert_eq!(seen.offset(), (30.0, 100.0));
        assert_eq!((seen.count, seen.median, seen.violations), (5, 130, 0));
        let behind = summarise([0, 1], &[-500, 20], &[600]).unwrap();
        assert_eq!((behind.violations, behind.offset()), (1, (-550.0, 50.0)));
        assert!(summarise([0, 1], &[], &[]).is_none());
    }

    #[test]
    fn the_cpus_of_this_host_hand_readings_over() {
        let cpus = allowed_cpus().unwrap();
        let seen = play_all(&cpus).unwrap();
        if cpus.len() < 2 {
            println!("SKIP: one CPU has no other to hand over to");
            return;
        }
        assert!(seen.iter().all(|pair| pair.count > 0 && pair.cpus[0] == cpus[0]), "{seen:?}");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_and_nothing_hangs() {
        assert!(play([0, 1 << 20]).is_err());
    }
}
