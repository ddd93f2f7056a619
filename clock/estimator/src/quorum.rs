//! Which servers to believe, from what each of them proves about the true time.
//!
//! Each server gives a closed interval that holds the true time as long as the server's claim about itself is true.
//! Where more than half of the electorate share an instant, at most a minority is wrong if that instant is the true
//! one; a server that misses every such instant is a falseticker. This is the intersection of Marzullo (1984), the
//! ancestor of RFC 5905 section 11.2.1, over proven intervals instead of midpoints.

use crate::ProvenInterval;
use alloc::vec::Vec;
use ffclock_units::{Moment, Tai};

/// How a server's interval stands to those of the majority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Belief {
    /// It belongs to every largest set of servers that agree.
    Truechimer,
    /// It belongs to one of the largest sets and not to another: no vote can say which of them is wrong.
    Undecided,
    /// It belongs to none of them: its claim about itself is false.
    Falseticker,
}

/// The belief in each server, in the order of `intervals`, all at the same counter reading; `None` when no instant is
/// shared by more than half of `electorate`, the number of servers that have a vote. A server that has not answered yet
/// may have one.
///
/// With a majority there is always a truechimer: two sets of more than half share a member, and since they are
/// intervals, the members that the outermost sets share belong to all sets between them.
pub fn beliefs(intervals: &[ProvenInterval], electorate: usize) -> Option<Vec<Belief>> {
    // Coverage only ever rises where an interval begins, so a most-covered region begins at one of these instants.
    let coverage = |instant| intervals.iter().filter(|interval| interval.contains(instant)).count();
    let most = intervals.iter().map(|interval| coverage(interval.earliest)).max()?;
    if 2 * most <= electorate.max(intervals.len()) {
        return None;
    }
    let begins = intervals.iter().map(|interval| interval.earliest);
    let leading: Vec<Moment<Tai>> = begins.filter(|&begin| coverage(begin) == most).collect();
    let belief = |interval: &ProvenInterval| match leading.iter().filter(|&&begin| interval.contains(begin)).count() {
        0 => Belief::Falseticker,
        shared if shared == leading.len() => Belief::Truechimer,
        _ => Belief::Undecided,
    };
    let beliefs: Vec<Belief> = intervals.iter().map(belief).collect();
    debug_assert!(beliefs.contains(&Belief::Truechimer), "two majorities share a member");
    Some(beliefs)
}

#[cfg(test)]
mod tests {
    use super::Belief::{Falseticker, Truechimer, Undecided};
    use super::*;
    use alloc::vec;
    use ffclock_units::Span;
    use proptest::prelude::*;

    fn of_micros((earliest, latest): (i64, i64)) -> ProvenInterval {
        let moment = |micros| Moment::from_origin(Span::from_micros(micros));
        ProvenInterval { earliest: moment(earliest), latest: moment(latest) }
    }

    fn judged(intervals: &[(i64, i64)]) -> Option<Vec<Belief>> {
        let intervals: Vec<ProvenInterval> = intervals.iter().copied().map(of_micros).collect();
        beliefs(&intervals, intervals.len())
    }

    #[test]
    fn one_server_is_believed_and_none_decides_nothing() {
        assert_eq!(judged(&[(0, 5)]), Some(vec![Truechimer]));
        assert_eq!(judged(&[]), None);
    }

    #[test]
    fn the_narrowest_claim_does_not_win_against_a_majority() {
        let liar = (50_000, 50_100);
        assert_eq!(
            judged(&[(-15_000, 15_000), (-14_000, 16_000), liar]),
            Some(vec![Truechimer, Truechimer, Falseticker])
        );
        assert_eq!(judged(&[liar, (0, 5)]), None, "one against one");
        assert_eq!(judged(&[liar, (0, 5), (7, 9)]), None, "each alone");
        assert_eq!(judged(&[liar, liar, (0, 5), (4, 9)]), None, "two against two");
    }

    #[test]
    fn two_of_five_and_three_of_seven_liars_are_outvoted_even_when_they_agree() {
        let (honest, liar) = ((-10, 10), (500, 501));
        let five = judged(&[liar, honest, honest, liar, honest]);
        assert_eq!(five, Some(vec![Falseticker, Truechimer, Truechimer, Falseticker, Truechimer]));
        let seven = judged(&[liar, liar, liar, honest, honest, honest, honest]).unwrap();
        assert_eq!(seven.iter().filter(|belief| **belief == Truechimer).count(), 4);
    }

    #[test]
    fn a_server_without_knowledge_cannot_decide_between_two_that_differ() {
        assert_eq!(judged(&[(0, 5), (100, 105), (-1_000, 1_000)]), Some(vec![Undecided, Undecided, Truechimer]));
        let four = judged(&[(0, 10), (5, 100), (5, 100), (90, 120)]);
        assert_eq!(four, Some(vec![Undecided, Truechimer, Truechimer, Undecided]));
    }

    #[test]
    fn intervals_that_touch_agree() {
        assert_eq!(judged(&[(0, 5), (5, 9)]), Some(vec![Truechimer, Truechimer]));
    }

    #[test]
    fn servers_that_are_still_expected_have_a_vote() {
        let one = [of_micros((0, 5))];
        assert_eq!(beliefs(&one, 1), Some(vec![Truechimer]));
        assert_eq!(beliefs(&one, 2), None);
        let two = [of_micros((0, 5)), of_micros((1, 6))];
        assert_eq!(beliefs(&two, 3), Some(vec![Truechimer, Truechimer]));
    }

    proptest! {
        /// As long as the liars are a minority, no honest server is a falseticker and every truechimer's interval
        /// agrees with theirs.
        #[test]
        fn no_minority_of_liars_turns_the_vote(
            honest in prop::collection::vec((0i64..1_000, 0i64..1_000), 1..9),
            liars in prop::collection::vec((-5_000i64..5_000, 0i64..1_000), 0..8),
        ) {
            let liars = &liars[..liars.len().min(honest.len() - 1)];
            // The true time is 0.
            let mut intervals: Vec<_> = honest.iter().map(|&(before, after)| of_micros((-before, after))).collect();
            intervals.extend(liars.iter().map(|&(begin, width)| of_micros((begin, begin + width))));
            let beliefs = beliefs(&intervals, intervals.len()).expect("the honest servers are a majority");
            let truth = Moment::from_origin(Span::ZERO);
            if beliefs.iter().all(|belief| *belief != Undecided) && liars.iter().all(|(begin, _)| !(-2_000..=1_000).contains(begin)) {
                prop_assert!(beliefs[..honest.len()].iter().all(|belief| *belief == Truechimer));
                for (interval, belief) in intervals.iter().zip(&beliefs) {
                    prop_assert_eq!(*belief == Truechimer, interval.contains(truth));
                }
            }
        }

        /// The order of the servers does not matter.
        #[test]
        fn the_order_of_servers_does_not_matter(
            bounds in prop::collection::vec((-50i64..50, 0i64..60), 1..9), turn in 0usize..9,
        ) {
            let intervals: Vec<_> = bounds.iter().map(|&(begin, width)| of_micros((begin, begin + width))).collect();
            let turn = turn % intervals.len();
            let mut turned = intervals.clone();
            turned.rotate_left(turn);
            let expected = beliefs(&intervals, 0).map(|mut beliefs| { beliefs.rotate_left(turn); beliefs });
            prop_assert_eq!(beliefs(&turned, 0), expected);
        }
    }
}
