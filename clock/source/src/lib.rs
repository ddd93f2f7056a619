//! The conversation with one NTP server: what is sent and when, and which reply belongs to which request.
//!
//! This crate turns packets and stamps into [`Exchange`](ffclock_units::Exchange)s and is the only one that knows the
//! protocol. It owns no socket, reads no clock and has no source of randomness; the caller provides all three. The
//! daemon and the simulator drive it with the same calls: feed it a packet ([`Source::handle_packet`]), the stamp of
//! a request that has left ([`Source::handle_sent`]) or the passing of time ([`Source::handle_timeout`]); then drain
//! its packets ([`Source::poll_transmit`]) and its events ([`Source::poll_event`]); then wait until
//! [`Source::poll_timeout`].
//!
//! - A request carries a random number in the place of the client's time, and only a reply that repeats it counts. An
//!   attacker that cannot see our packets cannot forge a reply, and an observer that sees them does not learn our
//!   clock.
//! - One request at a time: the next one waits until the last is answered or given up, so the order is always certain.
//! - The stamp of a request comes back with the [`Ticket`] that was handed out with it. A ticket cannot be copied, so
//!   a stamp cannot end up with another packet.
//! - A server that interleaves says with each reply exactly when the one before it left (RFC 9769). The exchange then
//!   waits for that: it comes later, never out of order, and is never lost.
//! - The servers of a host are asked in turn, each at its [`PollPlace`]; an [`AdaptivePoll`] chooses their polls.
//! - No packet is rejected silently: each one has its [`Rejection`] and is counted.
//!
//! It never judges whether the server's time is good; the estimator does that. Scripted dialogues are in
//! `tests/conversation/dialogues.rs`, properties under any sequence of calls in `any_calls.rs` beside it.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod adaptive;
mod calendar;
mod config;
mod event;
mod interleaved;
mod leap;
mod place;
mod reach;
mod reply;
mod request;
mod schedule;
mod source;
mod statistics;

pub use adaptive::AdaptivePoll;
pub use calendar::month_end;
pub use config::SourceConfig;
pub use event::{Event, Rejection};
pub use leap::LeapWatch;
pub use place::PollPlace;
pub use reach::Reachability;
pub use request::{Nonce, Ticket, Transmit};
pub use source::Source;
pub use statistics::Statistics;
