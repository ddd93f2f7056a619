//! The conditions of each phase: the load, the time, a progress line, and an early end at the user's request.

use super::stress::StressLoads;
use crate::failure::Failure;
use ffclock_counters::campaign::{CampaignPhase, Surroundings};
use ffclock_sys::{Interest, Signal, Signals, mono_now, poll};
use ffclock_units::{Moment, Mono, Span};
use std::io::{IsTerminal, Write, stderr};
use std::ops::ControlFlow;
use std::os::fd::AsFd;

/// The interval between two checks of the loads, and between two updates of the progress line.
const SLICE: Span = Span::from_millis(500);
/// A campaign shorter than this shows no progress.
const PATIENCE: Span = Span::from_secs(2);

/// Makes the conditions of each phase.
pub(crate) struct Conditions {
    stress: StressLoads,
    signals: Signals,
    begun: Moment<Mono>,
    phase: String,
    phases: usize,
    shown: bool,
}

impl Conditions {
    /// Checks that every load of `phases` can be had.
    pub(crate) fn prepare(phases: &[CampaignPhase]) -> Result<Self, Failure> {
        let stress = StressLoads::prepare(phases)?;
        let signals = Signals::install()?;
        Ok(Conditions { stress, signals, begun: mono_now(), phase: String::new(), phases: phases.len(), shown: false })
    }

    fn show(&mut self, share: f64) {
        if stderr().is_terminal() && mono_now() - self.begun >= PATIENCE {
            let _ = write!(stderr(), "\r{:3.0} %  {:40}", share * 100.0, self.phase);
            self.shown = true;
        }
    }

    fn is_interrupted(&mut self) -> bool {
        std::iter::from_fn(|| self.signals.take()).any(|signal| signal != Signal::Hangup)
    }
}

impl Surroundings for Conditions {
    type Error = Failure;

    fn enter(&mut self, phase: &CampaignPhase) -> Result<(), Failure> {
        self.phase = format!("phase {} of {}: {}", phase.number + 1, self.phases, phase.name());
        self.stress.change(phase)
    }

    fn wait(&mut self, deadline: Moment<Mono>, share: f64) -> Result<ControlFlow<()>, Failure> {
        loop {
            self.show(share);
            self.stress.keep()?;
            let now = mono_now();
            if self.is_interrupted() {
                return Ok(ControlFlow::Break(()));
            }
            if now >= deadline {
                return Ok(ControlFlow::Continue(()));
            }
            poll(&mut [Interest::readable(self.signals.as_fd())], Some(deadline.min(now + SLICE)))?;
        }
    }
}

impl Drop for Conditions {
    /// Removes the progress line.
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(stderr(), "\r{:60}\r", "");
        }
    }
}
