//! The command line of ffclockd; its manual page is made from this.

use clap::Parser;
use std::path::PathBuf;

/// Keeps time without feedback: stamps NTP packets with a raw counter, estimates its period and offset, and publishes
/// them with honest bounds in a page of shared memory. It never sets the system clock and needs no privilege.
#[derive(Parser)]
#[command(
    name = "ffclockd",
    version,
    after_help = "Example:\n  $ ffclockd --config /etc/ffclock/ffclockd.toml\n\nSIGHUP reads the configuration again; SIGTERM ends the daemon."
)]
pub struct Arguments {
    /// The configuration file.
    #[arg(long, short, value_name = "FILE", default_value = ffclock_sys::places::CONFIGURATION)]
    pub config: PathBuf,
    /// Read the configuration, report what is wrong with it, and exit.
    #[arg(long)]
    pub check_config: bool,
    /// Record the exchanges of this run into a directory, regardless of the configuration.
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// What to log: error, warn, info, debug or trace, or a filter such as "ffclock_daemon=debug".
    #[arg(long, value_name = "FILTER", default_value = "info")]
    pub log: String,
    /// Log JSON lines instead of text.
    #[arg(long)]
    pub log_json: bool,
}
