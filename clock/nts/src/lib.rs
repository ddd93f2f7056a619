//! The protocol of NTS (RFC 8915) and of symmetric keys (RFC 5905, RFC 8573) without its sockets: bytes in, bytes or a
//! reason out.
//!
//! It reads no clock, logs nothing, and panics on no input. Random numbers and dates are arguments. What a packet says
//! counts only after its authenticator was verified; comparisons of secrets are those of the ciphers' crates, in
//! constant time.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod aead;
mod client;
mod cookie;
pub mod establishment;
pub mod mac;
mod server;

pub use aead::{Aead, Key, NotAuthentic, SessionKeys, TAG_BYTES};
pub use client::{COOKIES_KEPT, LONGEST_REQUEST, OpenedReply, RequestRandom, Session, Unauthentic};
pub use cookie::{CookieKeys, LONGEST_COOKIE, NonceSource, SECRET_BYTES};
pub use server::{OpenedRequest, Protection, RefusedRequest, ReplySealer, write_nak};

/// The name of key establishment inside TLS (ALPN; RFC 8915, section 4).
pub const ALPN: &[u8] = b"ntske/1";
/// The label by which both sides take their keys from TLS (RFC 8915, section 5.1).
pub const EXPORTER_LABEL: &[u8] = b"EXPORTER-network-time-security";

/// The direction that a key protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyDirection {
    /// Requests.
    ClientToServer,
    /// Replies.
    ServerToClient,
}

/// The context by which the key of a direction is taken from TLS: the protocol (0, NTPv4), the algorithm, the direction
/// (RFC 8915, section 5.1).
pub fn exporter_context(aead: Aead, direction: KeyDirection) -> [u8; 5] {
    let [high, low] = aead.id().to_be_bytes();
    let direction = match direction {
        KeyDirection::ClientToServer => 0,
        KeyDirection::ServerToClient => 1,
    };
    [0, 0, high, low, direction]
}
