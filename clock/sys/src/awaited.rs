//! Packets that were sent and whose stamps have not come, each with what its stamp is for.

use crate::{Sent, Transmitted};
use ffclock_units::{Moment, Mono, Span};
use std::collections::VecDeque;

/// How long the kernel's stamp of a packet is waited for; that of user space serves then.
const PATIENCE: Span = Span::from_millis(50);

/// Packets of one socket, oldest first.
#[derive(Debug)]
pub struct AwaitedStamps<T> {
    waiting: VecDeque<Awaited<T>>,
    most: usize,
}

#[derive(Debug)]
struct Awaited<T> {
    sent: Sent,
    purpose: T,
    until: Moment<Mono>,
}

impl<T> AwaitedStamps<T> {
    /// Room for this number of packets; beyond it the oldest is given up.
    pub fn new(most: usize) -> Self {
        AwaitedStamps { waiting: VecDeque::with_capacity(most), most }
    }

    /// This packet was sent now.
    pub fn push(&mut self, (sent, purpose): (Sent, T), now: Moment<Mono>) {
        if self.waiting.len() >= self.most {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Awaited { sent, purpose, until: now + PATIENCE });
    }

    /// What this stamp is for.
    pub fn redeem(&mut self, transmitted: &Transmitted) -> Option<T> {
        let place = self.waiting.iter().position(|waiting| waiting.sent.id == transmitted.id)?;
        self.waiting.remove(place).map(|waiting| waiting.purpose)
    }

    /// A packet whose stamp has been waited for long enough.
    pub fn overdue(&mut self, now: Moment<Mono>) -> Option<(Sent, T)> {
        self.deadline().filter(|until| *until <= now)?;
        self.waiting.pop_front().map(|first| (first.sent, first.purpose))
    }

    /// When the next one will be.
    pub fn deadline(&self) -> Option<Moment<Mono>> {
        self.waiting.front().map(|waiting| waiting.until)
    }

    /// Waits for none of them any more.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }
}
