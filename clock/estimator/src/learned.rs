//! The learned algorithm: each direction is evidence of its own, queueing is one-sided and its density is learned.
//!
//! A bank of filters, each with another belief about the oscillator, predicts the delays of both packets of an exchange and is scored
//! by what it predicted; their weighted mean is the clock. What may be published, what contradicts the past and how far the true time
//! can be are decided by the classic algorithm, which runs inside: the proof of the bound and the judgement of a server that steps exist once.
//! `docs/algorithm/learned.md` explains the parts and what each is worth.

mod doubt;
mod floors;
mod learning;
mod pace;
mod publish;
mod recent;
mod second;
mod stages;
#[cfg(test)]
mod tests;

use crate::bank::group::Begin;
use crate::bank::measurement::MICRO;
use crate::bank::model;
use crate::bank::revision::Revision;
use crate::bank::{Bank, Blend, Densities, Roster};
use crate::frame::{Frame, Point};
use crate::outcome::Measure;
use crate::{Classic, ClassicConfig, Estimator, Event, LearnedConfig, Outcome, RateMemory, Verdict};
use doubt::EdgeDoubt;
use ffclock_units::{Counter, Exchange, Period};
use floors::{Displacement, Known};
use learning::Learning;
use pace::Pace;
use recent::Recent;
use second::SecondLook;

/// With fewer exchanges than this behind it the filter is still warming up.
const YOUNG: u64 = 8;

/// The learned algorithm, with the bounds and the judgement of the classic one.
///
/// After [`Learned::new`] no memory is allocated; [`Learned::bytes`] says how much it is.
#[derive(Clone, Debug)]
pub struct Learned {
    config: LearnedConfig,
    nominal: Period,
    half_asymmetry: f64,
    step_patience: f64,
    classic: Classic,
    roster: Roster,
    learning: Learning,
    bank: Bank,
    /// What hypotheses are tried in.
    scratch: Bank,
    recent: Recent,
    second: SecondLook,
    known: Known,
    displacement: Displacement,
    edges: EdgeDoubt,
    now: Option<Now>,
    shifts_up: u64,
    shifts_down: u64,
    server_steps: u64,
    /// Exchanges that the classic algorithm did not use.
    used_alone: u64,
    /// The last exchange contradicted what is proven.
    is_contradicted: bool,
    upset: Upset,
}

/// What the last exchange made the filter believe of the time before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Upset {
    /// The time began anew with it.
    pub began: bool,
    pub revisions: [Option<Revision>; 2],
}

impl Upset {
    fn note(&mut self, revision: Revision) {
        if let Some(cell) = self.revisions.iter_mut().find(|cell| cell.is_none()) {
            *cell = Some(revision);
        }
    }
}

/// What exists from the first exchange on.
#[derive(Clone, Copy, Debug)]
struct Now {
    /// The frame, through the published time at the last exchange.
    frame: Frame,
    /// The end of the last exchange that was used.
    counter: Counter,
    blend: Blend,
    /// The difference clock's.
    pace: Pace,
    /// Seconds until `blend.deviation_later`.
    later: f64,
    /// The time between exchanges, s, smoothed.
    poll: f64,
    /// Exchanges that the present time rests on.
    past: u64,
    /// Exchanges in a row that no model explained.
    astray: u32,
    /// Exchanges in a row after which the time lay outside what is proven.
    outside: u32,
    disagrees: bool,
}

impl Learned {
    /// An estimator without history. `classic` configures the parts that both algorithms share; `nominal` is the period that the
    /// counter is sold with, and `remembered` is what an earlier estimator of the same counter knew.
    pub fn new(config: LearnedConfig, classic: ClassicConfig, nominal: Period, remembered: Option<RateMemory>) -> Self {
        let half_asymmetry = 0.5 * classic.asymmetry.as_seconds() / MICRO;
        let step_patience = classic.step_patience.as_seconds();
        let classic = Classic::new(classic, nominal, remembered);
        let families = [config.edges || !config.humps, config.humps];
        let roster = Roster { models: model::models(&config), families };
        let nothing = Begin { theta: 0.0, rate: 0.0, rate_variance: 1.0, floors: [0.0; 2], variance: 1.0 };
        let bank = Bank::begin(&nothing, &roster);
        let learning = Learning::new(&config);
        Learned {
            second: SecondLook::new(&learning, &config),
            learning,
            recent: Recent::new(&bank),
            known: Known::default(),
            displacement: Displacement::default(),
            edges: EdgeDoubt::NEW,
            now: None,
            shifts_up: 0,
            shifts_down: 0,
            server_steps: 0,
            used_alone: 0,
            is_contradicted: false,
            upset: Upset::default(),
            config,
            nominal,
            half_asymmetry,
            step_patience,
            classic,
            roster,
            scratch: bank.clone(),
            bank,
        }
    }

    /// The memory that this estimator occupies, in bytes; constant from its making on.
    pub fn bytes(&self) -> usize {
        let inline = size_of::<Self>().saturating_sub(size_of::<Classic>());
        inline + self.classic.bytes() + self.learning.bytes() + self.recent.bytes() + self.second.bytes()
    }

    /// What the last exchange made the filter believe of the time before it.
    pub(crate) fn upset(&self) -> &Upset {
        &self.upset
    }

    /// What is known of queueing now.
    pub(crate) fn densities(&self) -> Densities<'_> {
        self.learning.densities()
    }

    fn take_in(&mut self, exchange: &Exchange) -> Outcome {
        self.upset = Upset::default();
        let judged = self.classic.update(exchange);
        // What is within the proof is judged here: the two directions tell more of it than the offset alone.
        let is_insane = judged.events.contains(Event::OffsetInsane);
        let is_within_proof = judged.verdict == Verdict::Contradiction && is_insane;
        self.is_contradicted = match judged.verdict {
            Verdict::Used | Verdict::FloorOnly => false,
            Verdict::Contradiction => !is_insane,
            Verdict::Rejected(_) => self.is_contradicted,
        };
        if judged.verdict != Verdict::Used && !is_within_proof {
            return judged;
        }
        let offset = self.naive_error(exchange);
        let stepped = judged.events.contains(Event::ServerStepAccepted) && !is_insane;
        let mut events = judged.events.only(SHARED);
        if stepped {
            self.server_steps = self.server_steps.saturating_add(1);
            events.add(Event::ServerStepAccepted);
        }
        self.used_alone = self.used_alone.saturating_add(u64::from(is_within_proof));
        let is_young = self.now.is_some_and(|now| now.past < YOUNG);
        if judged.events.contains(Event::Restarted) || (stepped && is_young) {
            self.now = None;
        }
        self.pass(exchange, if stepped { Footing::Lost } else { Footing::Kept }, &mut events);
        Outcome { verdict: Verdict::Used, events, measure: Measure { offset, ..judged.measure } }
    }

    /// The error that `exchange` alone ascribes to the clock as it was predicted, s.
    fn naive_error(&self, exchange: &Exchange) -> f64 {
        self.now.map_or(f64::NAN, |now| {
            let point = now.frame.place(exchange);
            now.blend.rate * MICRO * point.middle - (point.height() - self.half_asymmetry * MICRO)
        })
    }

    /// Where the filter begins with an exchange.
    pub(crate) fn beginning(&self, point: &Point) -> Begin {
        let prior = self.classic.prior();
        let spread = 0.4 * prior.error / MICRO;
        let trip = (point.net / MICRO).max(0.5);
        Begin {
            theta: point.height() / MICRO - self.half_asymmetry,
            rate: prior.rate / MICRO,
            rate_variance: spread * spread,
            floors: [0.5 * trip + self.half_asymmetry, 0.5 * trip - self.half_asymmetry],
            variance: 0.25 * trip * trip + 1.0,
        }
    }
}

/// Whether an exchange can be held against the time before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Footing {
    Kept,
    /// The server's time stepped.
    Lost,
}

/// Events of the classic algorithm that are true of both.
const SHARED: &[Event] = &[
    Event::RateUpdated,
    Event::RateInsane,
    Event::IdentityChanged,
    Event::WanderExceeded,
    Event::MemoryDropped,
    Event::AsymmetryContradicted,
    Event::Restarted,
    Event::WarmupEnded,
];
