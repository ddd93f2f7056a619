//! When the replies of one thread left: the kernel's stamps of those to interleaving clients, asked for with the batch
//! and taken over right after it.
//!
//! A stamp that has not come by then is not waited for: the client's next reply is a basic one.

use crate::interleaved::{Departures, Interleave};
use ffclock_sys::ServedSocket;
use ffclock_wire::{NtpTimestamp, ServedRequest};
use std::net::IpAddr;

/// The memory of a thread, for 16384 replies.
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
    /// The kernel's number of the first of them.
    first: u32,
}

impl Leaving {
    /// For the replies of this socket; `None` where the kernel does not stamp them.
    pub fn start(socket: &ServedSocket) -> Option<Self> {
        socket.stamp_departures().ok()?;
        let waiting = Vec::with_capacity(MOST_STAMPED);
        Some(Leaving { table: Departures::new(TABLE_BYTES), waiting, first: 0 })
    }

    /// How to answer a request from `ip`.
    pub fn decide(&mut self, ip: IpAddr, request: &ServedRequest) -> Interleave {
        self.table.decide(ip, request)
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

    /// Takes over the stamps that have come; `time` makes the time of a reply of a stamp.
    pub fn take_over(&mut self, socket: &ServedSocket, mut time: impl FnMut(i64) -> Option<NtpTimestamp>) {
        while let Some((number, stamped)) = socket.next_departure() {
            let place = number.wrapping_sub(self.first) as usize;
            let Some(name) = self.waiting.get(place) else { continue };
            if let (Some(left), Some((ip, receive))) = (stamped.and_then(&mut time), *name) {
                self.table.remember(ip, receive, left);
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
