//! Makes the kernel's feed-forward clock follow the published one.

use super::{Keeper, StartError, about};
use crate::config::{DaemonConfig, KernelClockUse};
use crate::host_counter::Host;
use crate::kernel_clock::KernelClockDriver;
use ffclock_counter::ffcounter::ModuleCounter;
use ffclock_counter::{Choice, CounterId};
use ffclock_units::{Moment, Mono};
use std::io;

/// The counter that the kernel's clock runs on.
const KERNELS: CounterId = CounterId::Module(ModuleCounter::Active);

/// The counter to choose: the kernel's clock understands only readings of its own counter.
pub(super) fn choice(config: &DaemonConfig) -> Choice {
    match (config.kernel_clock, config.counter.0) {
        (KernelClockUse::Drive, Choice::Auto) => Choice::Fixed(KERNELS),
        (_, choice) => choice,
    }
}

/// The driver of the kernel's clock, if it is wanted.
///
/// # Errors
/// The kernel has no such clock, or the counter is not its own.
pub(super) fn driver(
    host: &dyn Host,
    config: &DaemonConfig,
    now: Moment<Mono>,
) -> Result<Option<KernelClockDriver>, StartError> {
    if config.kernel_clock == KernelClockUse::Leave {
        return Ok(None);
    }
    let refused = |why: &str| about("kernel_clock")(io::Error::other(why.to_owned()));
    let Some(clock) = host.kernel_clock() else {
        return Err(refused("only FreeBSD's kernel can keep a feed-forward clock"));
    };
    if choice(config) != Choice::Fixed(KERNELS) {
        return Err(refused("the kernel's clock runs on its own counter: set counter to module:active or auto"));
    }
    Ok(Some(KernelClockDriver::new(clock, now)))
}

impl Keeper<'_> {
    pub(super) fn drive_kernel(&mut self) {
        let now = self.context.now;
        if self.kernel_clock.as_ref().is_none_or(|driver| driver.due() > now) {
            return;
        }
        let counter = self.host_counter.read();
        // A reading of an epoch whose break is still unnoticed must not reach the kernel.
        self.watch_counter();
        let Some(driver) = &mut self.kernel_clock else { return };
        let Some(publication) = &self.published else { return driver.wait(now) };
        match driver.hand_over(&publication.estimate, counter, &self.leaps, now) {
            Ok(false) => {}
            Ok(true) => self.context.journal.notice("the kernel's feed-forward clock follows", ""),
            Err(error) => self.context.journal.warn("the kernel's clock cannot be driven", &error.to_string()),
        }
    }

    pub(super) fn let_kernel_go(&mut self) {
        if let Some(Err(error)) = self.kernel_clock.as_mut().map(KernelClockDriver::let_go) {
            self.context.journal.warn("the kernel's clock cannot be marked unsynchronised", &error.to_string());
        }
    }
}
