//! Clocks that are run in a world and judged against its truth.
//!
//! All of them see the same packets at the same counter readings. Feed-forward clocks are estimators driven as the
//! daemon drives them; feedback clocks keep a system clock and take their stamps with it.

use crate::feedback::{ClockStart, Disciplined, Pi, Pll, Regression};
use crate::scenario::Scenario;
use crate::several::{
    Chrony, Contender, DisciplinedByMany, ENSEMBLES, Elected, GUARDS, Joint, Ntpd, OfOne, PollTimes, ReaderView,
};
use ffclock_estimator::{Classic, ClassicConfig, Estimator, Event, Learned, LearnedConfig};
use ffclock_replay::PublishedClock;
use ffclock_units::{Bound, ClockError, Counter, Exchange, Moment, Period, StandardUncertainty, Tai, TaiReading};

/// The model of ntpd with the options of a scenario's `[ntpd]`.
const PLL_TUNED: &str = "pll-tuned";

/// The names of the clocks of one server.
pub const NAMES: [&str; 6] = ["classic", "learned", "pi", "ptpd", "pll", "regression"];

/// The clocks that can be run in a world, by name: those of one server, of a master of PTP or of pulses; or those of
/// several servers, and under the name of each server the learned clock that asks it alone.
pub fn names_in(scenario: &Scenario) -> Vec<&str> {
    if let Some(names) = crate::signals::names_in(scenario) {
        return names.to_vec();
    }
    if scenario.servers.is_empty() {
        return NAMES.into_iter().chain(scenario.ntpd.map(|_| PLL_TUNED)).collect();
    }
    ENSEMBLES.into_iter().chain(scenario.servers.iter().map(|entry| entry.name.as_str())).collect()
}

/// Whether some clock or oracle has this name.
pub(crate) fn is_name(name: &str) -> bool {
    crate::signals::is_name(name)
        || NAMES.contains(&name)
        || name == PLL_TUNED
        || ENSEMBLES.contains(&name)
        || crate::oracle::ORACLES.contains(&name)
}

/// A clock at one reading of the counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Read {
    /// The time that it shows.
    pub time: Moment<Tai>,
    /// What it claims about its errors and its rate; feedback clocks claim nothing.
    pub claims: Option<ReadingClaims>,
}

impl Read {
    /// Whether it claims a bound, and is further from `truth` than that.
    pub(crate) fn is_outside(&self, truth: Moment<Tai>) -> bool {
        self.claims.is_some_and(|claims| !claims.bound.contains(ClockError::new(self.time - truth)))
    }
}

/// What a feed-forward clock claims at a reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadingClaims {
    /// The largest error.
    pub bound: Bound,
    /// The largest error if as many servers as may be are wrong in whatever way; of a clock of several servers that
    /// states it.
    pub strict: Option<Bound>,
    /// The combined standard uncertainty.
    pub uncertainty: StandardUncertainty,
    /// The part of it that exchanges show.
    pub noise: StandardUncertainty,
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

    /// How often its filter lost track and began again; `None` of a clock that does not say.
    fn restarts(&self) -> Option<u64> {
        None
    }
}

/// Makes the clocks of a world.
#[derive(Clone, Copy)]
pub(crate) struct Maker<'a> {
    pub(crate) scenario: &'a Scenario,
    /// The options of the learned estimators.
    pub(crate) learned: &'a LearnedConfig,
}

impl Maker<'_> {
    /// A clock by its name; `None` of a name that is not in [`names_in`].
    pub(crate) fn make(&self, name: &str) -> Option<Box<dyn Contender>> {
        let servers = &self.scenario.servers;
        if servers.is_empty() {
            return Some(Box::new(OfOne::new(0, self.of_one(name)?)));
        }
        if let Some(server) = servers.iter().position(|entry| entry.name == name) {
            return Some(Box::new(OfOne::new(server, self.of_one("learned")?)));
        }
        self.of_several(name)
    }

    fn of_several(&self, name: &str) -> Option<Box<dyn Contender>> {
        let (nominal, count) = (self.scenario.counter.nominal(), self.scenario.servers.len());
        let times = || PollTimes::of(self.scenario);
        Some(match name {
            "elected" => Box::new(ReaderView::new(Box::new(Elected::learned(self.learned, nominal, count)))),
            GUARDS => Box::new(ReaderView::new(Box::new(Elected::classic(nominal, count)))),
            "joint" => Box::new(ReaderView::new(Box::new(Joint::new(self.learned, nominal, count)))),
            "ntpd" => Box::new(DisciplinedByMany::new(
                nominal,
                Ntpd::new(count, self.scenario.poll.seconds()),
                count,
                times(),
            )),
            "chrony" => Box::new(DisciplinedByMany::new(nominal, Chrony::new(count), count, times())),
            _ => return None,
        })
    }

    fn of_one(&self, name: &str) -> Option<Box<dyn Timekeeper>> {
        let nominal = self.scenario.counter.nominal();
        let start = ClockStart::of(self.scenario);
        let (memory, frequency) = (start.memory(), start.frequency());
        Some(match name {
            "classic" => self.feed_forward(Box::new(Classic::new(ClassicConfig::default(), nominal, memory))),
            "learned" => {
                let learned = Learned::new(self.learned.clone(), ClassicConfig::default(), nominal, memory);
                self.feed_forward(Box::new(learned))
            }
            "pi" => Box::new(Disciplined::new(nominal, Pi::linuxptp().started(frequency)).started(&start)),
            "ptpd" => Box::new(Disciplined::new(nominal, Pi::ptpd().started(frequency)).started(&start)),
            "pll" => Box::new(Disciplined::new(nominal, self.pll(frequency)).started(&start)),
            PLL_TUNED => {
                let tuned = self.pll(frequency).tuned(&self.scenario.ntpd?);
                Box::new(Disciplined::new(nominal, tuned).started(&start))
            }
            "regression" => {
                let regression = Regression::new(self.scenario.maxdelaydevratio, frequency);
                Box::new(Disciplined::new(nominal, regression).started(&start))
            }
            _ => return None,
        })
    }

    fn pll(&self, frequency: Option<f64>) -> Pll {
        Pll::started(frequency, self.scenario.poll.seconds(), self.scenario.burst)
    }

    fn feed_forward(&self, estimator: Box<dyn Estimator>) -> Box<dyn Timekeeper> {
        Box::new(FeedForward { is_interleaved: self.scenario.interleaved, ..FeedForward::new(estimator) })
    }
}

/// A clock of an estimator, driven as the daemon drives it.
pub struct FeedForward {
    clock: PublishedClock,
    restarts: u64,
    is_interleaved: bool,
    /// The newest exchange where the next reply says when its own reply left.
    incomplete: Option<Exchange>,
}

impl FeedForward {
    /// A clock without any exchange yet.
    pub fn new(estimator: Box<dyn Estimator>) -> Self {
        FeedForward { clock: PublishedClock::new(estimator), restarts: 0, is_interleaved: false, incomplete: None }
    }
}

impl Timekeeper for FeedForward {
    fn sent(&mut self, _: Counter) {}

    fn exchange(&mut self, exchange: &Exchange) {
        let complete = if self.is_interleaved { self.incomplete.replace(*exchange) } else { Some(*exchange) };
        let Some(exchange) = complete else { return };
        let outcome = self.clock.update(&exchange);
        self.restarts += u64::from(outcome.events.contains(Event::FilterRestarted));
    }

    /// As the daemon does after a suspend, but for its 20 ppm: of the past only the rate is kept.
    fn broke(&mut self) {
        self.clock.restart();
        self.incomplete = None;
    }

    fn lost(&mut self, _: Counter) {}

    fn read(&mut self, counter: Counter) -> Option<Read> {
        let estimate = self.clock.publish()?;
        let TaiReading { time, uncertainty, noise, bound, .. } = estimate.at(counter);
        let claims =
            ReadingClaims { bound, strict: None, uncertainty, noise, difference_period: estimate.difference_period };
        Some(Read { time, claims: Some(claims) })
    }

    fn restarts(&self) -> Option<u64> {
        Some(self.restarts)
    }
}
