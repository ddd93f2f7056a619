//! The `ffclock` command.
fn main() {}
