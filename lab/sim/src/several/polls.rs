//! The polls that daemons choose.
//!
//! Every clock of a world sees the same packets, so a daemon that asks less often is one that leaves requests out: of
//! those at the world's poll it sees every second, fourth, ... one. It chooses the number of doublings.
//!
//! Sources: RFC 5905, appendix A.5.5.6 (local_clock: the poll adjustment, with PGATE, LIMIT and AVG of appendix A.1.1),
//! and chrony 4.x, `ntp_core.c` (get_poll_adj, adjust_poll) with the default `polltarget` of chrony.conf(5).

use crate::scenario::Scenario;
use ffclock_units::{Counter, Period, Span};

/// When polls may be longer than the world's, and by how many doublings at most.
#[derive(Clone, Debug, Default)]
pub(crate) struct PollTimes {
    poll: Span,
    relaxed: Vec<(Span, Span, u32)>,
}

impl PollTimes {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let poll = scenario.poll.0;
        let doublings = |longest: Span| libm::floor(libm::log2(longest.as_seconds() / poll.as_seconds()) + 1e-9) as u32;
        let relaxed = scenario.relax.iter().map(|one| (one.at.0, one.until.0, doublings(one.poll_max.0))).collect();
        PollTimes { poll, relaxed }
    }

    /// The most doublings at this time since the world began.
    fn most(&self, now: Span) -> u32 {
        self.relaxed.iter().find(|(at, until, _)| (*at..*until).contains(&now)).map_or(0, |relaxed| relaxed.2)
    }
}

/// Which requests a daemon would have sent.
#[derive(Clone, Debug)]
pub(crate) struct PollPlan {
    times: PollTimes,
    nominal: Period,
    begin: Option<Counter>,
    /// By server, its latest request, and whether the world's latest is that.
    asked: Vec<(Option<Counter>, bool)>,
}

impl PollPlan {
    pub(crate) fn new(times: PollTimes, nominal: Period, servers: usize) -> Self {
        PollPlan { times, nominal, begin: None, asked: vec![(None, true); servers] }
    }

    /// The most doublings at `counter`, which is not before the first that was asked for.
    pub(crate) fn most_doublings(&mut self, counter: Counter) -> u32 {
        let begin = *self.begin.get_or_insert(counter);
        self.times.most(self.nominal * (counter - begin))
    }

    /// The world sends a request to this server, which the daemon asks at this number of doublings.
    pub(crate) fn sent(&mut self, server: usize, counter: Counter, doublings: u32) {
        let Some((last, is_asked)) = self.asked.get_mut(server) else { return };
        let wait = Span::from_units(self.times.poll.units() * (1 << doublings) - self.times.poll.units() / 2);
        let is_due = |last: Counter| self.nominal * (counter - last) >= wait;
        *is_asked = doublings == 0 || last.is_none_or(is_due);
        if *is_asked {
            *last = Some(counter);
        }
    }

    /// Whether the latest request to this server is one of the daemon's.
    pub(crate) fn is_asked(&self, server: usize) -> bool {
        self.asked.get(server).is_none_or(|asked| asked.1)
    }
}

/// ntpd's choice, one for all servers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NtpdPoll {
    /// The logarithm of the world's poll.
    shortest: i32,
    most: u32,
    doublings: u32,
    count: i32,
    jitter: f64,
    last: f64,
}

/// PGATE, LIMIT and AVG.
const GATE: f64 = 4.0;
const COUNT_LIMIT: i32 = 30;
const AVERAGE: f64 = 4.0;
/// The clock's precision, below which no difference of offsets counts [s].
const PRECISION: f64 = 1.2e-7;

impl NtpdPoll {
    /// A choice that begins at the world's poll [s].
    pub(crate) fn new(poll: f64) -> Self {
        NtpdPoll { shortest: libm::round(libm::log2(poll)) as i32, ..NtpdPoll::default() }
    }

    pub(crate) fn doublings(&self) -> u32 {
        self.doublings
    }

    /// The chosen poll [s]; `None` where there is no choice.
    pub(crate) fn poll(&self) -> Option<f64> {
        (self.most > 0).then(|| libm::exp2(f64::from(self.shortest) + f64::from(self.doublings)))
    }

    /// At most this number of doublings from now on.
    pub(crate) fn limit(&mut self, most: u32) {
        (self.most, self.doublings) = (most, self.doublings.min(most));
    }

    /// The clock was updated by this offset [s].
    pub(crate) fn update(&mut self, offset: f64) {
        let difference = (offset - self.last).abs().max(PRECISION);
        let square = self.jitter * self.jitter;
        self.jitter = libm::sqrt(square + (difference * difference - square) / AVERAGE);
        self.last = offset;
        let exponent = self.shortest + self.doublings as i32;
        if offset.abs() < GATE * self.jitter {
            self.count += exponent;
            if self.count > COUNT_LIMIT {
                self.count = COUNT_LIMIT;
                if self.doublings < self.most {
                    (self.count, self.doublings) = (0, self.doublings + 1);
                }
            }
        } else {
            self.count -= 2 * exponent;
            if self.count < -COUNT_LIMIT {
                self.count = -COUNT_LIMIT;
                if self.doublings > 0 {
                    (self.count, self.doublings) = (0, self.doublings - 1);
                }
            }
        }
    }

    /// The clock was stepped.
    pub(crate) fn restart(&mut self) {
        *self = NtpdPoll { shortest: self.shortest, most: self.most, ..NtpdPoll::default() };
    }
}

/// chrony's choice, one for each server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChronyPoll {
    most: u32,
    doublings: u32,
    score: f64,
}

/// `polltarget`: how many samples the line should rest on.
const TARGET: f64 = 8.0;
/// What a lost answer adds to the score of a server that is not followed.
const LOST: f64 = 0.25;

impl ChronyPoll {
    pub(crate) fn doublings(&self) -> u32 {
        self.doublings
    }

    /// At most this number of doublings from now on.
    pub(crate) fn limit(&mut self, most: u32) {
        (self.most, self.doublings) = (most, self.doublings.min(most));
    }

    /// A sample came that was `error` from the line before it [s], over a path that leaves it `distance` [s] uncertain;
    /// the line now rests on this number of samples.
    pub(crate) fn update(&mut self, error: f64, distance: f64, samples: usize) {
        let adjustment = if error > distance {
            -libm::log2(error / distance)
        } else {
            let samples = samples as f64;
            let adjustment = (samples / TARGET - 1.0) / TARGET;
            if samples < TARGET { 2.0 * adjustment } else { adjustment }
        };
        self.adjust(adjustment);
    }

    /// No answer came.
    pub(crate) fn lost(&mut self) {
        self.adjust(LOST);
    }

    fn adjust(&mut self, by: f64) {
        self.score += by;
        let whole = if self.score >= 1.0 {
            libm::trunc(self.score)
        } else if self.score < 0.0 {
            libm::trunc(self.score - 1.0)
        } else {
            0.0
        };
        self.score -= whole;
        let chosen = f64::from(self.doublings) + whole;
        if chosen < 0.0 {
            (self.doublings, self.score) = (0, 0.0);
        } else if chosen > f64::from(self.most) {
            (self.doublings, self.score) = (self.most, 1.0);
        } else {
            self.doublings = chosen as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ntpd_doubles_after_small_offsets_and_halves_after_large_ones() {
        let mut poll = NtpdPoll::new(16.0);
        assert_eq!(poll.poll(), None, "fixed");
        poll.limit(6);
        // Offsets as large as the jitter: 4 an update, 30 is passed with the eighth; then 5 an update.
        let small = |poll: &mut NtpdPoll, times: u32| {
            (0..times).for_each(|n| poll.update(if n % 2 == 0 { 1e-5 } else { -1e-5 }))
        };
        small(&mut poll, 7);
        assert_eq!(poll.doublings(), 0);
        small(&mut poll, 1);
        assert_eq!((poll.doublings(), poll.poll()), (1, Some(32.0)));
        small(&mut poll, 100);
        assert_eq!((poll.doublings(), poll.poll()), (6, Some(1024.0)));
        // A lasting offset: its differences vanish, so the jitter does.
        (0..60).for_each(|_| poll.update(1e-2));
        assert!(poll.doublings() < 6, "{poll:?}");
        poll.limit(0);
        assert_eq!((poll.doublings(), poll.poll()), (0, None));
    }

    #[test]
    fn chrony_keeps_the_line_at_its_target_of_samples() {
        let mut poll = ChronyPoll::default();
        poll.limit(6);
        // 64 samples: (64 / 8 - 1) / 8 a sample.
        poll.update(1e-6, 1e-3, 64);
        assert_eq!(poll.doublings(), 0);
        poll.update(1e-6, 1e-3, 64);
        assert_eq!(poll.doublings(), 1);
        (0..20).for_each(|_| poll.update(1e-6, 1e-3, 64));
        assert_eq!(poll.doublings(), 6);
        (0..5).for_each(|_| poll.update(1e-6, 1e-3, 3));
        assert_eq!(poll.doublings(), 6, "5 times -0.156 from a score of 1");
        (0..2).for_each(|_| poll.update(1e-6, 1e-3, 3));
        assert_eq!(poll.doublings(), 5);
        // Eight times further off than the path explains: three doublings back.
        let before = poll.doublings();
        poll.update(8e-3, 1e-3, 10);
        assert_eq!(poll.doublings() + 3, before, "{poll:?}");
    }
}
