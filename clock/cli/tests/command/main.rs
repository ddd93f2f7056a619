//! The command as its users see it: what it prints, where, and with which exit code.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod asking;
mod common;
mod doctor;
mod feeding;
mod feeding_clockbound;
mod feeding_vmclock;
mod json;
mod moved;
mod reading;
mod terminal;
mod usage;

/// The command under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_ffclock");
