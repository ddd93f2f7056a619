//! The leap second to believe in, if servers announce different ones.
//!
//! The rule is that of the vote about the time. The latest announcement of each believed server that answers is its
//! vote, of the trusted ones where there are any. A leap second is accepted when more servers announce it than do not,
//! and withdrawn when more do not than do or did before they fell silent. Without a majority everything stays as it
//! was. A leap second that has happened is history, and so is one that is about to: around it servers clear what they
//! announced, each by its own clock.
//!
//! Nothing is decided a month in advance. Servers announce a leap second for the end of the present month, and some
//! leave their indicator set for hours after one. A daemon that has just started then takes it for one at the end of
//! the new month.

use ffclock_units::{LeapAnnouncement, LeapTable, Moment, Utc};
use std::cmp::Ordering;

/// A server's latest announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vote {
    pub(crate) announced: Option<LeapAnnouncement>,
    /// Whether it no longer answers: what it announced then still speaks for a leap second, and nothing against one.
    pub(crate) is_silent: bool,
}

impl Vote {
    /// The word of a server that answers.
    pub(crate) const fn of(announced: Option<LeapAnnouncement>) -> Self {
        Vote { announced, is_silent: false }
    }
}

/// No month is shorter than 28 days, so an announcement within the last 27 days before its leap was not made on the
/// first day of a month.
const DECIDED_WITHIN_SECONDS: i64 = 27 * 86_400;

/// A leap second is not withdrawn this shortly before it. Servers clear their announcement early by the error of their
/// clocks, and masters of PTP by up to two intervals between messages that announce.
const SETTLED_BEFORE_SECONDS: i64 = 60;

/// The outcome of the vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The leap seconds that hold.
    pub(crate) table: LeapTable,
    /// Not all servers say the same.
    pub(crate) is_disputed: bool,
    /// A leap second that cannot be accepted, since the table already holds one that can no longer be withdrawn.
    pub(crate) is_one_too_many: bool,
}

/// The leap seconds that hold from now on, after those of `table`.
pub(crate) fn decide(table: LeapTable, now: Moment<Utc>, votes: &[Vote]) -> Decision {
    let is_ahead = |leap: &LeapAnnouncement| {
        let seconds = leap.utc_second.saturating_sub(now.whole_seconds());
        (1..=DECIDED_WITHIN_SECONDS).contains(&seconds)
    };
    let word = |vote: &Vote| vote.announced.filter(is_ahead);
    let heard: Vec<Vote> = votes.iter().copied().filter(|vote| !vote.is_silent).collect();
    let elected = heard.iter().filter_map(word).find(|leap| balance(*leap, &heard) == Ordering::Greater);
    let stays = |known: &LeapAnnouncement| balance(*known, votes) != Ordering::Less;
    let kept = table.announced().filter(stays);
    let is_disputed = heard.iter().any(|vote| word(vote) != heard.first().and_then(word));
    let is_settled = |known: LeapAnnouncement| known.utc_second - SETTLED_BEFORE_SECONDS <= now.whole_seconds();
    let settled = table.announced().filter(|known| is_settled(*known));
    let decided = settled.or(elected).or(kept).map_or(LeapTable::built_in(), LeapTable::with);
    let is_one_too_many = settled.is_some() && elected.is_some_and(|leap| Some(leap) != settled);
    Decision { table: decided, is_disputed, is_one_too_many }
}

/// How many servers announce a leap second against how many do not.
fn balance(leap: LeapAnnouncement, votes: &[Vote]) -> Ordering {
    let agreeing = votes.iter().filter(|vote| vote.announced == Some(leap)).count();
    let against = votes.iter().filter(|vote| !vote.is_silent && vote.announced != Some(leap)).count();
    agreeing.cmp(&against)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Span;

    /// The end of June 2027.
    const MIDNIGHT: i64 = 1_814_400_000;
    const INSERT: LeapAnnouncement = LeapAnnouncement { utc_second: MIDNIGHT, change: 1 };
    const DELETE: LeapAnnouncement = LeapAnnouncement { utc_second: MIDNIGHT, change: -1 };

    fn before(seconds: i64) -> Moment<Utc> {
        Moment::from_origin(Span::from_secs(MIDNIGHT - seconds))
    }

    fn votes(words: &[Option<LeapAnnouncement>]) -> Vec<Vote> {
        words.iter().map(|announced| Vote::of(*announced)).collect()
    }

    fn decided(words: &[Option<LeapAnnouncement>]) -> Option<LeapAnnouncement> {
        decide(LeapTable::built_in(), before(3600), &votes(words)).table.announced()
    }

    #[test]
    fn a_majority_decides() {
        assert_eq!(decided(&[]), None);
        assert_eq!(decided(&[Some(INSERT)]), Some(INSERT));
        assert_eq!(decided(&[Some(INSERT), None]), None, "one against one");
        assert_eq!(decided(&[None, Some(INSERT)]), None);
        assert_eq!(decided(&[Some(INSERT), None, None]), None, "one liar among three");
        assert_eq!(decided(&[None, Some(INSERT), Some(INSERT)]), Some(INSERT));
        assert_eq!(decided(&[Some(INSERT), Some(DELETE)]), None);
        assert_eq!(decided(&[Some(INSERT), Some(DELETE), Some(DELETE)]), Some(DELETE));
        assert_eq!(decided(&[Some(INSERT), Some(DELETE), None, None]), None);
    }

    #[test]
    fn what_was_announced_can_be_withdrawn_until_it_is_about_to_happen() {
        let announced = LeapTable::with(INSERT);
        assert_eq!(decide(announced, before(61), &votes(&[None])).table, LeapTable::built_in());
        // The inserted second has the label of the one before.
        for late in [60, 2, 1, 0, -1, -86_400, -86_400 * 300] {
            for words in [[None], [Some(INSERT)], [Some(DELETE)]] {
                assert_eq!(decide(announced, before(late), &votes(&words)).table, announced, "{late} {words:?}");
            }
        }
        assert!(!decide(announced, before(1), &votes(&[Some(INSERT)])).is_one_too_many);
    }

    #[test]
    fn without_a_majority_everything_stays() {
        let announced = LeapTable::with(INSERT);
        for words in [[Some(INSERT), None], [None, Some(INSERT)], [Some(DELETE), Some(INSERT)]] {
            let decision = decide(announced, before(3600), &votes(&words));
            assert_eq!((decision.table, decision.is_disputed), (announced, true), "{words:?}");
        }
        let overruled = decide(announced, before(3600), &votes(&[Some(INSERT), None, None]));
        assert_eq!(overruled.table, LeapTable::built_in());
    }

    #[test]
    fn what_silent_servers_announced_keeps_a_leap_second_and_makes_none() {
        let silent = |announced| Vote { announced, is_silent: true };
        let announced = LeapTable::with(INSERT);
        let by_two = [silent(Some(INSERT)), silent(Some(INSERT)), Vote::of(None)];
        assert_eq!(decide(announced, before(3600), &by_two).table, announced, "two have said it, one says nothing");
        assert_eq!(decide(LeapTable::built_in(), before(3600), &by_two).table, LeapTable::built_in());
        let withdrawn = [silent(Some(INSERT)), Vote::of(None), Vote::of(None)];
        assert_eq!(decide(announced, before(3600), &withdrawn).table, LeapTable::built_in());
        let one = [silent(None), silent(None), Vote::of(Some(INSERT))];
        assert_eq!(decide(LeapTable::built_in(), before(3600), &one).table, announced);
        assert!(!decide(announced, before(3600), &[silent(Some(INSERT)), silent(None)]).is_disputed);
    }

    #[test]
    fn an_indicator_left_over_from_the_last_leap_is_not_believed() {
        let next = LeapAnnouncement { utc_second: MIDNIGHT + 31 * 86_400, change: 1 };
        let words = votes(&[Some(next)]);
        for after in [1, 3600, 86_399] {
            assert_eq!(decide(LeapTable::built_in(), before(-after), &words).table, LeapTable::built_in());
        }
        assert_eq!(decide(LeapTable::built_in(), before(-5 * 86_400), &words).table, LeapTable::with(next));
    }

    #[test]
    fn a_second_leap_does_not_undo_the_first() {
        let next = LeapAnnouncement { utc_second: MIDNIGHT + 31 * 86_400, change: 1 };
        let decision = decide(LeapTable::with(INSERT), before(-10 * 86_400), &votes(&[Some(next)]));
        assert_eq!(decision.table, LeapTable::with(INSERT));
        assert!(decision.is_one_too_many);
    }

    #[test]
    fn a_dispute_is_seen() {
        let now = before(3600);
        assert!(decide(LeapTable::built_in(), now, &votes(&[Some(INSERT), None])).is_disputed);
        assert!(!decide(LeapTable::built_in(), now, &votes(&[Some(INSERT), Some(INSERT)])).is_disputed);
        assert!(!decide(LeapTable::built_in(), now, &votes(&[None, None])).is_disputed);
    }
}
