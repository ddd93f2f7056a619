//! Feedback clocks to compare with: a system clock, and the algorithms that steer it.
//!
//! They are opponents, not straw men: each runs with the defaults that its source documents, and steps to the first
//! measurement as all of these daemons can be configured to. In a world with a `start` they begin as after an earlier
//! run instead, with a clock that runs and the rate that was left, and step by their own rules only.

mod linreg;
mod pi;
mod pll;
mod ptp4l;
mod ptpd;
mod regression;
mod start;
mod system_clock;

pub(crate) use linreg::Linreg;
pub(crate) use pi::Pi;
pub(crate) use pll::{ClockDiscipline, ClockFilter, FilterChoice, FilterStage, LOST_MAX, Pll, PollWatch, STAGES};
pub(crate) use ptp4l::{Ptp4l, StampProcessing};
pub(crate) use ptpd::Ptpd;
pub(crate) use regression::{Aim, Corrector, FittedLine, Regression, SampleHistory};
pub(crate) use start::ClockStart;
pub(crate) use system_clock::SystemClock;

use pi::{PTPD_INTEGRAL, PTPD_PROPORTIONAL, PTPD_STEP_S, PTPD_STIFFNESS};

use crate::clock::{Read, Timekeeper};
use ffclock_units::{Counter, Exchange, Moment, Period, Span, Tai};

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
    /// The server's claim of its own largest error: half its root delay, root dispersion and precision [s].
    pub(crate) claimed: f64,
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

/// When an offset was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SteeringTime {
    pub(crate) counter: Counter,
    /// Time of the uncorrected counter since the first measurement [s].
    pub(crate) raw_time: f64,
    /// How much the measurement is worth, at most 1; for servos that weight.
    pub(crate) weight: f64,
}

/// What an offset made of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Correction {
    /// Its frequency changed at most: earlier stamps go with later ones.
    Frequency,
    /// It was stepped: an earlier stamp is of another clock.
    Step,
}

/// Steers a system clock by offsets that were made elsewhere, as the servos of linuxptp do.
pub(crate) trait OffsetServo {
    /// Takes an offset, clock minus master [s].
    fn steer(&mut self, offset: f64, now: SteeringTime, clock: &mut SystemClock) -> Correction;

    /// The master's rate over the steered clock's, as far as the servo knows it.
    fn rate_ratio(&self) -> f64 {
        1.0
    }
}

/// A system clock from the first measurement on, which sets it.
#[derive(Clone, Debug)]
pub(crate) struct Steered {
    nominal: Period,
    running: Option<SteeredClock>,
}

#[derive(Clone, Debug)]
struct SteeredClock {
    clock: SystemClock,
    /// Where the uncorrected time begins.
    origin: (Counter, Moment<Tai>),
    next_second: Counter,
}

impl Steered {
    pub(crate) fn new(nominal: Period) -> Self {
        Steered { nominal, running: None }
    }

    /// As an earlier run left it, where one did.
    fn started(nominal: Period, start: &ClockStart) -> Self {
        let second = nominal.ticks_in(Span::from_secs(1));
        let running =
            start.clock().map(|(clock, origin)| SteeredClock { clock, origin, next_second: origin.0 + second });
        Steered { nominal, running }
    }

    /// Lives through the seconds up to `counter`.
    pub(crate) fn advance(&mut self, counter: Counter, mut second: impl FnMut(Counter, &mut SystemClock)) {
        let length = self.nominal.ticks_in(Span::from_secs(1));
        let Some(running) = &mut self.running else { return };
        while counter.is_after(running.next_second) {
            second(running.next_second, &mut running.clock);
            running.next_second = running.next_second + length;
        }
    }

    /// The first measurement sets the clock.
    pub(crate) fn begin(&mut self, exchange: &Exchange) {
        if self.running.is_some() {
            return;
        }
        let (counter, residence) = (exchange.received.counter, exchange.server_out - exchange.server_in);
        let round_trip = self.nominal * (counter - exchange.sent.counter) - residence;
        let time = exchange.server_out + round_trip.halved();
        let second = self.nominal.ticks_in(Span::from_secs(1));
        let clock = SystemClock::new(self.nominal, counter, time);
        self.running = Some(SteeredClock { clock, origin: (counter, time), next_second: counter + second });
    }

    /// Before any measurement.
    pub(crate) fn stop(&mut self) {
        self.running = None;
    }

    pub(crate) fn clock(&mut self) -> Option<&mut SystemClock> {
        self.running.as_mut().map(|running| &mut running.clock)
    }

    pub(crate) fn read(&self, counter: Counter) -> Option<Moment<Tai>> {
        self.running.as_ref().map(|running| running.clock.read(counter))
    }

    /// `sent` is when the latest request left by this clock; a request that left before it was set has no stamp of it.
    pub(crate) fn sample(&self, exchange: &Exchange, sent: Option<(Counter, Moment<Tai>)>) -> Option<OffsetSample> {
        let running = self.running.as_ref()?;
        let (origin, begin) = running.origin;
        let raw = |counter: Counter| begin + self.nominal * (counter - origin);
        let sent = sent.filter(|sent| sent.0 == exchange.sent.counter)?.1;
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
            claimed: exchange.server.root_distance.as_span().as_seconds(),
        })
    }
}

/// A system clock with the servo that steers it.
pub(crate) struct Disciplined<S> {
    servo: S,
    /// As it begins.
    fresh: S,
    steered: Steered,
    sent: Option<(Counter, Moment<Tai>)>,
}

impl<S: Servo + Clone> Disciplined<S> {
    pub(crate) fn new(nominal: Period, servo: S) -> Self {
        Disciplined { fresh: servo.clone(), servo, steered: Steered::new(nominal), sent: None }
    }

    /// The same with the system clock that an earlier run left, where one did.
    pub(crate) fn started(self, start: &ClockStart) -> Self {
        Disciplined { steered: Steered::started(self.steered.nominal, start), ..self }
    }

    fn advance(&mut self, counter: Counter) {
        let servo = &mut self.servo;
        self.steered.advance(counter, |counter, clock| servo.second(counter, clock));
    }
}

impl<S: Servo + Clone> Timekeeper for Disciplined<S> {
    fn sent(&mut self, counter: Counter) {
        self.advance(counter);
        self.sent = self.steered.read(counter).map(|time| (counter, time));
    }

    fn exchange(&mut self, exchange: &Exchange) {
        self.advance(exchange.received.counter);
        self.steered.begin(exchange);
        let sample = self.steered.sample(exchange, self.sent);
        if let (Some(sample), Some(clock)) = (sample, self.steered.clock()) {
            self.servo.sample(&sample, clock);
        }
    }

    /// The daemons step their clock after a suspend, by hand or by their own rules; here they start from nothing.
    fn broke(&mut self) {
        self.servo = self.fresh.clone();
        self.steered.stop();
        self.sent = None;
    }

    fn lost(&mut self, counter: Counter) {
        self.advance(counter);
        if let Some(clock) = self.steered.clock() {
            self.servo.lost(counter, clock);
        }
    }

    fn read(&mut self, counter: Counter) -> Option<Read> {
        self.advance(counter);
        Some(Read { time: self.steered.read(counter)?, claims: None })
    }
}

#[cfg(test)]
mod tests;
