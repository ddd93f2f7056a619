//! `ffclock sources`: the servers of the daemon and how each is doing.

use crate::failure::Failure;
use crate::marks::{self, Mark};
use crate::text::Align::{Left, Right};
use crate::{Global, control, output, status, text};
use ffclock_control::protocol::{Agreement, AuthenticationKind, PtpReport, SourceReport, StatusReport};

/// Options of `ffclock sources`.
#[derive(clap::Args)]
#[command(after_help = help())]
pub(crate) struct Args {
    /// Show for each server whether it is believed, and why
    #[arg(long)]
    why: bool,
}

fn help() -> String {
    let marks = marks::meanings();
    format!(
        "\
Examples:
  $ ffclock sources
  $ ffclock sources --why
  $ ffclock sources --json | jq '.[] | select(.selected) | .floor_s'

The first column says how the vote stands; a line below the table repeats what servers without weight are:
{marks}
AUTH, where any server has it, is what authenticates its packets: nts with the cookies left, or key
with its number.
POLL is the time between two requests now, with (RATE) where the server asked for a longer one, ST the
stratum. OFFSET is its clock minus the published one (0 where it alone makes that one; where the system clock is
stands in the last line), BOUND the largest error that its clock can have and
UNCERT. its standard uncertainty (k = 1), with what is assumed of path and server; FLOOR is the
smallest round trip in force and RTT the latest round trip. USED/ALL counts the exchanges that moved the
estimate, and all of them; LOST counts requests without a reply, REFUSED packets that were no
replies. ESTIMATOR is the algorithm, with ? where the learned one has too little data yet and with !
where it contradicts the classic one. The table takes 120 columns at most: long names are shortened in
their middle, and columns that have no room are left out from the right. --why and --json shorten nothing.

--why shows for each server what authenticates it, of one of PTP the master that it follows, what it claims about itself, the interval that its exchanges prove for
the true time relative to the published one, what its clock is off by, its standard uncertainty and
the part of that which exchanges show (noise), and whether it is believed and why. --json holds the same (`vote`, `why`)."
    )
}

/// Prints the table.
pub(crate) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let report = control::status(global)?;
    if global.json {
        return output::json(&report.sources);
    }
    output::write(&if args.why { reasons(&report) } else { table(&report.sources) + &system(&report) })
}

/// The line below the table that compares the published clock with the system clock, as other daemons' tables do.
fn system(report: &StatusReport) -> String {
    let behind = report.clock.as_ref().map(|clock| clock.system_clock_behind_s);
    behind.map_or_else(String::new, |behind| format!("\n  {}\n", status::system_clock(behind)))
}

/// For each server what it claims, proves and is believed to be off by, and whether it is believed; then what the
/// bounds rest on.
fn reasons(report: &StatusReport) -> String {
    let servers: String = report.sources.iter().map(|source| reason(source) + "\n").collect();
    let Some(vote) = &report.vote else { return servers };
    let bounds = report.clock.as_ref().map_or((None, None), |clock| (Some(clock.bound_s), clock.bound_strict_s));
    servers + &rests("bound", bounds.0, &vote.bound_premise) + &rests("strict bound", bounds.1, &vote.strict_premise)
}

fn rests(name: &str, bound: Option<f64>, premise: &str) -> String {
    bound.map_or_else(String::new, |bound| {
        format!("The {name} of {} holds as long as {}.\n", text::span(bound), text::printable(premise))
    })
}

fn reason(source: &SourceReport) -> String {
    let unknown = || "not known yet".to_owned();
    let claims = source.root_distance_s.zip(source.stratum);
    let claims = claims.map(|(error, stratum)| format!("stratum {stratum}, an error of {} at most", text::span(error)));
    let proves = source.vote.proven_s.map(|(earliest, latest)| {
        format!("the true time is {} to {} from the published one", signed(earliest), signed(latest))
    });
    let field = |name: &str, value: Option<String>| format!("  {name:<10}{}\n", value.unwrap_or_else(unknown));
    format!("{} {}\n", Mark::of(source).sign, text::printable(&source.name))
        + &source.ptp.as_ref().map_or_else(String::new, |ptp| field("follows", Some(followed(ptp))))
        + &field("protected", Some(protection(source)))
        + &field("claims", claims)
        + &field("proves", proves)
        + &field("off by", source.offset_s.map(signed))
        + &field("uncertain", uncertainties(source))
        + &field("verdict", Some(text::printable(&source.why)))
}

/// The master of a server of PTP.
fn followed(ptp: &PtpReport) -> String {
    let domain = ptp.domain;
    let master = ptp.grandmaster.as_ref().zip(ptp.clock_class).zip(ptp.steps_removed);
    master.map_or_else(
        || format!("no master in domain {domain}"),
        |((grandmaster, class), steps)| {
            let grandmaster = text::printable(grandmaster);
            format!("the grandmaster {grandmaster} of class {class} in domain {domain}, {steps} boundary clocks away")
        },
    )
}

/// The standard uncertainty of a server's clock and, from daemons that say so, the noise in it.
fn uncertainties(source: &SourceReport) -> Option<String> {
    let noise = source.noise_s.map_or_else(String::new, |noise| format!(", of it noise {}", text::span(noise)));
    source.uncertainty_s.map(|combined| format!("by {} (k = 1){noise}", text::span(combined)))
}

/// A span whose sign is always written.
fn signed(seconds: f64) -> String {
    let sign = if seconds < 0.0 { "" } else { "+" };
    format!("{sign}{}", text::span(seconds))
}

/// The servers as a table for people.
pub(crate) fn table(sources: &[SourceReport]) -> String {
    let mut heading = vec![
        ("  SERVER", Left),
        ("STATE", Left),
        ("POLL", Right),
        ("ST", Right),
        ("OFFSET", Right),
        ("BOUND", Right),
        ("UNCERT.", Right),
        ("FLOOR", Right),
        ("RTT", Right),
        ("USED/ALL", Right),
        ("LOST", Right),
        ("REFUSED", Right),
        ("ESTIMATOR", Left),
    ];
    let mut rows: Vec<Vec<String>> = sources.iter().map(row).collect();
    if sources.iter().any(|source| source.authentication.kind != AuthenticationKind::None) {
        const AFTER_STATE: usize = 2;
        heading.insert(AFTER_STATE, ("AUTH", Left));
        rows.iter_mut().zip(sources).for_each(|(row, source)| row.insert(AFTER_STATE, authentication(source)));
    }
    text::table_within(&heading, &rows) + &marks::legend(sources)
}

fn row(source: &SourceReport) -> Vec<String> {
    vec![
        format!("{} {}", Mark::of(source).sign, text::printable(&source.name)),
        source.state.name().to_owned(),
        poll(source),
        source.stratum.map_or_else(|| "-".to_owned(), |stratum| stratum.to_string()),
        text::span_or_dash(source.offset_s),
        text::span_or_dash(source.bound_s),
        text::span_or_dash(source.uncertainty_s),
        text::span_or_dash(source.floor_s),
        text::span_or_dash(source.round_trip_s),
        format!("{}/{}", source.used, source.exchanges),
        source.lost.to_string(),
        source.rejected.iter().map(|(_, count)| count).sum::<u64>().to_string(),
        text::printable(&estimator(source)),
    ]
}

/// What authenticates a server's packets, in a word.
fn authentication(source: &SourceReport) -> String {
    let report = &source.authentication;
    match report.kind {
        AuthenticationKind::None => "-".to_owned(),
        AuthenticationKind::Key => report.key.map_or_else(|| "key ?".to_owned(), |number| format!("key {number}")),
        AuthenticationKind::Nts => report.cookies.map_or_else(|| "nts ?".to_owned(), |left| format!("nts {left}")),
    }
}

/// The same with all that is known of it.
fn protection(source: &SourceReport) -> String {
    let report = &source.authentication;
    match (report.kind, report.key, report.cookies) {
        (AuthenticationKind::None, ..) => "by nothing: anyone on the path can forge its packets".to_owned(),
        (AuthenticationKind::Key, Some(number), _) => format!("by the symmetric key {number}"),
        (AuthenticationKind::Key, None, _) => "by a symmetric key that cannot be used: nothing is asked".to_owned(),
        (AuthenticationKind::Nts, _, None) => "by NTS, for which no keys are established yet".to_owned(),
        (AuthenticationKind::Nts, _, Some(left)) => {
            let end = report.certificate_end.as_ref();
            let end = end.map_or_else(String::new, |end| format!(", certificate until {}", text::printable(end)));
            format!("by NTS, {left} cookies left{end}")
        }
    }
}

/// The time between requests, and whether it is the server's wish.
fn poll(source: &SourceReport) -> String {
    let asked_for = if source.slowed { " (RATE)" } else { "" };
    format!("{}{asked_for}", text::rounded_span(source.poll_s, 4))
}

/// The algorithm, with a mark where something should be known about it.
fn estimator(source: &SourceReport) -> String {
    let doubt = match source.agreement {
        Agreement::TooLittleData => "?",
        Agreement::Disagree => "!",
        Agreement::Alone | Agreement::Agree => "",
    };
    format!("{}{doubt}", source.estimator.name())
}
