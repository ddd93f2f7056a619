//! The learned filter. "Nats" are natural units of a log-likelihood ratio.

use super::bank::FINER;
pub use super::bank::{GARBAGE, USUAL_WALK};
pub use super::{LEAST_UNCERTAINTY, YOUNG};

/// After a longer silence the time begins again. s: 11 days. Rounding: the cycles' angles.
pub const LONGEST_SILENCE: f64 = 1e6;

/// This many exchanges in a row outside what is proven, or that no member explains, and the filter begins again. Sweep.
pub const OUTSIDE_LIMIT: u32 = 16;
pub const UNEXPLAINED_LIMIT: u32 = 32;

/// A packet is explained when it is this many times likelier than garbage. Sweep.
pub const EXPLAINED: f64 = 3.0;

/// How far the rate by other means can be off when the filter has lost track. ppm. Sweep.
pub const RATE_AFTER_LOSS: f64 = 3.0;

/// The part of a new interval that enters the smoothed poll, and the least poll, s. Sweep; rounding.
pub const POLL_PART: f64 = 0.25;
pub const LEAST_POLL: f64 = 1e-3;

/// How far ahead the growth of the uncertainty is measured: polls, and at least seconds. Errors of an oscillator grow
/// faster than time, and a server may be away for hours. Sweep: calibration of `disconnection-12h` and `intermittent`.
pub const HORIZON: f64 = 4.0;
pub const LEAST_HORIZON: f64 = 3_600.0;

/// A rate that is more uncertain than this is not known yet. s/s. Sweep: an ordinary oscillator's accuracy over a day.
pub const WARM_RATE: f64 = 1e-6;

/// Two filters disagree when they are further apart than this many times the sum of their noise. False alarm: three
/// standard deviations or more, since that of a difference is at most the sum of both.
pub const DISAGREEMENT: f64 = 3.0;

/// Exchanges that a change can lie back. Size: each costs a copy of the bank.
pub const DEPTH: usize = 8;

/// Exchanges that the densities learn from: the ring. Sweep: 250 to 1000 are alike.
pub const RING: usize = 400;

/// Each of the first exchanges is learned from at once, by this many iterations of expectation maximisation. Sweep.
pub const EAGER: usize = 40;
pub const EAGER_ITERATIONS: u32 = 4;

/// Afterwards they learn once in this number of exchanges, by this many iterations. Sweep: once in 8 to 32 is alike.
pub const ROUND: u64 = 16;
pub const ITERATIONS: u32 = 2;

/// With fewer exchanges the densities still show the prior, and chance. Exchanges. Sweep.
pub const AMBIGUITY_LEARNED: u64 = 128;

/// This part of the difference of the first deciles is ambiguous: half of it would be, if the steep shapes did not
/// explain much of a soft beginning. Sweep: calibration of `host-noise` and `host-coalescing`.
pub const AMBIGUOUS_PART: f64 = 0.25;

/// The ambiguity is averaged over this many exchanges. Sweep.
pub const AMBIGUITY_MEMORY: f64 = 64.0;

/// A floor that was never seen is at most this many ambiguities too high; while these are not learned, this many ninth
/// deciles of queueing. Sweep: `lan-congested-forward`.
pub const MISPLACED: f64 = 6.0;
pub const MISPLACED_AT_FIRST: f64 = 2.0;

/// A change shows in this many packets at least. Sweep.
pub const WITNESSES: usize = 4;

/// How much likelier a change must make the packets. Nats. False alarm: nominally exp(-25) for each of 60 hypotheses of
/// a way, together 8e-10 of a way and 1.7e-9 an exchange; the shift is fitted to the same packets, so this is no bound.
pub const CHANGE_GAIN: f64 = 25.0;

/// How much likelier a change of the rate must be than one of the paths, or the reverse. Nats. False alarm: exp(-6), 1
/// in 400.
pub const DECISIVE: f64 = 6.0;

/// How much likelier a longer path must be than a load that began: the path keeps the spread of the packets, the load
/// spreads them as far as it delays them. Nats. False alarm: exp(-12).
pub const STEADY: f64 = 12.0;

/// A rate may have changed this many exchanges before the paths seem to. Exchanges. Sweep.
pub const ONSET_REACH: usize = 2;

/// It may have done so anywhere between two exchanges: theta is open by this part of what the burst has added. Sweep.
pub const BURST_SLACK: f64 = 0.1;

/// A shift is searched at this many places of the smallest queueing, in these parts of the median. Size, sweep.
pub const TRIALS: u32 = 12;
pub const FIRST_TRIAL: f64 = 0.02;
pub const TRIAL_STEP: f64 = 0.12;

/// A path that became longer by less than this many ninth deciles of queueing is left to the filter. Sweep:
/// `small-route`.
pub const LEAST_SHIFT: f64 = 1.0;

/// The square of a shift is this many times the variance of the prediction at least. Four standard deviations: false
/// alarm 6e-5.
pub const LEAST_SQUARED_SHIFT: f64 = 16.0;

/// Packets after a lone one may be likelier by this with the floor that it shows. Nats. Sweep: between 0 and
/// [`DECISIVE`], since a hump distinguishes the two badly.
pub const LONE_GAIN: f64 = 2.0;

/// A lone packet shows a floor that is met rarely if it comes before the floor of the steep shapes by more than this
/// many of their first deciles. Shapes up to 3 place the floor of a gamma hump of shape k by (sqrt(k) - 1.732) / 0.636
/// of them too high: 1 at k = 5.6. Sweep: without it `host-coalescing` has 0.82 us in place of 0.79.
pub const RARE_SHIFT: f64 = 1.0;

/// A lone packet that comes before the floor by more than this many medians of queueing did not wait for what all
/// others wait for. Shapes up to 3 place the floor of a gamma hump of shape 40 so far too high.
pub const FAR_BEFORE: f64 = 3.0;

/// Two ways queue alike if the median of neither is larger than the other's by this factor.
pub const ALIKE: f64 = 2.0;

/// Two lone packets show the same floor if it differs by the square root of this many of their variances at most: three
/// standard deviations.
pub const SAME_FLOOR: f64 = 9.0;

/// The density that the steep shapes learned is a hump if its first decile is this part of its median at least. An
/// exponential has 0.15, a uniform density 0.2, a gamma density of shape 3 has 0.41.
pub const SOFT_DECILE: f64 = 0.25;

/// What was learned of a hump is void when the floor moves by more than this many first deciles. Sweep:
/// `soft-hump-cable`.
pub const RELEARNED_SHIFT: f64 = 0.5;

/// A floor that moved is uncertain by this many medians of queueing. Sweep.
pub const CHANGE_SPREAD: f64 = 3.0;

/// A change of one way is often followed by one of the other: the floors are not compared for this long. s. Sweep.
pub const SETTLING: f64 = 200.0;

/// After this many exchanges two changes are compared, or after `step_patience` if that comes first, but not after
/// fewer than this many. Sweep.
pub const COMPARED: u32 = 16;
pub const LEAST_COMPARED: u32 = 8;

/// Two changes are one if their difference is known to within this part of them and is not larger than this many of its
/// deviations. Sweep; false alarm: three standard deviations.
pub const SHARED_PART: f64 = 0.05;
pub const SHARED_DEVIATIONS: f64 = 3.0;

/// The variance of the difference of two changes that are one. us^2: 30 ns. Sweep.
pub const SHARED_VARIANCE: f64 = 1e-3;

/// Floors are back, or displaced, by this many ninth deciles of queueing. Sweep.
pub const DISPLACEMENT_TOLERANCE: f64 = 3.0;

/// The two halves of a step of the server may differ by this part of it. Sweep.
pub const STEP_MISMATCH: f64 = 0.02;

/// The first exchanges of each server that are taken together, not one by one. Exchanges. Sweep: with 16 the median
/// error on a LAN in the second minute is 0.61 us, with this 0.59; on a far path from 2 to 5 min 19.1 us with 16, with
/// this 15.5, and the share within twice the uncertainty 88 % and 93 %. With 8 the same minutes on a host with noise
/// are within it at 80 %, with this at 93 %.
pub const START: usize = 12;

/// The prior probabilities of queueing's shapes 1, 2, 4 and 8 then. Sweep: with exponentials alone 87 % of the readings
/// of the first 15 s on a path of 1 ms are within twice their uncertainty, with this 97 %; with equal parts the
/// uncertainty on a LAN is 1.6 times as large and the error 1.2 times.
pub const START_SHAPES: [f64; 4] = [0.7, 0.1, 0.1, 0.1];

/// A packet more than this many times this quantile, the 75th percentile, above the lowest of its way is clipped to
/// that value. Sweep: without, the median error of a far path after 8 s is 51 us, with this 32.
pub const FARTHEST: f64 = 3.0;
pub const USUAL_PART: f64 = 0.75;

/// The sum over the rate: the step from each node to the next as a part of their distance from the likeliest, and how
/// much less likely the last of either side is, nats. Rounding, against size. Nodes to either side at most: 64 reach
/// 4e8 times as far as the first.
pub const RATE_STEP: f64 = 0.33;
pub const UNLIKELY: f64 = 20.0;
pub const RATE_NODES: u32 = 64;

/// Nodes of the sum over an edge's distance below the lowest packet. Rounding, against size.
pub const EDGE_NODES: u32 = 16;

/// Re-initialisation: the exchanges are filtered again this often, since the densities learned at first are themselves
/// misplaced. Sweep.
pub const REINITIALISE_PASSES: u32 = 2;

/// It is tried after this many exchanges. Later the bank's knowledge of the oscillator is worth more. Exchanges. Sweep.
pub const REINITIALISE_AFTER: [u64; 3] = [EAGER as u64, 160, 640];

/// How much likelier the exchanges must be then. Nats. False alarm: exp(-6) at each of three trials.
pub const REINITIALISE_GAIN: f64 = 6.0;

/// The rate between the fastest packets is improved, or its step halved, this often. Rounding.
pub const REFINEMENTS: u32 = 48;

/// What is lost of a delay when it is measured. us. Rounding: stamps of ordinary kernels.
pub const GRAIN: f64 = 1.0;

/// How far the rate walks, for the averaging time of the difference clock. ppm/sqrt(s). Oscillator: the ordinary one.
pub const DIFFERENCE_WALK: f64 = USUAL_WALK;

/// The shortest and the longest time that the difference clock's rate is averaged over. s. Sweep.
pub const SHORTEST_AVERAGE: f64 = 1_000.0;
pub const LONGEST_AVERAGE: f64 = 86_400.0;

/// Exchanges after which the floors are known well enough to choose the densities of a short path. Sweep: recordings of
/// direct links, of 120 and 200 s at 1 s, have the smallest spread with 16, of 12 to 40.
pub const REFINED_AFTER: u64 = 16;

/// The floors of packets whose stamps pass software count as this at least, so that the densities are not finer than
/// such stamps are. us. Size: above the limit of the finest.
pub const SOFTWARE_TRIP: f64 = 4.0;
const _: () = assert!(SOFTWARE_TRIP > FINER[1].longest_trip && SOFTWARE_TRIP <= FINER[0].longest_trip);
