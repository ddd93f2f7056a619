//! The programs together, as a person runs them: daemon and command against servers of other projects, and the
//! README's commands.
//!
//! What cannot run here prints `SKIP: reason`, which tools/test counts. Nothing here may set a clock.
#![expect(clippy::unwrap_used, reason = "a test that cannot start its programs has failed")]

mod calibrating;
mod chain;
mod demonstration;
mod grandmaster;
#[path = "../../../../clock/ptp/tests/hosts/mod.rs"]
#[expect(dead_code, reason = "the tests of the rooms of PTP use more of it")]
mod hosts;
mod interop;
mod live;
mod one_way;
mod probing;
mod probing_badly;
mod programs;
mod readme;
mod running_system;
mod simulators;

use std::path::{Path, PathBuf};

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// An empty directory for one test. It stays after a failure, to be looked at.
pub fn fresh_directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}
