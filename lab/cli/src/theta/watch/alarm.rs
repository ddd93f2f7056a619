//! Limits on the figures of the last minute.

use ffclock_theta::watch::WatchFigures;
use ffclock_units::Span;

/// What the last minute may reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct AlarmLimits {
    pub(super) omega: Option<f64>,
    pub(super) delay: Option<Span>,
}

/// The limits, and which of them are broken now.
#[derive(Debug)]
pub(super) struct AlarmState {
    limits: AlarmLimits,
    broken: Vec<String>,
}

impl AlarmState {
    pub(super) fn new(limits: AlarmLimits) -> Self {
        AlarmState { limits, broken: vec![] }
    }

    pub(super) fn judge(&mut self, figures: &WatchFigures) {
        self.broken.clear();
        let Some(minute) = figures.minute else { return };
        let omega = minute.omega.map(|peak| peak.ratio.as_f64()).zip(self.limits.omega);
        if let Some((omega, limit)) = omega.filter(|(omega, limit)| omega > limit) {
            self.broken.push(format!("Omega of the last minute is {omega:.3}, above {limit}"));
        }
        let delay = minute.delay_max_ps.map(|delay| Span::from_seconds(delay as f64 * 1e-12)).zip(self.limits.delay);
        if let Some((delay, limit)) = delay.filter(|(delay, limit)| delay > limit) {
            self.broken.push(format!("tau+ of the last minute is {delay}, above {limit}"));
        }
    }

    pub(super) fn is_raised(&self) -> bool {
        !self.broken.is_empty()
    }

    /// What is broken; `None` if nothing is.
    pub(super) fn words(&self) -> Option<String> {
        self.is_raised().then(|| self.broken.join("; "))
    }
}
