//! Whether what a server says is of any use. One that answers without ever giving an exchange that the estimate can use
//! counts as one that is silent: its clock runs on alone, and the status must say so.

use super::{Context, Peer};
use crate::journal::{Entry, Weight};
use ffclock_estimator::Verdict;
use ffclock_source::{Event, Reachability};

/// The requests since the last exchange that was of use.
#[derive(Debug, Default)]
pub(super) struct Fruitless {
    requests: u32,
    /// Whether that was logged, so that its end is worth a word.
    is_logged: bool,
    /// Whether its name is to be looked up again: the server may have moved.
    wishes_look_up: bool,
}

impl Fruitless {
    /// Before anything was heard from another address of the server. A wish to look its name up stays.
    pub(super) fn at_another_address(&self) -> Self {
        Fruitless { wishes_look_up: self.wishes_look_up, ..Fruitless::default() }
    }

    /// Whether the name is to be looked up again; true once for each reason.
    pub(super) fn take_look_up_wish(&mut self) -> bool {
        std::mem::take(&mut self.wishes_look_up)
    }
}

impl Peer {
    /// Whether it answers, and nothing that it says is of use.
    pub(super) fn is_fruitless(&self) -> bool {
        self.reachability() == Reachability::Reachable
            && self.fruitless.requests >= self.config.source.unreachable_after
    }

    /// An event of the conversation that ends a request without an exchange.
    pub(super) fn note_event(&mut self, event: &Event, context: &mut Context) {
        if matches!(event, Event::Reachable) {
            // It was silent: what was lost before says nothing about its answers.
            self.fruitless.requests = 0;
        }
        let ends_request = match event {
            Event::Lost | Event::Kissed(_) => true,
            Event::Rejected(reason) => reason.ends_request(),
            _ => false,
        };
        if ends_request {
            self.note_fruitless(context);
        }
    }

    /// What the estimator made of an exchange. One that contradicts is of use: the vote hears it, and the estimate says
    /// itself that it is in holdover.
    pub(super) fn note_verdict(&mut self, verdict: Verdict, context: &mut Context) {
        match verdict {
            Verdict::Used | Verdict::Contradiction => self.note_useful(context),
            Verdict::FloorOnly | Verdict::Rejected(_) => self.note_fruitless(context),
        }
    }

    fn note_fruitless(&mut self, context: &mut Context) {
        self.fruitless.requests = self.fruitless.requests.saturating_add(1);
        if !self.is_fruitless() {
            return;
        }
        if !self.fruitless.is_logged {
            let kind = "the server answers, and nothing of it is of use: it counts as silent";
            let entry = Entry { weight: Weight::Warning, source: Some(&self.name), kind, detail: "" };
            self.fruitless.is_logged = context.journal.log_state(&entry);
        }
        if self.fruitless.requests.is_multiple_of(self.config.source.unreachable_after) && self.feed.is_none() {
            self.fruitless.wishes_look_up = true;
            self.connect_next(context);
        }
    }

    fn note_useful(&mut self, context: &mut Context) {
        self.fruitless.requests = 0;
        self.fruitless.wishes_look_up = false;
        if self.fruitless.is_logged {
            let kind = "what the server says is of use again";
            let entry = Entry { weight: Weight::Notice, source: Some(&self.name), kind, detail: "" };
            self.fruitless.is_logged = !context.journal.log_state(&entry);
        }
    }
}
