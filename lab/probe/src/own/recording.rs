//! A recording of the daemon's own exchanges, and whether its stamps say anything about this host.

use super::delays::{FEWEST, Purpose};
use ffclock_counter::CounterId;
use ffclock_statistics::percentile;
use ffclock_trace::{TraceError, TraceHeader, TraceReader};
use ffclock_units::{Counter, Exchange, Period, Span};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The latest exchanges, which say how often the daemon asks now.
const LATEST: usize = 16;

/// Why a recording of the daemon cannot be used.
#[derive(Debug, Error)]
pub enum DaemonRecordingError {
    /// It cannot be read.
    #[error("{path}: {error}")]
    Unreadable {
        /// The path of the recording.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// It is no recording, or damaged.
    #[error("{path}: {error}")]
    Damaged {
        /// The path of the recording.
        path: PathBuf,
        /// What is wrong with it.
        error: TraceError,
    },
    /// The directory has none.
    #[error("{path}: nothing is recorded there; set record = \"{path}\" in ffclockd.conf")]
    Nothing {
        /// The directory.
        path: PathBuf,
    },
    /// Its stamps were moved.
    #[error(
        "the daemon has moved the stamps that it records; take asymmetry = \"calibrated\" out of its configuration while it \
         is measured and restart it, which begins a new recording, or add --check"
    )]
    Moved,
    /// It is older than the note whether stamps were moved.
    #[error(
        "{path}: recorded by an earlier ffclockd, and it does not say whether its stamps were moved; restart ffclockd, which \
         begins a new recording, or add --check"
    )]
    MovedOrNot {
        /// The path of the recording.
        path: PathBuf,
    },
    /// Its stamps were taken at the driver.
    #[error("stamps = \"{stamps}\": these stamps are taken at the driver and need none; nothing is calibrated")]
    AtDriver {
        /// How the daemon calls them.
        stamps: String,
    },
    /// Its counter is not that of the kernel's tracing.
    #[error("{path}: its counter is not {counter}, which the kernel can trace by")]
    OtherCounter {
        /// The path of the recording.
        path: PathBuf,
        /// The counter of the tracing.
        counter: &'static str,
    },
    /// It lacks the nominal period.
    #[error("{path}: it does not say how fast the counter counts")]
    NoPeriod {
        /// The path of the recording.
        path: PathBuf,
    },
    /// Too few exchanges will pass.
    #[error(
        "--for '{length}' is too short: the daemon asks every {poll_s:.3} s, and {FEWEST} exchanges are needed; take \
         --for '{enough_s} s', or have it ask more often (poll in ffclockd.conf)"
    )]
    TooShort {
        /// The length that was wanted.
        length: Span,
        /// How often the daemon asks [s].
        poll_s: f64,
        /// A length that is enough [s].
        enough_s: f64,
    },
}

type Result<T> = core::result::Result<T, DaemonRecordingError>;

/// A recording of the daemon.
pub struct DaemonRecording {
    path: PathBuf,
    header: TraceHeader,
}

/// The exchanges of the counter's latest epoch.
pub struct RecordedExchanges {
    /// In the order of time.
    pub exchanges: Vec<Exchange>,
    /// Rows that are damaged.
    pub unreadable: u64,
}

impl DaemonRecording {
    /// The file itself, or the recording in a directory that was written to last.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let path = newest(path)?;
        let header = reader(&path)?.header().clone();
        Ok(DaemonRecording { path, header })
    }

    /// The path of the recording.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the daemon moved the stamps.
    pub fn is_calibrated(&self) -> bool {
        self.header.metadata("asymmetry") == Some("calibrated")
    }

    /// Stamps that were moved are no measure of the host, and stamps of the driver have nothing to be moved by.
    ///
    /// # Errors
    /// The stamps are not fit for a calibration, and one is wanted.
    pub fn check(&self, purpose: Purpose) -> Result<()> {
        if purpose == Purpose::Check {
            return Ok(());
        }
        match self.header.metadata("asymmetry") {
            Some("unknown") => {}
            Some(_) => return Err(DaemonRecordingError::Moved),
            None => return Err(DaemonRecordingError::MovedOrNot { path: self.path.clone() }),
        }
        match self.header.metadata("stamps") {
            Some(stamps @ ("trace" | "module")) => Err(DaemonRecordingError::AtDriver { stamps: stamps.to_owned() }),
            _ => Ok(()),
        }
    }

    /// The period of the counter.
    ///
    /// # Errors
    /// It is not the counter that the kernel traces by, or the recording does not say its period.
    pub fn period(&self, counter: CounterId) -> Result<Period> {
        let path = || self.path.clone();
        if self.header.counter.as_deref() != Some(counter.name()) {
            return Err(DaemonRecordingError::OtherCounter { path: path(), counter: counter.name() });
        }
        self.header.nominal.ok_or_else(|| DaemonRecordingError::NoPeriod { path: path() })
    }

    /// The address of the server that the recording names, by its address or name and its port; `None` where it names
    /// none, or none that is found.
    pub fn server(&self) -> Option<IpAddr> {
        let (host, port) = self.header.metadata("server.0")?.rsplit_once('-')?;
        let address: Option<IpAddr> = host.parse().or_else(|_| host.replace('_', ":").parse()).ok();
        let looked_up = || (host, port.parse().ok()?).to_socket_addrs().ok()?.next().map(|found| found.ip());
        address.or_else(looked_up)
    }

    /// The exchanges recorded so far.
    ///
    /// # Errors
    /// It can no longer be read.
    pub fn read(&self) -> Result<RecordedExchanges> {
        let mut recorded = RecordedExchanges { exchanges: Vec::new(), unreadable: 0 };
        let mut epoch = None;
        for row in reader(&self.path)? {
            match row {
                Ok(row) => {
                    // Readings of another epoch say nothing about those of this one.
                    if epoch.replace(row.epoch) != Some(row.epoch) {
                        recorded.exchanges.clear();
                    }
                    recorded.exchanges.extend(row.exchange);
                }
                Err(error) if error.is_one_row() => recorded.unreadable += 1,
                Err(error) => return Err(DaemonRecordingError::Damaged { path: self.path.clone(), error }),
            }
        }
        Ok(recorded)
    }
}

impl RecordedExchanges {
    /// Without what was stamped before the look at the boundary began.
    #[must_use]
    pub fn since(mut self, begin: Counter) -> Self {
        self.exchanges.retain(|exchange| exchange.sent.counter.is_after(begin));
        self
    }

    /// Whether enough exchanges will pass in `length`, as often as the latest did.
    ///
    /// # Errors
    /// [`DaemonRecordingError::TooShort`].
    pub fn check_length(&self, length: Span, period: Period) -> Result<()> {
        let latest = &self.exchanges[self.exchanges.len().saturating_sub(LATEST)..];
        let apart = latest.windows(2).map(|two| (period * (two[1].sent.counter - two[0].sent.counter)).as_seconds());
        let Some(poll_s) = percentile(&apart.collect::<Vec<_>>(), 0.5) else { return Ok(()) };
        if length.as_seconds() >= poll_s * FEWEST as f64 {
            return Ok(());
        }
        // Some are lost or left out.
        let enough_s = (1.25 * poll_s * FEWEST as f64).ceil();
        Err(DaemonRecordingError::TooShort { length, poll_s, enough_s })
    }
}

fn reader(path: &Path) -> Result<TraceReader> {
    TraceReader::open(path).map_err(|error| DaemonRecordingError::Damaged { path: path.to_owned(), error })
}

fn newest(path: &Path) -> Result<PathBuf> {
    let failed = |error: std::io::Error| DaemonRecordingError::Unreadable { path: path.to_owned(), error };
    if !path.metadata().map_err(failed)?.is_dir() {
        return Ok(path.to_owned());
    }
    let entries = std::fs::read_dir(path).map_err(failed)?.filter_map(core::result::Result::ok);
    let recordings = entries.filter(|entry| entry.path().extension().is_some_and(|suffix| suffix == "fftrace"));
    let newest = recordings.max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok());
    newest.map(|entry| entry.path()).ok_or_else(|| DaemonRecordingError::Nothing { path: path.to_owned() })
}

#[cfg(test)]
mod tests;
