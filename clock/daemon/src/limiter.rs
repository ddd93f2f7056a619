//! Keeps a recurring fault from filling the log: the first message of a kind is logged, then one in each interval with
//! the number left out.

use ffclock_units::{Moment, Mono, Span};

/// The least time between two logged messages of a kind.
const INTERVAL: Span = Span::from_secs(60);

/// The memory of one kind of message.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    logged_at: Option<Moment<Mono>>,
    left_out: u64,
}

impl Limiter {
    /// Whether a message would be logged now.
    pub(crate) fn would_admit(&self, now: Moment<Mono>) -> bool {
        self.logged_at.is_none_or(|logged| now - logged >= INTERVAL)
    }

    /// `Some` if this message is to be logged, with the number left out since the last one.
    pub(crate) fn admit(&mut self, now: Moment<Mono>) -> Option<u64> {
        if !self.would_admit(now) {
            self.left_out += 1;
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_logged_and_the_rest_counted() {
        let mut limiter = Limiter::default();
        let start = Moment::from_origin(Span::from_secs(5));
        assert_eq!(limiter.admit(start), Some(0));
        assert_eq!(limiter.admit(start + Span::from_secs(1)), None);
        assert_eq!(limiter.admit(start + Span::from_secs(59)), None);
        assert_eq!(limiter.admit(start + Span::from_secs(60)), Some(2));
    }
}
