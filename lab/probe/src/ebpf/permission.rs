//! What forbids eBPF on this host, as far as that is known before the programs are loaded.

use std::fs;
use std::path::Path;

const BTF: &str = "/sys/kernel/btf/vmlinux";
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

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
            format!(
                "{} (it takes root, or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, and a kernel that has it)",
                said(error)
            )
        }
        _ => said(error),
    }
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
    fn only_the_mode_that_holds_counts() {
        assert!(is_confidential("none integrity [confidentiality]"));
        assert!(!is_confidential("[none] integrity confidentiality"));
        assert!(!is_confidential("none [integrity] confidentiality"));
        assert!(!is_confidential(""));
    }
}
