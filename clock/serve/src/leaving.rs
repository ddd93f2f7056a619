//! When the replies of one thread left: the kernel's stamps of those to interleaving clients, asked for with the batch
//! and taken over right after it.
//!
//! A stamp that has not come by then is not waited for: the client's next reply is a basic one.

use crate::interleaved::{Departure, Departures, Interleave, odd};
use ffclock_sys::{PacketBatch, ServedSocket};
use ffclock_wire::{NtpTimestamp, ServedRequest};
use std::net::IpAddr;

/// The memory of a thread, for 8192 replies.
const TABLE_BYTES: usize = 256 << 10;
/// The most replies of a batch that are stamped: requests that only look as if they named a reply must not slow down
/// the others.
const MOST_STAMPED: usize = 16;

/// Replies that are to be stamped, and when those before them left.
pub struct Leaving {
    table: Departures,
    /// The replies of the latest batch that the kernel stamps, in its order, each with what an interleaving client will
    /// name it by.
    waiting: Vec<Option<(IpAddr, NtpTimestamp)>>,
    /// The receive times that the replies of the batch at hand state, each to its client.
    stated: Vec<(NtpTimestamp, IpAddr)>,
    /// The kernel's number of the first of them.
    first: u32,
}

impl Leaving {
    /// For the replies of this socket; `None` where the kernel does not stamp them.
    pub fn start(socket: &ServedSocket) -> Option<Self> {
        socket.stamp_departures().ok()?;
        let waiting = Vec::with_capacity(MOST_STAMPED);
        let stated = Vec::with_capacity(PacketBatch::CAPACITY);
        Some(Leaving { table: Departures::new(TABLE_BYTES), waiting, stated, first: 0 })
    }

    /// How to answer a request from `ip`.
    pub fn decide(&mut self, ip: IpAddr, request: &ServedRequest) -> Interleave {
        self.table.decide(ip, request)
    }

    /// The replies of another batch are about to be made.
    pub fn begin_batch(&mut self) {
        self.stated.clear();
    }

    /// The receive time of a reply as it is stated: odd, and no other reply of the batch to this address has it.
    /// Several clients may have one address, and packets without a stamp of the kernel all come at one time.
    pub fn receive_time(&mut self, ip: IpAddr, receive: NtpTimestamp) -> NtpTimestamp {
        let mut receive = odd(receive);
        while self.stated.contains(&(receive, ip)) {
            receive = NtpTimestamp::from_raw(receive.raw().wrapping_add(2));
        }
        self.stated.push((receive, ip));
        receive
    }

    /// Whether another reply of the batch may be stamped.
    pub fn has_room(&self) -> bool {
        self.waiting.len() < MOST_STAMPED
    }

    /// The kernel was asked to stamp a reply; an interleaving client will name it by its address and receive time.
    pub fn expect(&mut self, name: Option<(IpAddr, NtpTimestamp)>) {
        debug_assert!(self.has_room(), "the room was asked for");
        self.waiting.push(name);
    }

    /// Whether stamps are to come.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes over the stamps that have come; `time` makes the departure of a reply of a stamp.
    pub fn take_over(&mut self, socket: &ServedSocket, mut time: impl FnMut(i64) -> Option<Departure>) {
        while let Some((number, stamped)) = socket.next_departure() {
            let place = number.wrapping_sub(self.first) as usize;
            let Some(name) = self.waiting.get(place) else { continue };
            if let (Some(departure), Some((ip, receive))) = (stamped.and_then(&mut time), *name) {
                self.table.remember(ip, receive, departure);
            }
        }
    }

    /// The stamps of the latest batch are no longer waited for.
    pub fn end_batch(&mut self) {
        self.first = self.first.wrapping_add(self.waiting.len() as u32);
        self.waiting.clear();
    }

    /// A reply was not sent, and it is not known whether the kernel numbered it: it counts from 0 again. Returns
    /// whether it stamps at all from now on.
    pub fn restart(&mut self, socket: &ServedSocket) -> bool {
        while socket.next_departure().is_some() {}
        self.waiting.clear();
        self.first = 0;
        socket.stamp_departures().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_replies_of_a_batch_to_one_address_state_one_receive_time() {
        let mut leaving = Leaving { table: Departures::new(64), waiting: Vec::new(), stated: Vec::new(), first: 0 };
        let [one, other]: [IpAddr; 2] = ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse().unwrap());
        let mut stated = |ip, raw| leaving.receive_time(ip, NtpTimestamp::from_raw(raw)).raw();
        assert_eq!([stated(one, 100), stated(one, 101), stated(one, 100), stated(one, 102)], [101, 103, 105, 107]);
        assert_eq!((stated(other, 100), stated(one, 200)), (101, 201));
        leaving.begin_batch();
        assert_eq!(leaving.receive_time(one, NtpTimestamp::from_raw(100)).raw(), 101);
    }
}
