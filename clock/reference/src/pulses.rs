//! Pulses, one each second: which of them are in time, and which second each of them begins.
//!
//! A pulse says that a second begins and not which. [`PulseTrain`] holds it against the pulses before it, by the
//! counter alone: one that comes between two seconds is an extra one, and a train that has moved is followed only after
//! some pulses that agree on its new place. [`number`] then gives it its second from a clock that is known well enough,
//! as a vote of servers makes it.

use ffclock_units::{Bound, Counter, Moment, Period, Rate, Span, Stamp, Tai};

/// One pulse as the kernel recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// The kernel's count of pulses, modulo 2^32.
    pub sequence: u32,
    /// When it came.
    pub stamp: Stamp,
}

/// What is wrong with a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PulseEvent {
    /// A pulse came between two seconds, and the train goes on as before; the pulse is not used. Or the kernel counted
    /// more pulses than seconds.
    Doubled,
    /// This number of seconds had no pulse.
    Missed(u32),
    /// The train has moved by this (between -0.5 and 0.5 s, positive for later) and goes on there.
    Slipped(Span),
    /// The kernel counts from the beginning: the device is another one.
    Restarted,
}

/// What a pulse is in its train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Whether it may be used.
    pub is_in_time: bool,
    /// What it shows of the train.
    pub event: Option<PulseEvent>,
}

/// Why a pulse has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberingRefused {
    /// The clock that would number it is not known well enough: two seconds are possible.
    Ambiguous,
    /// The pulse does not come where a second can begin by that clock.
    NotASecond,
}

/// The counter's rate and the pulses' own may differ from what they should be by this at most.
const RATES: Rate = Rate::from_ppm(500.0);
/// A pulse within this of its place is in time, beyond what the rates do; some interrupts wait this long.
const LATE: Span = Span::from_millis(2);
/// This number of pulses in a row that agree on another place have moved.
const WITNESSES: u32 = 4;
/// After this time without a pulse in time, the next one begins a new train.
const FORGOTTEN: Span = Span::from_secs(100);
const SECOND: Span = Span::from_secs(1);

/// A train of pulses.
#[derive(Clone, Copy, Debug)]
pub struct PulseTrain {
    nominal: Period,
    last: Option<Pulse>,
    stray: Option<Pulse>,
    strays: u32,
    /// The kernel's count at the newest pulse of any kind.
    sequence: Option<u32>,
}

impl PulseTrain {
    /// A train of which nothing is known, over a counter of this nominal period.
    pub const fn new(nominal: Period) -> Self {
        PulseTrain { nominal, last: None, stray: None, strays: 0, sequence: None }
    }

    /// Takes the newest pulse; `None` if it was taken before.
    pub fn take(&mut self, pulse: Pulse) -> Option<Judged> {
        let before = self.sequence.replace(pulse.sequence);
        if before == Some(pulse.sequence) {
            return None;
        }
        let Some(last) = self.last.filter(|last| self.passed(last, &pulse) < FORGOTTEN) else {
            self.begin(pulse);
            return Some(Judged { is_in_time: true, event: None });
        };
        let counted = pulse.sequence.wrapping_sub(last.sequence);
        if counted > u32::MAX / 2 || self.passed(&last, &pulse) <= Span::ZERO {
            self.begin(pulse);
            return Some(Judged { is_in_time: true, event: Some(PulseEvent::Restarted) });
        }
        let Some(seconds) = self.seconds_between(&last, &pulse) else { return Some(self.take_stray(&last, pulse)) };
        self.begin(pulse);
        let event = match counted.cmp(&seconds) {
            core::cmp::Ordering::Less => Some(PulseEvent::Missed(seconds - counted)),
            core::cmp::Ordering::Equal => None,
            core::cmp::Ordering::Greater => Some(PulseEvent::Doubled),
        };
        Some(Judged { is_in_time: true, event })
    }

    fn begin(&mut self, pulse: Pulse) {
        (self.last, self.stray, self.strays) = (Some(pulse), None, 0);
    }

    fn take_stray(&mut self, last: &Pulse, pulse: Pulse) -> Judged {
        let agrees = self.stray.is_some_and(|stray| self.seconds_between(&stray, &pulse).is_some());
        self.strays = if agrees { self.strays + 1 } else { 1 };
        self.stray = Some(pulse);
        if self.strays < WITNESSES {
            return Judged { is_in_time: false, event: (self.strays == 1).then_some(PulseEvent::Doubled) };
        }
        let moved = self.off_second(last, &pulse);
        self.begin(pulse);
        Judged { is_in_time: true, event: Some(PulseEvent::Slipped(moved)) }
    }

    fn passed(&self, from: &Pulse, to: &Pulse) -> Span {
        self.nominal * (to.stamp.counter - from.stamp.counter)
    }

    /// How far the second of two pulses is from a whole number of seconds after the first.
    fn off_second(&self, from: &Pulse, to: &Pulse) -> Span {
        let passed = self.passed(from, to);
        let nearest = (passed + SECOND.halved()).units().div_euclid(SECOND.units());
        passed - Span::from_units(nearest.saturating_mul(SECOND.units()))
    }

    /// The whole seconds from one pulse to another, at least one; `None` where it is no whole number of seconds.
    fn seconds_between(&self, from: &Pulse, to: &Pulse) -> Option<u32> {
        let passed = self.passed(from, to);
        let allowed = LATE + Span::from_seconds(passed.abs().as_seconds() * RATES.as_fraction());
        let seconds = (passed + SECOND.halved()).units().div_euclid(SECOND.units());
        let is_whole = self.off_second(from, to).abs() <= allowed;
        u32::try_from(seconds).ok().filter(|seconds| is_whole && *seconds > 0)
    }

    /// The counter at the latest pulse that was in time.
    pub fn latest(&self) -> Option<Counter> {
        self.last.map(|last| last.stamp.counter)
    }
}

/// The second that a pulse begins, where a clock showed `shown` at it with an error of at most `bound`, and the pulse
/// is right within `claim`. Whole seconds of UTC and of TAI begin together.
///
/// # Errors
/// The clock does not say which.
pub fn number(shown: Moment<Tai>, bound: Bound, claim: Bound) -> Result<Moment<Tai>, NumberingRefused> {
    let reach = bound.as_span() + claim.as_span();
    if reach >= SECOND.halved() {
        return Err(NumberingRefused::Ambiguous);
    }
    let nearest: Moment<Tai> = Moment::from_origin(Span::from_secs((shown + SECOND.halved()).whole_seconds()));
    if (shown - nearest).abs() > reach { Err(NumberingRefused::NotASecond) } else { Ok(nearest) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{StampLocation, Ticks};

    fn pulse(sequence: u32, millis: u64) -> Pulse {
        let counter = Counter::from_raw(1_000_000_000 + millis * 1_000_000);
        Pulse { sequence, stamp: Stamp { counter, width: Ticks::ZERO, location: StampLocation::Kernel } }
    }

    fn train(pulses: &[(u32, u64)]) -> Option<Judged> {
        let mut train = PulseTrain::new(Period::from_hertz(1e9).unwrap());
        pulses.iter().map(|(sequence, millis)| train.take(pulse(*sequence, *millis))).last().unwrap()
    }

    const IN_TIME: Judged = Judged { is_in_time: true, event: None };

    #[test]
    fn pulses_a_second_apart_are_in_time_and_each_counts_once() {
        assert_eq!(train(&[(7, 0), (8, 1000), (9, 2001)]), Some(IN_TIME));
        assert_eq!(train(&[(7, 0), (8, 1000), (8, 1000)]), None);
        assert_eq!(train(&[(u32::MAX, 0), (0, 1000)]), Some(IN_TIME));
        assert_eq!(train(&[(7, 0), (8, 200_500)]), Some(IN_TIME), "after a long pause a train begins");
    }

    #[test]
    fn a_pulse_between_seconds_is_not_used() {
        let doubled = Some(Judged { is_in_time: false, event: Some(PulseEvent::Doubled) });
        assert_eq!(train(&[(1, 0), (2, 1000), (3, 1300)]), doubled);
        assert_eq!(train(&[(1, 0), (2, 1000), (3, 1003)]), doubled, "right behind another");
        assert_eq!(
            train(&[(1, 0), (2, 1000), (3, 1300), (4, 2000)]),
            Some(Judged { event: None, ..IN_TIME }).map(|judged| Judged { event: Some(PulseEvent::Doubled), ..judged })
        );
        assert_eq!(train(&[(1, 0), (4, 1000)]), Some(Judged { event: Some(PulseEvent::Doubled), ..IN_TIME }));
    }

    #[test]
    fn missing_pulses_are_counted() {
        assert_eq!(train(&[(1, 0), (2, 4000)]), Some(Judged { event: Some(PulseEvent::Missed(3)), ..IN_TIME }));
        assert_eq!(train(&[(9, 0), (3, 1000)]), Some(Judged { event: Some(PulseEvent::Restarted), ..IN_TIME }));
    }

    #[test]
    fn a_train_that_moved_is_followed_after_four_witnesses() {
        let moved = [(1, 0), (2, 1000), (3, 2400), (4, 3400), (5, 4400), (6, 5400)];
        for seen in 3..6 {
            assert!(!train(&moved[..seen]).unwrap().is_in_time, "{seen}");
        }
        let Some(Judged { is_in_time: true, event: Some(PulseEvent::Slipped(by)) }) = train(&moved) else { panic!() };
        assert!((by - Span::from_millis(400)).abs() < Span::from_micros(1), "{by}");
        let scattered = [(1, 0), (2, 1300), (3, 2500), (4, 3700), (5, 4100), (6, 5400)];
        assert!(!train(&scattered).unwrap().is_in_time, "they do not agree");
    }

    #[test]
    fn a_pulse_gets_the_only_second_that_is_possible() {
        let at = |millis| Moment::from_origin(Span::from_millis(millis));
        let [coarse, claim] = [200, 1].map(|millis| Bound::of(Span::from_millis(millis)));
        assert_eq!(number(at(5_150), coarse, claim), Ok(at(5_000)));
        assert_eq!(number(at(4_850), coarse, claim), Ok(at(5_000)));
        assert_eq!(number(at(5_400), coarse, claim), Err(NumberingRefused::NotASecond));
        assert_eq!(number(at(5_000), Bound::of(Span::from_millis(500)), claim), Err(NumberingRefused::Ambiguous));
        assert_eq!(number(at(5_000), Bound::UNKNOWN, claim), Err(NumberingRefused::Ambiguous));
    }
}
