//! The command line of ffclock-steer; its manual page is made from this.

use clap::Parser;
use std::path::PathBuf;

/// Has the kernel's clock follow the page of ffclockd, for programs that know no other clock: by its frequency, and by
/// one step at the start if the configuration permits it. It needs CAP_SYS_TIME. No other program (chronyd, ntpd,
/// systemd-timesyncd) may steer that clock at the same time; where one does, this one withdraws.
#[derive(Parser)]
#[command(
    name = "ffclock-steer",
    version,
    after_help = "Example:\n  $ ffclock-steer --dry-run --once\n  $ ffclock-steer --config /etc/ffclock/steer.toml\n\n\
                  Exit codes: 0 ended by a signal, or --once done; 1 failed, or the page is not synchronised with --once; \
                  2 the command line is wrong; 3 withdrew, because another program steers the kernel's clock. At its end \
                  the clock runs on at the rate of the page, without a slew."
)]
pub struct SteerArguments {
    /// The configuration file [default: /etc/ffclock/steer.toml if it is there].
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Read the page at this place, regardless of the configuration.
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// Print what would be done, and change nothing. Needs no right.
    #[arg(long)]
    pub dry_run: bool,
    /// Set rate, error figures and flags once, with the step if it is permitted, and exit. An offset that is left is
    /// not slewed.
    #[arg(long)]
    pub once: bool,
    /// Read the configuration, report what is wrong with it, and exit.
    #[arg(long)]
    pub check_config: bool,
    /// What to log: error, warn, info, debug or trace, or a filter such as "ffclock_steer=debug".
    #[arg(long, value_name = "FILTER", default_value = "info")]
    pub log: String,
    /// Log JSON lines instead of text.
    #[arg(long)]
    pub log_json: bool,
}
