//! The figures of the last seconds of a run, beside those of the whole run.
//!
//! A second holds what happened after its begin, up to and including its end, as a [`super::TimeRange`] does. So the
//! figures of the last seconds are those of an analysis of that range, bit by bit.

use super::tally::{JudgedSwitch, Peak, keep_larger, smaller};
use serde::Serialize;
use std::collections::VecDeque;

const SECOND_PS: i64 = 1_000_000_000_000;
/// A message on its way counts in no more seconds: an hour.
const SECONDS_ON_THE_WAY: i64 = 3600;

/// The figures of a range of time that ends with the latest second of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RecentFigures {
    /// After this time, in picoseconds since the origin of the run ...
    pub after_ps: i64,
    /// ... up to and including this one.
    pub until_ps: i64,
    /// Messages that were sent in it and perceived.
    pub messages: u64,
    /// First switches with a tau_r-.
    pub switches: u64,
    /// The largest tau+(e) / tau_r-(e) of these, and where.
    pub omega: Option<Peak>,
    /// tau+: the largest delay of a message in transit, in picoseconds; up to an hour.
    pub delay_max_ps: Option<i64>,
    /// The smallest tau_r-(e), in picoseconds.
    pub relevant_min_ps: Option<i64>,
    /// The largest tau_r-(e), in picoseconds.
    pub relevant_max_ps: Option<i64>,
}

/// What happened in one second.
#[derive(Clone, Copy, Debug, Default)]
struct SecondFigures {
    messages: u64,
    switches: u64,
    omega: Option<Peak>,
    delay_max_ps: Option<i64>,
    relevant_min_ps: Option<i64>,
    relevant_max_ps: Option<i64>,
}

impl SecondFigures {
    fn merge(&mut self, later: &SecondFigures) {
        self.messages += later.messages;
        self.switches += later.switches;
        if let Some(peak) = later.omega {
            keep_larger(&mut self.omega, peak);
        }
        self.delay_max_ps = self.delay_max_ps.max(later.delay_max_ps);
        self.relevant_min_ps = smaller(self.relevant_min_ps, later.relevant_min_ps);
        self.relevant_max_ps = self.relevant_max_ps.max(later.relevant_max_ps);
    }
}

/// The last seconds, one by one, and those to come in which a message is still on its way.
pub(super) struct RecentSeconds {
    length: i64,
    /// The number of the first second that is kept, and of the latest one that has begun.
    known: Option<(i64, i64)>,
    seconds: VecDeque<SecondFigures>,
}

/// The number of the second that holds a time.
fn second_of(time_ps: i64) -> i64 {
    time_ps.div_euclid(SECOND_PS) + i64::from(time_ps.rem_euclid(SECOND_PS) > 0)
}

impl RecentSeconds {
    pub(super) fn new(length: u32) -> Self {
        RecentSeconds { length: i64::from(length.max(1)), known: None, seconds: VecDeque::new() }
    }

    /// A broadcast at `at_ps`, of which `messages` count and the last is perceived at `end_ps`.
    pub(super) fn send(&mut self, at_ps: i64, end_ps: Option<i64>, messages: u64) {
        let sent = second_of(at_ps);
        let first = self.come_to(sent);
        if let Some(second) = self.second(sent) {
            second.messages += messages;
        }
        let Some(end_ps) = end_ps else { return };
        let last = second_of(end_ps - 1).clamp(sent, sent + SECONDS_ON_THE_WAY);
        for number in sent.max(first)..=last {
            if let Some(second) = self.second(number) {
                second.delay_max_ps = second.delay_max_ps.max(Some(end_ps - at_ps));
            }
        }
    }

    pub(super) fn switch(&mut self, judged: &JudgedSwitch) {
        let JudgedSwitch { at_ps, process, round, relevant_ps, .. } = *judged;
        self.come_to(second_of(at_ps));
        let Some(second) = self.second(second_of(at_ps)) else { return };
        second.switches += 1;
        keep_larger(&mut second.omega, Peak { ratio: judged.ratio(), at_ps, process, round });
        second.relevant_min_ps = smaller(second.relevant_min_ps, Some(relevant_ps));
        second.relevant_max_ps = second.relevant_max_ps.max(Some(relevant_ps));
    }

    /// Drops what is too old when second `number` has begun. The first second that is kept.
    #[inline]
    fn come_to(&mut self, number: i64) -> i64 {
        match self.known {
            Some((first, latest)) if number <= latest => first,
            _ => self.begin_second(number),
        }
    }

    #[cold]
    fn begin_second(&mut self, number: i64) -> i64 {
        let wanted = number - self.length + 1;
        let (first, _) = self.known.unwrap_or((wanted, number));
        let old = usize::try_from(wanted - first).unwrap_or(0).min(self.seconds.len());
        self.seconds.drain(..old);
        let first = first.max(wanted);
        self.known = Some((first, number));
        first
    }

    fn second(&mut self, number: i64) -> Option<&mut SecondFigures> {
        let place = usize::try_from(number - self.known?.0).ok()?;
        if place >= self.seconds.len() {
            self.seconds.resize(place + 1, SecondFigures::default());
        }
        self.seconds.get_mut(place)
    }

    /// Counts from an origin that is later, by whole seconds.
    pub(super) fn move_origin(&mut self, by_ps: i64) {
        debug_assert!(by_ps % SECOND_PS == 0, "seconds stay what they were");
        if let Some((first, latest)) = &mut self.known {
            *first -= by_ps / SECOND_PS;
            *latest -= by_ps / SECOND_PS;
        }
        for peak in self.seconds.iter_mut().filter_map(|second| second.omega.as_mut()) {
            peak.at_ps = peak.at_ps.saturating_sub(by_ps);
        }
    }

    pub(super) fn figures(&self) -> Option<RecentFigures> {
        let (first, latest) = self.known?;
        let mut sum = SecondFigures::default();
        let begun = usize::try_from(latest - first + 1).unwrap_or(0);
        self.seconds.iter().take(begun).for_each(|second| sum.merge(second));
        let SecondFigures { messages, switches, omega, delay_max_ps, relevant_min_ps, relevant_max_ps } = sum;
        let after_ps = latest.saturating_sub(self.length).saturating_mul(SECOND_PS);
        let until_ps = latest.saturating_mul(SECOND_PS);
        Some(RecentFigures {
            after_ps,
            until_ps,
            messages,
            switches,
            omega,
            delay_max_ps,
            relevant_min_ps,
            relevant_max_ps,
        })
    }
}
