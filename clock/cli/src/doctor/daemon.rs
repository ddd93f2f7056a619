//! The daemon: does it run and answer, and what does it say about its clock and its vote?

use super::catalogue::{self as fault, Diagnosis};
use super::page::is_same;
use crate::failure::Failure;
use crate::{control, text};
use ffclock_control::protocol::{ClockReport, QuorumReport, SourceReport, Status, StatusReport};
use ffclock_units::{Moment, Span};
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// After this time a clock that still warms up has too little data [s].
const WARM_UP_S: f64 = 1800.0;
/// Above what a program that steers it leaves the system clock off [s].
const SYSTEM_CLOCK_S: f64 = 0.1;

/// The daemon's answer, or why there is none.
pub(crate) fn ask(socket: &Path) -> Result<StatusReport, Diagnosis> {
    let place = socket.display();
    let about = std::fs::symlink_metadata(socket);
    match about.as_ref().map(|about| about.file_type().is_socket() || about.file_type().is_symlink()) {
        Ok(true) => {}
        Ok(false) => return Err(fault::CONTROL_FOREIGN.seen(format!("{place} is not a socket"))),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(fault::CONTROL_RIGHTS.seen(format!("{place}: {error}")));
        }
        Err(_) => return Err(fault::DAEMON_ABSENT.seen(format!("there is no control socket {place}"))),
    }
    control::status_at(socket).map_err(|failure| why_silent(socket, failure))
}

fn why_silent(socket: &Path, failure: Failure) -> Diagnosis {
    if failure.message.contains("did not answer") || failure.message.contains("without an answer") {
        return fault::DAEMON_STUCK.seen(failure.message);
    }
    let check = match control::connect(socket).map_err(|error| error.kind()) {
        Ok(_) => fault::ANSWER_FOREIGN,
        Err(ErrorKind::PermissionDenied) => fault::CONTROL_RIGHTS,
        Err(_) => fault::DAEMON_DEAD,
    };
    check.seen(failure.message)
}

/// What a report says of the daemon as a whole. `limit_s` is the bound that counts as large [s].
pub(crate) fn examine(report: &StatusReport, page: &Path, limit_s: f64) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    if report.version != env!("CARGO_PKG_VERSION") {
        let seen = format!("ffclockd is {}, this is {}", text::printable(&report.version), env!("CARGO_PKG_VERSION"));
        found.push(fault::VERSIONS_DIFFER.seen(seen));
    }
    if Path::new(&report.page).is_absolute() && page.exists() && !is_same(Path::new(&report.page), page) {
        let seen = format!("the daemon publishes in {}, not in {}", text::printable(&report.page), page.display());
        found.push(fault::PAGE_OTHER.seen(seen));
    }
    found.extend(vote(report));
    match &report.clock {
        Some(clock) => found.extend(clock_findings(clock, report, limit_s)),
        None => found.push(fault::CLOCK_UNSET.seen("the daemon has no estimate yet")),
    }
    found.extend(stamps(&report.stamps));
    found
}

fn vote(report: &StatusReport) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    let of = report.vote.as_ref();
    match report.quorum {
        Some(QuorumReport::Disagreement) => {
            found.push(fault::NO_MAJORITY.seen("no time is shared by more than half of the servers"));
        }
        Some(QuorumReport::TooFew) => {
            let seen = of.map_or_else(String::new, |vote| {
                format!("{} servers answer and may be believed, min_servers is {}", vote.usable, vote.min_servers)
            });
            found.push(fault::TOO_FEW.seen(seen));
        }
        Some(QuorumReport::Waiting | QuorumReport::Majority) | None => {}
    }
    let voters = report.sources.iter().filter(|source| !source.vote.no_select && !source.vote.spare);
    let names: Vec<String> = voters.map(|source| text::printable(&source.name)).collect();
    match names.len() {
        1 => found.push(fault::ONE_SERVER.seen(format!("{} has the only vote", names[0]))),
        2 => found.push(fault::TWO_SERVERS.seen(format!("only {} have a vote", names.join(" and ")))),
        _ => {}
    }
    found
}

fn clock_findings(clock: &ClockReport, report: &StatusReport, limit_s: f64) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    match clock.status {
        Status::Holdover => found.push(fault::HOLDOVER.seen(format!("the bound is {} now", text::span(clock.bound_s)))),
        Status::WarmingUp if report.uptime_s > WARM_UP_S => {
            found.push(fault::WARMING_UP.seen(format!("running for {}", text::duration(report.uptime_s))));
        }
        Status::Unsynchronised => found.push(fault::CLOCK_UNSET.seen("the daemon calls its clock unsynchronised")),
        Status::Synchronised | Status::WarmingUp => {}
    }
    if clock.bound_s > limit_s {
        let seen = format!("{}: {}", text::span(clock.bound_s), reasons_of_bound(clock, report));
        found.push(fault::BOUND_LARGE.seen(seen));
    }
    if clock.system_clock_behind_s.abs() > SYSTEM_CLOCK_S + clock.bound_s {
        let word = if clock.system_clock_behind_s < 0.0 { "ahead" } else { "behind" };
        let seen = format!("the system clock is {} {word}", text::span(clock.system_clock_behind_s.abs()));
        found.push(fault::SYSTEM_CLOCK_OFF.seen(seen));
    }
    found.extend(clock.leap.and_then(odd_leap));
    found
}

/// What a bound is made of: claim and path of the server that is selected, and what has grown since it answered.
fn reasons_of_bound(clock: &ClockReport, report: &StatusReport) -> String {
    let Some(source) = report.sources.iter().find(|source| source.selected) else {
        return "no server is followed, and it grows on the counter alone".to_owned();
    };
    let (claim, path) = (source.root_distance_s.unwrap_or(0.0), source.floor_s.unwrap_or(0.0) / 2.0);
    let rest = (clock.bound_s - claim - path).max(0.0);
    format!(
        "{} claims {} about itself, half of the round trip to it is {}, and {} has grown since {}",
        text::printable(&source.name),
        text::span(claim),
        text::span(path),
        text::span(rest),
        heard(source)
    )
}

fn heard(source: &SourceReport) -> String {
    source
        .vote
        .heard_s
        .map_or_else(|| "its last answer".to_owned(), |ago| format!("its answer {} ago", text::span(ago)))
}

/// A leap second that is announced for another month than June or December. The moment is the second after it.
fn odd_leap((after, _): (i64, i8)) -> Option<Diagnosis> {
    let moment = Moment::from_origin(Span::from_secs(after));
    let (_, month, day) = moment.civil_date();
    let is_usual = day == 1 && (month == 1 || month == 7);
    (!is_usual).then(|| fault::LEAP_ODD.seen(format!("one is announced before {}", text::utc(moment))))
}

fn stamps(stamps: &str) -> Option<Diagnosis> {
    let is_user = stamps.contains("the kernel refuses") || stamps.contains("the kernel's do not come");
    if is_user {
        return Some(fault::STAMPS_USER.seen(text::printable(stamps)));
    }
    if stamps.contains("no network card gives any") || stamps.contains("the network card's do not serve") {
        return Some(fault::STAMPS_CARD.seen(text::printable(stamps)));
    }
    stamps.contains("not to be had").then(|| fault::STAMPS_BOUNDARY.seen(text::printable(stamps)))
}
