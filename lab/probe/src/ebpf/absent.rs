//! What stands for the programs where this program was built without them.

use super::{Opened, ProgramScope, SitePassage, SoftirqBurnt};
use core::time::Duration;
use std::io;

const ABSENT: &str = "this program was built without it (cargo feature `ebpf`, which takes clang)";

/// Stands for the programs; it has no value.
#[derive(Debug)]
pub enum NoStamps {}

impl NoStamps {
    /// Says why there are none.
    ///
    /// # Errors
    /// Always.
    pub fn open(_: &ProgramScope<'_>) -> Result<Opened, String> {
        Err(ABSENT.to_owned())
    }

    /// Hands over nothing, and never fails.
    pub fn drain(&mut self, _: impl FnMut(SitePassage)) -> io::Result<()> {
        match *self {}
    }

    /// How many passages were lost.
    pub fn lost(&self) -> u64 {
        match *self {}
    }
}

/// Stands for the load; it has no value.
#[derive(Debug)]
pub enum NoSoftirqLoad {}

impl NoSoftirqLoad {
    /// Says why there is none.
    pub fn hindrance() -> Option<String> {
        Some(ABSENT.to_owned())
    }

    /// Says why there is none.
    ///
    /// # Errors
    /// Always.
    pub fn begin(_: &[f64], _: Duration) -> Result<Self, String> {
        Err(ABSENT.to_owned())
    }

    /// What was burnt.
    pub fn burnt(&self) -> SoftirqBurnt {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_ebpf_says_so() {
        let refused = NoSoftirqLoad::begin(&[0.1], Duration::from_millis(10)).map(drop);
        assert_eq!(refused, Err(ABSENT.to_owned()));
        assert_eq!(NoSoftirqLoad::hindrance().as_deref(), Some(ABSENT));
        assert!(ABSENT.contains("cargo feature `ebpf`"));
    }
}
