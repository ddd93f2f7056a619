//! The status of ffclock-serve, as its status socket gives it. The requests are those of the control protocol.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum ServeAnswer {
    /// The state of the server.
    ServeStatus(Box<ServeReport>),
    /// The configuration was read again and is in force.
    Reloaded,
    /// The request was not understood or could not be carried out.
    Error {
        /// The reason, in words.
        message: String,
    },
}

/// The state of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServeReport {
    /// The version of ffclock-serve.
    pub version: String,
    /// How long it has run [s].
    pub uptime_s: f64,
    /// The file that it reads the time from.
    pub page: String,
    /// The addresses that it answers on.
    pub listen: Vec<String>,
    /// How many threads answer, on all addresses together.
    pub threads: usize,
    /// What replies claim now; absent while they say that the server is not synchronised.
    pub claim: Option<ClaimReport>,
    /// Why they say so.
    pub unserved: Option<String>,
    /// How a leap second is served: "off" or "linear-24h".
    pub smear: String,
    /// Key establishment for NTS; absent where it is not served.
    pub nts: Option<NtsReport>,
    /// How many packets the kernel threw away because a socket was full.
    pub kernel_dropped: u64,
    /// How many packets there were of each kind since the start, by its name.
    pub counts: BTreeMap<String, u64>,
    /// The fast path in the driver; absent where none is wanted.
    #[serde(default)]
    pub fast_path: Option<FastPathReport>,
    /// The ports of the grandmaster of PTP; empty where PTP is not served.
    #[serde(default)]
    pub ptp: Vec<PtpPortReport>,
}

/// A port of the grandmaster of PTP: a device, with one family of addresses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PtpPortReport {
    /// The device and the family, such as "eth0/ipv4".
    pub port: String,
    /// The port identity, as linuxptp prints it.
    pub identity: String,
    /// The domain.
    pub domain: u16,
    /// "serving"; "passive" while a better master speaks; "silent" while there is no time to serve.
    pub state: String,
    /// The better master's port identity.
    pub better_master: Option<String>,
    /// The clock class that is announced; 248 while silent.
    pub clock_class: u8,
    /// The largest error that is announced [s]; absent where none is.
    pub clock_accuracy_s: Option<f64>,
    /// Unicast grants in force.
    pub grants: usize,
    /// How many messages the kernel threw away because a socket was full.
    pub kernel_dropped: u64,
    /// How many messages there were of each kind since the start, by its name.
    pub counts: BTreeMap<String, u64>,
    /// How many messages the protocol turned away, by the reason.
    pub rejected: BTreeMap<String, u64>,
}

/// The fast path: plain requests that the driver of a device answers, before the sockets see them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FastPathReport {
    /// The device, and whether the program is in its driver ("native") or after it ("generic"); absent where it could
    /// not be had, or has ended.
    pub attached: Option<String>,
    /// Why so.
    pub unavailable: Option<String>,
    /// Why the sockets answer everything just now.
    pub no_line: Option<String>,
    /// How many packets to the served port had which outcome since the start, by its name.
    pub counts: BTreeMap<String, u64>,
}

/// Key establishment for NTS.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NtsReport {
    /// The addresses that keys are established on.
    pub listen: Vec<String>,
    /// The number of the key that seals cookies: the number of rotations since 1970.
    pub cookie_key: Option<u32>,
    /// How long one key seals cookies [s].
    pub rotation_s: f64,
    /// How many keys before it still open cookies.
    pub old_keys: u32,
    /// The end of the certificate that is shown now (RFC 3339); absent where it cannot be read.
    pub certificate_end: Option<String>,
    /// The same in seconds since 1970, without leap seconds.
    pub certificate_end_unix_s: Option<i64>,
    /// How many connections ended since the start, by the reason.
    pub establishments: BTreeMap<String, u64>,
}

/// What replies claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimReport {
    /// Distance from a primary source, 1 to 15.
    pub stratum: u8,
    /// The reference identifier, 8 hexadecimal digits.
    pub reference_id: String,
    /// The leap indicator: "none", "insert" or "delete".
    pub leap: String,
    /// Half the root delay and the root dispersion: the largest error that replies admit [s].
    pub root_distance_s: f64,
}
