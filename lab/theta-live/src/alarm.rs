//! A timer for `poll` that is finer than milliseconds.

use crate::stamping::StampingCounter;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Without a deadline the thread wakes after this time.
const FOR_EVER: Duration = Duration::from_secs(3600);

pub(super) struct Alarm {
    /// Counter values at which to ring.
    orders: Sender<u64>,
    pub(super) bell: UnixStream,
}

impl Alarm {
    pub(super) fn start(counter: StampingCounter) -> std::io::Result<Self> {
        let (bell, hammer) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        hammer.set_nonblocking(true)?;
        let (orders, received) = channel::<u64>();
        std::thread::spawn(move || ring(&received, &hammer, counter));
        Ok(Alarm { orders, bell })
    }

    /// Rings when the counter reaches `deadline`. Earlier orders stay in force.
    pub(super) fn set(&self, deadline: u64) {
        // The thread ends with the process only.
        let _ = self.orders.send(deadline);
    }

    pub(super) fn silence(&mut self) {
        let mut rings = [0; 64];
        while matches!(self.bell.read(&mut rings), Ok(read) if read == rings.len()) {}
    }
}

/// Runs until the owner of the alarm is gone.
fn ring(orders: &Receiver<u64>, mut hammer: &UnixStream, counter: StampingCounter) {
    let mut deadlines: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    loop {
        let now = counter.read().raw();
        let mut is_due = false;
        while deadlines.peek().is_some_and(|Reverse(deadline)| *deadline <= now) {
            deadlines.pop();
            is_due = true;
        }
        if is_due {
            // If the pipe is full, the alarm is already due.
            let _ = hammer.write(&[1]);
        }
        let rest = deadlines.peek().map(|Reverse(deadline)| (deadline - now) as f64 * counter.period.as_seconds());
        match orders.recv_timeout(rest.map_or(FOR_EVER, Duration::from_secs_f64).min(FOR_EVER)) {
            Ok(deadline) => deadlines.push(Reverse(deadline)),
            Err(RecvTimeoutError::Timeout) => (),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_counter::{CounterId, nominal};
    use ffclock_units::Span;

    /// A later order does not hold up an earlier one.
    #[test]
    fn orders_ring_in_the_order_of_time() {
        let kind = CounterId::MonotonicRaw;
        let period = nominal(kind).unwrap().period;
        let counter = StampingCounter { kind, period };
        let mut alarm = Alarm::start(counter).unwrap();
        alarm.bell.set_nonblocking(false).unwrap();
        let begun = counter.read();
        let after = |ms| begun.raw() + period.ticks_in(Span::from_millis(ms)).raw() as u64;
        [60_000, 40, 5].map(after).into_iter().for_each(|deadline| alarm.set(deadline));
        for least in [5, 40] {
            alarm.bell.read_exact(&mut [0]).unwrap();
            assert!(counter.read().raw() >= after(least));
            assert!(counter.read().raw() < after(30_000));
        }
        alarm.bell.set_nonblocking(true).unwrap();
        alarm.silence();
    }
}
