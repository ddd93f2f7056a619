//! How long a tick lasts before anything was measured against a server.
//!
//! The figure should be the same after every boot, so that a rate remembered relative to it stays of use: what the CPU
//! or the hypervisor announces goes before what is measured against `CLOCK_MONOTONIC_RAW`, whose own rate differs from
//! boot to boot. But an announced figure can be plainly wrong (a guest may see its host's while the counter is scaled),
//! so a short measurement must confirm it.

use crate::clocks::RAW_IS_SLEWED;
use crate::ffcounter::{ModuleCounter, shared};
use crate::{Bracketed, CounterId, raw_clock, read_narrowest};
use core::fmt;
use core::time::Duration;
use ffclock_units::{Counter, Period, Rate, Ticks};

/// The nominal length of a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nominal {
    /// Seconds per tick.
    pub period: Period,
    /// How far the true length may lie from it, in either direction.
    pub error: Rate,
    /// Where the figure comes from.
    pub source: NominalSource,
}

/// Where a nominal period comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NominalSource {
    /// By definition: the kernel's raw clock counts nanoseconds.
    Definition,
    /// The kernel module `ffcounter` states it, as the hardware or the kernel says.
    Module,
    /// The CPU announces its crystal's frequency and the ratio to it (CPUID leaf 0x15).
    Crystal,
    /// The CPU announces its base frequency, rounded to 1 MHz (CPUID leaf 0x16).
    BaseFrequency,
    /// The hypervisor announces it (CPUID leaf 0x40000010).
    Hypervisor,
    /// The firmware announces it (`cntfrq_el0`).
    Firmware,
    /// Measured against `CLOCK_MONOTONIC_RAW`.
    Measured,
}

impl fmt::Display for NominalSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NominalSource::Definition => "by definition",
            NominalSource::Module => "stated by the kernel module",
            NominalSource::Crystal => "announced by the CPU (crystal and ratio)",
            NominalSource::BaseFrequency => "announced by the CPU (base frequency)",
            NominalSource::Hypervisor => "announced by the hypervisor",
            NominalSource::Firmware => "announced by the firmware",
            NominalSource::Measured => "measured against CLOCK_MONOTONIC_RAW",
        })
    }
}

/// No nominal period was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NominalError {
    /// The counter and `CLOCK_MONOTONIC_RAW` do not run at a steady ratio, or one of them stands still.
    #[error("the counter does not run steadily against CLOCK_MONOTONIC_RAW")]
    Unsteady,
    /// The kernel slews the only clock that could be asked for.
    #[error("this kernel has no clock that is never slewed: use tsc or module:active")]
    NoRawClock,
    /// The kernel module does not give it.
    #[error("{0}")]
    Module(String),
    /// The counter is that of another kind of machine.
    #[error("machines of this kind have no counter {0}")]
    Foreign(CounterId),
}

/// A crystal keeps its nominal frequency to this.
const CRYSTAL: Rate = Rate::from_ppm(100.0);
/// What the kernel measured at boot is off by tens of ppm, by more where it had to calibrate against a poor timer.
const CALIBRATED: Rate = Rate::from_ppm(200.0);
/// `CLOCK_MONOTONIC_RAW` runs by that; the one of FreeBSD is slewed besides, by up to 500 ppm (ntp_adjtime) and 5000
/// ppm (adjtime).
const RAW_CLOCK: Rate = Rate::from_ppm(if RAW_IS_SLEWED { 5700.0 } else { 200.0 });
/// Rounding to 1 MHz, and a bus clock that is not exactly its nominal figure.
#[cfg(target_arch = "x86_64")]
const ROUNDED: Rate = Rate::from_ppm(1000.0);
/// Readings of a confirming measurement, about 12 ms apart in all.
const CONFIRMING: Plan = Plan { rests: 2, rest: Duration::from_millis(6) };
/// Readings of a measurement that has no announced figure to confirm, about 80 ms.
const THOROUGH: Plan = Plan { rests: 4, rest: Duration::from_millis(20) };

/// The nominal period of a counter. Takes nothing for `monotonic-raw`, 12 ms where a figure is announced, 80 to 250 ms
/// where it must be measured.
///
/// # Errors
/// When the counter does not run steadily.
pub fn nominal(kind: CounterId) -> Result<Nominal, NominalError> {
    let announced = match kind {
        CounterId::MonotonicRaw if RAW_IS_SLEWED => return Err(NominalError::NoRawClock),
        CounterId::MonotonicRaw => return nanosecond(),
        CounterId::CPU => announced(),
        CounterId::Module(counter) => stated_by_module(counter)?,
        foreign => return Err(NominalError::Foreign(foreign)),
    };
    if let Some(announced) = announced {
        let measured = measure_with_retries(kind, CONFIRMING)?;
        let deviation = announced.period.relative_to(measured.period).abs();
        if deviation <= announced.error + measured.error {
            return Ok(announced);
        }
    }
    measure_with_retries(kind, THOROUGH)
}

/// The module has the TSC's frequency from the kernel, which measured it at boot to some ten ppm; other frequencies are
/// the hardware's.
fn stated_by_module(counter: ModuleCounter) -> Result<Option<Nominal>, NominalError> {
    let sample = shared::sample(counter).map_err(|error| NominalError::Module(error.to_string()))?;
    Ok(announce(sample.hertz(), CALIBRATED, NominalSource::Module))
}

/// 1 ns to the last bit of a period: 2^93 / 10^9 * 2^-93 s.
fn nanosecond() -> Result<Nominal, NominalError> {
    const MANTISSA: u64 = (((1_u128 << 93) + 500_000_000) / 1_000_000_000) as u64;
    let period = Period::from_parts(MANTISSA, 29).ok_or(NominalError::Unsteady)?;
    Ok(Nominal { period, error: CALIBRATED, source: NominalSource::Definition })
}

#[cfg(target_arch = "x86_64")]
fn announced() -> Option<Nominal> {
    use crate::cpu::cpuid;
    let of_cpu = cpuid(0, 0x15).and_then(|ratio| {
        let base = cpuid(0, 0x16).map_or(0, |leaf| leaf.eax & 0xffff);
        announced_by_cpu([ratio.eax, ratio.ebx, ratio.ecx], base)
    });
    of_cpu.or_else(|| {
        let kilohertz = cpuid(0x4000_0000, 0x4000_0010)?.eax;
        announce(kilohertz as f64 * 1e3, CRYSTAL, NominalSource::Hypervisor)
    })
}

#[cfg(target_arch = "aarch64")]
fn announced() -> Option<Nominal> {
    announce(crate::cpu::announced_hertz() as f64, CRYSTAL, NominalSource::Firmware)
}

/// CPUID 0x15 gives [denominator, numerator, crystal in Hz], any of them 0 when unknown, and 0x16 the base frequency in
/// MHz (Intel SDM volume 2, CPUID).
#[cfg(target_arch = "x86_64")]
fn announced_by_cpu([denominator, numerator, crystal]: [u32; 3], base_megahertz: u32) -> Option<Nominal> {
    if denominator == 0 || numerator == 0 {
        return None;
    }
    if crystal == 0 {
        return announce(base_megahertz as f64 * 1e6, ROUNDED, NominalSource::BaseFrequency);
    }
    announce(crystal as f64 * numerator as f64 / denominator as f64, CRYSTAL, NominalSource::Crystal)
}

fn announce(hertz: f64, error: Rate, source: NominalSource) -> Option<Nominal> {
    Some(Nominal { period: Period::from_hertz(hertz)?, error, source })
}

/// How long to measure.
#[derive(Clone, Copy)]
struct Plan {
    rests: usize,
    rest: Duration,
}

fn measure_with_retries(kind: CounterId, plan: Plan) -> Result<Nominal, NominalError> {
    let pair = || read_narrowest(kind, 20, raw_clock);
    let rest = || std::thread::sleep(plan.rest);
    (0..3).find_map(|_| measure(plan.rests, pair, rest).ok()).ok_or(NominalError::Unsteady)
}

/// Compares the ends of a run of pairs; the pairs between must lie on the line between the ends.
fn measure(
    rests: usize,
    mut pair: impl FnMut() -> Bracketed<Counter>,
    mut rest: impl FnMut(),
) -> Result<Nominal, NominalError> {
    let mut pairs = vec![pair()];
    for _ in 0..rests {
        rest();
        pairs.push(pair());
    }
    let (Some(first), Some(last)) = (pairs.first(), pairs.last()) else { return Err(NominalError::Unsteady) };
    let ticks = (last.middle() - first.middle()).as_f64();
    let period =
        Period::from_seconds((last.value - first.value).as_f64() * 1e-9 / ticks).ok_or(NominalError::Unsteady)?;
    if !pairs.iter().all(|pair| lies_on_line(pair, first, period)) {
        return Err(NominalError::Unsteady);
    }
    let reading = (first.width() + last.width()).as_f64() / 2.0 / ticks;
    Ok(Nominal { period, error: RAW_CLOCK + Rate::from_fraction(reading), source: NominalSource::Measured })
}

/// Within the widths, and a millionth of the way for two oscillators that wander.
fn lies_on_line(pair: &Bracketed<Counter>, first: &Bracketed<Counter>, period: Period) -> bool {
    let ticks = pair.middle() - first.middle();
    let expected = Ticks::from_raw(((pair.value - first.value).as_f64() * 1e-9 / period.as_seconds()) as i64);
    let allowed = (pair.width() + first.width()).as_f64() + ticks.as_f64().abs() * 1e-6;
    (ticks - expected).as_f64().abs() <= allowed
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use ffclock_units::Span;

    #[test]
    fn the_raw_clock_ticks_in_nanoseconds() {
        let nominal = nominal(CounterId::MonotonicRaw).unwrap();
        assert_eq!(nominal.source, NominalSource::Definition);
        let year = Ticks::from_raw(31_557_600_000_000_000);
        let off = nominal.period * year - Span::from_secs(31_557_600);
        assert!(off.abs() < Span::from_nanos(1), "{off}");
    }

    #[test]
    fn the_counter_of_this_host_has_a_plausible_period() {
        let nominal = nominal(CounterId::CPU).unwrap();
        let hertz = nominal.period.as_hertz();
        assert!((1e6..2e10).contains(&hertz), "{nominal:?}");
        assert!(nominal.error < Rate::from_ppm(2000.0) && nominal.error > Rate::ZERO, "{nominal:?}");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn figures_of_the_manual_are_read() {
        // Intel SDM: Skylake client, crystal 24 MHz, ratio 250/2, gives 3 GHz.
        let crystal = announced_by_cpu([2, 250, 24_000_000], 3000).unwrap();
        assert_eq!(crystal.source, NominalSource::Crystal);
        assert!((crystal.period.as_hertz() - 3e9).abs() < 1.0);
        let base = announced_by_cpu([2, 250, 0], 2100).unwrap();
        assert_eq!(base.source, NominalSource::BaseFrequency);
        assert!((base.period.as_hertz() - 2.1e9).abs() < 1.0);
        assert!(announced_by_cpu([0, 0, 0], 2100).is_none());
        assert!(announced_by_cpu([2, 250, 0], 0).is_none());
    }

    /// A counter of `hertz` beside a raw clock; `bump` is added to the counter from the third pair on.
    fn simulated(hertz: f64, bump: u64) -> Result<Nominal, NominalError> {
        let nanos = Cell::new(0_u64);
        let reads = Cell::new(0);
        let pair = || {
            reads.set(reads.get() + 1);
            let jump = if reads.get() >= 3 { bump } else { 0 };
            let ticks = (nanos.get() as f64 * hertz * 1e-9) as u64 + jump;
            let [before, after] = [ticks.wrapping_sub(50), ticks + 50].map(Counter::from_raw);
            Bracketed { before, value: Counter::from_raw(nanos.get()), after }
        };
        measure(4, pair, || nanos.set(nanos.get() + 20_000_000))
    }

    #[test]
    fn a_steady_counter_is_measured_within_its_error() {
        let found = simulated(2.7e9, 0).unwrap();
        let truth = Period::from_hertz(2.7e9).unwrap();
        assert!(found.period.relative_to(truth).abs() < Rate::from_ppb(10.0));
        assert!(found.error < Rate::from_ppm(201.0));
    }

    #[test]
    fn a_jump_or_a_standstill_is_no_measurement() {
        assert_eq!(simulated(2.7e9, 3_000), Err(NominalError::Unsteady));
        assert_eq!(simulated(0.0, 0), Err(NominalError::Unsteady));
    }
}
