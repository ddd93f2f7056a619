//! The phase and frequency locked loop of NTP, with its clock filter, at a fixed poll.
//!
//! Source: RFC 5905, section 10 (clock filter, appendix A.5.2), section 11.3 (clock discipline, appendix A.5.5.6) and
//! 11.4 (clock adjust, appendix A.5.6.1), with the parameters of appendix A.1.1. The loop gain is that of ntpd where it
//! leaves the loop to the Linux kernel, as it does by default (kernel/time/ntp.c: phase time constant 4 polls), which
//! converges four times sooner than with the gain of 16 in ntpd's own loop; the interval is capped at eight polls. With
//! a drift file the loop is ntpd's own until the second update, with a constant of 32 s, and the kernel's from then on.
//! That update hands over a thousandth of its offset, as nanoseconds are still taken for microseconds, and changes no
//! frequency; the next one does (ntpsec 1.2, by its calls and clocks in the live laboratory). Dispersions choose among
//! servers (`several/ntpd.rs`); with one server they have no effect and are left out.

use super::{OffsetSample, Servo, SystemClock};
use crate::scenario::NtpdSpec;
use ffclock_units::Counter;

pub(crate) const STAGES: usize = 8;
/// After this many requests without an answer, empty samples are shifted into the filter (appendix A.5.7.3).
pub(crate) const LOST_MAX: u32 = 3;
const JITTER_MIN: f64 = 1e-9;
/// SGATE: popcorn spikes are as many jitters away.
const SPIKE_GATE: f64 = 3.0;
/// STEPT [s] and WATCH [s], by default.
const STEP_THRESHOLD: f64 = 0.128;
const STEP_PATIENCE: f64 = 900.0;
/// 2^SHIFT_PLL of the Linux kernel.
const PLL_GAIN: f64 = 4.0;
/// FLL, AVG and ALLAN.
const FLL_GAIN: f64 = 18.0;
const FLL_GAIN_MIN: f64 = 4.0;
const ALLAN_INTERCEPT: f64 = 1500.0;
const FREQUENCY_MAX: f64 = 500e-6;
/// What the kernel takes at most for the interval between two updates [polls].
const INTERVAL_MAX: f64 = 8.0;
/// What the kernel's loop is given of the first offset.
const HANDED_OVER: f64 = 1e-3;
/// Of ntpd's own loop at first [s].
const FIRST_CONSTANT: f64 = 32.0;

/// One stage of the clock filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilterStage {
    pub(crate) offset: f64,
    pub(crate) delay: f64,
    pub(crate) time: f64,
}

/// What the filter has chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilterChoice {
    pub(crate) offset: f64,
    pub(crate) time: f64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ClockFilter {
    pub(crate) stages: Vec<FilterStage>,
    pub(crate) last: Option<FilterStage>,
    pub(crate) jitter: f64,
}

impl ClockFilter {
    /// Takes a sample; gives one that is new and the best of the last eight.
    pub(crate) fn update(&mut self, stage: FilterStage, poll: f64) -> Option<FilterChoice> {
        if self.stages.len() == STAGES {
            self.stages.remove(0);
        }
        self.stages.push(stage);
        let best = *self.stages.iter().min_by(|one, other| one.delay.total_cmp(&other.delay))?;
        let squares: f64 = self.stages.iter().map(|old| (old.offset - best.offset) * (old.offset - best.offset)).sum();
        let others = (self.stages.len() - 1).max(1) as f64;
        let jitter = libm::sqrt(squares / others).max(JITTER_MIN);
        let before = std::mem::replace(&mut self.jitter, jitter);
        if let Some(last) = self.last {
            let is_spike =
                (best.offset - last.offset).abs() > SPIKE_GATE * before && best.time - last.time < 2.0 * poll;
            if best.time <= last.time || (is_spike && before > JITTER_MIN) {
                return None;
            }
        }
        self.last = Some(best);
        Some(FilterChoice { offset: best.offset, time: best.time })
    }

    /// After a step nothing that was measured before is worth anything.
    pub(crate) fn clear(&mut self) {
        *self = ClockFilter::default();
    }

    /// A request had no answer for too long: an empty sample is shifted in.
    pub(crate) fn shift(&mut self) {
        if !self.stages.is_empty() {
            self.stages.remove(0);
        }
    }
}

/// The states of the discipline (RFC 5905, figure 26).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum DisciplineState {
    #[default]
    Unset,
    /// The frequency is known from a file, and nothing was chosen yet (FSET).
    Stored,
    /// After the first update with such a frequency: ntpd's own loop works the phase off.
    OwnLoop,
    Frequency,
    Synchronised,
    Spike,
}

/// The poll interval as the samples show it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PollWatch {
    pub(crate) poll: f64,
    last_sample: Option<f64>,
}

impl PollWatch {
    /// The poll interval as the power of two that it is nearest to; bursts do not count.
    pub(crate) fn note(&mut self, time: f64) {
        let interval = self.last_sample.replace(time).map_or(0.0, |last| time - last);
        // Lost replies make intervals longer, bursts shorter; the first interval that is no burst is the poll.
        if interval > self.poll && (self.poll < 8.0 || interval < self.poll) {
            self.poll = libm::exp2(libm::round(libm::log2(interval)));
        }
    }
}

/// The discipline of a clock by chosen offsets.
#[derive(Clone, Debug)]
pub(crate) struct ClockDiscipline {
    state: DisciplineState,
    /// Of the last update: its time and its offset.
    update_time: f64,
    update_offset: f64,
    /// The phase that is still to be amortised, and the frequency.
    phase: f64,
    frequency: f64,
    pub(crate) poll: f64,
    /// From which offset on it steps, and for how long that must last [s].
    step: f64,
    stepout: f64,
}

/// The huff-n'-puff filter: what a delay is more than the smallest of a while is half in the offset, which it makes
/// smaller by that much, wherever the delay came from.
#[derive(Clone, Copy, Debug)]
struct HuffPuff {
    /// For how long a delay is remembered [s].
    span: f64,
    until: f64,
    least: f64,
}

/// The loop of one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pll {
    filter: ClockFilter,
    discipline: ClockDiscipline,
    watch: PollWatch,
    /// Requests in a row without an answer.
    lost: u32,
    /// Requests of the first burst that are still to come, and the one after which the first update is made.
    burst: u32,
    first_at: u32,
    huffpuff: Option<HuffPuff>,
}

impl Default for ClockDiscipline {
    fn default() -> Self {
        ClockDiscipline {
            state: DisciplineState::Unset,
            update_time: 0.0,
            update_offset: 0.0,
            phase: 0.0,
            frequency: 0.0,
            poll: 0.0,
            step: STEP_THRESHOLD,
            stepout: STEP_PATIENCE,
        }
    }
}

impl HuffPuff {
    /// The corrected offset of what was chosen at `now`.
    fn correct(&mut self, chosen: &FilterStage, now: f64) -> f64 {
        if now >= self.until {
            (self.least, self.until) = (f64::INFINITY, now + self.span);
        }
        self.least = self.least.min(chosen.delay);
        chosen.offset - (chosen.delay - self.least).copysign(chosen.offset) / 2.0
    }
}

impl ClockDiscipline {
    fn restart(&mut self, state: DisciplineState, time: f64, offset: f64) {
        self.state = state;
        self.update_time = time;
        self.update_offset = offset;
    }

    /// Whether nothing was chosen yet.
    pub(crate) fn is_unset(&self) -> bool {
        self.state == DisciplineState::Unset
    }

    /// Takes an offset; whether the clock was stepped.
    pub(crate) fn take(&mut self, chosen: FilterChoice, sample: &OffsetSample, clock: &mut SystemClock) -> bool {
        if chosen.offset.abs() > self.step {
            return self.large(chosen, sample, clock);
        }
        self.small(chosen);
        false
    }

    /// A large offset: wait, then step.
    pub(crate) fn large(&mut self, chosen: FilterChoice, sample: &OffsetSample, clock: &mut SystemClock) -> bool {
        let waited = chosen.time - self.update_time;
        match self.state {
            DisciplineState::Synchronised | DisciplineState::OwnLoop => {
                self.state = DisciplineState::Spike;
                return false;
            }
            DisciplineState::Spike | DisciplineState::Frequency if waited < self.stepout => return false,
            DisciplineState::Frequency => self.frequency = (chosen.offset - self.update_offset) / waited,
            DisciplineState::Spike | DisciplineState::Unset | DisciplineState::Stored => {}
        }
        clock.step(sample.counter, chosen.offset);
        self.phase = 0.0;
        let next = if self.state == DisciplineState::Unset {
            DisciplineState::Frequency
        } else {
            DisciplineState::Synchronised
        };
        self.restart(next, sample.raw_time, 0.0);
        true
    }

    fn small(&mut self, chosen: FilterChoice) {
        let interval = chosen.time - self.update_time;
        match self.state {
            DisciplineState::Unset => {
                self.restart(DisciplineState::Frequency, chosen.time, chosen.offset);
                return;
            }
            // The first update, and the first of the kernel's loop, adjust the phase only.
            DisciplineState::Stored | DisciplineState::OwnLoop => {}
            DisciplineState::Frequency if interval < self.stepout => return,
            DisciplineState::Frequency => self.frequency = (chosen.offset - self.update_offset) / interval,
            DisciplineState::Synchronised | DisciplineState::Spike => self.frequency += self.gain(chosen, interval),
        }
        self.frequency = self.frequency.clamp(-FREQUENCY_MAX, FREQUENCY_MAX);
        let (next, share) = match self.state {
            DisciplineState::Stored => (DisciplineState::OwnLoop, 1.0),
            DisciplineState::OwnLoop => (DisciplineState::Synchronised, HANDED_OVER),
            _ => (DisciplineState::Synchronised, 1.0),
        };
        self.phase = share * chosen.offset;
        self.restart(next, chosen.time, chosen.offset);
    }

    fn gain(&self, chosen: FilterChoice, interval: f64) -> f64 {
        let mut change = 0.0;
        if self.poll > ALLAN_INTERCEPT / 2.0 {
            let average = (FLL_GAIN - libm::log2(self.poll)).max(FLL_GAIN_MIN);
            change += (chosen.offset - self.update_offset) / (interval.max(ALLAN_INTERCEPT) * average);
        }
        let constant = 4.0 * PLL_GAIN * self.poll;
        change + chosen.offset * interval.min(INTERVAL_MAX * self.poll) / (constant * constant)
    }

    /// A second has passed.
    pub(crate) fn second(&mut self, counter: Counter, clock: &mut SystemClock) {
        let constant = match self.state {
            DisciplineState::OwnLoop => FIRST_CONSTANT,
            _ => PLL_GAIN * self.poll.clamp(8.0, ALLAN_INTERCEPT),
        };
        let part = self.phase / constant;
        self.phase -= part;
        clock.set_frequency(counter, self.frequency + part);
    }
}

impl Pll {
    /// With the frequency of a drift file, where there is one. The poll is then the configured one from the first
    /// update on, which is made in the middle of the first burst; the next is made by the first request after it.
    pub(crate) fn started(frequency: Option<f64>, poll: f64, burst: u32) -> Self {
        let Some(frequency) = frequency else { return Pll::default() };
        let discipline = ClockDiscipline { state: DisciplineState::Stored, frequency, ..ClockDiscipline::default() };
        Pll { discipline, watch: PollWatch { poll, last_sample: None }, burst, first_at: burst / 2, ..Pll::default() }
    }

    /// The same with other options than the defaults.
    pub(crate) fn tuned(mut self, options: &NtpdSpec) -> Self {
        (self.discipline.step, self.discipline.stepout) = (options.step.seconds(), options.stepout.seconds());
        let span = options.huffpuff.seconds();
        self.huffpuff = Some(HuffPuff { span, until: f64::NEG_INFINITY, least: f64::INFINITY });
        self
    }

    /// What the discipline is given of a filter that has this new best one.
    fn chosen(&mut self, new: Option<FilterChoice>) -> Option<FilterChoice> {
        let last = self.filter.last.map(|stage| FilterChoice { offset: stage.offset, time: stage.time });
        let is_in_burst = self.burst > 0;
        self.burst = self.burst.saturating_sub(1);
        match self.discipline.state {
            DisciplineState::Stored if is_in_burst => last.filter(|_| self.burst <= self.first_at),
            _ if is_in_burst => None,
            DisciplineState::OwnLoop => last,
            _ => new,
        }
    }
}

impl Servo for Pll {
    fn sample(&mut self, sample: &OffsetSample, clock: &mut SystemClock) {
        self.lost = 0;
        self.watch.note(sample.raw_time);
        self.discipline.poll = self.watch.poll;
        let stage = FilterStage { offset: sample.offset, delay: sample.delay, time: sample.raw_time };
        let new = self.filter.update(stage, self.watch.poll);
        let Some(mut chosen) = self.chosen(new) else { return };
        if let (Some(huffpuff), Some(stage)) = (&mut self.huffpuff, &self.filter.last) {
            chosen.offset = huffpuff.correct(stage, sample.raw_time);
        }
        if self.discipline.take(chosen, sample, clock) {
            self.filter.clear();
        }
    }

    fn lost(&mut self, _: Counter, _: &mut SystemClock) {
        self.lost += 1;
        self.burst = self.burst.saturating_sub(1);
        if self.lost > LOST_MAX {
            self.filter.shift();
        }
    }

    fn second(&mut self, counter: Counter, clock: &mut SystemClock) {
        self.discipline.second(counter, clock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{Moment, Period, Span};

    /// How far ahead a clock is [us] at some seconds, after a burst from `1` s on, each 2 s, and polls of 64 s. It was
    /// 1 ms ahead, and knows its rate; replies to `lost` requests, counted from 0, do not come.
    fn ahead_us(lost: &[u32], at: &[u32]) -> Vec<f64> {
        let nominal = Period::from_hertz(1e9).unwrap();
        let counter = |second: u32| Counter::from_raw(u64::from(second) * 1_000_000_000);
        let mut clock = SystemClock::new(nominal, counter(0), Moment::from_origin(Span::from_micros(1000)));
        let mut pll = Pll::started(Some(0.0), 64.0, 8);
        let ahead = |clock: &SystemClock, second: u32| {
            (clock.read(counter(second)).since_origin() - Span::from_secs(second.into())).as_seconds()
        };
        let requests: Vec<u32> =
            (0..8).map(|number| 1 + 2 * number).chain((1..20).map(|poll| 15 + 64 * poll)).collect();
        let mut seen = Vec::new();
        for second in 1..=*at.last().unwrap() {
            if let Some(number) = requests.iter().position(|request| *request == second) {
                let offset = -ahead(&clock, second);
                let time = f64::from(second);
                // Later replies take longer, so that the filter keeps to the first of them.
                let delay = 1e-3 + 1e-6 * time;
                let sample = OffsetSample {
                    counter: counter(second),
                    offset,
                    reply_offset: offset,
                    delay,
                    raw_time: time,
                    raw_offset: offset,
                    claimed: 0.0,
                };
                if lost.contains(&(number as u32)) {
                    pll.lost(counter(second), &mut clock);
                } else {
                    pll.sample(&sample, &mut clock);
                }
            }
            pll.second(counter(second), &mut clock);
            if at.contains(&second) {
                seen.push(1e6 * ahead(&clock, second));
            }
        }
        seen
    }

    #[test]
    fn huffpuff_makes_an_offset_smaller_by_half_of_what_its_delay_is_above_the_least_of_a_while() {
        let mut filter = HuffPuff { span: 900.0, until: f64::NEG_INFINITY, least: f64::INFINITY };
        let stage = |offset: f64, delay: f64| FilterStage { offset, delay, time: 0.0 };
        let seen = [(10e-6, 300e-6, 0.0), (10e-6, 312e-6, 16.0), (-10e-6, 312e-6, 32.0), (10e-6, 312e-6, 901.0)]
            .map(|(offset, delay, now)| 1e6 * filter.correct(&stage(offset, delay), now));
        // The last one is the first of another while.
        assert!(
            seen.iter().zip([10.0, 4.0, -4.0, 10.0]).all(|(seen, wanted)| (seen - wanted).abs() < 1e-9),
            "{seen:?}"
        );
    }

    #[test]
    fn the_first_offset_is_worked_off_in_half_a_minute_until_the_kernel_is_given_a_thousandth_of_the_rest() {
        // The first update is made by the fourth reply, at 7 s; the next request after the burst comes at 79 s.
        for (lost, begin) in [(&[][..], 7), (&[3][..], 9), (&[3, 4][..], 11)] {
            let seen = ahead_us(lost, &[begin, begin + 32, 79, 140]);
            let decayed = |seconds: f64| 1000.0 * (-seconds / 32.0).exp();
            assert!((seen[0] - 1000.0).abs() < 1.0, "{lost:?}: nothing before the first update: {seen:?}");
            assert!((seen[1] / decayed(32.0) - 1.0).abs() < 0.05, "{lost:?}: {seen:?}");
            assert!((seen[2] / decayed(79.0 - f64::from(begin)) - 1.0).abs() < 0.1, "{lost:?}: {seen:?}");
            assert!((seen[3] - seen[2]).abs() < 5.0, "{lost:?}: the rest stays: {seen:?}");
        }
    }
}
