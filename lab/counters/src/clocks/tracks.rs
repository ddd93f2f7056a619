//! A clock for each counter and kind of stamps, and how well each does.

use super::packets::{DriverSource, Exchanged, Packets};
use crate::failure::Failure;
use crate::lab::truth::Truth;
use ffclock_counters::beside::BracketedReading;
use ffclock_counters::spread::{Sorted, Spread};
use ffclock_counters::ways::Way;
use ffclock_estimator::{Algorithm, Chosen, Configs, Estimator};
use ffclock_units::{
    ClockError, Counter, Estimate, Exchange, LeapTable, Moment, Period, Server, ServerIdentity, ServerQuality, Span,
    Stamp, StampLocation, Ticks,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Who stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamps {
    User,
    Socket,
    /// The source, and its place among those of the exchange.
    Driver(DriverSource, usize),
}

impl Stamps {
    const fn name(self) -> &'static str {
        match self {
            Stamps::User => "user",
            Stamps::Socket => "socket",
            Stamps::Driver(DriverSource::Trace, _) => "trace",
            Stamps::Driver(DriverSource::Module, _) => "module",
        }
    }
}

struct Track {
    /// Which of the ways.
    counter: usize,
    stamps: Stamps,
    estimator: Chosen,
}

/// All of them.
pub(super) struct Tracks {
    ways: Vec<Way>,
    truth: Truth,
    base: Period,
    leaps: LeapTable,
    warm_up_s: f64,
    kinds: Vec<Stamps>,
    tracks: Vec<Track>,
    errors: BTreeMap<(usize, usize), Vec<Judged>>,
    /// By kind of stamps, direction and phase, ns.
    delays: BTreeMap<(usize, usize, usize), Vec<f64>>,
}

#[derive(Clone, Copy)]
struct Judged {
    error_s: f64,
    is_inside: bool,
}

/// How well one clock did in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ClockFigures {
    pub(super) counter: String,
    pub(super) stamps: String,
    pub(super) phase: usize,
    pub(super) count: usize,
    /// Readings outside the clock's own bound.
    pub(super) outside: usize,
    pub(super) median_s: f64,
    pub(super) iqr_s: f64,
    pub(super) p1_s: f64,
    pub(super) p25_s: f64,
    pub(super) p75_s: f64,
    pub(super) p99_s: f64,
}

fn socket() -> String {
    Stamps::Socket.name().to_owned()
}

/// How far stamps lie outside those at the driver, on the side of user space: how much earlier on the way out, how much later on the
/// way in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StampFigures {
    pub(super) stamps: String,
    /// What they are compared with; in recordings of earlier versions always the socket's.
    #[serde(default = "socket")]
    pub(super) reference: String,
    pub(super) direction: String,
    pub(super) phase: usize,
    pub(super) count: usize,
    pub(super) ns: Spread,
}

/// The errors of all clocks at one time, in the order of the header.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Errors {
    t: f64,
    phase: usize,
    error_s: Vec<Option<f64>>,
    bound_s: Vec<Option<f64>>,
}

/// The stamps of one exchange: for each clock Ta, its width, Tf, its width, in ticks of its counter.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    t: f64,
    phase: usize,
    server_in_ns: i128,
    server_out_ns: i128,
    stamps: Vec<Option<[i128; 4]>>,
}

impl Tracks {
    pub(super) fn new(packets: &Packets, truth: Truth, base: Period) -> Result<Self, Failure> {
        let ways = packets.ways();
        let drivers = packets.driver_sources().into_iter().enumerate();
        let drivers = drivers.map(|(place, source)| Stamps::Driver(source, place));
        let kinds: Vec<Stamps> = [Stamps::User, Stamps::Socket].into_iter().chain(drivers).collect();
        let each = ways.iter().enumerate();
        let each = each.flat_map(|(counter, way)| kinds.iter().map(move |stamps| (counter, way, *stamps)));
        let tracks = each.map(|(counter, way, stamps)| {
            let period = Period::from_hertz(way.hertz()).ok_or_else(|| absurd(way))?;
            Ok(Track { counter, stamps, estimator: Chosen::new(Algorithm::Classic, Configs::default(), period, None) })
        });
        Ok(Tracks {
            ways: ways.to_vec(),
            truth,
            base,
            leaps: LeapTable::built_in(),
            warm_up_s: 0.0,
            kinds: kinds.clone(),
            tracks: tracks.collect::<Result<_, Failure>>()?,
            errors: BTreeMap::new(),
            delays: BTreeMap::new(),
        })
    }

    /// What the clocks show before `warm_up` does not count.
    pub(super) fn after(self, warm_up: Span) -> Self {
        Tracks { warm_up_s: warm_up.as_seconds(), ..self }
    }

    /// Of the clocks, in order.
    pub(super) fn names(&self) -> Vec<String> {
        self.tracks
            .iter()
            .map(|track| format!("{} {}", self.ways[track.counter].counter(), track.stamps.name()))
            .collect()
    }

    /// Compares every clock with the truth now, `points` being every counter beside the base; `None` before there is any.
    pub(super) fn check(&mut self, phase: usize, t: f64, points: &[BracketedReading]) -> Option<Errors> {
        let estimates: Vec<Option<Estimate>> = self.tracks.iter().map(|track| track.estimator.estimate()).collect();
        let mut errors = Errors { t, phase, error_s: Vec::new(), bound_s: Vec::new() };
        for (number, estimate) in estimates.iter().enumerate() {
            let point = points[self.tracks[number].counter];
            let judged = estimate.as_ref().map(|estimate| judge(estimate, &point, &self.truth));
            errors.error_s.push(judged.map(|(error, _)| error.as_span().as_seconds()));
            errors.bound_s.push(judged.map(|(_, bound)| bound.as_seconds()));
            if let Some((error, bound)) = judged.filter(|_| t >= self.warm_up_s) {
                let judged = Judged { error_s: error.as_span().as_seconds(), is_inside: bound.contains(error) };
                self.errors.entry((number, phase)).or_default().push(judged);
            }
        }
        errors.error_s.iter().any(Option::is_some).then_some(errors)
    }

    /// Hands an exchange to every clock.
    pub(super) fn feed(&mut self, phase: usize, t: f64, exchanged: &Exchanged) -> Row {
        self.note_delays(phase, exchanged);
        let pivot: Moment<Server> = Moment::from_origin(self.truth.time.since_origin());
        let server_in = exchanged.reply.receive.to_server(pivot);
        let server_out = exchanged.reply.transmit.to_server(server_in);
        let [server_in, server_out] = [server_in, server_out].map(|time| self.leaps.tai_from_server(time));
        let quality = ServerQuality {
            identity: ServerIdentity { stratum: exchanged.reply.stratum, reference_id: exchanged.reply.reference_id },
            root_distance: exchanged.reply.root_distance(),
            ..ServerQuality::default()
        };
        let mut stamps = Vec::new();
        for track in &mut self.tracks {
            let way = &self.ways[track.counter];
            let pair = stamps_of(track.stamps, exchanged, track.counter, way);
            stamps.push(pair.map(|pair| row_of(&pair)));
            let Some([sent, received]) = pair else { continue };
            track.estimator.update(&Exchange { sent, server_in, server_out, received, server: quality });
        }
        let nanos = |time: Moment<ffclock_units::Tai>| time.since_origin().as_nanos();
        Row { t, phase, server_in_ns: nanos(server_in), server_out_ns: nanos(server_out), stamps }
    }

    /// What the other stamps are compared with: the raw counter at the driver where somebody reads it there, the module before the
    /// tracepoints; else the socket's, which are the kernel's at the same place but by the system clock.
    fn reference(&self) -> Stamps {
        self.kinds.last().copied().unwrap_or(Stamps::Socket)
    }

    fn note_delays(&mut self, phase: usize, exchanged: &Exchanged) {
        let reference = self.reference();
        let Some([sent, received]) = by_base(reference, exchanged) else { return };
        for (kind, stamps) in self.kinds.iter().enumerate().filter(|(_, stamps)| **stamps != reference) {
            let Some([other_sent, other_received]) = by_base(*stamps, exchanged) else { continue };
            let out = sent.counter - other_sent.counter;
            let back = other_received.counter - received.counter;
            for (direction, ticks) in [out, back].into_iter().enumerate() {
                let ns = (self.base * ticks).as_seconds() * 1e9;
                self.delays.entry((kind, direction, phase)).or_default().push(ns);
            }
        }
    }

    /// How each clock did, by phase.
    pub(super) fn figures(&self) -> Vec<ClockFigures> {
        self.errors.iter().map(|(&(number, phase), judged)| self.figures_of(number, phase, judged)).collect()
    }

    fn figures_of(&self, number: usize, phase: usize, judged: &[Judged]) -> ClockFigures {
        let track = &self.tracks[number];
        let errors = Sorted::of(judged.iter().map(|judged| judged.error_s));
        let at = |share: f64| errors.quantile(share).unwrap_or(f64::NAN);
        ClockFigures {
            counter: self.ways[track.counter].counter().to_owned(),
            stamps: track.stamps.name().to_owned(),
            phase,
            count: judged.len(),
            outside: judged.iter().filter(|judged| !judged.is_inside).count(),
            median_s: at(0.5),
            iqr_s: at(0.75) - at(0.25),
            p1_s: at(0.01),
            p25_s: at(0.25),
            p75_s: at(0.75),
            p99_s: at(0.99),
        }
    }

    /// How far each kind of stamps lies outside the reference's, by direction and phase.
    pub(super) fn stamp_figures(&self) -> Vec<StampFigures> {
        let each = self.delays.iter().filter_map(|(&(kind, direction, phase), delays)| {
            let stamps = self.kinds[kind].name().to_owned();
            let direction = ["out", "in"][direction].to_owned();
            let reference = self.reference().name().to_owned();
            Some(StampFigures { stamps, reference, direction, phase, count: delays.len(), ns: Spread::of(delays)? })
        });
        each.collect()
    }
}

fn absurd(way: &Way) -> Failure {
    format!("{} cannot carry a clock ({} Hz); leave it out with --only", way.name(), way.hertz()).into()
}

fn judge(estimate: &Estimate, point: &BracketedReading, truth: &Truth) -> (ClockError, ffclock_units::Bound) {
    let counter = Counter::from_raw(point.value as u64);
    let age = estimate.period * (counter - estimate.counter);
    let error = estimate.time + age - truth.at(Counter::from_raw(point.base));
    (ClockError::new(error), estimate.bound.grown(age, estimate.bound_growth))
}

/// Both stamps of an exchange by one counter; `None` where there are none of the kind.
fn stamps_of(stamps: Stamps, exchanged: &Exchanged, counter: usize, way: &Way) -> Option<[Stamp; 2]> {
    let around = [0, 1].map(|side: usize| exchanged.around[side][counter]);
    match stamps {
        _ if way.is_base() => by_base(stamps, exchanged),
        Stamps::User => Some([0, 1].map(|side: usize| shown(exchanged.shown[side][counter]))),
        _ => Some(by_base(stamps, exchanged)?.map(|stamp| carried_over(&stamp, &around))),
    }
}

/// Both stamps of an exchange by the base.
fn by_base(stamps: Stamps, exchanged: &Exchanged) -> Option<[Stamp; 2]> {
    match stamps {
        Stamps::User => Some(exchanged.user),
        Stamps::Socket => exchanged.socket,
        Stamps::Driver(_, place) => *exchanged.driver.get(place)?,
    }
}

/// What a counter showed itself.
fn shown(value: u64) -> Stamp {
    Stamp { counter: Counter::from_raw(value), width: Ticks::from_raw(1), location: StampLocation::User }
}

/// A stamp of the base as a reading of another counter, by the line between two readings of both around it.
fn carried_over(stamp: &Stamp, around: &[BracketedReading; 2]) -> Stamp {
    let [before, after] = around;
    let base = |counter: u64| i128::from(counter.wrapping_sub(before.base).cast_signed());
    let (length, counted) = (base(after.base).max(1), after.value - before.value);
    let value = before.value + base(stamp.counter.raw()) * counted / length;
    let widths = i128::from(stamp.width.raw()) + i128::from(before.width.max(after.width));
    // Rounded up, and one tick for the counter's own resolution.
    let width = widths * counted / length + 2;
    Stamp {
        counter: Counter::from_raw(value as u64),
        width: Ticks::from_raw(i64::try_from(width).unwrap_or(i64::MAX)),
        location: stamp.location,
    }
}

fn row_of([sent, received]: &[Stamp; 2]) -> [i128; 4] {
    let of = |stamp: &Stamp| [i128::from(stamp.counter.raw()), i128::from(stamp.width.raw())];
    let ([sent, sent_width], [received, received_width]) = (of(sent), of(received));
    [sent, sent_width, received, received_width]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_carried_over_to_another_counter() {
        let base = u64::MAX - 500;
        let point = |after: u64, value| BracketedReading { base: base.wrapping_add(after), width: 30, value };
        let around = [point(0, 1_000_000), point(3000, 1_001_000)];
        let stamp = |after: u64| Stamp {
            counter: Counter::from_raw(base.wrapping_add(after)),
            width: Ticks::from_raw(60),
            location: StampLocation::Kernel,
        };
        let carried = carried_over(&stamp(1500), &around);
        assert_eq!(carried.counter.raw(), 1_000_500);
        assert_eq!((carried.width, carried.location), (Ticks::from_raw(32), StampLocation::Kernel));
        assert_eq!(carried_over(&stamp(3000), &around).counter.raw(), 1_001_000);
        let stalled = [point(0, 5), point(0, 5)];
        assert_eq!(carried_over(&stamp(9), &stalled).counter.raw(), 5);
    }
}
