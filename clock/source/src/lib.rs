//! The conversation with one NTP server: what to send, when, and which reply answers which request.
//!
//! This room turns packets and stamps into [`Exchange`](ffclock_units::Exchange)s and is the only one that knows the
//! protocol. It owns no socket, reads no clock and has no source of randomness; the caller brings all three. The
//! daemon and the simulator drive it with the same calls: feed it a packet ([`Source::handle_packet`]), the stamp of
//! a request that has left ([`Source::handle_sent`]) or the passing of time ([`Source::handle_timeout`]); then drain
//! what it wants to send ([`Source::poll_transmit`]) and to say ([`Source::poll_event`]); then wait until
//! [`Source::poll_timeout`].
//!
//! - A request carries a random number where clients used to put their time, and only a reply that repeats it counts.
//!   Nobody who cannot see our packets can forge an answer, and nobody who sees them learns our clock.
//! - One request at a time: the next one waits until the last is answered or given up. So order is never in doubt.
//! - The stamp of a request comes back with the [`Ticket`] that was handed out with it. A ticket cannot be copied, so
//!   a stamp cannot end up with another packet.
//! - What is not believed is said: each packet that is turned away has its [`Rejection`] and is counted.
//!
//! It never judges whether the server's time is good; that is the estimator's part. Scripted dialogues are in
//! `tests/conversation/dialogues.rs`, properties under any sequence of calls in `any_calls.rs` beside it.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod calendar;
mod config;
mod event;
mod leap;
mod reach;
mod reply;
mod request;
mod schedule;
mod source;
mod statistics;

pub use calendar::month_end;
pub use config::SourceConfig;
pub use event::{Event, Rejection};
pub use reach::Reachability;
pub use request::{Nonce, Ticket, Transmit};
pub use source::Source;
pub use statistics::Statistics;
