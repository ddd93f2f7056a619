//! A load in the context of soft interrupts, by eBPF: a timer of the kernel's on each processor, which burns as long as
//! is asked, before every program and whatever its priority.
//!
//! It loads the processors that this process may run on, not the one that it runs on. What it reports is counted by
//! the kernel's program. Two of them would leave programs nothing, so a second one is refused.

use super::Done;
use crate::Failure;
use ffclock_probe::ebpf::{SOFTIRQ_SHARE_MOST, SOFTIRQ_SLICE, SoftirqLoad};
use ffclock_theta_live::LoadLevel;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Write, stderr};
use std::time::Duration;

/// There on every machine that can be loaded in this way, and once. Locked by the load that runs.
const ONE_FOR_ALL: &str = "/sys/kernel/btf/vmlinux";

/// Soft interrupts for the level's share of the time.
pub(super) fn burn(level: LoadLevel, length: Duration) -> Result<Done, Failure> {
    possible(level)?;
    let one = File::open(ONE_FOR_ALL)?;
    flock(&one, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        Errno::WOULDBLOCK => Failure::from("softirq: another such load runs on this machine"),
        other => Failure::from(format!("softirq: {ONE_FOR_ALL}: {other}")),
    })?;
    let load =
        SoftirqLoad::begin(&course(level), length).map_err(|reason| Failure::from(format!("softirq: {reason}")))?;
    std::thread::sleep(length);
    let burnt = load.burnt();
    if burnt.elsewhere > 0 {
        let (strays, all) = (burnt.elsewhere, burnt.callbacks);
        let _ = writeln!(stderr(), "ffclock-lab: {strays} of {all} callbacks came on another processor than theirs");
    }
    Ok(Done { busy_percent: Some(100.0 * burnt.share), timers: burnt.callbacks, ..Done::default() })
}

/// Whether this machine and program can do it at all.
pub(in crate::theta) fn possible(level: LoadLevel) -> Result<(), Failure> {
    if course(level).iter().any(|share| *share > SOFTIRQ_SHARE_MOST) {
        let most = 100.0 * SOFTIRQ_SHARE_MOST;
        return Err(Failure::usage(format!("softirq: {level} % is too much, the machine needs some: up to {most} %")));
    }
    SoftirqLoad::hindrance().map_or(Ok(()), |reason| Err(Failure::from(format!("softirq: {reason}"))))
}

/// The share of each slice, in its middle: its edges belong to two.
fn course(level: LoadLevel) -> Vec<f64> {
    let slice = SOFTIRQ_SLICE.as_secs_f64();
    let slices = (LoadLevel::COURSE_S / slice).round() as u32;
    (0..slices).map(|number| level.share((f64::from(number) + 0.5) * slice)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_that_of_the_level() {
        let of = |text: &str| course(text.parse().unwrap());
        assert_eq!(of("30"), vec![0.3; 2003]);
        let jumps = of("jumps:10..90");
        assert_eq!([jumps[0], jumps[9], jumps[10], jumps[19], jumps[20]], [0.1, 0.1, 0.9, 0.9, 0.1]);
        let ramp = of("ramp:0..80");
        assert!((ramp[500] - 0.4).abs() < 1e-3 && (ramp[1001] - 0.8).abs() < 1e-3 && ramp[2002] < 1e-3);
    }

    #[test]
    fn a_level_that_leaves_programs_nothing_is_refused() {
        for level in ["96", "ramp:0..99", "jumps:10..95.5"] {
            let refused = possible(level.parse().unwrap()).unwrap_err();
            assert!(refused.message.contains("up to 95 %"), "{level}: {refused:?}");
        }
    }

    #[cfg(not(feature = "ebpf"))]
    #[test]
    fn a_program_without_ebpf_says_so() {
        let refused = burn(LoadLevel::Constant(0.1), Duration::from_millis(10)).unwrap_err();
        assert!(refused.message.contains("cargo feature `ebpf`"), "{refused:?}");
    }
}
