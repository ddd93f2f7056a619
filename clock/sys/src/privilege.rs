//! Giving up what a service needed to start.

use crate::ffi;
use std::io;

/// Gives up every capability of this thread and of all threads that it starts from now on, and every way to gain one.
///
/// # Errors
/// The kernel refuses; nothing may be served then.
pub fn drop_privileges() -> io::Result<()> {
    ffi::drop_capabilities()
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_is_left() {
        let status = std::thread::spawn(|| {
            super::drop_privileges().unwrap();
            std::fs::read_to_string("/proc/thread-self/status").unwrap()
        });
        let status = status.join().unwrap();
        let value = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            u64::from_str_radix(line.split_ascii_whitespace().last().unwrap(), 16).unwrap()
        };
        assert_eq!(["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"].map(value), [0; 4]);
        assert_eq!(value("NoNewPrivs:"), 1);
    }
}
