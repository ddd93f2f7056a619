//! What clock comes of each counter and each kind of packet stamps, all from the same packets.
//!
//! A server whose time is a known function of the CPU's counter answers one stream of requests. Every counter stamps
//! each packet ([`packets`]); for each counter and kind of stamps both estimators make a clock, which is compared with
//! the known time between two requests ([`tracks`]). Figures 5 (counter-availability) and 17, 18
//! (case-for-feed-forward).

pub mod packets;
pub mod tracks;
