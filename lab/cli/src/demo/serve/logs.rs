//! What the clients without a page write of each server: chronyd and ntpd in their own logs, `ffclock-lab lab ask` as
//! it is described there.

use crate::failure::Failure;
use std::fs;
use std::path::PathBuf;

/// What the lines of a log say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogKind {
    /// One line for each reply to `ffclock-lab lab ask`.
    Replies,
    /// chronyd's estimate after each reply (`statistics.log` of chrony.conf(5)).
    ChronydEstimates,
    /// Each reply that chronyd measured (`measurements.log` of chrony.conf(5)).
    ChronydClaims,
    /// ntpd's estimate after each reply (peerstats of ntpd's documentation).
    NtpdPeers,
}

/// A log, and the address of each way that it may speak of.
pub(super) struct ClientLog {
    pub(super) kind: LogKind,
    pub(super) path: PathBuf,
    pub(super) addresses: Vec<(usize, String)>,
}

/// What a line says of one server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LogSample {
    /// The server's time - the system clock [s].
    pub(super) error_s: f64,
    /// Whether the claim of the server, with what the way may have added, contains the truth; `None` where the line has
    /// no claim.
    pub(super) claim: Option<JudgedClaim>,
}

/// A claim, and whether it held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct JudgedClaim {
    /// The largest error that is claimed [s].
    pub(super) claim_s: f64,
    pub(super) held: bool,
}

/// A log from a place in it on.
pub(super) struct LogMark {
    log: ClientLog,
    from: usize,
}

impl LogMark {
    /// From the present end on.
    pub(super) fn at_end(log: ClientLog) -> Self {
        let from = fs::read(&log.path).map_or(0, |octets| octets.len());
        LogMark { log, from }
    }

    /// What the lines say.
    pub(super) fn kind(&self) -> LogKind {
        self.log.kind
    }

    /// The ways that it may speak of.
    pub(super) fn ways(&self) -> impl Iterator<Item = usize> + '_ {
        self.log.addresses.iter().map(|(way, _)| *way)
    }

    /// What was written since then about a way.
    ///
    /// # Errors
    /// The log is not there.
    pub(super) fn samples(&self, way: usize) -> Result<Vec<LogSample>, Failure> {
        let ClientLog { kind, path, addresses } = &self.log;
        let octets = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let text = String::from_utf8_lossy(octets.get(self.from..).unwrap_or_default());
        let address = addresses.iter().find(|(number, _)| *number == way).map(|(_, address)| address.as_str());
        Ok(text.lines().filter_map(|line| kind.sample(line, address?)).collect())
    }
}

impl LogKind {
    /// What a line says of the server at `address`; `None` where it says nothing of it.
    fn sample(self, line: &str, address: &str) -> Option<LogSample> {
        let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        let is_about = |place: usize| words.get(place).is_some_and(|word| *word == address);
        let number = |place: usize| words.get(place)?.parse::<f64>().ok();
        match self {
            LogKind::Replies if is_about(0) => {
                let claim = JudgedClaim { claim_s: number(2)?, held: number(3)? > 0.5 };
                Some(LogSample { error_s: number(1)?, claim: Some(claim) })
            }
            LogKind::ChronydEstimates if is_about(2) => Some(LogSample { error_s: number(4)?, claim: None }),
            LogKind::ChronydClaims if is_about(2) => {
                let error_s = number(11)?;
                let claim_s = (number(12)? + number(14)?) / 2.0 + number(13)? + number(15)?;
                Some(LogSample { error_s, claim: Some(JudgedClaim { claim_s, held: error_s.abs() <= claim_s }) })
            }
            LogKind::NtpdPeers if is_about(2) => Some(LogSample { error_s: number(4)?, claim: None }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_each_program_are_understood() {
        let statistics =
            "2026-11-22 10:00:01 10.77.1.1 6.261e-06 -3.247e-06 2.220e-06 1.874e-06 1.080e-06 7.8e-02 16 0 8 0.00";
        let sample = LogKind::ChronydEstimates.sample(statistics, "10.77.1.1").unwrap();
        assert_eq!(sample, LogSample { error_s: -3.247e-6, claim: None });
        assert_eq!(LogKind::ChronydEstimates.sample(statistics, "10.77.1.11"), None);
        let measured = |offset: &str| {
            format!(
                "2026-11-22 10:00:01 10.77.1.1 N 2 111 111 1111 -2 -2 0.00 {offset} 2.0e-05 1.0e-06 4.0e-05 3.0e-06 7F7F0101 4B K K"
            )
        };
        let judged = |offset| LogKind::ChronydClaims.sample(&measured(offset), "10.77.1.1").unwrap().claim.unwrap();
        assert!((judged("-3.3e-05").claim_s - 34e-6).abs() < 1e-12 && judged("-3.3e-05").held);
        assert!(!judged("3.5e-05").held);
        let peers = "61366 3661.123 10.77.1.2 961a 0.000004000 0.000030000 0.000500000 0.000001000";
        assert_eq!(LogKind::NtpdPeers.sample(peers, "10.77.1.2").unwrap().error_s, 4e-6);
        let reply = LogKind::Replies.sample("10.77.1.1,-0.000003,0.000040,1", "10.77.1.1").unwrap();
        assert_eq!(reply, LogSample { error_s: -3e-6, claim: Some(JudgedClaim { claim_s: 40e-6, held: true }) });
    }
}
