//! Where things are kept on this kind of system (hier(7)), and by an ordinary user (XDG Base Directory Specification).

use crate::ffi;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

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

/// The status socket of ffclock-serve.
pub const SERVE_CONTROL: &str = if BSD { "/var/run/ffclock-serve/control" } else { "/run/ffclock-serve/control" };
/// The configuration of ffclock-serve.
pub const SERVE_CONFIGURATION: &str = if BSD { "/usr/local/etc/ffclock/serve.toml" } else { "/etc/ffclock/serve.toml" };
/// The secret of the NTP server's cookies.
pub const SERVE_COOKIES: &str = if BSD { "/var/db/ffclock-serve/cookies" } else { "/var/lib/ffclock-serve/cookies" };

/// The configuration of ffclock-steer.
pub const STEER_CONFIGURATION: &str = if BSD { "/usr/local/etc/ffclock/steer.toml" } else { "/etc/ffclock/steer.toml" };

/// The VMClock of a virtual machine (Linux 6.13 and later).
pub const VM_CLOCK: &str = "/dev/vmclock0";

/// Below the directories of an ordinary user (`$XDG_RUNTIME_DIR`, `$XDG_STATE_HOME`): the directory of this program.
pub const OF_USER: &str = "ffclock";
/// The page in the directory of an ordinary user.
pub const PAGE_NAME: &str = "page";
/// The control socket: beside the page.
pub const CONTROL_NAME: &str = "control";

const BSD: bool = cfg!(target_os = "freebsd");

/// Whether this process may write into `directory`, or may make it where it is missing.
pub fn may_write_below(directory: &Path) -> bool {
    let there = directory.ancestors().find(|above| above.exists() || above.as_os_str().is_empty());
    let name = there.map_or(&b"."[..], |there| match there.as_os_str().as_bytes() {
        b"" => b".",
        name => name,
    });
    std::ffi::CString::new(name).is_ok_and(|name| ffi::may_write_into(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_may_be_written_is_found_at_the_nearest_directory_that_is_there() {
        let own = std::env::temp_dir();
        assert!(may_write_below(&own) && may_write_below(&own.join("not/yet/there")));
        let closed = own.join(format!("ffclock-closed-{}", std::process::id()));
        std::fs::create_dir(&closed).unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
        let is_root = ffi::own_user() == 0;
        assert_eq!(may_write_below(&closed.join("below")), is_root);
        std::fs::remove_dir(&closed).unwrap();
        assert!(!may_write_below(Path::new("/proc/version/below")), "a file is no directory");
    }
}
