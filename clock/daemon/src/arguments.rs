//! The command line of ffclockd; its manual page is made from this.

use crate::config::{ServerAddress, server_of_command_line};
use clap::Parser;
use std::path::PathBuf;

/// Keeps time without feedback: stamps NTP packets with a raw counter, estimates its period and offset, and publishes
/// them with honest bounds in a page of shared memory. It never sets the system clock and needs no privilege.
#[derive(Parser)]
#[command(
    name = "ffclockd",
    version,
    after_help = "Example:\n  $ ffclockd --config /etc/ffclock/ffclockd.toml\n  $ ffclockd -s time1.example -s time2.example -s time3.example\n\n\
                  SIGHUP reads the configuration again; SIGTERM ends the daemon. A user who may not write into /run/ffclock has \
                  the page and the control socket in $XDG_RUNTIME_DIR/ffclock, and the remembered rate in \
                  $XDG_STATE_HOME/ffclock or ~/.local/state/ffclock."
)]
pub struct Arguments {
    /// The configuration file [default: /etc/ffclock/ffclockd.toml, or none where servers are named here].
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Ask this server, a name or an address, in addition to those of the configuration file.
    #[arg(long, short, value_name = "NAME[:PORT]", value_parser = server_of_command_line)]
    pub server: Vec<ServerAddress>,
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
