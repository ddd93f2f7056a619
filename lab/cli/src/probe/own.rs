//! The host's delays of the daemon's own packets: what it records of them, joined with when they passed the driver.

mod recording;
#[cfg(test)]
mod tests;

use self::recording::Recording;
use crate::counters::conditions::Conditions;
use crate::failure::Failure;
use crate::text::{self, Align};
use ffclock_control::calibration::{Calibration, Entry, QUIET, Subject, Taken};
use ffclock_estimator::{Algorithm, Chosen, Configs, Estimator};
use ffclock_instruments::campaign::{Surroundings, schedule};
use ffclock_instruments::probe::findings::{EDGE, Smallest};
use ffclock_instruments::probe::own::{Boundary, Crossed, Crossings, Side};
use ffclock_instruments::spread::{Spread, percentile};
use ffclock_sys::mono_now;
use ffclock_units::{Counter, Estimate, Exchange, Moment, Period, Span, Stamp, StampLocation, Tai};
use serde::Serialize;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;

/// Between two looks at the kernel's buffers: seldom, as whoever looks keeps a processor awake.
const EVERY: Span = Span::from_millis(200);
/// How often what is left is taken off again; a clock does not follow its stamps quite in proportion.
const APPROXIMATIONS: usize = 4;
/// With fewer exchanges an edge is a few packets'.
const FEWEST: usize = 40;

/// What the daemon's own packets say.
pub(super) struct Own {
    device: String,
    location: Taken,
    /// Whether the daemon had moved its stamps.
    is_calibrated: bool,
    /// The smallest delay from the stamp to the driver, and from the driver to the stamp, of all exchanges [ns].
    least_ns: Option<(Smallest, Smallest)>,
    /// From the stamp to the driver, and from the driver to the stamp [ns], one for each exchange whose packets are certain.
    out_ns: Vec<f64>,
    in_ns: Vec<f64>,
    /// The clock of the exchanges as the daemon stamped them, ahead of the clock of the same packets stamped at the driver [ns]: median of the
    /// later half.
    bias_ns: Option<f64>,
    /// The exchanges, and the period of the counter.
    twice: Vec<Twice>,
    period: Period,
    counts: LeftOut,
}

/// What the clock and the second move do not go by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LeftOut {
    /// Exchanges of which it is not certain which packets were theirs, or that were stamped elsewhere than most.
    exchanges: usize,
    /// Events that the kernel could not keep.
    events: u64,
    /// Rows of the recording that are damaged.
    rows: u64,
}

/// An exchange as it was stamped, and as it would have been at the driver.
#[derive(Clone, Copy)]
struct Twice {
    stamped: Exchange,
    at_driver: Exchange,
}

/// What the figures are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To move stamps by: none of them may have been moved.
    Calibration,
    /// To look at.
    Check,
}

/// A calibration by the daemon's own packets, and what it rests on.
#[derive(Debug, Serialize)]
pub(super) struct Calibrated {
    #[serde(flatten)]
    pub(super) entry: Entry,
    /// Exchanges that were left out, events that were lost, rows that could not be read.
    left_out: usize,
    events_lost: u64,
    rows_unreadable: u64,
    /// What the clock was ahead for the host's delays [ns], and what it would still be with this calibration.
    bias_ns: f64,
    left_ns: f64,
}

/// Looks at the daemon's packets for so long, and at what it recorded meanwhile.
pub(super) fn measure(recording: &Path, device: Option<&str>, length: Span, purpose: Purpose) -> Result<Own, Failure> {
    let recording = Recording::open(recording)?;
    recording.check(purpose)?;
    let counter = ffclock_counter::choose(ffclock_counter::Choice::Auto).kind;
    let period = recording.period(counter)?;
    recording.read()?.check_length(length, period)?;
    let device = device.map_or_else(|| recording.device(), |device| Ok(device.to_owned()))?;
    let boundary = Boundary::open(counter, period, &device);
    let boundary = boundary
        .map_err(|error| format!("the boundary to the driver cannot be seen, so nothing is calibrated ({error})"))?;
    let crossings = look(boundary, length, purpose)?;
    let recorded = recording.read()?.since(crossings.begin());
    let is_calibrated = recording.is_calibrated();
    let side = |exchange: &Exchange| {
        let is_program = [exchange.sent, exchange.received].iter().all(|one| one.location == StampLocation::User);
        if is_program && !is_calibrated { Side::Program } else { Side::Either }
    };
    let joined = recorded.exchanges.iter().map(|exchange| (*exchange, crossings.of(exchange, side(exchange))));
    let own = Own::of(&joined.collect::<Vec<_>>(), period);
    let counts = LeftOut { events: crossings.lost(), rows: recorded.unreadable, ..own.counts };
    let own = Own { device, is_calibrated, counts, ..own };
    own.check(&recording, purpose)?;
    Ok(own)
}

fn look(mut boundary: Boundary, length: Span, purpose: Purpose) -> Result<Crossings, Failure> {
    let phases = schedule(&[], length);
    let mut conditions = Conditions::prepare(&phases)?;
    conditions.enter(&phases[0])?;
    let failed = |error: std::io::Error| Failure::from(format!("cannot read the kernel's events: {error}"));
    let (begin, length) = (mono_now(), length.as_seconds());
    loop {
        boundary.look().map_err(failed)?;
        let passed = (mono_now() - begin).as_seconds();
        if conditions.wait(mono_now() + EVERY, (passed / length).min(1.0))?.is_break() {
            if purpose == Purpose::Calibration {
                return Err("interrupted: nothing is written".into());
            }
            break;
        }
        if passed >= length {
            break;
        }
    }
    boundary.finish().map_err(failed)
}

impl Own {
    /// Of exchanges, each with its passages at the driver if they were seen.
    fn of(joined: &[(Exchange, Option<Crossed>)], period: Period) -> Self {
        let location = commonest(joined);
        let is_there =
            |exchange: &Exchange| [exchange.sent, exchange.received].iter().all(|one| one.location == location);
        let seen = joined.iter().filter(|(exchange, _)| is_there(exchange));
        let seen: Vec<(Twice, bool)> = seen
            .filter_map(|(exchange, crossed)| Some((exchange, crossed.as_ref()?)))
            .map(|(exchange, crossed)| (Twice::of(exchange, crossed), crossed.is_certain))
            .collect();
        let twice: Vec<Twice> = seen.iter().filter(|(_, is_certain)| *is_certain).map(|(twice, _)| *twice).collect();
        let ns = |(later, earlier): (Counter, Counter)| (period * (later - earlier)).as_seconds() * 1e9;
        let out = |one: &Twice| ns((one.at_driver.sent.counter, one.stamped.sent.counter));
        let back = |one: &Twice| ns((one.stamped.received.counter, one.at_driver.received.counter));
        // The fastest request comes right after another one, whose packets make it uncertain: it is in the minima all the same.
        let least = |delay: &dyn Fn(&Twice) -> f64| Smallest::of(seen.iter().map(|(one, _)| delay(one)).collect());
        Own {
            device: String::new(),
            location: Taken::of(location),
            is_calibrated: false,
            least_ns: least(&out).zip(least(&back)),
            out_ns: twice.iter().map(out).collect(),
            in_ns: twice.iter().map(back).collect(),
            bias_ns: bias_ns(&twice, period),
            counts: LeftOut { exchanges: joined.len() - twice.len(), ..LeftOut::default() },
            twice,
            period,
        }
    }

    /// Whether there is enough of it, and for a calibration whether it can be believed.
    fn check(&self, recording: &Recording, purpose: Purpose) -> Result<(), Failure> {
        let (used, LeftOut { exchanges, events, rows }) = (self.out_ns.len(), self.counts);
        let counted = format!(
            "{used} exchanges of the recording {} were seen on {} ({exchanges} left out as uncertain, {events} events lost, {rows} rows damaged)",
            recording.path.display(),
            self.device
        );
        if used < FEWEST {
            let remedy = "look for longer (--for), name the device (--device), and see that the daemon is recording";
            return Err(format!("{counted}, and {FEWEST} are needed; {remedy}").into());
        }
        if purpose == Purpose::Calibration && (events > 0 || exchanges > used) {
            return Err(format!(
                "{counted}: which packets were whose is not certain enough to move stamps by, so nothing is written; measure again while \
                 there are fewer other packets of NTP on the device, or look with --check"
            )
            .into());
        }
        Ok(())
    }

    /// The edges of the two delays [ns].
    fn edges_ns(&self) -> Option<(f64, f64)> {
        Some((percentile(&self.out_ns, EDGE)?, percentile(&self.in_ns, EDGE)?))
    }

    /// How far the figures may be off [ns], 95 %: the edges by the ranks between which they lie, each way for itself, and the smallest
    /// delays by how large they could have come out, as those of test packets.
    fn uncertainty_ns(&self) -> Option<f64> {
        let half = |values: &[f64]| {
            let share = 1.96 * (EDGE * (1.0 - EDGE) / values.len() as f64).sqrt();
            let (low, high) = (percentile(values, (EDGE - share).max(0.0))?, percentile(values, EDGE + share)?);
            Some((high - low) / 2.0)
        };
        let edges_ns = half(&self.out_ns)?.hypot(half(&self.in_ns)?);
        let (out, back) = self.least_ns?;
        Some(edges_ns.max((out.high - out.min) + (back.high - back.min)))
    }

    /// For the calibration. What the clock finds unequal is where the calibrated clock of these very packets is right: of a few
    /// approximations the best.
    pub(super) fn entry(&self) -> Result<Calibrated, Failure> {
        let figures = self.least_ns.zip(self.uncertainty_ns()).zip(self.edges_ns()).zip(self.bias_ns);
        let ((((out, back), uncertainty_ns), edges_ns), bias_ns) =
            figures.ok_or("these packets make no clock; look for longer (--for)")?;
        let mut entry = Entry {
            subject: Subject::here(&self.device),
            location: self.location,
            load: QUIET.to_owned(),
            out_ns: out.min,
            in_ns: back.min,
            unequal_ns: Some(edges_ns.0 - edges_ns.1),
            uncertainty_ns,
            packets: self.out_ns.len() as u64,
            measured_at: ffclock_sys::system_utc_now().whole_seconds(),
        };
        let mut best = (self.left_ns(&entry)?, entry.clone());
        let mut left_ns = best.0;
        for _ in 0..APPROXIMATIONS {
            entry.unequal_ns = entry.unequal_ns.map(|unequal_ns| unequal_ns + 2.0 * left_ns);
            // Approximations that lead away from what is possible end.
            let Ok(next_ns) = self.left_ns(&entry) else { break };
            left_ns = next_ns;
            if left_ns.abs() < best.0.abs() {
                best = (left_ns, entry.clone());
            }
        }
        let (left_ns, entry) = best;
        let most_ns = uncertainty_ns.max(bias_ns.abs() / 4.0);
        if left_ns.abs() > most_ns {
            return Err(format!(
                "a clock with this calibration would still be {:.2} us off, of {:.2} us without ({:.2} us are certain), so nothing is written; \
                 measure again, for longer (--for) and on a quieter host",
                left_ns / 1e3,
                bias_ns / 1e3,
                uncertainty_ns / 1e3
            )
            .into());
        }
        let LeftOut { exchanges, events, rows } = self.counts;
        Ok(Calibrated { entry, left_out: exchanges, events_lost: events, rows_unreadable: rows, bias_ns, left_ns })
    }

    /// What the clock of these packets would still be ahead [ns] with this calibration, which makes stamps wider as well.
    fn left_ns(&self, entry: &Entry) -> Result<f64, Failure> {
        let calibration = Calibration { entries: vec![entry.clone()] };
        let shift =
            calibration.shift(&entry.subject, entry.location, self.period).map_err(|error| error.to_string())?;
        let moved = self.twice.iter().map(|one| {
            let stamped = Exchange {
                sent: shift.sent(one.stamped.sent),
                received: shift.received(one.stamped.received),
                ..one.stamped
            };
            Twice { stamped, ..*one }
        });
        let moved: Vec<Twice> = moved.collect();
        bias_ns(&moved, self.period).ok_or_else(|| "these packets make no clock".into())
    }

    /// For programs.
    pub(super) fn told(&self) -> serde_json::Value {
        json!({
            "device": self.device, "location": self.location, "is_calibrated": self.is_calibrated, "exchanges": self.out_ns.len(),
            "left_out": self.counts.exchanges, "events_lost": self.counts.events, "rows_unreadable": self.counts.rows,
            "least_ns": self.least_ns.map(|(out, back)| (out.min, back.min)), "out_ns": Spread::of(&self.out_ns), "in_ns": Spread::of(&self.in_ns),
            "edges_ns": self.edges_ns(), "uncertainty_ns": self.uncertainty_ns(), "bias_ns": self.bias_ns,
        })
    }

    /// For people.
    pub(super) fn table(&self) -> String {
        const HEADING: [(&str, Align); 6] = [
            ("WAY", Align::Left),
            ("MIN (us)", Align::Right),
            ("EDGE (us)", Align::Right),
            ("MEDIAN (us)", Align::Right),
            ("75 % (us)", Align::Right),
            ("99 % (us)", Align::Right),
        ];
        let us = |ns: f64| format!("{:.2}", ns / 1e3);
        let row = |way: &str, values: &[f64], least: Option<Smallest>| {
            let (spread, edge) = (Spread::of(values)?, percentile(values, EDGE)?);
            Some(vec![way.to_owned(), us(least?.min), us(edge), us(spread.median), us(spread.p75), us(spread.p99)])
        };
        let least = self.least_ns;
        let ways =
            [row("out", &self.out_ns, least.map(|(out, _)| out)), row("in", &self.in_ns, least.map(|(_, back)| back))];
        let rows: Vec<_> = ways.into_iter().flatten().collect();
        let moved = if self.is_calibrated { ", moved by the calibration" } else { "" };
        let mut page = format!(
            "{} exchanges over {}, {} stamps{moved}, against the driver ({} left out as uncertain, {} events lost, {} rows damaged)\n{}",
            self.out_ns.len(),
            self.device,
            self.location.name(),
            self.counts.exchanges,
            self.counts.events,
            self.counts.rows,
            text::table(&HEADING, &rows)
        );
        if let Some(bias_ns) = self.bias_ns {
            let _ =
                writeln!(page, "\nfor the host's delays the clock is {} us off (ahead where positive)", us(bias_ns));
        }
        page
    }
}

impl Calibrated {
    /// What it rests on, for people.
    pub(super) fn told(&self) -> String {
        format!(
            "by {} exchanges ({} left out as uncertain, {} events lost, {} rows damaged); the clock was {:.2} us off for the host's delays, and \
             {:.2} us of it are left with these figures",
            self.entry.packets,
            self.left_out,
            self.events_lost,
            self.rows_unreadable,
            self.bias_ns / 1e3,
            self.left_ns / 1e3
        )
    }
}

/// Where most exchanges were stamped, both packets at the same location.
fn commonest(joined: &[(Exchange, Option<Crossed>)]) -> StampLocation {
    let count = |location: StampLocation| {
        joined.iter().filter(|(one, _)| (one.sent.location, one.received.location) == (location, location)).count()
    };
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

/// How far the clock of one kind of stamps is ahead of that of the other, which sees the same packets: neither the network nor the server
/// is in the difference.
fn bias_ns(twice: &[Twice], period: Period) -> Option<f64> {
    let mut clocks = [(); 2].map(|()| Chosen::new(Algorithm::default(), Configs::default(), period, None));
    let mut ahead = Vec::new();
    for (number, one) in twice.iter().enumerate() {
        clocks[0].update(&one.stamped);
        clocks[1].update(&one.at_driver);
        if let (Some(stamped), Some(at_driver)) = (clocks[0].estimate(), clocks[1].estimate()) {
            let at = one.stamped.received.counter;
            if 2 * number >= twice.len() {
                ahead.push((time_at(&stamped, at) - time_at(&at_driver, at)).as_seconds() * 1e9);
            }
        }
    }
    percentile(&ahead, 0.5)
}

fn time_at(estimate: &Estimate, counter: Counter) -> Moment<Tai> {
    estimate.time + estimate.period * (counter - estimate.counter)
}
