//! Where things are kept on this kind of system (hier(7)).

/// The page of shared memory.
pub const PAGE: &str = if BSD { "/var/run/ffclock/page" } else { "/run/ffclock/page" };
/// The control socket.
pub const CONTROL: &str = if BSD { "/var/run/ffclock/control" } else { "/run/ffclock/control" };
/// What outlives a restart.
pub const STATE: &str = if BSD { "/var/db/ffclock" } else { "/var/lib/ffclock" };
/// What is known of the host's own delays.
pub const CALIBRATION: &str =
    if BSD { "/var/db/ffclock/calibration.json" } else { "/var/lib/ffclock/calibration.json" };
/// The daemon's configuration.
pub const CONFIGURATION: &str = if BSD { "/usr/local/etc/ffclock/ffclockd.toml" } else { "/etc/ffclock/ffclockd.toml" };

const BSD: bool = cfg!(target_os = "freebsd");
