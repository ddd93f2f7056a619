//! The compiled part of the Python package `ffclock`: the Rust client as Python objects.
//!
//! It adds nothing to the client but Python's manners: whole nanoseconds, exceptions, and waiting that lets other
//! threads run. What it promises to Python is written in `python/ffclock/_ffclock.pyi`, and tested from there.
#![deny(missing_docs)]

mod clock;
mod errors;
mod theta;
mod values;

use pyo3::prelude::*;

/// The compiled part of the package ffclock: a reader of the page that ffclockd publishes.
#[pymodule]
mod _ffclock {
    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_export]
    use super::clock::PyClock;
    #[pymodule_export]
    use super::theta::{merge, plan, report, tally};
    #[pymodule_export]
    use super::values::{PyInterval, PyReading, PyStamp, certainly_before};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
