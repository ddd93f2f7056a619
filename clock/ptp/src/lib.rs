//! The protocol of IEEE 1588-2019 (PTP): messages, a clock that follows, and a grandmaster.
//!
//! This crate turns messages and stamps into observations, and owns no socket, reads no clock and has no source of
//! randomness; the caller provides all three. [`Follower`] is a clock of one port that follows: feed it a message
//! ([`Follower::handle_message`]), the stamp of one that has left ([`Follower::handle_sent`]) or the passing of time
//! ([`Follower::handle_timeout`]); then drain what it sends and its events; then wait until
//! [`Follower::poll_timeout`]. [`Grandmaster`] is the other side, which states the time that the caller gives.
//!
//! - Each Sync and each Delay_Req is an observation of one direction ([`PtpObservation`]): our counter on one side, the
//!   master's time on the other. [`ExchangePairing`] makes exchanges of them, each as wrong as was claimed at its time
//!   ([`ClaimHistory`]).
//! - A follower has no servo. It never sets, steers or even holds a clock.
//! - The stamp of a message comes back with the [`PtpTicket`] that was handed out with it. A ticket cannot be copied,
//!   so a stamp cannot end up with another message.
//! - Decoding is total, and memory is bounded: a flood of masters, clients, messages or TLVs costs others their place,
//!   and the master that is followed nothing.
//! - No message is rejected silently: each one has its [`PtpRejection`] and is counted.
//!
//! It never judges whether a master's time is good; guard and quorum do that, as with any server. Where the text of the
//! standard is quoted by its clause, the source was public descriptions and the behaviour of linuxptp, whose messages
//! are among the tests (`tests/dialogue/captured.rs`). Scripted dialogues are in `tests/dialogue/`.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod announcement;
mod cadence;
mod claims;
mod config;
mod event;
mod follower;
mod foreign;
mod grandmaster;
mod identity;
mod link;
mod message;
mod negotiation;
mod octets;
mod pairing;
mod quality;
mod recent;
mod requests;
mod syncs;
mod timestamp;
mod tlv;
mod transmit;

pub use announcement::{Announcement, ClaimRules, Master, TimeSource};
pub use claims::ClaimHistory;
pub use config::{ArbitraryTimescale, DelayMechanism, Delivery, ERA, FollowerConfig, PERIOD_TOLERANCE};
pub use event::{LinkDelay, PtpEvent, PtpObservation, PtpRejection, PtpStatistics};
pub use follower::Follower;
pub use grandmaster::{Grandmaster, GrandmasterClaim, GrandmasterConfig, GrandmasterLimits, GroupService};
pub use identity::{ClockIdentity, NetworkAddress, Passage, PortIdentity};
pub use message::{LOG_INTERVAL_NONE, MESSAGE_BYTES_MAX, NotPtp, PtpBody, PtpFlags, PtpMessage};
pub use octets::PtpOctets;
pub use pairing::ExchangePairing;
pub use quality::{ClockAccuracy, ClockClass, ClockQuality, ScaledVariance};
pub use timestamp::{Correction, PtpTimestamp};
pub use tlv::{TLVS_MAX, Tlv, Tlvs, UnicastService, UnicastTerms, UnicastWord};
pub use transmit::{Audience, Channel, PtpTicket, PtpTransmit};
