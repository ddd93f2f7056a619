//! What the daemon recorded of its own packets, and whether its stamps can say anything about this host.

use super::{FEWEST, Purpose};
use crate::failure::Failure;
use crate::probe::network::device_towards;
use ffclock_counter::CounterKind;
use ffclock_counters::spread::percentile;
use ffclock_trace::{TraceHeader, TraceReader};
use ffclock_units::{Counter, Exchange, Period, Span};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

/// So many exchanges tell how often the daemon asks now.
const LATEST: usize = 16;

/// A recording of the daemon.
pub(super) struct Recording {
    pub(super) path: PathBuf,
    header: TraceHeader,
}

/// The exchanges of the counter's latest epoch, oldest first.
pub(super) struct Recorded {
    pub(super) exchanges: Vec<Exchange>,
    /// Rows that are damaged.
    pub(super) unreadable: u64,
}

impl Recording {
    /// The file itself, or the recording in a directory that was written to last.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let path = newest(path)?;
        let header = reader(&path)?.header().clone();
        Ok(Recording { path, header })
    }

    /// Whether the daemon moved the stamps.
    pub(super) fn is_calibrated(&self) -> bool {
        self.header.metadata("asymmetry") == Some("calibrated")
    }

    /// Stamps that were moved are no measure of the host, and stamps of the driver have nothing to be moved by.
    pub(super) fn check(&self, purpose: Purpose) -> Result<(), Failure> {
        if purpose == Purpose::Check {
            return Ok(());
        }
        match self.header.metadata("asymmetry") {
            Some("unknown") => {}
            Some(_) => {
                return Err("the daemon has moved the stamps that it records; take asymmetry = \"calibrated\" out of its configuration while it is \
                            measured and restart it, which begins a new recording, or add --check"
                    .into());
            }
            None => {
                let path = self.path.display();
                return Err(format!(
                    "{path}: recorded by an earlier ffclockd, and it does not say whether its stamps were moved; restart ffclockd, which begins a \
                     new recording, or add --check"
                )
                .into());
            }
        }
        match self.header.metadata("stamps") {
            Some(stamps @ ("trace" | "module")) => Err(format!(
                "stamps = \"{stamps}\": these stamps are taken at the driver and need none; nothing is calibrated"
            )
            .into()),
            _ => Ok(()),
        }
    }

    /// The period of the counter, if it is the one that the kernel traces by.
    pub(super) fn period(&self, counter: CounterKind) -> Result<Period, Failure> {
        let path = self.path.display();
        if self.header.counter.as_deref() != Some(counter.name()) {
            let name = counter.name();
            return Err(format!("{path}: its counter is not {name}, which the kernel can trace by").into());
        }
        self.header.nominal.ok_or_else(|| format!("{path}: it does not say how fast the counter counts").into())
    }

    /// The device on the way to the server that the recording names, as its address or name and its port.
    pub(super) fn device(&self) -> Result<String, Failure> {
        let unknown = || Failure::from("the recording does not name its server; name the device with --device");
        let server = self.header.metadata("server.0").and_then(|name| name.rsplit_once('-'));
        let (host, port) = server.ok_or_else(unknown)?;
        let address: Option<IpAddr> = host.parse().or_else(|_| host.replace('_', ":").parse()).ok();
        let looked_up = || (host, port.parse().ok()?).to_socket_addrs().ok()?.next().map(|found| found.ip());
        device_towards(address.or_else(looked_up).ok_or_else(unknown)?)
    }

    /// What there is until now.
    pub(super) fn read(&self) -> Result<Recorded, Failure> {
        let mut recorded = Recorded { exchanges: Vec::new(), unreadable: 0 };
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
                Err(error) => return Err(format!("{}: {error}", self.path.display()).into()),
            }
        }
        Ok(recorded)
    }
}

impl Recorded {
    /// Without what was stamped before the look began, which nobody saw.
    pub(super) fn since(mut self, begin: Counter) -> Self {
        self.exchanges.retain(|exchange| exchange.sent.counter.is_after(begin));
        self
    }

    /// Whether enough exchanges will pass in so long a time, at the pace of the latest.
    pub(super) fn check_length(&self, length: Span, period: Period) -> Result<(), Failure> {
        let latest = &self.exchanges[self.exchanges.len().saturating_sub(LATEST)..];
        let apart = latest.windows(2).map(|two| (period * (two[1].sent.counter - two[0].sent.counter)).as_seconds());
        let Some(poll) = percentile(&apart.collect::<Vec<_>>(), 0.5) else { return Ok(()) };
        if length.as_seconds() >= poll * FEWEST as f64 {
            return Ok(());
        }
        // Some are lost or left out.
        let enough = (1.25 * poll * FEWEST as f64).ceil();
        Err(format!(
            "--for '{length}' is too short: the daemon asks every {poll:.3} s, and {FEWEST} exchanges are needed; take --for '{enough} s', \
             or have it ask more often (poll in ffclockd.conf)"
        )
        .into())
    }
}

fn reader(path: &Path) -> Result<TraceReader, Failure> {
    TraceReader::open(path).map_err(|error| format!("{}: {error}", path.display()).into())
}

fn newest(path: &Path) -> Result<PathBuf, Failure> {
    let failed = |error: std::io::Error| Failure::from(format!("{}: {error}", path.display()));
    if !path.metadata().map_err(failed)?.is_dir() {
        return Ok(path.to_owned());
    }
    let entries = std::fs::read_dir(path).map_err(failed)?.filter_map(Result::ok);
    let recordings = entries.filter(|entry| entry.path().extension().is_some_and(|suffix| suffix == "fftrace"));
    let newest = recordings.max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok());
    let none = || {
        format!("{}: nothing is recorded there; set record = \"{}\" in ffclockd.conf", path.display(), path.display())
    };
    newest.map(|entry| entry.path()).ok_or_else(|| none().into())
}

#[cfg(test)]
pub(super) mod tests;
