//! Why messages were stamped less well than they should be, each reason said once a minute at most.

use ffclock_sys::StampDiscarded;
use ffclock_units::{Moment, Mono, Span};

const SAID_AGAIN: Span = Span::from_secs(60);

/// The reasons that were said, and when.
#[derive(Clone, Debug, Default)]
pub(super) struct Shortfalls {
    said: Vec<(StampDiscarded, Moment<Mono>)>,
}

impl Shortfalls {
    /// Whether this reason is to be said now.
    pub(super) fn is_news(&mut self, reason: StampDiscarded, now: Moment<Mono>) -> bool {
        self.said.retain(|(_, at)| now - *at < SAID_AGAIN);
        let is_news = self.said.iter().all(|(said, _)| *said != reason);
        if is_news {
            self.said.push((reason, now));
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_said_once_a_minute() {
        let mut shortfalls = Shortfalls::default();
        let at = |seconds| Moment::from_origin(Span::from_secs(seconds));
        assert!(shortfalls.is_news(StampDiscarded::CardMissing, at(0)));
        assert!(!shortfalls.is_news(StampDiscarded::CardMissing, at(59)));
        assert!(shortfalls.is_news(StampDiscarded::Repeated, at(59)));
        assert!(shortfalls.is_news(StampDiscarded::CardMissing, at(60)));
    }
}
