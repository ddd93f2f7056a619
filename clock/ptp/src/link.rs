//! The link to the neighbour: Pdelay_Req and what answers it (IEEE 1588-2019, 11.4), both sides.

use crate::recent::Recent;
use crate::requests::Due;
use crate::{Correction, PortIdentity, PtpBody, PtpFlags, PtpMessage, PtpRejection, PtpTimestamp};
use ffclock_units::{Bound, Moment, Mono, Span, Stamp};

/// A request and all that answers it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasuredLink {
    pub(crate) neighbour: PortIdentity,
    pub(crate) sent: Stamp,
    pub(crate) received: Stamp,
    /// For how long the neighbour held the request.
    pub(crate) turnaround: Span,
    /// When it says that the request arrived, rounded down to the nanosecond; zero where it does not say.
    pub(crate) arrived: PtpTimestamp,
    /// What the response says is to be added to that, or what switches added to the response.
    pub(crate) correction: Span,
}

/// What the response and its Follow_Up say.
#[derive(Clone, Copy, Debug)]
struct Response {
    neighbour: PortIdentity,
    received: Stamp,
    arrived: PtpTimestamp,
    correction: Correction,
    is_complete: bool,
}

/// What the Follow_Up says, which may come first.
#[derive(Clone, Copy, Debug)]
struct Departure {
    neighbour: PortIdentity,
    left: PtpTimestamp,
    correction: Correction,
}

#[derive(Clone, Copy, Debug)]
struct OpenLink {
    sequence: u16,
    deadline: Moment<Mono>,
    sent: Option<Stamp>,
    response: Option<Response>,
    left: Option<Departure>,
}

impl OpenLink {
    /// The neighbour that answered first.
    fn neighbour(&self) -> Option<PortIdentity> {
        self.response.map(|first| first.neighbour).or(self.left.map(|first| first.neighbour))
    }
}

/// Our requests, one at a time.
#[derive(Debug)]
pub(crate) struct LinkRequests {
    sequence: u16,
    open: Option<OpenLink>,
    given_up: Recent,
    answered: Recent,
    /// Who answered the last request that was answered.
    answered_by: Option<(u16, PortIdentity)>,
    /// Whether a second neighbour answers the latest request, and the one before.
    has_second: bool,
    had_second: bool,
    interval: Span,
    due: Moment<Mono>,
    timeout: Span,
    correction_max: Bound,
}

impl LinkRequests {
    pub(crate) fn new((interval, timeout): (Span, Span), correction_max: Bound, now: Moment<Mono>) -> Self {
        LinkRequests {
            sequence: 0,
            open: None,
            given_up: Recent::default(),
            answered: Recent::default(),
            answered_by: None,
            has_second: false,
            had_second: false,
            interval,
            due: now,
            timeout,
            correction_max,
        }
    }

    /// The next step, if its time has come; to be called until there is none.
    pub(crate) fn handle_timeout(&mut self, now: Moment<Mono>) -> Option<Due> {
        if let Some(open) = self.open.filter(|open| open.deadline <= now) {
            self.open = None;
            self.given_up.note(open.sequence);
            return Some(Due::Failed(match open.response {
                None => PtpRejection::ResponseMissing,
                Some(response) if !response.is_complete && open.left.is_none() => PtpRejection::FollowUpMissing,
                Some(_) => PtpRejection::StampMissing,
            }));
        }
        if self.open.is_some() || self.due > now {
            return None;
        }
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        self.open = Some(OpenLink { sequence, deadline: now + self.timeout, sent: None, response: None, left: None });
        self.due = now + self.interval;
        self.had_second = core::mem::take(&mut self.has_second);
        Some(Due::Request(sequence))
    }

    /// When something is due.
    pub(crate) fn deadline(&self) -> Moment<Mono> {
        self.open.map_or(self.due, |open| open.deadline)
    }

    /// The request of this number left.
    pub(crate) fn note_sent(&mut self, sequence: u16, sent: Stamp) -> Result<Option<MeasuredLink>, PtpRejection> {
        let Some(open) = self.open.as_mut().filter(|open| open.sequence == sequence) else { return Ok(None) };
        open.sent = Some(sent);
        self.complete()
    }

    /// A Pdelay_Resp to us arrived at `received`.
    ///
    /// # Errors
    /// It answers no open request, a second neighbour sent it, or it is a second one; the first one stays.
    pub(crate) fn response(
        &mut self,
        (message, arrived): (&PtpMessage, PtpTimestamp),
        received: Stamp,
    ) -> Result<Option<MeasuredLink>, PtpRejection> {
        let is_complete = !message.flags.has(PtpFlags::TWO_STEP);
        let (neighbour, correction) = (message.source, message.correction);
        let open = self.find(message)?;
        if open.response.is_some() {
            return Err(PtpRejection::Duplicate);
        }
        open.response = Some(Response { neighbour, received, arrived, correction, is_complete });
        self.complete()
    }

    /// A Pdelay_Resp_Follow_Up to us arrived; it may come before its response.
    ///
    /// # Errors
    /// It answers no open request, a second neighbour sent it, or it is a second one; the first one stays.
    pub(crate) fn follow_up(
        &mut self,
        message: &PtpMessage,
        left: PtpTimestamp,
    ) -> Result<Option<MeasuredLink>, PtpRejection> {
        let neighbour = message.source;
        let open = self.find(message)?;
        if open.left.is_some() {
            return Err(PtpRejection::Duplicate);
        }
        open.left = Some(Departure { neighbour, left, correction: message.correction });
        self.complete()
    }

    /// The request that a message answers. Where two neighbours answer, something between us and them passes on what
    /// is for the link alone, and neither measures it.
    fn find(&mut self, message: &PtpMessage) -> Result<&mut OpenLink, PtpRejection> {
        let sequence = message.sequence;
        let answered_by = self.answered_by.filter(|(answered, _)| *answered == sequence).map(|(_, first)| first);
        let first = match &self.open {
            Some(open) if open.sequence == sequence => open.neighbour(),
            _ => answered_by,
        };
        if first.is_some_and(|first| first != message.source) {
            self.has_second = true;
            return Err(PtpRejection::SecondNeighbour);
        }
        let open = self.open.as_mut().filter(|open| open.sequence == sequence);
        open.ok_or(if self.given_up.has(sequence) {
            PtpRejection::Late
        } else if self.answered.has(sequence) {
            PtpRejection::Duplicate
        } else {
            PtpRejection::WrongSequence
        })
    }

    /// The link delay, once all of it is there. In one step the correction is the turnaround; in two steps it is the
    /// difference of the two times and both corrections (11.4.2).
    fn complete(&mut self) -> Result<Option<MeasuredLink>, PtpRejection> {
        let Some(OpenLink { sequence, sent: Some(sent), response: Some(response), left, .. }) = self.open else {
            return Ok(None);
        };
        let times = match (response.is_complete, left) {
            (true, _) => Ok((Span::ZERO, Correction::ZERO)),
            (false, None) => return Ok(None),
            (false, Some(departure)) => {
                difference(response.arrived, departure.left).map(|held| (held, departure.correction))
            }
        };
        self.open = None;
        self.answered.note(sequence);
        self.answered_by = Some((sequence, response.neighbour));
        if self.has_second || self.had_second {
            return Err(PtpRejection::SecondNeighbour);
        }
        let (held, more) = times?;
        let limit = |correction: Correction| {
            let span = correction.as_span().filter(|span| Bound::of(*span) <= self.correction_max);
            span.ok_or(PtpRejection::Correction)
        };
        let correction = limit(response.correction)?;
        let turnaround = held + correction + limit(more)?;
        if turnaround.is_negative() {
            return Err(PtpRejection::Correction);
        }
        let Response { neighbour, received, arrived, .. } = response;
        Ok(Some(MeasuredLink { neighbour, sent, received, turnaround, arrived, correction }))
    }
}

/// From the arrival of the request to the departure of the response.
fn difference(arrived: PtpTimestamp, left: PtpTimestamp) -> Result<Span, PtpRejection> {
    let (arrived, left) = (arrived.since_origin(), left.since_origin());
    Ok(left.ok_or(PtpRejection::Timestamp)? - arrived.ok_or(PtpRejection::Timestamp)?)
}

/// A response of ours whose stamp is not there yet.
#[derive(Clone, Copy, Debug)]
struct OpenResponse<T> {
    number: u32,
    since: Moment<Mono>,
    request: PtpMessage,
    received: T,
}

/// Our answers to a neighbour. As they are here they state no times, only for how long we held the request (11.4.2, two
/// steps), so a clock whose time is not known can answer; a grandmaster adds its times. `T` is a reading of the clock
/// that measures that.
///
/// Each neighbour has one response at a time that waits for its stamp. Where all places are taken, another one gets no
/// response: a flood of requests pushes out no response that waits.
#[derive(Debug)]
pub(crate) struct LinkResponder<T> {
    open: [Option<OpenResponse<T>>; PLACES],
    next: u32,
}

/// Responses that wait for their stamps.
const PLACES: usize = 16;
/// A stamp that has not come by then does not come.
const LONGEST_WAIT: Span = Span::from_secs(1);

impl<T: Copy> LinkResponder<T> {
    pub(crate) const fn new() -> Self {
        LinkResponder { open: [None; PLACES], next: 0 }
    }

    /// The Pdelay_Resp of `own` to a request that arrived at `received`, and the number for its stamp.
    ///
    /// # Errors
    /// The response to its last request waits, or those to others take all places.
    pub(crate) fn answer(
        &mut self,
        request: &PtpMessage,
        (received, now): (T, Moment<Mono>),
        own: PortIdentity,
    ) -> Result<(u32, PtpMessage), PtpRejection> {
        for place in &mut self.open {
            place.take_if(|open| now - open.since >= LONGEST_WAIT);
        }
        let is_answered = self.open.iter().flatten().any(|open| open.request.source == request.source);
        let free = self.open.iter_mut().find(|place| place.is_none()).filter(|_| !is_answered);
        let place = free.ok_or(PtpRejection::TooManyNeighbours)?;
        let number = self.next;
        self.next = number.wrapping_add(1);
        *place = Some(OpenResponse { number, since: now, request: *request, received });
        let body = PtpBody::PdelayResp(PtpTimestamp::ZERO, request.source);
        let plain = PtpMessage::plain(own, request.domain, body);
        Ok((number, PtpMessage { flags: PtpFlags::TWO_STEP, sequence: request.sequence, ..plain }))
    }

    /// The Pdelay_Resp_Follow_Up, now that the response has left; `held` says how long after the request arrived.
    pub(crate) fn follow_up(&mut self, number: u32, held: impl Fn(T) -> Span, own: PortIdentity) -> Option<PtpMessage> {
        let open = self.open.iter_mut().find_map(|place| place.take_if(|open| open.number == number))?;
        let correction = open.request.correction.as_span().map(|before| Correction::of(before + held(open.received)));
        let body = PtpBody::PdelayRespFollowUp(PtpTimestamp::ZERO, open.request.source);
        let plain = PtpMessage::plain(own, open.request.domain, body);
        let correction = correction.unwrap_or(Correction::UNKNOWN);
        Some(PtpMessage { correction, sequence: open.request.sequence, ..plain })
    }
}
