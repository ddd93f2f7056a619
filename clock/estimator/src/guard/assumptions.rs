//! What the guard takes for granted about the counter, the path and the server, derived from the options once.

use crate::ClassicConfig;
use crate::frame::Slope;
use crate::history::Shape;
use crate::tuning::guard::{PROOF_BINS, PROOF_CAPACITY, PROOF_CROWD, RATE_PROOF_SPAN, WANDER_LIMIT, WANDER_STEP};
use ffclock_units::{Bound, Period, Rate, RateMemory};

/// Seconds and s/s.
#[derive(Clone, Debug)]
pub struct Assumptions {
    /// The largest deviation of the rate from its mean over the last day: what was configured, or more where the data
    /// showed more.
    pub wander: f64,
    /// What was configured.
    pub wander_configured: f64,
    /// What the wander is not believed to exceed, whatever the data show.
    pub wander_limit: f64,
    /// The largest deviation from the nominal rate.
    pub nominal_error: f64,
    /// How far a remembered rate may have moved.
    pub memory_margin: f64,
    /// How long a contradiction must last.
    pub step_patience: f64,
    /// Half the configured asymmetry.
    pub half_asymmetry: f64,
    /// Half the stated error of the asymmetry; `None` when it was not stated.
    pub half_asymmetry_error: Option<f64>,
}

impl Assumptions {
    pub fn new(config: &ClassicConfig) -> Self {
        let asymmetry_error = config.asymmetry_error;
        let wander = config.wander.abs().as_fraction();
        Assumptions {
            wander,
            wander_configured: wander,
            wander_limit: WANDER_LIMIT * wander,
            nominal_error: config.nominal_error.abs().as_fraction(),
            memory_margin: config.memory_margin.abs().as_fraction(),
            step_patience: config.step_patience.as_seconds(),
            half_asymmetry: 0.5 * config.asymmetry.as_seconds(),
            half_asymmetry_error: (asymmetry_error != Bound::UNKNOWN).then(|| 0.5 * asymmetry_error.as_seconds()),
        }
    }

    /// How much larger the wander can be than is assumed.
    pub fn wander_room(&self) -> f64 {
        self.wander_limit - self.wander
    }

    /// The data show that the wander is larger than assumed. Returns how much is added to it.
    pub fn learn_wander(&mut self) -> f64 {
        let before = self.wander;
        self.wander = (WANDER_STEP * before).min(self.wander_limit);
        self.wander - before
    }

    /// The wander that the data showed, if it is larger than what was configured.
    pub fn learned_wander(&self) -> Option<Rate> {
        (self.wander > self.wander_configured).then(|| Rate::from_fraction(self.wander))
    }

    /// An earlier estimator of the same counter had learned this. It makes the wander larger at most, and not beyond
    /// what could be learned now.
    pub fn recall_wander(&mut self, memory: &RateMemory) {
        let recalled = memory.wander.map_or(0.0, |wander| wander.as_fraction());
        if recalled.is_finite() {
            self.wander = recalled.min(self.wander_limit).max(self.wander);
        }
    }

    /// The history for the proven rate.
    pub fn history(&self) -> Shape {
        Shape { widest: RATE_PROOF_SPAN / PROOF_BINS, crowd: PROOF_CROWD, capacity: PROOF_CAPACITY }
    }

    /// The prior that a remembered rate gives; `None` when it lies outside what the counter can be.
    pub fn believable(&self, memory: &RateMemory, nominal: Period) -> Option<Slope> {
        let rate = memory.period.relative_to(nominal).as_fraction();
        let error = memory.bound.abs().as_fraction() + self.memory_margin;
        (error.is_finite() && rate.abs() - error <= self.nominal_error).then_some(Slope { rate, error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recalled_wander_is_assumed_within_the_limit_and_never_makes_it_smaller() {
        let recalled = |ppm: Option<f64>| {
            let mut assumptions = Assumptions::new(&ClassicConfig::default());
            let period = Period::from_hertz(1e9).unwrap();
            let wander = ppm.map(Rate::from_ppm);
            assumptions.recall_wander(&RateMemory { period, bound: Rate::from_ppm(1.0), wander });
            (1e6 * assumptions.wander, assumptions.learned_wander().map(Rate::as_ppm))
        };
        assert_eq!(recalled(None), (1.0, None));
        assert_eq!(recalled(Some(0.1)), (1.0, None), "no smaller one is believed");
        for (ppm, assumed) in [(2.0, 2.0), (4.0, 4.0), (900.0, 5.0)] {
            let (wander, learned) = recalled(Some(ppm));
            assert!((wander - assumed).abs() < 1e-9 && learned.is_some(), "{ppm}: {wander}");
        }
        assert_eq!(recalled(Some(f64::NAN)), (1.0, None));
        assert_eq!(recalled(Some(-3.0)), (1.0, None));
    }

    #[test]
    fn the_history_of_the_rate_can_fill_its_window() {
        let shape = Assumptions::new(&ClassicConfig::default()).history();
        assert!(shape.crowd < shape.capacity);
        assert!(shape.capacity as f64 * 0.9 * shape.widest > RATE_PROOF_SPAN);
    }
}
