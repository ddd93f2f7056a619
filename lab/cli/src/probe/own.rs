//! The host's delays of the daemon's own packets: looks at the boundary to the driver while the daemon records, and
//! shows what its exchanges say.

use crate::columns::{self, us};
use crate::counters::conditions::Conditions;
use crate::failure::Failure;
use ffclock_probe::own::boundary::{Boundary, Crossings, StampPlace};
use ffclock_probe::own::delays::{BoundaryLook, Calibrated, HostDelayFigures, HostDelays, JoinedExchange, Purpose};
use ffclock_probe::own::recording::DaemonRecording;
use ffclock_statistics::Spread;
use ffclock_units::{Exchange, Span, StampLocation};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;

/// Between two looks at the kernel's buffers: seldom, as a look keeps a processor awake.
const EVERY: Span = Span::from_millis(200);

/// Looks at the daemon's packets for `length`, and at what it recorded meanwhile.
pub(super) fn measure(
    recording: &Path,
    device: Option<&str>,
    length: Span,
    purpose: Purpose,
) -> Result<HostDelays, Failure> {
    let recording = DaemonRecording::open(recording).map_err(in_words)?;
    recording.check(purpose).map_err(in_words)?;
    let counter = ffclock_counter::choose(ffclock_counter::Choice::Auto).kind;
    let period = recording.period(counter).map_err(in_words)?;
    recording.read().and_then(|recorded| recorded.check_length(length, period)).map_err(in_words)?;
    let device = device.map_or_else(|| device_of(&recording), |device| Ok(device.to_owned()))?;
    let boundary = Boundary::open(counter, period, &device);
    let boundary = boundary
        .map_err(|error| format!("the boundary to the driver cannot be seen, so nothing is calibrated ({error})"))?;
    let crossings = look(boundary, length, purpose)?;
    let recorded = recording.read().map_err(in_words)?.since(crossings.begin());
    let is_calibrated = recording.is_calibrated();
    let place = |exchange: &Exchange| {
        let is_program = [exchange.sent, exchange.received].iter().all(|one| one.location == StampLocation::User);
        if is_program && !is_calibrated { StampPlace::Program } else { StampPlace::Either }
    };
    let join =
        |exchange: &Exchange| JoinedExchange { exchange: *exchange, crossed: crossings.of(exchange, place(exchange)) };
    let joined: Vec<JoinedExchange> = recorded.exchanges.iter().map(join).collect();
    let look =
        BoundaryLook { device, is_calibrated, events_lost: crossings.lost(), rows_unreadable: recorded.unreadable };
    let delays = HostDelays::of(&joined, period, look);
    delays.check(recording.path(), purpose).map_err(in_words)?;
    Ok(delays)
}

fn in_words(error: impl std::fmt::Display) -> Failure {
    error.to_string().into()
}

/// The device on the way to the server of the recording.
fn device_of(recording: &DaemonRecording) -> Result<String, Failure> {
    let unknown = "the recording does not name its server; name the device with --device";
    super::network::device_towards(recording.server().ok_or(unknown)?)
}

fn look(mut boundary: Boundary, length: Span, purpose: Purpose) -> Result<Crossings, Failure> {
    let failed = |error: std::io::Error| Failure::from(format!("cannot read the kernel's events: {error}"));
    let look = || boundary.look().map(ControlFlow::Continue).map_err(failed);
    if Conditions::look_for(length, EVERY, look)?.is_break() && purpose == Purpose::Calibration {
        return Err("interrupted: nothing is written".into());
    }
    boundary.finish().map_err(failed)
}

/// The figures for people.
pub(super) fn table(figures: &HostDelayFigures) -> String {
    const HEADING: &str = "WAY|>MIN (us)|>EDGE (us)|>MEDIAN (us)|>75 % (us)|>99 % (us)";
    let row = |way: &str, spread: Option<Spread>, least: Option<f64>, edge: Option<f64>| {
        let spread = spread?;
        Some([way.to_owned(), us(least?), us(edge?), us(spread.median), us(spread.p75), us(spread.p99)].to_vec())
    };
    let (least, edges) = (figures.least_ns.unzip(), figures.edges_ns.unzip());
    let ways = [row("out", figures.out_ns, least.0, edges.0), row("in", figures.in_ns, least.1, edges.1)];
    let moved = if figures.is_calibrated { ", moved by the calibration" } else { "" };
    let mut page = format!(
        "{} exchanges over {}, {} stamps{moved}, against the driver ({} left out as uncertain, {} events lost, {} rows \
         damaged)\n{}",
        figures.exchanges,
        figures.device,
        figures.location.name(),
        figures.left_out,
        figures.events_lost,
        figures.rows_unreadable,
        columns::table(HEADING, ways.into_iter().flatten())
    );
    if let Some(bias_ns) = figures.bias_ns {
        let _ = writeln!(page, "\nfor the host's delays the clock is {} us off (ahead where positive)", us(bias_ns));
    }
    page
}

/// What a calibration rests on, for people.
pub(super) fn rests_on(calibrated: &Calibrated) -> String {
    format!(
        "by {} exchanges ({} left out as uncertain, {} events lost, {} rows damaged); the clock was {} us off for the host's \
         delays, and {} us of it are left with these figures",
        calibrated.entry.packets,
        calibrated.left_out,
        calibrated.events_lost,
        calibrated.rows_unreadable,
        us(calibrated.bias_ns),
        us(calibrated.left_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_control::calibration::{Entry, QUIET, Subject, Taken};

    #[test]
    fn the_table_says_what_was_lost_and_both_ways() {
        let figures = HostDelayFigures {
            device: "eth0".to_owned(),
            location: Taken::User,
            is_calibrated: true,
            exchanges: 3,
            left_out: 1,
            events_lost: 3,
            rows_unreadable: 2,
            least_ns: Some((1_000.0, 2_000.0)),
            out_ns: Spread::of(&[1_000.0, 3_000.0, 5_000.0]),
            in_ns: Spread::of(&[2_000.0, 4_000.0, 6_000.0]),
            edges_ns: Some((1_200.0, 2_200.0)),
            uncertainty_ns: None,
            bias_ns: Some(-500.0),
        };
        let page = table(&figures);
        let first = "3 exchanges over eth0, user stamps, moved by the calibration, against the driver (1 left out";
        assert!(page.starts_with(first) && page.contains("3 events lost, 2 rows damaged"), "{page}");
        let row = |way: &str| page.lines().find(|line| line.starts_with(way)).unwrap_or_else(|| panic!("{page}"));
        assert_eq!(row("out").split_whitespace().collect::<Vec<_>>()[1..4], ["1.00", "1.20", "3.00"]);
        assert_eq!(row("in").split_whitespace().collect::<Vec<_>>()[1..4], ["2.00", "2.20", "4.00"]);
        assert!(page.contains("the clock is -0.50 us off"), "{page}");
    }

    #[test]
    fn a_calibration_says_what_it_rests_on() {
        let entry = Entry {
            subject: Subject::here("lo"),
            location: Taken::User,
            load: QUIET.to_owned(),
            out_ns: 1.0,
            in_ns: 1.0,
            unequal_ns: None,
            uncertainty_ns: 1.0,
            packets: 200,
            measured_at: 0,
        };
        let calibrated =
            Calibrated { entry, left_out: 4, events_lost: 0, rows_unreadable: 0, bias_ns: 12_340.0, left_ns: 560.0 };
        let words = rests_on(&calibrated);
        assert!(words.starts_with("by 200 exchanges (4 left out as uncertain, 0 events lost"), "{words}");
        assert!(words.contains("12.34 us off") && words.contains("0.56 us of it"), "{words}");
    }
}
