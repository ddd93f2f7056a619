//! Bytes to NTP values and back, and nothing else.
//!
//! This crate decodes the 48 bytes of an NTPv4 header (RFC 5905, section 7.3, figure 8) and gives each field its type.
//! The conversation, in the crate `ffclock-source`, decides whether a packet is accepted. Decoding is total (any bytes
//! give a packet or a reason, never a panic), reads no clock, and rounds every claim about an error upwards.
//!
//! Seconds on the wire have 32 bits and wrap every 136 years. [`NtpTimestamp::to_server`] takes the era nearest to a
//! moment that the caller already knows, so the wrap of 2036 is no special case.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod extension;
mod fields;
mod packet;
mod reference;
mod served;
mod short;
mod timestamp;

pub use extension::{EXTENSION_HEAD_BYTES, ExtensionField, ExtensionFields, NotExtension, begin_extension};
pub use fields::{KissCode, LeapIndicator, LogSeconds, Mode, Version};
pub use packet::{DecodeError, HEADER_BYTES, PACKET_BYTES_MAX, Packet};
pub use reference::reference_of;
pub use served::{NotServed, ReplyTemplate, ServedRequest, claiming_at_least};
pub use timestamp::NtpTimestamp;
