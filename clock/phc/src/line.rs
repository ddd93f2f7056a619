//! The line of a hardware clock over the raw counter.

use crate::filter::{Filter, Fit, Innovation};
use ffclock_units::{Counter, Moment, Period, Phc, Rate, Span, Ticks};

/// The clock showed `shown` at some moment within `counter` +- `width` / 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhcReading {
    /// The middle of the range.
    pub counter: Counter,
    /// The whole width of the range.
    pub width: Ticks,
    /// What the clock showed.
    pub shown: Moment<Phc>,
}

/// Another program has changed the clock, or it is broken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PhcChange {
    /// It jumped by this, positive forward.
    Stepped(Span),
    /// Its rate was changed by this, positive for faster.
    Steered(Rate),
}

/// Why a stamp of the card has no place on the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unplaced {
    /// The clock was never read.
    NoReading,
    /// The clock was stepped after the stamp was taken.
    ClockStepped,
    /// The stamp is further from every reading than a stamp can be.
    Far,
}

/// A stamp that is further from the latest reading has nothing to do with it.
const FURTHEST: Span = Span::from_secs(3600);
/// A rate that is known so well (standard deviation) can be compared with another.
const SETTLED: Rate = Rate::from_ppb(100.0);
/// The least change of rate that is reported: oscillators change by less while it is measured.
const LEAST_STEERED: Rate = Rate::from_ppb(50.0);

/// Where the line is at one reading.
#[derive(Clone, Copy, Debug)]
struct LinePoint {
    counter: Counter,
    shown: Moment<Phc>,
}

/// The line of one clock.
#[derive(Clone, Debug)]
pub struct PhcLine {
    nominal: Period,
    known: Option<Known>,
    /// The rate before the readings last left the line, to be compared with the present one once that is known.
    doubted: Option<SettledRate>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    filter: Filter,
    /// On the line, at the latest reading.
    latest: LinePoint,
    /// Since here the clock was not stepped.
    begin: Counter,
}

#[derive(Clone, Copy, Debug)]
struct SettledRate {
    rate: f64,
    deviation: f64,
}

impl PhcLine {
    /// A line of which nothing is known, over a counter of this nominal period.
    pub fn new(nominal: Period) -> Self {
        PhcLine { nominal, known: None, doubted: None }
    }

    /// Takes a reading, later than all before it by the counter. What another program did to the clock is returned
    /// once.
    pub fn add(&mut self, reading: &PhcReading) -> Option<PhcChange> {
        let half_width = (self.nominal * reading.width).halved().as_seconds();
        let Some(mut known) = self.known else {
            let latest = LinePoint { counter: reading.counter, shown: reading.shown };
            self.known = Some(Known { filter: Filter::new(half_width), latest, begin: reading.counter });
            return None;
        };
        let before = settled(&known.filter);
        let passed = self.nominal * (reading.counter - known.latest.counter);
        let expected = known.latest.shown + passed + scaled(passed, known.filter.rate);
        let jump = reading.shown - expected;
        let innovation = Innovation { more: jump.as_seconds(), half_width };
        known.filter.advance(passed.as_seconds());
        let mut stepped = None;
        known.latest = LinePoint { counter: reading.counter, shown: expected };
        match known.filter.take(&innovation) {
            Fit::Fits(added) => known.latest.shown = expected + Span::from_seconds(added),
            Fit::Leans(added) => {
                known.latest.shown = expected + Span::from_seconds(added);
                self.doubted = self.doubted.or(before);
            }
            Fit::Off => {
                known.filter.begin_again(&innovation);
                known.latest.shown = reading.shown;
                known.begin = reading.counter;
                self.doubted = self.doubted.or(before);
                stepped = Some(PhcChange::Stepped(jump));
            }
        }
        self.known = Some(known);
        stepped.or_else(|| self.steered())
    }

    /// The change of rate across the last doubt, where both rates are known.
    fn steered(&mut self) -> Option<PhcChange> {
        let now = settled(&self.known?.filter)?;
        let before = self.doubted.take()?;
        let change = now.rate - before.rate;
        let sum = libm::sqrt(now.deviation * now.deviation + before.deviation * before.deviation);
        let is_changed = change.abs() > LEAST_STEERED.as_fraction() + 6.0 * sum;
        is_changed.then(|| PhcChange::Steered(Rate::from_fraction(change)))
    }

    /// The reading of the counter when the clock showed `shown`, and the whole width of the range it lies in.
    ///
    /// # Errors
    /// The line does not reach there.
    pub fn place(&self, shown: Moment<Phc>) -> Result<(Counter, Ticks), Unplaced> {
        let known = self.known.ok_or(Unplaced::NoReading)?;
        let away = shown - known.latest.shown;
        if away.abs() > FURTHEST {
            return Err(Unplaced::Far);
        }
        let passed = away - scaled(away, known.filter.rate / (1.0 + known.filter.rate));
        let counter = known.latest.counter + self.nominal.ticks_in(passed);
        let half = self.nominal.ticks_in(Span::from_seconds(known.filter.error_after(passed.as_seconds())));
        if known.begin.is_after(counter + half) {
            return Err(Unplaced::ClockStepped);
        }
        Ok((counter, half + half + Ticks::from_raw(2)))
    }

    /// Whether the clock was not stepped between this reading of the counter and the latest of both.
    pub fn is_unbroken_since(&self, counter: Counter) -> bool {
        self.known.is_some_and(|known| !known.begin.is_after(counter))
    }

    /// The rate of the clock against the nominal rate of the counter, and its standard deviation; `None` before the
    /// first reading.
    pub fn rate(&self) -> Option<(Rate, Rate)> {
        let filter = self.known?.filter;
        Some((Rate::from_fraction(filter.rate), Rate::from_fraction(filter.rate_deviation())))
    }

    /// The standard deviation of one reading; `None` before the first.
    pub fn noise(&self) -> Option<Span> {
        Some(Span::from_seconds(self.known?.filter.noise_deviation()))
    }
}

fn settled(filter: &Filter) -> Option<SettledRate> {
    let deviation = filter.rate_deviation();
    (deviation < SETTLED.as_fraction()).then_some(SettledRate { rate: filter.rate, deviation })
}

fn scaled(span: Span, rate: f64) -> Span {
    Span::from_seconds(span.as_seconds() * rate)
}
