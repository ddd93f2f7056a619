//! Delay_Req to the master, one at a time, and the Delay_Resp that belongs to it (IEEE 1588-2019, 11.3).

use crate::cadence::interval_of;
use crate::message::LOG_INTERVAL_NONE;
use crate::recent::Recent;
use crate::{Correction, PtpMessage, PtpRejection, PtpTimestamp};
use ffclock_units::{Moment, Mono, Span, Stamp};

/// A request that has its stamp and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnsweredDelay {
    pub(crate) sent: Stamp,
    pub(crate) arrived: PtpTimestamp,
    pub(crate) correction: Correction,
}

#[derive(Clone, Copy, Debug)]
struct OpenDelay {
    sequence: u16,
    deadline: Moment<Mono>,
    sent: Option<Stamp>,
    answer: Option<(PtpTimestamp, Correction)>,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// A request of this number.
    Request(u16),
    /// A request has ended without success, for this reason.
    Failed(PtpRejection),
}

/// The requests to one master.
#[derive(Debug)]
pub(crate) struct DelayRequests {
    sequence: u16,
    open: Option<OpenDelay>,
    given_up: Recent,
    answered: Recent,
    interval: Span,
    /// `None` until a Sync has come: only then is there a master to ask.
    due: Option<Moment<Mono>>,
    /// Whether `due` is when to ask, and not just when to choose that at random.
    is_chosen: bool,
    timeout: Span,
    /// When the first of those went out that have had no response since.
    unanswered: Option<Moment<Mono>>,
}

impl DelayRequests {
    pub(crate) fn new(interval: Span, timeout: Span) -> Self {
        let (given_up, answered) = (Recent::default(), Recent::default());
        DelayRequests {
            sequence: 0,
            open: None,
            given_up,
            answered,
            interval,
            due: None,
            is_chosen: false,
            timeout,
            unanswered: None,
        }
    }

    /// There is another master, or none.
    pub(crate) fn restart(&mut self, interval: Span) {
        self.stop();
        self.interval = interval;
    }

    /// Asks no more until it begins again.
    pub(crate) const fn stop(&mut self) {
        (self.open, self.due, self.is_chosen, self.unanswered) = (None, None, false, None);
    }

    /// The answer to the open request is not wanted.
    pub(crate) fn forget(&mut self) {
        self.open.take().into_iter().for_each(|open| self.given_up.note(open.sequence));
    }

    /// The master allows a request in each such interval.
    pub(crate) const fn set_interval(&mut self, interval: Span) {
        self.interval = interval;
    }

    /// A Sync has come, so the requests begin if they have not yet; not all clocks' at once.
    pub(crate) fn begin(&mut self, now: Moment<Mono>) {
        self.due.get_or_insert(now);
    }

    /// The next step, if its time has come; to be called until there is none.
    pub(crate) fn handle_timeout(&mut self, now: Moment<Mono>, random: u64) -> Option<Due> {
        if let Some(open) = self.open.filter(|open| open.deadline <= now) {
            self.open = None;
            self.given_up.note(open.sequence);
            let is_answered = open.answer.is_some();
            return Some(Due::Failed(if is_answered {
                PtpRejection::StampMissing
            } else {
                PtpRejection::ResponseMissing
            }));
        }
        if self.open.is_some() || self.due.is_none_or(|due| due > now) {
            return None;
        }
        self.due = Some(now + up_to_twice(self.interval, random));
        if !core::mem::replace(&mut self.is_chosen, true) {
            return None;
        }
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        self.open = Some(OpenDelay { sequence, deadline: now + self.timeout, sent: None, answer: None });
        self.unanswered.get_or_insert(now);
        Some(Due::Request(sequence))
    }

    /// When something is due.
    pub(crate) fn deadline(&self) -> Option<Moment<Mono>> {
        self.open.map(|open| open.deadline).or(self.due)
    }

    /// How often the master is asked.
    pub(crate) const fn interval(&self) -> Span {
        self.interval
    }

    /// When the first request went out of those that have had no response since; `None` where the last one had.
    pub(crate) const fn unanswered(&self) -> Option<Moment<Mono>> {
        self.unanswered
    }

    /// The request of this number left.
    pub(crate) fn note_sent(&mut self, sequence: u16, sent: Stamp) -> Option<AnsweredDelay> {
        self.open.as_mut().filter(|open| open.sequence == sequence)?.sent = Some(sent);
        self.complete()
    }

    /// A Delay_Resp to us arrived, which says that the request of its number came at `arrived`.
    ///
    /// # Errors
    /// It answers no open request.
    pub(crate) fn answer(
        &mut self,
        message: &PtpMessage,
        arrived: PtpTimestamp,
    ) -> Result<Option<AnsweredDelay>, PtpRejection> {
        let sequence = message.sequence;
        match self.open.as_mut().filter(|open| open.sequence == sequence) {
            None if self.given_up.has(sequence) => Err(PtpRejection::Late),
            None if self.answered.has(sequence) => Err(PtpRejection::Duplicate),
            None => Err(PtpRejection::WrongSequence),
            Some(open) if open.answer.is_some() => Err(PtpRejection::Duplicate),
            Some(open) => {
                open.answer = Some((arrived, message.correction));
                self.unanswered = None;
                // How often we may ask (13.3.2.14); a master that does not say leaves it as it is.
                if message.log_interval != LOG_INTERVAL_NONE {
                    self.interval = interval_of(message.log_interval);
                }
                Ok(self.complete())
            }
        }
    }

    fn complete(&mut self) -> Option<AnsweredDelay> {
        let open = self.open?;
        let (sent, (arrived, correction)) = (open.sent?, open.answer?);
        self.open = None;
        self.answered.note(open.sequence);
        Some(AnsweredDelay { sent, arrived, correction })
    }
}

/// Anything from nothing to twice the interval, so that many clocks do not ask all at once (9.5.11.2).
fn up_to_twice(interval: Span, random: u64) -> Span {
    Span::from_units((interval.units() >> 31) * i128::from(random >> 32) + 1)
}
