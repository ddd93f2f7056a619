//! The interface between the daemon and its tools: the control protocol, the metrics, and the calibration file.
//!
//! The daemon and the commands both depend on this crate, and not on each other. It holds the forms alone: sockets are
//! opened, and reports are filled in, by its users. docs/control.md and docs/operations.md describe the forms; tests
//! hold both to this code.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod calibration;
pub mod metrics;
pub mod protocol;
pub mod serve;
pub mod why;
