//! The kernel's threads for soft interrupts with a real-time priority, as in the paper, and back.

use crate::Failure;
use std::process::{Child, Command, Stdio};

/// Waits until nothing can write to its input any more, which a killed parent cannot prevent, and resets the threads.
/// What is sent to the whole group of a terminal does not end it.
const GIVE_BACK: &str = r#"trap "" INT TERM HUP; read -r _; for thread; do chrt --other --pid 0 "$thread"; done"#;
/// The policy of an ordinary task.
const ORDINARY: &str = "0";

/// They have a real-time priority as long as this lives.
pub(super) struct UrgentSoftirqs(Child);

impl UrgentSoftirqs {
    /// Raises the threads of all processors.
    pub(super) fn begin(priority: u8) -> Result<Self, Failure> {
        let threads = ordinary_threads()?;
        if threads.is_empty() {
            return Err("--softirq-priority: no ksoftirqd with normal priority is to be seen here".into());
        }
        let mut keeper = Command::new("sh");
        keeper.args(["-c", GIVE_BACK, "sh"]).args(&threads).stdin(Stdio::piped());
        let keeper = keeper.spawn().map_err(|error| Failure::from(format!("--softirq-priority: sh: {error}")))?;
        // From here on they are given back, whatever happens.
        let urgent = UrgentSoftirqs(keeper);
        for thread in &threads {
            let output = Command::new("chrt").args(["--fifo", "--pid", &priority.to_string(), thread]).output();
            let output = output.map_err(|error| Failure::from(format!("--softirq-priority: chrt: {error}")))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(format!("--softirq-priority: {}", said.trim()).into());
            }
        }
        Ok(urgent)
    }
}

impl Drop for UrgentSoftirqs {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Fails only if it has ended by itself.
        let _ = self.0.wait();
    }
}

/// Each ksoftirqd that has no priority of its own already.
fn ordinary_threads() -> Result<Vec<String>, Failure> {
    let mut threads = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        // A process may have ended meanwhile.
        let stat = std::fs::read_to_string(format!("/proc/{name}/stat")).unwrap_or_default();
        if stat.split_once(" (").is_some_and(|(_, rest)| rest.starts_with("ksoftirqd/"))
            && policy(&stat) == Some(ORDINARY)
        {
            threads.push(name);
        }
    }
    Ok(threads)
}

/// The scheduling policy in a line of /proc/PID/stat: field 41, the name being the second.
fn policy(stat: &str) -> Option<&str> {
    stat.rsplit_once(") ")?.1.split_whitespace().nth(38)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_task_is_known_by_its_policy() {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        assert_eq!(policy(&stat), Some(ORDINARY), "{stat}");
        assert_eq!(policy("1 (x) S 1"), None);
    }
}
