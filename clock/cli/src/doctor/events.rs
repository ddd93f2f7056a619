//! What the daemon's latest events say that its state does not.

use super::catalogue::{self as fault, Diagnosis, HostCheck};
use crate::text;
use ffclock_control::protocol::{EventReport, StatusReport};

/// Events that are older say little about now [s].
const RECENT_S: f64 = 3600.0;

/// An event that points to a fault, by the beginning of its text (docs/events.md).
pub(super) struct EventSign {
    pub(super) begins: &'static str,
    /// The beginnings of the events that end it, where there are any.
    pub(super) ended_by: &'static [&'static str],
    /// How often it has to come.
    least: usize,
    check: HostCheck,
}

const fn sign(begins: &'static str, check: HostCheck) -> EventSign {
    EventSign { begins, ended_by: &[], least: 1, check }
}

/// What ends a contradiction: the server is as before, or its new time was taken.
const JUMP_ENDED: &[&str] = &["the server no longer contradicts", "the server insisted on another time"];

/// The events that are looked for.
pub(super) const SIGNS: &[EventSign] = &[
    sign("the rate will not be remembered", fault::STATE_UNWRITTEN),
    sign("the rate cannot be remembered", fault::STATE_UNWRITTEN),
    sign("the remembered rate cannot be read", fault::STATE_UNWRITTEN),
    sign("cannot record", fault::RECORD_STOPPED),
    sign("recording stopped", fault::RECORD_STOPPED),
    sign("old stamps will not be converted well", fault::HISTORY_UNMADE),
    sign("the page was removed or replaced", fault::FILES_REMOVED),
    sign("the control socket was removed or replaced", fault::FILES_REMOVED),
    sign("the history was removed or replaced", fault::FILES_REMOVED),
    sign("the page's header was damaged", fault::PAGE_DAMAGED),
    EventSign { least: 2, ..sign("the counter's epoch ended", fault::COUNTER_BROKEN) },
    EventSign {
        ended_by: &["the configuration was read again"],
        ..sign("the new configuration is refused", fault::CONFIG_REFUSED)
    },
    EventSign { ended_by: JUMP_ENDED, ..sign("the server contradicts what it said before", fault::SERVER_JUMPED) },
    EventSign { ended_by: JUMP_ENDED, ..sign("another server contradicts what the last one", fault::SERVER_JUMPED) },
    EventSign {
        ended_by: &["the published time lies within what the believed servers share again"],
        ..sign("the published time lies outside of what the believed servers share", fault::PUBLISHED_OUTSIDE)
    },
    EventSign {
        ended_by: &["the server no longer follows this host"],
        ..sign("the server follows this host", fault::SERVER_LOOPS)
    },
    sign("changes outside [[server]]", fault::CONFIG_WAITS),
    sign("the kernel's clock cannot be", fault::KERNEL_CLOCK),
    sign("the host's delays are not known", fault::CALIBRATION_MISSING),
    sign("no stamps at the driver's boundary", fault::STAMPS_BOUNDARY),
    sign("the network card gives no stamps", fault::STAMPS_CARD),
    sign("the clock of a network card was", fault::CARD_CHANGED),
    sign("no random numbers", fault::NO_RANDOM),
    sign("cannot send", fault::CANNOT_SEND),
    sign("cannot ask from another port", fault::CANNOT_SEND),
    sign("servers do not agree about a leap second", fault::LEAP_DISPUTED),
    sign("a second leap second in one run", fault::LEAP_TWICE),
    sign("the stated error of the asymmetry contradicts", fault::ASYMMETRY_WRONG),
    sign("the counter left its nominal range", fault::NOMINAL_LEFT),
    sign("the counter's rate moved by more than the assumed wander", fault::WANDER_RAISED),
    sign("in an earlier run the counter's rate moved by more", fault::WANDER_RAISED),
    sign("there are more pulses than seconds", fault::REFERENCE_NOISY),
    sign("pulses are missing", fault::REFERENCE_NOISY),
    sign("samples come in a flood", fault::REFERENCE_NOISY),
    sign("the pulses slipped", fault::REFERENCE_SLIPPED),
    sign("a pulse does not come where a second begins", fault::REFERENCE_SLIPPED),
    // The program that keeps it on time steps it once, at its own start.
    EventSign { least: 2, ..sign("the hardware clock was stepped by another program", fault::REFERENCE_STEPPED) },
    sign("the host's counter is not the one of this machine", fault::REFERENCE_COUNTER),
];

/// The faults that the events of the last hour point to, each once, with its latest event.
pub(crate) fn examine(report: &StatusReport) -> Vec<Diagnosis> {
    let recent: Vec<&EventReport> =
        report.events.iter().filter(|event| report.uptime_s - event.at_s < RECENT_S).collect();
    let mut found: Vec<Diagnosis> = Vec::new();
    for sign in SIGNS {
        if let Some(diagnosis) = sign.found(&recent)
            && found.iter().all(|other| other.of != diagnosis.of)
        {
            found.push(diagnosis);
        }
    }
    found
}

impl EventSign {
    fn found(&self, events: &[&EventReport]) -> Option<Diagnosis> {
        let ours: Vec<usize> = (0..events.len()).filter(|&at| events[at].text.starts_with(self.begins)).collect();
        let &latest = ours.last()?;
        let is_over = |event: &&EventReport| {
            event.source == events[latest].source && self.ended_by.iter().any(|end| event.text.starts_with(end))
        };
        if ours.len() < self.least || events[latest..].iter().any(is_over) {
            return None;
        }
        let event = events[latest];
        let times = if ours.len() > 1 { format!(" ({} times in the last hour)", ours.len()) } else { String::new() };
        let server = event.source.as_deref().map(text::printable);
        Some(Diagnosis { server, ..self.check.seen(text::printable(&event.text) + &times) })
    }
}
