//! Every number of the estimators that is not physics: its unit, where it comes from, and what it is for.
//!
//! Origins are named so:
//! - *oscillator*: a noise level, stated as an Allan deviation (NIST SP 1065). White frequency noise of s per square
//!   root of a second has `sigma_y(tau) = s / sqrt(tau)`; a random walk of the frequency of q per square root of a
//!   second has `sigma_y(tau) = q sqrt(tau / 3)`.
//! - *false alarm*: a likelihood ratio in nats. Where nothing happened, a test that asks for g nats is passed with a
//!   probability of at most exp(-g) for one hypothesis that was fixed beforehand (Wald's inequality); h hypotheses
//!   multiply it by h. A hypothesis that is fitted to the packets that judge it, as the shift of a path is, has no such
//!   bound: there the figure is nominal.
//!   Densities are learned, not known, so the true rate is higher; sweeps over the scenarios settled the values.
//! - *sweep*: chosen by the figures of the scenarios; `tools/mutation --sensitivity` prints what half and double cost.
//! - *rounding*: what floats or stamps can lose.
//! - *papers*: the "good" preset of the RADclock programs.
//! - *size*: bounds work or memory, and changes figures little.
//!
//! # The oscillator
//! How far an ordinary oscillator's frequency walks in a second has one value, [`bank::USUAL_WALK`]: members with a
//! cycle, re-initialisation and the difference clock's averaging time use it. The bank has members for others
//! ([`bank::WALKS`]), and where nothing is seen the next larger of these is assumed ([`smooth::CURVE_WALK`]).
//!
//! White frequency noise has one value, 3 ns per square root of a second, written as a variance in [`bank::PHASE_WALK`]
//! and as a deviation in [`smooth::CURVE_PHASE_WALK`], whose square is not the same float.

pub mod bank;
pub mod classic;
pub mod ensemble;
pub mod guard;
pub mod learned;
pub mod quorum;
pub mod smooth;

/// Exchanges that make an authority of a past: with fewer a filter is warming up and a server is outvoted soon.
/// Exchanges. Sweep: a burst at the start has 8.
pub const YOUNG: u64 = 8;

/// A pair of exchanges closer than this says nothing of the rate. s. Rounding: stamps of 10 us over 1 ms are 1 %.
pub const CLOSEST_PAIR: f64 = 1e-3;

/// What the arithmetic of a filter can lose of a time. s. Rounding, with room: floats of microseconds lose less than 1
/// ns.
pub const LEAST_UNCERTAINTY: f64 = 1e-8;

/// A bin of a history takes another exchange only during this part of its width, so that polls of exactly that width
/// with some jitter each get a bin of their own. Sweep.
pub const OPEN_PART: f64 = 0.9;

/// The first width of a bin of a history. s. Size: the shortest poll there is.
pub const FIRST_WIDTH: f64 = 0.125;
