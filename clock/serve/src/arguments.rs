//! The command line of ffclock-serve; its manual page is made from this.

use clap::Parser;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Serves the time that ffclockd publishes by NTP, with the proven bound as root delay and root dispersion. It never
/// sets a clock and keeps no capability while it serves.
#[derive(Parser)]
#[command(
    name = "ffclock-serve",
    version,
    after_help = "Example:\n  $ ffclock-serve --config /etc/ffclock/serve.toml\n  $ ffclock-serve --listen 127.0.0.1:11123\n  $ ffclock serve status\n\n\
                  SIGHUP reads networks, rates and the like again without losing a packet; addresses, threads and \
                  sockets stay until a restart. SIGTERM ends the server."
)]
pub struct ServeArguments {
    /// The configuration file [default: /etc/ffclock/serve.toml if it is there, or none with --listen].
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Listen here instead of at the addresses of the configuration; may be given several times.
    #[arg(long, short, value_name = "ADDRESS:PORT")]
    pub listen: Vec<SocketAddr>,
    /// Read the page at this place, regardless of the configuration.
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// Read the configuration, report what is wrong with it, and exit.
    #[arg(long)]
    pub check_config: bool,
    /// What to log: error, warn, info, debug or trace, or a filter such as "ffclock_serve=debug".
    #[arg(long, value_name = "FILTER", default_value = "info")]
    pub log: String,
    /// Log JSON lines instead of text.
    #[arg(long)]
    pub log_json: bool,
}
