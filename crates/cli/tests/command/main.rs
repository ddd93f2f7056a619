//! The command as its users see it: what it prints, where, and with which exit code.

mod asking;
mod common;
mod control_document;
mod reading;
mod terminal;
mod usage;
