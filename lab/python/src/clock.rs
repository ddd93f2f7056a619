//! The clock as a Python object: a thin cover over the Rust client that lets other threads run while it waits.

use crate::errors::{self, WaitTimeoutError};
use crate::values::{PyInterval, PyReading, PyStamp};
use core::time::Duration;
use ffclock::{Bound, ReadError};
use ffclock_units::{Moment, Span, Tai};
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
/// A reading's earliest moment is before the one that it was rounded from by no more than this.
const READING_ROUNDING: Span = Span::from_nanos(2);

/// An open page. May be shared between threads.
#[pyclass(name = "Clock", frozen, module = "ffclock")]
pub(crate) struct PyClock(ffclock::Clock);

#[pymethods]
impl PyClock {
    /// Opens the page at ``path``, by default that of this machine's daemon; raises PageError.
    ///
    /// The default is the page that $FFCLOCK_PAGE names, else /run/ffclock/page, else $XDG_RUNTIME_DIR/ffclock/page.
    #[staticmethod]
    #[pyo3(signature = (path = None))]
    fn open(path: Option<PathBuf>) -> PyResult<Self> {
        let opened = match path {
            Some(path) => ffclock::Clock::open_at(&path),
            None => ffclock::Clock::open(),
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

    /// The time of ``stamp``, of up to a day ago, by the lines around it; raises EpochError, UnsynchronisedError or
    /// PageError.
    fn at(&self, stamp: &PyStamp) -> PyResult<PyReading> {
        self.convert(stamp.0).map_err(errors::no_reading)
    }

    /// From ``begin`` to ``end`` by the better of the difference clock and of two conversions, negative if ``end`` was
    /// taken first; raises as ``at`` does.
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
        let patience = patience(timeout)?;
        let begin = Instant::now();
        loop {
            let last = match self.look() {
                Ok(reading) if reading.is_within(limit) => return Ok(reading),
                last => last,
            };
            match patience.checked_sub(begin.elapsed()) {
                Some(rest) if !rest.is_zero() => py.detach(|| thread::sleep(rest.min(PAUSE))),
                _ => return Err(timed_out(&format!("come within a bound of {bound} s"), last)),
            }
            py.check_signals()?;
        }
    }

    /// Waits until the moment ``tai_ns`` has certainly passed: until a reading has an ``earliest_tai_ns`` after it, for
    /// at most ``timeout`` seconds (for ever if None). With the ``latest_tai_ns`` of an event this is the commit wait
    /// of databases; it takes about twice the bound.
    ///
    /// Returns that reading, or raises WaitTimeoutError. Other threads run meanwhile, and an interrupt ends it.
    /// ValueError if the timeout is negative or not a number.
    #[pyo3(signature = (tai_ns, timeout = None))]
    fn wait_certainly_after(&self, py: Python<'_>, tai_ns: i64, timeout: Option<f64>) -> PyResult<PyReading> {
        let patience = patience(timeout)?;
        let moment = Moment::<Tai>::from_origin(Span::from_nanos(i128::from(tai_ns)) + READING_ROUNDING);
        let begin = Instant::now();
        loop {
            let rest = patience.saturating_sub(begin.elapsed());
            let passed = py.detach(|| self.0.wait_certainly_after(moment, rest.min(PAUSE)));
            if let Ok(time) = passed {
                return Ok(PyReading::new(&time));
            }
            if begin.elapsed() >= patience {
                return Err(timed_out(&format!("pass {tai_ns} ns of TAI with certainty"), self.look()));
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

    /// UTC, TAI and both bounds of a stamp, by the same line.
    fn convert(&self, stamp: ffclock::Stamp) -> Result<PyReading, ReadError> {
        self.0.time_of(stamp).map(|time| PyReading::new(&time))
    }
}

fn checked(name: &str, seconds: f64) -> PyResult<f64> {
    if seconds >= 0.0 {
        return Ok(seconds);
    }
    Err(PyValueError::new_err(format!("{name} must be a number of seconds that is not negative, not {seconds}")))
}

/// More than Duration holds is for ever, too.
fn patience(timeout: Option<f64>) -> PyResult<Duration> {
    let Some(seconds) = timeout else { return Ok(Duration::MAX) };
    Ok(Duration::try_from_secs_f64(checked("timeout", seconds)?).unwrap_or(Duration::MAX))
}

fn timed_out(goal: &str, last: Result<PyReading, ReadError>) -> PyErr {
    let state = last.map_or_else(|error| error.to_string(), |reading| reading.shortcoming());
    WaitTimeoutError::new_err(format!("the clock did not {goal} in time: {state}"))
}
