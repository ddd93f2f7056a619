//! What the control socket says: one JSON object a line, asked for by one JSON object a line.
//!
//! These structs are the protocol (docs/control.md); the daemon fills them and the `ffclock` command reads them.

use serde::{Deserialize, Serialize};

/// A question to the daemon: `{"command": "status"}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Everything in [`StatusReport`].
    Status,
    /// Re-read the configuration, as SIGHUP does.
    Reload,
}

/// Reads one request: a line of the control socket without its end.
///
/// # Errors
/// Why it is not a request.
pub fn parse_request(line: &[u8]) -> Result<Request, String> {
    serde_json::from_slice(line).map_err(|error| format!("not a request: {error}"))
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// To [`Request::Status`].
    Status(Box<StatusReport>),
    /// To [`Request::Reload`], when the new configuration is in force.
    Reloaded,
    /// The request was not understood or could not be carried out.
    Error {
        /// What was wrong.
        message: String,
    },
}

/// The state of the daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// The version of ffclockd.
    pub version: String,
    /// How long it has run [s].
    pub uptime_s: f64,
    /// The counter it keeps time with.
    pub counter: CounterReport,
    /// Where packets are stamped: "kernel" or "user", with the reason where it is not as configured: "user (the kernel refuses)".
    pub stamps: String,
    /// The file that readers map.
    pub page: String,
    /// What is published now; absent before the first estimate.
    pub clock: Option<ClockReport>,
    /// The address of the server whose clock is published.
    pub selected: Option<String>,
    /// Every configured server.
    pub sources: Vec<SourceReport>,
    /// The latest events, oldest first.
    pub events: Vec<EventReport>,
}

/// The counter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterReport {
    /// Its name.
    pub name: String,
    /// Why it was chosen.
    pub reason: String,
    /// The frequency it is said to have [Hz].
    pub nominal_hz: f64,
    /// The number of the present epoch.
    pub epoch: u64,
}

/// The published clock, at the time of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockReport {
    /// "synchronised", "free-running", "warming-up" or "unsynchronised".
    pub status: String,
    /// UTC [ns since 1970].
    pub utc_ns: i64,
    /// The published clock - the system clock [s].
    pub system_clock_behind_s: f64,
    /// The largest possible error [s].
    pub bound_s: f64,
    /// The likely error, leaving out the unknown constant asymmetry [s].
    pub uncertainty_s: f64,
    /// Long-term period of the counter [s].
    pub period_s: f64,
    /// The counter's long-term rate against its nominal frequency: positive when it runs slow [ppm].
    pub rate_ppm: f64,
    /// The largest error of the long-term rate [ppm].
    pub rate_bound_ppm: f64,
    /// TAI - UTC [s].
    pub tai_offset_s: i32,
    /// An announced leap second: the UTC second after it, and +1 or -1.
    pub leap: Option<(i64, i8)>,
}

/// One configured server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceReport {
    /// As configured.
    pub name: String,
    /// The address in use; absent before the name is resolved.
    pub address: Option<String>,
    /// "resolving", "unreachable", "refused", "waiting" or "reachable".
    pub state: String,
    /// Whether its clock is the one that is published.
    pub selected: bool,
    /// The algorithm that judges it: "learned" or "classic".
    pub estimator: String,
    /// How the learned time stands to the classic one: "agree", "disagree", "too-little-data", or "alone" where the classic
    /// algorithm was chosen.
    pub agreement: String,
    /// Time between requests [s].
    pub poll_s: f64,
    /// Distance from a primary source; absent before the first reply.
    pub stratum: Option<u8>,
    /// Its own claim of its largest error [s].
    pub root_distance_s: Option<f64>,
    /// Requests sent.
    pub sent: u64,
    /// Replies accepted as exchanges.
    pub exchanges: u64,
    /// Exchanges that moved the estimate.
    pub used: u64,
    /// Requests without a reply.
    pub lost: u64,
    /// Packets refused, by reason.
    pub rejected: Vec<(String, u64)>,
    /// Smallest round trip in force [s].
    pub floor_s: Option<f64>,
    /// Round trip of the last exchange [s].
    pub round_trip_s: Option<f64>,
    /// Upward and downward shifts of the floor.
    pub shifts: (u64, u64),
    /// The largest possible error of this server's clock now [s].
    pub bound_s: Option<f64>,
    /// Its likely error now [s].
    pub uncertainty_s: Option<f64>,
    /// Its estimate - the published clock, now [s].
    pub offset_s: Option<f64>,
}

/// Something worth telling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventReport {
    /// Seconds since the daemon started.
    pub at_s: f64,
    /// The server it concerns, where it does.
    pub source: Option<String>,
    /// What happened.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_strictly() {
        assert_eq!(parse_request(br#"{"command":"status"}"#), Ok(Request::Status));
        assert_eq!(parse_request(br#" {"command":"reload"} "#), Ok(Request::Reload));
        for bad in [&b"status"[..], br#"{"command":"halt"}"#, br#"{"command":"status"}x"#, b"", b"\xff"] {
            assert!(parse_request(bad).is_err(), "{bad:?}");
        }
    }
}
