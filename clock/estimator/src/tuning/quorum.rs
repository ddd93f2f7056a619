//! The vote of the servers.

pub use super::guard::RATE_ROUNDING;

/// A challenger is selected when its bound is smaller by this power of a half of the holder's: a quarter. Size: the
/// selected server changes seldom; the time is that of all believed servers.
pub const MARGIN_SHIFT: u32 = 2;
