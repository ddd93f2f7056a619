//! Polls that keep an uncertainty: the clock of the product whose uncertainty it is, and the product's choice.
//!
//! All clocks of the world are judged by the packets that this one asks for. What upsets it repeats the rules of the
//! daemon (`keeper/polling.rs`), which stand among its sockets and timers.

use crate::scenario::Scenario;
use crate::several::{Credence, Joint, MultiServerClock, ServerChange};
use ffclock_estimator::LearnedConfig;
use ffclock_source::AdaptivePoll;
use ffclock_units::{Counter, Exchange, Span, StandardUncertainty};

pub(super) struct PollGovernor {
    adaptive: AdaptivePoll,
    clock: Joint,
    standings: Vec<(Credence, bool)>,
}

impl PollGovernor {
    /// `None` where polls are fixed.
    pub(super) fn of(scenario: &Scenario) -> Option<Self> {
        let keep = StandardUncertainty::of(scenario.keep_noise?.0);
        let (nominal, servers) = (scenario.counter.nominal(), scenario.each_server().len());
        Some(PollGovernor {
            adaptive: AdaptivePoll::new(keep, [scenario.poll_min.0, scenario.poll_max.0]),
            clock: Joint::new(&LearnedConfig::default(), nominal, servers),
            standings: Vec::new(),
        })
    }

    pub(super) fn take(&mut self, server: usize, exchange: &Exchange) {
        self.clock.take(server, exchange);
        let estimate = self.clock.estimate(exchange.received.counter);
        let standings = self.clock.standings();
        let largest = standings.iter().map(|standing| standing.2).fold(0.0, f64::max);
        let standings: Vec<(Credence, bool)> = standings.iter().map(|standing| (standing.0, standing.1)).collect();
        let is_agreed = standings.iter().any(|standing| standing.0 == Credence::Believed);
        if self.clock.take_upset() || standings != self.standings || !is_agreed {
            self.adaptive.upset();
        } else if let Some(estimate) = estimate {
            self.adaptive.follow(&estimate, if largest > 0.0 { largest } else { 1.0 });
        }
        self.standings = standings;
    }

    pub(super) fn note(&mut self, server: usize, change: ServerChange, counter: Counter) {
        self.clock.note(server, change, counter);
        self.adaptive.upset();
    }

    pub(super) fn broke(&mut self) {
        self.clock.broke();
        self.adaptive.upset();
    }

    /// The polls of all servers.
    pub(super) fn polls(&self) -> Vec<Span> {
        let weights: Vec<f64> = self.clock.standings().iter().map(|standing| standing.2).collect();
        let largest = weights.iter().copied().fold(0.0, f64::max);
        let part = |weight: &f64| if largest > 0.0 { weight / largest } else { 1.0 };
        weights.iter().map(|weight| self.adaptive.poll(part(weight))).collect()
    }
}
