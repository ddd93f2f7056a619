//! The counters that this host offers, how they are read, and whether they can be trusted.
//!
//! A feed-forward clock rests on a counter that is never adjusted. Two qualify: the CPU's own (the TSC on x86-64, the
//! virtual counter on aarch64), read in about 17 ns with one instruction, and the kernel's `CLOCK_MONOTONIC_RAW`, read
//! through libc so that a tool that stands between a program and its libc sees every reading. This crate reads them
//! ([`read_ordered`], [`read_bracketed`]), says how long a tick nominally lasts ([`nominal`]), chooses between them and
//! gives the reason ([`choose`]), and notices when the run of a counter was interrupted ([`Continuity`]): readings from
//! before and after a break belong to different epochs.
//!
//! FreeBSD has no clock that is never slewed: its `CLOCK_MONOTONIC` stands in wherever only a witness is needed, and
//! the counter of its kernel's feed-forward clock ([`ffcounter::ModuleCounter::Active`]) takes the raw clock's place
//! among those that qualify.
//!
//! It never sets or steers anything.
#![deny(missing_docs)]

#[cfg(not(all(
    any(target_os = "linux", target_os = "freebsd"),
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("the counters of this platform are not known: 64-bit Linux or FreeBSD on x86-64 or aarch64 is needed");

mod affinity;
mod agreement;
mod bracket;
mod choice;
mod clocks;
mod clocksource;
mod continuity;
mod cpu;
mod cpu_round;
pub mod ffcounter;
mod machine;
mod nominal;
#[cfg(target_os = "freebsd")]
mod sysctl;
mod usable;

pub use affinity::{allowed_cpus, pin_to};
pub use agreement::{AgreementError, CpuAgreement, compare_cpus};
pub use bracket::{Bracketed, read_bracketed, read_narrowest};
pub use choice::{Check, Choice, Chosen, choose};
pub use clocks::{ClockReading, HostClock, raw_clock};
pub use clocksource::{available as available_clocksources, current as current_clocksource};
pub use continuity::{Break, Continuity, HostReadings, Observation, Readings, Trust, read_suspended};
#[cfg(target_arch = "x86_64")]
pub use cpu::{has_rdtscp, read_rdtscp};
pub use cpu_round::{CpuDisagreement, CpuRound};
pub use ffclock_units::CounterId;
pub use machine::{boot_id, hypervisor, is_guest};
pub use nominal::{Nominal, NominalError, NominalSource, nominal};
pub use usable::{SECOND_BEST, USABLE, UnknownCounter, read_ordered, read_unordered, try_read, usable_counter};
