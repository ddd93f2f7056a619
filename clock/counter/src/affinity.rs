//! Which CPUs a thread may run on. One of the files that may hold unsafe code.

use std::io;

#[cfg(target_os = "linux")]
use libc::cpu_set_t as CpuSet;
#[cfg(target_os = "freebsd")]
use libc::cpuset_t as CpuSet;

/// The CPUs that this thread may run on, by number, ascending.
///
/// # Errors
/// The kernel does not give them.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    // SAFETY: a cpu_set_t is an array of integers, for which zero is a value.
    let mut set: CpuSet = unsafe { core::mem::zeroed() };
    // SAFETY: `set` has the size that the call gets and outlives it.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<CpuSet>(), &raw mut set) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: every index lies within the set.
    Ok((0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect())
}

/// Keeps the calling thread on `cpu` from now on.
///
/// # Errors
/// There is no such CPU, or the thread may not run there.
pub fn pin_to(cpu: usize) -> io::Result<()> {
    set_allowed(&[cpu])
}

/// Lets the calling thread run on `cpus` and nowhere else from now on.
pub(crate) fn set_allowed(cpus: &[usize]) -> io::Result<()> {
    if cpus.iter().any(|&cpu| cpu >= libc::CPU_SETSIZE as usize) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: a cpu_set_t is an array of integers, for which zero is a value.
    let mut set: CpuSet = unsafe { core::mem::zeroed() };
    // SAFETY: every index was found to lie within the set.
    cpus.iter().for_each(|&cpu| unsafe { libc::CPU_SET(cpu, &mut set) });
    // SAFETY: `set` has the size that the call gets and outlives it.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<CpuSet>(), &raw const set) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_run_on_its_cpu_only() {
        let cpu = *allowed_cpus().unwrap().last().unwrap();
        let seen = std::thread::spawn(move || {
            pin_to(cpu).unwrap();
            allowed_cpus().unwrap()
        });
        assert_eq!(seen.join().unwrap(), [cpu]);
        assert!(pin_to(usize::MAX).is_err());
    }
}
