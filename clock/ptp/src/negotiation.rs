//! Asking a master for unicast messages, and asking again before they end (IEEE 1588-2019, 16.1).

use crate::{PtpEvent, PtpRejection, UnicastService, UnicastTerms, UnicastWord};
use alloc::vec::Vec;
use ffclock_units::{Moment, Mono, Span};

/// After a refusal, or the end of what was granted, the master is left alone for so long.
const REFUSED_PAUSE: Span = Span::from_secs(60);
/// The longest time between two requests that are not answered, as a power of two of a second.
const SLOWEST: u32 = 6;

#[derive(Clone, Copy, Debug)]
struct ServiceState {
    terms: UnicastTerms,
    /// What was granted last, which is no shorter than what was asked for.
    log_interval: i8,
    /// When to ask; `None` while the messages are not wanted.
    due: Option<Moment<Mono>>,
    is_waiting: bool,
    is_granted: bool,
    unanswered: u32,
}

/// What is asked of one master.
#[derive(Debug)]
pub(crate) struct Negotiation {
    services: [ServiceState; 3],
}

impl Negotiation {
    /// Nothing is asked for yet. The intervals are those of Announce, Sync and Delay_Resp.
    pub(crate) fn new(log_intervals: [i8; 3], seconds: u32) -> Self {
        let state = |log_interval| {
            let terms = UnicastTerms { log_interval, seconds };
            ServiceState { terms, log_interval, due: None, is_waiting: false, is_granted: false, unanswered: 0 }
        };
        Negotiation { services: log_intervals.map(state) }
    }

    /// These messages are wanted from now on.
    pub(crate) fn want(&mut self, service: UnicastService, now: Moment<Mono>) {
        self.services[service.index()].due.get_or_insert(now);
    }

    /// These messages are wanted no longer.
    pub(crate) fn drop_service(&mut self, service: UnicastService) {
        let state = &mut self.services[service.index()];
        (state.due, state.is_waiting, state.is_granted) = (None, false, false);
    }

    /// Whether these messages were granted, and not cancelled since.
    pub(crate) const fn is_granted(&self, service: UnicastService) -> bool {
        self.services[service.index()].is_granted
    }

    /// The interval of these messages as it was granted, or as it is asked for; log2 of seconds.
    pub(crate) const fn log_interval(&self, service: UnicastService) -> i8 {
        self.services[service.index()].log_interval
    }

    /// What to ask for now; what was not answered is reported.
    pub(crate) fn handle_timeout(&mut self, now: Moment<Mono>, mut report: impl FnMut(PtpEvent)) -> Vec<UnicastWord> {
        let mut words = Vec::new();
        for (service, state) in UnicastService::ALL.into_iter().zip(&mut self.services) {
            if state.due.is_none_or(|due| due > now) {
                continue;
            }
            if state.is_waiting {
                state.unanswered = (state.unanswered + 1).min(SLOWEST);
                // By now the grant that was to be renewed has run out.
                state.is_granted &= state.unanswered < SLOWEST;
                report(PtpEvent::Unanswered(service));
            }
            state.is_waiting = true;
            state.due = Some(now + Span::from_secs(1 << state.unanswered));
            words.push(UnicastWord::Request(service, state.terms));
        }
        words
    }

    /// When to ask next.
    pub(crate) fn deadline(&self) -> Option<Moment<Mono>> {
        self.services.iter().filter_map(|state| state.due).min()
    }

    /// Takes a word of the master. The result is what to answer, and what happened.
    ///
    /// # Errors
    /// Nothing was asked that it could be the answer to.
    pub(crate) fn hear(
        &mut self,
        word: UnicastWord,
        now: Moment<Mono>,
    ) -> Result<(Option<UnicastWord>, Option<PtpEvent>), PtpRejection> {
        match word {
            UnicastWord::Grant(service, terms) => {
                let state = &mut self.services[service.index()];
                if !state.is_waiting {
                    return Err(PtpRejection::NotAsked);
                }
                (state.is_waiting, state.is_granted, state.unanswered) = (false, terms.seconds > 0, 0);
                if terms.seconds == 0 {
                    state.due = Some(now + REFUSED_PAUSE);
                    return Ok((None, Some(PtpEvent::Denied(service))));
                }
                state.log_interval = terms.log_interval.max(state.terms.log_interval);
                // Asked again when a quarter of the time is left; a wild number of seconds never silences us.
                let seconds = i64::from(terms.seconds.min(state.terms.seconds));
                state.due = Some(now + Span::from_millis((seconds * 750).max(1000)));
                Ok((None, Some(PtpEvent::Granted(service, terms))))
            }
            UnicastWord::Cancel(service) => {
                let state = &mut self.services[service.index()];
                if state.due.is_some() {
                    (state.due, state.is_waiting, state.is_granted) = (Some(now + REFUSED_PAUSE), false, false);
                }
                Ok((Some(UnicastWord::AcknowledgeCancel(service)), Some(PtpEvent::Cancelled(service))))
            }
            UnicastWord::AcknowledgeCancel(_) => Ok((None, None)),
            UnicastWord::Request(..) => Err(PtpRejection::NotForUs),
        }
    }
}
