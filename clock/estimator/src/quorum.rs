//! Which servers to believe, from what each of them proves about the true time.
//!
//! Each server gives a closed interval that holds the true time as long as the server's claim about itself is true.
//! Where more than half of the electorate share an instant, that instant can be the true time with a minority wrong. A
//! server that shares none of these instants is a falseticker. The intersection is that of Marzullo (1984), the
//! ancestor of RFC 5905 section 11.2.1, over proven intervals instead of midpoints.

use crate::ProvenInterval;
use alloc::vec::Vec;
use ffclock_units::{Moment, Tai};

/// How a server's interval stands to those of the majorities. A majority is a set of more than half of the electorate
/// whose intervals share an instant, and to which no further server can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Belief {
    /// It belongs to every majority.
    Truechimer,
    /// It belongs to one majority and not to another: no vote can say which of them is wrong.
    Undecided,
    /// It belongs to no majority: its claim about itself is false.
    Falseticker,
}

/// The belief in each server, in the order of `intervals`, all at the same counter reading. `None` without a majority
/// of the electorate, which is these servers and `unheard` others that have no interval yet.
///
/// With a majority there is always a truechimer: two majorities share a member, and since the sets are of intervals,
/// what the outermost majorities share belongs to all between them. Where the liars are a minority and each false
/// interval misses that of at least one honest server, every truechimer's interval holds the true time.
pub fn beliefs(intervals: &[ProvenInterval], unheard: usize) -> Option<Vec<Belief>> {
    let electorate = intervals.len() + unheard;
    let majorities: Vec<Moment<Tai>> = intervals
        .iter()
        .map(|interval| interval.earliest)
        .filter(|&instant| 2 * sharing(intervals, instant).count() > electorate && is_largest_at(intervals, instant))
        .collect();
    if majorities.is_empty() {
        return None;
    }
    let belief = |interval: &ProvenInterval| match majorities.iter().filter(|&&at| interval.contains(at)).count() {
        0 => Belief::Falseticker,
        shared if shared == majorities.len() => Belief::Truechimer,
        _ => Belief::Undecided,
    };
    let beliefs: Vec<Belief> = intervals.iter().map(belief).collect();
    debug_assert!(beliefs.contains(&Belief::Truechimer), "two majorities share a member");
    Some(beliefs)
}

fn sharing(intervals: &[ProvenInterval], instant: Moment<Tai>) -> impl Iterator<Item = &ProvenInterval> {
    intervals.iter().filter(move |interval| interval.contains(instant))
}

/// Whether no interval can be added to those that share `instant`, where one of them begins: none begins between it and
/// the earliest of their ends.
fn is_largest_at(intervals: &[ProvenInterval], instant: Moment<Tai>) -> bool {
    let end = sharing(intervals, instant).map(|interval| interval.latest).min();
    !intervals.iter().any(|other| instant < other.earliest && end.is_some_and(|end| other.earliest <= end))
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
        beliefs(&intervals, 0)
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
    fn two_liars_who_please_the_vague_servers_do_not_outvote_the_exact_one() {
        let [vague, vaguer, exact] = [(-15_000, 15_000), (-14_000, 16_000), (-100, 100)];
        let liar = (10_000, 10_100);
        let verdict = judged(&[vague, vaguer, exact, liar, liar]).unwrap();
        assert_eq!(verdict, [Truechimer, Truechimer, Undecided, Undecided, Undecided]);
    }

    #[test]
    fn intervals_that_touch_agree() {
        assert_eq!(judged(&[(0, 5), (5, 9)]), Some(vec![Truechimer, Truechimer]));
    }

    #[test]
    fn servers_that_are_still_expected_have_a_vote() {
        let one = [of_micros((0, 5))];
        assert_eq!(beliefs(&one, 0), Some(vec![Truechimer]));
        assert_eq!(beliefs(&one, 1), None);
        let two = [of_micros((0, 5)), of_micros((1, 6))];
        assert_eq!(beliefs(&two, 1), Some(vec![Truechimer, Truechimer]));
        assert_eq!(beliefs(&two, 2), None);
    }

    proptest! {
        /// A minority of liars, each excluded by an honest server, never makes a truechimer of one that is wrong, and
        /// never makes a falseticker of an honest server.
        #[test]
        fn no_visible_lie_of_a_minority_is_believed(
            honest in prop::collection::vec((0i64..1_000, 0i64..1_000), 1..9),
            liars in prop::collection::vec((-3_000i64..3_000, 0i64..1_000), 0..8),
        ) {
            // The true time is 0.
            let honest: Vec<_> = honest.iter().map(|&(before, after)| of_micros((-before, after))).collect();
            let are_apart = |one: &ProvenInterval, other: &ProvenInterval| {
                one.latest < other.earliest || other.latest < one.earliest
            };
            let lies = liars.iter().map(|&(begin, width)| of_micros((begin, begin + width)));
            let visible = lies.filter(|lie| honest.iter().any(|other| are_apart(lie, other)));
            let mut intervals = honest.clone();
            intervals.extend(visible.take(honest.len() - 1));
            let beliefs = beliefs(&intervals, 0).expect("the honest servers are a majority");
            prop_assert!(beliefs[..honest.len()].iter().all(|belief| *belief != Falseticker));
            let truth = Moment::from_origin(Span::ZERO);
            for (interval, belief) in intervals.iter().zip(&beliefs) {
                prop_assert!(*belief != Truechimer || interval.contains(truth));
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
