//! What an exchange shows to the bank: the delays of its two packets.

use crate::frame::Point;
use crate::tuning::bank::STAMP_NOISE;

/// A microsecond, the bank's unit of time differences, in seconds.
pub const MICRO: f64 = 1e-6;

/// One packet of an exchange as a measurement z of the state: `z = H x + q`, with H in the first field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// Forward `theta - r trip + floor + queueing`, backward `-theta + r trip + floor + queueing`, us.
    pub delay: f64,
    /// How long before the moment of the state the packet's own stamp was taken, s.
    pub trip: f64,
    /// The variance of what the stamp's width can do, us^2.
    pub noise: f64,
}

/// The two packets of an exchange.
pub fn measurements(point: &Point) -> [Measurement; 2] {
    let noise = |half: f64| {
        let width = 2.0 * half / MICRO;
        width * width / 12.0 + STAMP_NOISE
    };
    [
        Measurement { delay: point.forward / MICRO, trip: point.trip, noise: noise(point.sent_half) },
        Measurement { delay: -point.backward / MICRO, trip: 0.0, noise: noise(point.received_half) },
    ]
}
