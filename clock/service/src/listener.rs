//! Small line-based servers inside the event loop: bounded, never blocking.
//!
//! A client that asks without pause gets its answers one turn of the loop after the other. A client that does not read
//! its answers delays only itself.

use crate::http::{self, LiveText, Visited};
use ffclock_sys::Interest;
use ffclock_units::{Moment, Mono, Span};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};

/// What a daemon says to its visitors.
pub trait Answering {
    /// Answers one line of the control socket; the answer ends with a newline.
    fn answer_line(&mut self, line: &[u8], rights: Rights) -> String;
    /// All metrics in OpenMetrics text, with its ending.
    fn metrics(&mut self) -> String;
    /// The page that shows the state as it changes: HTML that loads nothing but `/live.json`. None unless it says
    /// otherwise.
    fn page(&self) -> Option<&'static str> {
        None
    }
    /// The state for that page, as JSON.
    fn state(&mut self) -> Option<String> {
        None
    }
}

/// The rights of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// To read the state.
    Look,
    /// To read the state and to have the configuration read again.
    Command,
}

/// A longer request is answered with an error, and the connection is closed.
const LONGEST_REQUEST: usize = 4096;
/// With one more connection, the oldest is closed.
const MOST_CONNECTIONS: usize = 16;

/// The most requests of one connection that are answered in a turn.
const MOST_ANSWERS: usize = 4;
/// The pause after a connection could not be accepted because no descriptor was left.
const ACCEPT_AGAIN: Span = Span::from_secs(1);

/// A socket that hands out streams.
pub trait Accept: AsFd {
    /// The type of its streams.
    type Stream: Read + Write + AsFd;
    /// The next waiting stream, set not to block.
    ///
    /// # Errors
    /// There is none, or it cannot be accepted.
    fn accept_ready(&self) -> std::io::Result<Self::Stream>;
    /// The rights of the client at the other end.
    fn rights(stream: &Self::Stream) -> Rights;
}

impl Accept for UnixListener {
    type Stream = UnixStream;
    fn accept_ready(&self) -> std::io::Result<UnixStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
    fn rights(stream: &UnixStream) -> Rights {
        if ffclock_sys::is_own_or_root(stream.as_fd()) { Rights::Command } else { Rights::Look }
    }
}

impl Accept for TcpListener {
    type Stream = TcpStream;
    fn accept_ready(&self) -> std::io::Result<TcpStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
    fn rights(_: &TcpStream) -> Rights {
        Rights::Look
    }
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// JSON lines, until the peer closes.
    Control,
    /// One HTTP request for `/metrics`, the daemon's page or its state, then close.
    Metrics,
}

impl Service {
    /// Where the first whole request ends: its length without and with the bytes that end it. The head of an HTTP
    /// request ends with an empty line; a lone line feed ends a line too (RFC 9112, section 2.2).
    fn first_end(self, arrived: &[u8]) -> Option<(usize, usize)> {
        let ends: &[&[u8]] = match self {
            Service::Control => &[b"\n"],
            Service::Metrics => &[b"\r\n\r\n", b"\n\n"],
        };
        ends.iter().filter_map(|end| find(arrived, end).map(|at| (at, at + end.len()))).min()
    }
}

struct Connection<S> {
    stream: S,
    rights: Rights,
    arrived: Vec<u8>,
    leaving: Vec<u8>,
    close_when_sent: bool,
}

/// A listening socket and its open connections.
pub struct Listener<L: Accept> {
    socket: L,
    service: Service,
    connections: Vec<Connection<L::Stream>>,
    live: LiveText,
    /// No connection is accepted before this time.
    paused_until: Option<Moment<Mono>>,
}

impl<L: Accept> Listener<L> {
    /// The caller has set `socket` not to block.
    pub fn new(socket: L, service: Service) -> Self {
        Listener { socket, service, connections: Vec::new(), live: LiveText::default(), paused_until: None }
    }

    /// Shows everything that the event loop must wait for.
    pub fn interests<'a>(&'a self, visit: &mut dyn FnMut(Interest<'a>)) {
        if self.paused_until.is_none() {
            visit(Interest::readable(self.socket.as_fd()));
        }
        for connection in &self.connections {
            let stream = connection.stream.as_fd();
            visit(if connection.has_more(self.service) {
                Interest::writable(stream)
            } else {
                Interest::readable(stream)
            });
        }
    }

    /// When to call [`Listener::serve`] even if nothing is ready.
    pub fn next_timeout(&self) -> Option<Moment<Mono>> {
        self.paused_until
    }

    /// Does all that can be done without blocking. Called when any of the descriptors is ready.
    pub fn serve(&mut self, now: Moment<Mono>, daemon: &mut dyn Answering) {
        let all_in = self.paused_until.is_some_and(|until| until > now) || self.let_in();
        let (service, before) = (self.service, self.connections.len());
        let mut visited = Visited { daemon, live: &mut self.live, now };
        self.connections.retain_mut(|connection| connection.progress(service, &mut visited));
        if !all_in {
            // A waiting client would wake the loop again and again, unless there is room now.
            self.paused_until = (self.connections.len() == before).then_some(now + ACCEPT_AGAIN);
        }
    }

    /// Whether all clients were let in: none waits outside for lack of descriptors.
    fn let_in(&mut self) -> bool {
        self.paused_until = None;
        for _ in 0..MOST_CONNECTIONS {
            match self.socket.accept_ready() {
                Ok(stream) => {
                    if self.connections.len() == MOST_CONNECTIONS {
                        self.connections.remove(0);
                    }
                    self.connections.push(Connection::new(L::rights(&stream), stream));
                }
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        true
    }
}

impl<S: Read + Write> Connection<S> {
    fn new(rights: Rights, stream: S) -> Self {
        Connection { stream, rights, arrived: Vec::new(), leaving: Vec::new(), close_when_sent: false }
    }

    /// Whether there is work as soon as the peer takes more: the rest of an answer, or the next request.
    fn has_more(&self, service: Service) -> bool {
        !self.leaving.is_empty() || service.first_end(&self.arrived).is_some()
    }

    /// Whether the connection stays open.
    fn progress(&mut self, service: Service, visited: &mut Visited<'_>) -> bool {
        let mut answers = 0;
        loop {
            match self.flush() {
                Ok(true) if self.close_when_sent => return false,
                Ok(true) => {}
                Ok(false) => return true,
                Err(_) => return false,
            }
            if answers == MOST_ANSWERS {
                return true;
            }
            if self.answer_next(service, visited) {
                answers += 1;
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

    /// Whether all of it has been sent.
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
    fn answer_next(&mut self, service: Service, visited: &mut Visited<'_>) -> bool {
        let answer = match service {
            Service::Control => self.take_request(service).map(|line| visited.daemon.answer_line(&line, self.rights)),
            Service::Metrics => self.take_request(service).map(|head| visited.answer(&head)),
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

    fn take_request(&mut self, service: Service) -> Option<Vec<u8>> {
        let (length, with_end) = service.first_end(&self.arrived)?;
        let request = self.arrived.drain(..with_end).take(length).collect();
        Some(request)
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn too_long(service: Service) -> String {
    match service {
        Service::Control => "{\"answer\":\"error\",\"message\":\"the request is too long\"}\n".to_owned(),
        Service::Metrics => http::error("431 Request Header Fields Too Large"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) struct Idle;

    impl Answering for Idle {
        fn answer_line(&mut self, line: &[u8], rights: Rights) -> String {
            format!("{} {rights:?}\n", line.len())
        }
        fn metrics(&mut self) -> String {
            "# EOF\n".to_owned()
        }
    }

    /// One turn of the loop for a connection.
    fn turn(connection: &mut Connection<UnixStream>, service: Service) -> bool {
        let now = Moment::from_origin(Span::ZERO);
        connection.progress(service, &mut Visited { daemon: &mut Idle, live: &mut LiveText::default(), now })
    }

    fn talk(service: Service, input: &[u8]) -> (String, bool) {
        let (mut near, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        near.write_all(input).unwrap();
        let mut connection = Connection::new(Rights::Command, far);
        let open = turn(&mut connection, service);
        drop(connection);
        let mut answer = String::new();
        near.read_to_string(&mut answer).unwrap();
        (answer, open)
    }

    #[test]
    fn every_line_gets_a_line() {
        let (answer, open) = talk(Service::Control, b"status\nnonsense\nreload\n");
        assert_eq!(answer, "6 Command\n8 Command\n6 Command\n");
        assert!(open);
    }

    #[test]
    fn who_asks_without_pause_is_answered_turn_by_turn() {
        let (mut near, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        near.write_all(&b"x\n".repeat(3 * MOST_ANSWERS)).unwrap();
        let mut connection = Connection::new(Rights::Command, far);
        let mut buffer = [0; 4096];
        for round in 1..=3 {
            assert!(turn(&mut connection, Service::Control));
            let length = near.read(&mut buffer).unwrap();
            let answers = buffer[..length].iter().filter(|&&byte| byte == b'\n').count();
            assert_eq!(answers, MOST_ANSWERS, "turn {round}");
            assert_eq!(connection.has_more(Service::Control), round < 3, "the loop must be woken for the rest");
        }
    }

    #[test]
    fn a_client_that_does_not_read_delays_no_other() {
        let (mut near, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        near.set_nonblocking(true).unwrap();
        let mut connection = Connection::new(Rights::Command, far);
        for _ in 0..20_000 {
            let _ = near.write(b"{\"command\":\"status\"}\n");
            assert!(turn(&mut connection, Service::Control));
        }
        let kept = connection.arrived.len() + connection.leaving.len();
        assert!(kept < 2 * LONGEST_REQUEST, "{kept} bytes are kept for the client");
    }

    #[test]
    fn while_no_client_can_be_accepted_the_loop_is_not_woken_for_it() {
        struct Exhausted(UnixListener);
        impl AsFd for Exhausted {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.0.as_fd()
            }
        }
        impl Accept for Exhausted {
            type Stream = UnixStream;
            fn accept_ready(&self) -> std::io::Result<UnixStream> {
                Err(ErrorKind::OutOfMemory.into())
            }
            fn rights(_: &UnixStream) -> Rights {
                Rights::Look
            }
        }
        let path = std::env::temp_dir().join(format!("ffclock-exhausted-{}", std::process::id()));
        let mut listener = Listener::new(Exhausted(UnixListener::bind(&path).unwrap()), Service::Control);
        let waited_for = |listener: &Listener<Exhausted>| {
            let mut count = 0;
            listener.interests(&mut |_| count += 1);
            count
        };
        let now = Moment::from_origin(Span::from_secs(5));
        assert_eq!(waited_for(&listener), 1);
        listener.serve(now, &mut Idle);
        assert_eq!(waited_for(&listener), 0);
        assert_eq!(listener.next_timeout(), Some(now + ACCEPT_AGAIN));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_request_without_end_is_cut_off() {
        let (answer, open) = talk(Service::Control, &vec![b'x'; LONGEST_REQUEST + 10]);
        assert!(answer.contains("too long"));
        assert!(!open);
    }

    #[test]
    fn metrics_close_after_one_answer() {
        let (answer, open) = talk(Service::Metrics, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"));
        assert!(!open);
    }

    #[test]
    fn http_is_understood_as_clients_speak_it() {
        for (request, expected) in [
            ("GET /metrics?collect=all HTTP/1.1\r\n\r\n", "HTTP/1.1 200"),
            ("GET /metrics HTTP/1.0\nHost: localhost\n\n", "HTTP/1.1 200"),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200"),
            ("GET /metric HTTP/1.1\r\n\r\n", "HTTP/1.1 404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405"),
        ] {
            let (answer, open) = talk(Service::Metrics, request.as_bytes());
            assert!(answer.starts_with(expected) && !open, "{request}: {answer}");
            assert_eq!(
                answer.ends_with("# EOF\n"),
                request.starts_with("GET") && expected.ends_with("200"),
                "{request}"
            );
        }
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
            listener.serve(Moment::from_origin(Span::ZERO), &mut Idle);
        }
        assert_eq!(listener.connections.len(), MOST_CONNECTIONS);
        let mut rest = String::new();
        streams[0].read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
