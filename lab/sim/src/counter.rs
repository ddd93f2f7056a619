//! Counters: an oscillator, counted.
//!
//! Hardware counters differ in their rate and in how soon they begin again. The kernel adds up the differences of a
//! narrow counter, and has to look at it at least once per turn; here it looks twice per turn, as Linux does
//! (kernel/time/clocksource.c), and the sum never jumps. Sources: Intel, "IA-PC HPET specification" 1.0a; ACPI
//! specification 6.5, section 4.8.3.3.

use crate::oscillator::Oscillator;
use crate::scenario::Asleep;
use ffclock_units::{Counter, Period, Span};
use serde::{Deserialize, Serialize};

/// The kinds of counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CounterKind {
    /// The processor's own, 64 bits at 3 GHz.
    #[default]
    Tsc,
    /// The high precision event timer, 32 bits at 14.318180 MHz.
    Hpet,
    /// The ACPI power management timer, 24 bits at 3.579545 MHz.
    AcpiPm,
}

impl CounterKind {
    /// The name in traces and results.
    pub const fn name(self) -> &'static str {
        match self {
            CounterKind::Tsc => "tsc",
            CounterKind::Hpet => "hpet",
            CounterKind::AcpiPm => "acpi-pm",
        }
    }

    /// Ticks per second by the data sheet.
    pub(crate) const fn hertz(self) -> i128 {
        match self {
            CounterKind::Tsc => 3_000_000_000,
            CounterKind::Hpet => 14_318_180,
            CounterKind::AcpiPm => 3_579_545,
        }
    }

    const fn mask(self) -> u64 {
        match self {
            CounterKind::Tsc => u64::MAX,
            CounterKind::Hpet => u32::MAX as u64,
            CounterKind::AcpiPm => (1 << 24) - 1,
        }
    }

    /// Seconds per tick by the data sheet.
    pub const fn nominal(self) -> Period {
        match self {
            CounterKind::Tsc => const { period(0xb740_7f01_9e46_3000, 31) },
            CounterKind::Hpet => const { period(0x95fb_a626_3007_4800, 23) },
            CounterKind::AcpiPm => const { period(0x95fb_a626_3007_4800, 21) },
        }
    }

    /// How long a reading takes [s]; the reading is taken in the middle. Cycles measured on FreeBSD: Ridoux, Veitch,
    /// "The case for feed-forward clock synchronization", section III (420, 1935 and 10440 cycles, most of it the
    /// interface), at 3 GHz.
    pub const fn read_latency(self) -> f64 {
        match self {
            CounterKind::Tsc => 0.14e-6,
            CounterKind::Hpet => 0.645e-6,
            CounterKind::AcpiPm => 1.23e-6,
        }
    }

    /// How often the kernel looks: half a turn, at most.
    fn turn_half(self) -> Option<Span> {
        let ticks = (self.mask() != u64::MAX).then_some(self.mask() >> 1)?;
        Some(Span::from_seconds(ticks as f64 / self.hertz() as f64))
    }
}

/// A period that is known when the program is built.
const fn period(mantissa: u64, shift: u8) -> Period {
    match Period::from_parts(mantissa, shift) {
        Some(period) => period,
        None => panic!("no period has these parts"),
    }
}

/// A counter with its oscillator, as the kernel adds it up.
#[derive(Clone, Debug)]
pub struct SimulatedCounter {
    kind: CounterKind,
    oscillator: Oscillator,
    /// Where the hardware stood at the beginning.
    start: u64,
    seen_at: Span,
    seen: u64,
    sum: u64,
}

impl SimulatedCounter {
    /// What a counter shows at the beginning of its world: well above zero, as after a while of running.
    pub const BEGIN: Counter = Counter::from_raw(1 << 40);

    /// A counter at the beginning of its world.
    pub fn new(kind: CounterKind, oscillator: Oscillator) -> Self {
        let start = Self::BEGIN.raw();
        SimulatedCounter { kind, oscillator, start, seen_at: Span::ZERO, seen: start & kind.mask(), sum: start }
    }

    /// What the hardware shows at the true time `at`.
    fn hardware(&mut self, at: Span) -> u64 {
        let phase = self.oscillator.phase(at);
        let hertz = self.kind.hertz();
        // The true time exactly, the phase error as a float: at 3 GHz a float alone would lose ticks within a day.
        let exact = at.units() * hertz;
        let (whole, rest) = (exact >> 64, (exact as u64) as f64 / 18_446_744_073_709_551_616.0);
        // Beyond its largest value a counter continues at zero.
        let ticks = whole.wrapping_add(libm::floor(rest + phase * hertz as f64) as i128);
        (self.start as i128).wrapping_add(ticks) as u64 & self.kind.mask()
    }

    /// Takes a look and adds what has passed since the last one. Noise may take a reading a little back; the sum stands
    /// still then.
    fn look(&mut self, at: Span) {
        let shown = self.hardware(at);
        let mask = self.kind.mask();
        let passed = shown.wrapping_sub(self.seen) & mask;
        self.seen_at = at;
        if passed <= mask >> 1 {
            self.seen = shown;
            self.sum = self.sum.wrapping_add(passed);
        }
    }

    /// The sum at the true time `at`, which is not before the last reading.
    pub fn read(&mut self, at: Span) -> Counter {
        // A little under half a turn, so that a fast oscillator does not pass the half.
        if let Some(stride) = self.kind.turn_half().map(|half| half - Span::from_units(half.units() >> 4)) {
            while at - self.seen_at > stride {
                self.look(self.seen_at + stride);
            }
        }
        self.look(at);
        Counter::from_raw(self.sum)
    }

    /// The host wakes at the true time `at`, after a sleep without any reading.
    pub(crate) fn wake(&mut self, at: Span, asleep: Asleep) {
        match asleep {
            Asleep::Runs => {
                self.read(at);
            }
            Asleep::Stops => self.seen = self.hardware(at),
            Asleep::Resets => (self.seen, self.sum) = (self.hardware(at), 0),
        }
        self.seen_at = at;
    }

    /// Which it is.
    pub fn kind(&self) -> CounterKind {
        self.kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::OscillatorSpec;

    #[test]
    fn the_periods_are_those_of_the_data_sheets() {
        for kind in [CounterKind::Tsc, CounterKind::Hpet, CounterKind::AcpiPm] {
            assert_eq!(Some(kind.nominal()), Period::from_hertz(kind.hertz() as f64));
        }
    }

    #[test]
    fn narrow_counters_add_up_as_wide_ones() {
        for kind in [CounterKind::Tsc, CounterKind::Hpet, CounterKind::AcpiPm] {
            let mut counter = SimulatedCounter::new(kind, Oscillator::new(&OscillatorSpec::silent(), 1));
            let begin = counter.read(Span::ZERO);
            for second in [1, 2, 3, 1000, 100_000] {
                let ticks = counter.read(Span::from_secs(second)) - begin;
                assert_eq!(i128::from(ticks.raw()), i128::from(second) * kind.hertz(), "{kind:?}");
            }
        }
    }

    #[test]
    fn a_skewed_oscillator_shows_in_the_count() {
        let skew = crate::scenario::Fraction(ffclock_units::Rate::from_ppm(50.0));
        let spec = OscillatorSpec { skew, ..OscillatorSpec::silent() };
        let mut counter = SimulatedCounter::new(CounterKind::Tsc, Oscillator::new(&spec, 1));
        let begin = counter.read(Span::ZERO);
        let ticks = counter.read(Span::from_secs(1_000_000)) - begin;
        assert!((ticks.raw() - 3_000_150_000_000_000).abs() <= 1);
    }

    #[test]
    fn a_sleeping_counter_runs_stops_or_begins_anew() {
        let second = |asleep| {
            let mut counter = SimulatedCounter::new(CounterKind::Hpet, Oscillator::new(&OscillatorSpec::silent(), 1));
            counter.read(Span::from_secs(10));
            counter.wake(Span::from_secs(4010), asleep);
            counter.read(Span::from_secs(4011)).raw() / 14_318_180
        };
        let begun = SimulatedCounter::BEGIN.raw() / 14_318_180;
        assert_eq!([Asleep::Runs, Asleep::Stops, Asleep::Resets].map(second), [begun + 4011, begun + 11, 1]);
    }

    #[test]
    fn readings_never_go_back() {
        let spec = OscillatorSpec { white_phase_at_1_s: 1e-9, ..OscillatorSpec::silent() };
        let mut counter = SimulatedCounter::new(CounterKind::Tsc, Oscillator::new(&spec, 1));
        let mut last = counter.read(Span::ZERO);
        for nanos in 1..1000 {
            let next = counter.read(Span::from_nanos(nanos));
            assert!(!last.is_after(next));
            last = next;
        }
    }
}
