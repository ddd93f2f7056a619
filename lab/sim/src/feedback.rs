//! Feedback clocks to compare with: a system clock, and the algorithms that steer it.
//!
//! They are opponents, not straw men: each runs with the defaults that its source documents, and steps to the first
//! measurement as all of these daemons can be configured to.

mod pi;
mod pll;
mod regression;
mod system_clock;

pub(crate) use pi::Pi;
pub(crate) use pll::Pll;
pub(crate) use regression::Regression;

use crate::clock::{Read, Timekeeper};
use ffclock_units::{Counter, Exchange, Moment, Period, Span, Tai};
use system_clock::SystemClock;

/// One measurement, by the stamps of the clock that is to be steered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OffsetSample {
    /// Where the reply was received.
    pub(crate) counter: Counter,
    /// How far the server is ahead of the clock [s]: what would have to be added.
    pub(crate) offset: f64,
    /// The same by the reply alone, without its delay: Te - Tf [s].
    pub(crate) reply_offset: f64,
    /// The round trip net of the server's part [s].
    pub(crate) delay: f64,
    /// Time of the uncorrected counter since the first measurement [s], at the middle of the exchange.
    pub(crate) raw_time: f64,
    /// How far the server is ahead of that uncorrected time [s], but for a constant.
    pub(crate) raw_offset: f64,
}

/// Steers a system clock.
pub(crate) trait Servo {
    /// Takes a measurement.
    fn sample(&mut self, sample: &OffsetSample, clock: &mut SystemClock);

    /// No answer came.
    fn lost(&mut self, _counter: Counter, _clock: &mut SystemClock) {}

    /// A second has passed.
    fn second(&mut self, _counter: Counter, _clock: &mut SystemClock) {}
}

/// A system clock with the servo that steers it.
pub(crate) struct Disciplined<S> {
    servo: S,
    /// As it begins.
    fresh: S,
    nominal: Period,
    running: Option<SteeredClock>,
    sent: Option<(Counter, Moment<Tai>)>,
}

/// From the first measurement on.
struct SteeredClock {
    clock: SystemClock,
    /// Where the uncorrected time begins.
    origin: (Counter, Moment<Tai>),
    next_second: Counter,
}

impl<S: Servo + Clone> Disciplined<S> {
    pub(crate) fn new(nominal: Period, servo: S) -> Self {
        Disciplined { fresh: servo.clone(), servo, nominal, running: None, sent: None }
    }

    /// Lives through the seconds up to `counter`.
    fn advance(&mut self, counter: Counter) {
        let second = self.nominal.ticks_in(Span::from_secs(1));
        let Some(running) = &mut self.running else { return };
        while counter.is_after(running.next_second) {
            self.servo.second(running.next_second, &mut running.clock);
            running.next_second = running.next_second + second;
        }
    }

    /// The first measurement sets the clock.
    fn begin(&mut self, exchange: &Exchange) {
        let (counter, residence) = (exchange.received.counter, exchange.server_out - exchange.server_in);
        let round_trip = self.nominal * (counter - exchange.sent.counter) - residence;
        let time = exchange.server_out + round_trip.halved();
        let second = self.nominal.ticks_in(Span::from_secs(1));
        let clock = SystemClock::new(self.nominal, counter, time);
        self.running = Some(SteeredClock { clock, origin: (counter, time), next_second: counter + second });
    }

    fn sample(&self, exchange: &Exchange) -> Option<OffsetSample> {
        let running = self.running.as_ref()?;
        let (origin, begin) = running.origin;
        let raw = |counter: Counter| begin + self.nominal * (counter - origin);
        // A request that left before the clock was set has no stamp of it.
        let sent = self.sent.filter(|sent| sent.0 == exchange.sent.counter)?.1;
        let received = running.clock.read(exchange.received.counter);
        let there = exchange.server_in - sent;
        let back = exchange.server_out - received;
        let raw_sent = raw(exchange.sent.counter);
        let raw_received = raw(exchange.received.counter);
        let raw_both = (exchange.server_in - raw_sent) + (exchange.server_out - raw_received);
        Some(OffsetSample {
            counter: exchange.received.counter,
            offset: (there + back).as_seconds() / 2.0,
            reply_offset: back.as_seconds(),
            delay: (there - back).as_seconds(),
            raw_time: (raw_sent.midpoint(raw_received) - begin).as_seconds(),
            raw_offset: raw_both.as_seconds() / 2.0,
        })
    }
}

impl<S: Servo + Clone> Timekeeper for Disciplined<S> {
    fn sent(&mut self, counter: Counter) {
        self.advance(counter);
        self.sent = self.running.as_ref().map(|running| (counter, running.clock.read(counter)));
    }

    fn exchange(&mut self, exchange: &Exchange) {
        self.advance(exchange.received.counter);
        if self.running.is_none() {
            self.begin(exchange);
        }
        let sample = self.sample(exchange);
        if let (Some(sample), Some(running)) = (sample, &mut self.running) {
            self.servo.sample(&sample, &mut running.clock);
        }
    }

    /// The daemons step their clock after a suspend, by hand or by their own rules; here they start from nothing.
    fn broke(&mut self) {
        self.servo = self.fresh.clone();
        (self.running, self.sent) = (None, None);
    }

    fn lost(&mut self, counter: Counter) {
        self.advance(counter);
        if let Some(running) = &mut self.running {
            self.servo.lost(counter, &mut running.clock);
        }
    }

    fn read(&mut self, counter: Counter) -> Option<Read> {
        self.advance(counter);
        let running = self.running.as_ref()?;
        Some(Read { time: running.clock.read(counter), claims: None })
    }
}

#[cfg(test)]
mod tests;
