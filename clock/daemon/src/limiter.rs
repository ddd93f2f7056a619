//! Keeps a talkative fault from filling the log: the first of a kind is told, then one in each interval with the number
//! left out.

use ffclock_units::{Moment, Mono, Span};

/// One message of a kind at most so often.
const INTERVAL: Span = Span::from_secs(60);

/// The memory of one kind of message.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    told_at: Option<Moment<Mono>>,
    left_out: u64,
}

impl Limiter {
    /// Whether one would be told now.
    pub(crate) fn would_admit(&self, now: Moment<Mono>) -> bool {
        self.told_at.is_none_or(|told| now - told >= INTERVAL)
    }

    /// Whether to tell this one, and then how many were left out since the last.
    pub(crate) fn admit(&mut self, now: Moment<Mono>) -> Option<u64> {
        if !self.would_admit(now) {
            self.left_out += 1;
            return None;
        }
        self.told_at = Some(now);
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_told_and_the_rest_counted() {
        let mut limiter = Limiter::default();
        let start = Moment::from_origin(Span::from_secs(5));
        assert_eq!(limiter.admit(start), Some(0));
        assert_eq!(limiter.admit(start + Span::from_secs(1)), None);
        assert_eq!(limiter.admit(start + Span::from_secs(59)), None);
        assert_eq!(limiter.admit(start + Span::from_secs(60)), Some(2));
    }
}
