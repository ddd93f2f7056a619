//! The page: an estimate as 64-bit words in shared memory, and the conversion of counter readings by it.
//!
//! One writer publishes, any number of readers read, and neither ever waits for the other. There are two slots; a
//! publication fills the one that readers do not look at, and only then points them to it. A writer killed at any
//! instruction therefore leaves the previous publication readable, for as long as it said it may be believed. The
//! document of the layout is `docs/page.md`; `tests/loom.rs` proves the protocol on every ordering that the memory
//! model allows.
//!
//! This crate reads no counter and maps no memory: it is given words and counter readings. It holds no unsafe code.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod convert;
mod error;
mod identity;
pub mod layout;
mod publish;
mod read;
pub mod words;

pub use convert::{Interval, Snapshot};
pub use error::{PageError, ReadError};
pub use ffclock_units::CounterId;
pub use identity::BootId;
pub use publish::{Publication, VoteCounts, VotedPart, Writer};
pub use read::{Mark, Reader, Verified};
pub use words::{PageMemory, PageWords};
