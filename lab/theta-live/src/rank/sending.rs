//! What a rank sends: its broadcasts as its links let them pass, and replies.

use super::{OWN, Rank};
use crate::LiveError;
use crate::packet::{Stay, WirePacket};
use crate::post::Held;
use ffclock_sys::Received;
use ffclock_theta::record::{Event, Round};
use ffclock_units::Counter;
use std::net::SocketAddr;

impl Rank {
    /// Broadcasts what a machine wants to send of the rounds up to `limit` and up to the last round of the run.
    pub(super) fn broadcast_up_to(&mut self, which: usize, limit: u64) -> Result<(), LiveError> {
        let limit = limit.min(self.settings.rounds);
        while let Some(round) = self.machines[which].process.poll_transmit_up_to(limit) {
            if which == OWN {
                let at = self.counter();
                self.recorder.event(Event::Broadcast { process: self.own, round: Round(round), at });
            }
            self.broadcast(round)?;
        }
        Ok(())
    }

    fn broadcast(&mut self, round: u64) -> Result<(), LiveError> {
        if self.settings.faults.is_empty() {
            return (0..self.settings.processes).try_for_each(|receiver| self.hand_over_copies(receiver, round, 1));
        }
        let now = self.since_start(self.counter());
        for receiver in 0..self.settings.processes {
            for round in self.injector.rounds_for(receiver, round, now) {
                let way = self.injector.way(receiver, now);
                if way.from > now {
                    let until = self.counter_at(way.from);
                    self.post.hold(until, Held::Message { receiver, round, copies: way.copies });
                    self.alarm.set(until);
                } else {
                    self.hand_over_copies(receiver, round, way.copies)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn hand_over_copies(&mut self, receiver: u32, round: u64, copies: u64) -> Result<(), LiveError> {
        let to: SocketAddr = self.go.addresses[receiver as usize];
        for _ in 0..copies {
            let packet = WirePacket { run: self.go.run, sender: self.own.0, round, reply: None };
            self.post.send_stamped(packet, receiver, to)?;
            self.header.sent += 1;
        }
        Ok(())
    }

    /// Sends the message back, as in the paper.
    pub(super) fn reply(
        &mut self,
        received: &Received,
        packet: WirePacket,
        perceived: Counter,
    ) -> Result<(), LiveError> {
        let came = received.best.stamp.counter.raw();
        let stay = Stay {
            perceived: perceived.raw().saturating_sub(came),
            replied: self.counter().raw().saturating_sub(came),
        };
        self.header.replies_sent += 1;
        self.post.send(WirePacket { sender: self.own.0, reply: Some(stay), ..packet }, received.from).map(drop)
    }
}
