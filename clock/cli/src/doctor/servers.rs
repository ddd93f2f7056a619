//! The servers, one by one: does each answer, is it believed, is it authenticated?

use super::catalogue::{self as fault, Diagnosis};
use crate::text;
use ffclock_control::protocol::{Agreement, AuthenticationKind, BeliefReport, SourceReport, SourceState, StatusReport};

/// A name is looked up within this time of a start, and a first answer comes [s].
const FIRST_ANSWER_S: f64 = 60.0;
/// How the names of clocks at this host begin: by the kind of their input (docs/references.md).
const REFERENCES: [&str; 5] = ["pps:", "phc:", "shm:", "sock:", "vmclock:"];
/// Why the replies of a server that follows this host are turned away.
const LOOP: &str = "loop";
/// A certificate that ends sooner is to be renewed [d].
const RENEWAL_DAYS: i64 = 14;

/// What is wrong with the servers of a report.
pub(crate) fn examine(report: &StatusReport) -> Vec<Diagnosis> {
    report.sources.iter().flat_map(|source| of_server(source, report)).collect()
}

fn of_server(source: &SourceReport, report: &StatusReport) -> Vec<Diagnosis> {
    let checks = [
        state(source, report),
        belief(source),
        source.slowed.then(|| fault::SERVER_SLOWED.seen(format!("it is asked every {}", text::span(source.poll_s)))),
        source.vote.same_as.as_ref().map(|other| fault::SERVER_TWICE.seen(twin(source, other))),
        refused(source, report),
        authentication(source, report),
        certificate(source, report),
        (source.agreement == Agreement::Disagree).then(|| {
            fault::ESTIMATORS_DISAGREE.seen("the learned and the classic time are further apart than their noise")
        }),
    ];
    let named = |diagnosis: Diagnosis| Diagnosis {
        server: Some(text::printable(&source.name)),
        seen: text::printable(&diagnosis.seen),
        ..diagnosis
    };
    checks.into_iter().flatten().map(named).collect()
}

fn twin(source: &SourceReport, other: &str) -> String {
    let shared = if source.ptp.is_some() { "follows the master" } else { "has the address" };
    format!("it {shared} of {other}")
}

fn state(source: &SourceReport, report: &StatusReport) -> Option<Diagnosis> {
    let is_new = report.uptime_s < FIRST_ANSWER_S;
    if source.ptp.is_some() {
        return state_of_ptp(source).filter(|_| !is_new);
    }
    if is_reference(source) {
        return state_of_reference(source, report).filter(|_| !is_new);
    }
    let asked = format!("{} requests, {} of them lost", source.sent, source.lost);
    match source.state {
        SourceState::Reachable => None,
        SourceState::Resolving | SourceState::Waiting if is_new => None,
        SourceState::Resolving => Some(fault::SERVER_UNRESOLVED.seen("its name has no address yet")),
        SourceState::Refused => Some(fault::SERVER_REFUSES.seen("it answered DENY or RSTR")),
        SourceState::Waiting | SourceState::Unreachable if lacks_keys(source).is_some() => None,
        // The event of it may be from long ago.
        SourceState::Waiting | SourceState::Unreachable if loops(source) > 0 => {
            Some(fault::SERVER_LOOPS.seen(format!("{asked}, and {} replies that name this host", loops(source))))
        }
        SourceState::Waiting | SourceState::Unreachable if source.exchanges == 0 => {
            Some(fault::SERVER_SILENT.seen(format!("no answer yet to {asked}")))
        }
        SourceState::Waiting => None,
        SourceState::Unreachable => Some(fault::SERVER_UNREACHABLE.seen(asked)),
    }
}

/// A server of PTP asks little and is not asked whether it is there: what counts is that exchanges come.
fn state_of_ptp(source: &SourceReport) -> Option<Diagnosis> {
    match source.state {
        SourceState::Resolving => Some(fault::PTP_CLOSED.seen("masters of PTP cannot be heard")),
        SourceState::Unreachable => {
            let count = source.exchanges;
            Some(fault::PTP_SILENT.seen(format!("{count} exchanges, and none at present ({})", reasons(source))))
        }
        SourceState::Waiting | SourceState::Reachable | SourceState::Refused => None,
    }
}

fn is_reference(source: &SourceReport) -> bool {
    REFERENCES.iter().any(|kind| source.name.starts_with(kind))
}

/// A clock at this host is read, not asked: it can be read, and gives samples, or not.
fn state_of_reference(source: &SourceReport, report: &StatusReport) -> Option<Diagnosis> {
    match source.state {
        SourceState::Resolving => {
            let of_it = report.events.iter().filter(|event| event.source.as_ref() == Some(&source.name));
            let why = of_it.rev().find(|event| event.text.starts_with("the reference cannot be"));
            Some(fault::REFERENCE_UNREAD.seen(why.map_or("it is not open", |event| &event.text)))
        }
        SourceState::Waiting | SourceState::Unreachable => {
            let count = source.exchanges;
            Some(fault::REFERENCE_SILENT.seen(format!("{count} exchanges, and none at present ({})", reasons(source))))
        }
        SourceState::Reachable | SourceState::Refused => None,
    }
}

/// The replies of a server that follows this host.
fn loops(source: &SourceReport) -> u64 {
    source.rejected.iter().filter(|(reason, _)| reason == LOOP).map(|(_, packets)| packets).sum()
}

/// Why packets were turned away. Those near a leap second are by every daemon, and loops are a finding of their own.
fn counted(source: &SourceReport) -> impl Iterator<Item = &(String, u64)> {
    source.rejected.iter().filter(|(reason, _)| reason != "near-leap" && reason != LOOP)
}

fn reasons(source: &SourceReport) -> String {
    let reasons: Vec<String> = counted(source).map(|(reason, packets)| format!("{packets} {reason}")).collect();
    if reasons.is_empty() { "nothing was turned away".to_owned() } else { reasons.join(", ") }
}

fn belief(source: &SourceReport) -> Option<Diagnosis> {
    match source.belief {
        BeliefReport::Falseticker => Some(fault::FALSETICKER.seen(match source.vote.misses_s {
            Some(misses) => format!("it misses what the others share by {}", text::span(misses)),
            None => source.why.clone(),
        })),
        BeliefReport::Undecided => Some(fault::UNDECIDED.seen(source.why.clone())),
        _ if source.vote.suspect => Some(fault::SUSPECT.seen(source.why.clone())),
        BeliefReport::Truechimer | BeliefReport::NoSelect | BeliefReport::Unknown => None,
    }
}

/// More packets or samples were turned away than accepted. Of those of PTP most are for others wherever many clocks
/// share a network.
fn refused(source: &SourceReport, report: &StatusReport) -> Option<Diagnosis> {
    let total: u64 = counted(source).map(|(_, packets)| packets).sum();
    if source.ptp.is_some() || total <= source.exchanges.max(10) {
        return None;
    }
    if is_reference(source) {
        // Pulses have no number before the clock is set. One that is silent has these reasons in its own finding.
        let is_used = source.state == SourceState::Reachable && report.uptime_s >= FIRST_ANSWER_S;
        let seen = || format!("{} exchanges; refused: {}", source.exchanges, reasons(source));
        return is_used.then(|| fault::REFERENCE_REFUSED.seen(seen()));
    }
    let seen = format!("{total} packets turned away ({}), {} accepted", reasons(source), source.exchanges);
    Some(fault::PACKETS_REFUSED.seen(seen))
}

/// The fault of a server that cannot be asked for want of keys.
fn lacks_keys(source: &SourceReport) -> Option<Diagnosis> {
    let by = &source.authentication;
    match by.kind {
        AuthenticationKind::Nts if by.cookies.unwrap_or(0) == 0 => {
            Some(fault::NTS_NO_KEYS.seen("no cookie is left, and no keys were established since"))
        }
        AuthenticationKind::Key if by.key.is_none() => {
            Some(fault::KEY_UNUSABLE.seen("its symmetric key cannot be used"))
        }
        AuthenticationKind::Nts | AuthenticationKind::Key | AuthenticationKind::None => None,
    }
}

fn authentication(source: &SourceReport, report: &StatusReport) -> Option<Diagnosis> {
    let is_new = report.uptime_s < FIRST_ANSWER_S;
    if let Some(diagnosis) = lacks_keys(source).filter(|_| !is_new) {
        return Some(diagnosis);
    }
    let is_protected = |source: &SourceReport| source.authentication.kind != AuthenticationKind::None;
    let is_packets = !is_reference(source);
    let is_exception =
        is_packets && !is_protected(source) && !source.vote.no_select && report.sources.iter().any(is_protected);
    is_exception.then(|| fault::SERVER_UNAUTHENTICATED.seen("its packets are believed as they come"))
}

fn certificate(source: &SourceReport, report: &StatusReport) -> Option<Diagnosis> {
    let end = source.authentication.certificate_end.as_deref()?;
    let now_s = report.clock.as_ref()?.utc_ns.div_euclid(1_000_000_000);
    let days = day_of(end)? - now_s.div_euclid(86_400);
    let seen = format!("its certificate ends at {end}, in {} days", days.max(0));
    (days < RENEWAL_DAYS).then(|| fault::NTS_CERTIFICATE.seen(seen))
}

/// The number of days from 1970-01-01 to the date with which this text begins (RFC 3339).
fn day_of(text: &str) -> Option<i64> {
    let mut parts = text.get(..10)?.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    // The year is taken to begin in March, so that the day of a leap year is its last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(days + (153 * month + 2) / 5 + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days_since_1970() {
        assert_eq!(day_of("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(day_of("2000-02-29"), Some(11_016));
        assert_eq!(day_of("2026-11-21T09:30:00Z"), Some(1_795_253_400 / 86_400));
        assert_eq!([day_of("soon"), day_of("2026-xx-01"), day_of("")], [None; 3]);
    }
}
