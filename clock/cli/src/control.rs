//! One question to the daemon over its control socket, and its answer.
//!
//! The protocol is docs/control.md. A daemon that is gone, stuck or speaks nonsense costs at most [`PATIENCE`] and
//! [`LONGEST_ANSWER`], and each ends in a message that says what to do.

use crate::Global;
use crate::failure::Failure;
use ffclock_control::protocol::{Request, StatusReport};
use ffclock_sys::places;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A program with a control socket, for what is said of it.
pub(crate) struct Asked {
    /// Its name.
    pub(crate) program: &'static str,
    /// The option that names its socket.
    pub(crate) option: &'static str,
}

/// The daemon that keeps time.
const DAEMON: Asked = Asked { program: "ffclockd", option: "--control" };

/// How long a whole conversation may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// A longer answer is not from ffclockd.
const LONGEST_ANSWER: usize = 1 << 20;

/// The state of the daemon.
pub(crate) fn status(global: &Global) -> Result<StatusReport, Failure> {
    status_at(&socket(global)?)
}

/// The state of the daemon that listens on this control socket.
///
/// # Errors
/// Nothing listens there; or the daemon does not answer within two seconds, or in another protocol.
pub fn status_at(socket: &Path) -> Result<StatusReport, Failure> {
    status_of(&DAEMON, socket, "status")
}

/// The state of the program that listens on this socket, in an answer of this kind.
pub(crate) fn status_of<T: DeserializeOwned>(asked: &Asked, socket: &Path, answer: &str) -> Result<T, Failure> {
    let line = ask(asked, socket, Request::Status)?;
    expect(asked, &line, answer)?;
    understand(asked, &line)
}

/// Has the daemon read its configuration again.
pub(crate) fn reload(global: &Global) -> Result<(), Failure> {
    expect(&DAEMON, &ask(&DAEMON, &socket(global)?, Request::Reload)?, "reloaded")
}

/// The socket that was named; or else the one beside the page, which need not be there for that; or else, where no page
/// was named either, the first that is there in the usual places.
pub(crate) fn socket(global: &Global) -> Result<PathBuf, Failure> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match (&global.control, &global.page) {
        (Some(named), _) => Ok(named.clone()),
        (None, Some(page)) => Ok(beside(page)),
        (None, None) => {
            let page = ffclock::default_page();
            let others =
                if variable("FFCLOCK_PAGE").is_some() { Vec::new() } else { usual(variable("XDG_RUNTIME_DIR")) };
            find(&page, others)
        }
    }
}

fn beside(page: &Path) -> PathBuf {
    page.with_file_name(places::CONTROL_NAME)
}

/// Where a daemon of the system listens, and one of the user whose directory this is.
fn usual(runtime: Option<OsString>) -> Vec<PathBuf> {
    let user = runtime.map(|directory| Path::new(&directory).join(places::OF_USER).join(places::CONTROL_NAME));
    std::iter::once(PathBuf::from(places::CONTROL)).chain(user).collect()
}

/// The first socket that is there: beside the page, or in one of the other places.
fn find(page: &Path, others: Vec<PathBuf>) -> Result<PathBuf, Failure> {
    let mut tried = vec![beside(page)];
    tried.extend(others.into_iter().filter(|other| *other != beside(page)));
    let found = tried.iter().find(|path| path.exists());
    found.cloned().ok_or_else(|| {
        let names: Vec<String> = tried.iter().map(|path| path.display().to_string()).collect();
        missing(&DAEMON, &names.join(" nor "))
    })
}

fn missing(Asked { program, option }: &Asked, places: &str) -> Failure {
    format!("there is no control socket {places}: is {program} running? ({option} names another socket)").into()
}

/// Which answer a line is, with what every kind of answer may carry.
#[derive(Deserialize)]
struct AnswerHead {
    answer: String,
    message: Option<String>,
}

fn expect(asked: &Asked, line: &str, wanted: &str) -> Result<(), Failure> {
    let head: AnswerHead = understand(asked, line)?;
    match head.answer.as_str() {
        kind if kind == wanted => Ok(()),
        "error" => Err(format!("{} refused: {}", asked.program, head.message.unwrap_or_default()).into()),
        other => Err(not_understood(asked, &format!("it answered `{}`", other.escape_default()))),
    }
}

fn understand<T: DeserializeOwned>(asked: &Asked, line: &str) -> Result<T, Failure> {
    serde_json::from_str(line).map_err(|error| not_understood(asked, &error.to_string()))
}

fn not_understood(Asked { program, .. }: &Asked, why: &str) -> Failure {
    format!("the answer of {program} is not understood ({why}): do ffclock and {program} have the same version?").into()
}

fn ask(asked: &Asked, path: &Path, request: Request) -> Result<String, Failure> {
    let deadline = Instant::now() + PATIENCE;
    let question = serde_json::to_string(&request).map_err(|error| Failure::from(error.to_string()))?;
    let talk = || -> std::io::Result<Vec<u8>> {
        let mut stream = connect(path)?;
        stream.write_all(format!("{question}\n").as_bytes())?;
        read_line(&mut stream, deadline)
    };
    let answer = talk().map_err(|error| Failure::from(explain(asked, path, &error)))?;
    String::from_utf8(answer).map_err(|_| not_understood(asked, "it is not text"))
}

/// A connection whose every step is bounded: with a send timeout, Linux also bounds the wait for a place in a full
/// backlog.
pub(crate) fn connect(path: &Path) -> std::io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(PATIENCE))?;
    rustix::net::connect(&socket, &address)?;
    Ok(UnixStream::from(socket))
}

/// Up to the first end of line, without it. The deadline is for all of it, so that a daemon cannot hold us by dripping
/// bytes.
fn read_line(stream: &mut UnixStream, deadline: Instant) -> std::io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut part = [0u8; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = match stream.read(&mut part) {
            // The process was stopped and went on.
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read?,
        };
        let Some(end) = part[..count].iter().position(|&byte| byte == b'\n') else {
            if count == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            line.extend_from_slice(&part[..count]);
            if line.len() > LONGEST_ANSWER {
                return Err(ErrorKind::FileTooLarge.into());
            }
            continue;
        };
        line.extend_from_slice(&part[..end]);
        return Ok(line);
    }
}

/// What went wrong, and what to do about it.
fn explain(asked: &Asked, path: &Path, error: &std::io::Error) -> String {
    let Asked { program, option } = asked;
    let is_socket = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
    let path = path.display();
    match error.kind() {
        ErrorKind::NotFound => missing(asked, &path.to_string()).message,
        ErrorKind::ConnectionRefused if !is_socket => {
            format!("{path} is not a socket: name the control socket of {program} ({option})")
        }
        ErrorKind::ConnectionRefused => format!("nothing listens on {path}: {program} has stopped; start it again"),
        ErrorKind::PermissionDenied => {
            format!("this user may not talk to {path}: join the socket's group, or run as the user of {program}")
        }
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            format!("{program} did not answer on {path} within {} s: it is stopped or stuck", PATIENCE.as_secs())
        }
        ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
            format!("{program} closed {path} without an answer: look at its log")
        }
        ErrorKind::FileTooLarge => {
            format!("the answer on {path} is longer than {LONGEST_ANSWER} bytes: this is not {program}")
        }
        _ => format!("cannot talk to {program} on {path}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn at(path: &Path) -> Global {
        Global { page: None, control: Some(path.to_owned()), json: false }
    }

    #[test]
    fn the_socket_lies_beside_the_page() {
        let named = |page: &str| Global { page: Some(page.into()), control: None, json: false };
        assert_eq!(socket(&named("/tmp/demo/page")).unwrap(), Path::new("/tmp/demo/control"));
        assert_eq!(socket(&at(Path::new("/tmp/elsewhere"))).unwrap(), Path::new("/tmp/elsewhere"));
    }

    /// It is asked when the page is missing, above all.
    #[test]
    fn the_socket_is_found_without_a_page() {
        let directory = std::env::temp_dir().join(format!("ffclock-control-find-{}", std::process::id()));
        let (runtime, other) = (directory.join("runtime"), directory.join("other"));
        std::fs::create_dir_all(runtime.join("ffclock")).unwrap();
        std::fs::create_dir_all(&other).unwrap();
        let others = || usual(Some(runtime.clone().into()));
        let page = directory.join("nowhere/page");
        let users = runtime.join("ffclock/control");
        std::fs::write(&users, "").unwrap();
        // A daemon of the system may well run on the machine of this test.
        let expected = if Path::new(places::CONTROL).exists() { PathBuf::from(places::CONTROL) } else { users };
        assert_eq!(find(&page, others()).unwrap(), expected);
        std::fs::write(other.join("control"), "").unwrap();
        assert_eq!(find(&other.join("page"), others()).unwrap(), other.join("control"));
        let message = find(&page, Vec::new()).unwrap_err().message;
        assert!(message.contains("nowhere/control: is ffclockd running?"), "{message}");
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn what_is_not_a_socket_is_called_so() {
        let message = status(&at(Path::new("/etc/passwd"))).unwrap_err().message;
        assert!(message.contains("/etc/passwd is not a socket"), "{message}");
    }

    /// A daemon that answers one question with `reply`, whatever was asked.
    fn fake(name: &str, reply: Vec<u8>) -> (PathBuf, std::thread::JoinHandle<String>) {
        let path = std::env::temp_dir().join(format!("ffclock-control-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let served = path.clone();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let question = read_line(&mut stream, Instant::now() + PATIENCE).unwrap();
            // The client may have heard enough before all is written.
            let _ = stream.write_all(&reply);
            let _ = std::fs::remove_file(served);
            String::from_utf8(question).unwrap()
        });
        (path, thread)
    }

    fn failure(name: &str, reply: &[u8]) -> String {
        let (path, thread) = fake(name, reply.to_vec());
        let failure = reload(&at(&path)).unwrap_err();
        thread.join().unwrap();
        failure.message
    }

    #[test]
    fn a_question_is_one_line_of_json() {
        let (path, thread) = fake("reload", b"{\"answer\":\"reloaded\"}\nnever read".to_vec());
        reload(&at(&path)).unwrap();
        assert_eq!(thread.join().unwrap(), "{\"command\":\"reload\"}");
    }

    #[test]
    fn bad_answers_are_explained() {
        assert!(failure("refused", b"{\"answer\":\"error\",\"message\":\"line 3: no\"}\n").contains("line 3: no"));
        assert!(failure("other", b"{\"answer\":\"status\"}\n").contains("same version"));
        assert!(failure("nonsense", b"hello\n").contains("not understood"));
        assert!(failure("binary", b"\xff\xfe\n").contains("not text"));
        assert!(failure("closed", b"").contains("without an answer"));
        assert!(failure("endless", &vec![b' '; LONGEST_ANSWER + 8192]).contains("longer than"));
    }

    #[test]
    fn a_silent_daemon_costs_two_seconds_at_most() {
        let path = std::env::temp_dir().join(format!("ffclock-control-silent-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let _listener = UnixListener::bind(&path).unwrap();
        let begin = Instant::now();
        let message = status(&at(&path)).unwrap_err().message;
        assert!(message.contains("did not answer"), "{message}");
        assert!(begin.elapsed() < PATIENCE * 3);
        std::fs::remove_file(&path).unwrap();
        assert!(status(&at(&path)).unwrap_err().message.contains("is ffclockd running?"));
    }
}
