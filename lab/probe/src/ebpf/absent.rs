//! What stands for the programs where this program was built without them.

use super::{Opened, ProgramScope, SitePassage};
use std::io;

/// Stands for the programs; it has no value.
#[derive(Debug)]
pub enum NoStamps {}

impl NoStamps {
    /// Says why there are none.
    ///
    /// # Errors
    /// Always.
    pub fn open(_: &ProgramScope<'_>) -> Result<Opened, String> {
        Err("this program was built without it (cargo feature `ebpf`, which takes clang)".to_owned())
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
