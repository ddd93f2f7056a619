//! When to send: bursts, the poll, and how a server's refusals change them.

use crate::SourceConfig;
use crate::config::POLL_MAX;
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
}

impl Schedule {
    pub(crate) const fn new(config: &SourceConfig, now: Moment<Mono>) -> Self {
        Schedule { begin: now, last_request: None, burst_left: config.burst_count, slowed_to: None, denied_until: None }
    }

    /// Restarts at `now`. A slowdown that the server asked for stays: the new address may be the same server.
    pub(crate) fn restart(&mut self, config: &SourceConfig, now: Moment<Mono>) {
        let slowed_to = self.slowed_to;
        *self = Schedule { slowed_to, ..Schedule::new(config, now) };
        if slowed_to.is_some() {
            self.burst_left = 0;
        }
    }

    /// The time between two requests outside bursts.
    pub(crate) fn poll(&self, config: &SourceConfig) -> Span {
        self.slowed_to.map_or(config.poll, |slowest| slowest.max(config.poll))
    }

    /// When the next request is due.
    pub(crate) fn next_request(&self, config: &SourceConfig) -> Moment<Mono> {
        let poll = self.poll(config);
        let interval = if self.burst_left > 0 { config.burst_interval.min(poll) } else { poll };
        self.last_request.map_or(self.begin, |last| last + interval)
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
    pub(crate) fn slow_down(&mut self, config: &SourceConfig) {
        let poll = self.poll(config);
        self.slowed_to = Some((poll + poll).min(POLL_MAX));
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
