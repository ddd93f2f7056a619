//! Maps the errors of the client to Python exceptions. The classes are Python's own (`ffclock/errors.py`), so that they
//! exist without the compiled part.

use ffclock::{OpenError, PageError as PageFault, ReadError};
use pyo3::prelude::*;

mod classes {
    pyo3::import_exception!(ffclock.errors, EpochError);
    pyo3::import_exception!(ffclock.errors, PageError);
    pyo3::import_exception!(ffclock.errors, UnsynchronisedError);
    pyo3::import_exception!(ffclock.errors, WaitTimeoutError);
}

pub(crate) use classes::WaitTimeoutError;
use classes::{EpochError, PageError, UnsynchronisedError};

pub(crate) fn cannot_open(error: &OpenError) -> PyErr {
    PageError::new_err(error.to_string())
}

pub(crate) fn no_reading(error: ReadError) -> PyErr {
    let text = error.to_string();
    match error {
        ReadError::NoEstimate | ReadError::Disrupted | ReadError::Page(PageFault::Empty) => {
            UnsynchronisedError::new_err(text)
        }
        ReadError::BeforeEpoch | ReadError::OtherEpoch => EpochError::new_err(text),
        // A page about a counter that this machine has not is of no use, whatever its epoch.
        ReadError::OtherCounter(_) | ReadError::CounterUnreadable { .. } | ReadError::Page(_) => {
            PageError::new_err(text)
        }
    }
}
