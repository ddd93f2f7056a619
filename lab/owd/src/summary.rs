//! Figures of a run, in memory of a fixed size: fates, loss by direction, reordering, delays and their bounds.

use crate::judge::{Delay, PacketFate};
use crate::record::OwdRow;
use ffclock_statistics::{LogHistogram, Spread};
use ffclock_units::{Direction, Moment, Span, Utc};
use serde::Serialize;
use std::collections::BTreeMap;

/// Figures of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DirectionFigures {
    /// Delays [ns]; those below zero count as zero.
    pub delay_ns: Spread,
    /// The smallest delay [ns], which may lie below zero within its bound.
    pub least_ns: f64,
    /// How many lie below zero, within their bounds.
    pub below_zero: u64,
    /// The bounds of both clocks [ns].
    pub bound_ns: Spread,
}

/// Figures of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OwdFigures {
    /// Packets whose fate is known.
    pub packets: u64,
    /// Packets by fate; fates that none had are left out.
    pub fates: BTreeMap<&'static str, u64>,
    /// Packets whose times contradict one another.
    pub contradictions: u64,
    /// Lost on the way to the reflector; unknown where its numbers do not show that it keeps a count of its own, or
    /// where it forgot its count.
    pub lost_forward: Option<u64>,
    /// Lost on the way back, with the same exception. What is lost after the last reply counts to neither.
    pub lost_backward: Option<u64>,
    /// Replies to packets that were sent before one whose reply had come already (RFC 4737, section 3.3).
    pub reordered: u64,
    /// Those of them that the reflector had received in this order already; unknown where its numbers do not show that
    /// it keeps a count of its own.
    pub reordered_forward: Option<u64>,
    /// Those that were overtaken on the way back, with the same exception.
    pub reordered_backward: Option<u64>,
    /// From the first packet to the last [s].
    pub lasted_s: f64,
    /// To the reflector.
    pub forward: Option<DirectionFigures>,
    /// From the reflector.
    pub backward: Option<DirectionFigures>,
    /// Both, without the time in the reflector [ns].
    pub round_trip_ns: Option<Spread>,
    /// How many round trips lie below zero, by no more than the clocks may err. They count as zero above.
    pub round_trips_below_zero: u64,
    /// In the reflector [ns].
    pub held_ns: Option<Spread>,
}

impl OwdFigures {
    /// Whether packets were lost on the way there as they are by a reflector that answers `rate` per second and a
    /// second's worth at once: more were sent than that, and what arrived is that much within a tenth.
    pub fn is_limited_to(&self, rate: u32) -> bool {
        let (Some(1..), Some(lost_backward)) = (self.lost_forward, self.lost_backward) else { return false };
        let lost = self.fates.get(PacketFate::Lost.name()).copied().unwrap_or(0);
        let answered = f64::from(rate) * (self.lasted_s + 1.0);
        // What is lost after the last reply has no direction, and is taken for lost on the way there as well.
        let arrived = (self.packets - lost + lost_backward) as f64;
        self.packets as f64 > answered && (arrived / answered - 1.0).abs() < 0.1
    }
}

/// One direction of the packets until now. Sizes are in picoseconds.
#[derive(Clone, Debug, Default)]
pub struct DirectionTally {
    delays: LogHistogram,
    bounds: LogHistogram,
    least: Option<Span>,
    below_zero: u64,
}

impl DirectionTally {
    fn add(&mut self, delay: &Delay) {
        self.below_zero += u64::from(delay.delay.is_negative());
        self.least = Some(self.least.map_or(delay.delay, |least| least.min(delay.delay)));
        self.delays.add(size(delay.delay));
        self.bounds.add(size(delay.bound.as_span()));
    }

    fn merge(&mut self, other: &DirectionTally) {
        self.below_zero += other.below_zero;
        self.least = self.least.into_iter().chain(other.least).min();
        self.delays.merge(&other.delays);
        self.bounds.merge(&other.bounds);
    }

    /// The figures; `None` of no packets.
    pub fn figures(&self) -> Option<DirectionFigures> {
        Some(DirectionFigures {
            delay_ns: nanos(&self.delays)?,
            least_ns: self.least?.as_seconds() * 1e9,
            below_zero: self.below_zero,
            bound_ns: nanos(&self.bounds)?,
        })
    }
}

/// Packets, whatever their order. Sizes are in picoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketTally {
    pub(crate) fates: BTreeMap<PacketFate, u64>,
    pub(crate) forward: DirectionTally,
    pub(crate) backward: DirectionTally,
    round_trips: LogHistogram,
    round_trips_below_zero: u64,
    held: LogHistogram,
}

impl PacketTally {
    pub(crate) fn add(&mut self, row: &OwdRow) {
        *self.fates.entry(row.fate).or_default() += 1;
        if row.fate.is_contradiction() {
            return;
        }
        row.forward.iter().for_each(|delay| self.forward.add(delay));
        row.backward.iter().for_each(|delay| self.backward.add(delay));
        row.round_trip.iter().for_each(|span| self.round_trips.add(size(*span)));
        self.round_trips_below_zero += u64::from(row.round_trip.is_some_and(Span::is_negative));
        row.held.iter().for_each(|span| self.held.add(size(*span)));
    }

    pub(crate) fn merge(&mut self, other: &PacketTally) {
        other.fates.iter().for_each(|(fate, count)| *self.fates.entry(*fate).or_default() += count);
        self.forward.merge(&other.forward);
        self.backward.merge(&other.backward);
        self.round_trips.merge(&other.round_trips);
        self.round_trips_below_zero += other.round_trips_below_zero;
        self.held.merge(&other.held);
    }

    pub(crate) fn packets(&self) -> u64 {
        self.fates.values().sum()
    }

    pub(crate) fn by_name(&self) -> BTreeMap<&'static str, u64> {
        self.fates.iter().map(|(fate, count)| (fate.name(), *count)).collect()
    }

    pub(crate) fn contradictions(&self) -> u64 {
        self.fates.iter().filter(|(fate, _)| fate.is_contradiction()).map(|(_, count)| count).sum()
    }

    pub(crate) fn round_trip_ns(&self) -> Option<Spread> {
        nanos(&self.round_trips)
    }
}

/// The packets of a run until now.
#[derive(Clone, Debug, Default)]
pub struct OwdSummary {
    tally: PacketTally,
    order: ReplyOrder,
    /// When the first and the last packet left.
    ends: Option<(Moment<Utc>, Moment<Utc>)>,
}

impl OwdSummary {
    /// Takes a packet in.
    pub fn add(&mut self, row: &OwdRow) {
        self.tally.add(row);
        self.order.add(row);
        let (first, last) = self.ends.unwrap_or((row.sent, row.sent));
        self.ends = Some((first.min(row.sent), last.max(row.sent)));
    }

    /// The number of packets with this fate.
    pub fn count(&self, fate: PacketFate) -> u64 {
        self.tally.fates.get(&fate).copied().unwrap_or(0)
    }

    /// The figures. Packets whose times contradict one another are counted, and enter no delay.
    pub fn figures(&self) -> OwdFigures {
        let tally = &self.tally;
        let (lost_forward, lost_backward) = self.order.lost().unzip();
        let (reordered_forward, reordered_backward) = self.order.reordered_by_way().unzip();
        OwdFigures {
            packets: tally.packets(),
            fates: tally.by_name(),
            contradictions: tally.contradictions(),
            lost_forward,
            lost_backward,
            reordered: self.order.reordered,
            reordered_forward,
            reordered_backward,
            lasted_s: self.ends.map_or(0.0, |(first, last)| (last - first).as_seconds()),
            forward: tally.forward.figures(),
            backward: tally.backward.figures(),
            round_trip_ns: tally.round_trip_ns(),
            round_trips_below_zero: tally.round_trips_below_zero,
            held_ns: nanos(&tally.held),
        }
    }
}

/// The order of the replies, and what is missing in it.
#[derive(Clone, Debug, Default)]
struct ReplyOrder {
    /// The packet sent last of those with a reply, and how far the reflector's count was behind it then.
    last: Option<(u64, u32)>,
    reordered: u64,
    /// Those of them that the reflector numbered after the one that overtook them.
    reordered_forward: u64,
    /// Whether it has given a reply another number than ours, so that it keeps a count.
    is_counted: bool,
    /// Lost before a packet with a reply.
    lost_inside: u64,
    /// Lost after the last one with a reply. Packets are given up in the order in which they were sent, so that a later
    /// reply is to a packet after all of these.
    lost_since: u64,
}

impl ReplyOrder {
    fn add(&mut self, row: &OwdRow) {
        let is_before_last = self.last.is_some_and(|(last, _)| row.number < last);
        let Some(sequence) = row.reflector_sequence else {
            *if is_before_last { &mut self.lost_inside } else { &mut self.lost_since } += 1;
            return;
        };
        self.is_counted |= sequence != row.number as u32;
        if is_before_last {
            self.reordered += 1;
            self.reordered_forward += u64::from(self.is_after_last(sequence));
        } else {
            self.lost_inside += std::mem::take(&mut self.lost_since);
            self.last = Some((row.number, (row.number as u32).wrapping_sub(sequence)));
        }
    }

    /// Whether the reflector numbered this reply after that to the packet sent last.
    fn is_after_last(&self, sequence: u32) -> bool {
        let last = self.last.map(|(number, behind)| (number as u32).wrapping_sub(behind));
        last.is_some_and(|last| sequence.wrapping_sub(last).cast_signed() > 0)
    }

    /// On the way to the reflector, and on the way back; `None` where it may be one without a count.
    fn reordered_by_way(&self) -> Option<(u64, u64)> {
        let split = (self.reordered_forward, self.reordered - self.reordered_forward);
        (self.is_counted || self.reordered == 0).then_some(split)
    }

    /// To the reflector, and back. A reflector without a count repeats our numbers, as one does that has missed none:
    /// losses have a direction once its numbers are behind ours.
    fn lost(&self) -> Option<(u64, u64)> {
        let (_, behind) = self.last?;
        let behind = u64::from(behind);
        match self.lost_inside {
            0 if behind == 0 && self.lost_since == 0 => Some((0, 0)),
            lost if behind > 0 && behind <= lost => Some((behind, lost - behind)),
            _ => None,
        }
    }
}

/// In picoseconds; below zero counts as zero.
fn size(span: Span) -> u64 {
    let picos = span.as_seconds() * 1e12;
    // A float above the largest whole number becomes that.
    picos.round() as u64
}

fn nanos(histogram: &LogHistogram) -> Option<Spread> {
    Some(histogram.spread()?.map(|picos| picos / 1e3))
}

/// How many packets had which delay when.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeatMap {
    /// When the first column begins [s since 1970, UTC].
    pub begin_s: f64,
    /// The width of a column [s].
    pub column_s: f64,
    /// The edges of the rows [ns], evenly spaced in their logarithm.
    pub edges_ns: Vec<f64>,
    /// By column, then by row. A delay below the first edge is in the first row.
    pub counts: Vec<Vec<u32>>,
}

impl HeatMap {
    const COLUMNS: usize = 120;
    const ROWS: usize = 60;

    /// The map of one direction, to the reflector or from it; `None` without a packet whose delay is known and above
    /// zero.
    pub fn of(rows: &[OwdRow], way: Direction) -> Option<Self> {
        let point = |row: &OwdRow| {
            let delay = if way == Direction::Outgoing { row.forward } else { row.backward }?;
            let is_kept = !row.fate.is_contradiction();
            is_kept.then(|| (row.sent.since_origin().as_seconds(), delay.delay.as_seconds() * 1e9))
        };
        let points: Vec<(f64, f64)> = rows.iter().filter_map(point).collect();
        let ends = |values: &mut dyn Iterator<Item = f64>| {
            values.fold(None, |ends: Option<(f64, f64)>, value| {
                let (low, high) = ends.unwrap_or((value, value));
                Some((low.min(value), high.max(value)))
            })
        };
        let (begin_s, end_s) = ends(&mut points.iter().map(|point| point.0))?;
        let (low, high) = ends(&mut points.iter().map(|point| point.1).filter(|delay| *delay > 0.0))?;
        let step = (high / low).max(1.01).ln() / Self::ROWS as f64;
        let column_s = ((end_s - begin_s) / Self::COLUMNS as f64).max(1e-3);
        let mut counts = vec![vec![0; Self::ROWS]; Self::COLUMNS];
        for (time, delay) in &points {
            let column = ((time - begin_s) / column_s) as usize;
            // What lies below the first edge gives a negative number or none, which becomes 0.
            let row = ((delay / low).ln() / step) as usize;
            counts[column.min(Self::COLUMNS - 1)][row.min(Self::ROWS - 1)] += 1;
        }
        let edges_ns = (0..=Self::ROWS).map(|edge| low * (step * edge as f64).exp()).collect();
        Some(HeatMap { begin_s, column_s, edges_ns, counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{Bound, Counter};

    fn row(number: u64, reflector: Option<u32>) -> OwdRow {
        let delay = |micros| Delay { delay: Span::from_micros(micros), bound: Bound::of(Span::from_micros(5)) };
        let fate = if reflector.is_some() { PacketFate::Measured } else { PacketFate::Lost };
        OwdRow {
            number,
            fate,
            sent: Moment::from_origin(Span::from_secs(1_800_000_000) + Span::from_millis(number as i64)),
            forward: reflector.map(|_| delay(number as i64 - 1)),
            backward: reflector.map(|_| delay(200)),
            round_trip: reflector.map(|_| Span::from_micros(250)),
            held: reflector.map(|_| Span::from_micros(20)),
            reflector_sequence: reflector,
            sent_counter: Counter::from_raw(0),
            received_counter: None,
        }
    }

    fn summary(rows: &[(u64, Option<u32>)]) -> OwdFigures {
        let mut summary = OwdSummary::default();
        rows.iter().for_each(|(number, reflector)| summary.add(&row(*number, *reflector)));
        summary.figures()
    }

    #[test]
    fn delays_have_their_percentiles_and_bounds() {
        let rows: Vec<_> = (0..1001).map(|number| (number, Some(number as u32))).collect();
        let figures = summary(&rows);
        let forward = figures.forward.unwrap();
        assert!((forward.delay_ns.median - 499_000.0).abs() < 499_000.0 / 1000.0, "{forward:?}");
        assert!((forward.least_ns + 1000.0).abs() < 1e-3 && forward.below_zero == 1, "{forward:?}");
        assert!((forward.bound_ns.max - 5000.0).abs() < 1e-3 && figures.reordered == 0);
        assert_eq!((figures.lost_forward, figures.lost_backward), (Some(0), Some(0)));
    }

    #[test]
    fn loss_has_a_direction_where_the_reflector_counts() {
        // Packet 1 never arrived; the reply to packet 2 was lost.
        let counted = summary(&[(0, Some(0)), (3, Some(2)), (1, None), (2, None)]);
        assert_eq!((counted.lost_forward, counted.lost_backward), (Some(1), Some(1)));
        let stateless = summary(&[(0, Some(0)), (3, Some(3)), (1, None)]);
        assert_eq!((stateless.lost_forward, stateless.lost_backward), (None, None));
        let forgetful = summary(&[(0, Some(0)), (9, Some(0)), (1, None)]);
        assert_eq!(forgetful.lost_forward, None);
        let at_the_end = summary(&[(0, Some(0)), (1, None)]);
        assert_eq!((at_the_end.lost_forward, at_the_end.fates["lost"]), (None, 1));
    }

    /// With an interval above the patience, and in an outage that lasts longer than it, a packet is given up before the
    /// next reply comes.
    #[test]
    fn losses_that_are_known_before_the_next_reply_have_a_direction() {
        let forward = summary(&[(0, Some(0)), (1, None), (2, None), (3, Some(1)), (4, None)]);
        assert_eq!((forward.lost_forward, forward.lost_backward), (Some(2), Some(0)));
        // Packet 1 never arrived; the replies to 2 and 3 were lost.
        let both = summary(&[(0, Some(0)), (1, None), (2, None), (3, None), (4, Some(3))]);
        assert_eq!((both.lost_forward, both.lost_backward), (Some(1), Some(2)));
        let before_the_first = summary(&[(0, None), (1, None), (2, Some(1)), (3, Some(2))]);
        assert_eq!((before_the_first.lost_forward, before_the_first.lost_backward), (Some(1), Some(1)));
        // Replies alone were lost: one without a count answers in the same way.
        let unknown = summary(&[(0, Some(0)), (1, None), (2, Some(2))]);
        assert_eq!((unknown.lost_forward, unknown.lost_backward), (None, None));
    }

    #[test]
    fn round_trips_below_zero_are_counted() {
        let mut summary = OwdSummary::default();
        for (number, micros) in [(0, -3), (1, 250), (2, -1)] {
            summary.add(&OwdRow { round_trip: Some(Span::from_micros(micros)), ..row(number, Some(number as u32)) });
        }
        let figures = summary.figures();
        assert_eq!((figures.round_trips_below_zero, figures.round_trip_ns.unwrap().min), (2, 0.0));
    }

    #[test]
    fn a_reply_that_was_overtaken_is_reordered() {
        assert_eq!(summary(&[(0, Some(0)), (2, Some(1)), (1, Some(2)), (3, Some(3))]).reordered, 1);
    }

    #[test]
    fn reordering_has_a_direction_where_the_reflector_counts() {
        let by_way = |rows: &[(u64, Option<u32>)]| {
            let figures = summary(rows);
            (figures.reordered, figures.reordered_forward, figures.reordered_backward)
        };
        // Packet 1 came to the reflector after packet 2.
        assert_eq!(by_way(&[(0, Some(0)), (2, Some(1)), (1, Some(2)), (3, Some(3))]), (1, Some(1), Some(0)));
        // It came before, and its reply was overtaken; packet 0 was lost on the way there, so there is a count.
        assert_eq!(by_way(&[(2, Some(1)), (1, Some(0)), (3, Some(2)), (0, None)]), (1, Some(0), Some(1)));
        // Our own numbers come back: one without a count does the same.
        assert_eq!(by_way(&[(0, Some(0)), (2, Some(2)), (1, Some(1))]), (1, None, None));
        assert_eq!(by_way(&[(0, Some(0)), (1, Some(1))]), (0, Some(0), Some(0)));
    }

    /// 2 s of 1000 packets each, to one that answers `rate` per second and as many at once.
    #[test]
    fn a_reflector_that_answers_fewer_than_were_sent_is_known_by_what_arrived() {
        let limited_to = |rate: u32, arrived: u32| {
            let mut summary = OwdSummary::default();
            let replies = (0..arrived).map(|number| (u64::from(number), Some(number)));
            let lost = (u64::from(arrived)..1999).map(|number| (number, None));
            replies.chain(lost).for_each(|(number, reflector)| summary.add(&row(number, reflector)));
            summary.add(&row(1999, Some(arrived)));
            summary.figures().is_limited_to(rate)
        };
        assert!(limited_to(300, 899) && limited_to(300, 840));
        // More or less than that arrived, or no more was sent than is answered, or nothing was lost.
        assert!(!limited_to(300, 1500) && !limited_to(300, 500));
        assert!(!limited_to(700, 1900) && !limited_to(10_000, 899));
        assert!(!summary(&[(0, Some(0)), (1, Some(1))]).is_limited_to(1));
    }

    #[test]
    fn what_contradicts_itself_enters_no_delay() {
        let mut summary = OwdSummary::default();
        summary.add(&OwdRow { fate: PacketFate::ForwardBelowZero, ..row(0, Some(0)) });
        let figures = summary.figures();
        assert_eq!((figures.contradictions, figures.forward), (1, None));
    }

    #[test]
    fn a_heat_map_holds_every_packet_once() {
        let rows: Vec<OwdRow> = (0..500).map(|number| row(number, Some(0))).collect();
        for way in [Direction::Outgoing, Direction::Incoming] {
            let map = HeatMap::of(&rows, way).unwrap();
            assert_eq!(map.counts.iter().flatten().sum::<u32>(), 500);
            assert_eq!(map.edges_ns.len(), HeatMap::ROWS + 1);
        }
        assert!(HeatMap::of(&[row(0, None)], Direction::Outgoing).is_none());
    }
}
