//! The smallest HTTP that scrapers of metrics and browsers accept.
//!
//! A daemon may have a page that shows its state as it changes ([`Answering::page`]); the page asks for the state again
//! and again. The state is written at most once in [`LIVE_EVERY`], so that a thousand readers cost the daemon no more
//! than their connections. Nothing that is asked here changes anything.
//!
//! A request that names a host other than this one's loopback is turned away: a browser sends such a one where the name
//! of a site was made to lead here, so that the site could read the answer as its own.

use crate::listener::Answering;
use ffclock_units::{Moment, Mono, Span};
use std::net::{IpAddr, SocketAddr};

/// How long the state that was written for one reader of the page is given to the others as well.
const LIVE_EVERY: Span = Span::from_millis(500);

const TEXT_OF_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json; charset=utf-8\r\nCache-Control: no-store";
/// The page may ask its own daemon, and nothing else: it loads nothing, and no other site may frame it.
const HTML: &str = "text/html; charset=utf-8\r\nCache-Control: no-cache\r\nContent-Security-Policy: default-src \
                    'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; \
                    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The state that was last written for readers of the page.
#[derive(Default)]
pub(crate) struct LiveText {
    written: Option<Moment<Mono>>,
    text: String,
}

/// The daemon, as its visitors see it at one moment.
pub(crate) struct Visited<'a> {
    pub(crate) daemon: &'a mut dyn Answering,
    pub(crate) live: &'a mut LiveText,
    pub(crate) now: Moment<Mono>,
}

impl Visited<'_> {
    /// The answer to the head of an HTTP request.
    pub(crate) fn answer(&mut self, head: &[u8]) -> String {
        let head = String::from_utf8_lossy(head);
        let mut lines = head.lines();
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if !matches!(method, "GET" | "HEAD") {
            return error("405 Method Not Allowed");
        }
        let (named, place) = split_target(target);
        if !named.or_else(|| lines.find_map(named_host)).is_none_or(is_loopback) {
            return error("421 Misdirected Request");
        }
        let (kind, body) = match place {
            "/metrics" => (TEXT_OF_METRICS, Some(self.daemon.metrics())),
            "/" => (HTML, self.daemon.page().map(str::to_owned)),
            "/live.json" => (JSON, self.live()),
            _ => (JSON, None),
        };
        let Some(body) = body else { return error("404 Not Found") };
        let head = head_of(kind, body.len());
        if method == "HEAD" { head } else { head + &body }
    }

    fn live(&mut self) -> Option<String> {
        let is_fresh = self.live.written.is_some_and(|written| self.now - written < LIVE_EVERY);
        if !is_fresh {
            self.live.text = self.daemon.state()?;
            self.live.written = Some(self.now);
        }
        Some(self.live.text.clone())
    }
}

/// The host that a target names, if it is in the absolute form (RFC 9112, section 3.2.2), and the place there. What
/// follows a question mark are parameters, and none of them changes the answer.
fn split_target(target: &str) -> (Option<&str>, &str) {
    let target = target.split('?').next().unwrap_or_default();
    let Some(rest) = target.strip_prefix("http://") else { return (None, target) };
    let (host, place) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    (Some(host), if place.is_empty() { "/" } else { place })
}

/// The host of the header of that name.
fn named_host(line: &str) -> Option<&str> {
    let (name, value) = line.split_once(':')?;
    name.eq_ignore_ascii_case("host").then_some(value.trim())
}

/// Whether this host, with or without a port, is the own one by a name that no other can have.
fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = host.parse().map(|address: SocketAddr| address.ip()).or_else(|_| bare.parse::<IpAddr>());
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    address.map_or_else(|_| name.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}

/// What stands before a body of this kind and length.
fn head_of(kind: &str, bytes: usize) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nX-Content-Type-Options: nosniff\r\nContent-Length: {bytes}\r\n\
         Connection: close\r\n\r\n"
    )
}

/// An answer without a body.
pub(crate) fn error(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::Rights;
    use crate::listener::tests::Idle;

    fn ask(head: &[u8], daemon: &mut dyn Answering) -> String {
        let now = Moment::from_origin(Span::from_secs(5));
        Visited { daemon, live: &mut LiveText::default(), now }.answer(head)
    }

    #[test]
    fn the_answer_counts_its_length() {
        let text = ask(b"GET /metrics HTTP/1.1", &mut Idle);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
        let head_only = ask(b"HEAD /metrics HTTP/1.1", &mut Idle);
        assert_eq!(head_only, format!("{head}\r\n\r\n"));
    }

    #[test]
    fn other_requests_are_refused() {
        for target in ["/", "/live.json", "/metric"] {
            assert!(
                ask(format!("GET {target} HTTP/1.1").as_bytes(), &mut Idle).starts_with("HTTP/1.1 404"),
                "{target}"
            );
        }
        assert!(ask(b"POST /metrics HTTP/1.1", &mut Idle).starts_with("HTTP/1.1 405"));
        assert!(ask(b"", &mut Idle).starts_with("HTTP/1.1 405"));
    }

    /// A daemon with a page, which counts how often its state was written.
    struct Watched(u32);

    impl Answering for Watched {
        fn answer_line(&mut self, _: &[u8], _: Rights) -> String {
            String::new()
        }
        fn metrics(&mut self) -> String {
            String::new()
        }
        fn page(&self) -> Option<&'static str> {
            Some("<!doctype html>")
        }
        fn state(&mut self) -> Option<String> {
            self.0 += 1;
            Some(format!("{{\"number\":{}}}", self.0))
        }
    }

    #[test]
    fn a_name_that_was_made_to_lead_here_reads_nothing() {
        let status = |request: &str| {
            let text = ask(request.as_bytes(), &mut Watched(0));
            text.lines().next().unwrap_or_default().to_owned()
        };
        let hosts = ["127.0.0.1:9975", "127.9.9.9", "[::1]:9975", "[::1]", "localhost", "LocalHost:9975"];
        for host in hosts {
            assert_eq!(
                status(&format!("GET /live.json HTTP/1.1\r\nhost: {host}\r\n\r\n")),
                "HTTP/1.1 200 OK",
                "{host}"
            );
            assert_eq!(status(&format!("GET http://{host}/live.json HTTP/1.1\r\n\r\n")), "HTTP/1.1 200 OK", "{host}");
        }
        for host in ["evil.example", "evil.example:9975", "localhost.evil.example", "10.0.0.1:9975", ""] {
            for target in ["/", "/live.json", "/metrics"] {
                let request = format!("GET {target} HTTP/1.1\r\nX: y\r\nHost:  {host}\r\n\r\n");
                assert_eq!(status(&request), "HTTP/1.1 421 Misdirected Request", "{request}");
            }
        }
        let both = "GET http://evil.example HTTP/1.1\r\nHost: localhost\r\n\r\n";
        assert_eq!(status(both), "HTTP/1.1 421 Misdirected Request", "the header does not count beside the target");
        assert_eq!(status("GET http://localhost HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK");
    }

    #[test]
    fn the_page_may_load_nothing_from_elsewhere() {
        let page = ask(b"GET / HTTP/1.1", &mut Watched(0));
        assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("<!doctype html>"), "{page}");
        for expected in ["text/html", "default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "nosniff"] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
    }

    #[test]
    fn however_many_watch_the_state_is_written_twice_a_second() {
        let (mut daemon, mut live) = (Watched(0), LiveText::default());
        for millisecond in 0..2000 {
            let now = Moment::from_origin(Span::from_secs(5) + Span::from_millis(millisecond));
            let text = Visited { daemon: &mut daemon, live: &mut live, now }.answer(b"GET /live.json?x HTTP/1.1");
            let number = millisecond / 500 + 1;
            assert!(text.ends_with(&format!("\r\n\r\n{{\"number\":{number}}}")), "{millisecond}: {text}");
            assert!(text.contains("no-store"));
        }
    }
}
