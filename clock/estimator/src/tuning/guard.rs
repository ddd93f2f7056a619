//! The guard: admission, identity, proof and challenge. What the proof assumes of oscillator and server are options of
//! the configuration, not numbers here.

pub use super::{CLOSEST_PAIR, YOUNG};

/// A longer round trip, or wider stamps, say nothing worth knowing. s. Size: the longest poll in a hurry.
pub const LONGEST_TRIP: f64 = 16.0;

/// A server's stamps may be this coarse: a shorter net round trip than minus this is impossible. s. Rounding: clocks
/// that count microseconds.
pub const COARSENESS: f64 = 2e-6;

/// This many exchanges in a row that are in order among themselves but older than the last one mean that the last one
/// was wrong. Sweep.
pub const STRAYS: u32 = 8;

/// This many exchanges in a row that contradict are no stray packet: the server says another time now, and votes with
/// it. The least that is more than one.
pub const CLAIMED_AGAIN: u64 = 2;

/// Exchanges that support a new time of the server against an established past, and against a young one, which they
/// must also outnumber. Sweep: a quarter of an hour decides as well (`step_patience`).
pub const SUPPORTERS: u64 = 8;
pub const SUPPORTERS_AGAINST_YOUNG: u64 = 3;

/// This many contradictions in a row without a candidate that lasts mean that the assumption about the counter is
/// wrong, and this many against a young past. Sweep.
pub const CONTRADICTIONS_LIMIT: u64 = 64;
pub const CONTRADICTIONS_LIMIT_WHILE_YOUNG: u64 = 16;

/// The counter then is given this many times the room about its nominal rate, and no more than this, s/s. Sweep; size:
/// a counter that is off by half is another counter.
pub const NOMINAL_ROOM: f64 = 4.0;
pub const LARGEST_NOMINAL_ERROR: f64 = 0.5;

/// A rate that deviates from its mean by more than this many times the configured wander is not that of an oscillator.
/// At the default, 5 ppm: 50 C of an ordinary crystal, which no place has in a day.
pub const WANDER_LIMIT: f64 = 5.0;

/// What the data show to be larger than assumed is taken as this many times larger. Sweep: with less, the proof breaks
/// more often on the way; with more, the bound grows faster than it must.
pub const WANDER_STEP: f64 = 2.0;

/// How many of the shortest round trips are kept. Size.
pub const SHORTEST: usize = 8;

/// An interval narrower than this part of the shortest round trip, less this many times the distance of the shortest
/// ones, was not narrowed by packets. With a half or less the true time may have left it. Sweep: over all scenarios an
/// honest interval has 0.89 of it and more.
pub const NARROW_PART: f64 = 0.85;
pub const NARROW_SPREAD: f64 = 2.0;

/// With fewer exchanges the shortest round trip can still be far above the floor. Exchanges. Sweep.
pub const NARROW_TRIPS: u32 = 64;

/// How far back the proven rate looks. s. A day: over a day the end-point error is
/// negligible, and `wander` is defined over a day.
pub const RATE_PROOF_SPAN: f64 = 86_400.0;

/// Bins of the history of the proof: how many to the span, how many before widths double, and how many there can be.
/// Size.
pub const PROOF_BINS: f64 = 32.0;
pub const PROOF_CROWD: usize = 36;
pub const PROOF_CAPACITY: usize = 48;

/// The room that a calibrated exchange gives to the widths of its stamps. Rounding: rates of up to 10 %.
pub const BLUR_MARGIN: f64 = 1.1;

/// The frame moves on before positions in it exceed this. s. Rounding: a position is then fine to 1e-11 s.
pub const FRAME_REACH: f64 = 65_536.0;

/// What the arithmetic between the proof and a page can add to an error: s, and s/s. Rounding.
pub const ROUNDING: f64 = 1e-12;
pub const RATE_ROUNDING: f64 = 1e-14;

/// What a few operations on floats can lose: s, and as a part of the operands. Rounding.
pub const FLOAT_ROUNDING: f64 = 1e-15;
pub const FLOAT_OPERATIONS: f64 = 8.0;
