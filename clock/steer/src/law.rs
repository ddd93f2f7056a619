//! The law: what one look at the page and at the kernel's clock means for the kernel. It reads no clock and makes no
//! call.
//!
//! The frequency has two parts. The first takes away the kernel's own error in rate, which is known from the page and
//! the raw clock ([`base`](crate::base)). The second slews the offset: a share of it for each second, `offset /
//! time_constant`, and no more than `slew_max`. So the offset falls off exponentially, and linearly where it is large.
//! There is no loop to tune: the rate is not learned from offsets.
//!
//! The error figures are those of the page, and the offset that is left. The kernel lets its largest error grow by 500
//! ppm. That is more than any frequency which is set here can be wrong, so the figure stays true although the process
//! is stopped or killed.
//!
//! Where the page is not synchronised, or cannot be read, the last slew is taken away, the clock runs on at the rate of
//! the page, and the kernel's clock is called unsynchronised. In holdover the page is followed: its bound says how far
//! it can be wrong.

use ffclock_sys::{KernelClockState, KernelFrequency};
use ffclock_units::{Bound, Rate, Span, StandardUncertainty, Status};

/// What the operator decides about the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LawOptions {
    /// An offset falls to 37 % of itself in this time.
    pub time_constant: Span,
    /// The most that the kernel's clock is slewed by.
    pub slew_max: Rate,
    /// At the start, and after the machine slept or was restored, a larger offset is taken away by a step; `None`:
    /// never.
    pub step_beyond: Option<Bound>,
}

/// One look at the page and at the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// The time that the kernel's clock should show, minus what it shows. Positive: the kernel's clock is behind.
    pub offset: Span,
    /// `offset` is known to within this.
    pub half_width: Span,
    /// How much faster the kernel's clock runs at the frequency 0 than the page. Positive: it gains.
    pub base: Rate,
    /// The status of the page.
    pub status: Status,
    /// The bound of the page until the next look.
    pub bound: Bound,
    /// Its standard uncertainty.
    pub uncertainty: StandardUncertainty,
}

/// What is to be done about the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The clock stays as it is.
    Keep,
    /// It is stepped by this span.
    Step(Span),
    /// It follows the page.
    Steer(Steering),
    /// It runs on at this frequency, and is called unsynchronised.
    Coast(KernelFrequency),
}

/// What the kernel gets while it follows the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steering {
    /// The frequency.
    pub frequency: KernelFrequency,
    /// The largest and the estimated error [us], rounded up.
    pub errors_us: [i64; 2],
    /// Whether the clock may be called synchronised.
    pub is_synchronised: bool,
}

/// Where the law is between two looks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Nothing was done yet; a step is permitted where the options have one.
    Start,
    /// Stepped; the next look shows what is left.
    Stepped,
    /// The clock follows the page.
    Following { base: Rate, is_synchronised: bool },
    /// The page was lost.
    Coasting,
}

/// The law, and what it remembers of the last look.
#[derive(Clone, Debug)]
pub struct Law {
    options: LawOptions,
    phase: Phase,
}

impl Law {
    /// Nothing was done yet.
    pub fn new(options: LawOptions) -> Self {
        Law { options, phase: Phase::Start }
    }

    /// The machine slept or was restored: as at the start.
    pub fn begin_again(&mut self) {
        self.phase = Phase::Start;
    }

    /// What follows from a look; `None` where the page cannot be read, or is not synchronised.
    pub fn decide(&mut self, look: Option<&Look>) -> Action {
        match look {
            Some(look) if look.status == Status::Synchronised => self.follow(look),
            // A clock that is in holdover already is no reason to begin.
            Some(look) if look.status == Status::Holdover && self.is_following() => self.follow(look),
            Some(_) | None => self.lose(),
        }
    }

    /// The frequency at which the clock is left alone: without the slew.
    pub fn rest(&self) -> Option<KernelFrequency> {
        match self.phase {
            Phase::Following { base, .. } => Some(frequency(base, Rate::ZERO)),
            Phase::Start | Phase::Stepped | Phase::Coasting => None,
        }
    }

    fn is_following(&self) -> bool {
        matches!(self.phase, Phase::Following { .. })
    }

    fn follow(&mut self, look: &Look) -> Action {
        let may_step = self.phase == Phase::Start;
        if may_step && self.options.step_beyond.is_some_and(|most| Bound::of(look.offset) > most) {
            self.phase = Phase::Stepped;
            return Action::Step(look.offset);
        }
        let errors_us = errors_of(look);
        let was = match self.phase {
            Phase::Following { is_synchronised, .. } => is_synchronised,
            Phase::Start | Phase::Stepped | Phase::Coasting => false,
        };
        let is_good = look.status == Status::Synchronised || was;
        let is_synchronised = is_good && errors_us[0] < KernelClockState::ERROR_LIMIT_US;
        self.phase = Phase::Following { base: look.base, is_synchronised };
        Action::Steer(Steering { frequency: frequency(look.base, self.slew(look.offset)), errors_us, is_synchronised })
    }

    fn lose(&mut self) -> Action {
        let rest = self.rest();
        if rest.is_some() {
            self.phase = Phase::Coasting;
        }
        rest.map_or(Action::Keep, Action::Coast)
    }

    /// The share of the offset for each second.
    fn slew(&self, offset: Span) -> Rate {
        let most = self.options.slew_max.as_fraction().abs();
        let share = offset.as_seconds() / self.options.time_constant.as_seconds();
        Rate::from_fraction(share.clamp(-most, most))
    }
}

/// The frequency at which a clock that gains `base` by itself gains `slew`: (1 + base) (1 + frequency) = 1 + slew.
fn frequency(base: Rate, slew: Rate) -> KernelFrequency {
    let factor = (1.0 + slew.as_fraction()) / (1.0 + base.as_fraction());
    KernelFrequency::nearest(Rate::from_fraction(factor - 1.0))
}

/// Both error figures of the kernel's clock [us]: those of the page, and how far the clock is from the page. The
/// estimated one stays below the kernel's limit, which shows that another program has set the clock.
fn errors_of(look: &Look) -> [i64; 2] {
    let apart = Bound::of(look.offset).as_nanos_up().saturating_add(Bound::of(look.half_width).as_nanos_up());
    let limit = KernelClockState::ERROR_LIMIT_US;
    [(look.bound.as_nanos_up(), limit), (look.uncertainty.as_nanos_up(), limit - 1)].map(|(page, most)| {
        let micros = page.saturating_add(apart).div_ceil(1000);
        i64::try_from(micros).map_or(most, |us| us.min(most))
    })
}

#[cfg(test)]
#[path = "law_tests.rs"]
mod tests;
