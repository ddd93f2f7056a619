//! The command as its users see it: what it prints, where, and with which exit code.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

#[path = "../../../../clock/cli/tests/command/common.rs"]
#[expect(dead_code, reason = "`ffclock` alone asks the daemon")]
mod common;
mod counters;
mod documented;
mod json;
mod one_way;
mod overwriting;
mod report;
mod simulating;
mod usage;

/// The command under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_ffclock-lab");
