//! The smoother.

pub use super::LEAST_UNCERTAINTY;
use super::bank::UNSTEADY_WALK;
pub use super::bank::{LEAST_PREDICTED_VARIANCE, SCORE_MEMORY};

/// The causal filter's densities are noted this often. Exchanges. Size.
pub const SNAPSHOT: usize = 64;

/// Exchanges that have densities of their own. Sweep: some hours of 16 s polls.
pub const BLOCK: usize = 256;

/// Exchanges that are worked out at a time, and how many more of the future are looked at. Size.
pub const WINDOW: usize = 8192;
pub const AHEAD: usize = 1024;

/// Rounds of expectation maximisation from the prior on. Sweep.
pub const SMOOTHING_ITERATIONS: u32 = 24;

/// Rounds in which packets are weighed as they come, so that the densities are learned roughly. Sweep.
pub const FIRST_ROUNDS: usize = 2;

/// Rounds of expectation propagation, and the part of the way that a factor moves in each: damping. Sweep.
pub const ROUNDS: usize = 6;
pub const PART: f64 = 0.7;

/// How far a cycle's frequency is taken over from one round into the next, as a logarithm. Sweep: half the step to the
/// next cycle.
pub const FREQUENCY_REACH: f64 = 0.25;

/// A floor this near to one that was left, beside what it is uncertain by, is that one. us. Sweep.
pub const NEAR_FLOOR: f64 = 1.0;

/// The variance of a floor that is recognised when it returns. us^2: 0.2 us. Sweep.
pub const REMEMBERED_VARIANCE: f64 = 0.04;

/// What a changed floor gains in variance beside what its change leaves open. us^2. Sweep.
pub const CHANGED_VARIANCE: f64 = 1.0;

/// A member has lost itself when its times are this many uncertainties of the causal filter away from the filter's, in
/// the root mean square. False alarm: far beyond three standard deviations of a mean over 256 exchanges.
pub const LOST: f64 = 3.0;

/// The part of the causal filter's uncertainty that the future cannot take away, since both rest on the same learned
/// densities. Sweep: calibrated against the truth.
pub const COMMON: f64 = 0.45;

/// The least uncertainty of the causal filter that a member is compared with. us. Rounding.
pub const LEAST_CAUSAL_UNCERTAINTY: f64 = 1e-3;

/// The least variance of a smoothed quantity, us^2, and the least part of a belief's precision that a factor leaves.
/// Rounding.
pub const LEAST_SMOOTHED_VARIANCE: f64 = 1e-9;
pub const LEAST_PRECISION_LEFT: f64 = 1e-6;

/// How far the rate walks between two exchanges. ppm/sqrt(s). Nothing is seen there, and the members that know better
/// are not asked: cautiously, the oscillator is taken for an unsteady one.
pub const CURVE_WALK: f64 = UNSTEADY_WALK;

/// White frequency noise between two exchanges: what the phase gains. us/sqrt(s). Oscillator: 3 ns/sqrt(s), as
/// `bank::PHASE_WALK`.
pub const CURVE_PHASE_WALK: f64 = 3e-3;
