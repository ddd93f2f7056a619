//! Limits on the figures of the last minute.

use crate::Failure;
use ffclock_theta::watch::WatchFigures;
use ffclock_units::Span;

/// What the last minute may reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct AlarmLimits {
    omega: Option<f64>,
    delay: Option<Span>,
}

impl AlarmLimits {
    /// Limits that can be reached, where messages that take longer than `longest` are passed over.
    pub(super) fn new(omega: Option<f64>, delay: Option<Span>, longest: Span) -> Result<Self, Failure> {
        if let Some(omega) = omega.filter(|omega| !(1.0..f64::INFINITY).contains(omega)) {
            return Err(Failure::usage(format!("--alarm-omega {omega}: Omega is a finite number, 1 or more")));
        }
        if let Some(delay) = delay.filter(|delay| *delay >= longest) {
            return Err(Failure::usage(format!(
                "--alarm-delay {delay} is never reached: messages that take longer than --longest {longest} are passed over; make --longest larger"
            )));
        }
        Ok(AlarmLimits { omega, delay })
    }
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
        let minute = figures.minute;
        let omega = minute.and_then(|minute| minute.omega).map(|peak| peak.ratio.as_f64()).zip(self.limits.omega);
        if let Some((omega, limit)) = omega.filter(|(omega, limit)| omega > limit) {
            self.broken.push(format!("Omega of the last minute is {omega:.3}, above {limit}"));
        }
        let span = |delay_ps: i64| Span::from_seconds(delay_ps as f64 * 1e-12);
        let delay = minute.and_then(|minute| minute.delay_max_ps).map(span).zip(self.limits.delay);
        if let Some((delay, limit)) = delay.filter(|(delay, limit)| delay > limit) {
            self.broken.push(format!("tau+ of the last minute is {delay}, above {limit}"));
        }
        // They took longer than any limit that is possible, and tau+ does not show them.
        if let Some((found, limit)) = figures.minute_too_long.zip(self.limits.delay) {
            let (messages, delay) = (found.messages, span(found.delay_max_ps));
            self.broken
                .push(format!("{messages} too long messages of the last minute took up to {delay}, above {limit}"));
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
