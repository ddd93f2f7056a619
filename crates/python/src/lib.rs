//! The compiled part of the Python package `ffclock`.
#![deny(missing_docs)]

use pyo3::prelude::*;

/// The compiled part of the package `ffclock`: a reader of the page that `ffclockd` publishes.
#[pymodule]
mod _ffclock {
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
