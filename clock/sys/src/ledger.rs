//! Which transmit stamp belongs to which packet.
//!
//! With SOF_TIMESTAMPING_OPT_ID the kernel numbers the packets of a socket from 0, in 32 bits that wrap, and names the
//! number with each stamp. Here every packet gets a number of our own that never repeats, and the kernel's is
//! translated.

use crate::StampDiscarded;
use crate::stamper::DepartureStamp;
use ffclock_units::Stamp;
use std::collections::VecDeque;

/// Names one packet that a socket sent; never used twice by the same socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SendId(u64);

impl SendId {
    /// The number: 0 for the first packet, and one more for each one after it.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// A packet whose stamp has not come yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outstanding {
    pub(crate) id: SendId,
    key: u32,
    /// What was read before it was sent: its stamp lies after.
    pub(crate) departure: DepartureStamp,
    /// The kernel's stamp, where it has come and that of the network card has not.
    pub(crate) kernel: Option<Result<Stamp, StampDiscarded>>,
}

/// Packets whose stamps have not come yet; the oldest are given up.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    next_id: u64,
    next_key: u32,
    outstanding: VecDeque<Outstanding>,
}

const MOST: usize = 1024;

impl Ledger {
    /// The id for a packet that was just sent with no stamp to be expected.
    pub(crate) fn number(&mut self) -> SendId {
        let id = SendId(self.next_id);
        self.next_id = self.next_id.wrapping_add(1);
        self.next_key = self.next_key.wrapping_add(1);
        id
    }

    /// The id for a packet that was just sent, to be stamped.
    pub(crate) fn expect(&mut self, departure: DepartureStamp) -> SendId {
        let key = self.next_key;
        let id = self.number();
        if self.outstanding.len() == MOST {
            self.outstanding.pop_front();
        }
        self.outstanding.push_back(Outstanding { id, key, departure, kernel: None });
        id
    }

    /// The packet that the kernel numbered `key`, if its stamp is still waited for.
    pub(crate) fn find(&self, key: u32) -> Option<Outstanding> {
        self.outstanding.iter().find(|packet| packet.key == key).copied()
    }

    /// A packet whose stamp is still waited for.
    pub(crate) fn awaited(&self, id: SendId) -> Option<&Outstanding> {
        self.outstanding.iter().find(|packet| packet.id == id)
    }

    /// The kernel's stamp of a packet has come, and that of the network card is waited for.
    pub(crate) fn keep(&mut self, id: SendId, kernel: Result<Stamp, StampDiscarded>) {
        if let Some(packet) = self.outstanding.iter_mut().find(|packet| packet.id == id) {
            packet.kernel = Some(kernel);
        }
    }

    /// Its stamp has come.
    pub(crate) fn settle(&mut self, id: SendId) {
        self.outstanding.retain(|packet| packet.id != id);
    }

    /// The kernel counts from 0 again. Stamps of packets sent before can no longer be distinguished from those of
    /// packets to come.
    pub(crate) fn restart_keys(&mut self) {
        self.next_key = 0;
        self.outstanding.clear();
    }

    #[cfg(test)]
    pub(crate) fn start_keys_at(&mut self, key: u32) {
        self.next_key = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stamper;
    use ffclock_counter::CounterId;
    use ffclock_units::Period;

    fn departure() -> DepartureStamp {
        Stamper::new(CounterId::MonotonicRaw, Period::from_hertz(1e9).unwrap()).depart_for_kernel(None)
    }

    #[test]
    fn numbers_go_on_where_keys_wrap() {
        let mut ledger = Ledger::default();
        ledger.start_keys_at(u32::MAX);
        let ids = [ledger.expect(departure()), ledger.number(), ledger.expect(departure())];
        assert_eq!(ids.map(SendId::number), [0, 1, 2]);
        assert_eq!(ledger.find(u32::MAX).unwrap().id, ids[0]);
        assert_eq!(ledger.find(0), None);
        assert_eq!(ledger.find(1).unwrap().id, ids[2]);
    }

    #[test]
    fn a_settled_packet_is_found_no_more() {
        let mut ledger = Ledger::default();
        let id = ledger.expect(departure());
        ledger.settle(id);
        assert_eq!(ledger.find(0), None);
    }

    #[test]
    fn the_kernels_stamp_is_kept_while_that_of_the_card_is_awaited() {
        let mut ledger = Ledger::default();
        let id = ledger.expect(departure());
        ledger.keep(id, Err(StampDiscarded::TooOld));
        assert_eq!(ledger.awaited(id).unwrap().kernel, Some(Err(StampDiscarded::TooOld)));
        assert_eq!(ledger.find(0).unwrap().id, id, "it is still waited for");
        ledger.settle(id);
        assert_eq!(ledger.awaited(id), None);
    }

    #[test]
    fn after_a_restart_old_keys_mean_nothing() {
        let mut ledger = Ledger::default();
        ledger.expect(departure());
        ledger.expect(departure());
        ledger.restart_keys();
        assert_eq!(ledger.find(1), None);
        assert_eq!(ledger.expect(departure()).number(), 2);
        assert_eq!(ledger.find(0).unwrap().id.number(), 2);
    }

    #[test]
    fn packets_whose_stamps_never_come_are_given_up() {
        let mut ledger = Ledger::default();
        for _ in 0..=MOST {
            ledger.expect(departure());
        }
        assert_eq!(ledger.find(0), None);
        assert!(ledger.find(1).is_some());
    }
}
