//! The CPU's counter and what the CPU says about it. One of the files that may hold unsafe code.
//!
//! On x86-64 the ordered reading is `lfence; rdtsc`: it costs the same as `rdtscp` (16.6 to 17.1 ns against 16.6 to
//! 16.9 ns in the best of 30 runs of 200,000; a bare `rdtsc` 12.2 ns), exists on every CPU and clobbers no third
//! register. Both wait until all earlier loads are done; neither holds back what follows, which the next ordered
//! reading does.

use ffclock_units::Counter;

/// Reads the TSC once all earlier loads are done.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn read_ordered() -> Counter {
    use core::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: both instructions exist on every x86-64 CPU and touch no memory. A kernel that forbids rdtsc
    // (PR_TSC_SIGSEGV) kills the process, which is safe too.
    Counter::from_raw(unsafe {
        _mm_lfence();
        _rdtsc()
    })
}

/// Reads the TSC at a moment that the CPU chooses, unordered.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn read_unordered() -> Counter {
    // SAFETY: as in `read_ordered`.
    Counter::from_raw(unsafe { core::arch::x86_64::_rdtsc() })
}

/// Reads the TSC with `rdtscp`, which waits for earlier loads as the ordered reading does. For comparison; ask
/// [`has_rdtscp`] first: a CPU without the instruction ends the process.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn read_rdtscp() -> Counter {
    let mut cpu = 0;
    // SAFETY: `cpu` outlives the instruction, which touches nothing else. Where it does not exist the process is
    // killed, which is safe too.
    Counter::from_raw(unsafe { core::arch::x86_64::__rdtscp(&raw mut cpu) })
}

/// Whether the CPU has `rdtscp` (CPUID 0x80000001, EDX bit 27).
#[cfg(target_arch = "x86_64")]
pub fn has_rdtscp() -> bool {
    cpuid(0x8000_0000, 0x8000_0001).is_some_and(|leaf| leaf.edx & (1 << 27) != 0)
}

/// The name that a hypervisor gives itself (CPUID leaf 0x40000000); `None` on a machine without one. The text
/// is the hypervisor's: not to be shown to a terminal as it stands.
#[cfg(target_arch = "x86_64")]
pub(crate) fn hypervisor() -> Option<String> {
    let is_guest = cpuid(0, 1).is_some_and(|leaf| leaf.ecx & (1 << 31) != 0);
    is_guest.then(|| {
        let leaf = raw_cpuid(0x4000_0000);
        let name: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|part| part.to_le_bytes()).collect();
        String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
    })
}

/// Reads the virtual counter once all earlier instructions are done.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn read_ordered() -> Counter {
    let ticks: u64;
    // SAFETY: Linux lets user space read this register. The block is not marked `nomem`, so the compiler moves no
    // access across it.
    unsafe {
        core::arch::asm!("isb", "mrs {ticks}, cntvct_el0", ticks = out(reg) ticks, options(nostack, preserves_flags))
    };
    Counter::from_raw(ticks)
}

/// Reads the virtual counter at a moment that the CPU chooses, unordered.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn read_unordered() -> Counter {
    let ticks: u64;
    // SAFETY: as in `read_ordered`.
    unsafe { core::arch::asm!("mrs {ticks}, cntvct_el0", ticks = out(reg) ticks, options(nostack, preserves_flags)) };
    Counter::from_raw(ticks)
}

/// The ticks per second that the firmware wrote into `cntfrq_el0`.
#[cfg(target_arch = "aarch64")]
pub(crate) fn announced_hertz() -> u64 {
    let hertz: u64;
    // SAFETY: user space may read this register, and reading it changes nothing.
    unsafe {
        core::arch::asm!("mrs {hertz}, cntfrq_el0", hertz = out(reg) hertz, options(nomem, nostack, preserves_flags))
    };
    hertz & 0xffff_ffff
}

/// The four registers that `cpuid` returns.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaf {
    pub(crate) eax: u32,
    pub(crate) ebx: u32,
    pub(crate) ecx: u32,
    pub(crate) edx: u32,
}

/// `cpuid` for `leaf` (subleaf 0), or `None` when `leaf` lies beyond the last one of its `range` (0, 0x4000_0000,
/// 0x8000_0000): the CPU would answer with the values of some other leaf.
#[cfg(target_arch = "x86_64")]
pub(crate) fn cpuid(range: u32, leaf: u32) -> Option<Leaf> {
    let last = raw_cpuid(range).eax;
    (last >= leaf && last & 0xf000_0000 == range).then(|| raw_cpuid(leaf))
}

#[cfg(target_arch = "x86_64")]
fn raw_cpuid(leaf: u32) -> Leaf {
    let (eax, ebx, ecx, edx): (u32, u64, u32, u32);
    // SAFETY: `cpuid` exists on every x86-64 CPU; rbx, which the compiler keeps for itself, is put back. (The intrinsic
    // of the standard library is an unsafe function in some supported compilers and a safe one in others.)
    unsafe {
        core::arch::asm!(
            "mov {saved}, rbx", "cpuid", "xchg {saved}, rbx",
            saved = out(reg) ebx, inout("eax") leaf => eax, inout("ecx") 0 => ecx, out("edx") edx,
            options(nomem, nostack, preserves_flags)
        );
    }
    Leaf { eax, ebx: ebx as u32, ecx, edx }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn the_vendor_is_a_word() {
        let leaf = cpuid(0, 0).unwrap();
        let name: Vec<u8> = [leaf.ebx, leaf.edx, leaf.ecx].iter().flat_map(|part| part.to_le_bytes()).collect();
        assert!(name.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' '), "{name:?}");
    }

    #[test]
    fn rdtscp_reads_the_same_counter() {
        if !has_rdtscp() {
            println!("SKIP: this CPU has no rdtscp");
            return;
        }
        let (before, between, after) = (read_ordered(), read_rdtscp(), read_ordered());
        assert!(!before.is_after(between) && !between.is_after(after), "{before:?} {between:?} {after:?}");
    }

    #[test]
    fn leaves_beyond_the_last_are_refused() {
        assert!(cpuid(0, 0x0fff_ffff).is_none());
        assert!(cpuid(0x8000_0000, 0x8fff_ffff).is_none());
    }
}
