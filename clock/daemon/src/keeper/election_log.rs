//! What the log says about the vote. The journal limits how often it repeats a message, so it may hold back a change;
//! one that lasts is logged with a later vote, and the last word in the log is true.

use crate::journal::{Entry, Journal, Weight};
use ffclock_control::protocol::{BeliefReport, QuorumReport};
use ffclock_units::Span;
use std::collections::BTreeMap;

/// How a server stands to the vote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) belief: BeliefReport,
    /// How far its interval misses what the believed servers share; `None` where it meets it.
    pub(super) misses: Option<Span>,
}

/// How a vote ended.
pub(super) struct ElectionOutcome {
    pub(super) quorum: QuorumReport,
    /// The name of the server that is followed.
    pub(super) selected: Option<String>,
    /// By the name of the server.
    pub(super) standings: BTreeMap<String, Standing>,
    /// The published time lies outside of what the believed servers share.
    pub(super) is_outside: bool,
    /// A clock is published.
    pub(super) has_clock: bool,
}

/// What was logged last.
#[derive(Default)]
pub(super) struct ElectionLog {
    /// Why no server is followed, as far as it was logged.
    trouble: Option<QuorumReport>,
    selected: Option<String>,
    is_outside: bool,
    /// The servers that were logged as falsetickers or as undecided.
    doubted: BTreeMap<String, BeliefReport>,
}

impl ElectionLog {
    /// Logs what has changed.
    pub(super) fn follow(&mut self, journal: &mut Journal, outcome: ElectionOutcome) {
        if outcome.quorum == QuorumReport::Majority {
            for (name, standing) in &outcome.standings {
                self.follow_belief(journal, name, *standing);
            }
        }
        self.doubted.retain(|name, _| outcome.standings.contains_key(name));
        self.follow_quorum(journal, &outcome);
        let Some(name) = &outcome.selected else { return };
        if Some(name) != self.selected.as_ref() {
            let entry = Entry { weight: Weight::Notice, source: Some(name), kind: "published from now on", detail: "" };
            if journal.log_state(&entry) {
                self.selected = Some(name.clone());
            }
        }
        self.follow_place(journal, &outcome);
    }

    fn follow_quorum(&mut self, journal: &mut Journal, outcome: &ElectionOutcome) {
        let (weight, kind) = match outcome.quorum {
            QuorumReport::Waiting if !outcome.has_clock => return,
            QuorumReport::Majority => (Weight::Notice, "a majority of the servers agrees"),
            QuorumReport::Disagreement => {
                (Weight::Warning, "the servers disagree and none has a majority: no server is followed")
            }
            QuorumReport::TooFew => {
                (Weight::Warning, "fewer servers answer than min_servers demands: no server is followed")
            }
            QuorumReport::Waiting => {
                (Weight::Warning, "too few servers have answered to decide: the clock runs on its oscillator")
            }
        };
        let trouble = Some(outcome.quorum).filter(|quorum| *quorum != QuorumReport::Majority);
        let is_news = trouble != self.trouble;
        if is_news && journal.log_state(&Entry { weight, source: None, kind, detail: "" }) {
            (self.trouble, self.selected) = (trouble, None);
        }
    }

    /// Whether the published time lies within what the believed servers share.
    fn follow_place(&mut self, journal: &mut Journal, outcome: &ElectionOutcome) {
        let kind = if outcome.is_outside {
            "the published time lies outside of what the believed servers share: the bound covers both"
        } else {
            "the published time lies within what the believed servers share again"
        };
        let entry = Entry { weight: Weight::Notice, source: outcome.selected.as_deref(), kind, detail: "" };
        if outcome.is_outside != self.is_outside && journal.log_state(&entry) {
            self.is_outside = outcome.is_outside;
        }
    }

    fn follow_belief(&mut self, journal: &mut Journal, name: &str, Standing { belief, misses }: Standing) {
        let logged = self.doubted.get(name).copied();
        let (weight, kind) = match belief {
            BeliefReport::Falseticker => (Weight::Warning, "falseticker: its time contradicts the majority's"),
            BeliefReport::Undecided => (Weight::Warning, "undecided: no vote can say whether its time is right"),
            BeliefReport::Truechimer if logged.is_some() => (Weight::Notice, "truechimer: it agrees with the majority"),
            BeliefReport::Truechimer | BeliefReport::Unknown | BeliefReport::NoSelect => return,
        };
        let detail = misses.filter(|_| belief == BeliefReport::Falseticker);
        let detail = detail.map(|misses| format!("by {misses} at least")).unwrap_or_default();
        let entry = Entry { weight, source: Some(name), kind, detail: &detail };
        if logged == Some(belief) || !journal.log_state(&entry) {
            return;
        }
        if belief == BeliefReport::Truechimer {
            self.doubted.remove(name);
        } else {
            self.doubted.insert(name.to_owned(), belief);
        }
    }
}
