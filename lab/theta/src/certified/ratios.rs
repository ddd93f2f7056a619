//! Bounds on the other quantities: Theta, the largest ratio at any time, and g_r.

use super::gather::{ClockStamp, GatheredMessage};
use super::omega::{CertifiedRound, DelayRange, OmegaBounds, OmegaJudge, largest};
use crate::analysis::{Ratio, SwitchStamping};

/// Floats are widened by this share, more than they are rounded by.
const ROUNDING: f64 = 1e-12;

/// The smallest tau_r-: at least, and at most if any is certain.
pub(super) struct LeastRelevant {
    least_ps: i64,
    most_ps: Option<i64>,
}

/// Whether something was so: it may have been, and it certainly was.
#[derive(Clone, Copy)]
struct Certainty {
    is_possible: bool,
    is_certain: bool,
}

/// A round, and between which switches what was in transit beside its tau_r- is looked for.
struct RoundSpan<'a> {
    round: &'a CertifiedRound,
    /// The last first switch before that of the round was none before one of these; of none, there may be no other.
    earliest: &'a [usize],
    /// And none after all of these.
    latest: &'a [usize],
}

fn at_least_one(over: i64, under: i64) -> Ratio {
    Ratio::of(over, under).unwrap_or(Ratio::ONE).max(Ratio::ONE)
}

impl OmegaJudge<'_> {
    /// Theta: over all pairs of messages that are in transit together.
    pub(super) fn theta(&self) -> Option<OmegaBounds> {
        let mut active: Vec<&GatheredMessage> = Vec::new();
        let mut found = None;
        for message in &self.gathered.messages {
            let gone = message.sent.clock_ps.saturating_sub(self.reach_ps);
            active.retain(|other| other.perceived.clock_ps >= gone);
            active.push(message);
            found = largest(active.iter().filter_map(|other| self.together(message, other)).chain(found));
        }
        found
    }

    /// The larger of two delays over the smaller, if both may be in transit at a time that counts.
    fn together(&self, one: &GatheredMessage, other: &GatheredMessage) -> Option<OmegaBounds> {
        let is_same = one.key == other.key;
        let (begins_least, begins_most) = self.corrections.between(one.sent, other.perceived);
        let (ends_least, ends_most) = self.corrections.between(other.sent, one.perceived);
        let in_range = [self.in_range(one), self.in_range(other)];
        let is_possible = is_same || (begins_most > 0 && ends_most > 0);
        if !is_possible || in_range.iter().any(|transit| !transit.is_possible) {
            return None;
        }
        // Both reach into the range and they overlap: so they do in the range, which is one piece.
        let is_certain = (is_same || (begins_least > 0 && ends_least > 0)) && in_range.iter().all(|one| one.is_certain);
        let (one, other) = (self.delay(one), self.delay(other));
        let over = |one: DelayRange, other: DelayRange| OmegaBounds {
            low: if is_certain { at_least_one(one.least, other.most) } else { Ratio::ONE },
            high: at_least_one(one.most, other.least),
        };
        largest([over(one, other), over(other, one)].into_iter())
    }

    /// Whether a message is in transit at a time that counts.
    fn in_range(&self, message: &GatheredMessage) -> Certainty {
        let (sent, perceived) = (self.corrections.truth(message.sent), self.corrections.truth(message.perceived));
        let begin_ps = self.range.after_ps.saturating_add(1);
        Certainty {
            is_possible: sent.0 <= self.range.until_ps && perceived.1 > begin_ps,
            is_certain: sent.1 <= self.range.until_ps && perceived.0 > begin_ps,
        }
    }

    /// tau+ of the run: certainly, and at most.
    fn longest_of_all(&self) -> (i64, i64) {
        let (mut certain, mut possible) = (0, 0);
        for message in &self.gathered.messages {
            let (transit, delay) = (self.in_range(message), self.delay(message));
            certain = if transit.is_certain { delay.least.max(certain) } else { certain };
            possible = if transit.is_possible { delay.most.max(possible) } else { possible };
        }
        (certain, possible)
    }

    /// (tau+ / tau_r-) / Omega. What the three have in common is not used, so that the bounds are wider than need be.
    pub(super) fn g_r(&self, relevant: Option<LeastRelevant>, omega: OmegaBounds) -> Option<(f64, f64)> {
        let LeastRelevant { least_ps, most_ps } = relevant?;
        let (certain, possible) = self.longest_of_all();
        let over = |longest: i64, relevant: i64, omega: Ratio| longest as f64 / relevant as f64 / omega.as_f64();
        let low = most_ps.map_or(1.0, |most_ps| over(certain, most_ps, omega.high) * (1.0 - ROUNDING)).max(1.0);
        Some((low, (over(possible, least_ps, omega.low) * (1.0 + ROUNDING)).max(low)))
    }

    fn relevants(&self) -> Vec<Option<DelayRange>> {
        self.gathered.turns.iter().map(|turn| self.relevant(turn)).collect()
    }

    /// The smallest tau_r- over all switches.
    pub(super) fn relevant_at_all(&self) -> Option<LeastRelevant> {
        let relevant = self.relevants();
        let counted = (0..relevant.len()).filter(|&index| self.counts(index));
        let bounds = counted.filter_map(|index| {
            let own = relevant[index]?;
            let most_ps = self.slowest_at_once(index, &relevant).max(own.most);
            Some(LeastRelevant { least_ps: own.least, most_ps: Some(most_ps) })
        });
        smallest(bounds)
    }

    /// The smallest tau_r- over first switches.
    pub(super) fn relevant_at_first(&self, rounds: &[CertifiedRound]) -> Option<LeastRelevant> {
        let relevant = self.relevants();
        smallest(rounds.iter().filter_map(|round| {
            let counted = round.may_be_first.iter().filter(|&&index| self.counts(index));
            let least_ps = counted.filter_map(|&index| self.fastest_at_once(index, &relevant)).min()?;
            Some(LeastRelevant { least_ps, most_ps: self.slowest_first(round, &relevant) })
        }))
    }

    /// The most that tau_r- can be at the first switch to a round; `None` where there may be none that counts.
    fn slowest_first(&self, round: &CertifiedRound, relevant: &[Option<DelayRange>]) -> Option<i64> {
        let slowest = round.may_be_first.iter().map(|&index| {
            let own = relevant[index].filter(|_| self.counts(index))?;
            Some(self.slowest_at_once(index, relevant).max(own.most))
        });
        slowest.collect::<Option<Vec<i64>>>()?.into_iter().max()
    }

    /// The least that tau_r- can be at the time of a switch. One by the catch-up rule has none of its own, and then
    /// that of a switch that may be at the same time.
    fn fastest_at_once(&self, index: usize, relevant: &[Option<DelayRange>]) -> Option<i64> {
        if let Some(own) = relevant[index] {
            return Some(own.least);
        }
        let at = self.gathered.turns[index].at;
        let may_be_at_once = |other: &usize| {
            let (least, most) = self.corrections.between(at, self.gathered.turns[*other].at);
            least <= 0 && most >= 0
        };
        let near = |other: &usize| (self.gathered.turns[*other].at.clock_ps - at.clock_ps).abs() <= self.reach_ps;
        let later = (index + 1..relevant.len()).take_while(near);
        let others = later.chain((0..index).rev().take_while(near)).filter(may_be_at_once);
        others.filter_map(|other| Some(relevant[other]?.least)).min()
    }

    /// The largest ratio at any time. `first` are the bounds on Omega, which it reaches at least.
    pub(super) fn throughout(&self, rounds: &[CertifiedRound], first: Option<OmegaBounds>) -> Option<OmegaBounds> {
        let relevant = self.relevants();
        let spans: Vec<RoundSpan<'_>> = (0..rounds.len()).map(|place| self.span(rounds, place)).collect();
        let needed = self.needed_since(&spans);
        let mut active: Vec<&GatheredMessage> = Vec::new();
        let mut coming = self.gathered.messages.iter().peekable();
        let mut found = first?;
        for (span, since_ps) in spans.iter().zip(needed) {
            let clocks = span.round.may_be_first.iter().map(|&index| self.at(index).clock_ps);
            let near = clocks.max().unwrap_or(i64::MIN).saturating_add(self.reach_ps);
            while let Some(message) = coming.next_if(|message| message.sent.clock_ps <= near) {
                active.push(message);
            }
            active.retain(|message| message.perceived.clock_ps >= since_ps);
            let bounds = self.throughout_round(span, &relevant, &active);
            found = largest([found].into_iter().chain(bounds)).unwrap_or(found);
        }
        Some(found)
    }

    fn at(&self, index: usize) -> ClockStamp {
        self.gathered.turns[index].at
    }

    /// Between which switches the tau_r- of a round holds.
    fn span<'a>(&self, rounds: &'a [CertifiedRound], place: usize) -> RoundSpan<'a> {
        let round = &rounds[place];
        let is_before = |earlier: &&CertifiedRound| {
            let pairs = |&one: &usize| round.may_be_first.iter().all(|&later| self.is_before(one, later));
            earlier.may_be_first.iter().all(pairs)
        };
        let earliest = rounds[..place].iter().rev().find(is_before).map_or(&[][..], |round| &round.may_be_first);
        let before = place.checked_sub(1).map(|before| &rounds[before]);
        debug_assert!(before.is_none_or(|before| before.number < round.number), "rounds are in order");
        let latest = before.map_or(&[][..], |before| &before.may_be_first);
        RoundSpan { round, earliest, latest }
    }

    /// For each round the clock time from which on messages matter to it or to one that follows.
    fn needed_since(&self, spans: &[RoundSpan<'_>]) -> Vec<i64> {
        let since = |span: &RoundSpan<'_>| {
            let clocks = span.earliest.iter().map(|&index| self.at(index).clock_ps);
            clocks.min().map_or(i64::MIN, |clock_ps| clock_ps.saturating_sub(self.reach_ps))
        };
        let mut needed: Vec<i64> = spans.iter().map(since).collect();
        for place in (1..needed.len()).rev() {
            needed[place - 1] = needed[place - 1].min(needed[place]);
        }
        needed
    }

    fn throughout_round(
        &self,
        span: &RoundSpan<'_>,
        relevant: &[Option<DelayRange>],
        active: &[&GatheredMessage],
    ) -> Option<OmegaBounds> {
        let since = |message: &&GatheredMessage| self.since_first(span, message);
        let transit: Vec<(&GatheredMessage, Certainty)> =
            active.iter().map(|message| (*message, since(message))).filter(|(_, since)| since.is_possible).collect();
        let counted = span.round.may_be_first.iter().filter(|&&index| self.counts(index));
        let high = counted.filter_map(|&index| {
            let (_, possible) = self.longest_by(self.at(index), &transit);
            Some(at_least_one(possible, self.fastest_at_once(index, relevant)?))
        });
        let high = high.max()?;
        let low = self.slowest_first(span.round, relevant).and_then(|slowest_ps| {
            let certain = span.round.may_be_first.iter().map(|&index| self.longest_by(self.at(index), &transit).0);
            Some(at_least_one(certain.min()?, slowest_ps))
        });
        Some(OmegaBounds { low: low.unwrap_or(Ratio::ONE), high })
    }

    /// Whether a message was perceived after the last first switch before that of the round.
    fn since_first(&self, span: &RoundSpan<'_>, message: &GatheredMessage) -> Certainty {
        let after = |&index: &usize| self.corrections.between(self.at(index), message.perceived);
        Certainty {
            is_possible: span.earliest.is_empty() || span.earliest.iter().any(|index| after(index).1 > 0),
            is_certain: span.latest.iter().all(|index| after(index).0 > 0),
        }
    }

    /// The largest delay of those that had been sent by a switch: certainly, and at most.
    fn longest_by(&self, at: ClockStamp, transit: &[(&GatheredMessage, Certainty)]) -> (i64, i64) {
        let strict = i64::from(self.stamping == SwitchStamping::BeforeBroadcast);
        let (mut certain, mut possible) = (0, 0);
        for (message, since) in transit {
            let (least, most) = self.corrections.between(message.sent, at);
            let delay = self.delay(message);
            if most >= strict {
                possible = possible.max(delay.most);
            }
            if least >= strict && since.is_certain {
                certain = certain.max(delay.least);
            }
        }
        (certain, possible)
    }
}

fn smallest(bounds: impl Iterator<Item = LeastRelevant>) -> Option<LeastRelevant> {
    bounds.reduce(|one, other| LeastRelevant {
        least_ps: one.least_ps.min(other.least_ps),
        most_ps: one.most_ps.into_iter().chain(other.most_ps).min(),
    })
}
