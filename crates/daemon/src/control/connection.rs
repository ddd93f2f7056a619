//! Small line-based servers inside the event loop: bounded, never blocking.

use super::{Reporter, answer_line, metrics};
use ffclock_sys::Interest;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};

/// A longer request is answered with an error and the connection closed.
const LONGEST_REQUEST: usize = 4096;
/// When one more connects, the oldest connection is closed.
const MOST_CONNECTIONS: usize = 16;

/// A socket that hands out streams.
pub(crate) trait Accept: AsFd {
    /// What it hands out.
    type Stream: Read + Write + AsFd;
    /// The next waiting stream, set not to block.
    fn accept_ready(&self) -> std::io::Result<Self::Stream>;
}

impl Accept for UnixListener {
    type Stream = UnixStream;
    fn accept_ready(&self) -> std::io::Result<UnixStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

impl Accept for TcpListener {
    type Stream = TcpStream;
    fn accept_ready(&self) -> std::io::Result<TcpStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// JSON lines, until the peer closes.
    Control,
    /// One HTTP request for `/metrics`, then close.
    Metrics,
}

struct Connection<S> {
    stream: S,
    arrived: Vec<u8>,
    leaving: Vec<u8>,
    close_when_sent: bool,
}

/// A listening socket and its open connections.
pub(crate) struct Listener<L: Accept> {
    socket: L,
    service: Service,
    connections: Vec<Connection<L::Stream>>,
}

impl<L: Accept> Listener<L> {
    /// `socket` is set not to block by the caller.
    pub(crate) fn new(socket: L, service: Service) -> Self {
        Listener { socket, service, connections: Vec::new() }
    }

    /// Shows everything that the event loop must wait for.
    pub(crate) fn interests<'a>(&'a self, visit: &mut dyn FnMut(Interest<'a>)) {
        visit(Interest::readable(self.socket.as_fd()));
        for connection in &self.connections {
            let stream = connection.stream.as_fd();
            visit(if connection.leaving.is_empty() { Interest::readable(stream) } else { Interest::writable(stream) });
        }
    }

    /// Does whatever can be done without blocking: called when any of the descriptors is ready.
    pub(crate) fn serve(&mut self, daemon: &mut dyn Reporter) {
        while let Ok(stream) = self.socket.accept_ready() {
            if self.connections.len() == MOST_CONNECTIONS {
                self.connections.remove(0);
            }
            self.connections.push(Connection::new(stream));
        }
        let service = self.service;
        self.connections.retain_mut(|connection| connection.progress(service, daemon));
    }
}

impl<S: Read + Write> Connection<S> {
    fn new(stream: S) -> Self {
        Connection { stream, arrived: Vec::new(), leaving: Vec::new(), close_when_sent: false }
    }

    /// Whether the connection stays open.
    fn progress(&mut self, service: Service, daemon: &mut dyn Reporter) -> bool {
        loop {
            match self.flush() {
                Ok(true) if self.close_when_sent => return false,
                Ok(true) => {}
                Ok(false) => return true,
                Err(_) => return false,
            }
            if self.answer_next(service, daemon) {
                continue;
            }
            match self.fill() {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }

    fn fill(&mut self) -> std::io::Result<usize> {
        let mut chunk = [0; 1024];
        let length = self.stream.read(&mut chunk)?;
        self.arrived.extend_from_slice(&chunk[..length]);
        Ok(length)
    }

    /// Whether everything has left.
    fn flush(&mut self) -> std::io::Result<bool> {
        while !self.leaving.is_empty() {
            match self.stream.write(&self.leaving) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(length) => drop(self.leaving.drain(..length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Whether a whole request had arrived and its answer is now leaving.
    fn answer_next(&mut self, service: Service, daemon: &mut dyn Reporter) -> bool {
        let answer = match service {
            Service::Control => self.take_until(b"\n").map(|line| answer_line(&line, daemon)),
            Service::Metrics => self.take_until(b"\r\n\r\n").map(|head| metrics::http_answer(&head, daemon)),
        };
        let answer = match answer {
            Some(answer) => answer,
            None if self.arrived.len() > LONGEST_REQUEST => too_long(service),
            None => return false,
        };
        self.close_when_sent |= service == Service::Metrics || self.arrived.len() > LONGEST_REQUEST;
        self.leaving.extend_from_slice(answer.as_bytes());
        true
    }

    fn take_until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        let at = self.arrived.windows(end.len()).position(|window| window == end)?;
        let request = self.arrived.drain(..at + end.len()).take(at).collect();
        Some(request)
    }
}

fn too_long(service: Service) -> String {
    match service {
        Service::Control => "{\"answer\":\"error\",\"message\":\"the request is too long\"}\n".to_owned(),
        Service::Metrics => metrics::http_error("431 Request Header Fields Too Large"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::report::{CounterReport, StatusReport};
    use super::*;

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
                selected: None,
                sources: Vec::new(),
                events: Vec::new(),
            }
        }
        fn reload(&mut self) -> Result<(), String> {
            Err("refused".into())
        }
    }

    fn talk(service: Service, input: &[u8]) -> (String, bool) {
        let (mut near, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        near.write_all(input).unwrap();
        let mut connection = Connection::new(far);
        let open = connection.progress(service, &mut Idle);
        drop(connection);
        let mut answer = String::new();
        near.read_to_string(&mut answer).unwrap();
        (answer, open)
    }

    #[test]
    fn every_line_gets_a_line() {
        let (answer, open) = talk(Service::Control, b"{\"command\":\"status\"}\nnonsense\n{\"command\":\"reload\"}\n");
        let lines: Vec<_> = answer.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].contains("\"answer\":\"status\""));
        assert!(lines[1].contains("not a request"));
        assert!(lines[2].contains("refused"));
        assert!(open);
    }

    #[test]
    fn a_request_without_end_is_cut_off() {
        let (answer, open) = talk(Service::Control, &vec![b'x'; LONGEST_REQUEST + 10]);
        assert!(answer.contains("too long"));
        assert!(!open);
    }

    #[test]
    fn metrics_close_after_one_answer() {
        let (answer, open) = talk(Service::Metrics, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"));
        assert!(!open);
    }

    #[test]
    fn the_oldest_of_too_many_connections_goes() {
        let directory = std::env::temp_dir().join(format!("ffclock-listener-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("socket");
        let socket = UnixListener::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut listener = Listener::new(socket, Service::Control);
        let mut streams: Vec<_> = Vec::new();
        for _ in 0..=MOST_CONNECTIONS {
            streams.push(UnixStream::connect(&path).unwrap());
            listener.serve(&mut Idle);
        }
        assert_eq!(listener.connections.len(), MOST_CONNECTIONS);
        let mut rest = String::new();
        streams[0].read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
