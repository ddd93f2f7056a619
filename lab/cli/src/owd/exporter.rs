//! The metrics of a run under way: in a file that is replaced whole, and for those who ask over HTTP.

use crate::failure::Failure;
use ffclock_owd::metrics::exposition;
use ffclock_owd::sender::StrayCounts;
use ffclock_owd::summary::OwdSummary;
use ffclock_service::{Answering, Listener, Rights, Service};
use ffclock_sys::{Interest, mono_now};
use ffclock_units::{Moment, Mono, Span};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

/// Between two files.
const EVERY: Span = Span::from_secs(5);

/// Where metrics go.
pub(super) struct Exporter {
    file: Option<PathBuf>,
    listener: Option<Listener<TcpListener>>,
    next: Moment<Mono>,
}

/// What there is to say.
pub(super) struct Present<'a> {
    pub(super) summary: &'a OwdSummary,
    pub(super) strays: StrayCounts,
}

impl Answering for Present<'_> {
    fn answer_line(&mut self, _: &[u8], _: Rights) -> String {
        "{\"error\":\"metrics alone are served here\"}\n".to_owned()
    }

    fn metrics(&mut self) -> String {
        exposition(self.summary, &self.strays)
    }
}

impl Exporter {
    pub(super) fn open(file: Option<&Path>, address: Option<SocketAddr>) -> Result<Self, Failure> {
        let listener = match address {
            Some(address) => Some(listen(address)?),
            None => None,
        };
        Ok(Exporter { file: file.map(Path::to_owned), listener, next: mono_now() })
    }

    /// What the loop must wait for beside the packets.
    pub(super) fn interests<'a>(&'a self, visit: &mut dyn FnMut(Interest<'a>)) {
        if let Some(listener) = &self.listener {
            listener.interests(visit);
        }
    }

    /// When there is something to do without a visitor.
    pub(super) fn deadline(&self) -> Option<Moment<Mono>> {
        let paused = self.listener.as_ref().and_then(Listener::next_timeout);
        let file = self.file.is_some().then_some(self.next);
        [paused, file].into_iter().flatten().min()
    }

    /// Answers visitors, and writes the file if it is time.
    pub(super) fn turn(&mut self, present: &mut Present) -> Result<(), Failure> {
        let now = mono_now();
        if let Some(listener) = &mut self.listener {
            listener.serve(now, present);
        }
        if now < self.next {
            return Ok(());
        }
        self.next = now + EVERY;
        self.write(present)
    }

    /// Replaces the file, so that a reader finds the whole old or the whole new one.
    pub(super) fn write(&self, present: &mut Present) -> Result<(), Failure> {
        let Some(path) = &self.file else { return Ok(()) };
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let new = PathBuf::from(name);
        let written = fs::write(&new, present.metrics()).and_then(|()| fs::rename(&new, path));
        written.map_err(|error| Failure::from(format!("cannot write {}: {error}", path.display())))
    }
}

fn listen(address: SocketAddr) -> Result<Listener<TcpListener>, Failure> {
    let socket = TcpListener::bind(address).and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
    let socket = socket.map_err(|error| format!("cannot listen on {address} (--metrics-listen): {error}"))?;
    Ok(Listener::new(socket, Service::Metrics))
}
