//! Two recordings of `ffclock-lab counters stability` of the same pulses, one by the raw counter and one by the system
//! clock, against each other and against the noise that the pulses have (tests/vm/testclocks).

use super::clock::text;
use super::{Found, Outcome, figure, median};
use std::collections::BTreeMap;
use std::fs;

/// Averaging times [s].
const TAUS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
/// Of the seconds that both lasted, those that both must have.
const LEAST: f64 = 0.98;
/// How long after the stamp of a driver the kernel's function may be entered in the emulator, ns.
const LATEST: f64 = 20_000.0;
/// The middle half of these times lies within this, ns.
const SCATTER: f64 = 1000.0;
/// The upper and lower ends of a 95 % interval in standard deviations of normal noise.
const ENDS: [f64; 2] = [1.959_964, -1.959_964];

/// The pulses change their phase by a whole number of ns from one to the next, from -`noise` to `noise` equally often.
/// Their Allan deviation by the raw counter must be that within its 95 % interval.
pub(crate) fn compare([raw, stamped]: [&str; 2], noise: f64) -> Outcome {
    let raw = PulseRecording::read(raw, "raw-counter")?;
    let stamped = PulseRecording::read(stamped, "system-clock")?;
    let pairs = raw.points.iter().filter_map(|(second, ticks)| Some(ticks - stamped.points.get(second)?));
    let mut later: Vec<f64> = pairs.map(|ticks| ticks / raw.hertz * 1e9).collect();
    later.sort_by(f64::total_cmp);
    let at = |share: f64| later.get((share * later.len() as f64) as usize).copied().unwrap_or(f64::NAN);
    let (iqr, count) = (at(0.75) - at(0.25), later.len());
    figure("pulses.common", count as f64);
    for (name, value) in [("min", at(0.0)), ("p25", at(0.25)), ("p75", at(0.75)), ("max", at(1.0 - 1e-9))] {
        figure(&format!("pulses.raw_after_stamped_{name}_ns"), value);
    }
    let middle = median(&mut later);
    figure("pulses.raw_after_stamped_median_ns", middle);
    let lengths = [&raw, &stamped].map(|recording| recording.seconds());
    let least = LEAST * lengths[0].min(lengths[1]);
    Found(count as f64 >= least).or_fail(|| format!("both have {count} pulses, and {least:.0} are wanted"))?;
    Found((0.0..LATEST).contains(&middle) && iqr < SCATTER)
        .or_fail(|| format!("the raw ones come {middle:.0} ns after the others, within {iqr:.0} ns"))?;
    let mut outside = Vec::new();
    for tau in TAUS {
        let known = (noise * (noise + 1.0) / (3.0 * tau)).sqrt() * 1e-9;
        let found = raw.deviation_at(tau)?;
        let [low, high] = interval(found, raw.points.len() as f64, tau);
        println!(
            "FIGURE pulses.adev_at_{tau}_s raw {found:.4e} ({low:.4e} to {high:.4e}), stamped {:.4e}, known {known:.4e}",
            stamped.deviation_at(tau)?
        );
        if !(low..=high).contains(&known) {
            outside.push(tau);
        }
    }
    Found(outside.is_empty()).or_fail(|| format!("the noise is not recovered at {outside:?} s"))
}

/// The 95 % interval of an Allan deviation of `count` times, one each second, with white frequency noise: NIST SP 1065,
/// table 5 (degrees of freedom) and equation 45, with the quantiles of Wilson and Hilferty.
fn interval(adev: f64, count: f64, tau: f64) -> [f64; 2] {
    let freedom =
        (3.0 * (count - 1.0) / (2.0 * tau) - 2.0 * (count - 2.0) / count) * 4.0 * tau * tau / (4.0 * tau * tau + 5.0);
    let spread = 2.0 / (9.0 * freedom);
    ENDS.map(|end| adev / (1.0 - spread + end * spread.sqrt()).powf(1.5))
}

struct PulseRecording {
    /// Of the counter, as the run took it to be.
    hertz: f64,
    /// The counter at each pulse, by the second of the pulse.
    points: BTreeMap<u64, f64>,
    /// Averaging times [s] and Allan deviations of the base against the pulses.
    deviations: Vec<(f64, f64)>,
}

impl PulseRecording {
    fn read(path: &str, stamped_by: &str) -> Result<Self, String> {
        let recording = fs::read_to_string(path).map_err(text)?;
        let head = recording.lines().next().unwrap_or_default();
        let wanted = format!("\"stamped_by\":\"{stamped_by}\"");
        Found(head.contains(&wanted)).or_fail(|| format!("{path} does not say {wanted}: {head}"))?;
        let hertz = number_after(head, "\"base_hertz\":").ok_or_else(|| format!("{path} has no rate"))?;
        let points = recording.lines().filter_map(|line| {
            let reference = line.split_once("\"reference\":{")?.1;
            let seconds = number_after(reference, "\"value\":")? / 1e9;
            Some((seconds.round() as u64, number_after(reference, "\"base\":")?))
        });
        let of_base = |line: &&str| line.contains("\"record\":\"steadiness\"") && line.contains("\"counter\":\"base\"");
        let steadiness = recording.lines().find(of_base).ok_or_else(|| format!("{path} has no figures of the base"))?;
        let deviations = steadiness
            .split('{')
            .filter_map(|part| Some((number_after(part, "\"tau_s\":")?, number_after(part, "\"adev\":")?)));
        Ok(PulseRecording { hertz, points: points.collect(), deviations: deviations.collect() })
    }

    fn seconds(&self) -> f64 {
        let ends = self.points.keys().next().zip(self.points.keys().next_back());
        ends.map_or(0.0, |(first, last)| (last - first) as f64 + 1.0)
    }

    fn deviation_at(&self, tau: f64) -> Result<f64, String> {
        let found = self.deviations.iter().find(|(of, _)| (of / tau - 1.0).abs() < 0.02);
        found.map(|(_, adev)| *adev).ok_or_else(|| format!("no Allan deviation at {tau} s: {:?}", self.deviations))
    }
}

fn number_after(text: &str, key: &str) -> Option<f64> {
    let rest = text.split_once(key)?.1;
    rest.split([',', '}', ']']).next()?.parse().ok()
}
