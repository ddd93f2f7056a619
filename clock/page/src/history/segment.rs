//! A segment of the clock's past: the chord between two lines, and how far the truth can lie from it.
//!
//! With b1 and b2 the bounds of the two lines at the beginning and at the end, and every rate of the counter in between
//! within G of the chord's, the truth lies within b1 + G d1 of the chord, d1 after the beginning, and within b2 + G d2,
//! d2 before the end; so it lies within the smaller of both. Every line says which rates are possible after the
//! exchange that it rests on, so the lines from the beginning to the end say what G is. `docs/page.md` has the whole
//! argument.

use crate::convert::{StampTime, error_of, status_of};
use crate::layout::history::{ENTRY_WORDS, UNKNOWN, entry, state, sum};
use crate::layout::{self, field, high};
use crate::publish::status_code;
use ffclock_units::{
    Bound, Counter, Estimate, GrowthRate, LeapStep, Moment, Period, Rate, Reading, Span, StandardUncertainty, Tai,
    Ticks,
};

/// The words of an entry after its sequence.
pub(super) type EntryWords = [u64; ENTRY_WORDS - 1];

/// More than the rounding error of the ratio of two periods as a float.
const RATE_ROUNDING: f64 = 1e-14;

/// The ends of a figure of which neither is known.
const UNKNOWN_ENDS: u64 = (UNKNOWN as u64) << 32 | UNKNOWN as u64;

/// The rates that were possible from a line on until another one, relative to the first line's, and how fast the
/// uncertainty grew.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentRates {
    reference: Period,
    low: f64,
    high: f64,
    uncertainty_growth: GrowthRate,
}

impl SegmentRates {
    /// What a line says of the time after it.
    pub(super) fn of(line: &Estimate) -> Self {
        let growth = line.bound_growth.as_rate().as_fraction();
        SegmentRates { reference: line.period, low: -growth, high: growth, uncertainty_growth: line.uncertainty_growth }
    }

    /// Another line was in force, too.
    pub(super) fn include(&mut self, line: &Estimate) {
        let apart = line.period.relative_to(self.reference).as_fraction();
        let growth = line.bound_growth.as_rate().as_fraction() * (1.0 + apart.abs());
        self.low = self.low.min(apart - growth);
        self.high = self.high.max(apart + growth);
        self.uncertainty_growth = self.uncertainty_growth.max(line.uncertainty_growth);
    }

    /// The distance from the rate of `period` to the farthest that was possible.
    fn reach(&self, period: Period) -> GrowthRate {
        let apart = period.relative_to(self.reference).as_fraction();
        let farthest = (self.high - apart).max(apart - self.low);
        // Relative to one period instead of another: a product of two small figures.
        let second_order = 1.0 + 2.0 * apart.abs();
        GrowthRate::of(Rate::from_fraction(farthest * second_order + RATE_ROUNDING))
    }
}

/// One of the two error figures: at both ends, and how it grows away from them.
#[derive(Clone, Copy, Debug)]
struct SegmentFigure {
    ends: [Span; 2],
    growth: GrowthRate,
}

/// A segment before it is packed.
#[derive(Clone, Copy, Debug)]
pub(super) struct HistorySegment {
    begin: Counter,
    ticks: u64,
    time: Moment<Tai>,
    period: Period,
    bound: SegmentFigure,
    uncertainty: SegmentFigure,
    /// With the growth of the uncertainty.
    noise: SegmentFigure,
    state: u64,
    leap: LeapStep,
}

impl HistorySegment {
    /// From one line to a later one, with the rates that were possible up to the latter. Where neither can be right if
    /// the other is, each end covers both.
    pub(super) fn between([base, end]: [&Estimate; 2], mut rates: SegmentRates, leap: LeapStep) -> Self {
        debug_assert!(end.counter.is_after(base.counter), "a segment lasts");
        // The exchange that a line rests on precedes the line: for that moment the later line says which rates held.
        rates.include(end);
        let ticks = end.counter - base.counter;
        let mean = (end.time - base.time).as_seconds() / ticks.as_f64();
        let period = Period::from_seconds(mean).unwrap_or(base.period);
        let lasts = period * ticks;
        let missed = Bound::of(base.time + lasts - end.time);
        let growth = rates.reach(period);
        let (first, last) = (base.bound, end.bound + missed);
        let apart = Bound::of(base.time + base.period * ticks - end.time);
        let explained = base.bound + end.bound + rates.reach(base.period).over(lasts);
        let (bounds, uncertainties, noises) = if apart > explained {
            let both = first.max(last) + growth.over(lasts);
            ([both; 2], [both.as_span(); 2], [both.as_span(); 2])
        } else {
            let ends = |figure: fn(&Estimate) -> StandardUncertainty| [base, end].map(|line| figure(line).as_span());
            ([first, last], ends(|line| line.uncertainty), ends(|line| line.noise))
        };
        // One growth for both: that of the figure that changes more.
        let changes = [uncertainties, noises].map(|[from, to]| (to - from).abs());
        let change = changes.into_iter().fold(Span::ZERO, Span::max);
        let uncertainty_growth = slope_and(change, lasts, rates.uncertainty_growth);
        HistorySegment {
            begin: base.counter,
            ticks: ticks.raw().unsigned_abs(),
            time: base.time,
            period,
            bound: SegmentFigure { ends: bounds.map(Bound::as_span), growth },
            uncertainty: SegmentFigure { ends: uncertainties, growth: uncertainty_growth },
            noise: SegmentFigure { ends: noises, growth: uncertainty_growth },
            state: u64::from(status_code(base.status)) << state::STATUS,
            leap,
        }
    }

    /// From the beginning of the epoch to its first line, which alone says what was before it.
    pub(super) fn before(first: &Estimate, epoch_begin: Counter, leap: LeapStep) -> Self {
        let ticks = first.counter - epoch_begin;
        HistorySegment {
            begin: epoch_begin,
            ticks: ticks.raw().unsigned_abs(),
            time: first.time - first.period * ticks,
            period: first.period,
            bound: SegmentFigure { ends: [Span::MAX, first.bound.as_span()], growth: first.bound_growth },
            uncertainty: SegmentFigure {
                ends: [Span::MAX, first.uncertainty.as_span()],
                growth: first.uncertainty_growth,
            },
            noise: SegmentFigure { ends: [Span::MAX, first.noise.as_span()], growth: first.uncertainty_growth },
            state: u64::from(status_code(first.status)) << state::STATUS,
            leap,
        }
    }

    /// The words after the sequence, the check word being 0; `None` where an offset of UTC does not fit.
    pub(super) fn words(&self) -> Option<EntryWords> {
        let mut words = [0; ENTRY_WORDS];
        let (bound, bound_per_tick, bound_scale) = self.bound.packed(self.period);
        let (uncertainty, uncertainty_per_tick, uncertainty_scale) = self.uncertainty.packed(self.period);
        words[entry::STATE] = self.state
            | u64::from(self.period.shift()) << state::PERIOD_SHIFT
            | u64::from(bound_scale) << state::BOUND_SCALE
            | u64::from(uncertainty_scale) << state::UNCERTAINTY_SCALE
            | packed_offset(self.leap.before)? << state::OFFSET_BEFORE
            | packed_offset(self.leap.after)? << state::OFFSET_AFTER;
        words[entry::BEGIN] = self.begin.raw();
        words[entry::TICKS] = self.ticks;
        words[entry::TAI_SECONDS] = self.time.whole_seconds() as u64;
        words[entry::FRACTION] = self.time.since_origin().units() as u64;
        words[entry::PERIOD] = self.period.mantissa();
        words[entry::BOUND] = bound;
        words[entry::BOUND_PER_TICK] = bound_per_tick;
        words[entry::UNCERTAINTY] = uncertainty;
        words[entry::UNCERTAINTY_PER_TICK] = uncertainty_per_tick;
        words[entry::LEAP_AT] = self.leap.at as u64;
        words[entry::NOISE] = match uncertainty {
            UNKNOWN_ENDS => UNKNOWN_ENDS,
            _ => self.noise.at_scale(uncertainty_scale),
        };
        let [_, payload @ ..] = words;
        Some(payload)
    }
}

fn packed_offset(offset: i32) -> Option<u64> {
    i16::try_from(offset).ok().map(|offset| u64::from(offset as u16))
}

/// The growth of a figure that changes by `change` over `lasts`, and by `growth` beyond that.
fn slope_and(change: Span, lasts: Span, growth: GrowthRate) -> GrowthRate {
    let slope = change.as_seconds() / lasts.as_seconds();
    GrowthRate::of(Rate::from_fraction(slope.abs() + growth.as_rate().as_fraction() + RATE_ROUNDING))
}

impl SegmentFigure {
    /// Both ends in one word, the growth per tick, and the scale. All are rounded up, and the ends by one unit more,
    /// because readers round the growth down.
    fn packed(&self, period: Period) -> (u64, u64, u32) {
        let per_tick = (u128::from(self.growth.units()) * u128::from(period.mantissa())) >> (32 + period.shift());
        let Some(per_tick) = u64::try_from(per_tick + 1).ok().filter(|_| self.growth.units() != u64::MAX) else {
            return (UNKNOWN_ENDS, 0, 0);
        };
        let largest = self.units().into_iter().filter(|units| *units < 1 << 62).max().unwrap_or(0);
        let scale = 32u32.saturating_sub((largest >> 31).leading_zeros() - 96);
        (self.at_scale(scale), per_tick, scale)
    }

    fn units(&self) -> [u128; 2] {
        self.ends.map(|end| (end.units() as u128).div_ceil(1 << 32) + 1)
    }

    /// Both ends in one word with a scale that is given; what does not fit is unknown.
    fn at_scale(&self, scale: u32) -> u64 {
        let [first, last] = self.units().map(|units| {
            let scaled = units.div_ceil(1 << scale);
            u32::try_from(scaled).ok().filter(|_| units < 1 << 62).unwrap_or(UNKNOWN)
        });
        u64::from(last) << 32 | u64::from(first)
    }
}

/// The time at `counter` by an entry that was read; `None` where the entry does not check, is of another epoch or does
/// not cover the reading.
#[inline(always)]
pub(super) fn time_at((sequence, words): (u64, &EntryWords), epoch: [u64; 2], counter: Counter) -> Option<StampTime> {
    let [covered @ .., check] = words;
    let ticks = counter.raw().wrapping_sub(words[entry::BEGIN - 1]);
    let left = words[entry::TICKS - 1].wrapping_sub(ticks);
    if ticks > words[entry::TICKS - 1] || sum(sequence, covered, epoch) != *check {
        return None;
    }
    let state_word = words[entry::STATE - 1];
    let status = status_of(field(state_word, state::STATUS))?;
    let period = Period::from_parts(words[entry::PERIOD - 1], field(state_word, state::PERIOD_SHIFT))?;
    let begin = (i128::from(words[entry::TAI_SECONDS - 1] as i64) << 64) | i128::from(words[entry::FRACTION - 1]);
    let tai = Moment::from_origin(Span::from_units(begin) + period * Ticks::from_raw(i64::try_from(ticks).ok()?));
    let is_before = tai.whole_seconds() < words[entry::LEAP_AT - 1] as i64;
    let offset = if is_before { state::OFFSET_BEFORE } else { state::OFFSET_AFTER };
    let offset = i64::from((state_word >> offset) as u16 as i16);
    let figure = |ends: u64, per_tick: usize, scale: u32| {
        grown((ends, field(state_word, scale)), [ticks, left], words[per_tick - 1])
    };
    let uncertainty = |ends: u64| {
        let figure = figure(ends, entry::UNCERTAINTY_PER_TICK, state::UNCERTAINTY_SCALE);
        StandardUncertainty::of(figure)
    };
    let [uncertainties, noises] = [entry::UNCERTAINTY, entry::NOISE].map(|place| words[place - 1]);
    Some(StampTime {
        tai,
        noise: uncertainty(if noises == 0 { uncertainties } else { noises }),
        reading: Reading {
            time: Moment::from_origin(tai.since_origin() - Span::from_secs(offset)),
            uncertainty: uncertainty(uncertainties),
            bound: Bound::of(figure(words[entry::BOUND - 1], entry::BOUND_PER_TICK, state::BOUND_SCALE)),
            status,
        },
    })
}

/// The smaller of an error figure grown from the beginning and from the end.
#[inline(always)]
fn grown((ends, scale): (u64, u8), ticks: [u64; 2], per_tick: u64) -> Span {
    let [from_begin, from_end] = ticks.map(|ticks| high(ticks, per_tick));
    let scaled = |end: u32| if end == UNKNOWN { layout::UNKNOWN } else { u64::from(end) << (scale & 31) };
    let first = scaled(ends as u32).saturating_add(from_begin);
    let last = scaled((ends >> 32) as u32).saturating_add(from_end);
    error_of(first.min(last))
}
