//! Reports our state to the service manager (sd_notify(3)): datagrams to the socket named in `NOTIFY_SOCKET`.

use crate::mono_now;
use ffclock_units::Span;
use std::env;
use std::fmt;
use std::io;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Something the service manager may want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice<'a> {
    /// Started completely, or the configuration read again completely.
    Ready,
    /// Reading the configuration again.
    Reloading,
    /// The daemon is ending.
    Stopping,
    /// The daemon is alive.
    Watchdog,
    /// A line to be read by people.
    Status(&'a str),
}

impl fmt::Display for Notice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Ready => f.write_str("READY=1"),
            // Type=notify-reload wants the time of the request on the monotonic clock.
            Notice::Reloading => {
                write!(f, "RELOADING=1\nMONOTONIC_USEC={}", mono_now().since_origin().as_nanos() / 1000)
            }
            Notice::Stopping => f.write_str("STOPPING=1"),
            Notice::Watchdog => f.write_str("WATCHDOG=1"),
            Notice::Status(text) => write!(f, "STATUS={}", text.replace('\n', " ")),
        }
    }
}

/// Notifies the service manager; false when there is none.
///
/// # Errors
/// When its socket cannot be reached.
pub fn notify(notice: Notice<'_>) -> io::Result<bool> {
    let Some(name) = env::var_os("NOTIFY_SOCKET") else { return Ok(false) };
    send(name.as_bytes(), notice).map(|()| true)
}

/// A name that begins with @ is one of the abstract namespace.
fn send(name: &[u8], notice: Notice<'_>) -> io::Result<()> {
    let address = match name.split_first() {
        #[cfg(target_os = "linux")]
        Some((b'@', abstract_name)) => SocketAddr::from_abstract_name(abstract_name)?,
        _ => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
    };
    UnixDatagram::unbound()?.send_to_addr(notice.to_string().as_bytes(), &address).map(drop)
}

/// How often the service manager wants a [`Notice::Watchdog`]: half its patience. `None` when it does not watch this
/// process.
pub fn watchdog_interval() -> Option<Span> {
    let patience = env::var("WATCHDOG_USEC").ok()?;
    let meant = env::var("WATCHDOG_PID").ok();
    interval(&patience, meant.as_deref())
}

fn interval(patience_us: &str, meant: Option<&str>) -> Option<Span> {
    let for_us = meant.is_none_or(|pid| pid.parse() == Ok(std::process::id()));
    let patience: i64 = patience_us.parse().ok()?;
    (for_us && patience > 0).then(|| Span::from_micros(patience).halved())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_arrive_under_both_kinds_of_names() {
        let abstract_name = format!("ffclock-test-{}", std::process::id());
        let manager = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&abstract_name).unwrap()).unwrap();
        send(format!("@{abstract_name}").as_bytes(), Notice::Ready).unwrap();
        let path = env::temp_dir().join(&abstract_name);
        let by_path = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str().as_bytes(), Notice::Status("all\nwell")).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut bytes = [0; 64];
        let length = manager.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"READY=1");
        let length = by_path.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"STATUS=all well");
        assert!(send(path.as_os_str().as_bytes(), Notice::Ready).is_err());
    }

    #[test]
    fn a_watchdog_meant_for_us_is_fed_twice_in_its_patience() {
        let ourselves = std::process::id().to_string();
        assert_eq!(interval("3000000", Some(&ourselves)), Some(Span::from_millis(1500)));
        assert_eq!(interval("3000000", None), Some(Span::from_millis(1500)));
        assert_eq!(interval("3000000", Some("1")), None);
        assert_eq!(interval("soon", None), None);
        assert_eq!(interval("0", None), None);
    }
}
