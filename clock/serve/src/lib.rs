//! ffclock-serve: an NTP server whose claim is true.
//!
//! It reads the page that ffclockd publishes and answers requests with its time. What it says of its error (root delay
//! and root dispersion) is the bound of the page, so the root distance that a client computes from a reply contains the
//! true time. It never sets a clock, has no capability while it serves, and nothing flows back into the page.
//!
//! A thread for each address and each of `threads` takes requests by the batch ([`worker`]), from a socket of its own.
//! What a reply says is a pure function of the publication ([`face`]) and of the request (`ffclock_wire::ServedRequest`
//! and `ReplyTemplate`). Who is answered is decided by networks ([`access`]) and by a rate limit in memory of a fixed
//! size ([`limit`]). With a certificate the server establishes keys for NTS ([`establishment`], on threads of their
//! own) and answers protected requests beside the others ([`nts`]). Where the operator names a device, its driver
//! answers plain requests before the sockets see them ([`fast_path`]). On devices that are named it is a grandmaster of
//! PTP, too ([`ptp`]). docs/serve.md is for operators.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod access;
pub mod arguments;
pub mod arrivals;
pub mod config;
mod cookie_secret;
pub mod establishment;
pub mod face;
pub mod fast_path;
pub mod following;
pub mod interleaved;
pub mod lateness;
pub mod leaving;
pub mod limit;
pub mod nts;
pub mod options;
pub mod policy;
mod protection;
pub mod ptp;
mod report;
pub mod served_clock;
mod server;
mod smear;
pub mod tally;
pub mod worker;

pub use server::{ServeError, run};
