//! What machine this is, and which of its boots, as far as the processor and the kernel say.

/// What names the present boot: two programs that read the same text run in the same one. Empty where the kernel does
/// not say.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Whether this is a virtual machine, which may go on another machine after a restart. Where the kernel does not say,
/// it may be one.
#[cfg(target_os = "freebsd")]
pub fn is_guest() -> bool {
    crate::sysctl::text(c"kern.vm_guest").map_or(true, |machine| machine != "none")
}

/// Whether this is a virtual machine, which may go on another machine after a restart.
#[cfg(target_os = "linux")]
pub fn is_guest() -> bool {
    hypervisor().is_some()
}

/// The name that a hypervisor gives itself; `None` on a machine without one. The text is the hypervisor's: not to be
/// shown to a terminal as it stands.
#[cfg(target_arch = "x86_64")]
pub fn hypervisor() -> Option<String> {
    crate::cpu::hypervisor()
}

/// The name that the kernel gives the hypervisor; `None` on a machine without one, or where the kernel does not say.
#[cfg(target_arch = "aarch64")]
pub fn hypervisor() -> Option<String> {
    std::fs::read_to_string("/sys/hypervisor/type").ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_has_one_name() {
        let boot = boot_id();
        assert_eq!(boot, boot_id());
        assert!(!boot.contains(char::is_whitespace) && (cfg!(target_os = "freebsd") || boot.len() == 36), "{boot}");
    }

    /// The kernel lists the same bit of CPUID among the flags of each CPU.
    #[test]
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn the_processor_and_the_kernel_say_the_same_of_a_hypervisor() {
        let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        assert_eq!(is_guest(), cpus.split_ascii_whitespace().any(|flag| flag == "hypervisor"));
    }
}
