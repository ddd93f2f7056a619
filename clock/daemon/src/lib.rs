//! ffclockd: composition of the rooms. It waits for packets and deadlines, hands them to the conversations and
//! estimators, and publishes the best clock in the page. It computes nothing itself and never sets the system clock.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod arguments;
mod calibrator;
pub mod config;
mod control;
mod establish;
mod event_loop;
mod host_counter;
mod journal;
mod keeper;
mod kernel_clock;
mod key_file;
mod leaps;
mod limiter;
pub mod memory;
mod peer;
mod pool;
mod resolve;
mod slowdowns;
mod wording;

pub use keeper::StartError;

/// Keeps time until a signal ends it. `again` re-reads the configuration for a reload.
///
/// # Errors
/// A required resource could not be made: the counter, the page, a listening socket.
pub fn run(config: config::Config, again: &dyn Fn() -> Result<config::Config, String>) -> Result<(), StartError> {
    let daemon = config.daemon.clone();
    event_loop::run(keeper::Keeper::start(config, again)?, &daemon)
}
