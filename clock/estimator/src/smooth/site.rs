//! A packet's evidence as a normal factor, for each of four members.
//!
//! A packet says that q, the queueing, has a one-sided density. As far as a member's belief about q reaches, that is
//! replaced by the normal factor exp(-precision q^2 / 2 - pull q) that moves mean and variance of that belief as the
//! density itself does: expectation propagation (T. Minka, Expectation Propagation for Approximate Bayesian Inference,
//! UAI 2001). An exponential density far from its edge is a pure pull.

use crate::bank::density::{Evidence, Tabulated};
use crate::bank::grid::Cavity;
use crate::bank::lanes::{LANES, Lanes};
use crate::tuning::smooth::LEAST_PRECISION_LEFT;

/// The factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Site {
    pub precision: Lanes,
    pub pull: Lanes,
}

/// What a member believes about the queueing of a packet, us and us^2; `noise` is the variance of what the stamp's
/// width can do.
#[derive(Clone, Copy, Debug)]
pub struct QueueingBelief {
    pub mean: Lanes,
    pub variance: Lanes,
    pub noise: f64,
}

/// What a factor does to a member: its state moves by `move_by` times the gain, its covariance by `-shrink` times the
/// gain's square.
#[derive(Clone, Copy, Debug)]
pub struct Action {
    pub move_by: Lanes,
    pub shrink: Lanes,
}

/// What the density makes of a belief.
#[derive(Clone, Copy, Debug)]
pub struct Weighed {
    pub action: Action,
    pub log: Lanes,
}

impl QueueingBelief {
    /// Weighs the belief with a density.
    pub fn weigh(&self, density: &Tabulated) -> Weighed {
        let variance = self.variance + Lanes::all(self.noise);
        let cavity = |lane: usize| Cavity { mean: self.mean.of(lane), variance: variance.of(lane) };
        let evidence: [Evidence; LANES] = core::array::from_fn(|lane| density.weigh(&cavity(lane)));
        let move_by = Lanes(evidence.map(|evidence| -evidence.shift)).zip(variance, |shift, variance| shift / variance);
        let left = Lanes(evidence.map(|evidence| evidence.variance));
        // A belief may become wider, where garbage is likely; a normal factor cannot do that.
        let shrink = left.zip(variance, |left, variance| ((variance - left) / (variance * variance)).max(0.0));
        Weighed { action: Action { move_by, shrink }, log: Lanes(evidence.map(|evidence| evidence.log)) }
    }

    /// The belief without what `site` has already contributed; `None` of a member that rests on this packet alone.
    pub fn without(&self, site: &Site) -> (QueueingBelief, [bool; LANES]) {
        let precision = self.variance.map(|variance| 1.0 / variance) - site.precision;
        let is_proper = precision.0.map(|precision| precision > 0.0 && precision.is_finite());
        let variance = precision.map(|precision| 1.0 / precision);
        let scaled = self.mean.zip(self.variance, |mean, variance| mean / variance);
        let mean = (scaled + site.pull) * variance;
        (QueueingBelief { mean, variance, noise: self.noise }, is_proper)
    }
}

impl Site {
    pub const NONE: Site = Site { precision: Lanes::ZERO, pull: Lanes::ZERO };

    /// The factor that does to a belief what an action does.
    pub fn of(action: &Action, belief: &QueueingBelief) -> Self {
        let Action { move_by, shrink } = *action;
        let precision = shrink
            .zip(belief.variance, |shrink, variance| shrink / (1.0 - shrink * variance).max(LEAST_PRECISION_LEFT));
        let pull = move_by * (Lanes::all(1.0) + precision * belief.variance) - precision * belief.mean;
        Site { precision, pull }
    }

    /// What the factor does to a belief.
    pub fn act(&self, belief: &QueueingBelief) -> Action {
        let whole = (Lanes::all(1.0) + self.precision * belief.variance).map(|whole| 1.0 / whole);
        Action { move_by: (self.pull + self.precision * belief.mean) * whole, shrink: self.precision * whole }
    }

    /// Goes a part of the way to another factor, in the members for which that one makes sense.
    pub fn approach(&mut self, other: &Site, part: f64, is_proper: &[bool; LANES]) {
        for (lane, is_proper) in is_proper.iter().enumerate() {
            for (mine, other) in [(&mut self.precision, &other.precision), (&mut self.pull, &other.pull)] {
                let moved = mine.of(lane) + part * (other.of(lane) - mine.of(lane));
                if *is_proper && moved.is_finite() {
                    mine.put(lane, moved);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_does_what_it_was_made_from_and_can_be_taken_back() {
        let belief =
            QueueingBelief { mean: Lanes([3.0, -1.0, 20.0, 0.5]), variance: Lanes([2.0, 0.1, 9.0, 4.0]), noise: 0.0 };
        let action = Action { move_by: Lanes([0.3, -0.2, 0.0, 1.0]), shrink: Lanes([0.2, 5.0, 0.0, 0.1]) };
        let site = Site::of(&action, &belief);
        let again = site.act(&belief);
        // The state moves against the queueing: what it gains, q loses.
        let mean = belief.mean - belief.variance * action.move_by;
        let variance = belief.variance - belief.variance * belief.variance * action.shrink;
        let (before, is_proper) = QueueingBelief { mean, variance, noise: 0.0 }.without(&site);
        assert_eq!(is_proper, [true; LANES]);
        for lane in 0..LANES {
            assert!((again.move_by.of(lane) - action.move_by.of(lane)).abs() < 1e-12);
            assert!((again.shrink.of(lane) - action.shrink.of(lane)).abs() < 1e-12);
            assert!((before.mean.of(lane) - belief.mean.of(lane)).abs() < 1e-9, "{lane}");
            assert!((before.variance.of(lane) - belief.variance.of(lane)).abs() < 1e-9);
        }
    }
}
