//! ffclock-serve: an NTP server whose claim is true.
//!
//! It reads the page that ffclockd publishes and answers requests with its time. What it says of its error (root delay
//! and root dispersion) is the bound of the page, so the root distance that a client computes from a reply contains the
//! true time. It never sets a clock, has no capability while it serves, and nothing flows back into the page.
//!
//! A thread for each address and each of `threads` takes requests by the batch ([`worker`], the file to begin with),
//! from a socket of its own. A request goes through these, in this order:
//!
//! 1. who is answered: networks ([`access`]), and a rate limit in memory of a fixed size ([`limit`]); both are part of
//!    the [`policy`], which a reload replaces;
//! 2. when it came: the kernel's stamp as a reading of the page's counter ([`arrivals`]);
//! 3. what the reply says: a pure function of the publication ([`face`], with the smear of leap seconds beside it), of
//!    whom the daemon follows ([`following`]) and of the request (`ffclock_wire::ServedRequest` and `ReplyTemplate`);
//! 4. when it leaves: what can be foreseen of that ([`lateness`]), and for clients that interleave what the kernel says
//!    afterwards ([`leaving`], [`interleaved`]).
//!
//! With a certificate the server establishes keys for NTS ([`establishment`], on threads of their own) and answers
//! protected requests beside the others ([`nts`]). Where the operator names a device, its driver answers plain requests
//! before the sockets see them ([`fast_path`]). On devices that are named it is a grandmaster of PTP, too ([`ptp`]).
//! docs/serve.md is for operators.
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
