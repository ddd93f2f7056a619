//! Clocks that are run in a world and judged against its truth.
//!
//! All of them see the same packets at the same counter readings. Feed-forward clocks are estimators driven as the
//! daemon drives them; feedback clocks keep a system clock and take their stamps with it.

use crate::feedback::{Disciplined, Pi, Pll, Regression};
use ffclock_estimator::{Classic, ClassicConfig, Estimator, Learned, LearnedConfig};
use ffclock_replay::PublishedClock;
use ffclock_units::{Bound, Counter, Exchange, Moment, Period, StandardUncertainty, Tai, TaiReading};

/// The names of the clocks.
pub const NAMES: [&str; 6] = ["classic", "learned", "pi", "ptpd", "pll", "regression"];

/// A clock at one reading of the counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Read {
    /// The time that it shows.
    pub time: Moment<Tai>,
    /// What it claims about its errors and its rate; feedback clocks claim nothing.
    pub claims: Option<ReadingClaims>,
}

/// What a feed-forward clock claims at a reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadingClaims {
    /// The largest error.
    pub bound: Bound,
    /// The standard uncertainty.
    pub uncertainty: StandardUncertainty,
    /// The period of the difference clock.
    pub difference_period: Period,
}

/// Something that keeps time by exchanges.
pub trait Timekeeper {
    /// A request leaves at `counter`.
    fn sent(&mut self, counter: Counter);

    /// An exchange is complete; the counter stands where its reply was received.
    fn exchange(&mut self, exchange: &Exchange);

    /// The host was suspended: the counter may have stopped or restarted, and earlier stamps are void.
    fn broke(&mut self);

    /// A request was given up at `counter`.
    fn lost(&mut self, counter: Counter);

    /// The clock at `counter`, which is not before the last call; `None` while it has no time.
    fn read(&mut self, counter: Counter) -> Option<Read>;
}

/// A clock by its name, the learned one with its options; `None` of a name that is not in [`NAMES`].
pub(crate) fn make(name: &str, nominal: Period, learned: &LearnedConfig) -> Option<Box<dyn Timekeeper>> {
    Some(match name {
        "classic" => Box::new(FeedForward::new(Box::new(Classic::new(ClassicConfig::default(), nominal, None)))),
        "learned" => {
            let learned = Learned::new(learned.clone(), ClassicConfig::default(), nominal, None);
            Box::new(FeedForward::new(Box::new(learned)))
        }
        "pi" => Box::new(Disciplined::new(nominal, Pi::linuxptp())),
        "ptpd" => Box::new(Disciplined::new(nominal, Pi::ptpd())),
        "pll" => Box::new(Disciplined::new(nominal, Pll::default())),
        "regression" => Box::new(Disciplined::new(nominal, Regression::default())),
        _ => return None,
    })
}

/// A clock of an estimator, driven as the daemon drives it.
pub struct FeedForward {
    clock: PublishedClock,
}

impl FeedForward {
    /// A clock without any exchange yet.
    pub fn new(estimator: Box<dyn Estimator>) -> Self {
        FeedForward { clock: PublishedClock::new(estimator) }
    }
}

impl Timekeeper for FeedForward {
    fn sent(&mut self, _: Counter) {}

    fn exchange(&mut self, exchange: &Exchange) {
        self.clock.update(exchange);
    }

    /// As the daemon does after a suspend: of the past only the rate is kept.
    fn broke(&mut self) {
        self.clock.restart();
    }

    fn lost(&mut self, _: Counter) {}

    fn read(&mut self, counter: Counter) -> Option<Read> {
        let estimate = self.clock.publish()?;
        let TaiReading { time, uncertainty, bound, .. } = estimate.at(counter);
        let claims = ReadingClaims { bound, uncertainty, difference_period: estimate.difference_period };
        Some(Read { time, claims: Some(claims) })
    }
}
