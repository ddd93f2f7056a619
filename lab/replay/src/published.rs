//! The clock that a reader of the page would see.

use ffclock_estimator::{Estimator, Outcome, Summary, Verdict};
use ffclock_units::{Estimate, Exchange};

/// An estimator, and the estimate that it last published.
///
/// As in the daemon, an exchange that the estimator rejects publishes nothing: readers keep the estimate before it. An
/// estimate is worked out only when it is read, because most exchanges of a long trace are followed by another before
/// that.
pub struct PublishedClock {
    estimator: Box<dyn Estimator>,
    published: Option<Estimate>,
    /// The estimator has moved on since `published`.
    is_due: bool,
}

impl PublishedClock {
    /// A clock that has published nothing.
    pub fn new(estimator: Box<dyn Estimator>) -> Self {
        PublishedClock { estimator, published: None, is_due: false }
    }

    /// Feeds an exchange to the estimator.
    pub fn update(&mut self, exchange: &Exchange) -> Outcome {
        let outcome = self.estimator.update(exchange);
        self.is_due |= !matches!(outcome.verdict, Verdict::Rejected(_));
        outcome
    }

    /// Publishes the present estimate if that is due, and returns what is published.
    pub fn publish(&mut self) -> Option<Estimate> {
        if std::mem::take(&mut self.is_due) {
            self.published = self.estimator.estimate();
        }
        self.published
    }

    /// What was published at the last call of [`PublishedClock::publish`].
    pub fn published(&self) -> Option<&Estimate> {
        self.published.as_ref()
    }

    /// What would be published now.
    pub fn present(&self) -> Option<Estimate> {
        if self.is_due { self.estimator.estimate() } else { self.published }
    }

    /// The epoch of the counter ended. The estimator keeps its rate; the page is empty until the next exchange.
    pub fn restart(&mut self) {
        self.estimator.restart();
        (self.published, self.is_due) = (None, false);
    }

    /// The estimator's own figures.
    pub fn summary(&self) -> Summary {
        self.estimator.summary()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_estimator::{Classic, ClassicConfig};
    use ffclock_units::{Counter, Moment, Period, ServerQuality, Span, Stamp, StampLocation, Ticks};

    /// At this second, over a path of 100 us each way, by a counter of 1 GHz.
    fn exchange(second: u64) -> Exchange {
        let stamp = |nanos: u64| Stamp {
            counter: Counter::from_raw(second * 1_000_000_000 + nanos),
            width: Ticks::from_raw(1),
            location: StampLocation::Kernel,
        };
        let served = Moment::from_origin(Span::from_secs(1_800_000_000 + second as i64) + Span::from_micros(100));
        Exchange {
            sent: stamp(0),
            server_in: served,
            server_out: served,
            received: stamp(200_000),
            server: ServerQuality::default(),
        }
    }

    #[test]
    fn a_rejected_exchange_publishes_nothing() {
        let nominal = Period::from_hertz(1e9).unwrap();
        let mut clock = PublishedClock::new(Box::new(Classic::new(ClassicConfig::default(), nominal, None)));
        assert_eq!((clock.publish(), clock.present()), (None, None));
        clock.update(&exchange(16));
        assert!(clock.published().is_none() && clock.present().is_some());
        let first = clock.publish();
        assert_eq!((clock.published().copied(), clock.present()), (first, first));
        assert!(matches!(clock.update(&exchange(16)).verdict, Verdict::Rejected(_)), "the same reply twice");
        assert_eq!(clock.publish(), first);
        clock.update(&exchange(32));
        assert_eq!(clock.published().copied(), first);
        assert_ne!(clock.publish(), first);
        clock.restart();
        assert_eq!((clock.publish(), clock.present()), (None, None));
    }
}
