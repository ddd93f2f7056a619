//! A robust regression over a history of samples, in the manner of chrony.
//!
//! Source: chrony's documentation (chrony.conf(5): `minsamples`, `maxsamples`, `maxdelaydevratio`, `maxclockerror`,
//! `corrtimeratio`, `maxslewrate`, with their defaults) and the description of its statistics in the FAQ and the
//! comments of its source statistics: weighted least squares over at most 64 samples, weights by the delay in excess of
//! the smallest, the history cut at the front until the residuals pass a runs test, the frequency set and the phase
//! slewed. Samples are kept against the uncorrected counter, which spares the rewriting of the history after each
//! correction. Left out: the asymmetry estimate and the choice of a poll interval; sources
//! are combined in `several/chrony.rs`.

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
/// The weight of excess delay, in deviations.
const DEVIATION_TO_DISTANCE: f64 = 0.7;
/// `maxdelaydevratio`.
const DELAY_DEVIATION_RATIO: f64 = 10.0;
/// `maxclockerror` [s/s].
const CLOCK_ERROR_MAX: f64 = 1e-6;
/// `corrtimeratio` and `maxslewrate`.
const CORRECTION_TIME_RATIO: f64 = 3.0;
const SLEW_MAX: f64 = 83_333.333e-6;
const SLEW_S: [f64; 2] = [1.0, 1e4];
/// The precision of a reading [s].
const DEVIATION_MIN: f64 = 1e-9;
/// Five per cent of random sign sequences have fewer runs: this many deviations below their mean.
const RUNS_QUANTILE: f64 = 1.645;

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
#[derive(Clone, Debug, Default)]
pub(crate) struct SampleHistory {
    points: VecDeque<RegressionPoint>,
    /// How many of the latest points the line may rest on; the others serve the runs test.
    in_use: usize,
    pub(crate) line: Option<FittedLine>,
}

/// What a correction aims at, at the time of a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aim {
    pub(crate) time: f64,
    /// How far the server is ahead of the clock, and the deviation of that.
    pub(crate) offset: f64,
    pub(crate) offset_deviation: f64,
    /// Of the uncorrected counter.
    pub(crate) slope: f64,
}

/// Corrects a clock: sets the frequency and slews the phase.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Corrector {
    updated: Option<f64>,
}

/// History, fit and correction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regression {
    history: SampleHistory,
    corrector: Corrector,
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

    /// A sample whose delay is out of all proportion is left out, unless its offset is, too. The longer ago the last
    /// one was, the more is allowed: a longer route is accepted in the end.
    fn is_acceptable(&self, sample: &OffsetSample) -> bool {
        let Some(line) = self.line.filter(|_| self.in_use >= SAMPLES_MIN) else { return true };
        let Some(last) = self.points.back() else { return true };
        let allowed = DELAY_DEVIATION_RATIO * line.deviation + CLOCK_ERROR_MAX * (sample.raw_time - last.time);
        let excess = (sample.delay - self.delay_min()) / 2.0;
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
        let points: Vec<RegressionPoint> = self.points.iter().copied().collect();
        let delay_min = self.delay_min();
        let scale = self.line.map_or(DEVIATION_MIN, |line| line.deviation);
        let weight = |point: &RegressionPoint| {
            let excess = 1.0 + DEVIATION_TO_DISTANCE * (point.delay - delay_min).max(0.0) / 2.0 / scale;
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

impl Corrector {
    /// Whether nothing was corrected yet.
    pub(crate) fn is_first(&self) -> bool {
        self.updated.is_none()
    }

    pub(crate) fn correct(&mut self, goal: Aim, counter: Counter, clock: &mut SystemClock) {
        let Aim { time, offset, .. } = goal;
        let interval = self.updated.replace(time).map_or(1.0, |updated| time - updated);
        clock.set_frequency(counter, goal.slope);
        let area = CORRECTION_TIME_RATIO * 0.5 * goal.offset_deviation * interval;
        let duration = (area / offset.abs().max(DEVIATION_MIN)).clamp(SLEW_S[0], SLEW_S[1]);
        let rate = (offset / duration).clamp(-SLEW_MAX, SLEW_MAX);
        if rate != 0.0 {
            clock.slew(counter, rate, offset / rate);
        }
    }
}

impl FittedLine {
    fn residual(&self, point: &RegressionPoint) -> f64 {
        point.offset - self.offset - self.slope * (point.time - self.time)
    }

    /// Whether the residuals have enough runs of equal sign.
    fn is_random(&self, points: &[RegressionPoint]) -> bool {
        let count = points.len() as f64;
        let changes =
            points.windows(2).filter(|pair| pair.iter().map(|point| self.residual(point)).product::<f64>() < 0.0);
        let runs_min = (count + 1.0) / 2.0 - RUNS_QUANTILE * libm::sqrt((count - 1.0) / 4.0);
        changes.count() as f64 + 1.0 > runs_min
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
    let variance = squares / total * count / (count - 2.0).max(1.0);
    let offset_variance = variance * count / total * (1.0 / count + mean_time * mean_time * total / count / spread);
    let line = FittedLine {
        time: newest.time,
        offset,
        slope,
        deviation: libm::sqrt(variance).max(DEVIATION_MIN),
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
        self.corrector.correct(Aim { time, offset, offset_deviation, slope }, sample.counter, clock);
    }
}
