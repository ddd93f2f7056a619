//! The clock as a Python object: a thin cover over the Rust client that lets other threads run while it waits.

use crate::errors::{self, WaitTimeoutError};
use crate::values::{PyInterval, PyReading, PyStamp};
use core::time::Duration;
use ffclock_client::{Bound, ReadError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

/// How often a wait looks at the clock, and whether the program was interrupted. The client's own wait judges by
/// readings that are not those given out here: a page damaged since it was verified would be good enough for one and
/// refused by the other.
const PAUSE: Duration = Duration::from_millis(20);
/// Epochs end once in a while; that one ends between stamp and snapshot this many times in a row does not happen.
const ATTEMPTS: usize = 3;

/// An open page. May be shared between threads.
#[pyclass(name = "Clock", frozen, module = "ffclock")]
pub(crate) struct PyClock(ffclock_client::Clock);

#[pymethods]
impl PyClock {
    /// Opens the page at ``path``, by default that of this machine's daemon; raises PageError.
    ///
    /// The default is the page that $FFCLOCK_PAGE names, else /run/ffclock/page, else $XDG_RUNTIME_DIR/ffclock/page.
    #[staticmethod]
    #[pyo3(signature = (path = None))]
    fn open(path: Option<PathBuf>) -> PyResult<Self> {
        let opened = match path {
            Some(path) => ffclock_client::Clock::open_at(&path),
            None => ffclock_client::Clock::open(),
        };
        opened.map(PyClock).map_err(|error| errors::cannot_open(&error))
    }

    /// The time now with its bound; raises UnsynchronisedError or PageError.
    fn now(&self) -> PyResult<PyReading> {
        self.look().map_err(errors::no_reading)
    }

    /// The raw counter now. A stamp taken while the page says nothing belongs to no epoch, and is refused later.
    fn stamp(&self) -> PyStamp {
        PyStamp(self.0.stamp())
    }

    /// The time of ``stamp`` by the newest estimate; raises EpochError, UnsynchronisedError or PageError.
    fn at(&self, stamp: &PyStamp) -> PyResult<PyReading> {
        self.convert(stamp.0).map_err(errors::no_reading)
    }

    /// From ``begin`` to ``end`` by the difference clock, negative if ``end`` was taken first; raises as ``at`` does.
    fn elapsed(&self, begin: &PyStamp, end: &PyStamp) -> PyResult<PyInterval> {
        self.0.elapsed(begin.0, end.0).map(|interval| PyInterval::new(&interval)).map_err(errors::no_reading)
    }

    /// Waits until the clock is synchronised within ``bound`` seconds, for at most ``timeout`` seconds (for ever if
    /// None).
    ///
    /// Returns that reading, or raises WaitTimeoutError. Other threads run meanwhile, and an interrupt ends it.
    /// ValueError if an argument is negative or not a number.
    #[pyo3(signature = (bound, timeout = None))]
    fn wait_until(&self, py: Python<'_>, bound: f64, timeout: Option<f64>) -> PyResult<PyReading> {
        let limit = Bound::from_seconds(checked("bound", bound)?);
        // More than Duration holds is for ever, too.
        let patience = match timeout {
            Some(seconds) => Duration::try_from_secs_f64(checked("timeout", seconds)?).unwrap_or(Duration::MAX),
            None => Duration::MAX,
        };
        let begin = Instant::now();
        loop {
            let last = match self.look() {
                Ok(reading) if reading.is_within(limit) => return Ok(reading),
                last => last,
            };
            match patience.checked_sub(begin.elapsed()) {
                Some(rest) if !rest.is_zero() => py.detach(|| thread::sleep(rest.min(PAUSE))),
                _ => return Err(timed_out(bound, last)),
            }
            py.check_signals()?;
        }
    }

    /// The clock's status now; "unsynchronised" also where there is no reading.
    #[getter]
    fn status(&self) -> &'static str {
        self.0.status().name()
    }

    fn __repr__(&self) -> String {
        format!("Clock(path={:?}, status='{}')", self.0.path(), self.status())
    }
}

impl PyClock {
    fn look(&self) -> Result<PyReading, ReadError> {
        for _ in 0..ATTEMPTS {
            match self.convert(self.0.stamp()) {
                Err(ReadError::OtherEpoch) => {}
                result => return result,
            }
        }
        // The client knows whether the page is about a counter that this machine has not.
        Err(self.0.now().err().unwrap_or(ReadError::OtherEpoch))
    }

    /// UTC, TAI and both bounds of a stamp from one snapshot.
    fn convert(&self, stamp: ffclock_client::Stamp) -> Result<PyReading, ReadError> {
        let snapshot = self.0.snapshot()?;
        if snapshot.epoch() != stamp.epoch() {
            return Err(ReadError::OtherEpoch);
        }
        let reading = snapshot.reading_at(stamp.counter())?;
        let strict = snapshot.strict_bound_at(stamp.counter());
        Ok(PyReading::new(&reading, strict, snapshot.tai_at(stamp.counter())?))
    }
}

fn checked(name: &str, seconds: f64) -> PyResult<f64> {
    if seconds >= 0.0 {
        return Ok(seconds);
    }
    Err(PyValueError::new_err(format!("{name} must be a number of seconds that is not negative, not {seconds}")))
}

fn timed_out(bound: f64, last: Result<PyReading, ReadError>) -> PyErr {
    let state = last.map_or_else(|error| error.to_string(), |reading| reading.shortcoming());
    WaitTimeoutError::new_err(format!("the clock did not come within a bound of {bound} s in time: {state}"))
}
