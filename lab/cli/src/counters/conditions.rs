//! The conditions of each phase: the load, the time, a progress line, and an early end at the user's request.

use super::stress::StressLoads;
use crate::failure::Failure;
use crate::progress::Progress;
use ffclock_counters::campaign::{CampaignPhase, Surroundings, schedule};
use ffclock_sys::{Interest, Signal, Signals, mono_now, poll};
use ffclock_units::{Moment, Mono, Span};
use std::ops::ControlFlow;
use std::os::fd::AsFd;

/// The interval between two checks of the loads, and between two updates of the progress line.
const SLICE: Span = Span::from_millis(500);

/// Makes the conditions of each phase.
pub(crate) struct Conditions {
    stress: StressLoads,
    signals: Signals,
    progress: Progress,
    phase: String,
    phases: usize,
}

impl Conditions {
    /// Checks that every load of `phases` can be had.
    pub(crate) fn prepare(phases: &[CampaignPhase]) -> Result<Self, Failure> {
        let stress = StressLoads::prepare(phases)?;
        let signals = Signals::install()?;
        Ok(Conditions { stress, signals, progress: Progress::new(), phase: String::new(), phases: phases.len() })
    }

    /// Calls `look` at even intervals for `length`, without a load, or until it says that it is enough. Breaks where
    /// the user ended it.
    pub(crate) fn look_for(
        length: Span,
        every: Span,
        mut look: impl FnMut() -> Result<ControlFlow<()>, Failure>,
    ) -> Result<ControlFlow<()>, Failure> {
        let phases = schedule(&[], length);
        let mut conditions = Conditions::prepare(&phases)?;
        conditions.enter(&phases[0])?;
        let (begin, length) = (mono_now(), length.as_seconds());
        loop {
            let is_enough = look()?.is_break();
            let passed = (mono_now() - begin).as_seconds();
            if conditions.wait(mono_now() + every, (passed / length).min(1.0))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if is_enough || passed >= length {
                return Ok(ControlFlow::Continue(()));
            }
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
            self.progress.show(|| format!("{:3.0} %  {}", share * 100.0, self.phase));
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
