//! The command as its users see it: what it prints, where, and with which exit code.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod asking;
mod common;
mod control_document;
mod counters;
mod documented;
mod overwriting;
mod reading;
mod report;
mod simulating;
mod terminal;
mod usage;
