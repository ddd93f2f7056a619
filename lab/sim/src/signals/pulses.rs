//! Pulses of a reference at this host, which become exchanges as in ffclockd.

use super::{Completed, Happening};
use crate::agenda::Agenda;
use crate::random::Random;
use crate::scenario::{PulsesSpec, Scenario};
use crate::world::begin;
use ffclock_reference::{Pulse, PulseTrain, Sample, SamplePairing, number};
use ffclock_trace::Truth;
use ffclock_units::{Bound, Counter, Leap, Span, Stamp, StampLocation, Ticks};

/// The clock that numbers the pulses is off by this and claims that bound, as one that follows a server far away.
const NUMBERING_ERROR: Span = Span::from_millis(3);
const NUMBERING_BOUND: Bound = Bound::of(Span::from_millis(20));
const SECOND: Span = Span::from_secs(1);

/// The receiver, and what judges its pulses.
pub(super) struct PulseReceiver {
    spec: PulsesSpec,
    random: Random,
    /// Of a stamp: a reading of the counter takes so long.
    width: Ticks,
    train: PulseTrain,
    pairing: SamplePairing,
    /// The second of the pulse before.
    before: Option<Span>,
    pub(super) pulses: u64,
}

impl PulseReceiver {
    pub(super) fn new(scenario: &Scenario, seed: u64) -> Option<Self> {
        let nominal = scenario.counter.nominal();
        let width = nominal.ticks_in(Span::from_seconds(scenario.counter.read_latency())) + Ticks::from_raw(2);
        Some(PulseReceiver {
            spec: scenario.pulses?,
            random: Random::named(seed, "pulses"),
            width,
            train: PulseTrain::new(nominal),
            pairing: SamplePairing::new(nominal, *b"PPS\0"),
            before: None,
            pulses: 0,
        })
    }

    pub(super) fn begin(&mut self, agenda: &mut Agenda<Happening>) {
        self.plan_after(Span::ZERO, agenda);
    }

    pub(super) fn plan_after(&mut self, second: Span, agenda: &mut Agenda<Happening>) {
        let second = second + SECOND;
        let jitter = Span::from_seconds(self.spec.jitter.seconds() * self.random.normal());
        agenda.enter(second + jitter, Happening::Pulse(second));
    }

    /// Takes a pulse that is stamped at `now` where the counter stands at `counter`; gives it with its number.
    pub(super) fn take(&mut self, now: Span, counter: Counter) -> Option<Sample> {
        self.pulses += 1;
        let stamp = Stamp { counter, width: self.width, location: StampLocation::Kernel };
        let judged = self.train.take(Pulse { sequence: self.pulses as u32, stamp })?;
        if !judged.is_in_time {
            return None;
        }
        let claim = Bound::of(self.spec.error.0);
        let time = number(begin() + now + NUMBERING_ERROR, NUMBERING_BOUND, claim).ok()?;
        Some(Sample { stamp, time, claim, leap: Leap::None })
    }

    /// The exchange that the pulse of a second completes.
    pub(super) fn pair(&mut self, sample: Sample, second: Span) -> Option<Completed> {
        let before = self.before.replace(second);
        let exchange = self.pairing.observe(sample)?;
        let sent = before.map(|second| begin() + second);
        Some(Completed { exchange, truth: Truth { sent, received: begin() + second } })
    }
}
