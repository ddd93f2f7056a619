//! The host's delays of the daemon's own packets, and whether stamps may be moved by them.
//!
//! Each exchange is known twice: as the daemon stamped it, and as it passed the driver. The differences are the delays
//! of the host. A clock of either kind sees the same network and the same server, so that only these delays make one
//! ahead of the other.

use super::boundary::Crossed;
use crate::distances::{BoundaryDistances, SampledNs};
use ffclock_control::calibration::{Calibration, CalibrationError, Entry, QUIET, Subject, Taken};
use ffclock_estimator::{Algorithm, Chosen, Configs, Estimator};
use ffclock_statistics::{Spread, percentile};
use ffclock_units::{Counter, Exchange, Period, Stamp, StampLocation};
use serde::Serialize;
use std::path::Path;
use thiserror::Error;

/// How often the remaining bias is subtracted again: a clock does not follow its stamps quite in proportion.
const APPROXIMATIONS: usize = 4;
/// With fewer exchanges an edge is that of a few packets.
pub const FEWEST: usize = 40;

/// What the figures are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To move stamps by: none of them may have been moved.
    Calibration,
    /// To look at.
    Check,
}

/// An exchange, and when its packets passed the driver if that was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JoinedExchange {
    /// As the daemon recorded it.
    pub exchange: Exchange,
    /// At the driver.
    pub crossed: Option<Crossed>,
}

/// The same of the way out and of the way in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EachWay<T> {
    /// From the stamp to the driver.
    pub out: T,
    /// From the driver to the stamp.
    pub back: T,
}

/// What the clock and the second move leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Exchanges of which it is not certain which packets were theirs, or that were stamped elsewhere than most.
    pub exchanges: usize,
    /// Events that the kernel could not keep.
    pub events: u64,
    /// Rows of the recording that are damaged.
    pub rows: u64,
}

/// Where the packets were looked at, and what the look itself lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundaryLook {
    /// The device that they passed.
    pub device: String,
    /// Whether the daemon had moved its stamps.
    pub is_calibrated: bool,
    /// Events that the kernel could not keep.
    pub events_lost: u64,
    /// Rows of the recording that are damaged.
    pub rows_unreadable: u64,
}

/// What the daemon's own packets say of the host's delays.
#[derive(Debug)]
pub struct HostDelays {
    device: String,
    location: Taken,
    /// Whether the daemon had moved its stamps.
    is_calibrated: bool,
    /// The delays of all exchanges that are nearest to the driver.
    least_ns: Option<EachWay<SampledNs>>,
    /// The delays of each exchange whose packets are certain [ns].
    delays_ns: EachWay<Vec<f64>>,
    /// The clock of the exchanges as the daemon stamped them, ahead of the clock of the same packets stamped at the
    /// driver [ns]: median of the later half.
    bias_ns: Option<f64>,
    /// The exchanges, and the period of the counter.
    twice: Vec<Twice>,
    period: Period,
    counts: LeftOut,
}

/// An exchange as it was stamped, and as it would have been at the driver.
#[derive(Clone, Copy, Debug)]
struct Twice {
    stamped: Exchange,
    at_driver: Exchange,
}

/// A calibration by the daemon's own packets, and what it rests on.
#[derive(Debug, Serialize)]
pub struct Calibrated {
    /// The entry for the calibration file.
    #[serde(flatten)]
    pub entry: Entry,
    /// Exchanges that were left out.
    pub left_out: usize,
    /// Events that the kernel could not keep.
    pub events_lost: u64,
    /// Rows of the recording that are damaged.
    pub rows_unreadable: u64,
    /// What the clock was ahead for the host's delays [ns].
    pub bias_ns: f64,
    /// What it would still be ahead with this calibration [ns].
    pub left_ns: f64,
}

/// The figures of the host's delays. Pairs are those of the way out and of the way in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostDelayFigures {
    /// The device that the packets passed.
    pub device: String,
    /// Where they were stamped.
    pub location: Taken,
    /// Whether the daemon had moved its stamps.
    pub is_calibrated: bool,
    /// How many exchanges the figures rest on.
    pub exchanges: usize,
    /// Exchanges that were left out.
    pub left_out: usize,
    /// Events that the kernel could not keep.
    pub events_lost: u64,
    /// Rows of the recording that are damaged.
    pub rows_unreadable: u64,
    /// The delays nearest to the driver [ns].
    pub least_ns: Option<(f64, f64)>,
    /// From the stamp to the driver [ns].
    pub out_ns: Option<Spread>,
    /// From the driver to the stamp [ns].
    pub in_ns: Option<Spread>,
    /// The edges of the two delays [ns].
    pub edges_ns: Option<(f64, f64)>,
    /// How far the figures may be off [ns], 95 %.
    pub uncertainty_ns: Option<f64>,
    /// How far the clock is ahead for the host's delays [ns].
    pub bias_ns: Option<f64>,
}

/// Why nothing is calibrated.
#[derive(Debug, Error)]
pub enum NotCalibrated {
    /// There are too few exchanges.
    #[error(
        "{counted}, and {FEWEST} are needed; look for longer (--for), name the device (--device), and see that the daemon is \
         recording"
    )]
    TooFew {
        /// How many there were, and what was left out.
        counted: String,
    },
    /// Which packets belonged to which exchange is not certain enough.
    #[error(
        "{counted}: which packets belong to which exchange is not certain enough to move stamps by, so nothing is written; \
         measure again while there are fewer other packets of NTP on the device, or look with --check"
    )]
    Uncertain {
        /// How many there were, and what was left out.
        counted: String,
    },
    /// The exchanges make no clock.
    #[error("these packets make no clock; look for longer (--for)")]
    NoClock,
    /// The calibration would not help.
    #[error(
        "a clock with this calibration would still be {left:.2} us off, of {bias:.2} us without ({uncertainty:.2} us are \
         certain), so nothing is written; measure again, for longer (--for) and on a quieter host",
        left = left_ns / 1e3, bias = bias_ns / 1e3, uncertainty = uncertainty_ns / 1e3
    )]
    StillOff {
        /// How far the clock would be off with it [ns].
        left_ns: f64,
        /// How far it is off without [ns].
        bias_ns: f64,
        /// How far the figures may be off [ns].
        uncertainty_ns: f64,
    },
    /// Its figures are none of a host.
    #[error(transparent)]
    Impossible(#[from] CalibrationError),
}

impl HostDelays {
    /// The delays of these exchanges.
    pub fn of(joined: &[JoinedExchange], period: Period, look: BoundaryLook) -> Self {
        let location = commonest(joined);
        let is_there =
            |exchange: &Exchange| [exchange.sent, exchange.received].iter().all(|one| one.location == location);
        let seen: Vec<(Twice, Crossed)> = joined
            .iter()
            .filter(|one| is_there(&one.exchange))
            .filter_map(|one| Some((Twice::of(&one.exchange, one.crossed.as_ref()?), one.crossed?)))
            .collect();
        let certain = seen.iter().filter(|(_, crossed)| crossed.is_certain);
        let twice: Vec<Twice> = certain.map(|(twice, _)| *twice).collect();
        let ns = |later: Counter, earlier: Counter| (period * (later - earlier)).as_seconds() * 1e9;
        let out = |one: &Twice| ns(one.at_driver.sent.counter, one.stamped.sent.counter);
        let back = |one: &Twice| ns(one.stamped.received.counter, one.at_driver.received.counter);
        // The fastest request comes right after another one, whose packets make it uncertain: it is in the minima all
        // the same.
        let least = |delay: &dyn Fn(&Twice) -> f64| {
            let delays: Vec<f64> = seen.iter().map(|(one, _)| delay(one)).collect();
            Some(BoundaryDistances::of(&delays)?.nearest())
        };
        let BoundaryLook { device, is_calibrated, events_lost, rows_unreadable } = look;
        HostDelays {
            device,
            location: Taken::of(location),
            is_calibrated,
            least_ns: least(&out).zip(least(&back)).map(|(out, back)| EachWay { out, back }),
            delays_ns: EachWay { out: twice.iter().map(out).collect(), back: twice.iter().map(back).collect() },
            bias_ns: bias_ns(&twice, period),
            counts: LeftOut { exchanges: joined.len() - twice.len(), events: events_lost, rows: rows_unreadable },
            twice,
            period,
        }
    }

    /// How many exchanges the figures rest on.
    pub fn exchanges(&self) -> usize {
        self.delays_ns.out.len()
    }

    /// Checks that there are enough exchanges, and for a calibration that they can be believed. `recording` names the
    /// source.
    ///
    /// # Errors
    /// [`NotCalibrated::TooFew`], [`NotCalibrated::Uncertain`].
    pub fn check(&self, recording: &Path, purpose: Purpose) -> Result<(), NotCalibrated> {
        let (used, LeftOut { exchanges, events, rows }) = (self.exchanges(), self.counts);
        let counted = format!(
            "{used} exchanges of the recording {} were seen on {} ({exchanges} left out as uncertain, {events} \
             events lost, {rows} rows damaged)",
            recording.display(),
            self.device
        );
        if used < FEWEST {
            return Err(NotCalibrated::TooFew { counted });
        }
        if purpose == Purpose::Calibration && (events > 0 || exchanges > used) {
            return Err(NotCalibrated::Uncertain { counted });
        }
        Ok(())
    }

    fn distances(&self) -> Option<EachWay<BoundaryDistances>> {
        let EachWay { out, back } = &self.delays_ns;
        Some(EachWay { out: BoundaryDistances::of(out)?, back: BoundaryDistances::of(back)? })
    }

    /// The edges of the two delays [ns].
    fn edges_ns(&self) -> Option<EachWay<f64>> {
        let EachWay { out, back } = self.distances()?;
        Some(EachWay { out: out.edge_ns(), back: back.edge_ns() })
    }

    /// How far the figures may be off [ns], 95 %: the edges by the ranks between which they lie, each way for itself,
    /// and the nearest delays by how far away they could have come out, as those of test packets.
    fn uncertainty_ns(&self) -> Option<f64> {
        let EachWay { out, back } = self.distances()?;
        let edges_ns = out.edge_half_width_ns().hypot(back.edge_half_width_ns());
        let EachWay { out, back } = self.least_ns?;
        Some(edges_ns.max(out.width_ns() + back.width_ns()))
    }

    /// For the calibration. What the clock finds unequal is where the calibrated clock of these very packets is right:
    /// of a few approximations the best.
    ///
    /// # Errors
    /// [`NotCalibrated::NoClock`], [`NotCalibrated::StillOff`], [`NotCalibrated::Impossible`].
    pub fn entry(&self) -> Result<Calibrated, NotCalibrated> {
        let Some(bias_ns) = self.bias_ns else { return Err(NotCalibrated::NoClock) };
        let first = self.first_approximation().ok_or(NotCalibrated::NoClock)?;
        let uncertainty_ns = first.uncertainty_ns;
        let (entry, left_ns) = self.best_approximation(first)?;
        let most_ns = uncertainty_ns.max(bias_ns.abs() / 4.0);
        if left_ns.abs() > most_ns {
            return Err(NotCalibrated::StillOff { left_ns, bias_ns, uncertainty_ns });
        }
        let LeftOut { exchanges, events, rows } = self.counts;
        Ok(Calibrated { entry, left_out: exchanges, events_lost: events, rows_unreadable: rows, bias_ns, left_ns })
    }

    /// The entry by the edges of the delays.
    fn first_approximation(&self) -> Option<Entry> {
        let (least, edges) = (self.least_ns?, self.edges_ns()?);
        Some(Entry {
            subject: Subject::here(&self.device),
            location: self.location,
            load: QUIET.to_owned(),
            out_ns: least.out.ns,
            in_ns: least.back.ns,
            unequal_ns: Some(edges.out - edges.back),
            uncertainty_ns: self.uncertainty_ns()?,
            packets: self.exchanges() as u64,
            measured_at: ffclock_sys::system_utc_now().whole_seconds(),
        })
    }

    /// The entry that leaves least of the bias, and what it leaves [ns].
    fn best_approximation(&self, mut entry: Entry) -> Result<(Entry, f64), NotCalibrated> {
        let mut left_ns = self.left_ns(&entry)?;
        let mut best = (entry.clone(), left_ns);
        for _ in 0..APPROXIMATIONS {
            entry.unequal_ns = entry.unequal_ns.map(|unequal_ns| unequal_ns + 2.0 * left_ns);
            // Approximations that lead away from what is possible end.
            let Ok(next_ns) = self.left_ns(&entry) else { break };
            left_ns = next_ns;
            if left_ns.abs() < best.1.abs() {
                best = (entry.clone(), left_ns);
            }
        }
        Ok(best)
    }

    /// What the clock of these packets would still be ahead [ns] with this calibration, which makes stamps wider as
    /// well.
    fn left_ns(&self, entry: &Entry) -> Result<f64, NotCalibrated> {
        let calibration = Calibration { entries: vec![entry.clone()] };
        let shift = calibration.shift(&entry.subject, entry.location, self.period)?;
        let moved = self.twice.iter().map(|one| {
            let stamped = Exchange {
                sent: shift.sent(one.stamped.sent),
                received: shift.received(one.stamped.received),
                ..one.stamped
            };
            Twice { stamped, ..*one }
        });
        let moved: Vec<Twice> = moved.collect();
        bias_ns(&moved, self.period).ok_or(NotCalibrated::NoClock)
    }

    /// The figures, for tables and JSON.
    pub fn figures(&self) -> HostDelayFigures {
        let LeftOut { exchanges, events, rows } = self.counts;
        HostDelayFigures {
            device: self.device.clone(),
            location: self.location,
            is_calibrated: self.is_calibrated,
            exchanges: self.exchanges(),
            left_out: exchanges,
            events_lost: events,
            rows_unreadable: rows,
            least_ns: self.least_ns.map(|least| (least.out.ns, least.back.ns)),
            out_ns: Spread::of(&self.delays_ns.out),
            in_ns: Spread::of(&self.delays_ns.back),
            edges_ns: self.edges_ns().map(|edges| (edges.out, edges.back)),
            uncertainty_ns: self.uncertainty_ns(),
            bias_ns: self.bias_ns,
        }
    }
}

/// Where most exchanges were stamped, both packets at the same location.
fn commonest(joined: &[JoinedExchange]) -> StampLocation {
    let both_at = |one: &JoinedExchange, location: StampLocation| {
        (one.exchange.sent.location, one.exchange.received.location) == (location, location)
    };
    let count = |location: StampLocation| joined.iter().filter(|one| both_at(one, location)).count();
    if count(StampLocation::Kernel) > count(StampLocation::User) { StampLocation::Kernel } else { StampLocation::User }
}

impl Twice {
    fn of(exchange: &Exchange, crossed: &Crossed) -> Self {
        let at = |stamp: Stamp, counter| Stamp { counter, location: StampLocation::Kernel, ..stamp };
        let at_driver = Exchange {
            sent: at(exchange.sent, crossed.out),
            received: at(exchange.received, crossed.back),
            ..*exchange
        };
        Twice { stamped: *exchange, at_driver }
    }
}

/// How far the clock of one kind of stamps is ahead of that of the other, which sees the same packets: neither the
/// network nor the server is in the difference.
fn bias_ns(twice: &[Twice], period: Period) -> Option<f64> {
    let mut clocks = [(); 2].map(|()| Chosen::new(Algorithm::default(), Configs::default(), period, None));
    let mut ahead = Vec::new();
    for (number, one) in twice.iter().enumerate() {
        clocks[0].update(&one.stamped);
        clocks[1].update(&one.at_driver);
        if let (Some(stamped), Some(at_driver)) = (clocks[0].estimate(), clocks[1].estimate()) {
            let at = one.stamped.received.counter;
            if 2 * number >= twice.len() {
                ahead.push((stamped.at(at).time - at_driver.at(at).time).as_seconds() * 1e9);
            }
        }
    }
    percentile(&ahead, 0.5)
}

#[cfg(test)]
mod tests;
