//! libffclock: reads the clock that `ffclockd` publishes, from Rust and from C.
//!
//! A [`Clock`] maps the page of the daemon and reads the same counter. Nothing is asked of the daemon and no system
//! call is made: a reading is a counter value and a multiplication. Every [`Reading`] comes with its bound and its
//! status, all from one publication. Taking a [`Stamp`] and converting it are separate steps, so that the conversion
//! can wait for a moment when it disturbs nothing: an old stamp is converted by the lines around it. Short intervals
//! come from the difference clock, which is never corrected, and long ones from two conversions.
//! ```no_run
//! use ffclock::Clock;
//! let clock = Clock::open()?;
//! let begin = clock.stamp();
//! let end = clock.stamp();
//! println!("{:?} +- {:?}", clock.now()?.time, clock.now()?.bound);
//! println!("{:?}", clock.elapsed(begin, end)?.span);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! Commit wait: an event gets a time, and is shown to others only when that time has certainly passed, so that
//! every host that saw it gives later times only ([`certainly_before`] holds between the two).
//! ```no_run
//! use ffclock::{Clock, latest};
//! use std::time::Duration;
//! let clock = Clock::open()?;
//! let commit = latest(&clock.time_of(clock.stamp())?);
//! // ... write the transaction with the time `commit` ...
//! clock.wait_certainly_after(commit, Duration::from_secs(1))?;
//! // ... and show it.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! [`Instant`] and [`Timestamp`] are the same in the manner of `std::time`.
//!
//! The C interface is in `include/ffclock.h`; its guide is `docs/client.md`.
#![deny(missing_docs)]

mod c_api;
mod civil;
mod clock;
mod instant;
mod machine;
mod open;
mod order;
mod stamp;

/// The examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
pub enum Guide {}

pub use civil::CivilTime;
pub use clock::{Clock, WaitError};
pub use ffclock_page::{Interval, IntervalWay, PageError, ReadError, Snapshot, VotedTime};
pub use ffclock_units::{Bound, MachineMark, Moment, Reading, Span, StandardUncertainty, Status, Tai, Utc};
pub use instant::{Instant, Timestamp};
pub use open::{OpenError, default_page};
pub use order::{certainly_before, earliest, latest};
pub use stamp::Stamp;
