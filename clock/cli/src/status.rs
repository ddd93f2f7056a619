//! `ffclock status`: how the daemon and its clock are doing.
//!
//! The state comes from the daemon. When the daemon is gone its page is still there: the page is then shown, with a
//! clear warning that nothing renews it.

use crate::failure::Failure;
use crate::{Global, control, output, page, sources, text};
use ffclock_control::protocol::{ClockReport, EventReport, QuorumReport, Status, StatusReport};
use ffclock_units::{Moment, Rate, Span};
use serde::Serialize;

/// Options of `ffclock status`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ ffclock status
  $ ffclock status --json | jq .clock.bound_s

Exit code: 0 when the clock can be read, 1 when ffclockd does not answer, 3 when the clock is not
synchronised. With --json the fields are those of the control protocol (docs/control.md); when
ffclockd does not answer, they are `error` and `page` (null when the page cannot be read either).")]
pub(crate) struct Args {}

/// What `--json` shows when the daemon does not answer.
#[derive(Serialize)]
struct Orphaned {
    error: String,
    page: Option<page::TimeReport>,
}

/// Prints the state.
pub(crate) fn run(global: &Global, _: &Args) -> Result<(), Failure> {
    match control::status(global) {
        Ok(report) => show(global, &report),
        Err(failure) => show_page(global, failure),
    }
}

fn show(global: &Global, report: &StatusReport) -> Result<(), Failure> {
    if global.json {
        output::json(report)?;
    } else {
        output::write(&render(report))?;
    }
    let readable = report.clock.as_ref().is_some_and(|clock| clock.status != Status::Unsynchronised);
    if readable { Ok(()) } else { Err(Failure::silent(Failure::UNSYNCHRONISED)) }
}

fn show_page(global: &Global, daemon: Failure) -> Result<(), Failure> {
    let reading = page::open(global).and_then(|clock| page::read(&clock));
    if global.json {
        let page = reading.ok().map(|reading| page::TimeReport::of(&reading));
        output::json(&Orphaned { error: daemon.message, page })?;
        return Err(Failure::silent(Failure::FAILED));
    }
    match reading {
        Ok(time) => {
            let sentence = page::sentence(&text::utc(time.reading.time), &time);
            output::line(&format!("The page says: {sentence}"))?;
            output::line("It may be stale: without a daemon the bound only grows.")?;
        }
        Err(failure) => output::line(&format!("The page is of no use either: {failure}"))?,
    }
    Err(daemon)
}

/// The whole state for people.
fn render(report: &StatusReport) -> String {
    let mut text =
        format!("ffclockd {}, running for {}\n\n", text::printable(&report.version), text::duration(report.uptime_s));
    match &report.clock {
        Some(clock) => {
            text += &(render_clock(clock, &followed(report)) + &render_wander(report) + &render_vote(report));
        }
        None => text += &field("Clock", &format!("no estimate yet{}", followed(report))),
    }
    if let Some(keep) = report.keep_noise_s {
        text += &field("Polls", &format!("chosen to keep an uncertainty of {} by noise", text::span(keep)));
    }
    let counter = &report.counter;
    let hertz = text::hertz(counter.nominal_hz);
    text += &field("Counter", &format!("{} at {hertz} nominal, epoch {}", counter.name, counter.epoch));
    text += &field("", &counter.reason);
    text += &field("Stamps", &report.stamps);
    text += &field("Page", &report.page);
    text += &format!("\n{}", sources::table(&report.sources));
    text + &render_events(&report.events)
}

/// Which server is followed, or why none is.
fn followed(report: &StatusReport) -> String {
    match (&report.selected, report.quorum) {
        (Some(server), _) => format!(", follows {server}"),
        (None, Some(QuorumReport::Disagreement)) => ": the servers disagree and none has a majority".to_owned(),
        (None, Some(QuorumReport::TooFew)) => ": fewer servers answer than min_servers demands".to_owned(),
        (None, Some(QuorumReport::Waiting)) => ": waiting for the servers to answer".to_owned(),
        (None, Some(QuorumReport::Majority) | None) => String::new(),
    }
}

fn render_clock(clock: &ClockReport, followed: &str) -> String {
    let time = Moment::from_origin(Span::from_nanos(clock.utc_ns.into()));
    let noise = clock.noise_s.map_or_else(String::new, |noise| format!(", noise {}", text::span(noise)));
    let (bound, uncertainty) = (text::span(clock.bound_s), text::span(clock.uncertainty_s));
    let bound = format!("{bound}, standard uncertainty {uncertainty}{noise}");
    field("Clock", &format!("{}{followed}", clock.status.name()))
        + &field("Time", &text::utc(time))
        + &field("Bound", &bound)
        + &field("System", &system_clock(clock.system_clock_behind_s))
        + &field("Rate", &rate(clock))
        + &field("Leap", &leap(clock))
}

/// The wander that the bound assumes: the largest of any server that is asked, since they have one counter.
fn render_wander(report: &StatusReport) -> String {
    let wander = report.sources.iter().filter_map(|source| source.wander_ppm).max_by(f64::total_cmp);
    wander.map_or_else(String::new, |wander| {
        field("Wander", &format!("the bound assumes at most {} about the mean rate of a day", Rate::from_ppm(wander)))
    })
}

/// What the bounds rest on, once more than one server has a part in them.
fn render_vote(report: &StatusReport) -> String {
    let Some(vote) = report.vote.as_ref().filter(|vote| vote.deciders > 1 || vote.by_trust) else {
        return String::new();
    };
    let strict = report.clock.as_ref().and_then(|clock| clock.bound_strict_s);
    let strict = strict.map_or_else(String::new, |strict| {
        field("Strict", &format!("{}, as long as {}", text::span(strict), vote.strict_premise))
    });
    field("Premise", &format!("the bound holds as long as {}", vote.bound_premise)) + &strict
}

/// Where the system clock stands, in words, so that the reader need not remember the sign.
pub(crate) fn system_clock(behind_s: f64) -> String {
    let word = if behind_s < 0.0 { "ahead" } else { "behind" };
    format!("the system clock is {} {word}", text::span(behind_s.abs()))
}

/// The rate of the counter against its nominal frequency, with its bound. Where the bound exceeds it, its sign is not
/// known either.
pub(crate) fn rate(clock: &ClockReport) -> String {
    let (rate, bound) = (Rate::from_ppm(clock.rate_ppm), Rate::from_ppm(clock.rate_bound_ppm).to_two_figures());
    if clock.rate_ppm.abs() <= clock.rate_bound_ppm {
        let within = Rate::from_ppm(clock.rate_ppm.abs() + clock.rate_bound_ppm).to_two_figures();
        return format!("within {within} of the counter's nominal rate; not known better yet");
    }
    let word = if clock.rate_ppm < 0.0 { "fast" } else { "slow" };
    format!("the counter runs {} {word}, +- {bound}", rate.abs())
}

fn leap(clock: &ClockReport) -> String {
    let offset = format!("TAI - UTC = {} s", clock.tai_offset_s);
    match clock.leap {
        None => format!("{offset}, no leap second announced"),
        Some((second, change)) => {
            let when = text::utc(Moment::from_origin(Span::from_secs(second)));
            let kind = if change < 0 { "left out" } else { "inserted" };
            format!("{offset}, a second will be {kind} before {when}")
        }
    }
}

fn render_events(events: &[EventReport]) -> String {
    if events.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = events.iter().map(event).collect();
    format!("\nEvents, by seconds since the start\n{}", lines.concat())
}

fn event(event: &EventReport) -> String {
    let source = event.source.as_deref().map_or_else(String::new, |source| format!("{}: ", text::printable(source)));
    format!("{:>12.3}  {source}{}\n", event.at_s, text::printable(&event.text))
}

fn field(name: &str, value: &str) -> String {
    format!("{name:<9}{}\n", text::printable(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> ClockReport {
        ClockReport {
            status: Status::Synchronised,
            utc_ns: 1_763_690_000_123_456_789,
            system_clock_behind_s: -3.25e-6,
            bound_s: 8.12e-4,
            bound_strict_s: Some(1.5e-2),
            uncertainty_s: 1.4e-5,
            noise_s: Some(9e-6),
            period_s: 3.4e-10,
            rate_ppm: -12.5,
            rate_bound_ppm: 0.02,
            tai_offset_s: 37,
            leap: None,
        }
    }

    #[test]
    fn signs_are_said_in_words() {
        assert_eq!(system_clock(-3.25e-6), "the system clock is 3.25 us ahead");
        assert_eq!(system_clock(1e-3), "the system clock is 1 ms behind");
        assert_eq!(rate(&clock()), "the counter runs 12.5 ppm fast, +- 0.02 ppm");
        let fresh = ClockReport { rate_bound_ppm: 200.498_7, ..clock() };
        assert_eq!(rate(&fresh), "within 220 ppm of the counter's nominal rate; not known better yet");
    }

    #[test]
    fn a_leap_second_is_dated() {
        let announced = ClockReport { leap: Some((1_483_228_800, 1)), ..clock() };
        assert_eq!(
            leap(&announced),
            "TAI - UTC = 37 s, a second will be inserted before 2017-01-01T00:00:00.000000000Z"
        );
        assert!(leap(&clock()).contains("no leap second announced"));
    }

    #[test]
    fn the_clock_is_laid_out_by_name() {
        assert_eq!(
            render_clock(&clock(), ", follows 192.0.2.1:123"),
            "Clock    synchronised, follows 192.0.2.1:123\n\
             Time     2025-11-21T01:53:20.123456789Z\n\
             Bound    812 us, standard uncertainty 14 us, noise 9 us\n\
             System   the system clock is 3.25 us ahead\n\
             Rate     the counter runs 12.5 ppm fast, +- 0.02 ppm\n\
             Leap     TAI - UTC = 37 s, no leap second announced\n"
        );
    }
}
