//! A robust regression over a history of samples, in the manner of chrony.
//!
//! Source: chrony's documentation (chrony.conf(5): `minsamples`, `maxsamples`, `maxdelaydevratio`, `maxclockerror`,
//! `maxupdateskew`, `corrtimeratio`, `maxslewrate`, with their defaults or those of Debian), the facts of its
//! sourcestats.c, regress.c and reference.c, and the description of its statistics in the FAQ: weighted least squares
//! over at most 64 samples, weights by the delay in excess of the smallest, the history cut at the front until the
//! residuals pass a runs test, the frequency moved towards the line's by how well each is known, and the phase slewed.
//! Samples are kept against the uncorrected counter, which spares the rewriting of the history after each correction.
//! Left out: the choice of a poll interval; sources are combined in `several/chrony.rs`.

use super::{OffsetSample, Servo, SystemClock};
use ffclock_units::Counter;
use std::collections::VecDeque;

const SAMPLES_MAX: usize = 64;
const SAMPLES_MIN: usize = 6;
/// The runs test covers this many times the samples of the line, where there are older ones: a line is kept only if it
/// fits the samples before it.
const RUNS_RATIO: usize = 2;
/// A line through fewer samples says nothing of its own error.
const LINE_MIN: usize = 3;
/// The median of excess delays over the deviation that it stands for.
const DEVIATION_TO_DISTANCE: f64 = 0.7;
/// `maxdelaydevratio` by default.
const DELAY_DEVIATION_RATIO: f64 = 10.0;
/// `maxclockerror` [s/s].
const CLOCK_ERROR_MAX: f64 = 1e-6;
/// `corrtimeratio` and `maxslewrate`.
const CORRECTION_TIME_RATIO: f64 = 3.0;
const SLEW_MAX: f64 = 83_333.333e-6;
const SLEW_S: [f64; 2] = [1.0, 1e4];
/// `maxupdateskew` as Debian sets it [s/s]: a frequency that is known less well is not taken.
const UPDATE_SKEW_MAX: f64 = 100e-6;
/// How much the variance of the clock's own frequency counts, of that of the line's.
const OWN_SKEW_WEIGHT: f64 = 3.0;
/// No frequency is known better [s/s].
const SKEW_MIN: f64 = 1e-12;
/// Of the clock's own frequency where nothing is known, and where an earlier run left it [s/s].
const UNKNOWN_SKEW: f64 = 1.0;
const LEFT_SKEW: f64 = 0.1e-6;
/// Student's t at 99.95 % for 1 to 5 degrees of freedom; above, within 2 %, the normal quantile with two constants.
const STUDENT: [f64; 5] = [636.6, 31.6, 12.92, 8.61, 6.87];
const NORMAL: f64 = 3.29;
/// The precision of a reading [s].
const DEVIATION_MIN: f64 = 1e-9;
/// Five per cent of random sign sequences have fewer runs: this many deviations below their mean.
const RUNS_QUANTILE: f64 = 1.645;
/// How much of a delay is in the offset where all jitter is of one way, from where on it seems so, and for how many
/// fits it must.
const ASYMMETRY_MAX: f64 = 0.5;
const ASYMMETRY_MIN: f64 = 0.45;
const ASYMMETRY_RUN_MIN: i32 = 10;
const ASYMMETRY_RUN_MAX: i32 = 1000;
/// Fewer points are not tested.
const RUNS_TESTED_MIN: usize = 8;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RegressionPoint {
    pub(crate) time: f64,
    pub(crate) offset: f64,
    pub(crate) delay: f64,
    /// The server's claim of its own largest error.
    pub(crate) claimed: f64,
}

/// A line fitted to the last samples, from the newest one on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FittedLine {
    pub(crate) time: f64,
    pub(crate) offset: f64,
    pub(crate) slope: f64,
    /// Of a sample about the line, of `offset`, and of `slope`.
    pub(crate) deviation: f64,
    pub(crate) offset_deviation: f64,
    pub(crate) slope_deviation: f64,
    /// The number of its samples.
    pub(crate) count: usize,
}

/// The samples of one server and the line through them.
#[derive(Clone, Debug)]
pub(crate) struct SampleHistory {
    /// `maxdelaydevratio`.
    delay_deviations: f64,
    points: VecDeque<RegressionPoint>,
    /// How many of the latest points the line may rest on; the others serve the runs test.
    in_use: usize,
    asymmetry: JitterAsymmetry,
    pub(crate) line: Option<FittedLine>,
}

/// Of the jitter of delays: which way it comes from, and for how many fits it did.
#[derive(Clone, Copy, Debug, Default)]
struct JitterAsymmetry {
    run: i32,
}

/// What a correction aims at, at the time of a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aim {
    pub(crate) time: f64,
    /// How far the server is ahead of the clock, and the deviation of that.
    pub(crate) offset: f64,
    pub(crate) offset_deviation: f64,
    /// Of the uncorrected counter, and the 99.95 % range of that.
    pub(crate) slope: f64,
    pub(crate) skew: f64,
}

/// Corrects a clock: moves the frequency and slews the phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Corrector {
    updated: Option<f64>,
    frequency: f64,
    skew: f64,
}

/// History, fit and correction.
#[derive(Clone, Debug)]
pub(crate) struct Regression {
    history: SampleHistory,
    corrector: Corrector,
}

impl Regression {
    /// With this `maxdelaydevratio`, and with the frequency that an earlier run left, where one did.
    pub(crate) fn new(delay_deviations: f64, frequency: Option<f64>) -> Self {
        let history = SampleHistory { delay_deviations, ..SampleHistory::default() };
        Regression { history, corrector: Corrector::started(frequency) }
    }
}

impl Default for SampleHistory {
    fn default() -> Self {
        SampleHistory {
            delay_deviations: DELAY_DEVIATION_RATIO,
            points: VecDeque::new(),
            in_use: 0,
            asymmetry: JitterAsymmetry::default(),
            line: None,
        }
    }
}

impl SampleHistory {
    /// Takes a sample; the line if it was accepted.
    pub(crate) fn take(&mut self, sample: &OffsetSample) -> Option<FittedLine> {
        if !self.is_acceptable(sample) {
            return None;
        }
        let (time, offset, delay) = (sample.raw_time, sample.raw_offset, sample.delay);
        self.keep(RegressionPoint { time, offset, delay, claimed: sample.claimed });
        let line = self.fit()?;
        self.line = Some(line);
        self.line
    }

    /// The points that the line may rest on.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = &RegressionPoint> {
        self.points.iter().skip(self.points.len() - self.in_use)
    }

    fn delay_min(&self) -> f64 {
        let unused = self.points.len() - self.in_use;
        self.points.iter().skip(unused).map(|point| point.delay).fold(f64::INFINITY, f64::min)
    }

    /// Of the distances that delays show: by the median of those that the line may rest on.
    fn delay_deviation(&self) -> f64 {
        let mut excess: Vec<f64> = self.in_use().map(|point| (point.delay - self.delay_min()) / 2.0).collect();
        excess.sort_by(f64::total_cmp);
        excess.get(excess.len() / 2).map_or(0.0, |median| median / DEVIATION_TO_DISTANCE)
    }

    /// A sample whose delay is out of all proportion is left out, unless its offset is, too. The longer ago the last
    /// one was, the more is allowed: a longer route is accepted in the end.
    fn is_acceptable(&self, sample: &OffsetSample) -> bool {
        let Some(line) = self.line.filter(|_| self.in_use >= SAMPLES_MIN) else { return true };
        let Some(last) = self.points.back() else { return true };
        let rate = CLOCK_ERROR_MAX + line.skew();
        let allowed = self.delay_deviations * line.deviation + rate * (sample.raw_time - last.time);
        let remembered = self.points.iter().rev().take(RUNS_RATIO * self.in_use);
        let least = remembered.map(|point| point.delay).fold(f64::INFINITY, f64::min);
        let excess = (sample.delay - least) / 2.0;
        let surprise = sample.raw_offset - line.offset - line.slope * (sample.raw_time - line.time);
        excess <= allowed || surprise.abs() - excess > allowed
    }

    fn keep(&mut self, point: RegressionPoint) {
        if self.points.len() == RUNS_RATIO * SAMPLES_MAX {
            self.points.pop_front();
        }
        self.points.push_back(point);
        self.in_use = (self.in_use + 1).min(SAMPLES_MAX);
    }

    /// The longest history whose residuals look random.
    fn fit(&mut self) -> Option<FittedLine> {
        let mut points: Vec<RegressionPoint> = self.points.iter().copied().collect();
        let recent = points.len().saturating_sub(RUNS_RATIO * self.in_use);
        self.asymmetry.correct(points.get_mut(recent..)?);
        let delay_min = self.delay_min();
        let scale = self.delay_deviation().clamp(DEVIATION_MIN, (delay_min / 2.0).max(DEVIATION_MIN));
        let weight = |point: &RegressionPoint| {
            let excess = 1.0 + (point.delay - delay_min).max(0.0) / 2.0 / scale;
            1.0 / (excess * excess)
        };
        let weights: Vec<f64> = points.iter().map(weight).collect();
        for length in (LINE_MIN..=self.in_use).rev() {
            let start = points.len().checked_sub(length)?;
            let tested = points.len().saturating_sub(RUNS_RATIO * length);
            let line = fit_line(points.get(start..)?, weights.get(start..)?)?;
            if length <= SAMPLES_MIN || line.is_random(points.get(tested..)?) {
                self.in_use = length;
                return Some(line);
            }
        }
        None
    }
}

impl Default for Corrector {
    fn default() -> Self {
        Corrector { updated: None, frequency: 0.0, skew: UNKNOWN_SKEW }
    }
}

impl JitterAsymmetry {
    /// Where all jitter has long come from one way, takes out of the offsets what the delays say.
    fn correct(&mut self, points: &mut [RegressionPoint]) {
        let asymmetry = offset_by_delay(points).filter(|asymmetry| asymmetry * f64::from(self.run) >= 0.0);
        let Some(asymmetry) = asymmetry else {
            self.run = 0;
            return;
        };
        if asymmetry.abs() >= ASYMMETRY_MIN && self.run.abs() < ASYMMETRY_RUN_MAX {
            self.run += if asymmetry > 0.0 { 1 } else { -1 };
        }
        if self.run.abs() >= ASYMMETRY_RUN_MIN {
            let least = points.iter().map(|point| point.delay).fold(f64::INFINITY, f64::min);
            let part = asymmetry.clamp(-ASYMMETRY_MAX, ASYMMETRY_MAX);
            points.iter_mut().for_each(|point| point.offset -= part * (point.delay - least));
        }
    }
}

/// How much of an offset goes with the delay, by least squares of both and the time.
fn offset_by_delay(points: &[RegressionPoint]) -> Option<f64> {
    let first = points.first().filter(|_| points.len() > LINE_MIN)?;
    let count = points.len() as f64;
    let of =
        |point: &RegressionPoint| [point.time - first.time, point.delay - first.delay, point.offset - first.offset];
    let sums = points.iter().map(of).fold([0.0; 3], |sums, one| core::array::from_fn(|k| sums[k] + one[k]));
    let products = |one: usize, other: usize| {
        let each =
            points.iter().map(of).map(|point| (point[one] - sums[one] / count) * (point[other] - sums[other] / count));
        each.sum::<f64>()
    };
    let [times, delays, both] = [products(0, 0), products(1, 1), products(0, 1)];
    let asymmetry = (times * products(1, 2) - both * products(0, 2)) / (times * delays - both * both);
    asymmetry.is_finite().then_some(asymmetry)
}

impl Corrector {
    /// With the frequency that an earlier run left, where one did.
    pub(crate) fn started(frequency: Option<f64>) -> Self {
        let nothing = Corrector::default();
        frequency.map_or(nothing, |frequency| Corrector { frequency, skew: LEFT_SKEW, ..nothing })
    }

    /// Whether nothing was corrected yet.
    pub(crate) fn is_first(&self) -> bool {
        self.updated.is_none()
    }

    pub(crate) fn correct(&mut self, goal: Aim, counter: Counter, clock: &mut SystemClock) {
        let Aim { time, offset, .. } = goal;
        let interval = self.updated.replace(time).map_or(1.0, |updated| time - updated);
        self.move_frequency(goal);
        clock.set_frequency(counter, self.frequency);
        let area = CORRECTION_TIME_RATIO * 0.5 * goal.offset_deviation * interval;
        let duration = (area / offset.abs().max(DEVIATION_MIN)).clamp(SLEW_S[0], SLEW_S[1]);
        let rate = (offset / duration).clamp(-SLEW_MAX, SLEW_MAX);
        if rate != 0.0 {
            clock.slew(counter, rate, offset / rate);
        }
    }

    /// Towards that of the line by how well each is known. What was taken and what was left then widen the own range.
    fn move_frequency(&mut self, goal: Aim) {
        let (own, line) = (OWN_SKEW_WEIGHT * self.skew * self.skew, goal.skew * goal.skew);
        let gain = if goal.skew > UPDATE_SKEW_MAX { 0.0 } else { own / (own + line) };
        let measured = goal.slope - self.frequency;
        self.frequency += gain * measured;
        self.skew += gain * (goal.skew - self.skew) + measured.abs() * libm::sqrt(gain * (1.0 - gain));
    }
}

impl FittedLine {
    /// The 99.95 % range of its slope.
    pub(crate) fn skew(&self) -> f64 {
        let freedom = self.count.saturating_sub(2).max(1);
        let student = STUDENT.get(freedom - 1).copied();
        let quantile = student.unwrap_or_else(|| NORMAL * (1.0 + 2.98 / (freedom as f64 - 2.44)));
        (quantile * self.slope_deviation).max(SKEW_MIN)
    }

    fn residual(&self, point: &RegressionPoint) -> f64 {
        point.offset - self.offset - self.slope * (point.time - self.time)
    }

    /// Whether the residuals have enough runs of equal sign; a few always have.
    fn is_random(&self, points: &[RegressionPoint]) -> bool {
        let count = points.len() as f64;
        let changes =
            points.windows(2).filter(|pair| pair.iter().map(|point| self.residual(point)).product::<f64>() < 0.0);
        let runs_min = (count + 1.0) / 2.0 - RUNS_QUANTILE * libm::sqrt((count - 1.0) / 4.0);
        points.len() < RUNS_TESTED_MIN || changes.count() as f64 + 1.0 > libm::round(runs_min)
    }
}

/// Weighted least squares.
fn fit_line(points: &[RegressionPoint], weights: &[f64]) -> Option<FittedLine> {
    let newest = points.last()?;
    let pairs = || points.iter().zip(weights);
    let sum = |of: &dyn Fn(&RegressionPoint) -> f64| pairs().map(|(point, weight)| weight * of(point)).sum::<f64>();
    let total: f64 = weights.iter().sum();
    let mean_time = sum(&|point| point.time - newest.time) / total;
    let mean_offset = sum(&|point| point.offset - newest.offset) / total;
    let centred = |point: &RegressionPoint| point.time - newest.time - mean_time;
    let spread = sum(&|point| centred(point) * centred(point));
    let slope = sum(&|point| centred(point) * (point.offset - newest.offset - mean_offset)) / spread;
    let offset = newest.offset + mean_offset - slope * mean_time;
    let residual = |point: &RegressionPoint| point.offset - offset - slope * (point.time - newest.time);
    let squares = sum(&|point| residual(point) * residual(point));
    let count = points.len() as f64;
    // Of a point of weight 1: weights say how much less the others are worth, not how many points there are.
    let variance = squares / (count - 2.0).max(1.0);
    let offset_variance = variance / total + mean_time * mean_time * variance / spread;
    let line = FittedLine {
        time: newest.time,
        offset,
        slope,
        deviation: libm::sqrt(variance * count / total).max(DEVIATION_MIN),
        offset_deviation: libm::sqrt(offset_variance).max(DEVIATION_MIN),
        slope_deviation: libm::sqrt(variance / spread),
        count: points.len(),
    };
    line.slope.is_finite().then_some(line)
}

impl Servo for Regression {
    fn sample(&mut self, sample: &OffsetSample, clock: &mut SystemClock) {
        let Some(line) = self.history.take(sample) else { return };
        // How far the server is ahead at the newest sample: as measured, with the line's offset in place of the
        // sample's own.
        let offset = sample.offset + line.offset - sample.raw_offset;
        let FittedLine { time, slope, offset_deviation, .. } = line;
        let aim = Aim { time, offset, offset_deviation, slope, skew: line.skew() };
        self.corrector.correct(aim, sample.counter, clock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(count: usize) -> FittedLine {
        let [offset, slope] = [0.0; 2];
        FittedLine { time: 0.0, offset, slope, deviation: 1e-6, offset_deviation: 1e-6, slope_deviation: 1e-9, count }
    }

    #[test]
    fn the_range_of_a_frequency_is_that_of_students_law() {
        // Quantiles at 99.95 % for 1, 10, 20 and 40 degrees of freedom.
        for (count, quantile) in [(3, 636.6), (12, 4.587), (22, 3.850), (42, 3.551)] {
            let seen = line(count).skew() / 1e-9;
            assert!((seen / quantile - 1.0).abs() < 0.02, "{count}: {seen}");
        }
    }

    #[test]
    fn jitter_of_one_way_is_taken_out_once_it_has_been_seen_ten_times() {
        // Every third packet is late on its way there, by more and more: half of that is in its offset.
        let late = |index: u32| if index.is_multiple_of(3) { 1e-5 * f64::from(index) } else { 0.0 };
        let point = |index: u32| {
            let (time, delay) = (f64::from(index), 1e-3 + late(index));
            RegressionPoint { time, offset: 1e-6 * time + late(index) / 2.0, delay, claimed: 0.0 }
        };
        let mut asymmetry = JitterAsymmetry::default();
        for fit in 1..=12 {
            let mut points: Vec<RegressionPoint> = (0..20).map(point).collect();
            assert!((offset_by_delay(&points).unwrap() - 0.5).abs() < 1e-9);
            asymmetry.correct(&mut points);
            let jitter = points.iter().map(|point| (point.offset - 1e-6 * point.time).abs()).fold(0.0, f64::max);
            assert_eq!(jitter < 1e-12, fit >= 10, "{fit}: {jitter}");
        }
        let mut other_way: Vec<RegressionPoint> =
            (0..20).map(|index| RegressionPoint { offset: -late(index) / 2.0, ..point(index) }).collect();
        asymmetry.correct(&mut other_way);
        assert_eq!(asymmetry.run, 0, "the other way ends it");
    }

    #[test]
    fn a_frequency_moves_by_how_well_both_are_known() {
        let aim = |slope, skew| Aim { time: 0.0, offset: 0.0, offset_deviation: 1e-6, slope, skew };
        let mut unknown = Corrector::started(None);
        unknown.move_frequency(aim(50e-6, 1e-6));
        assert!((unknown.frequency - 50e-6).abs() < 1e-15 && (unknown.skew - 1e-6).abs() < 1e-9, "{unknown:?}");
        unknown.move_frequency(aim(60e-6, 200e-6));
        assert!((unknown.frequency - 50e-6).abs() < 1e-15, "beyond maxupdateskew: {unknown:?}");
        // 3 of 4 parts of the way, where both are known equally well: 10e-6 * sqrt(3/4 * 1/4) wider.
        unknown.move_frequency(aim(60e-6, 1e-6));
        assert!((unknown.frequency - 57.5e-6).abs() < 1e-8 && (unknown.skew - 5.33e-6).abs() < 1e-8, "{unknown:?}");
        let exact = FittedLine { slope_deviation: 0.0, ..line(20) };
        let mut steady = Corrector::started(None);
        (0..2).for_each(|_| steady.move_frequency(aim(50e-6, exact.skew())));
        assert!(
            (steady.frequency - 50e-6).abs() < 1e-15 && steady.skew > 0.9 * SKEW_MIN,
            "points on one line: {steady:?}"
        );
        let left = Corrector::started(Some(-50e-6));
        assert_eq!((left.frequency, left.skew), (-50e-6, 0.1e-6));
    }
}
