//! One thread that goes from CPU to CPU and reads the counter on each: time must never run backwards on the way.
//!
//! A reading on another CPU lies between the reading before it and the one after it on the first CPU. Where it does
//! not, the counters disagree by at least what is missing. The move to another CPU takes some microseconds, so smaller
//! offsets remain unseen; the comparison at the start ([`compare_cpus`](crate::compare_cpus)) sees those. It costs far
//! less, and fits a daemon of one thread.

use crate::affinity::{allowed_cpus, set_allowed};
use crate::{CounterId, try_read};
use core::fmt;
use ffclock_units::{Counter, Ticks};
use std::io;

/// A CPU whose counter is not what the others' say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuDisagreement {
    /// The CPU that the reading was made on.
    pub cpu: usize,
    /// The CPU that it was compared with.
    pub with: usize,
    /// The last reading there before, the reading, and the first reading there after.
    pub readings: [Counter; 3],
}

impl CpuDisagreement {
    /// How far the counter of `cpu` is ahead of the other at least; negative when it is behind.
    pub fn ahead(&self) -> Ticks {
        let [before, here, after] = self.readings;
        if before.is_after(here) { here - before } else { here - after }
    }
}

impl fmt::Display for CpuDisagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, here, after] = self.readings.map(Counter::raw);
        let (side, by) =
            if self.ahead() < Ticks::ZERO { ("behind", -self.ahead().raw()) } else { ("ahead of", self.ahead().raw()) };
        let CpuDisagreement { cpu, with, .. } = self;
        write!(
            f,
            "the counter of CPU {cpu} is at least {by} ticks {side} that of CPU {with}: it showed {here} between {before} and {after} there"
        )
    }
}

/// Visits the CPUs in turn, one at each look.
#[derive(Clone, Debug)]
pub struct CpuRound {
    kind: CounterId,
    cpus: Vec<usize>,
    next: usize,
}

impl CpuRound {
    /// Visits every CPU that this thread may run on.
    ///
    /// # Errors
    /// They cannot be found out.
    pub fn start(kind: CounterId) -> io::Result<Self> {
        Ok(CpuRound { kind, cpus: allowed_cpus()?, next: 1 })
    }

    /// What is read on each.
    pub fn kind(&self) -> CounterId {
        self.kind
    }

    /// Visits the next CPU from the first one and returns; the thread may run where it could before. Nothing where
    /// there is one CPU.
    ///
    /// # Errors
    /// The thread cannot be moved.
    pub fn look(&mut self) -> io::Result<Option<CpuDisagreement>> {
        let Some((&home, others)) = self.cpus.split_first() else { return Ok(None) };
        let Some(&away) = others.get(self.next.saturating_sub(1) % others.len().max(1)) else { return Ok(None) };
        self.next = self.next % others.len() + 1;
        let was_allowed = allowed_cpus()?;
        let readings = self.visit(home, away);
        set_allowed(&was_allowed)?;
        Ok(readings?.and_then(|readings| judge(home, away, readings)))
    }

    /// `None` where the counter cannot be read now, which says nothing about the CPUs.
    fn visit(&self, home: usize, away: usize) -> io::Result<Option<[Counter; 3]>> {
        let on = |cpu: usize| set_allowed(&[cpu]).map(|()| try_read(self.kind).ok());
        let [before, here, after] = [on(home)?, on(away)?, on(home)?];
        Ok(before.zip(here).zip(after).map(|((before, here), after)| [before, here, after]))
    }
}

fn judge(home: usize, away: usize, readings: [Counter; 3]) -> Option<CpuDisagreement> {
    let [before, here, after] = readings;
    let in_order = !before.is_after(here) && !here.is_after(after);
    (!in_order).then_some(CpuDisagreement { cpu: away, with: home, readings })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_outside_the_others_is_a_disagreement_with_its_size() {
        let readings = |values: [u64; 3]| values.map(Counter::from_raw);
        assert_eq!(judge(0, 3, readings([100, 150, 200])), None);
        assert_eq!(judge(0, 3, readings([u64::MAX - 5, 3, 9])), None, "a turn of the counter is no step back");
        let behind = judge(0, 3, readings([1000, 400, 1200])).unwrap();
        assert_eq!((behind.cpu, behind.with, behind.ahead()), (3, 0, Ticks::from_raw(-600)));
        assert!(behind.to_string().contains("CPU 3 is at least 600 ticks behind that of CPU 0"), "{behind}");
        let ahead = judge(0, 1, readings([1000, 1900, 1200])).unwrap();
        assert_eq!(ahead.ahead(), Ticks::from_raw(700));
        assert!(ahead.to_string().contains("700 ticks ahead of"), "{ahead}");
    }

    #[test]
    fn the_kernels_clock_agrees_and_the_thread_keeps_its_freedom() {
        let before = allowed_cpus().unwrap();
        let mut round = CpuRound::start(CounterId::MonotonicRaw).unwrap();
        for _ in 0..2 * before.len() {
            assert_eq!(round.look().unwrap(), None);
        }
        assert_eq!(allowed_cpus().unwrap(), before);
    }
}
