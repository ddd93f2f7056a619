//! The bank: oscillator models, the set of models, queueing densities, and the grid that they are integrated on.

/// Members of each family: the walks and ten cycles. Size.
pub const MEMBERS: usize = 16;

/// Random walks of the rate, one member each (`several_walks`). ppm/sqrt(s), from an oven to a draught. Oscillator:
/// sigma_y(1000 s) from 5.5e-10 to 1.8e-7. With [`USUAL_WALK`] alone an oscillator that walks by 3e-3 has 1.23 times
/// the IQR (95 % interval over 20 seeds 1.22 to 1.25; docs/algorithm/learned.md).
pub const WALKS: [f64; 6] = [3e-5, 1e-4, USUAL_WALK, UNSTEADY_WALK, 3e-3, 1e-2];

/// How far the frequency of an ordinary oscillator walks: the walk of a member with a cycle, and of the only member
/// without where there are no others. ppm/sqrt(s). Oscillator: an ordinary crystal in a room, sigma_y(1000 s) = 5.5e-9.
pub const USUAL_WALK: f64 = 3e-4;

/// The next walk above the usual one, an unsteady crystal's. ppm/sqrt(s). Oscillator: sigma_y(1000 s) = 1.8e-8.
pub const UNSTEADY_WALK: f64 = 1e-3;

/// The shortest temperature cycle, s, and the ratio of each to the next: ten cover 128 s to 2.4 h. Sweep: air
/// conditioning and load; a ratio of 1.25 with twice the members gained next to nothing.
pub const SHORTEST_CYCLE: f64 = 128.0;
pub const CYCLE_RATIO: f64 = 1.6;

/// The standard deviation of either quadrature of a cycle. ppm. Oscillator: 0.3 to 0.6 K at the slope of an ordinary
/// crystal, 0.05 to 0.1 ppm/K. Sweep between 0.01 and 0.1.
pub const CYCLE_AMPLITUDE: f64 = 0.03;

/// Over this many periods P each quadrature of a cycle gains a variance of A^2 in a walk of A / sqrt(30 P) a second.
/// Sweep.
pub const CYCLE_RENEWAL: f64 = 30.0;

/// The standard deviation of the logarithm of a cycle's frequency when nothing is known but its place in the bank.
/// Sweep: an eighth of the step to the next cycle, within which the extended Kalman filter tracks.
pub const FREQUENCY_SPREAD: f64 = 0.06;

/// How far a cycle's frequency moves: the variance of its logarithm per second. 1/s. Sweep: 1 % within 1.8 days.
pub const FREQUENCY_WALK: f64 = 1e-8 / 16.0;

/// White frequency noise of the counter: the variance that theta gains in a second. us^2/s. Oscillator: 3 ns/sqrt(s),
/// sigma_y(1 s) = 3e-9.
pub const PHASE_WALK: f64 = 9e-6;

/// Both floors drift together: the variance that they gain in a second. us^2/s. Sweep: 1 ns/sqrt(s), 0.3 us in a day.
pub const FLOOR_WALK: f64 = 1e-6;

/// The variance of a stamp's noise when it has no width. us^2: 1 ns. Rounding.
pub const STAMP_NOISE: f64 = 1e-6;

/// The least variance that a prediction of a delay has. us^2: 0.1 ns. Rounding.
pub const LEAST_PREDICTED_VARIANCE: f64 = 1e-8;

/// The part of the largest possible rate error that is one standard deviation of the first rate. Sweep: 200 ppm of 500
/// ppm.
pub const PRIOR_RATE_PART: f64 = 0.4;

/// The shortest round trip that a beginning is made from, us, and the least variance of its time, us^2. Rounding.
pub const LEAST_FIRST_TRIP: f64 = 0.5;
pub const LEAST_FIRST_VARIANCE: f64 = 1.0;

/// The part of a score, a log-likelihood, that is left after one more exchange. Sweep: 0.99 to 0.998 are alike.
pub const SCORE_MEMORY: f64 = 0.995;

/// A member whose score is `RESEED_BEHIND` below the best begins again from the best member, `RESEEDED` below it. Nats.
/// False alarm: exp(-25) for a member that was right; from there it takes 10 more to begin again once more.
pub const RESEED_BEHIND: f64 = 25.0;
pub const RESEEDED: f64 = 15.0;

/// A member this far behind the best has no part in the mean. Nats: a weight of 5e-5. Size.
pub const FAR_BEHIND: f64 = 10.0;

/// The standard deviation that both floors of the family of humps gain at each exchange, as a part of the median
/// queueing. Sweep: without it such a floor locks in too high (far-16: IQR 13.8 us without, 9.2 with).
pub const HUMP_FLOOR_NOISE: f64 = 0.01;

/// The density of a packet that nothing explains. 1/us. Sweep: small beside any density within 100 ms, large enough to
/// keep a prior.
pub const GARBAGE: f64 = 1e-7;

/// Densities below this are nothing beside the garbage. 1/us. They are kept as zero, since the smallest floats are
/// slow. Rounding.
pub const NEGLIGIBLE: f64 = 1e-15;

/// What the prior counts against the packets of the ring. Packets. Sweep.
pub const PSEUDO_COUNTS: f32 = 3.0;

/// The part of the prior that steep components have in a mixture of all. Sweep.
pub const STEEP_PRIOR: f32 = 0.5;

/// The part of the humps' prior that narrow ones have on short paths. Between 0.2 and 0.95 it makes no difference.
pub const NARROW_PRIOR: f32 = 0.5;

/// The part of the steep components' prior that those other than exponentials have: exponentials place a floor best,
/// and a few packets do not distinguish the shapes. Sweep: host-noise IQR 1.63 us with exponentials only, 1.41 with
/// this.
pub const SOFT: f32 = 0.1;

/// A ladder of gamma densities of one shape with means in geometric steps, us.
pub struct Ladder {
    pub shape: f64,
    pub first: f64,
    pub last: f64,
    pub rungs: usize,
}

/// Components that are exponentials: the first of the table. Size.
pub const EXPONENTIALS: usize = 24;

/// Components that rise to their top well before their mean, of shapes 1 to 3: the first of the table. Size.
pub const STEEP: usize = 56;

/// Components that paths of any length have: the first of the table. Size.
pub const BROAD: usize = 104;

/// All components. Size.
pub const SHAPES: usize = 128;

/// The components of the mixtures. Sweep: means from under a microsecond to what a congested path queues. The last are
/// narrow humps for short paths: there most packets wait equally long for a processor to wake, and a few for none.
pub const LADDERS: [Ladder; 7] = [
    Ladder { shape: 1.0, first: 0.7, last: 60e3, rungs: EXPONENTIALS },
    Ladder { shape: 2.0, first: 2.0, last: 2e3, rungs: 16 },
    Ladder { shape: 3.0, first: 3.0, last: 5e3, rungs: 16 },
    Ladder { shape: 6.0, first: 9.0, last: 5e3, rungs: 16 },
    Ladder { shape: 12.0, first: 18.0, last: 5e3, rungs: 16 },
    Ladder { shape: 24.0, first: 72.0, last: 5e3, rungs: 16 },
    Ladder { shape: 128.0, first: 16.0, last: 256.0, rungs: 24 },
];

const _: () = {
    let [exponentials, two, three, six, twelve, twenty_four, narrow] = LADDERS;
    assert!(exponentials.rungs == EXPONENTIALS && EXPONENTIALS + two.rungs + three.rungs == STEEP);
    assert!(STEEP + six.rungs + twelve.rungs + twenty_four.rungs == BROAD && BROAD + narrow.rungs == SHAPES);
};

/// On paths with floors that add up to `longest_trip`, us, or less, all times of the components and of the grid are
/// divided by `fineness`.
pub struct Finer {
    pub longest_trip: f64,
    pub fineness: f64,
}

/// A switch or a few between two cards; a cable. Size: the grid reaches two thousand times the longest round trip. The
/// narrowest component of the coarse ones, 0.7 us, would be a thirtieth of the first and a third of the second.
pub const FINER: [Finer; 2] =
    [Finer { longest_trip: 20.0, fineness: 16.0 }, Finer { longest_trip: 2.0, fineness: 256.0 }];

/// Nodes and reach, in standard deviations, of the integrals that densities are learned from. Rounding, against size.
pub const LEARNING_NODES: u32 = 12;
pub const LEARNING_REACH: f64 = 4.0;

/// Nodes and reach, in standard deviations, of the integrals that packets are weighed with. Rounding, against size.
pub const WEIGHING_NODES: u32 = 16;
pub const WEIGHING_REACH: f64 = 5.5;

/// The least part of its variance that a packet leaves of a predicted delay. Rounding.
pub const LEAST_VARIANCE_LEFT: f64 = 1e-6;

/// Cells of the grid to each doubling of a queueing time, as a power of two, and doublings: 1/16 us next to zero, up to
/// one second. Rounding.
pub const STEP_BITS: u32 = 4;
pub const OCTAVES: usize = 20;

/// A step of an integral is no longer than this part of the queueing time (and a microsecond) where it begins.
/// Rounding.
pub const FINENESS: f64 = 0.5;
