//! One-way delays between hosts that have pages: a session-sender and a session-reflector of STAMP (RFC 8762), which
//! TWAMP-light (RFC 5357, appendix I) understands as well.
//!
//! A test packet carries the time at which it left and the largest error of that time, both from the page of the host
//! that sent it. So each direction of each packet has a delay and a bound that holds as long as both pages keep their
//! promise. The packets ([`packet`]), the judgement of a reply ([`judge`]), what the sender remembers ([`sent`]) and
//! what the reflector remembers ([`admission`]) own no socket and read no clock; [`reflector`] and [`sender`] drive
//! them. Nothing here sets or steers a clock.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod admission;
pub mod error_estimate;
pub mod judge;
pub mod last_minute;
pub mod metrics;
pub mod packet;
pub mod page_time;
pub mod record;
pub mod reflector;
pub mod sender;
pub mod sent;
pub mod summary;
pub mod truth;

use std::io;
use std::path::PathBuf;

/// The port of STAMP (RFC 8762, section 4.1).
pub const PORT: u16 = 862;

/// Why a measurement cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum OwdError {
    /// The page cannot be used.
    #[error("{0}")]
    Page(String),
    /// The clock is not synchronised, and times by it mean nothing to another host.
    #[error("{}: {why}; wait until it is (`ffclock wait`), or measure round trips alone with --unsynchronised", path.display())]
    Unsynchronised {
        /// The page.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The socket fails.
    #[error("{what}: {error}")]
    Network {
        /// What was being done.
        what: String,
        /// What the kernel says.
        error: io::Error,
    },
    /// The record cannot be written.
    #[error(transparent)]
    Record(#[from] record::RecordFault),
}

impl OwdError {
    /// An error of the socket while `what` was done.
    pub(crate) fn network(what: impl Into<String>) -> impl FnOnce(io::Error) -> OwdError {
        let what = what.into();
        move |error| OwdError::Network { what, error }
    }
}
