//! The metrics of a run under way: in a file that is replaced whole, and for those who ask over HTTP.

use crate::failure::Failure;
use ffclock_service::{Answering, Listener, Rights, Service};
use ffclock_sys::{Interest, mono_now};
use ffclock_units::{Moment, Mono, Span};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

/// Between two files.
const EVERY: Span = Span::from_secs(5);

/// Where metrics go.
pub(crate) struct Exporter {
    file: Option<PathBuf>,
    listener: Option<Listener<TcpListener>>,
    next: Moment<Mono>,
}

/// Answers with the metrics, and with nothing else.
struct MetricsAlone<'a>(&'a dyn Fn() -> String);

impl Answering for MetricsAlone<'_> {
    fn answer_line(&mut self, _: &[u8], _: Rights) -> String {
        "{\"error\":\"metrics alone are served here\"}\n".to_owned()
    }

    fn metrics(&mut self) -> String {
        self.0()
    }
}

impl Exporter {
    pub(crate) fn open(file: Option<&Path>, address: Option<SocketAddr>) -> Result<Self, Failure> {
        let listener = match address {
            Some(address) => Some(listen(address)?),
            None => None,
        };
        Ok(Exporter { file: file.map(Path::to_owned), listener, next: mono_now() })
    }

    /// What the loop must wait for beside the packets.
    pub(crate) fn interests<'a>(&'a self, visit: &mut dyn FnMut(Interest<'a>)) {
        if let Some(listener) = &self.listener {
            listener.interests(visit);
        }
    }

    /// When there is something to do without a visitor.
    pub(crate) fn deadline(&self) -> Option<Moment<Mono>> {
        let paused = self.listener.as_ref().and_then(Listener::next_timeout);
        let file = self.file.is_some().then_some(self.next);
        [paused, file].into_iter().flatten().min()
    }

    /// Answers visitors, and writes the file if it is time.
    pub(crate) fn turn(&mut self, text: &dyn Fn() -> String) -> Result<(), Failure> {
        let now = mono_now();
        if let Some(listener) = &mut self.listener {
            listener.serve(now, &mut MetricsAlone(text));
        }
        if now < self.next {
            return Ok(());
        }
        self.next = now + EVERY;
        self.write(text)
    }

    /// Replaces the file, so that a reader finds the whole old or the whole new one.
    pub(crate) fn write(&self, text: &dyn Fn() -> String) -> Result<(), Failure> {
        let Some(path) = &self.file else { return Ok(()) };
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let new = PathBuf::from(name);
        let written = fs::write(&new, text()).and_then(|()| fs::rename(&new, path));
        written.map_err(|error| Failure::from(format!("cannot write {}: {error}", path.display())))
    }
}

fn listen(address: SocketAddr) -> Result<Listener<TcpListener>, Failure> {
    let socket = TcpListener::bind(address).and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
    let socket = socket.map_err(|error| format!("cannot listen on {address} (--metrics-listen): {error}"))?;
    Ok(Listener::new(socket, Service::Metrics))
}
