//! When to send: bursts, the poll, and how a server's refusals change them.

use crate::config::POLL_MAX;
use crate::reach::Reach;
use crate::{PollPlace, Reachability, SourceConfig};
use ffclock_units::{Moment, Mono, Span};

/// After DENY or RSTR nothing is sent. At this interval the caller is asked to resolve the name again, because only
/// another address (or a deliberate second attempt) is worth a packet.
const DENIED_PAUSE: Span = Span::from_secs(3600);

/// When to send the next request. It holds the time of the last request rather than that of the next, so that a new
/// configuration or the end of a burst needs no recalculation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    begin: Moment<Mono>,
    last_request: Option<Moment<Mono>>,
    burst_left: u32,
    /// The shortest poll that the server accepts, if it refused a shorter one.
    slowed_to: Option<Span>,
    denied_until: Option<Moment<Mono>>,
    /// The poll that the caller chose; `None` while the configured one holds.
    chosen: Option<Span>,
    place: PollPlace,
}

/// A chosen poll is not lengthened by less than this part of it: polls that hardly differ would never keep their
/// places.
const WORTH_LENGTHENING: i128 = 4;

impl Schedule {
    pub(crate) const fn new(config: &SourceConfig, now: Moment<Mono>) -> Self {
        Schedule {
            begin: now,
            last_request: None,
            burst_left: config.burst_count,
            slowed_to: None,
            denied_until: None,
            chosen: None,
            place: PollPlace::ALONE,
        }
    }

    /// Restarts at `now`. A slowdown that the server asked for stays: the new address may be the same server.
    pub(crate) fn restart(&mut self, config: &SourceConfig, now: Moment<Mono>) {
        let Schedule { slowed_to, chosen, place, .. } = *self;
        *self = Schedule { slowed_to, chosen, place, ..Schedule::new(config, now) };
        if slowed_to.is_some() {
            self.burst_left = 0;
        }
    }

    /// Chooses the poll within the configured range, or lets the configured one hold.
    pub(crate) fn choose(&mut self, wanted: Option<Span>, config: &SourceConfig) {
        self.chosen = wanted.map(|wanted| {
            let wanted = wanted.clamp(config.poll_min, config.poll_max);
            let is_alike = |present: &Span| {
                let longer = (wanted - *present).units();
                longer >= 0 && longer * WORTH_LENGTHENING < present.units() && wanted != config.poll_max
            };
            self.chosen.filter(is_alike).unwrap_or(wanted)
        });
    }

    /// Sets the place among the servers that are asked in turn.
    pub(crate) const fn set_place(&mut self, place: PollPlace) {
        self.place = place;
    }

    /// The time between two requests outside bursts.
    pub(crate) fn poll(&self, config: &SourceConfig, reach: &Reach) -> Span {
        let wanted = self.wanted(config, reach);
        self.slowed_to.map_or(wanted, |slowest| slowest.max(wanted))
    }

    /// Whether the server asked for a longer poll than it would have otherwise.
    pub(crate) fn is_slowed(&self, config: &SourceConfig, reach: &Reach) -> bool {
        self.slowed_to.is_some_and(|slowest| slowest > self.wanted(config, reach))
    }

    /// The poll without regard to refusals. Where it was chosen, a lost request is repeated soon, since a long poll
    /// counts on its answer, and a server that does not answer any more is asked as little as may be.
    fn wanted(&self, config: &SourceConfig, reach: &Reach) -> Span {
        let Some(chosen) = self.chosen else { return config.poll };
        match reach.standing() {
            Reachability::Unreachable => config.poll_max,
            _ if reach.has_failed() => config.poll_min,
            _ => chosen.clamp(config.poll_min, config.poll_max),
        }
    }

    /// When the next request is due.
    pub(crate) fn next_request(&self, config: &SourceConfig, reach: &Reach) -> Moment<Mono> {
        let poll = self.poll(config, reach);
        match self.last_request {
            None => self.begin,
            Some(last) if self.burst_left > 0 => last + config.burst_interval.min(poll),
            Some(last) => self.place.from(last + poll, poll),
        }
    }

    /// A request leaves.
    pub(crate) const fn note_request(&mut self, now: Moment<Mono>) {
        self.last_request = Some(now);
        self.burst_left = self.burst_left.saturating_sub(1);
    }

    /// Starts a burst of requests, unless the server has asked for a slower poll.
    pub(crate) const fn begin_burst(&mut self, count: u32) {
        if self.slowed_to.is_none() {
            self.burst_left = count;
        }
    }

    /// The server asks for a slower poll (RATE; RFC 5905, section 7.4): the poll doubles and bursts end.
    ///
    /// The poll does not return by itself, because a server refuses the same poll again.
    pub(crate) fn slow_down(&mut self, config: &SourceConfig, reach: &Reach) {
        let poll = self.poll(config, reach);
        self.slowed_to = Some((poll + poll).min(POLL_MAX));
        self.burst_left = 0;
    }

    /// The shortest poll that the server accepts, if it refused a shorter one.
    pub(crate) const fn slowed_to(&self) -> Option<Span> {
        self.slowed_to
    }

    /// The server is known to refuse a poll shorter than this: it holds as if it had said so here.
    pub(crate) fn heed_slowdown(&mut self, shortest: Span) {
        self.slowed_to = self.slowed_to.max(Some(shortest.min(POLL_MAX)));
        self.burst_left = 0;
    }

    /// A new poll was configured. The administrator's choice overrides the earlier refusals.
    pub(crate) const fn forget_slowdown(&mut self) {
        self.slowed_to = None;
    }

    /// The server refuses service.
    pub(crate) fn deny(&mut self, now: Moment<Mono>) {
        self.denied_until = Some(now + DENIED_PAUSE);
    }

    /// The end of the pause after a refusal of service.
    pub(crate) const fn denied_until(&self) -> Option<Moment<Mono>> {
        self.denied_until
    }
}
