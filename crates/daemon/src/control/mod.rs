//! The two ways to look at a running daemon: a control socket with JSON lines, and metrics over HTTP on a loopback address.
//!
//! Both are readers: they are shown a report and can change nothing in the rooms that keep time. Everything that arrives here is
//! untrusted: lines are bounded, connections are few, and a peer that does not read its answer is dropped.

mod connection;
mod metrics;
pub mod report;

pub(crate) use connection::{Accept, Listener, Service};

use report::{Answer, Request};

/// What a service needs from the daemon.
pub(crate) trait Reporter {
    /// The state as it is now.
    fn status(&self) -> report::StatusReport;
    /// Asks for a reload of the configuration.
    ///
    /// # Errors
    /// Why the configuration was refused; the old one stays in force.
    fn reload(&mut self) -> Result<(), String>;
}

/// Answers one line of the control socket; the answer ends with a newline.
fn answer_line(line: &[u8], daemon: &mut dyn Reporter) -> String {
    let answer = match parse_request(line) {
        Ok(Request::Status) => Answer::Status(Box::new(daemon.status())),
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

/// Reads one request: a line of the control socket without its end.
///
/// # Errors
/// Why it is not a request.
pub fn parse_request(line: &[u8]) -> Result<Request, String> {
    serde_json::from_slice(line).map_err(|error| format!("not a request: {error}"))
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
