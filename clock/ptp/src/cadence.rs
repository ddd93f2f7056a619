//! How often messages of one kind come from one sender: what it says of that counts as far as it shows it.

use ffclock_units::{Moment, Mono, Span};

/// What a sender says is believed up to this number of times what it shows.
const BEYOND_SHOWN: i64 = 2;
/// No message of a profile is rarer.
const RAREST: Span = Span::from_secs(64);

/// The time between two messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cadence {
    /// What is usual here, by our configuration.
    usual: Span,
    stated: Span,
    /// The time between the last messages; `None` before the second one.
    shown: Option<Span>,
    last: Moment<Mono>,
}

impl Cadence {
    /// The first message came at `now`, and says that the next one is `stated` away.
    pub(crate) const fn begin(usual: Span, stated: Span, now: Moment<Mono>) -> Self {
        Cadence { usual, stated, shown: None, last: now }
    }

    /// Another message came. A longer pause counts at once, so that no one is given up for being as slow as it is; a
    /// shorter one little by little, because messages come in bursts.
    pub(crate) fn note(&mut self, stated: Span, now: Moment<Mono>) {
        let pause = (now - self.last).clamp(Span::ZERO, RAREST);
        let before = self.shown.unwrap_or(pause);
        let shown = pause.max(before - Span::from_units((before - pause).units() / 4));
        (self.stated, self.shown, self.last) = (stated, Some(shown), now);
    }

    /// The time to the next message.
    pub(crate) fn interval(&self) -> Span {
        let Some(shown) = self.shown else { return self.stated.max(self.usual) };
        shown.max(self.stated.min(self.usual.max(times(shown, BEYOND_SHOWN))))
    }

    /// When the last message came.
    pub(crate) const fn last(&self) -> Moment<Mono> {
        self.last
    }
}

/// `interval` a few times over.
pub(crate) const fn times(interval: Span, count: i64) -> Span {
    Span::from_units(interval.units().saturating_mul(count as i128))
}

/// 2^`log` seconds, within 2^-7 s and 2^6 s: what the profiles use, and no flood nor standstill by a wild number.
pub(crate) fn interval_of(log: i8) -> Span {
    let log = log.clamp(-7, 6);
    Span::from_units(1 << (64 + i32::from(log)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Moment<Mono> {
        Moment::from_origin(Span::from_millis(millis))
    }

    /// After messages that state 2^`log` s and came at these times [ms], where 2 s are usual.
    fn interval(log: i8, times_ms: &[i64]) -> Span {
        let (first, rest) = times_ms.split_first().expect("a message");
        let mut cadence = Cadence::begin(Span::from_secs(2), interval_of(log), at(*first));
        rest.iter().for_each(|time| cadence.note(interval_of(log), at(*time)));
        cadence.interval()
    }

    #[test]
    fn what_is_said_counts_as_far_as_it_is_shown() {
        let seconds = Span::from_secs;
        assert_eq!(interval(1, &[0]), seconds(2));
        assert_eq!(interval(1, &[0, 1000]), seconds(2), "one that comes early is not given up early");
        assert_eq!(interval(-7, &[0]), seconds(2), "it has time to show it");
        assert_eq!(interval(-7, &[0, 2000, 4000]), seconds(2), "slower than it says");
        assert_eq!(interval(60, &[0, 2000, 4000]), seconds(4), "not much slower than it shows");
        assert_eq!(interval(60, &[0, 0, 0]), seconds(2), "nor than is usual, if it shows nothing");
        assert_eq!(interval(6, &[0, 64_000, 128_000]), seconds(64), "as slow as it says");
        assert_eq!(interval(-3, &[0, 125, 250]), Span::from_millis(125), "as fast as it says");
        assert_eq!(interval(0, &[0, 1_000_000_000]), RAREST);
    }

    #[test]
    fn one_long_pause_is_forgotten_again() {
        let mut times = alloc::vec![0, 1000, 6000];
        assert_eq!(interval(0, &times), Span::from_secs(5));
        times.extend((7..40).map(|second| second * 1000));
        assert!(interval(0, &times) < Span::from_millis(1010));
    }
}
