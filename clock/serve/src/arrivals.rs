//! When requests came: the kernel's stamps, by the system clock, as readings of the counter.
//!
//! One pair (counter, system clock) for each batch. A packet came `age` before the pair, and the counter was as much
//! smaller then. The age is rounded down by all that the system clock may have been slewed, so the time that we state
//! is never before the packet came: what is too late counts as delay of the network, which the client knows how to
//! bound. A stamp that lies after the pair, or before the socket was last seen empty, cannot be true (the system clock
//! was stepped): then, and whenever the kernel reports a step, the packet came when it was read.

use ffclock_counter::CounterId;
use ffclock_sys::{PairReader, SystemPairs, Watch};
use ffclock_units::{Counter, Period, Ticks};

/// How far the system clock may run from the nominal period: 500 ppm of slewing and 100 ppm of error of that period.
const SLEW: f64 = 600e-6;

/// Turns stamps into readings of one counter.
pub struct Arrivals {
    counter: CounterId,
    pairs: SystemPairs,
    ticks_per_ns: f64,
    /// Whether the latest pair may be used.
    is_good: bool,
    /// The counter and the system clock [ns since 1970] of the latest pair.
    pair: (Counter, i64),
    /// The whole width of the pair.
    width: Ticks,
    /// Every packet of this batch came after it.
    floor: Counter,
    /// Every packet of the next batch came after it, if this one left none behind.
    next_floor: Counter,
}

/// When a packet came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivedAt {
    /// The reading of the counter: never before it came.
    pub counter: Counter,
    /// Whether it is the kernel's stamp.
    pub by_kernel: bool,
}

impl Arrivals {
    /// For this counter.
    pub fn new(counter: CounterId) -> Self {
        let mut pairs = SystemPairs::new(counter);
        let now = pairs.read_counter();
        Arrivals {
            counter,
            pairs,
            ticks_per_ns: 0.0,
            is_good: false,
            pair: (now, 0),
            width: Ticks::ZERO,
            floor: now,
            next_floor: now,
        }
    }

    /// The counter.
    pub fn counter(&self) -> CounterId {
        self.counter
    }

    /// Reads the counter.
    pub fn now(&mut self) -> Counter {
        self.pairs.read_counter()
    }

    /// Counts with this period from now on; without one every packet came when it was read.
    pub fn set_period(&mut self, period: Option<Period>) {
        self.ticks_per_ns = period.map_or(0.0, |period| 1e-9 / period.as_seconds());
    }

    /// A batch was taken over, by a call that began after the counter was read as `before`.
    pub fn take_batch(&mut self, before: Counter, left: Left) {
        self.floor = self.next_floor;
        if left == Left::None {
            self.next_floor = before;
        }
        let pair = self.pairs.read_pair();
        self.is_good = self.ticks_per_ns > 0.0 && self.pairs.watch() == Watch::Quiet;
        self.pair = (pair.counter, i64::try_from(pair.system.since_origin().as_nanos()).unwrap_or(0));
        self.width = pair.width;
    }

    /// When a packet of the batch came, which the kernel stamped with this time [ns since 1970].
    pub fn at(&self, stamped_ns: Option<i64>) -> ArrivedAt {
        let (counter, system_ns) = self.pair;
        let age = stamped_ns.filter(|_| self.is_good).map(|stamped| system_ns.wrapping_sub(stamped));
        let mapped = age.filter(|age| *age >= 0).map(|age| {
            let ticks = age as f64 * self.ticks_per_ns * (1.0 - SLEW);
            counter + self.width - Ticks::from_raw(ticks as i64)
        });
        match mapped.filter(|mapped| mapped.is_after(self.floor)) {
            Some(counter) => ArrivedAt { counter, by_kernel: true },
            None => ArrivedAt { counter, by_kernel: false },
        }
    }
}

/// Whether packets may have been left in the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// There was room for more than came.
    None,
    /// The batch was full.
    Perhaps,
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_sys::system_utc_now;

    #[test]
    fn stamps_become_readings_and_impossible_ones_do_not() {
        let mut arrivals = Arrivals::new(CounterId::MonotonicRaw);
        let before = arrivals.now();
        let stamped = i64::try_from(system_utc_now().since_origin().as_nanos()).unwrap();
        let after = arrivals.now();
        arrivals.set_period(Period::from_seconds(1e-9));
        arrivals.take_batch(before, Left::None);
        let end = arrivals.now();
        if !arrivals.is_good {
            println!("SKIP: the kernel does not report steps of the system clock");
            return;
        }
        let at = arrivals.at(Some(stamped));
        assert!(at.by_kernel && at.counter.is_after(before) && !at.counter.is_after(end + arrivals.width), "{at:?}");
        assert!((at.counter - after).raw().abs() < 10_000_000, "{at:?} {after:?}");
        let second = 1_000_000_000;
        for impossible in [Some(stamped + second), Some(stamped - second), None] {
            assert!(!arrivals.at(impossible).by_kernel, "{impossible:?}");
        }
    }
}
