//! The account of one clock: its errors at random readings, and the figures made of them.

use crate::clock::Read;
use crate::result::{ClockResult, WindowResult};
use crate::scenario::Scenario;
use ffclock_statistics::{Containment, percentile_in_place};
use ffclock_units::{Bound, ClockError, Counter, Moment, Span, Tai};
use std::collections::VecDeque;

/// The rate is judged over this time.
const RATE_INTERVAL: Span = Span::from_secs(1000);

/// A piece of time with its readings.
struct ReadingWindow {
    name: String,
    begin: Span,
    end: Span,
    readings: WindowReadings,
}

/// What is kept of the readings in a window, in seconds and s/s.
#[derive(Default)]
struct WindowReadings {
    count: u64,
    unread: u64,
    errors: Vec<f64>,
    rates: Vec<f64>,
    differences: Vec<f64>,
    bounds: Claimed,
    strict: Claimed,
    /// Twice the noise, without the bias.
    noisy: Containment,
    noises: Vec<f64>,
    /// Twice the combined standard uncertainty, with the bias.
    uncertain: Containment,
    /// The sum of the squares of the errors over the combined standard uncertainty.
    squared_over_uncertainty: f64,
    /// Sizes of errors without the bias.
    unbiased: Vec<f64>,
}

/// Bounds that were claimed [s], and whether they held.
#[derive(Default)]
struct Claimed {
    sizes: Vec<f64>,
    held: Containment,
}

impl Claimed {
    fn note(&mut self, error: ClockError, bound: Bound) {
        self.sizes.push(bound.as_span().as_seconds());
        self.held.judge(error, bound);
    }
}

/// An earlier reading. The rate is measured from it.
#[derive(Clone, Copy)]
struct PastReading {
    at: Span,
    counter: Counter,
    error: f64,
}

/// When a clock was read, and at which reading of the counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadingTime {
    pub(crate) at: Span,
    pub(crate) truth: Moment<Tai>,
    pub(crate) counter: Counter,
}

/// All windows of one clock.
pub(crate) struct ClockAccount {
    name: String,
    bias: f64,
    windows: Vec<ReadingWindow>,
    past: VecDeque<PastReading>,
}

impl ClockAccount {
    /// `asymmetry`: forward minimum delay minus backward minimum delay. A clock that takes them as equal is ahead by
    /// half of it.
    pub(crate) fn new(name: &str, scenario: &Scenario, asymmetry: Span) -> Self {
        let window = |name: &str, begin: Span, end: Span| ReadingWindow {
            name: name.to_owned(),
            begin,
            end,
            readings: WindowReadings::default(),
        };
        let whole = window("", scenario.from.0, Span::MAX);
        let parts = scenario.windows.iter().map(|(name, [begin, end])| window(name, begin.0, end.0));
        let windows = [whole].into_iter().chain(parts).collect();
        ClockAccount { name: name.to_owned(), bias: asymmetry.as_seconds() / 2.0, windows, past: VecDeque::new() }
    }

    /// The name of the clock.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Adds one reading; there is none while the clock has no time.
    pub(crate) fn note(&mut self, look: ReadingTime, read: Option<Read>) {
        let bias = self.bias;
        let within = |window: &&mut ReadingWindow| window.begin <= look.at && look.at < window.end;
        let windows = self.windows.iter_mut().filter(within).map(|window| &mut window.readings);
        let Some(read) = read else {
            windows.for_each(WindowReadings::note_unread);
            return;
        };
        let error = ClockError::new(read.time - look.truth);
        let seconds = error.as_span().as_seconds();
        let rate = self.past.front().filter(|past| look.at - past.at >= RATE_INTERVAL);
        let rates = rate.map(|past| rates(past, look, seconds, &read));
        for readings in windows {
            readings.note(seconds, bias);
            readings.note_rates(rates);
            readings.note_claims(error, bias, &read);
        }
        self.past.push_back(PastReading { at: look.at, counter: look.counter, error: seconds });
        while self.past.get(1).is_some_and(|past| look.at - past.at >= RATE_INTERVAL) {
            self.past.pop_front();
        }
    }

    /// No interval is measured across a break of the counter.
    pub(crate) fn broke(&mut self) {
        self.past.clear();
    }

    /// The figures.
    pub(crate) fn result(self) -> ClockResult {
        let windows = self.windows.into_iter().map(|window| window.readings.figures(window.name)).collect();
        ClockResult { name: self.name, windows, restarts: None, beliefs: None }
    }
}

/// The rate errors of the absolute and of the difference clock since a past reading.
fn rates(past: &PastReading, look: ReadingTime, error: f64, read: &Read) -> (f64, Option<f64>) {
    let interval = look.at - past.at;
    let difference = read.claims.map(|claims| {
        let measured = claims.difference_period * (look.counter - past.counter);
        (measured - interval).as_seconds() / interval.as_seconds()
    });
    ((error - past.error) / interval.as_seconds(), difference)
}

impl WindowReadings {
    fn note_unread(&mut self) {
        self.count += 1;
        self.unread += 1;
    }

    fn note(&mut self, error: f64, bias: f64) {
        self.count += 1;
        self.errors.push(error);
        self.unbiased.push((error - bias).abs());
    }

    fn note_rates(&mut self, rates: Option<(f64, Option<f64>)>) {
        let Some((rate, difference)) = rates else { return };
        self.rates.push(rate.abs());
        self.differences.extend(difference.map(f64::abs));
    }

    fn note_claims(&mut self, error: ClockError, bias: f64, read: &Read) {
        let Some(claims) = read.claims else { return };
        let (uncertainty, noise) = (claims.uncertainty.as_seconds(), claims.noise.as_seconds());
        let seconds = error.as_span().as_seconds();
        self.bounds.note(error, claims.bound);
        if let Some(strict) = claims.strict {
            self.strict.note(error, strict);
        }
        self.noisy.judge_size((seconds - bias).abs(), 2.0 * noise);
        self.noises.push(noise);
        self.uncertain.judge_size(seconds.abs(), 2.0 * uncertainty);
        self.squared_over_uncertainty += (seconds / uncertainty) * (seconds / uncertainty);
    }

    fn figures(mut self, name: String) -> WindowResult {
        let rms = |values: &[f64]| {
            let squares: f64 = values.iter().map(|value| value * value).sum();
            (!values.is_empty()).then(|| libm::sqrt(squares / values.len() as f64))
        };
        self.errors.sort_by(f64::total_cmp);
        let mut sizes: Vec<f64> = self.errors.iter().map(|error| error.abs()).collect();
        let quartiles = percentile_in_place(&mut self.errors, 0.25).zip(percentile_in_place(&mut self.errors, 0.75));
        let claimed = self.noises.len() as f64;
        let median_noise = percentile_in_place(&mut self.noises, 0.5);
        let needed = percentile_in_place(&mut self.unbiased, 0.95).filter(|needed| *needed > 0.0);
        WindowResult {
            name,
            readings: self.count,
            unread: if self.count > 0 { self.unread as f64 / self.count as f64 } else { 1.0 },
            rms: rms(&self.errors),
            median: percentile_in_place(&mut self.errors, 0.5),
            iqr: quartiles.map(|(low, high)| high - low),
            p50: percentile_in_place(&mut sizes, 0.5),
            p95: percentile_in_place(&mut sizes, 0.95),
            p99: percentile_in_place(&mut sizes, 0.99),
            max: percentile_in_place(&mut sizes, 1.0),
            net_p99: percentile_in_place(&mut self.unbiased, 0.99),
            net_max: percentile_in_place(&mut self.unbiased, 1.0),
            rate_p99: percentile_in_place(&mut self.rates, 0.99),
            difference_p99: percentile_in_place(&mut self.differences, 0.99),
            containment: self.bounds.held.share(),
            bound: percentile_in_place(&mut self.bounds.sizes, 0.5),
            strict_containment: self.strict.held.share(),
            strict_bound: percentile_in_place(&mut self.strict.sizes, 0.5),
            calibration: self.noisy.share(),
            width: median_noise.zip(needed).map(|(noise, needed)| 2.0 * noise / needed),
            combined_calibration: self.uncertain.share(),
            over_uncertainty: (claimed > 0.0).then(|| libm::sqrt(self.squared_over_uncertainty / claimed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_runs_off_has_its_rate_and_its_errors() {
        let text = "about = \"x\"\nfrom = \"0 s\"\n[path]\nforward = \"1 us\"\nbackward = \"1 us\"\n\
                    [windows]\nend = [\"4000 s\", \"5000 s\"]";
        let scenario = Scenario::parse("x", text).unwrap();
        let mut account = ClockAccount::new("x", &scenario, Span::ZERO);
        for second in 0..5000 {
            let at = Span::from_secs(second);
            let truth = Moment::from_origin(at);
            let look = ReadingTime { at, truth, counter: Counter::from_raw(second as u64) };
            account.note(look, Some(Read { time: truth + Span::from_nanos(second.into()), claims: None }));
        }
        let [whole, end] = &account.result().windows[..] else { panic!("two windows") };
        assert!((whole.max.unwrap() - 4999e-9).abs() < 1e-15);
        assert!((whole.iqr.unwrap() - 2499.5e-9).abs() < 1e-15);
        assert!((whole.rate_p99.unwrap() - 1e-9).abs() < 1e-15);
        assert!((end.median.unwrap() - 4499.5e-9).abs() < 1e-15);
        assert_eq!((end.readings, end.containment), (1000, None));
    }
}
