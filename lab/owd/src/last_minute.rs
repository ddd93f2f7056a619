//! Figures of the last minute of a run that may have no end, in memory of a fixed size.
//!
//! The minute moves on in steps of 5 s: packets whose fate became known in one of the last twelve steps belong to it,
//! that under way included. Each step has a tally of its own, which is thrown away as a whole.

use crate::record::OwdRow;
use crate::summary::{DirectionFigures, PacketTally};
use ffclock_statistics::Spread;
use ffclock_units::{Moment, Mono};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// The length of a step [s].
const STEP_S: i64 = 5;
/// Steps of a minute.
const STEPS: i64 = 12;

/// Figures of the last 55 to 60 s.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MinuteFigures {
    /// Packets whose fate became known.
    pub packets: u64,
    /// Packets by fate; fates that none had are left out.
    pub fates: BTreeMap<&'static str, u64>,
    /// Packets whose times contradict one another.
    pub contradictions: u64,
    /// To the reflector.
    pub forward: Option<DirectionFigures>,
    /// From the reflector.
    pub backward: Option<DirectionFigures>,
    /// Both, without the time in the reflector [ns].
    pub round_trip_ns: Option<Spread>,
}

/// The packets of the last minute.
#[derive(Clone, Debug, Default)]
pub struct LastMinute {
    /// By the number of the step, ascending; steps without a packet are left out.
    steps: VecDeque<(i64, PacketTally)>,
}

impl LastMinute {
    /// Takes in a packet whose fate became known `now`, which is no earlier than that of the packet before.
    pub fn add(&mut self, row: &OwdRow, now: Moment<Mono>) {
        let step = step(now);
        if self.steps.back().is_none_or(|(last, _)| *last < step) {
            self.steps.retain(|(number, _)| is_recent(*number, step));
            self.steps.push_back((step, PacketTally::default()));
        }
        if let Some((_, tally)) = self.steps.back_mut() {
            tally.add(row);
        }
    }

    /// The figures; `None` without a packet.
    pub fn figures(&self, now: Moment<Mono>) -> Option<MinuteFigures> {
        let mut tally = PacketTally::default();
        let recent = self.steps.iter().filter(|(number, _)| is_recent(*number, step(now)));
        recent.for_each(|(_, step)| tally.merge(step));
        (tally.packets() > 0).then(|| MinuteFigures {
            packets: tally.packets(),
            fates: tally.by_name(),
            contradictions: tally.contradictions(),
            forward: tally.forward.figures(),
            backward: tally.backward.figures(),
            round_trip_ns: tally.round_trip_ns(),
        })
    }
}

fn step(now: Moment<Mono>) -> i64 {
    now.whole_seconds().div_euclid(STEP_S)
}

fn is_recent(number: i64, now: i64) -> bool {
    number > now - STEPS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Delay, PacketFate};
    use ffclock_units::{Bound, Counter, Span};

    fn at(seconds: i64) -> Moment<Mono> {
        Moment::from_origin(Span::from_secs(seconds))
    }

    fn row(micros: i64) -> OwdRow {
        let delay = Delay { delay: Span::from_micros(micros), bound: Bound::of(Span::from_micros(5)) };
        OwdRow {
            number: 0,
            fate: PacketFate::Measured,
            sent: Moment::from_origin(Span::ZERO),
            forward: Some(delay),
            backward: Some(delay),
            round_trip: Some(Span::from_micros(2 * micros)),
            held: Some(Span::ZERO),
            reflector_sequence: Some(0),
            sent_counter: Counter::from_raw(0),
            received_counter: None,
        }
    }

    /// Delays of 1 s at the beginning are forgotten after a minute; the run's own figures would keep them for ever.
    #[test]
    fn what_is_older_than_a_minute_is_forgotten() {
        let mut minute = LastMinute::default();
        assert!(minute.figures(at(0)).is_none());
        (0..10).for_each(|_| minute.add(&row(1_000_000), at(2)));
        (3..60).for_each(|second| minute.add(&row(100), at(second)));
        let max = |now| minute.figures(at(now)).map(|figures| figures.forward.unwrap().delay_ns.max);
        assert_eq!((max(59), max(60)), (Some(1e9), Some(1e5)));
        (60..62).for_each(|second| minute.add(&row(100), at(second)));
        let figures = minute.figures(at(62)).unwrap();
        assert_eq!((figures.packets, figures.fates["measured"]), (57, 57));
        assert!((figures.round_trip_ns.unwrap().median / 200_000.0 - 1.0).abs() < 1e-3, "{figures:?}");
        // Nothing came for a minute, and then one was lost.
        assert!(minute.figures(at(120)).is_none());
        minute.add(&OwdRow { fate: PacketFate::Lost, forward: None, ..row(1) }, at(200));
        let figures = minute.figures(at(201)).unwrap();
        assert_eq!((figures.packets, figures.fates["lost"], figures.forward), (1, 1, None));
    }

    #[test]
    fn a_day_takes_no_more_memory_than_a_minute() {
        let mut minute = LastMinute::default();
        for second in 0..86_400 {
            minute.add(&row(second % 1000), at(second));
        }
        assert_eq!(minute.steps.len() as i64, STEPS);
        assert_eq!(minute.figures(at(86_399)).unwrap().packets, 60);
    }
}
