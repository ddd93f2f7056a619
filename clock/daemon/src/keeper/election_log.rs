//! What the log says about the vote. The journal limits how often it repeats a message, so it may hold back a change;
//! one that lasts is logged with a later vote, and the last word in the log is true.

use crate::journal::{Entry, Journal, Weight};
use ffclock_control::protocol::{BeliefReport, QuorumReport};
use std::collections::BTreeMap;

/// How a vote ended.
pub(super) struct ElectionOutcome {
    pub(super) quorum: QuorumReport,
    /// The name of the server that is followed.
    pub(super) selected: Option<String>,
    /// By the name of the server.
    pub(super) beliefs: BTreeMap<String, BeliefReport>,
}

/// What was logged last.
#[derive(Default)]
pub(super) struct ElectionLog {
    is_disagreement: bool,
    selected: Option<String>,
    /// The servers that were logged as falsetickers or as undecided.
    doubted: BTreeMap<String, BeliefReport>,
}

impl ElectionLog {
    /// Logs what has changed.
    pub(super) fn follow(&mut self, journal: &mut Journal, outcome: ElectionOutcome) {
        if outcome.quorum == QuorumReport::Majority {
            for (name, belief) in &outcome.beliefs {
                self.follow_belief(journal, name, *belief);
            }
        }
        self.doubted.retain(|name, _| outcome.beliefs.contains_key(name));
        self.follow_quorum(journal, outcome.quorum);
        if let Some(name) = outcome.selected.filter(|name| Some(name) != self.selected.as_ref()) {
            let entry =
                Entry { weight: Weight::Notice, source: Some(&name), kind: "published from now on", detail: "" };
            if journal.log_state(&entry) {
                self.selected = Some(name);
            }
        }
    }

    fn follow_quorum(&mut self, journal: &mut Journal, quorum: QuorumReport) {
        let (is_disagreement, weight, kind) = match quorum {
            QuorumReport::Waiting => return,
            QuorumReport::Majority => (false, Weight::Notice, "a majority of the servers agrees"),
            QuorumReport::Disagreement => {
                (true, Weight::Warning, "the servers disagree and none has a majority: no server is followed")
            }
        };
        let is_news = is_disagreement != self.is_disagreement;
        if is_news && journal.log_state(&Entry { weight, source: None, kind, detail: "" }) {
            (self.is_disagreement, self.selected) = (is_disagreement, None);
        }
    }

    fn follow_belief(&mut self, journal: &mut Journal, name: &str, belief: BeliefReport) {
        let logged = self.doubted.get(name).copied();
        let (weight, kind) = match belief {
            BeliefReport::Falseticker => (Weight::Warning, "falseticker: its time contradicts the majority's"),
            BeliefReport::Undecided => (Weight::Warning, "undecided: no vote can say whether its time is right"),
            BeliefReport::Truechimer if logged.is_some() => (Weight::Notice, "truechimer: it agrees with the majority"),
            BeliefReport::Truechimer | BeliefReport::Unknown => return,
        };
        if logged == Some(belief) || !journal.log_state(&Entry { weight, source: Some(name), kind, detail: "" }) {
            return;
        }
        if belief == BeliefReport::Truechimer {
            self.doubted.remove(name);
        } else {
            self.doubted.insert(name.to_owned(), belief);
        }
    }
}
