//! Leap seconds: the only way from UTC to TAI and back.

use crate::{Moment, Server, Span, Tai, Utc};

/// TAI - UTC in seconds from each of these UTC seconds (POSIX) on. Source: IERS Bulletin C, up to the one of
/// 2017-01-01.
const HISTORY: [(i64, i32); 28] = [
    (63_072_000, 10),
    (78_796_800, 11),
    (94_694_400, 12),
    (126_230_400, 13),
    (157_766_400, 14),
    (189_302_400, 15),
    (220_924_800, 16),
    (252_460_800, 17),
    (283_996_800, 18),
    (315_532_800, 19),
    (362_793_600, 20),
    (394_329_600, 21),
    (425_865_600, 22),
    (489_024_000, 23),
    (567_993_600, 24),
    (631_152_000, 25),
    (662_688_000, 26),
    (709_948_800, 27),
    (741_484_800, 28),
    (773_020_800, 29),
    (820_454_400, 30),
    (867_715_200, 31),
    (915_148_800, 32),
    (1_136_073_600, 33),
    (1_230_768_000, 34),
    (1_341_100_800, 35),
    (1_435_708_800, 36),
    (1_483_228_800, 37),
];

/// A leap second that a server has announced and the built-in history does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeapAnnouncement {
    /// The POSIX second of UTC that begins right after the leap: midnight.
    pub utc_second: i64,
    /// +1 when a second is inserted before it, -1 when one is left out.
    pub change: i8,
}

/// One change of TAI - UTC, as a page carries it: good for all moments between the change before and the change after
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeapStep {
    /// TAI - UTC before the change [s].
    pub before: i32,
    /// TAI - UTC from the change on [s].
    pub after: i32,
    /// The first TAI second with the new value: the inserted second itself, or the one after the second left out.
    pub at: i64,
}

/// TAI - UTC over all of history, and the next leap second where one is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LeapTable {
    announced: Option<LeapAnnouncement>,
}

impl LeapTable {
    /// The built-in history alone.
    pub const fn built_in() -> Self {
        LeapTable { announced: None }
    }

    /// The built-in history and an announced leap second after it.
    #[must_use]
    pub const fn with(announced: LeapAnnouncement) -> Self {
        LeapTable { announced: Some(announced) }
    }

    /// The leap second that was announced, if any.
    pub const fn announced(self) -> Option<LeapAnnouncement> {
        self.announced
    }

    fn steps(&self) -> impl DoubleEndedIterator<Item = LeapStep> + '_ {
        let last = HISTORY[HISTORY.len() - 1];
        debug_assert!(HISTORY.is_sorted_by(|one, next| one.0 < next.0), "searches rely on the order");
        let known = HISTORY.windows(2).map(|pair| step(pair[0].1, pair[1].0, pair[1].1));
        let next = self.announced.filter(|next| next.utc_second > last.0);
        known.chain(next.map(|next| step(last.1, next.utc_second, last.1 + next.change as i32)))
    }

    /// The change that matters around `moment`: the next one if it is known, otherwise the last one.
    pub fn step_around(&self, moment: Moment<Tai>) -> LeapStep {
        let second = moment.whole_seconds();
        let found = self.steps().find(|step| step.at > second).or_else(|| self.steps().next_back());
        debug_assert!(found.is_some(), "the history has steps");
        found.unwrap_or(step(HISTORY[0].1, HISTORY[0].0, HISTORY[0].1))
    }

    /// TAI - UTC at a TAI second.
    fn offset_at_tai(&self, second: i64) -> i32 {
        self.steps().rev().find(|step| step.at <= second).map_or(HISTORY[0].1, |step| step.after)
    }

    /// From TAI to UTC. Through an inserted second, UTC shows the second before it again.
    pub fn utc_from_tai(&self, moment: Moment<Tai>) -> Moment<Utc> {
        let offset = self.offset_at_tai(moment.whole_seconds());
        Moment::from_origin(moment.since_origin() - Span::from_secs(offset as i64))
    }

    /// From UTC to TAI. A label that an inserted second repeats means its first use.
    pub fn tai_from_utc(&self, moment: Moment<Utc>) -> Moment<Tai> {
        let second = moment.whole_seconds();
        let offset =
            self.steps().rev().find(|step| step.utc_second() <= second).map_or(HISTORY[0].1, |step| step.after);
        Moment::from_origin(moment.since_origin() + Span::from_secs(offset as i64))
    }

    /// Takes the server at its word that its scale is UTC.
    pub fn tai_from_server(&self, moment: Moment<Server>) -> Moment<Tai> {
        self.tai_from_utc(Moment::from_origin(moment.since_origin()))
    }
}

impl LeapStep {
    /// The POSIX second of UTC that begins right after the leap: midnight.
    pub const fn utc_second(self) -> i64 {
        self.at - self.smaller_offset()
    }

    const fn smaller_offset(self) -> i64 {
        if self.before < self.after { self.before as i64 } else { self.after as i64 }
    }
}

/// The step to `after` seconds of TAI - UTC at the UTC second `utc`. As in the Linux kernel, UTC steps back when the
/// inserted second begins, so that 23:59:60 carries the label of 23:59:59.
const fn step(before: i32, utc: i64, after: i32) -> LeapStep {
    let step = LeapStep { before, after, at: 0 };
    LeapStep { before, after, at: utc + step.smaller_offset() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(seconds: i64) -> Moment<Utc> {
        Moment::from_origin(Span::from_secs(seconds))
    }

    #[test]
    fn offsets_match_the_bulletins() {
        let table = LeapTable::built_in();
        for (second, offset) in [(0, 10), (1_483_228_799, 36), (1_483_228_800, 37), (1_800_000_000, 37)] {
            let tai = table.tai_from_utc(utc(second));
            assert_eq!(tai.whole_seconds() - second, offset, "{second}");
            assert_eq!(table.utc_from_tai(tai), utc(second));
        }
    }

    #[test]
    fn an_inserted_second_repeats_the_label_before_it() {
        let table = LeapTable::built_in();
        let midnight = table.tai_from_utc(utc(1_483_228_800));
        assert_eq!(midnight.whole_seconds(), 1_483_228_837);
        let inserted = midnight - Span::from_millis(500);
        assert_eq!(table.utc_from_tai(inserted), utc(1_483_228_799) + Span::from_millis(500));
        assert_eq!(table.utc_from_tai(inserted - Span::from_secs(1)), utc(1_483_228_799) + Span::from_millis(500));
        assert_eq!(table.utc_from_tai(midnight), utc(1_483_228_800));
    }

    #[test]
    fn an_announced_leap_is_the_step_ahead() {
        let leap = LeapAnnouncement { utc_second: 1_900_000_800, change: 1 };
        let table = LeapTable::with(leap);
        let before = table.tai_from_utc(utc(1_900_000_000));
        assert_eq!(table.step_around(before), LeapStep { before: 37, after: 38, at: 1_900_000_837 });
        assert_eq!(table.utc_from_tai(table.tai_from_utc(utc(1_900_000_900))), utc(1_900_000_900));
        assert_eq!(table.tai_from_utc(utc(1_900_000_900)).whole_seconds(), 1_900_000_938);
    }

    #[test]
    fn a_second_left_out_is_skipped() {
        let table = LeapTable::with(LeapAnnouncement { utc_second: 1_900_000_800, change: -1 });
        let last = table.tai_from_utc(utc(1_900_000_798));
        assert_eq!(table.utc_from_tai(last + Span::from_secs(1)), utc(1_900_000_800));
    }

    #[test]
    fn without_an_announcement_the_last_step_is_reported() {
        let step = LeapTable::built_in().step_around(Moment::from_origin(Span::from_secs(1_900_000_000)));
        assert_eq!((step.before, step.after, step.at), (36, 37, 1_483_228_836));
    }
}
