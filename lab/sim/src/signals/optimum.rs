//! The best that any clock could do in a world without queues: a Kalman filter that knows the laws of the oscillator,
//! the noise of the stamps and the delays of the path.
//!
//! Where all noise is normal its mean square error is the smallest there is. A stamp's step is counted as noise of the
//! same variance, a twelfth of its square.

use super::{Heard, Listener};
use crate::clock::Read;
use crate::counter::SimulatedCounter;
use crate::oracle::dynamics::{Dynamics, MICRO, Normal, dot};
use crate::scenario::Scenario;
use crate::world::begin;
use ffclock_units::{Counter, Direction, Moment, Period, Span, Tai};

/// The filter: its state is what the oscillator has shown minus the true time.
pub(super) struct Optimum {
    nominal: Period,
    dynamics: Dynamics,
    seen: Vec<f64>,
    state: Option<Normal>,
    /// From the host to the master, and back.
    delays: [Span; 2],
    /// Of an observation, the stamps of both ends together [us^2].
    variance: f64,
}

impl Optimum {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let of_master = scenario.ptp.map(|ptp| {
            let (noise, step) = (ptp.noise.seconds(), ptp.step.seconds());
            2.0 * (noise * noise + step * step / 12.0)
        });
        let of_pulses = scenario.pulses.map(|pulses| pulses.jitter.seconds() * pulses.jitter.seconds());
        let dynamics = Dynamics::of(&scenario.oscillator);
        Optimum {
            nominal: scenario.counter.nominal(),
            seen: dynamics.seen(),
            dynamics,
            state: None,
            delays: [scenario.path.forward.0, scenario.path.backward.0],
            variance: of_master.or(of_pulses).unwrap_or(0.0) * MICRO * MICRO,
        }
    }

    /// What the oscillator has shown since the world began.
    fn shown(&self, counter: Counter) -> Span {
        self.nominal * (counter - SimulatedCounter::BEGIN)
    }

    /// The true time was `time` where the counter stood at this.
    fn observe(&mut self, counter: Counter, time: Moment<Tai>) {
        let shown = self.shown(counter);
        let (at, phase) = (shown.as_seconds(), (shown - (time - begin())).as_seconds() * MICRO);
        let Some(state) = &mut self.state else {
            let mut first = self.dynamics.prior(at, phase);
            if let Some(variance) = first.covariance.cells.first_mut() {
                *variance = self.variance;
            }
            self.state = Some(first);
            return;
        };
        state.advance(&self.dynamics, at.max(state.at));
        let gains = state.covariance.times(&self.seen);
        let whole = dot(&gains, &self.seen) + self.variance;
        let missing = phase - dot(&state.mean, &self.seen);
        state.mean.iter_mut().zip(&gains).for_each(|(mean, gain)| *mean += gain / whole * missing);
        state.covariance.add_outer(&gains, -1.0 / whole);
    }
}

impl Listener for Optimum {
    fn hear(&mut self, heard: Heard<'_>) {
        match heard {
            Heard::Message(message) => {
                let [forward, backward] = self.delays;
                let time = match message.direction {
                    Direction::Outgoing => message.theirs - forward,
                    Direction::Incoming => message.theirs + backward,
                };
                self.observe(message.ours.counter, time);
            }
            Heard::Pulse(sample) => self.observe(sample.stamp.counter, sample.time),
            Heard::Exchange(_) => {}
        }
    }

    fn read(&mut self, counter: Counter) -> Option<Read> {
        let shown = self.shown(counter);
        let mut state = self.state.clone()?;
        state.advance(&self.dynamics, shown.as_seconds().max(state.at));
        let phase = dot(&state.mean, &self.seen) / MICRO;
        Some(Read { time: begin() + shown - Span::from_seconds(phase), claims: None })
    }
}
