//! Driving the feed-forward clock that FreeBSD's kernel can keep: every estimate that is published is handed to it (docs/freebsd.md).
//!
//! The page and the kernel's clock give the same time; the kernel stamps packets with it, and programs that know nothing of the page read it.

use ffclock_freebsd::{KernelEstimate, LeapBase};
use ffclock_units::{Counter, Estimate, LeapTable};
use std::io;

/// A clock of the kernel that follows whatever it is given.
pub(crate) trait KernelClock {
    /// Gives it an estimate.
    ///
    /// # Errors
    /// Why it does not take it.
    fn follow(&mut self, estimate: &KernelEstimate) -> io::Result<()>;
}

/// The kernel of this machine.
#[cfg(target_os = "freebsd")]
pub(crate) struct ThisKernel;

#[cfg(target_os = "freebsd")]
impl KernelClock for ThisKernel {
    fn follow(&mut self, estimate: &KernelEstimate) -> io::Result<()> {
        ffclock_freebsd::kernel::set_estimate(estimate)
    }
}

/// What was told to the kernel's clock.
pub(crate) struct KernelClockDriver {
    clock: Box<dyn KernelClock>,
    /// From the first estimate on.
    base: Option<LeapBase>,
    last: Option<KernelEstimate>,
}

impl KernelClockDriver {
    pub(crate) fn new(clock: Box<dyn KernelClock>) -> Self {
        KernelClockDriver { clock, base: None, last: None }
    }

    /// Hands an estimate over as of the reading `now`. Whether the kernel's clock had been left alone before.
    ///
    /// # Errors
    /// Why the kernel does not take it.
    pub(crate) fn hand_over(&mut self, estimate: &Estimate, now: Counter, leaps: &LeapTable) -> io::Result<bool> {
        let tai = estimate.time + estimate.period * (now - estimate.counter);
        let base = *self.base.get_or_insert_with(|| LeapBase::beginning_at(tai, leaps));
        let told = KernelEstimate::of(estimate, now, leaps, base).map_err(io::Error::other)?;
        self.clock.follow(&told)?;
        Ok(self.last.replace(told).is_none())
    }

    /// Tells the kernel that nobody stands behind its clock any more; it goes on with what it has.
    ///
    /// # Errors
    /// Why the kernel does not take it.
    pub(crate) fn let_go(&mut self) -> io::Result<()> {
        self.last.take().map_or(Ok(()), |last| self.clock.follow(&last.unsynchronised()))
    }
}
