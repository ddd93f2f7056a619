//! What is logged of the exchanges with a server. A state that lasts is logged when it begins and when it ends, and not
//! over and over in between.

use super::{Context, Peer};
use crate::journal::{Entry, Weight};
use crate::wording;
use ffclock_estimator::{Estimator, Event, Outcome, Verdict};
use ffclock_units::{Span, Status};

/// What was logged of the present estimator.
#[derive(Default)]
pub(super) struct Reported {
    /// The exchanges that were not believed since the server began to contradict itself.
    disbelieved: u64,
    /// Whether that was reported, so that its end is worth reporting.
    is_contradiction: bool,
    /// Whether it was reported that the server follows this host, so that the end of that is worth reporting.
    pub(super) is_loop: bool,
    /// Whether the end of the warm-up was reported.
    is_warm: bool,
    /// Whether the rate that was remembered proved wrong, and the keeper does not know yet.
    had_false_memory: bool,
}

impl Peer {
    /// Whether the rate that was remembered proved wrong since the last call.
    pub(crate) fn take_false_memory(&mut self) -> bool {
        std::mem::take(&mut self.reported.had_false_memory)
    }

    /// As if it had.
    #[cfg(test)]
    pub(crate) fn note_false_memory(&mut self) {
        self.reported.had_false_memory = true;
    }

    /// Logs what the estimator made of an exchange.
    pub(super) fn log_outcome(&mut self, outcome: &Outcome, context: &mut Context) {
        self.log_end_of_loop(context);
        self.reported.had_false_memory |= outcome.events.contains(Event::MemoryDropped);
        for event in outcome.events.iter() {
            let Some(text) = wording::notable(event) else { continue };
            let detail = wording::figure(event, &self.estimator.summary());
            self.log(context, Weight::Notice, text, &detail);
        }
        match (outcome.verdict, wording::unused(outcome.verdict)) {
            (Verdict::Contradiction, Some(text)) => self.log_contradiction(text, context),
            (_, Some(text)) => self.log(context, Weight::Warning, text, ""),
            (_, None) => self.log_agreement(context),
        }
        self.log_warm_up(context);
    }

    /// Another server says what the last one excluded; logged when that begins.
    pub(super) fn log_other_server(&self, gap: Span, context: &mut Context) {
        if self.reported.disbelieved == 0 {
            let kind = "another server contradicts what the last one proved: it has to insist";
            self.log(context, Weight::Warning, kind, &format!("by {gap} at least"));
        }
    }

    fn log_contradiction(&mut self, kind: &'static str, context: &mut Context) {
        context.is_upset |= self.reported.disbelieved == 0;
        self.reported.disbelieved += 1;
        if !self.reported.is_contradiction {
            let entry = Entry { weight: Weight::Warning, source: Some(&self.name), kind, detail: "" };
            self.reported.is_contradiction = context.journal.log_state(&entry);
        }
    }

    fn log_agreement(&mut self, context: &mut Context) {
        if self.reported.is_contradiction {
            let detail = format!("{} exchanges were not believed", self.reported.disbelieved);
            let kind = "the server no longer contradicts what it said before";
            let entry = Entry { weight: Weight::Notice, source: Some(&self.name), kind, detail: &detail };
            if !context.journal.log_state(&entry) {
                return;
            }
        }
        (self.reported.is_contradiction, self.reported.disbelieved) = (false, 0);
    }

    /// The status is what users see: the estimators' own ends of their warm-ups are earlier or later.
    fn log_warm_up(&mut self, context: &mut Context) {
        let is_warm = self.estimator.estimate().is_some_and(|estimate| estimate.status == Status::Synchronised);
        if is_warm && !self.reported.is_warm {
            self.reported.is_warm = true;
            self.log(context, Weight::Notice, "warm-up is over", "");
        }
    }
}
