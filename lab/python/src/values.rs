//! What a clock hands out: readings, stamps and intervals as Python objects, in whole nanoseconds.
//!
//! Rounding to nanoseconds never breaks a claim: a bound covers the rounding of the time that it belongs to.

use ffclock::{IntervalWay, Status, VotedTime};
use ffclock_units::{Bound, Counter, CounterEpoch, Span};
use pyo3::prelude::*;

/// A time with its error figures and status, all from one snapshot. An error figure that is not known is 2**63 - 1 ns.
#[pyclass(name = "Reading", frozen, module = "ffclock")]
pub(crate) struct PyReading {
    /// UTC as POSIX counts it [ns since 1970].
    #[pyo3(get)]
    utc_ns: i64,
    /// TAI [ns since 1970-01-01 00:00:00 TAI].
    #[pyo3(get)]
    tai_ns: i64,
    /// Largest possible error [ns, rounded up].
    #[pyo3(get)]
    bound_ns: i64,
    /// Largest possible error although a minority of the servers is false in whatever way [ns, rounded up].
    #[pyo3(get)]
    bound_strict_ns: i64,
    /// Combined standard uncertainty (k = 1): noise, and what is assumed of path and servers [ns, rounded up].
    #[pyo3(get)]
    uncertainty_ns: i64,
    /// The part of it that exchanges show [ns, rounded up].
    #[pyo3(get)]
    noise_ns: i64,
    status: Status,
    /// As `bound_ns`, not rounded.
    bound: Bound,
}

impl PyReading {
    /// From the time of a stamp on both scales, with both bounds and both uncertainties.
    pub(crate) fn new(&VotedTime { reading, noise, strict, tai }: &VotedTime) -> Self {
        let (utc_ns, bound_ns) = rounded(reading.time.since_origin(), reading.bound);
        let (_, bound_strict_ns) = rounded(reading.time.since_origin(), strict);
        PyReading {
            utc_ns,
            tai_ns: nanos(tai.since_origin()),
            bound_ns,
            bound_strict_ns,
            uncertainty_ns: nanos_up(reading.uncertainty.as_nanos_up()),
            noise_ns: nanos_up(noise.as_nanos_up()),
            status: reading.status,
            bound: reading.bound,
        }
    }

    /// Whether it is good enough for a caller that waits for `bound`.
    pub(crate) fn is_within(&self, bound: Bound) -> bool {
        self.status != Status::Unsynchronised && self.bound <= bound
    }

    /// How far the true time can be from this in either direction; `None` where nothing says how far.
    fn half_width_ns(&self) -> Option<i64> {
        let is_known = self.status != Status::Unsynchronised && self.bound != Bound::UNKNOWN;
        is_known.then_some(self.bound_ns)
    }

    /// Why it is not good enough, in words.
    pub(crate) fn shortcoming(&self) -> String {
        match self.status {
            Status::Unsynchronised => "it is unsynchronised".to_owned(),
            _ => format!("its bound is {}", self.bound),
        }
    }
}

#[pymethods]
impl PyReading {
    /// The earliest that UTC can be [ns since 1970]; -2**63 while that is not known, as when unsynchronised.
    #[getter]
    fn earliest_ns(&self) -> i64 {
        self.half_width_ns().map_or(i64::MIN, |half| self.utc_ns.saturating_sub(half))
    }

    /// The latest that UTC can be [ns since 1970]; 2**63 - 1 while that is not known.
    #[getter]
    fn latest_ns(&self) -> i64 {
        self.half_width_ns().map_or(i64::MAX, |half| self.utc_ns.saturating_add(half))
    }

    /// The earliest that TAI can be [ns since 1970-01-01 00:00:00 TAI]; -2**63 while that is not known.
    #[getter]
    fn earliest_tai_ns(&self) -> i64 {
        self.half_width_ns().map_or(i64::MIN, |half| self.tai_ns.saturating_sub(half))
    }

    /// The latest that TAI can be [ns since 1970-01-01 00:00:00 TAI]; 2**63 - 1 while that is not known.
    #[getter]
    fn latest_tai_ns(&self) -> i64 {
        self.half_width_ns().map_or(i64::MAX, |half| self.tai_ns.saturating_add(half))
    }

    /// "synchronised", "warming-up", "holdover" or "unsynchronised".
    #[getter]
    fn status(&self) -> &'static str {
        self.status.name()
    }

    fn __repr__(&self) -> String {
        let PyReading { utc_ns, tai_ns, bound_ns, uncertainty_ns, noise_ns, status, .. } = self;
        let status = status.name();
        format!(
            "Reading(utc_ns={utc_ns}, tai_ns={tai_ns}, bound_ns={bound_ns}, uncertainty_ns={uncertainty_ns}, \
             noise_ns={noise_ns}, status='{status}')"
        )
    }
}

/// Whether the first event was before the second, whatever the errors within the bounds of both. False where the ranges
/// touch, and where either clock was unsynchronised.
#[pyfunction]
pub(crate) fn certainly_before(first: &PyReading, second: &PyReading) -> bool {
    first.latest_tai_ns() < second.earliest_tai_ns()
}

/// A raw counter reading and the epoch of the counter that it belongs to.
#[pyclass(name = "Stamp", frozen, eq, hash, module = "ffclock")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyStamp(pub(crate) ffclock::Stamp);

#[pymethods]
impl PyStamp {
    /// From the parts of a stamp that was written down.
    #[new]
    fn new(raw: u64, epoch: u64) -> Self {
        PyStamp(ffclock::Stamp::from_parts(Counter::from_raw(raw), CounterEpoch::from_raw(epoch)))
    }

    /// Ticks since the counter's arbitrary origin.
    #[getter]
    fn raw(&self) -> u64 {
        self.0.counter().raw()
    }

    /// The number of the counter's epoch.
    #[getter]
    fn epoch(&self) -> u64 {
        self.0.epoch().raw()
    }

    fn __getnewargs__(&self) -> (u64, u64) {
        (self.raw(), self.epoch())
    }

    fn __repr__(&self) -> String {
        format!("Stamp(raw={}, epoch={})", self.raw(), self.epoch())
    }
}

/// A length of time, by the better of the difference clock and of two conversions.
#[pyclass(name = "Interval", frozen, module = "ffclock")]
pub(crate) struct PyInterval {
    /// The length [ns], the nearest.
    #[pyo3(get)]
    ns: i64,
    /// The length [s].
    #[pyo3(get)]
    seconds: f64,
    /// Largest possible error of the length [ns, rounded up].
    #[pyo3(get)]
    bound_ns: i64,
    /// Standard uncertainty (k = 1) of the length [ns, rounded up].
    #[pyo3(get)]
    uncertainty_ns: i64,
    status: Status,
    way: IntervalWay,
}

impl PyInterval {
    pub(crate) fn new(interval: &ffclock::Interval) -> Self {
        let (ns, bound_ns) = rounded(interval.span, interval.bound);
        PyInterval {
            ns,
            seconds: interval.span.as_seconds(),
            bound_ns,
            uncertainty_ns: nanos_up(interval.uncertainty.as_nanos_up()),
            status: interval.status,
            way: interval.way,
        }
    }
}

#[pymethods]
impl PyInterval {
    /// How far the clock may be trusted, in the words of a reading.
    #[getter]
    fn status(&self) -> &'static str {
        self.status.name()
    }

    /// How it was measured: "difference" or "absolute".
    #[getter]
    fn way(&self) -> &'static str {
        self.way.name()
    }

    fn __repr__(&self) -> String {
        let PyInterval { ns, bound_ns, uncertainty_ns, .. } = self;
        let (status, way) = (self.status.name(), self.way.name());
        format!(
            "Interval(ns={ns}, bound_ns={bound_ns}, uncertainty_ns={uncertainty_ns}, status='{status}', way='{way}')"
        )
    }
}

/// The nearest nanosecond, and a bound on its distance from everything that `bound` allows for `span`.
fn rounded(span: Span, bound: Bound) -> (i64, i64) {
    let ns = nanos(span);
    let rounding = Bound::of(span - Span::from_nanos(i128::from(ns)));
    (ns, nanos_up((bound + rounding).as_nanos_up()))
}

fn nanos(span: Span) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(if span.is_negative() { i64::MIN } else { i64::MAX })
}

fn nanos_up(nanos: u128) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}
