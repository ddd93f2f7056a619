//! What the control socket says: one JSON object a line, asked for by one JSON object a line.
//!
//! These structs are the protocol (docs/control.md); the daemon fills them and the `ffclock` command reads them.

pub use ffclock_estimator::{Agreement, Algorithm};
pub use ffclock_units::Status;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
/// The text is not a request; the error says why.
pub fn parse_request(line: &[u8]) -> Result<Request, String> {
    const COMMAND: &str = "command";
    let not_a_request = |error| format!("not a request, which is an object like {{\"command\":\"status\"}}: {error}");
    let object: Map<String, Value> = serde_json::from_slice(line).map_err(not_a_request)?;
    if let Some(other) = object.keys().find(|key| *key != COMMAND) {
        return Err(format!("unknown field `{}`: a request has only `command`", shown(other)));
    }
    match object.get(COMMAND) {
        Some(Value::String(command)) => Request::deserialize(Value::Object(object.clone()))
            .map_err(|_| format!("unknown command `{}`: there are `status` and `reload`", shown(command))),
        Some(_) => Err("the field `command` must be a text".to_owned()),
        None => Err("the field `command` is missing".to_owned()),
    }
}

/// The beginning of a client's text, safe to display.
fn shown(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_default).collect()
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
        /// The reason, in words.
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
    /// Where packets are stamped: "kernel" or "user", with the reason where it is not as configured: "user (the kernel
    /// refuses)".
    pub stamps: String,
    /// The file that readers map.
    pub page: String,
    /// What is published now; absent before the first estimate.
    pub clock: Option<ClockReport>,
    /// The uncertainty by noise that polls are chosen to keep [s]; absent where every server has a fixed poll.
    #[serde(default)]
    pub keep_noise_s: Option<f64>,
    /// The name of the selected server, which the page gives as its reference.
    pub selected: Option<String>,
    /// Whether a majority of the servers agrees; absent from daemons before 0.2.
    #[serde(default)]
    pub quorum: Option<QuorumReport>,
    /// What the vote and the bounds rest on; absent from daemons before 0.2.
    #[serde(default)]
    pub vote: Option<VoteReport>,
    /// Every configured server.
    pub sources: Vec<SourceReport>,
    /// The latest events, oldest first.
    pub events: Vec<EventReport>,
}

/// How the vote of the servers stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuorumReport {
    /// Servers that may yet turn the vote have not answered since the start.
    Waiting,
    /// More than half of the servers agree, and one of them is followed.
    Majority,
    /// No time is shared by more than half of the servers: none is followed.
    Disagreement,
    /// Fewer servers answer than `min_servers` demands: none is followed.
    TooFew,
}

/// Who votes, and what the bounds rest on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoteReport {
    /// How many servers decide: those with an interval, or the trusted ones of them where there are any.
    pub deciders: usize,
    /// Whether trusted servers decide.
    pub by_trust: bool,
    /// How many of the deciders may be false while `bound_strict_s` holds.
    pub tolerated: usize,
    /// How many servers are believed; 0 without a majority.
    pub believed: usize,
    /// How many servers answer and may be believed.
    pub usable: usize,
    /// How many must, by the configuration.
    pub min_servers: usize,
    /// What `bound_s` and the page's bound rest on, in words.
    pub bound_premise: String,
    /// What `bound_strict_s` rests on, in words.
    pub strict_premise: String,
}

/// What the vote says about a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BeliefReport {
    /// Its interval agrees with those of the majority.
    Truechimer,
    /// Its interval misses that of the majority: its claim about itself is false.
    Falseticker,
    /// No vote can say whether it is right.
    Undecided,
    /// It is measured and shown, and has no vote.
    NoSelect,
    /// It has no interval yet.
    #[default]
    Unknown,
}

/// The counter that time is kept with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterReport {
    /// The counter's name.
    pub name: String,
    /// The reason for choosing it.
    pub reason: String,
    /// Its nominal frequency [Hz].
    pub nominal_hz: f64,
    /// The number of the present epoch.
    pub epoch: u64,
}

/// The published clock, at the time of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockReport {
    /// "synchronised", "holdover", "warming-up" or "unsynchronised"; earlier versions wrote "free-running" for
    /// holdover.
    #[serde(with = "word")]
    pub status: Status,
    /// UTC [ns since 1970].
    pub utc_ns: i64,
    /// The published clock - the system clock [s].
    pub system_clock_behind_s: f64,
    /// The largest possible error [s].
    pub bound_s: f64,
    /// The largest possible error although the tolerated number of servers is false [s]; absent from daemons before
    /// 0.2.
    #[serde(default)]
    pub bound_strict_s: Option<f64>,
    /// Its combined standard uncertainty (k = 1): the noise, and what is assumed of the path's asymmetry and of the
    /// server's own error, which daemons before 0.2 leave out [s].
    pub uncertainty_s: f64,
    /// The part of it that exchanges show [s]; absent from daemons before 0.2.
    #[serde(default)]
    pub noise_s: Option<f64>,
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

/// Whether a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceState {
    /// Its name has no address yet.
    Resolving,
    /// Asked for the first time at this address.
    Waiting,
    /// It answers.
    Reachable,
    /// It does not answer.
    Unreachable,
    /// It asked us to stay away.
    Refused,
}

impl SourceState {
    /// The name in the control protocol and the answers of commands.
    pub const fn name(self) -> &'static str {
        match self {
            SourceState::Resolving => "resolving",
            SourceState::Waiting => "waiting",
            SourceState::Reachable => "reachable",
            SourceState::Unreachable => "unreachable",
            SourceState::Refused => "refused",
        }
    }
}

/// One configured server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceReport {
    /// The name as configured.
    pub name: String,
    /// The address in use; absent before the name is resolved.
    pub address: Option<String>,
    /// Whether the server answers.
    #[serde(with = "word")]
    pub state: SourceState,
    /// Whether it is the selected server.
    pub selected: bool,
    /// Whether it agrees with the majority of the servers.
    #[serde(default)]
    pub belief: BeliefReport,
    /// The algorithm that judges it, "learned" or "classic".
    #[serde(with = "word")]
    pub estimator: Algorithm,
    /// How the learned time compares with the classic one: "agree", "disagree", "too-little-data", or "alone" where the
    /// classic algorithm was chosen.
    #[serde(with = "word")]
    pub agreement: Agreement,
    /// The largest deviation of the counter's rate from its mean over the last day that its bound assumes [ppm]: what
    /// was configured, or more where its exchanges showed more. Absent from daemons that learn none.
    #[serde(default)]
    pub wander_ppm: Option<f64>,
    /// Time between requests now [s].
    pub poll_s: f64,
    /// Whether the server asked for a longer time than it would be; absent from daemons before 0.2.
    #[serde(default)]
    pub slowed: bool,
    /// Distance from a primary source; absent before the first reply.
    pub stratum: Option<u8>,
    /// The server's claim of its largest error [s].
    pub root_distance_s: Option<f64>,
    /// Requests sent.
    pub sent: u64,
    /// Replies accepted as exchanges.
    pub exchanges: u64,
    /// Exchanges that moved the estimate.
    pub used: u64,
    /// Replies in the interleaved mode (RFC 9769), each of which completes the exchange before it; absent from daemons
    /// before 0.2.
    #[serde(default)]
    pub interleaved: u64,
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
    /// Its combined standard uncertainty (k = 1) now [s].
    pub uncertainty_s: Option<f64>,
    /// The part of it that exchanges show [s]; absent from daemons before 0.2.
    #[serde(default)]
    pub noise_s: Option<f64>,
    /// Its estimate - the published clock, now [s].
    pub offset_s: Option<f64>,
    /// Its part in the vote.
    #[serde(default)]
    pub vote: SourceVote,
    /// What authenticates its packets.
    #[serde(default)]
    pub authentication: AuthenticationReport,
    /// What it announces, of a server of PTP; absent of other servers.
    #[serde(default)]
    pub ptp: Option<PtpReport>,
    /// Whether it is believed and why, in one sentence; empty from daemons before 0.2.
    #[serde(default)]
    pub why: String,
}

/// A server of PTP and the master that it follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PtpReport {
    /// The domain.
    pub domain: u16,
    /// The port that is followed, as linuxptp prints it: "b268b8.fffe.d92b00-1"; absent while there is none, as are the
    /// fields below.
    pub master: Option<String>,
    /// The clock identity of its grandmaster.
    pub grandmaster: Option<String>,
    /// The clock class of the grandmaster: 6 follows a primary reference, 7 did until lately.
    pub clock_class: Option<u8>,
    /// Boundary clocks between the grandmaster and the master.
    pub steps_removed: Option<u16>,
}

/// What authenticates a server's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthenticationKind {
    /// Packets are believed as they come.
    #[default]
    None,
    /// A symmetric key.
    Key,
    /// NTS.
    Nts,
}

/// How a server's packets are authenticated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthenticationReport {
    /// What authenticates them: "none", "key" or "nts".
    pub kind: AuthenticationKind,
    /// The number of the symmetric key; absent as long as it cannot be used.
    pub key: Option<u32>,
    /// The number of the algorithm of NTS (RFC 5116); absent before keys were established.
    pub aead: Option<u16>,
    /// Cookies that are left: one is used up by each request, and each reply brings new ones.
    pub cookies: Option<usize>,
    /// How often keys were established.
    pub established: Option<u64>,
    /// The end of the certificate that the keys were established with (RFC 3339).
    pub certificate_end: Option<String>,
    /// The same in seconds since 1970, without leap seconds.
    pub certificate_end_unix_s: Option<i64>,
}

/// A server's part in the vote.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceVote {
    /// Trusted servers decide before all others.
    pub trust: bool,
    /// While it is believed and answers, the preferred servers alone make the clock.
    pub prefer: bool,
    /// It is never believed.
    pub no_select: bool,
    /// The ends of the interval that its exchanges prove for the true time, minus the published time, now [s].
    pub proven_s: Option<(f64, f64)>,
    /// How far that interval misses what the believed servers share [s]; absent where it meets it.
    pub misses_s: Option<f64>,
    /// Its share in the published time, 0 to 1, where several servers make it together.
    #[serde(default)]
    pub weight: Option<f64>,
    /// Whether its time is further from the others' than their paths and claims explain, or moves against them; it then
    /// has no weight.
    #[serde(default)]
    pub suspect: bool,
    /// Time since its last answer that was of use [s].
    pub heard_s: Option<f64>,
    /// Whether its rate rests on little data.
    pub warming_up: bool,
    /// The server before it in the configuration with the same address, which has the vote of both.
    pub same_as: Option<String>,
    /// Whether it belongs to a pool of which others vote already; it steps in when one of them falls silent.
    #[serde(default)]
    pub spare: bool,
}

/// A notable event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventReport {
    /// Seconds since the daemon started.
    pub at_s: f64,
    /// The server concerned, if any.
    pub source: Option<String>,
    /// The event in words.
    pub text: String,
}

/// A state that is compared as its type and transmitted as its name.
trait Word: Copy + 'static {
    const ALL: &'static [Self];
    fn name(self) -> &'static str;
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|word| word.name() == name)
    }
}

impl Word for Status {
    const ALL: &'static [Self] = &Status::ALL;
    fn name(self) -> &'static str {
        self.name()
    }
    fn from_name(name: &str) -> Option<Self> {
        Status::from_name(name)
    }
}

impl Word for SourceState {
    const ALL: &'static [Self] = &[
        SourceState::Resolving,
        SourceState::Waiting,
        SourceState::Reachable,
        SourceState::Unreachable,
        SourceState::Refused,
    ];
    fn name(self) -> &'static str {
        self.name()
    }
}

impl Word for Algorithm {
    const ALL: &'static [Self] = &Algorithm::ALL;
    fn name(self) -> &'static str {
        self.name()
    }
}

impl Word for Agreement {
    const ALL: &'static [Self] = &Agreement::ALL;
    fn name(self) -> &'static str {
        self.name()
    }
}

/// How serde writes and reads a [`Word`].
mod word {
    use super::Word;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::borrow::Cow;

    pub(super) fn serialize<W: Word, S: Serializer>(word: &W, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(word.name())
    }

    pub(super) fn deserialize<'de, W: Word, D: Deserializer<'de>>(deserializer: D) -> Result<W, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        W::from_name(&name).ok_or_else(|| {
            let known: Vec<&str> = W::ALL.iter().map(|word| word.name()).collect();
            D::Error::custom(format_args!("{name:?} is none of {}", known.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Words {
        #[serde(with = "word")]
        status: Status,
        #[serde(with = "word")]
        state: SourceState,
        #[serde(with = "word")]
        estimator: Algorithm,
        #[serde(with = "word")]
        agreement: Agreement,
    }

    #[test]
    fn states_travel_as_their_names_and_the_old_word_is_understood() {
        let words = Words {
            status: Status::Holdover,
            state: SourceState::Refused,
            estimator: Algorithm::Learned,
            agreement: Agreement::TooLittleData,
        };
        let text = r#"{"status":"holdover","state":"refused","estimator":"learned","agreement":"too-little-data"}"#;
        assert_eq!(serde_json::to_string(&words).unwrap(), text);
        assert_eq!(serde_json::from_str::<Words>(text).unwrap(), words);
        let old = text.replace("holdover", "free-running");
        assert_eq!(serde_json::from_str::<Words>(&old).unwrap(), words);
        let unknown = serde_json::from_str::<Words>(&text.replace("refused", "asleep")).unwrap_err();
        assert!(unknown.to_string().starts_with("\"asleep\" is none of resolving, waiting"), "{unknown}");
    }

    #[test]
    fn every_name_stands_for_one_state() {
        fn each_comes_back<W: Word + PartialEq>() -> bool {
            W::ALL.iter().all(|word| W::from_name(word.name()) == Some(*word))
        }
        assert!(each_comes_back::<Status>() && each_comes_back::<SourceState>());
        assert!(each_comes_back::<Algorithm>() && each_comes_back::<Agreement>());
    }

    #[test]
    fn requests_are_read_strictly() {
        assert_eq!(parse_request(br#"{"command":"status"}"#), Ok(Request::Status));
        assert_eq!(parse_request(br#" {"command":"reload"} "#), Ok(Request::Reload));
        for bad in [&b"status"[..], br#"{"command":"halt"}"#, br#"{"command":"status"}x"#, b"", b"\xff"] {
            assert!(parse_request(bad).is_err(), "{bad:?}");
        }
        for (bad, said) in [
            (r#"{"command":"status","x":1}"#, "unknown field `x`"),
            (r#"{"command":"halt"}"#, "unknown command `halt`: there are `status` and `reload`"),
            (r#"{"command":3}"#, "must be a text"),
            ("{}", "`command` is missing"),
            (r#"["status"]"#, "an object like"),
        ] {
            let message = parse_request(bad.as_bytes()).unwrap_err();
            assert!(message.contains(said), "{bad}: {message}");
        }
    }
}
