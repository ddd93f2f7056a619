//! Proportional-integral servos on offsets.
//!
//! Sources: linuxptp, manual page ptp4l(8) (`pi_*` options with their defaults for software and for hardware stamping,
//! `delay_filter moving_median` of 10, `first_step_threshold` 20 us, no later step) and the discrete form documented
//! with its servo; ptpd 1: K. Correll, N. Barendt, M. Branicky, "Design considerations for software only
//! implementations of the IEEE 1588 precision time protocol", 2005 (offset / Ap + sum / Ai, Ap = 10, Ai = 1000, one-way
//! delay through a first-order filter, offset averaged over two; when the master is lost the accumulated drift is
//! cleared).

use super::{Correction, OffsetSample, OffsetServo, Servo, SteeringTime, SystemClock};
use ffclock_statistics::percentile;
use ffclock_units::Counter;
use std::collections::VecDeque;

/// How the gains depend on the time between measurements.
#[derive(Clone, Copy, Debug)]
enum Gains {
    /// scale * interval^exponent, and at most limit / interval.
    Linuxptp(Scales),
    /// The same at every interval.
    Ptpd,
}

/// The gains of linuxptp at an interval of 1 s [1/s, 1/s^2].
#[derive(Clone, Copy, Debug)]
struct Scales {
    proportional: f64,
    integral: f64,
}

const SOFTWARE_STAMPS: Scales = Scales { proportional: 0.1, integral: 0.001 };
const HARDWARE_STAMPS: Scales = Scales { proportional: 0.7, integral: 0.3 };
const PROPORTIONAL_EXPONENT: f64 = -0.3;
const PROPORTIONAL_LIMIT: f64 = 0.7;
const INTEGRAL_EXPONENT: f64 = 0.4;
const INTEGRAL_LIMIT: f64 = 0.3;
/// `first_step_threshold` of linuxptp, for all of its servos.
pub(super) const FIRST_STEP_S: f64 = 20e-6;
pub(super) const MEDIAN_LENGTH: usize = 10;
/// Ap and Ai of ptpd.
pub(super) const PTPD_PROPORTIONAL: f64 = 1.0 / 10.0;
pub(super) const PTPD_INTEGRAL: f64 = 1.0 / 1000.0;
/// ptpd's delay filter approaches 1 / 2^6 of the way (its stiffness).
pub(super) const PTPD_STIFFNESS: f64 = 64.0;
/// ptpd takes its master for lost after this many missing answers.
const PTPD_PATIENCE: u32 = 10;
/// Beyond this ptpd resets its clock.
pub(super) const PTPD_STEP_S: f64 = 1.0;

impl Gains {
    fn at(self, interval: f64) -> (f64, f64) {
        let scaled =
            |scale: f64, exponent: f64, limit: f64| (scale * libm::pow(interval, exponent)).min(limit / interval);
        match self {
            Gains::Linuxptp(scales) => (
                scaled(scales.proportional, PROPORTIONAL_EXPONENT, PROPORTIONAL_LIMIT),
                scaled(scales.integral, INTEGRAL_EXPONENT, INTEGRAL_LIMIT),
            ),
            Gains::Ptpd => (PTPD_PROPORTIONAL, PTPD_INTEGRAL),
        }
    }
}

/// What is known of the way back.
#[derive(Clone, Debug)]
pub(super) enum DelayFilter {
    Median(VecDeque<f64>),
    FirstOrder { delay: Option<f64>, updates: f64 },
}

impl DelayFilter {
    /// That of linuxptp, without any measurement yet.
    pub(super) fn median() -> Self {
        DelayFilter::Median(VecDeque::with_capacity(MEDIAN_LENGTH))
    }

    /// Takes a one-way delay and gives the filtered one [s].
    pub(super) fn update(&mut self, one_way: f64) -> f64 {
        match self {
            DelayFilter::Median(recent) => {
                if recent.len() == MEDIAN_LENGTH {
                    recent.pop_front();
                }
                recent.push_back(one_way);
                percentile(&recent.iter().copied().collect::<Vec<_>>(), 0.5).unwrap_or(one_way)
            }
            DelayFilter::FirstOrder { delay, updates } => {
                // The weight of the past grows from nothing to the stiffness.
                *updates = (*updates + 1.0).min(PTPD_STIFFNESS);
                let before = delay.unwrap_or(one_way);
                *delay.insert(before + (one_way - before) / *updates)
            }
        }
    }
}

/// A PI servo. Offsets inside are clock minus server, as in its sources.
#[derive(Clone, Debug)]
pub(crate) struct Pi {
    gains: Gains,
    delay: DelayFilter,
    drift: f64,
    first: Option<(f64, f64)>,
    last_time: Option<f64>,
    last_offset: Option<f64>,
    locked: bool,
    lost: u32,
}

impl Pi {
    pub(crate) fn linuxptp() -> Self {
        Self::with(Gains::Linuxptp(SOFTWARE_STAMPS), DelayFilter::median())
    }

    /// As ptp4l has it for a card that stamps.
    pub(crate) fn for_hardware_stamps() -> Self {
        Self::with(Gains::Linuxptp(HARDWARE_STAMPS), DelayFilter::median())
    }

    pub(crate) fn ptpd() -> Self {
        Pi { locked: true, ..Self::with(Gains::Ptpd, DelayFilter::FirstOrder { delay: None, updates: 0.0 }) }
    }

    fn with(gains: Gains, delay: DelayFilter) -> Self {
        Pi { gains, delay, drift: 0.0, first: None, last_time: None, last_offset: None, locked: false, lost: 0 }
    }

    /// The same with the frequency that an earlier run left in the kernel, where one did.
    pub(crate) fn started(self, frequency: Option<f64>) -> Self {
        Pi { drift: frequency.map_or(self.drift, |frequency| -frequency), ..self }
    }

    /// The first two measurements give the frequency and perhaps a step; `None` once there is nothing to do but to
    /// steer.
    fn lock(&mut self, offset: f64, now: SteeringTime, clock: &mut SystemClock) -> Option<Correction> {
        let Some((first_time, first_offset)) = self.first else {
            self.first = Some((now.raw_time, offset));
            return Some(Correction::Frequency);
        };
        let interval = now.raw_time - first_time;
        if self.locked || interval <= 0.0 {
            return (!self.locked).then_some(Correction::Frequency);
        }
        self.drift += (offset - first_offset) / interval;
        self.drift = -clock.set_frequency(now.counter, -self.drift);
        self.locked = true;
        if offset.abs() <= FIRST_STEP_S {
            return Some(Correction::Frequency);
        }
        clock.step(now.counter, -offset);
        Some(Correction::Step)
    }

    /// ptpd averages two offsets, and resets its clock when it is far off.
    fn prepare(&mut self, offset: f64, now: SteeringTime, clock: &mut SystemClock) -> Option<f64> {
        let Gains::Ptpd = self.gains else { return Some(offset) };
        if offset.abs() > PTPD_STEP_S {
            clock.step(now.counter, -offset);
            self.last_offset = None;
            return None;
        }
        let before = self.last_offset.replace(offset).unwrap_or(offset);
        Some((offset + before) / 2.0)
    }
}

impl Servo for Pi {
    fn sample(&mut self, sample: &OffsetSample, clock: &mut SystemClock) {
        self.lost = 0;
        let one_way = self.delay.update(sample.delay / 2.0);
        let offset = -sample.reply_offset - one_way;
        self.steer(offset, SteeringTime { counter: sample.counter, raw_time: sample.raw_time, weight: 1.0 }, clock);
    }

    fn lost(&mut self, counter: Counter, clock: &mut SystemClock) {
        self.lost += 1;
        if matches!(self.gains, Gains::Ptpd) && self.lost == PTPD_PATIENCE {
            self.drift = 0.0;
            self.last_offset = None;
            clock.set_frequency(counter, 0.0);
        }
    }
}

impl OffsetServo for Pi {
    fn steer(&mut self, offset: f64, now: SteeringTime, clock: &mut SystemClock) -> Correction {
        let interval = self.last_time.replace(now.raw_time).map_or(1.0, |last| now.raw_time - last).max(1e-3);
        let locking = matches!(self.gains, Gains::Linuxptp(_)).then(|| self.lock(offset, now, clock)).flatten();
        if let Some(correction) = locking {
            return correction;
        }
        let Some(offset) = self.prepare(offset, now, clock) else { return Correction::Step };
        let (proportional, integral) = self.gains.at(interval);
        let term = integral * offset;
        clock.set_frequency(now.counter, -(proportional * offset + self.drift + term));
        self.drift += term;
        Correction::Frequency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ptp4l(8): the constants are 0.7 and 0.3 times powers of the Sync interval, and the products of constant and
    /// interval at most 0.7 and 0.3.
    #[test]
    fn the_gains_for_hardware_stamps_are_those_of_the_manual_page() {
        let at = |interval| Gains::Linuxptp(HARDWARE_STAMPS).at(interval);
        assert_eq!(at(1.0), (0.7, 0.3));
        assert_eq!(at(2.0), (0.35, 0.15), "both limits hold");
        let (proportional, integral) = at(0.125);
        assert!((proportional - 0.7 * 0.125_f64.powf(-0.3)).abs() < 1e-12, "{proportional}");
        assert!((integral - 0.3 * 0.125_f64.powf(0.4)).abs() < 1e-12, "{integral}");
    }
}
