//! What the log says about the vote. The journal limits how often it repeats a message, so it may hold back a change;
//! one that lasts is logged with a later vote, and the last word in the log is true.

use crate::journal::{Entry, Journal, Weight};
use ffclock_control::protocol::{BeliefReport, QuorumReport};
use ffclock_units::Span;
use std::collections::{BTreeMap, BTreeSet};

/// How a server stands to the vote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) belief: BeliefReport,
    /// How far its interval misses what the believed servers share; `None` where it meets it.
    pub(super) misses: Option<Span>,
    /// Whether the common clock suspects it.
    pub(super) is_suspect: bool,
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
    /// The servers that were logged as suspect.
    suspects: BTreeSet<String>,
}

impl ElectionLog {
    /// Logs what has changed.
    pub(super) fn follow(&mut self, journal: &mut Journal, outcome: ElectionOutcome) {
        if outcome.quorum == QuorumReport::Majority {
            for (name, standing) in &outcome.standings {
                self.follow_belief(journal, name, *standing);
                self.follow_suspicion(journal, name, *standing);
            }
        }
        self.doubted.retain(|name, _| outcome.standings.contains_key(name));
        self.suspects.retain(|name| outcome.standings.contains_key(name));
        self.follow_quorum(journal, &outcome);
        let Some(name) = &outcome.selected else { return };
        if Some(name) != self.selected.as_ref() {
            let entry = Entry { weight: Weight::Notice, source: Some(name), kind: "selected from now on", detail: "" };
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

    /// A suspect that the vote no longer believes is logged as what the vote calls it.
    fn follow_suspicion(&mut self, journal: &mut Journal, name: &str, standing: Standing) {
        let was_suspect = self.suspects.contains(name);
        if standing.belief != BeliefReport::Truechimer {
            self.suspects.remove(name);
            return;
        }
        let (weight, kind) = if standing.is_suspect {
            (Weight::Warning, "suspect: its path and its claim do not explain its time: it has no weight")
        } else {
            (Weight::Notice, "no longer suspect: its path and its claim explain its time")
        };
        let entry = Entry { weight, source: Some(name), kind, detail: "" };
        if standing.is_suspect == was_suspect || !journal.log_state(&entry) {
            return;
        }
        if standing.is_suspect {
            self.suspects.insert(name.to_owned());
        } else {
            self.suspects.remove(name);
        }
    }

    fn follow_belief(&mut self, journal: &mut Journal, name: &str, Standing { belief, misses, .. }: Standing) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{Moment, Mono};

    const SUSPECT: Standing = Standing { belief: BeliefReport::Truechimer, misses: None, is_suspect: true };
    const BELIEVED: Standing = Standing { is_suspect: false, ..SUSPECT };
    const FALSE: Standing = Standing { belief: BeliefReport::Falseticker, ..BELIEVED };

    /// A log and a journal at a second since the start.
    struct Play(ElectionLog, Journal);

    impl Play {
        fn new() -> Self {
            Play(ElectionLog::default(), Journal::new(at(0)))
        }

        /// The vote of this second; then all events so far about servers, without those about the selected one.
        fn vote(&mut self, second: i64, standings: [Standing; 3]) -> Vec<String> {
            let Play(log, journal) = self;
            journal.set_now(at(second));
            let standings = ["a", "b", "c"].map(str::to_owned).into_iter().zip(standings).collect();
            let (quorum, selected) = (QuorumReport::Majority, Some("a".to_owned()));
            log.follow(journal, ElectionOutcome { quorum, selected, standings, is_outside: false, has_clock: true });
            let events = journal.latest().into_iter().filter(|event| event.text != "selected from now on");
            events
                .map(|event| {
                    let word = event.text.split(':').next().unwrap_or_default().to_owned();
                    format!("{} {word}", event.source.unwrap_or_default())
                })
                .collect()
        }
    }

    fn at(second: i64) -> Moment<Mono> {
        Moment::from_origin(Span::from_secs(second))
    }

    #[test]
    fn every_server_has_its_own_events_within_a_minute() {
        let mut play = Play::new();
        play.vote(0, [BELIEVED; 3]);
        play.vote(1, [BELIEVED, SUSPECT, BELIEVED]);
        let events = play.vote(2, [BELIEVED, SUSPECT, SUSPECT]);
        assert_eq!(events, ["b suspect", "c suspect"]);
        let events = play.vote(3, [BELIEVED, BELIEVED, SUSPECT]);
        assert_eq!(events, ["b suspect", "c suspect", "b no longer suspect"]);
        let events = play.vote(4, [BELIEVED, FALSE, FALSE]);
        assert_eq!(events[3..], ["b falseticker", "c falseticker"], "and not: no longer suspect");
    }

    #[test]
    fn the_last_word_about_a_suspect_is_true_although_it_waits() {
        let mut play = Play::new();
        for second in 0..20 {
            play.vote(second, [BELIEVED, if second % 2 == 0 { SUSPECT } else { BELIEVED }, BELIEVED]);
        }
        assert_eq!(play.vote(20, [BELIEVED, SUSPECT, BELIEVED]), ["b suspect", "b no longer suspect"]);
        assert_eq!(play.vote(61, [BELIEVED, SUSPECT, BELIEVED]).last().unwrap(), "b suspect");
        assert_eq!(play.vote(100, [BELIEVED; 3]).last().unwrap(), "b no longer suspect");
    }
}
