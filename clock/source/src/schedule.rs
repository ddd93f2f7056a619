//! When to ask: bursts, the poll, and what a server's wishes change about them.

use crate::SourceConfig;
use crate::config::POLL_MAX;
use ffclock_units::{Moment, Mono, Span};

/// After DENY or RSTR nothing is sent; this often the caller is asked to look up the name again, since only another
/// address (or a deliberate second attempt) is worth a packet.
const DENIED_PAUSE: Span = Span::from_secs(3600);

/// When to ask next. It holds when the last request left rather than when the next is due, so that a new
/// configuration or the end of a burst needs no recalculation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    begin: Moment<Mono>,
    last_request: Option<Moment<Mono>>,
    burst_left: u32,
    /// The shortest poll that the server accepts, if it said that ours is too short.
    slowed_to: Option<Span>,
    denied_until: Option<Moment<Mono>>,
}

impl Schedule {
    pub(crate) const fn new(config: &SourceConfig, now: Moment<Mono>) -> Self {
        Schedule { begin: now, last_request: None, burst_left: config.burst_count, slowed_to: None, denied_until: None }
    }

    /// Begins anew at `now`. That the server wished to be asked less often is kept: the new address may well be the
    /// same server.
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

    /// A burst of requests from now on, unless the server wished to be asked less often.
    pub(crate) const fn begin_burst(&mut self, count: u32) {
        if self.slowed_to.is_none() {
            self.burst_left = count;
        }
    }

    /// The server wishes to be asked less often (RATE; RFC 5905, section 7.4): the poll doubles and bursts end.
    ///
    /// There is no way back by itself, because a poll that a server has refused once it will refuse again.
    pub(crate) fn slow_down(&mut self, config: &SourceConfig) {
        let poll = self.poll(config);
        self.slowed_to = Some((poll + poll).min(POLL_MAX));
        self.burst_left = 0;
    }

    /// A new poll was configured: whoever sets it knows better than the refusals of before.
    pub(crate) const fn forget_slowdown(&mut self) {
        self.slowed_to = None;
    }

    /// The server wishes not to be asked at all.
    pub(crate) fn deny(&mut self, now: Moment<Mono>) {
        self.denied_until = Some(now + DENIED_PAUSE);
    }

    /// Until when nothing happens because the server wished not to be asked.
    pub(crate) const fn denied_until(&self) -> Option<Moment<Mono>> {
        self.denied_until
    }
}
