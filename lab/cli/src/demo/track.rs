//! What a clock showed and what was true at the same counter readings, for every reading in between.

use super::stage::TruthSource;
use ffclock_units::{Counter, LeapTable, Moment, Span, Utc};

/// One comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackPoint {
    pub(super) counter: Counter,
    pub(super) published: Moment<Utc>,
    pub(super) truth: Moment<Utc>,
}

/// The comparisons of a run in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct TimeTrack {
    points: Vec<TrackPoint>,
}

impl TimeTrack {
    pub(super) fn push(&mut self, point: TrackPoint) {
        debug_assert!(self.points.last().is_none_or(|last| point.counter.raw() >= last.counter.raw()));
        self.points.push(point);
    }

    /// What was published at a reading, on the straight line between the two comparisons around it.
    pub(super) fn published(&self, counter: Counter) -> Option<Moment<Utc>> {
        self.between(counter, |point| point.published)
    }

    /// What was true at a reading: exactly where the truth is a function of the counter.
    pub(super) fn truth(&self, counter: Counter, reference: &TruthSource) -> Option<Moment<Utc>> {
        match reference {
            TruthSource::Embedded(truth) => Some(LeapTable::built_in().utc_from_tai(truth.at(counter))),
            TruthSource::SystemClock => self.between(counter, |point| point.truth),
        }
    }

    fn between(&self, counter: Counter, of: fn(&TrackPoint) -> Moment<Utc>) -> Option<Moment<Utc>> {
        let next = self.points.partition_point(|point| point.counter.raw() < counter.raw());
        let (before, after) = (self.points.get(next.checked_sub(1)?)?, self.points.get(next)?);
        let whole = (after.counter.raw() - before.counter.raw()) as f64;
        let share = (counter.raw() - before.counter.raw()) as f64 / whole;
        Some(of(before) + Span::from_seconds((of(after) - of(before)).as_seconds() * share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(counter: u64, published_ms: i64) -> TrackPoint {
        let published = Moment::from_origin(Span::from_millis(published_ms));
        TrackPoint { counter: Counter::from_raw(counter), published, truth: published }
    }

    #[test]
    fn between_two_comparisons_time_runs_evenly_and_beyond_them_it_is_not_known() {
        let mut track = TimeTrack::default();
        [point(1_000, 10), point(2_000, 20), point(4_000, 30)].into_iter().for_each(|point| track.push(point));
        let published = |counter| track.published(Counter::from_raw(counter)).map(|at| at.since_origin().as_seconds());
        assert!((published(1_500).unwrap() - 0.015).abs() < 1e-12);
        assert!((published(3_000).unwrap() - 0.025).abs() < 1e-12);
        assert!((published(2_000).unwrap() - 0.020).abs() < 1e-12);
        assert_eq!((published(1_000), published(4_001)), (None, None));
        let truth = track.truth(Counter::from_raw(3_000), &TruthSource::SystemClock);
        assert_eq!(truth, track.published(Counter::from_raw(3_000)));
    }
}
