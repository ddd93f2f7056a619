//! The leap second to believe in, if servers announce different ones.
//!
//! The latest announcement of each server is its vote. A leap second is accepted when more servers announce it than do
//! not. If the votes are even, the published server decides, since the bound is only as good as its claims anyway. The
//! same rule withdraws an accepted leap second, until it has happened: from then on it is history.
//!
//! Nothing is decided a month in advance. Servers announce a leap second for the end of the present month, and some
//! leave their indicator set for hours after one. A daemon that has just started then takes it for one at the end of
//! the new month.

use ffclock_units::{LeapAnnouncement, LeapTable, Moment, Utc};

/// A server's latest announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vote {
    pub(crate) announced: Option<LeapAnnouncement>,
    /// Whether it is the published server.
    pub(crate) published: bool,
}

/// No month is shorter than 28 days, so an announcement within the last 27 days before its leap was not made on the
/// first day of a month.
const DECIDED_WITHIN_SECONDS: i64 = 27 * 86_400;

/// The outcome of the vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The leap seconds that hold.
    pub(crate) table: LeapTable,
    /// Not all servers say the same.
    pub(crate) is_disputed: bool,
    /// A leap second that cannot be accepted, since the table already holds one that has happened.
    pub(crate) is_one_too_many: bool,
}

/// The leap seconds that hold from now on, after those of `table`.
pub(crate) fn decide(table: LeapTable, now: Moment<Utc>, votes: &[Vote]) -> Decision {
    let is_ahead = |leap: &LeapAnnouncement| {
        let seconds = leap.utc_second.saturating_sub(now.whole_seconds());
        (1..=DECIDED_WITHIN_SECONDS).contains(&seconds)
    };
    let word = |vote: &Vote| vote.announced.filter(is_ahead);
    let elected = votes.iter().filter_map(word).find(|leap| carries(*leap, votes));
    let is_disputed = votes.iter().any(|vote| word(vote) != votes.first().and_then(word));
    let has_happened = table.announced().is_some_and(|known| known.utc_second <= now.whole_seconds());
    let decided = if has_happened { table } else { elected.map_or(LeapTable::built_in(), LeapTable::with) };
    Decision { table: decided, is_disputed, is_one_too_many: has_happened && elected.is_some() }
}

fn carries(leap: LeapAnnouncement, votes: &[Vote]) -> bool {
    let (agreeing, others): (Vec<&Vote>, Vec<&Vote>) = votes.iter().partition(|vote| vote.announced == Some(leap));
    match agreeing.len().cmp(&others.len()) {
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => agreeing.iter().any(|vote| vote.published),
        std::cmp::Ordering::Less => false,
    }
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

    /// The first of the servers is the published one.
    fn votes(words: &[Option<LeapAnnouncement>]) -> Vec<Vote> {
        let vote = |(index, word): (usize, &Option<_>)| Vote { announced: *word, published: index == 0 };
        words.iter().enumerate().map(vote).collect()
    }

    fn decided(words: &[Option<LeapAnnouncement>]) -> Option<LeapAnnouncement> {
        decide(LeapTable::built_in(), before(3600), &votes(words)).table.announced()
    }

    #[test]
    fn the_majority_decides_and_in_a_tie_the_published_server() {
        assert_eq!(decided(&[]), None);
        assert_eq!(decided(&[Some(INSERT)]), Some(INSERT));
        assert_eq!(decided(&[Some(INSERT), None]), Some(INSERT));
        assert_eq!(decided(&[None, Some(INSERT)]), None);
        assert_eq!(decided(&[Some(INSERT), None, None]), None, "one liar among three");
        assert_eq!(decided(&[None, Some(INSERT), Some(INSERT)]), Some(INSERT));
        assert_eq!(decided(&[Some(INSERT), Some(DELETE)]), Some(INSERT));
        assert_eq!(decided(&[Some(INSERT), Some(DELETE), Some(DELETE)]), Some(DELETE));
        assert_eq!(decided(&[Some(INSERT), Some(DELETE), None, None]), None);
    }

    #[test]
    fn what_was_announced_can_be_withdrawn_until_it_has_happened() {
        let announced = LeapTable::with(INSERT);
        assert_eq!(decide(announced, before(1), &votes(&[None])).table, LeapTable::built_in());
        for late in [0, -1, -86_400, -86_400 * 300] {
            assert_eq!(decide(announced, before(late), &votes(&[None])).table, announced, "{late}");
            assert_eq!(decide(announced, before(late), &votes(&[Some(INSERT)])).table, announced, "{late}");
        }
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
