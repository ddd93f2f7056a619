//! The form of a VMClock's page (UAPI `linux/vmclock-abi.h`, and UAPI.13 of the UAPI group): words of 64 bits, little
//! endian, and what they say of time. Nothing here touches memory that others write.
//!
//! ```text
//! word  octets hold
//! 0     0..4   "VCLK"                     4..8   the length of the page
//! 1     0..2   version 1                  2      counter: 0 ARM's virtual one, 1 the TSC, 255 none
//!       3      scale: 0 UTC, 1 TAI        4..8   sequence, odd while the rest changes
//! 2     0..8   disruption marker
//! 3     0..8   flags
//! 4     2      status                     4..6   TAI - UTC [s]
//!       6      leap second                7      shift of the period
//! 5     0..8   the counter
//! 6     0..8   its period                 in units of 2^-(64 + shift) s
//! 7, 8  0..8   standard uncertainty of the period, and its largest error, in the same units
//! 9,10  0..8   the time at the counter    seconds since 1970, and units of 2^-64 s
//! 11,12 0..8   standard uncertainty of the time, and its largest error [ns]
//! 13    0..8   generation counter: another one after the machine was loaded from a saved state
//! ```

use ffclock_units::{
    Bound, Counter, CounterId, GrowthRate, Leap, LeapStep, MachineMark, Moment, Period, Span, StandardUncertainty,
    Status, Tai, Utc,
};

/// The words of a line of time, and all before them.
pub(super) const USED: usize = 13;
/// The first word that the sequence guards, beside the fields that stay.
pub(super) const GUARDED: usize = 2;
/// The word of the sequence.
pub(super) const SEQUENCE: usize = 1;
/// Where the marker is.
pub(super) const MARKER: usize = 2;
/// Where the flags are.
pub(super) const FLAGS: usize = 3;
/// Where the generation counter is.
pub(super) const GENERATION: usize = 13;
/// The length of a page that has one [octets].
const SIZE_WITH_GENERATION: u32 = 112;
const STATE: usize = 4;
/// "VCLK".
pub(super) const MAGIC: u32 = 0x4b4c_4356;
/// The version of the structure.
pub(super) const VERSION: u16 = 1;

const SCALE_UTC: u8 = 0;
const SCALE_TAI: u8 = 1;
const COUNTER_ARM: u8 = 0;
const COUNTER_TSC: u8 = 1;
const COUNTER_NONE: u8 = 0xff;
const STATUS_UNKNOWN: u8 = 0;
const STATUS_SYNCHRONISED: u8 = 2;
const STATUS_FREE_RUNNING: u8 = 3;

/// What is stated, as flags. The two descriptions of the format differ in the bits from 7 on.
mod flag {
    pub(super) const TAI_OFFSET: u64 = 1;
    pub(super) const PERIOD_UNCERTAINTY: u64 = 1 << 3;
    pub(super) const PERIOD_ERROR: u64 = 1 << 4;
    pub(super) const TIME_UNCERTAINTY: u64 = 1 << 5;
    pub(super) const TIME_ERROR: u64 = 1 << 6;
    /// There is a generation counter: bit 8 for the kernel, bit 7 for the UAPI group. By the other description these
    /// bits say something of the time and of interrupts, and a host that sets them for that lets the word stand still:
    /// to watch it then is no harm.
    pub(super) const GENERATION: u64 = 1 << 7 | 1 << 8;
    pub(super) const ALL: u64 = TAI_OFFSET | PERIOD_UNCERTAINTY | PERIOD_ERROR | TIME_UNCERTAINTY | TIME_ERROR;
}

/// A leap second in the month before or after a moment, as the page names it by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmClockLeap {
    /// None is known.
    None,
    /// A second is inserted at the end of this month.
    BeforeInsertion,
    /// A second is left out at the end of this month.
    BeforeDeletion,
    /// The second 23:59:60.
    Inserted,
    /// A second was inserted at the end of the previous month.
    AfterInsertion,
    /// A second was left out at the end of the previous month.
    AfterDeletion,
}

impl VmClockLeap {
    const ALL: [VmClockLeap; 6] = [
        VmClockLeap::None,
        VmClockLeap::BeforeInsertion,
        VmClockLeap::BeforeDeletion,
        VmClockLeap::Inserted,
        VmClockLeap::AfterInsertion,
        VmClockLeap::AfterDeletion,
    ];

    fn from_code(code: u8) -> Self {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(VmClockLeap::None)
    }

    /// The state at `time`, given the step around it.
    fn around(time: Moment<Tai>, step: LeapStep) -> Self {
        let second = time.whole_seconds();
        let month = |utc: i64| {
            let (year, month, _) = Moment::<Utc>::from_origin(Span::from_secs(utc)).civil_date();
            (year, month)
        };
        let is_insertion = step.after > step.before;
        if step.after == step.before {
            VmClockLeap::None
        } else if second < step.at {
            let is_near = month(second - i64::from(step.before)) == month(step.at - 1 - i64::from(step.before));
            match (is_near, is_insertion) {
                (false, _) => VmClockLeap::None,
                (true, true) => VmClockLeap::BeforeInsertion,
                (true, false) => VmClockLeap::BeforeDeletion,
            }
        } else if second == step.at && is_insertion {
            VmClockLeap::Inserted
        } else {
            let begin = step.at + i64::from(is_insertion) - i64::from(step.after);
            match (month(second - i64::from(step.after)) == month(begin), is_insertion) {
                (false, _) => VmClockLeap::None,
                (true, true) => VmClockLeap::AfterInsertion,
                (true, false) => VmClockLeap::AfterDeletion,
            }
        }
    }

    /// The leap second that is announced for the end of this month.
    pub const fn announced(self) -> Leap {
        match self {
            VmClockLeap::BeforeInsertion => Leap::Insert,
            VmClockLeap::BeforeDeletion => Leap::Delete,
            _ => Leap::None,
        }
    }
}

/// The time that a VMClock gives: a line through one reading of the counter, with its errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmClockLine {
    /// The disruption marker: readings of the counter from before another marker have no place on this line.
    pub marker: u64,
    /// Which counter.
    pub counter_id: CounterId,
    /// A reading of it.
    pub counter: Counter,
    /// The time then.
    pub time: Moment<Tai>,
    /// The length of a tick.
    pub period: Period,
    /// The standard uncertainty of `time`, and how fast it grows away from `counter`.
    pub uncertainty: (StandardUncertainty, GrowthRate),
    /// The largest error of `time`, and how fast it grows away from `counter`.
    pub bound: (Bound, GrowthRate),
    /// TAI - UTC at `time` [s].
    pub tai_offset: i16,
    /// The leap second near `time`.
    pub leap: VmClockLeap,
    /// How far this may be trusted: synchronised or holdover.
    pub status: Status,
}

/// Why a page gives no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmClockRefused {
    /// It was written each time that it was looked at.
    Torn,
    /// It offers the disruption marker alone, as that of QEMU does.
    NoTime,
    /// It is for a counter that is not known here.
    UnknownCounter,
    /// Its scale is neither TAI nor UTC with the offset stated, or is within an inserted second of UTC.
    UnknownScale,
    /// The host says that its time is not to be relied upon.
    Unsynchronised,
    /// It states no largest error.
    NoBound,
    /// What is there is no time or no period.
    Malformed,
}

impl VmClockRefused {
    /// The name in counts.
    pub const fn name(self) -> &'static str {
        match self {
            VmClockRefused::Torn => "torn",
            VmClockRefused::NoTime => "no-time",
            VmClockRefused::UnknownCounter => "other-counter",
            VmClockRefused::UnknownScale => "unknown-scale",
            VmClockRefused::Unsynchronised => "unsynchronised",
            VmClockRefused::NoBound => "no-bound",
            VmClockRefused::Malformed => "malformed",
        }
    }
}

/// The words of a page, each loaded once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmClockWords(pub [u64; USED]);

impl VmClockWords {
    /// The words of a line, with sequence 0; `None` where no page can say it: another counter, a time before 1970.
    /// `step` is the leap step around the line's time. The figures of errors are rounded up.
    pub fn of(line: &VmClockLine) -> Option<Self> {
        let counter_id = match line.counter_id {
            CounterId::Tsc => COUNTER_TSC,
            CounterId::ArmVirtual => COUNTER_ARM,
            _ => return None,
        };
        let status = match line.status {
            Status::Synchronised | Status::WarmingUp => STATUS_SYNCHRONISED,
            Status::Holdover => STATUS_FREE_RUNNING,
            Status::Unsynchronised => STATUS_UNKNOWN,
        };
        let units = line.time.since_origin().units();
        let seconds = u64::try_from(units >> 64).ok()?;
        let nanos = |span: Span| u64::try_from(Bound::of(span).as_nanos_up()).unwrap_or(u64::MAX);
        let per_tick =
            |growth: GrowthRate| ((u128::from(growth.units()) * u128::from(line.period.mantissa())) >> 64) as u64 + 1;
        let [low, high] = line.tai_offset.to_le_bytes();
        Some(VmClockWords([
            u64::from(MAGIC) | (super::BYTES as u64) << 32,
            u64::from(VERSION) | u64::from(counter_id) << 16 | u64::from(SCALE_TAI) << 24,
            line.marker,
            flag::ALL,
            u64::from_le_bytes([0, 0, status, 0, low, high, line.leap as u8, line.period.shift()]),
            line.counter.raw(),
            line.period.mantissa(),
            per_tick(line.uncertainty.1),
            per_tick(line.bound.1),
            seconds,
            units as u64,
            nanos(line.uncertainty.0.as_span()),
            nanos(line.bound.0.as_span()),
        ]))
    }

    /// The same with the status unknown: what is there is not to be relied upon.
    pub(super) fn without_time(mut self) -> Self {
        self.0[STATE] = with_octet(self.0[STATE], 2, STATUS_UNKNOWN);
        self
    }

    /// The same with the status synchronised: for who knows that the line was withheld.
    pub(super) fn with_time(mut self) -> Self {
        self.0[STATE] = with_octet(self.0[STATE], 2, STATUS_SYNCHRONISED);
        self
    }

    /// What the words say.
    ///
    /// # Errors
    /// They give no time.
    pub fn line(&self) -> Result<VmClockLine, VmClockRefused> {
        let [_, kind, marker, flags, state, counter, mantissa, est, most, seconds, fraction, est_ns, most_ns] = self.0;
        let [_, _, counter_id, scale, ..] = kind.to_le_bytes();
        let [_, _, status, _, low, high, leap, shift] = state.to_le_bytes();
        let (tai_offset, leap) = (i16::from_le_bytes([low, high]), VmClockLeap::from_code(leap));
        let counter_id = match counter_id {
            COUNTER_TSC => CounterId::Tsc,
            COUNTER_ARM => CounterId::ArmVirtual,
            COUNTER_NONE => return Err(VmClockRefused::NoTime),
            _ => return Err(VmClockRefused::UnknownCounter),
        };
        let status = match status {
            STATUS_SYNCHRONISED => Status::Synchronised,
            STATUS_FREE_RUNNING => Status::Holdover,
            _ => return Err(VmClockRefused::Unsynchronised),
        };
        let from_tai = match scale {
            SCALE_TAI => 0,
            SCALE_UTC if flags & flag::TAI_OFFSET != 0 && leap != VmClockLeap::Inserted => i64::from(tai_offset),
            _ => return Err(VmClockRefused::UnknownScale),
        };
        if flags & flag::TIME_ERROR == 0 {
            return Err(VmClockRefused::NoBound);
        }
        let seconds = i64::try_from(seconds).ok().and_then(|seconds| seconds.checked_add(from_tai));
        let seconds = seconds.ok_or(VmClockRefused::Malformed)?;
        let error = |nanos: u64| Span::from_nanos(nanos.into()) + Span::from_units(1);
        let growth = |stated: u64, per_tick| if flags & stated == 0 { UNKNOWN } else { relative(per_tick, mantissa) };
        let uncertainty = match flags & flag::TIME_UNCERTAINTY {
            0 => StandardUncertainty::UNKNOWN,
            _ => StandardUncertainty::of(error(est_ns)),
        };
        Ok(VmClockLine {
            marker,
            counter_id,
            counter: Counter::from_raw(counter),
            time: Moment::from_origin(Span::from_units(i128::from(seconds) << 64 | i128::from(fraction))),
            period: period(mantissa, shift).ok_or(VmClockRefused::Malformed)?,
            uncertainty: (uncertainty, growth(flag::PERIOD_UNCERTAINTY, est)),
            bound: (Bound::of(error(most_ns)), growth(flag::PERIOD_ERROR, most)),
            tai_offset,
            leap,
            status,
        })
    }
}

impl VmClockLine {
    /// The leap step around the line's time, as the page has it.
    #[must_use]
    pub fn with_leap(self, step: LeapStep) -> Self {
        let is_before = self.time.whole_seconds() < step.at;
        let tai_offset = if is_before { step.before } else { step.after };
        let tai_offset = i16::try_from(tai_offset).unwrap_or_default();
        VmClockLine { tai_offset, leap: VmClockLeap::around(self.time, step), ..self }
    }

    /// The time at a reading of the same counter, and its largest error.
    pub fn at(&self, counter: Counter) -> (Moment<Tai>, Bound) {
        let age = self.period * (counter - self.counter);
        (self.time + age, self.bound.0.grown(age, self.bound.1))
    }
}

/// What a page of this first word and these flags shows of the machine's past by the words of marker and generation.
pub(super) const fn mark_of(first: u64, flags: u64, [disruption, word]: [u64; 2]) -> MachineMark {
    let has_generation = (first >> 32) as u32 >= SIZE_WITH_GENERATION && flags & flag::GENERATION != 0;
    MachineMark { disruption, generation: if has_generation { Some(word) } else { None } }
}

const UNKNOWN: GrowthRate = GrowthRate::from_units(u64::MAX);

fn with_octet(word: u64, place: usize, octet: u8) -> u64 {
    let mut bytes = word.to_le_bytes();
    if let Some(found) = bytes.get_mut(place) {
        *found = octet;
    }
    u64::from_le_bytes(bytes)
}

/// A period that a writer may have left with leading zeros.
fn period(mantissa: u64, shift: u8) -> Option<Period> {
    let zeros = mantissa.leading_zeros();
    let shift = u32::from(shift) + zeros;
    Period::from_parts(mantissa.checked_shl(zeros)?, u8::try_from(shift).ok()?)
}

/// An error of the period per tick, relative to the period, rounded up.
fn relative(per_tick: u64, mantissa: u64) -> GrowthRate {
    let units = (u128::from(per_tick) << 64).checked_div(mantissa.into()).unwrap_or(u128::MAX);
    GrowthRate::from_units(u64::try_from(units).unwrap_or(u64::MAX).saturating_add(1))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ffclock_units::{LeapTable, Rate};
    use proptest::prelude::*;

    pub(in super::super) fn line() -> VmClockLine {
        let growth = |ppm| GrowthRate::of(Rate::from_ppm(ppm));
        let line = VmClockLine {
            marker: 7,
            counter_id: CounterId::Tsc,
            counter: Counter::from_raw(5_000_000_000),
            time: Moment::from_origin(Span::from_millis(1_795_253_437_250)),
            period: Period::from_hertz(2.6e9).unwrap(),
            uncertainty: (StandardUncertainty::of(Span::from_micros(2)), growth(0.01)),
            bound: (Bound::of(Span::from_micros(50)), growth(1.0)),
            tai_offset: 0,
            leap: VmClockLeap::None,
            status: Status::Synchronised,
        };
        line.with_leap(LeapTable::built_in().step_around(line.time))
    }

    /// Offsets and values of `linux/vmclock-abi.h`.
    #[test]
    fn the_page_is_laid_out_as_the_kernel_has_it() {
        let VmClockWords(words) = VmClockWords::of(&line()).unwrap();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(bytes[..12], *b"VCLK\x00\x10\x00\x00\x01\x00\x01\x01");
        assert_eq!((long(0x10), long(0x18)), (7, 0x79));
        assert_eq!(bytes[0x20..0x28], [0, 0, 2, 0, 37, 0, 0, line().period.shift()]);
        assert_eq!((long(0x28), long(0x30)), (5_000_000_000, line().period.mantissa()));
        assert_eq!((long(0x48), long(0x50)), (1_795_253_437, 1 << 62));
        assert_eq!((long(0x58), long(0x60)), (2_000, 50_000));
    }

    #[test]
    fn leap_seconds_have_their_names_in_their_months() {
        let at = 1_483_228_800 + 36;
        let steps = [LeapStep { before: 36, after: 37, at }, LeapStep { before: 36, after: 35, at }];
        let seen = |step: LeapStep, away: i64| {
            let time = Moment::from_origin(Span::from_secs(step.at + away));
            let line = VmClockLine { time, ..line() }.with_leap(step);
            (line.leap, line.tai_offset)
        };
        for (away, leap, offset) in [
            (-32 * 86_400, VmClockLeap::None, 36),
            (-1, VmClockLeap::BeforeInsertion, 36),
            (0, VmClockLeap::Inserted, 37),
            (1, VmClockLeap::AfterInsertion, 37),
            (30 * 86_400, VmClockLeap::AfterInsertion, 37),
            (32 * 86_400, VmClockLeap::None, 37),
        ] {
            assert_eq!(seen(steps[0], away), (leap, offset), "{away}");
        }
        assert_eq!(seen(steps[1], -1), (VmClockLeap::BeforeDeletion, 36));
        assert_eq!(seen(steps[1], 0), (VmClockLeap::AfterDeletion, 35));
        assert_eq!(VmClockLeap::BeforeDeletion.announced(), Leap::Delete);
    }

    #[test]
    fn what_gives_no_time_is_refused_with_the_reason() {
        let words = VmClockWords::of(&line()).unwrap();
        let changed = |word: usize, octet: usize, value: u8| {
            let VmClockWords(mut words) = words;
            words[word] = with_octet(words[word], octet, value);
            VmClockWords(words).line().unwrap_err()
        };
        assert_eq!(changed(1, 2, 0xff), VmClockRefused::NoTime);
        assert_eq!(changed(1, 2, 2), VmClockRefused::UnknownCounter);
        assert_eq!(changed(1, 3, 2), VmClockRefused::UnknownScale);
        assert_eq!(changed(4, 2, 4), VmClockRefused::Unsynchronised);
        assert_eq!(changed(3, 0, 0x39), VmClockRefused::NoBound);
        assert_eq!(changed(4, 7, 200), VmClockRefused::Malformed);
        assert_eq!(changed(9, 7, 0xff), VmClockRefused::Malformed);
        assert_eq!(words.without_time().line(), Err(VmClockRefused::Unsynchronised));
        assert!(VmClockWords::of(&VmClockLine { counter_id: CounterId::MonotonicRaw, ..line() }).is_none());
        let mut utc = words;
        utc.0[1] = with_octet(utc.0[1], 3, SCALE_UTC);
        assert_eq!(utc.line().unwrap().time - line().time, Span::from_secs(37));
    }

    proptest! {
        /// What is written comes back, with errors that are no smaller and hardly larger.
        #[test]
        fn a_line_comes_back(counter: u64, seconds in 0_i64..1 << 40, fraction: u64, hertz in 1e6..1e10,
            nanos in 0_i64..1_000_000_000_000, growth: u64) {
            let time = Moment::from_origin(Span::from_units(i128::from(seconds) << 64 | i128::from(fraction)));
            let bound = (Bound::of(Span::from_nanos(nanos.into())), GrowthRate::from_units(growth));
            let written = VmClockLine {
                counter: Counter::from_raw(counter), time, period: Period::from_hertz(hertz).unwrap(), bound, ..line()
            };
            let read = VmClockWords::of(&written).unwrap().line().unwrap();
            prop_assert!(read.bound.0 >= bound.0 && read.bound.0.as_span() <= bound.0.as_span() + Span::from_nanos(2));
            prop_assert!(read.bound.1 >= bound.1 && read.bound.1.units() <= growth.saturating_add(8));
            prop_assert!(read.uncertainty.0 >= written.uncertainty.0 && read.uncertainty.1 >= written.uncertainty.1);
            prop_assert_eq!(VmClockLine { uncertainty: written.uncertainty, bound, ..read }, written);
        }

        #[test]
        fn any_words_are_refused_or_give_a_line(words: [u64; USED]) {
            if let Ok(line) = VmClockWords(words).line() {
                let (_, bound) = line.at(line.counter);
                prop_assert!(bound >= line.bound.0);
            }
        }
    }
}
