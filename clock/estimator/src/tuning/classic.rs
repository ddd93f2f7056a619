//! The classic filter. The multiples are those of the papers' "good" preset unless a line says otherwise; what they
//! multiply are options of the configuration.

pub use super::CLOSEST_PAIR;

/// Bins of the history for offsets and local rates to an offset window, before widths double, and at most. Size.
pub const HISTORY_BINS: f64 = 64.0;
pub const HISTORY_CROWD: usize = 72;
pub const HISTORY_CAPACITY: usize = 456;

/// The same for the long-term rate; bins to a floor window. Size.
pub const ARCHIVE_BINS: f64 = 64.0;
pub const ARCHIVE_CROWD: usize = 72;
pub const ARCHIVE_CAPACITY: usize = 96;

/// Candidates of the two sliding minima: of the floor window and of the shift window. Size.
pub const FLOOR_CANDIDATES: usize = 1024;
pub const SHIFT_CANDIDATES: usize = 96;

/// Blocks of the floor window, 10.5 minutes of a week, and of the shift window. Size.
pub const FLOOR_BLOCKS: f64 = 960.0;
pub const SHIFT_BLOCKS: f64 = 32.0;

/// Polls that a longer path is waited for at least. Papers.
pub const SHIFT_POLLS: f64 = 100.0;

/// A longer path is believed when this many exchanges of the shift window are near the shortest. Mere congestion has
/// its shortest round trips far apart. Ours, by sweep.
pub const SHIFT_WITNESSES: usize = 5;

/// With fewer exchanges a fall of the floor is no news. Sweep.
pub const SETTLED: u64 = 32;

/// The poll is smoothed over this many exchanges; a longer gap counts as this many polls and seconds. Sweep.
pub const POLL_MEMORY: f64 = 16.0;
pub const POLL_REACH: f64 = 4.0;

/// A gap is longer than this many polls and than this part of the shift window. Sweep.
pub const GAP_POLLS: f64 = 16.0;
pub const GAP_PART: f64 = 0.25;

/// A path with a floor above this is a far one, whose noise is larger. s. Papers.
pub const FAR_FLOOR: f64 = 3e-3;

/// A shift of the path, Eshift, in timestamp limits, and the factor for far paths. Papers.
pub const SHIFT: f64 = 10.0;
pub const FAR_SHIFT: f64 = 3.0;

/// The largest scale of the weights, Eoffset, in timestamp limits, and the least where it follows the noise. Papers;
/// the least is ours.
pub const OFFSET_SCALE: f64 = 10.0;
pub const LEAST_OFFSET_SCALE: f64 = 0.1;

/// The largest total error with which the offset is corrected, in scales, near and far. Papers.
pub const OFFSET_QUALITY: f64 = 3.0;
pub const FAR_OFFSET_QUALITY: f64 = 6.0;

/// The largest correction that is believed, in timestamp limits, and its growth in rate errors. Papers.
pub const OFFSET_SANITY: f64 = 100.0;
pub const OFFSET_SANITY_GROWTH: f64 = 20.0;

/// The best total error is at most this many scales: its weight is then at least exp(-9). Ours.
pub const BEST_ERROR_PART: f64 = 3.0;

/// The window need not reach farther back than this many scales of ageing: exp(-16). Size.
pub const AGEING_REACH: f64 = 4.0;

/// The largest point error of an exchange of a long-term pair, Ep, in timestamp limits. Papers.
pub const PAIR_POINT: f64 = 3.0;

/// The rate error is this many times a pair error that is always taken, at first and once the history is long. Papers.
pub const RATE_QUALITY: f64 = 5.0;
pub const RATE_QUALITY_LATE: f64 = 50.0;

/// The history is long from this part of the floor window on. Ours.
pub const LONG_PART: f64 = 0.1;

/// Two successive rates differ by less than this many rate errors. Papers.
pub const RATE_SANITY: f64 = 3.0;

/// The part of what has been seen at either end that a warm-up compares, and the stamps' noise there, in timestamp
/// limits. Papers.
pub const WARM_UP_PART: f64 = 0.25;
pub const WARM_UP_NOISE: f64 = 2.0;

/// The far exchange of a long-term pair lies at least this part of the history back, and is compared with one of this
/// part of Ep. Papers, ours.
pub const FAR_PART: f64 = 0.5;
pub const ORDINARY_PART: f64 = 0.5;

/// The local rate looks this many offset windows back, and its ends are this part of that. Papers.
pub const LOCAL_WINDOWS: f64 = 5.0;
pub const LOCAL_END: f64 = 0.2;

/// The local rate is measured again after this part of its window; in less it does not change. Size.
pub const LOCAL_STEP: f64 = 0.01;

/// The least ageing of an offset, s/s, and the least squared error of a slope. Rounding.
pub const LEAST_AGEING: f64 = 1e-12;
pub const LEAST_SQUARED_ERROR: f64 = 1e-30;

/// The shortest window. s. Rounding.
pub const SHORTEST_WINDOW: f64 = 1.0;

/// A point error so large that its weight is nothing, yet finite. s.
pub const WORTHLESS: f64 = 1e30;
