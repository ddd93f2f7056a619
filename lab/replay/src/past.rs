//! Judges what a clock says of the past: stamps that are converted late, and intervals of any length.
//!
//! The clock publishes into a page and a history as the daemon does. At each reading with a known truth the judge
//! converts stamps that were taken before, as a program would at that moment: by the history, and by the newest line
//! alone. It measures the interval from each of them to the present in three ways: by the difference clock, by two
//! conversions, and by the better of both.

use crate::PublishedClock;
use ffclock_estimator::Estimator;
use ffclock_page::layout::history::HISTORY_WORDS;
use ffclock_page::words::AtomicU64;
use ffclock_page::{HistoryWords, HistoryWriter, PageMemory, Publication, Reader, Snapshot, Writer};
use ffclock_statistics::{Containment, Sorted};
use ffclock_trace::TraceRow;
use ffclock_units::{ClockError, Counter, CounterEpoch, CounterId, Estimate, LeapStep, Moment, Span, Tai};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::rc::Rc;

/// The ages of stamps and the lengths of intervals.
const LENGTHS: [Span; 13] = [
    Span::from_millis(1),
    Span::from_millis(10),
    Span::from_millis(100),
    Span::from_secs(1),
    Span::from_secs(4),
    Span::from_secs(16),
    Span::from_secs(64),
    Span::from_secs(256),
    Span::from_secs(1_024),
    Span::from_secs(3_600),
    Span::from_secs(10_800),
    Span::from_secs(36_000),
    Span::from_secs(86_400),
];

/// Readings of the clock are farther apart than this: a shorter interval is a part of the one between two of them.
const SHORTEST_READ: Span = Span::from_secs(4);

/// How far the daemon promises ahead.
const VALID_FOR: Span = Span::from_secs(3_600);

/// The errors of one way, s.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct PastErrors {
    /// The median of their sizes.
    pub p50: f64,
    /// The 99th percentile of their sizes.
    pub p99: f64,
}

/// Stamps of one age.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct AgeErrors {
    /// The age at the conversion, s.
    pub age_s: f64,
    /// By the history.
    pub history: PastErrors,
    /// By the newest line alone.
    pub newest_line: PastErrors,
    /// The median bound by the history, s.
    pub bound_s: f64,
    /// The share of the stamps whose time by the history was within its bound.
    pub inside: f64,
}

/// Intervals of one length that end at the present.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct LengthErrors {
    /// The length, s.
    pub length_s: f64,
    /// By the difference clock.
    pub difference: PastErrors,
    /// By two conversions.
    pub absolute: PastErrors,
    /// By the better of both, as published.
    pub elapsed: PastErrors,
    /// The median bound, s.
    pub bound_s: f64,
    /// The median standard uncertainty, s.
    pub uncertainty_s: f64,
    /// The share of the intervals that were within their bound.
    pub inside: f64,
}

/// What a clock says of the past, by age and by length.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct PastReport {
    /// Stamps by their age.
    pub stamps: Vec<AgeErrors>,
    /// Intervals by their length.
    pub intervals: Vec<LengthErrors>,
    /// The median length at which both ways were equally uncertain, s.
    pub critical_s: Option<f64>,
}

/// A reading of the counter whose truth is known.
#[derive(Clone, Copy, Debug)]
struct PastLook {
    counter: Counter,
    truth: Moment<Tai>,
}

/// What a program can read at the present.
struct PresentLook<'a> {
    reader: Reader<'a>,
    snapshot: Snapshot,
    epoch: CounterEpoch,
    look: PastLook,
}

/// The judge, and the clock that it judges.
pub struct PastJudge {
    clock: PublishedClock,
    page: PageMemory,
    writer: HistoryWriter<Rc<HistoryWords>>,
    epoch: (CounterEpoch, Option<Counter>),
    looks: VecDeque<PastLook>,
    by_length: Vec<AgeAccount>,
    critical: Vec<f64>,
}

/// The errors at one length.
struct AgeAccount {
    length: Span,
    /// The number of looks that are older than `length`, less one: the next stamp to be judged.
    next: usize,
    history: Vec<f64>,
    newest_line: Vec<f64>,
    bounds: Vec<f64>,
    inside: Containment,
    difference: Vec<f64>,
    absolute: Vec<f64>,
    elapsed: Vec<f64>,
    elapsed_bounds: Vec<f64>,
    uncertainties: Vec<f64>,
    elapsed_inside: Containment,
}

impl PastJudge {
    /// A judge of a clock with this estimator.
    pub fn new(estimator: Box<dyn Estimator>) -> Self {
        let words: Rc<[AtomicU64]> = (0..HISTORY_WORDS).map(|_| AtomicU64::new(0)).collect();
        let words: Rc<HistoryWords> = words.try_into().expect("it has the words of a history");
        PastJudge {
            clock: PublishedClock::new(estimator),
            page: PageMemory::new(),
            writer: HistoryWriter::open(words, None),
            epoch: (CounterEpoch::from_raw(1), None),
            looks: VecDeque::new(),
            by_length: LENGTHS.map(AgeAccount::new).into(),
            critical: Vec::new(),
        }
    }

    /// Takes an exchange, or what is left of one.
    pub fn feed(&mut self, row: &TraceRow) {
        if row.epoch != self.epoch.0 {
            self.clock.restart();
            self.epoch = (row.epoch, None);
            self.looks.clear();
            self.by_length.iter_mut().for_each(|account| account.next = 0);
        }
        let Some(exchange) = &row.exchange else { return };
        self.epoch.1.get_or_insert(exchange.sent.counter);
        self.clock.update(exchange);
        if let Some(estimate) = self.clock.publish() {
            self.publish(&estimate);
        }
    }

    fn publish(&mut self, estimate: &Estimate) {
        let (epoch, Some(epoch_begin)) = self.epoch else { return };
        let publication = Publication {
            counter_id: CounterId::Tsc,
            epoch,
            epoch_begin,
            estimate: *estimate,
            leap: LeapStep { before: 0, after: 0, at: 0 },
            valid_until: estimate.counter + estimate.period.ticks_in(VALID_FOR),
            server: None,
        };
        self.writer.keep(&publication);
        Writer::open(&self.page, None).publish(&publication);
    }

    /// Judges the clock at a reading of the counter whose truth is known.
    pub fn look(&mut self, counter: Counter, truth: Moment<Tai>) {
        if self.clock.published().is_none() || self.epoch.1.is_none() {
            return;
        }
        let look = PastLook { counter, truth };
        let reader = Reader::new(self.page.as_ref()).with_history(Some(self.writer.memory()));
        let Ok(snapshot) = reader.snapshot() else { return };
        self.critical.extend(snapshot.critical_scale().map(Span::as_seconds));
        let present = PresentLook { reader, snapshot, epoch: self.epoch.0, look };
        for account in &mut self.by_length {
            if let Some((then, share)) = account.stamp_before(&self.looks, &look) {
                account.judge_stamp(&present, then);
                account.judge_interval(&present, then, share);
            }
        }
        self.looks.push_back(look);
    }

    /// The figures so far.
    pub fn report(&self) -> PastReport {
        PastReport {
            stamps: self.by_length.iter().filter_map(AgeAccount::stamps).collect(),
            intervals: self.by_length.iter().filter_map(AgeAccount::intervals).collect(),
            critical_s: Sorted::of(self.critical.iter().copied()).quantile(0.5),
        }
    }
}

impl AgeAccount {
    fn new(length: Span) -> Self {
        AgeAccount {
            length,
            next: 0,
            history: Vec::new(),
            newest_line: Vec::new(),
            bounds: Vec::new(),
            inside: Containment::default(),
            difference: Vec::new(),
            absolute: Vec::new(),
            elapsed: Vec::new(),
            elapsed_bounds: Vec::new(),
            uncertainties: Vec::new(),
            elapsed_inside: Containment::default(),
        }
    }

    /// The youngest stamp that is at least as old as this length, and which part of its age the length is: less than
    /// all only where readings are too far apart.
    fn stamp_before(&mut self, looks: &VecDeque<PastLook>, now: &PastLook) -> Option<(PastLook, f64)> {
        if self.length < SHORTEST_READ {
            let then = *looks.back()?;
            return Some((then, self.length.as_seconds() / (now.truth - then.truth).as_seconds()));
        }
        while looks.get(self.next).is_some_and(|look| now.truth - look.truth >= self.length) {
            self.next += 1;
        }
        let then = *looks.get(self.next.checked_sub(1)?)?;
        Some((then, 1.0))
    }

    fn judge_stamp(&mut self, present: &PresentLook<'_>, then: PastLook) {
        let by_line = present.snapshot.tai_at(then.counter);
        let (Ok(time), Ok(by_line)) = (present.reader.time_of(then.counter, present.epoch), by_line) else { return };
        let error = time.tai - then.truth;
        self.history.push(error.as_seconds().abs());
        self.newest_line.push((by_line - then.truth).as_seconds().abs());
        self.bounds.push(time.reading.bound.as_seconds());
        self.inside.judge(ClockError::new(error), time.reading.bound);
    }

    /// Judges the interval from `then` to the present; its `share` counts.
    fn judge_interval(
        &mut self,
        PresentLook { reader, snapshot, epoch, look }: &PresentLook<'_>,
        then: PastLook,
        share: f64,
    ) {
        let time_of = |counter: Counter| reader.time_of(counter, *epoch);
        let elapsed = reader.elapsed_of([then.counter, look.counter], *epoch);
        let (Ok(begin), Ok(end), Ok(elapsed)) = (time_of(then.counter), time_of(look.counter), elapsed) else { return };
        let Ok(difference) = snapshot.elapsed(then.counter, look.counter) else { return };
        let length = look.truth - then.truth;
        let size = |span: Span| (span - length).as_seconds().abs() * share;
        self.difference.push(size(difference.span));
        self.absolute.push(size(end.tai - begin.tai));
        self.elapsed.push(size(elapsed.span));
        self.elapsed_bounds.push(elapsed.bound.as_seconds() * share);
        self.uncertainties.push(elapsed.uncertainty.as_seconds() * share);
        self.elapsed_inside.judge(ClockError::new(elapsed.span - length), elapsed.bound);
    }

    fn stamps(&self) -> Option<AgeErrors> {
        (self.length >= SHORTEST_READ).then_some(())?;
        Some(AgeErrors {
            age_s: self.length.as_seconds(),
            history: errors(&self.history)?,
            newest_line: errors(&self.newest_line)?,
            bound_s: errors(&self.bounds)?.p50,
            inside: self.inside.share()?,
        })
    }

    fn intervals(&self) -> Option<LengthErrors> {
        Some(LengthErrors {
            length_s: self.length.as_seconds(),
            difference: errors(&self.difference)?,
            absolute: errors(&self.absolute)?,
            elapsed: errors(&self.elapsed)?,
            bound_s: errors(&self.elapsed_bounds)?.p50,
            uncertainty_s: errors(&self.uncertainties)?.p50,
            inside: self.elapsed_inside.share()?,
        })
    }
}

fn errors(sizes: &[f64]) -> Option<PastErrors> {
    let sorted = Sorted::of(sizes.iter().copied());
    Some(PastErrors { p50: sorted.quantile(0.5)?, p99: sorted.quantile(0.99)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_estimator::{Classic, ClassicConfig};
    use ffclock_trace::ServerIndex;
    use ffclock_units::{Exchange, Period, ServerQuality, Stamp, StampLocation, Ticks};

    const BEGIN_S: i64 = 1_800_000_000;

    fn row(second: u64) -> TraceRow {
        let stamp = |nanos: u64| Stamp {
            counter: Counter::from_raw(second * 1_000_000_000 + nanos),
            width: Ticks::from_raw(1),
            location: StampLocation::Kernel,
        };
        let served = Moment::from_origin(Span::from_secs(BEGIN_S + second as i64) + Span::from_micros(100));
        let exchange = Exchange {
            sent: stamp(0),
            server_in: served,
            server_out: served,
            received: stamp(200_000),
            server: ServerQuality::default(),
        };
        TraceRow {
            sequence: second,
            epoch: CounterEpoch::from_raw(1),
            exchange: Some(exchange),
            truth: None,
            server: ServerIndex::default(),
        }
    }

    #[test]
    fn a_perfect_path_leaves_no_errors_at_any_age() {
        let nominal = Period::from_hertz(1e9).unwrap();
        let mut judge = PastJudge::new(Box::new(Classic::new(ClassicConfig::default(), nominal, None)));
        for second in 1..20_000 {
            if second % 16 == 0 {
                judge.feed(&row(second));
            }
            if second % 5 == 0 {
                let truth = Moment::from_origin(Span::from_secs(BEGIN_S + second as i64));
                judge.look(Counter::from_raw(second * 1_000_000_000), truth);
            }
        }
        let report = judge.report();
        assert_eq!(report.stamps.last().map(|ages| ages.age_s), Some(10_800.0));
        assert_eq!(report.intervals.first().map(|lengths| lengths.length_s), Some(0.001));
        assert!(report.stamps.iter().all(|ages| ages.inside == 1.0 && ages.history.p99 < 1e-6), "{report:?}");
        assert!(report.intervals.iter().all(|lengths| lengths.inside == 1.0 && lengths.elapsed.p99 < 1e-6));
    }
}
