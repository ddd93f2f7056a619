//! From samples to figures: time errors, rates, deviations.

use super::allan::{Deviation, deviations};
use super::{CountersSample, StabilityAbout};
use crate::beside::BracketedReading;
use crate::campaign::CampaignPhase;
use ffclock_statistics::Spread;
use serde::{Deserialize, Serialize};

/// How one counter ran against another or against the reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steadiness {
    /// The counter.
    pub counter: String,
    /// What it is compared with.
    pub against: String,
    /// How much too fast it ran by its nominal frequency, ppm, from the first to the last sample; `None` of fewer than
    /// two.
    pub rate_ppm: Option<f64>,
    /// How exactly a sample is known, ns: the median width of its range; `None` without any.
    pub width_ns: Option<f64>,
    /// How the rate from sample to sample strayed from the mean of the quiet phases, ppm: by phase.
    pub rates_ppm: Vec<Option<Spread>>,
    /// Allan and modified Allan deviation.
    pub deviations: Vec<Deviation>,
}

/// The time error of a counter over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The counter.
    pub counter: String,
    /// What it is compared with.
    pub against: String,
    /// The time of each sample by the base, s after the first.
    pub t: Vec<f64>,
    /// How far the counter is ahead, s.
    pub x: Vec<f64>,
    /// The phase of each sample.
    pub phase: Vec<usize>,
    /// The width of the range of each, s.
    pub width: Vec<f64>,
}

impl Curve {
    fn rates(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        (1..self.t.len()).filter_map(|i| {
            let passed = self.t[i] - self.t[i - 1];
            (passed > 0.0).then(|| (self.phase[i], (self.x[i] - self.x[i - 1]) / passed))
        })
    }

    /// The mean over the quiet phases; over everything where there is none.
    fn reference_rate(&self, phases: &[CampaignPhase]) -> f64 {
        let is_quiet = |phase: usize| phases.get(phase).is_none_or(|phase| phase.load.is_none());
        let quiet: Vec<f64> = self.rates().filter(|(phase, _)| is_quiet(*phase)).map(|(_, rate)| rate).collect();
        let rates = if quiet.is_empty() { self.rates().map(|(_, rate)| rate).collect() } else { quiet };
        rates.iter().sum::<f64>() / (rates.len() as f64).max(1.0)
    }

    /// The figures of the curve.
    pub fn steadiness(&self, phases: &[CampaignPhase]) -> Steadiness {
        let ends = |values: &[f64]| Some(values.last()? - values.first()?);
        let (Some(length), Some(ahead)) = (ends(&self.t), ends(&self.x)) else { return self.nothing() };
        let mean = self.reference_rate(phases);
        let rates_ppm = (0..phases.len())
            .map(|number| {
                let rates = self.rates().filter(|(phase, _)| *phase == number);
                Spread::of(&rates.map(|(_, rate)| (rate - mean) * 1e6).collect::<Vec<f64>>())
            })
            .collect();
        let spacing = length / (self.t.len().saturating_sub(1).max(1)) as f64;
        Steadiness {
            rate_ppm: (length > 0.0).then(|| ahead / length * 1e6),
            width_ns: Spread::of(&self.width).map(|widths| widths.median * 1e9),
            rates_ppm,
            deviations: if spacing > 0.0 { deviations(&self.x, spacing) } else { Vec::new() },
            ..self.nothing()
        }
    }

    fn nothing(&self) -> Steadiness {
        let (counter, against) = (self.counter.clone(), self.against.clone());
        Steadiness { counter, against, rate_ppm: None, width_ns: None, rates_ppm: Vec::new(), deviations: Vec::new() }
    }
}

/// The name of the base in figures.
const BASE: &str = "base";

/// Every comparison of a run: each counter with the base, and, where there is a reference, the base and each counter
/// with it.
pub fn analyse(about: &StabilityAbout, samples: &[CountersSample]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = (0..about.counters.len()).map(|number| against_base(about, samples, number)).collect();
    if about.reference.is_some() {
        let base = base_against_reference(about, samples);
        let through = curves.iter().map(|curve| through_base(curve, &base)).collect::<Vec<Curve>>();
        curves.push(base);
        curves.extend(through);
    }
    curves
}

/// Samples that hold the points of a file as those of a reference; the phase is that of the nearest sample before.
pub fn with_reference(
    about: &StabilityAbout,
    samples: &[CountersSample],
    points: &[BracketedReading],
) -> Vec<CountersSample> {
    let origin = CurveOrigin::of(about, samples);
    let phase_at = |t: f64| {
        let after = samples.partition_point(|sample| sample.t <= t);
        samples[..after].last().map_or(0, |sample| sample.phase)
    };
    let of_reference = points.iter().map(|point| {
        let t = origin.seconds(point);
        CountersSample { t, phase: phase_at(t), points: Vec::new(), reference: Some(*point) }
    });
    samples.iter().cloned().chain(of_reference).collect()
}

/// Where the time of the curves begins: the same for all, so that they can be added.
#[derive(Clone, Copy)]
struct CurveOrigin {
    base: u64,
    hertz: f64,
}

impl CurveOrigin {
    fn of(about: &StabilityAbout, samples: &[CountersSample]) -> Self {
        let first = samples.iter().find_map(|sample| sample.points.first().or(sample.reference.as_ref()));
        CurveOrigin { base: first.map_or(0, |point| point.base), hertz: about.base_hertz }
    }

    /// Seconds of base from the beginning to a point, negative before it.
    fn seconds(&self, point: &BracketedReading) -> f64 {
        point.base.wrapping_sub(self.base).cast_signed() as f64 / self.hertz
    }
}

/// The points of one counter or of the reference, each with its phase.
type Points = Vec<(usize, BracketedReading)>;

fn against_base(about: &StabilityAbout, samples: &[CountersSample], number: usize) -> Curve {
    let counter = &about.counters[number];
    let points = samples.iter().filter_map(|sample| Some((sample.phase, *sample.points.get(number)?))).collect();
    let names = [counter.name.as_str(), BASE];
    curve(CurveOrigin::of(about, samples), names, points, |shown, base_s| shown as f64 / counter.hertz - base_s)
}

fn base_against_reference(about: &StabilityAbout, samples: &[CountersSample]) -> Curve {
    let points = samples.iter().filter_map(|sample| Some((sample.phase, sample.reference?))).collect();
    let names = [BASE, about.reference.as_deref().unwrap_or_default()];
    curve(CurveOrigin::of(about, samples), names, points, |shown, base_s| base_s - shown as f64 * 1e-9)
}

/// `ahead` gets what was counted, and the seconds of base that passed, since the first point.
fn curve(origin: CurveOrigin, names: [&str; 2], points: Points, ahead: impl Fn(i128, f64) -> f64) -> Curve {
    let t: Vec<f64> = points.iter().map(|(_, point)| origin.seconds(point)).collect();
    let begin = points.first().map_or((0, 0.0), |(_, point)| (point.value, t[0]));
    let x = points.iter().zip(&t).map(|((_, point), t)| ahead(point.value - begin.0, t - begin.1)).collect();
    Curve {
        counter: names[0].to_owned(),
        against: names[1].to_owned(),
        x,
        phase: points.iter().map(|(phase, _)| *phase).collect(),
        width: points.iter().map(|(_, point)| point.width as f64 / origin.hertz).collect(),
        t,
    }
}

/// A counter against the reference: what it is ahead of the base, and the base of the reference at that time, by the
/// line between the two reference points around it. Samples outside them are left out.
fn through_base(curve: &Curve, base: &Curve) -> Curve {
    let both: Vec<(usize, f64)> =
        curve.t.iter().enumerate().filter_map(|(number, t)| Some((number, interpolated(base, *t)?))).collect();
    let of = |values: &[f64]| both.iter().map(|(number, _)| values[*number]).collect::<Vec<f64>>();
    Curve {
        counter: curve.counter.clone(),
        against: base.against.clone(),
        t: of(&curve.t),
        x: both.iter().map(|(number, ahead)| curve.x[*number] + ahead).collect(),
        phase: both.iter().map(|(number, _)| curve.phase[*number]).collect(),
        width: of(&curve.width),
    }
}

fn interpolated(curve: &Curve, t: f64) -> Option<f64> {
    let after = curve.t.partition_point(|time| *time < t);
    if curve.t.get(after) == Some(&t) {
        return curve.x.get(after).copied();
    }
    let before = after.checked_sub(1)?;
    let (t0, t1) = (curve.t[before], *curve.t.get(after)?);
    let share = (t - t0) / (t1 - t0);
    Some(curve.x[before] + (curve.x[after] - curve.x[before]) * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::{Load, schedule};
    use crate::stability::CounterAbout;
    use ffclock_units::Span;

    fn about(reference: Option<&str>) -> StabilityAbout {
        let counters = vec![CounterAbout { name: "slow".into(), hertz: 1e6 }];
        StabilityAbout {
            base_hertz: 1e9,
            counters,
            reference: reference.map(str::to_owned),
            pulses: None,
            every_s: 1.0,
        }
    }

    /// A base of 1 GHz that turns over after 5 s; a counter of 1 MHz that is 50 ppm fast, and 80 ppm in phase 1; a
    /// reference against which the base is 10 ppm fast, read a quarter of a second before the counter.
    fn samples() -> Vec<CountersSample> {
        let mut slow = 0;
        let sample = |second: u64| {
            let phase = (second / 10) as usize;
            slow += if phase == 1 { 1_000_080 } else { 1_000_050 };
            let base = (u64::MAX - 5_000_000_000).wrapping_add(second * 1_000_000_000);
            let point = |base, value| BracketedReading { base, width: 40, value };
            let truth = (second as f64 - 0.25) * 1e9 / 1.00001;
            let reference = Some(point(base.wrapping_sub(250_000_000), truth as i128));
            CountersSample { t: second as f64, phase, points: vec![point(base, slow)], reference }
        };
        (0..30).map(sample).collect()
    }

    #[test]
    fn rates_are_told_by_phase_against_the_quiet_ones() {
        let phases = schedule(&[Load::Cpu], Span::from_secs(10));
        let curves = analyse(&about(None), &samples());
        assert_eq!(curves.len(), 1);
        let found = curves[0].steadiness(&phases);
        assert!((found.rate_ppm.unwrap() - 60.3).abs() < 0.5, "{found:?}");
        let median = |phase: usize| found.rates_ppm[phase].unwrap().median;
        assert!(median(0).abs() < 1.5 && (median(1) - 30.0).abs() < 1.5 && median(2).abs() < 1.5, "{found:?}");
        assert!((found.width_ns.unwrap() - 40.0).abs() < 1e-6 && found.deviations.len() > 3);
    }

    #[test]
    fn counters_meet_the_reference_through_the_base() {
        let phases = schedule(&[], Span::from_secs(30));
        let curves = analyse(&about(Some("truth")), &samples());
        let names: Vec<(&str, &str)> = curves.iter().map(|c| (c.counter.as_str(), c.against.as_str())).collect();
        assert_eq!(names, [("slow", "base"), ("base", "truth"), ("slow", "truth")]);
        let rate = |number: usize| curves[number].steadiness(&phases).rate_ppm.unwrap();
        // The last sample lies after the last reference, so the two means are not over quite the same seconds.
        assert!((rate(1) - 10.0).abs() < 0.1 && (rate(2) - rate(0) - rate(1)).abs() < 0.5);
    }

    #[test]
    fn points_of_a_file_take_the_place_of_a_reference() {
        let about = about(Some("file"));
        let points: Vec<BracketedReading> = samples().iter().filter_map(|sample| sample.reference).collect();
        let bare: Vec<CountersSample> =
            samples().into_iter().map(|sample| CountersSample { reference: None, ..sample }).collect();
        let both = with_reference(&about, &bare, &points);
        let of = |samples: &[CountersSample]| {
            analyse(&about, samples).iter().map(|curve| curve.x.clone()).collect::<Vec<_>>()
        };
        assert_eq!(of(&both), of(&samples()));
        assert_eq!(both[bare.len() + 15].phase, 1);
    }

    #[test]
    fn nothing_measured_is_no_figure_and_no_panic() {
        let phases = schedule(&[], Span::from_secs(1));
        for few in [0, 1, 2] {
            let curves = analyse(&about(Some("truth")), &samples()[..few]);
            let found: Vec<Steadiness> = curves.iter().map(|curve| curve.steadiness(&phases)).collect();
            assert!(found[..2].iter().all(|one| one.rate_ppm.is_some() == (few == 2)), "{few}: {found:?}");
            assert_eq!(found[2].rate_ppm, None, "one sample lies between the references: {found:?}");
        }
        let silent: Vec<CountersSample> =
            samples().into_iter().map(|sample| CountersSample { reference: None, ..sample }).collect();
        let found = analyse(&about(Some("pps0")), &silent)[1].steadiness(&phases);
        assert_eq!((found.rate_ppm, found.width_ns), (None, None), "no pulse came");
    }

    #[test]
    fn a_file_of_a_day_is_joined_at_once() {
        let one = samples().remove(0);
        let samples: Vec<CountersSample> =
            (0..86_400).map(|t| CountersSample { t: f64::from(t), ..one.clone() }).collect();
        let at =
            |t: u64| BracketedReading { base: one.points[0].base.wrapping_add(t * 1_000_000_000), ..one.points[0] };
        let points: Vec<BracketedReading> = (0..86_400).map(at).collect();
        let begin = std::time::Instant::now();
        assert_eq!(with_reference(&about(Some("file")), &samples, &points).len(), 2 * 86_400);
        assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
    }
}
