//! The two ways to look at a running daemon: a control socket with JSON lines, and metrics over HTTP on a loopback
//! address.
//!
//! Both are readers: they are shown a report and can change nothing in the rooms that keep time. Everybody may look; a
//! reload is for root and for the daemon's own user. Everything that arrives here is untrusted: lines are bounded,
//! connections are few, and the oldest goes when there are too many.

mod connection;
mod metrics;

pub(crate) use connection::{Listener, Service};

use ffclock_control::protocol::{Answer, Request, StatusReport, parse_request};

/// What a service needs from the daemon.
pub(crate) trait Reporter {
    /// The state as it is now.
    fn status(&self) -> StatusReport;
    /// Asks for a reload of the configuration.
    ///
    /// # Errors
    /// Why the configuration was refused; the old one stays in force.
    fn reload(&mut self) -> Result<(), String>;
}

/// What somebody may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// To be told the state.
    Look,
    /// To have the configuration read again as well.
    Command,
}

/// Answers one line of the control socket; the answer ends with a newline.
fn answer_line(line: &[u8], rights: Rights, daemon: &mut dyn Reporter) -> String {
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
    let mut text = serde_json::to_string(&answer)
        .unwrap_or_else(|error| format!("{{\"answer\":\"error\",\"message\":\"no JSON form: {error}\"}}"));
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_is_not_for_everybody() {
        let reload = br#"{"command":"reload"}"#;
        assert!(answer_line(reload, Rights::Look, &mut connection::tests::Idle).contains("only root"));
        assert!(answer_line(reload, Rights::Command, &mut connection::tests::Idle).contains("refused"));
    }
}
