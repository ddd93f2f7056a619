//! The views of a running daemon: a control socket with JSON lines, and over HTTP on a loopback address its metrics
//! and a page that shows its state as it changes.
//!
//! All are readers: they get a report and can change nothing in the rooms that keep time. Anyone may ask for the
//! status; a reload is for root and for the daemon's own user. The sockets and their connections are
//! `ffclock_service`'s.

mod metrics;

use ffclock_control::protocol::{Answer, Request, StatusReport, parse_request};
use ffclock_service::Rights;

pub(crate) use metrics::exposition;

/// The page that shows the state in a browser. It holds all it needs, and asks for nothing but the state.
pub(crate) const LIVE_PAGE: &str = include_str!("control/live.html");

/// What a service needs from the daemon.
pub(crate) trait Reporter {
    /// The state as it is now.
    fn status(&self) -> StatusReport;
    /// Asks for a reload of the configuration.
    ///
    /// # Errors
    /// The configuration was refused, and the error says why; the old one stays in force.
    fn reload(&mut self) -> Result<(), String>;
}

/// Answers one line of the control socket; the answer ends with a newline.
pub(crate) fn answer_line(line: &[u8], rights: Rights, daemon: &mut dyn Reporter) -> String {
    let answer = match parse_request(line) {
        Ok(Request::Status) => Answer::Status(Box::new(daemon.status())),
        Ok(Request::Reload) if rights == Rights::Look => {
            Answer::Error { message: "only root and the user that ffclockd runs as may ask for a reload".to_owned() }
        }
        Ok(Request::Reload) => match daemon.reload() {
            Ok(()) => Answer::Reloaded,
            Err(message) => Answer::Error { message },
        },
        Err(message) => Answer::Error { message },
    };
    written(&answer)
}

/// The state, as the control socket gives it.
pub(crate) fn state(daemon: &dyn Reporter) -> String {
    written(&Answer::Status(Box::new(daemon.status())))
}

/// An answer as one line of JSON.
fn written(answer: &Answer) -> String {
    let mut text = serde_json::to_string(answer)
        .unwrap_or_else(|error| format!("{{\"answer\":\"error\",\"message\":\"no JSON form: {error}\"}}"));
    text.push('\n');
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ffclock_control::protocol::CounterReport;

    pub(crate) struct Idle;

    impl Reporter for Idle {
        fn status(&self) -> StatusReport {
            StatusReport {
                version: "0".into(),
                uptime_s: 1.0,
                counter: CounterReport { name: "tsc".into(), reason: "test".into(), nominal_hz: 1e9, epoch: 1 },
                stamps: "kernel".into(),
                page: "/page".into(),
                clock: None,
                keep_noise_s: None,
                selected: None,
                quorum: None,
                vote: None,
                sources: Vec::new(),
                events: Vec::new(),
            }
        }
        fn reload(&mut self) -> Result<(), String> {
            Err("refused".into())
        }
    }

    #[test]
    fn a_reload_is_not_for_everybody() {
        let reload = br#"{"command":"reload"}"#;
        assert!(answer_line(reload, Rights::Look, &mut Idle).contains("only root"));
        assert!(answer_line(reload, Rights::Command, &mut Idle).contains("refused"));
    }
}
