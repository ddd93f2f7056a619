//! The smallest HTTP that scrapers of metrics accept.

use crate::listener::Answering;

/// The answer to the head of an HTTP request.
pub(crate) fn answer(head: &[u8], daemon: &mut dyn Answering) -> String {
    let line = head.split(|byte| b"\r\n".contains(byte)).next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    // What follows a question mark are parameters, and none of them changes the answer.
    let path = target.split(|&byte| byte == b'?').next().unwrap_or_default();
    match (method, path) {
        (b"GET" | b"HEAD", b"/metrics") => {
            let body = daemon.metrics();
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n\
                 Content-Length: {}\r\nConnection: close\r\n\r\n{}",
                body.len(),
                if method == b"HEAD" { "" } else { &body }
            )
        }
        (b"GET" | b"HEAD", _) => error("404 Not Found"),
        _ => error("405 Method Not Allowed"),
    }
}

/// An answer without a body.
pub(crate) fn error(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::tests::Idle;

    #[test]
    fn the_answer_counts_its_length() {
        let text = answer(b"GET /metrics HTTP/1.1", &mut Idle);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
    }

    #[test]
    fn other_requests_are_refused() {
        assert!(answer(b"GET / HTTP/1.1", &mut Idle).starts_with("HTTP/1.1 404"));
        assert!(answer(b"POST /metrics HTTP/1.1", &mut Idle).starts_with("HTTP/1.1 405"));
        assert!(answer(b"", &mut Idle).starts_with("HTTP/1.1 405"));
    }
}
