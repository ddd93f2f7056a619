//! The host's delays of the daemon's own packets: what it records of them, joined with when they passed the driver.

use super::network::device_towards;
use crate::counters::conditions::Conditions;
use crate::failure::Failure;
use crate::text::{self, Align};
use ffclock_daemon::calibration::{Calibration, Entry, QUIET, Subject, Taken};
use ffclock_estimator::{Algorithm, Chosen, Configs, Estimator};
use ffclock_instruments::campaign::{Surroundings, schedule};
use ffclock_instruments::probe::findings::EDGE;
use ffclock_instruments::probe::own::{Boundary, Crossings};
use ffclock_instruments::spread::{Spread, percentile};
use ffclock_sys::mono_now;
use ffclock_trace::{TraceHeader, TraceReader, TraceRow};
use ffclock_units::{Counter, Estimate, Exchange, Moment, Period, Span, Stamp, StampLocation, Tai};
use serde_json::json;
use std::fmt::Write;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

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
    /// From the stamp to the driver, and from the driver to the stamp [ns], one for each exchange.
    out_ns: Vec<f64>,
    in_ns: Vec<f64>,
    /// The clock of the exchanges as the daemon stamped them, ahead of the clock of the same packets stamped at the driver [ns]: median of the
    /// later half.
    bias_ns: Option<f64>,
    /// The exchanges, and the period of the counter.
    twice: Vec<Twice>,
    period: Period,
    /// Exchanges of which it is not certain which packets were theirs.
    left_out: usize,
    /// Events that the kernel could not keep.
    lost: u64,
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

/// Looks at the daemon's packets for so long, and at what it recorded meanwhile.
pub(super) fn measure(recording: &Path, device: Option<&str>, length: Span, purpose: Purpose) -> Result<Own, Failure> {
    let path = newest(recording)?;
    let (header, _) = read(&path)?;
    let is_calibrated = header.metadata("asymmetry") == Some("calibrated");
    if is_calibrated && purpose == Purpose::Calibration {
        let remedy = "take asymmetry = \"calibrated\" out of its configuration while it is measured, or add --check";
        return Err(format!("the daemon has moved the stamps that it records; {remedy}").into());
    }
    let period =
        header.nominal.ok_or_else(|| format!("{}: it does not say how fast the counter counts", path.display()))?;
    let counter = ffclock_counter::choose(ffclock_counter::Choice::Auto).kind;
    if header.counter.as_deref() != Some(counter.name()) {
        return Err(format!(
            "{}: its counter is not {}, which the kernel can trace by",
            path.display(),
            counter.name()
        )
        .into());
    }
    let device = device.map_or_else(|| device_of(&header), |device| Ok(device.to_owned()))?;
    let boundary = Boundary::open(counter, period, &device);
    let boundary = boundary
        .map_err(|error| format!("the boundary to the driver cannot be seen, so nothing is calibrated ({error})"))?;
    let crossings = look(boundary, length)?;
    let (_, rows) = read(&path)?;
    let own = Own::of(&crossings, &rows, period);
    let own = Own { device, is_calibrated, ..own };
    if own.out_ns.len() < FEWEST {
        return Err(own.too_few(&path));
    }
    Ok(own)
}

fn look(mut boundary: Boundary, length: Span) -> Result<Crossings, Failure> {
    let phases = schedule(&[], length);
    let mut conditions = Conditions::prepare(&phases)?;
    conditions.enter(&phases[0])?;
    let failed = |error: std::io::Error| Failure::from(format!("cannot read the kernel's events: {error}"));
    let (begin, length) = (mono_now(), length.as_seconds());
    loop {
        boundary.look().map_err(failed)?;
        let passed = (mono_now() - begin).as_seconds();
        if conditions.wait(mono_now() + EVERY, (passed / length).min(1.0))?.is_break() || passed >= length {
            break;
        }
    }
    boundary.finish().map_err(failed)
}

/// The file itself, or the recording in a directory that was written to last.
fn newest(path: &Path) -> Result<PathBuf, Failure> {
    let failed = |error: std::io::Error| Failure::from(format!("{}: {error}", path.display()));
    if !path.metadata().map_err(failed)?.is_dir() {
        return Ok(path.to_owned());
    }
    let entries = std::fs::read_dir(path).map_err(failed)?.filter_map(Result::ok);
    let recordings = entries.filter(|entry| entry.path().extension().is_some_and(|suffix| suffix == "fftrace"));
    let newest = recordings.max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok());
    let none = || {
        format!("{}: nothing is recorded there; set record = \"{}\" in ffclockd.conf", path.display(), path.display())
    };
    newest.map(|entry| entry.path()).ok_or_else(|| none().into())
}

fn read(path: &Path) -> Result<(TraceHeader, Vec<TraceRow>), Failure> {
    let failed = |error: ffclock_trace::TraceError| Failure::from(format!("{}: {error}", path.display()));
    let mut reader = TraceReader::open(path).map_err(failed)?;
    let rows = reader.by_ref().collect::<Result<Vec<_>, _>>().map_err(failed)?;
    Ok((reader.header().clone(), rows))
}

/// The device on the way to the server that a recording of the daemon names, as its address or name and its port.
fn device_of(header: &TraceHeader) -> Result<String, Failure> {
    let unknown = || Failure::from("the recording does not name its server; name the device with --device");
    let (host, port) = header.metadata("server.0").and_then(|name| name.rsplit_once('-')).ok_or_else(unknown)?;
    let address: Option<IpAddr> = host.parse().or_else(|_| host.replace('_', ":").parse()).ok();
    let looked_up = || (host, port.parse().ok()?).to_socket_addrs().ok()?.next().map(|found| found.ip());
    device_towards(address.or_else(looked_up).ok_or_else(unknown)?)
}

impl Own {
    fn of(crossings: &Crossings, rows: &[TraceRow], period: Period) -> Self {
        let exchanges: Vec<&Exchange> = rows.iter().filter_map(|row| row.exchange.as_ref()).collect();
        let joined = exchanges.iter().map(|exchange| (exchange, crossings.of(exchange)));
        let twice: Vec<Twice> =
            joined.clone().filter_map(|(exchange, passed)| Some(Twice::of(exchange, passed?))).collect();
        let begun = twice.first().map(|first| first.stamped.sent.counter);
        let meanwhile = joined.filter(|(exchange, _)| begun.is_some_and(|begun| exchange.sent.counter.is_after(begun)));
        let ns = |later: Counter, earlier: Counter| (period * (later - earlier)).as_seconds() * 1e9;
        Own {
            device: String::new(),
            location: twice.first().map_or(Taken::User, |first| Taken::of(first.stamped.sent.location)),
            is_calibrated: false,
            out_ns: twice.iter().map(|one| ns(one.at_driver.sent.counter, one.stamped.sent.counter)).collect(),
            in_ns: twice.iter().map(|one| ns(one.stamped.received.counter, one.at_driver.received.counter)).collect(),
            bias_ns: bias_ns(&twice, period),
            left_out: meanwhile.filter(|(_, passed)| passed.is_none()).count(),
            lost: crossings.lost(),
            twice,
            period,
        }
    }

    fn too_few(&self, path: &Path) -> Failure {
        format!(
            "{} exchanges of the recording {} were seen on {} ({} left out as uncertain, {} events lost), and {FEWEST} are needed; look for \
             longer (--for), name the device (--device), and see that the daemon is recording",
            self.out_ns.len(),
            path.display(),
            self.device,
            self.left_out,
            self.lost
        )
        .into()
    }

    /// The edges of the two delays [ns].
    fn edges_ns(&self) -> Option<(f64, f64)> {
        Some((percentile(&self.out_ns, EDGE)?, percentile(&self.in_ns, EDGE)?))
    }

    /// How far the difference of the edges may be off [ns], 95 %: by the ranks between which an edge lies, each way for itself.
    fn uncertainty_ns(&self) -> Option<f64> {
        let half = |values: &[f64]| {
            let share = 1.96 * (EDGE * (1.0 - EDGE) / values.len() as f64).sqrt();
            let (low, high) = (percentile(values, (EDGE - share).max(0.0))?, percentile(values, EDGE + share)?);
            Some((high - low) / 2.0)
        };
        Some(half(&self.out_ns)?.hypot(half(&self.in_ns)?))
    }

    /// For the calibration. What the clock finds unequal is where the calibrated clock of these very packets is right.
    pub(super) fn entry(&self) -> Result<Entry, Failure> {
        let figures =
            Spread::of(&self.out_ns).zip(Spread::of(&self.in_ns)).zip(self.uncertainty_ns()).zip(self.edges_ns());
        let (((out, back), uncertainty_ns), edges_ns) = figures.ok_or("no exchange was seen")?;
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
        for _ in 0..APPROXIMATIONS {
            let left_ns = self.left_ns(&entry)?;
            entry.unequal_ns = entry.unequal_ns.map(|unequal_ns| unequal_ns + 2.0 * left_ns);
        }
        Ok(entry)
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
            "left_out": self.left_out, "events_lost": self.lost, "out_ns": Spread::of(&self.out_ns), "in_ns": Spread::of(&self.in_ns),
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
        let row = |way: &str, values: &[f64]| {
            let (spread, edge) = (Spread::of(values)?, percentile(values, EDGE)?);
            Some(vec![way.to_owned(), us(spread.min), us(edge), us(spread.median), us(spread.p75), us(spread.p99)])
        };
        let rows: Vec<_> = [row("out", &self.out_ns), row("in", &self.in_ns)].into_iter().flatten().collect();
        let moved = if self.is_calibrated { ", moved by the calibration" } else { "" };
        let mut page = format!(
            "{} exchanges over {}, {} stamps{moved}, against the driver ({} left out as uncertain, {} events lost)\n{}",
            self.out_ns.len(),
            self.device,
            self.location.name(),
            self.left_out,
            self.lost,
            text::table(&HEADING, &rows)
        );
        if let Some(bias_ns) = self.bias_ns {
            let _ =
                writeln!(page, "\nfor the host's delays the clock is {} us off (ahead where positive)", us(bias_ns));
        }
        page
    }
}

impl Twice {
    fn of(exchange: &Exchange, (out, back): (Counter, Counter)) -> Self {
        let at = |stamp: Stamp, counter| Stamp { counter, location: StampLocation::Kernel, ..stamp };
        let at_driver = Exchange { sent: at(exchange.sent, out), received: at(exchange.received, back), ..*exchange };
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
