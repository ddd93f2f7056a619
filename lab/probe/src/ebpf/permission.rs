//! What forbids eBPF on this host, as far as that is known before the programs are loaded.

use std::fs;
use std::path::Path;

const BTF: &str = "/sys/kernel/btf/vmlinux";
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

const STATUS: &str = "/proc/self/status";
/// What a process without the rights needs.
const NEEDED: &str = "it takes root, or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN";
/// What keeps a process with all rights from it.
const NOT_IN_KERNEL: &str = "not for a missing right: the kernel was configured without this kind of program";

/// Why eBPF cannot work, if that is known.
pub(super) fn hindrance() -> Option<String> {
    if !Path::new(BTF).exists() {
        return Some(format!("the kernel does not describe its types: no {BTF} (CONFIG_DEBUG_INFO_BTF)"));
    }
    let lockdown = fs::read_to_string(LOCKDOWN).unwrap_or_default();
    is_confidential(&lockdown).then(|| "lockdown forbids to read the kernel's memory ([confidentiality])".to_owned())
}

/// The file lists all modes, with the active one in brackets.
fn is_confidential(lockdown: &str) -> bool {
    lockdown.contains("[confidentiality]")
}

/// The kernel's error when the programs were loaded, with a remedy where there is one.
pub(super) fn explain(error: &libbpf_rs::Error) -> String {
    match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => {
            let status = fs::read_to_string(STATUS).unwrap_or_default();
            let remedy = if has_rights(&status) { NOT_IN_KERNEL } else { NEEDED };
            format!("{} ({remedy})", said(error))
        }
        _ => said(error),
    }
}

/// Whether the effective capabilities in the kernel's description of a process suffice for eBPF.
fn has_rights(status: &str) -> bool {
    const SYS_ADMIN: u64 = 1 << 21;
    const PERFMON_AND_BPF: u64 = 1 << 38 | 1 << 39;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    effective & SYS_ADMIN != 0 || effective & PERFMON_AND_BPF == PERFMON_AND_BPF
}

/// All of it in one line.
fn said(error: &libbpf_rs::Error) -> String {
    let text = format!("{error:#}");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_read_from_the_effective_capabilities() {
        let status = |mask: &str| format!("Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t{mask}\n");
        assert!(has_rights(&status("000001ffffffffff")) && has_rights(&status("000000c000000000")));
        assert!(!has_rights(&status("0000000000000000")) && !has_rights(&status("0000008000000000")));
        assert!(!has_rights(""));
    }

    #[test]
    fn only_the_mode_that_holds_counts() {
        assert!(is_confidential("none integrity [confidentiality]"));
        assert!(!is_confidential("[none] integrity confidentiality"));
        assert!(!is_confidential("none [integrity] confidentiality"));
        assert!(!is_confidential(""));
    }
}
