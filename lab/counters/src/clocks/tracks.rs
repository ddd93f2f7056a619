//! A clock for each counter and kind of stamps, and how well each does.

use super::packets::{DriverSource, Exchanged};
use crate::beside::BracketedReading;
use crate::known_time::KnownTime;
use crate::ways::CounterWay;
use ffclock_estimator::{Algorithm, Chosen, Configs, Estimator};
use ffclock_statistics::{Sorted, Spread};
use ffclock_units::{
    ClockError, Counter, Estimate, Exchange, LeapTable, Moment, Period, Server, ServerIdentity, ServerQuality, Span,
    Stamp, StampLocation, Ticks,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A frequency of which no clock can be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{name} cannot carry a clock ({hertz} Hz); leave it out with --only")]
pub struct AbsurdFrequency {
    /// The way to read the counter.
    pub name: String,
    /// What it claims.
    pub hertz: f64,
}

/// Where stamps are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StampOrigin {
    User,
    Socket,
    /// The source, and its place among those of the exchange.
    Driver(DriverSource, usize),
}

impl StampOrigin {
    const fn name(self) -> &'static str {
        match self {
            StampOrigin::User => "user",
            StampOrigin::Socket => "socket",
            StampOrigin::Driver(DriverSource::Trace, _) => "trace",
            StampOrigin::Driver(DriverSource::Module, _) => "module",
        }
    }
}

struct ClockTrack {
    /// Which of the ways.
    counter: usize,
    stamps: StampOrigin,
    algorithm: Algorithm,
    estimator: Chosen,
}

/// All clocks, and what was found of each.
pub struct Tracks {
    ways: Vec<CounterWay>,
    truth: KnownTime,
    base: Period,
    leaps: LeapTable,
    warm_up_s: f64,
    kinds: Vec<StampOrigin>,
    tracks: Vec<ClockTrack>,
    /// By clock and phase.
    errors: BTreeMap<(usize, usize), Vec<JudgedTime>>,
    /// By kind of stamps, direction and phase, ns.
    delays: BTreeMap<(usize, usize, usize), Vec<f64>>,
}

#[derive(Clone, Copy)]
struct JudgedTime {
    error_s: f64,
    is_inside: bool,
}

/// How well one clock did in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockFigures {
    /// The counter of the clock.
    pub counter: String,
    /// Where its packets were stamped.
    pub stamps: String,
    /// Its estimator; recordings of earlier versions, which had the classic one alone, do not name it.
    #[serde(default = "classic")]
    pub estimator: String,
    /// Number of the phase.
    pub phase: usize,
    /// How often the clock was compared with the known time.
    pub count: usize,
    /// Readings outside the clock's own bound.
    pub outside: usize,
    /// The median error [s].
    pub median_s: f64,
    /// The distance between the quartiles of the error [s].
    pub iqr_s: f64,
    /// The first percentile of the error [s].
    pub p1_s: f64,
    /// Its lower quartile [s].
    pub p25_s: f64,
    /// Its upper quartile [s].
    pub p75_s: f64,
    /// Its 99th percentile [s].
    pub p99_s: f64,
}

fn classic() -> String {
    Algorithm::Classic.name().to_owned()
}

fn socket() -> String {
    StampOrigin::Socket.name().to_owned()
}

/// How far stamps lie outside those at the driver, on the side of user space: how much earlier on the way out, how much
/// later on the way in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StampFigures {
    /// Where the stamps were taken.
    pub stamps: String,
    /// What they are compared with; in recordings of earlier versions always the socket's.
    #[serde(default = "socket")]
    pub reference: String,
    /// `out` or `in`.
    pub direction: String,
    /// Number of the phase.
    pub phase: usize,
    /// How many packets.
    pub count: usize,
    /// How far outside [ns].
    pub ns: Spread,
}

/// The errors of all clocks at one time, in the order of the header.
#[derive(Clone, Debug, Serialize)]
pub struct ErrorsAtTime {
    t: f64,
    phase: usize,
    error_s: Vec<Option<f64>>,
    bound_s: Vec<Option<f64>>,
}

/// The stamps of one exchange: for each clock Ta, its width, Tf, its width, in ticks of its counter.
#[derive(Clone, Debug, Serialize)]
pub struct StampRow {
    t: f64,
    phase: usize,
    server_in_ns: i128,
    server_out_ns: i128,
    stamps: Vec<Option<[i128; 4]>>,
}

impl Tracks {
    /// A clock for each of `ways`, each kind of stamps (of user space, of the socket and of the further `sources`) and
    /// each estimator, the daemon's own choice first. `base` is the period of the base.
    ///
    /// # Errors
    /// A counter claims a frequency of which no clock can be made.
    pub fn new(
        ways: &[CounterWay],
        sources: &[DriverSource],
        truth: KnownTime,
        base: Period,
    ) -> Result<Self, AbsurdFrequency> {
        let drivers = sources.iter().enumerate().map(|(place, source)| StampOrigin::Driver(*source, place));
        let kinds: Vec<StampOrigin> = [StampOrigin::User, StampOrigin::Socket].into_iter().chain(drivers).collect();
        let each = ways.iter().enumerate();
        let each = each.flat_map(|(counter, way)| kinds.iter().map(move |stamps| (counter, way, *stamps)));
        let each = each.flat_map(|of| [Algorithm::Learned, Algorithm::Classic].map(|algorithm| (of, algorithm)));
        let tracks = each.map(|((counter, way, stamps), algorithm)| {
            let period = Period::from_hertz(way.hertz()).ok_or_else(|| absurd(way))?;
            let estimator = Chosen::new(algorithm, Configs::default(), period, None);
            Ok(ClockTrack { counter, stamps, algorithm, estimator })
        });
        Ok(Tracks {
            ways: ways.to_vec(),
            truth,
            base,
            leaps: LeapTable::built_in(),
            warm_up_s: 0.0,
            kinds: kinds.clone(),
            tracks: tracks.collect::<Result<_, AbsurdFrequency>>()?,
            errors: BTreeMap::new(),
            delays: BTreeMap::new(),
        })
    }

    /// What the clocks show before `warm_up` does not count.
    #[must_use]
    pub fn after(self, warm_up: Span) -> Self {
        Tracks { warm_up_s: warm_up.as_seconds(), ..self }
    }

    /// Of the clocks, in order.
    pub fn names(&self) -> Vec<String> {
        let name = |track: &ClockTrack| {
            format!("{} {} {}", self.ways[track.counter].counter(), track.stamps.name(), track.algorithm)
        };
        self.tracks.iter().map(name).collect()
    }

    /// Compares every clock with the truth now, `points` being every counter beside the base; `None` before there is
    /// any.
    pub fn check(&mut self, phase: usize, t: f64, points: &[BracketedReading]) -> Option<ErrorsAtTime> {
        let estimates: Vec<Option<Estimate>> = self.tracks.iter().map(|track| track.estimator.estimate()).collect();
        let mut errors = ErrorsAtTime { t, phase, error_s: Vec::new(), bound_s: Vec::new() };
        for (number, estimate) in estimates.iter().enumerate() {
            let point = points[self.tracks[number].counter];
            let judged = estimate.as_ref().map(|estimate| judge(estimate, &point, &self.truth));
            errors.error_s.push(judged.map(|(error, _)| error.as_span().as_seconds()));
            errors.bound_s.push(judged.map(|(_, bound)| bound.as_seconds()));
            if let Some((error, bound)) = judged.filter(|_| t >= self.warm_up_s) {
                let judged = JudgedTime { error_s: error.as_span().as_seconds(), is_inside: bound.contains(error) };
                self.errors.entry((number, phase)).or_default().push(judged);
            }
        }
        errors.error_s.iter().any(Option::is_some).then_some(errors)
    }

    /// Hands an exchange to every clock.
    pub fn feed(&mut self, phase: usize, t: f64, exchanged: &Exchanged) -> StampRow {
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
        StampRow { t, phase, server_in_ns: nanos(server_in), server_out_ns: nanos(server_out), stamps }
    }

    /// What the other stamps are compared with: those of the raw counter at the driver where there are any, the
    /// module's before the tracepoints'; else the socket's, which the kernel takes at the same place but by the system
    /// clock.
    fn reference(&self) -> StampOrigin {
        self.kinds.last().copied().unwrap_or(StampOrigin::Socket)
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
    pub fn figures(&self) -> Vec<ClockFigures> {
        self.errors.iter().map(|(&(number, phase), judged)| self.figures_of(number, phase, judged)).collect()
    }

    fn figures_of(&self, number: usize, phase: usize, judged: &[JudgedTime]) -> ClockFigures {
        let track = &self.tracks[number];
        let errors = Sorted::of(judged.iter().map(|judged| judged.error_s));
        let at = |share: f64| errors.quantile(share).unwrap_or(f64::NAN);
        ClockFigures {
            counter: self.ways[track.counter].counter().to_owned(),
            stamps: track.stamps.name().to_owned(),
            estimator: track.algorithm.name().to_owned(),
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
    pub fn stamp_figures(&self) -> Vec<StampFigures> {
        let each = self.delays.iter().filter_map(|(&(kind, direction, phase), delays)| {
            let stamps = self.kinds[kind].name().to_owned();
            let direction = ["out", "in"][direction].to_owned();
            let reference = self.reference().name().to_owned();
            Some(StampFigures { stamps, reference, direction, phase, count: delays.len(), ns: Spread::of(delays)? })
        });
        each.collect()
    }
}

fn absurd(way: &CounterWay) -> AbsurdFrequency {
    AbsurdFrequency { name: way.name(), hertz: way.hertz() }
}

fn judge(estimate: &Estimate, point: &BracketedReading, truth: &KnownTime) -> (ClockError, ffclock_units::Bound) {
    let counter = Counter::from_raw(point.value as u64);
    let at = estimate.at(counter);
    (ClockError::new(at.time - truth.at(Counter::from_raw(point.base))), at.bound)
}

/// Both stamps of an exchange by one counter; `None` where there are none of the kind.
fn stamps_of(stamps: StampOrigin, exchanged: &Exchanged, counter: usize, way: &CounterWay) -> Option<[Stamp; 2]> {
    let around = [0, 1].map(|side: usize| exchanged.around[side][counter]);
    match stamps {
        _ if way.is_base() => by_base(stamps, exchanged),
        StampOrigin::User => Some([0, 1].map(|side: usize| shown(exchanged.shown[side][counter]))),
        _ => Some(by_base(stamps, exchanged)?.map(|stamp| carried_over(&stamp, &around))),
    }
}

/// Both stamps of an exchange by the base.
fn by_base(stamps: StampOrigin, exchanged: &Exchanged) -> Option<[Stamp; 2]> {
    match stamps {
        StampOrigin::User => Some(exchanged.user),
        StampOrigin::Socket => exchanged.socket,
        StampOrigin::Driver(_, place) => *exchanged.driver.get(place)?,
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
mod tests;
