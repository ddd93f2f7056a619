//! How stamps are moved towards the wire by what is known of the host's own delays.

use crate::{Stamp, Ticks};

/// A move of one stamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StampMove {
    /// How far it moves.
    pub by: Ticks,
    /// How much wider it becomes, since the move itself may be wrong.
    pub wider: Ticks,
}

/// The moves of the stamps of one location towards the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StampShift {
    /// Of packets sent: they passed the driver later than this location.
    pub sent: StampMove,
    /// Of packets received: they passed the driver earlier than this location.
    pub received: StampMove,
}

impl StampShift {
    /// The stamp of a packet sent, moved.
    pub fn sent(self, stamp: Stamp) -> Stamp {
        Stamp { counter: stamp.counter + self.sent.by, width: stamp.width + self.sent.wider, ..stamp }
    }

    /// The stamp of a packet received, moved.
    pub fn received(self, stamp: Stamp) -> Stamp {
        Stamp { counter: stamp.counter - self.received.by, width: stamp.width + self.received.wider, ..stamp }
    }
}
