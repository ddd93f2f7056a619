//! The time from which the times of a whole list count.
//!
//! A log holds times within 50 days of its origin. A line may be wrong by anything, and the earliest one must not
//! decide alone what is far from what: a single perception at 0 would make all others remote. So the origin is the
//! first time that most others are near to.

use super::rounds::SPAN_NS_MAX;

/// Of these times, which come in order, the first after which come the 50 days that hold the most, where these are more
/// than half of all. Otherwise the first after which 50 days hold more than half as many as any do: in a list that goes
/// on for longer, with about as many messages each day, it is the first of all.
pub(super) fn origin_ns(times_ns: &[i64]) -> Option<i64> {
    let counts: Vec<usize> = counts_of_spans(times_ns);
    let most = counts.iter().copied().max()?;
    let holds_most = |count: usize| if 2 * most > times_ns.len() { count == most } else { 2 * count > most };
    let first = counts.iter().position(|&count| holds_most(count))?;
    times_ns.get(first).copied()
}

/// How many times are in the 50 days from each on.
fn counts_of_spans(times_ns: &[i64]) -> Vec<usize> {
    let mut end = 0;
    let count_from = |(begin, &begin_ns): (usize, &i64)| {
        while times_ns.get(end).is_some_and(|at_ns| at_ns.abs_diff(begin_ns) <= SPAN_NS_MAX) {
            end += 1;
        }
        end - begin
    };
    times_ns.iter().enumerate().map(count_from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_NS: i64 = 86_400_000_000_000;

    fn origin_day(days: &[i64]) -> Option<i64> {
        let times_ns: Vec<i64> = days.iter().map(|day| day * DAY_NS).collect();
        origin_ns(&times_ns).map(|at_ns| at_ns / DAY_NS)
    }

    #[test]
    fn the_origin_is_near_to_most() {
        assert_eq!(origin_day(&[]), None);
        assert_eq!(origin_day(&[7]), Some(7));
        assert_eq!(origin_day(&[0, 100, 101]), Some(100), "one alone is wrong");
        assert_eq!(origin_day(&[100, 101, 900]), Some(100));
        assert_eq!(origin_day(&[0, 0, 0, 90, 91, 92, 93, 94, 95]), Some(90), "neither do a few decide");
        assert_eq!(origin_day(&(0..200).collect::<Vec<_>>()), Some(0), "a list that is too long is cut at its end");
        let early: Vec<i64> = std::iter::once(-40).chain(0..20).collect();
        assert_eq!(origin_day(&early), Some(0), "one that is near to the first half only does not cut off the second");
        assert_eq!(origin_day(&[-100_000, 100_000]), Some(-100_000), "of two, none is known to be wrong");
    }

    #[test]
    fn times_at_the_ends_of_their_range_are_counted() {
        assert_eq!(origin_ns(&[i64::MIN, i64::MAX - 1, i64::MAX]), Some(i64::MAX - 1));
    }
}
