//! Whom ffclockd follows, as clients are to know it: the reference identifier (RFC 5905, section 7.3).
//!
//! The page carries the stratum of the server that is followed, but not its address: its words for the server are what
//! that server says of itself, and a slot has no room for more. They are enough for a reference at this host, which
//! has no other name than its kind. So the control socket of ffclockd is asked, by a thread
//! of its own. Nothing waits for the answer; without one, replies carry an identifier of this host that is no address.

use crate::access::bits_of;
use crate::face::FaceOptions;
use crate::policy::{Policy, PolicyBoard};
use ffclock_control::protocol::{Answer, SourceReport, StatusReport};
use ffclock_wire::reference_of;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often ffclockd is asked.
const ASK_AGAIN: Duration = Duration::from_secs(8);
/// How long one step of the conversation may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// A longer answer is not from ffclockd.
const LONGEST_ANSWER: u64 = 1 << 20;

/// Whom the daemon follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Following {
    /// The selected server; `None` while there is none, as in holdover.
    pub selected: Option<SelectedServer>,
    /// The addresses of all servers of NTP.
    pub servers: Vec<IpAddr>,
}

/// The server that the daemon has selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectedServer {
    /// A server of NTP, with its address in use.
    Ntp(IpAddr),
    /// A reference at this host or a master of PTP, which has no address of NTP.
    Other,
}

impl Following {
    /// From the daemon's own words.
    pub fn of(report: &StatusReport) -> Self {
        // A reference says where it is in place of an address.
        let ip = |source: &SourceReport| match &source.ptp {
            Some(_) => None,
            None => Some(source.address.as_deref()?.parse::<SocketAddr>().ok()?.ip()),
        };
        let selected = report.sources.iter().find(|source| source.selected);
        Following {
            selected: selected.map(|source| ip(source).map_or(SelectedServer::Other, SelectedServer::Ntp)),
            servers: report.sources.iter().filter_map(ip).collect(),
        }
    }
}

/// Keeps the policy informed of whom the daemon follows, in a thread that nothing waits for.
///
/// # Errors
/// The thread cannot be had.
pub(crate) fn follow(control: &Path, board: Arc<PolicyBoard>, stop: Arc<AtomicBool>) -> io::Result<()> {
    let control: PathBuf = control.to_owned();
    let mut known = Following::default();
    thread::Builder::new().name("following".to_owned()).spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            if let Ok(found) = ask(&control)
                && found != known
            {
                board.change(|present| followed(present, &found));
                known = found;
            }
            thread::sleep(ASK_AGAIN);
        }
    })?;
    Ok(())
}

fn followed(present: &Policy, found: &Following) -> Policy {
    let reference_id = match found.selected {
        Some(SelectedServer::Ntp(ip)) => Some(reference_of(ip)),
        Some(SelectedServer::Other) => None,
        // In holdover the time is still that of the last one.
        None => present.face.reference_id,
    };
    Policy {
        face: FaceOptions { reference_id, ..present.face },
        followed: found.servers.iter().map(|ip| (bits_of(*ip), reference_of(*ip))).collect(),
        ..present.clone()
    }
}

/// Asks the daemon that listens on this socket.
///
/// # Errors
/// It does not answer, or not in its protocol.
pub fn ask(control: &Path) -> io::Result<Following> {
    let mut stream = UnixStream::connect(control)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"{\"command\":\"status\"}\n")?;
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    while !answer.ends_with(b"\n") {
        let count = stream.read(&mut part)?;
        answer.extend_from_slice(part.get(..count).unwrap_or_default());
        if count == 0 || answer.len() as u64 > LONGEST_ANSWER {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    match serde_json::from_slice(&answer)? {
        Answer::Status(report) => Ok(Following::of(&report)),
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

/// An identifier of this host that is no address of a server: of the class that is reserved (240.0.0.0/4).
pub fn reference_of_host(boot: &str) -> u32 {
    // FNV-1a, of 32 bits.
    let hash = boot.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    // 254 is the smear's, and 255 the broadcast's.
    0xf000_0000 | (hash % 0x0e00_0000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_control::protocol::PtpReport;

    /// A source of the daemon's status.
    fn source(name: &str, address: Option<&str>, selected: bool) -> SourceReport {
        let text = serde_json::json!({
            "name": name, "address": address, "selected": selected, "state": "reachable", "estimator": "learned",
            "agreement": "agree", "poll_s": 16.0, "sent": 9, "exchanges": 9, "used": 9, "lost": 0, "rejected": [],
            "shifts": [0, 0],
        });
        serde_json::from_value(text).unwrap()
    }

    fn following(sources: Vec<SourceReport>) -> Following {
        let counter = serde_json::json!({"name": "tsc", "reason": "", "nominal_hz": 1e9, "epoch": 1});
        let selected = sources.iter().find(|source| source.selected).map(|source| source.name.clone());
        let text = serde_json::json!({
            "version": "", "uptime_s": 1.0, "counter": counter, "stamps": "kernel", "page": "", "selected": selected,
            "sources": sources, "events": [],
        });
        Following::of(&serde_json::from_value(text).unwrap())
    }

    /// The daemon names its servers as they were configured; what counts is the address in use.
    #[test]
    fn the_selected_server_is_known_by_its_address_whatever_its_name() {
        let (four, six) = ("192.0.2.1:123", "[2001:db8::1]:4123");
        let [ip_four, ip_six] = [four, six].map(|address| address.parse::<SocketAddr>().unwrap().ip());
        let one = |selected| source("time.example", Some(four), selected);
        let other = |selected| source("2001:db8::1", Some(six), selected);
        let unresolved = source("later.example", None, false);
        let servers = vec![ip_four, ip_six];
        for (selected, sources) in [
            (Some(SelectedServer::Ntp(ip_four)), vec![one(true), other(false), unresolved.clone()]),
            (Some(SelectedServer::Ntp(ip_six)), vec![one(false), other(true), unresolved]),
            (None, vec![one(false), other(false)]),
        ] {
            assert_eq!(following(sources), Following { selected, servers: servers.clone() });
        }
    }

    #[test]
    fn references_and_masters_of_ptp_have_no_address_of_ntp() {
        let master = |place| SourceReport { ptp: Some(PtpReport::default()), ..source("master", Some(place), true) };
        for selected in [source("pps", Some("pps:/dev/pps0"), true), master("eth0"), master("192.0.2.1:319")] {
            let expected = Following { selected: Some(SelectedServer::Other), servers: Vec::new() };
            assert_eq!(following(vec![selected]), expected);
        }
    }

    #[test]
    fn a_host_is_no_address() {
        for boot in ["", "a", "9d7a1c4e-4a10-4a2c-9c58-0f6d4e0b1c22"] {
            let reference = reference_of_host(boot);
            assert!((0xf000_0000..0xfe00_0000).contains(&reference), "{reference:x}");
        }
    }
}
