//! Real-time priorities: asked for, and said where they are refused.

use std::process::Command;

/// Asks for first-in-first-out scheduling of the calling thread, and of those that it starts from now on. Returns the
/// result in words: `fifo 50`, `normal` without a wish, `normal, because: ...` where it is not permitted.
pub fn raise_priority(priority: Option<u8>) -> String {
    let Some(priority) = priority else { return "normal".to_owned() };
    // PID/task/TID: chrt changes one thread.
    let thread = std::fs::read_link("/proc/thread-self");
    let thread = thread.ok().and_then(|link| Some(link.file_name()?.to_string_lossy().into_owned()));
    let Some(thread) = thread else { return "normal, because: there is no /proc/thread-self".to_owned() };
    match Command::new("chrt").args(["-f", "-p", &priority.to_string(), &thread]).output() {
        Ok(output) if output.status.success() => format!("fifo {priority}"),
        Ok(output) => format!("normal, because: {}", String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => format!("normal, because chrt: {error}"),
    }
}

/// The priority of what controls the run: above the algorithm's, as in the paper, so that it can always be stopped.
pub(super) fn above(priority: Option<u8>) -> Option<u8> {
    priority.map(|priority| priority.saturating_add(1).min(99))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_wish_nothing_is_asked() {
        assert_eq!(raise_priority(None), "normal");
    }

    /// Only the thread that asks gets it.
    #[test]
    fn a_thread_gets_its_own_priority_or_the_reason() {
        let thread = std::thread::spawn(|| {
            let granted = raise_priority(Some(3));
            let policy = std::fs::read_to_string("/proc/thread-self/sched").unwrap_or_default();
            let line = policy.lines().find(|line| line.starts_with("policy")).unwrap_or_default().to_owned();
            (granted, line)
        });
        let (granted, policy) = thread.join().unwrap();
        let is_fifo = policy.ends_with(" 1");
        match granted.as_str() {
            "fifo 3" => assert!(is_fifo || policy.is_empty(), "{policy}"),
            refused => assert!(refused.starts_with("normal, because") && !is_fifo, "{refused} {policy}"),
        }
    }

    #[test]
    fn control_stands_above_the_algorithm() {
        assert_eq!([None, Some(50), Some(99)].map(above), [None, Some(51), Some(99)]);
    }
}
