//! Events in words, for logs and status.

use ffclock_estimator::{Event, Rejection, Summary, Verdict};

/// What is added to the text of an event, given the estimator's figures after it.
pub(crate) fn figure(event: Event, summary: &Summary) -> String {
    match event {
        Event::WanderExceeded => format!("{:.3} ppm is assumed from now on", summary.wander.as_ppm()),
        _ => String::new(),
    }
}

/// The text of an estimator event that matters to an operator; `None` for those of regular work.
pub(crate) fn notable(event: Event) -> Option<&'static str> {
    match event {
        Event::FloorShiftUp => Some("the path became longer: the round-trip floor was raised"),
        Event::FloorShiftDown => Some("the path became shorter: the round-trip floor fell"),
        Event::RateInsane => Some("a rate too far off to be believed was dropped"),
        Event::OffsetInsane => Some("a correction too large to be believed was dropped"),
        Event::ServerStepAccepted => Some("the server insisted on another time: it is believed now"),
        Event::IdentityChanged => Some("the server follows another reference"),
        Event::WanderExceeded => {
            Some("the counter's rate moved by more than the assumed wander: the bound was widened")
        }
        Event::MemoryDropped => Some("the remembered rate proved wrong and was dropped"),
        Event::AsymmetryContradicted => Some("the stated error of the asymmetry contradicts the exchanges"),
        Event::Restarted => Some("the counter left its nominal range: a new start"),
        Event::Disagreement => Some("the learned and the classic estimate disagree"),
        Event::RateJumped => Some("the counter's rate seems to have jumped: the learned filter follows"),
        Event::Reinitialised => Some("the learned filter was re-initialised from the last exchanges"),
        Event::FilterRestarted => Some("the learned filter lost track and started again"),
        Event::OutsideProof => Some("the published time lies outside what is proven: the bound covers both"),
        Event::RateUpdated
        | Event::LocalRateUpdated
        | Event::LocalRateLost
        | Event::OffsetUpdated
        | Event::OffsetHeld
        | Event::WarmupEnded => None,
    }
}

/// The reason that an exchange did not move the estimate; `None` if it did.
pub(crate) fn unused(verdict: Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Used => None,
        Verdict::FloorOnly => Some("the server has just changed: the exchange counts for the floor only"),
        Verdict::Contradiction => Some("the server contradicts what it said before: not believed"),
        Verdict::Rejected(Rejection::OutOfOrder) => Some("exchange out of order"),
        Verdict::Rejected(Rejection::NegativeRoundTrip) => {
            Some("the server claims to have kept the request longer than the round trip")
        }
        Verdict::Rejected(Rejection::RoundTripTooLong) => Some("the round trip is too long to say anything"),
        Verdict::Rejected(Rejection::ServerBackwards) => Some("the server replied before it received"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_estimator::{Classic, ClassicConfig, Estimator};

    #[test]
    fn what_is_logged_is_explained() {
        let document = include_str!("../../../docs/events.md");
        let events = [
            Event::FloorShiftUp,
            Event::FloorShiftDown,
            Event::RateInsane,
            Event::OffsetInsane,
            Event::ServerStepAccepted,
            Event::IdentityChanged,
            Event::WanderExceeded,
            Event::MemoryDropped,
            Event::AsymmetryContradicted,
            Event::Restarted,
            Event::Disagreement,
            Event::RateJumped,
            Event::Reinitialised,
            Event::FilterRestarted,
            Event::OutsideProof,
        ];
        let rejections = [
            Rejection::OutOfOrder,
            Rejection::NegativeRoundTrip,
            Rejection::RoundTripTooLong,
            Rejection::ServerBackwards,
        ];
        let verdicts = [Verdict::FloorOnly, Verdict::Contradiction];
        let unused = verdicts.into_iter().chain(rejections.map(Verdict::Rejected)).filter_map(unused);
        let logged: Vec<&str> = events.into_iter().filter_map(notable).chain(unused).collect();
        assert_eq!(logged.len(), 21);
        for text in logged {
            assert!(document.contains(text), "docs/events.md does not explain: {text}");
        }
    }

    #[test]
    fn a_learned_wander_is_told_with_its_figure() {
        let nominal = ffclock_units::Period::from_hertz(1e9).unwrap();
        let mut summary = Classic::new(ClassicConfig::default(), nominal, None).summary();
        summary.wander = ffclock_units::Rate::from_ppm(2.0);
        assert_eq!(figure(Event::WanderExceeded, &summary), "2.000 ppm is assumed from now on");
        assert_eq!(figure(Event::RateJumped, &summary), "");
    }

    /// Kinds of events are literals in the arguments of a few functions. The test finds them in the text of the program
    /// and looks for them in the document.
    #[test]
    fn every_kind_of_event_is_explained() {
        let events = include_str!("../../../docs/events.md");
        let program = [
            (include_str!("event_loop.rs"), events),
            (include_str!("keeper.rs"), events),
            (include_str!("keeper/page_file.rs"), events),
            (include_str!("keeper/election_log.rs"), events),
            (include_str!("keeper/reporting.rs"), events),
            (include_str!("keeper/leap_seconds.rs"), events),
            (include_str!("peer.rs"), events),
            (include_str!("peer/outcome_log.rs"), events),
            (include_str!("peer/usefulness.rs"), events),
            (
                include_str!("peer/succession.rs"),
                concat!(include_str!("../../../docs/references.md"), include_str!("../../../docs/events.md")),
            ),
            (
                include_str!("peer/ptp.rs"),
                concat!(include_str!("../../../docs/ptp.md"), include_str!("../../../docs/events.md")),
            ),
        ];
        let mut kinds = 0;
        for (line, document) in
            program.iter().flat_map(|(text, document)| text.lines().map(move |line| (line, document)))
        {
            let marks = [
                "journal.warn(\"",
                "journal.notice(\"",
                "Warning, \"",
                "Notice, \"",
                "Detail, \"",
                "Note::warning(\"",
                "Note::notice(\"",
                "Note::detail(\"",
                "let kind = \"",
                "kind: \"",
            ];
            let Some(rest) = marks.iter().find_map(|mark| line.split(mark).nth(1)) else { continue };
            let kind = rest.split('"').next().unwrap_or_default().split(": user space").next().unwrap_or_default();
            let kind = kind.split(": those of").next().unwrap_or_default();
            assert!(document.contains(kind), "the documents do not explain: {kind}");
            kinds += 1;
        }
        assert!(kinds > 25, "{kinds} kinds found");
    }
}
