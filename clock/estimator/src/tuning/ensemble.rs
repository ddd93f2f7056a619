//! One clock from several servers.

/// The standard deviation of a path's asymmetry, as a part of its round trip: the forward delay is half of the round
/// trip and has a standard deviation of half this part of the round trip. Measured paths of the Internet: most within a
/// tenth.
pub const ASYMMETRY_PART: f64 = 0.1;

/// The standard deviation of a server's error as a part of the largest error that it claims: 1/sqrt(3), as of a
/// rectangular distribution (Guide to the expression of uncertainty in measurement, 4.3.7).
pub const CLAIM_PART: f64 = 0.577_350_269_189_625_8;

/// The least systematic variance of a server. us^2: 0.1 us. Rounding: claims are in units of 15 us.
pub const LEAST_SYSTEMATIC: f64 = 0.01;

/// A server becomes suspect this far from the mean of the others, in standard deviations of their difference, and is no
/// longer suspect this near to it. False alarm: three standard deviations.
pub const SUSPECT: f64 = 3.0;
pub const NO_LONGER_SUSPECT: f64 = 2.0;

/// A packet that comes before its floor by this many standard deviations of what is predicted asks whether a server
/// left. Size: one in a thousand does, of those that queue as they are expected to.
pub const EARLY: f64 = 2.0;

/// A departure shows in this many exchanges of its server at least. The least that is more than one.
pub const DEPARTURE_WITNESSES: usize = 2;

/// How much likelier a departure must make the last exchanges. Nats. False alarm: exp(-10) for each of its onsets.
pub const DEPARTURE_GAIN: f64 = 10.0;

/// How much likelier than a change of its path. Nats. On a busy host a restless path explains as much: of more than 90
/// gains above that honest servers showed in 19 minutes (`ffclock-lab demo liar --before 70`), one is over this.
pub const DEPARTURE_OVER_PATH: f64 = 1.0;

/// It is over when the server is back to within this many standard deviations. Not swept.
pub const RETURNED: f64 = 1.0;

/// [`RETURNED`] deviations are at most this part of how far away it was known to be, or nothing is known of its place.
/// The part for which it is as far from there as from here. Not swept.
pub const KNOWN_PART: f64 = 0.5;

/// A server's time moves both floors alike and oppositely, so that their sum stays. It was the path when the sum moved
/// by more than this part of what the difference did, and this many times [`RETURNED`] deviations. False alarm: two
/// standard deviations. The part is half way between a time (0) and a change of one way (1). Not swept.
pub const UNLIKE_PART: f64 = 0.5;
pub const UNLIKE_ROOM: f64 = 2.0;

/// Exchanges of all servers that a change can lie back. Size: each costs a copy of the bank, 190 kB with 16 servers.
pub const MOST_KEPT: usize = 96;

/// The servers' own clocks are compared over windows of 2^k to 2^(k + 1) polls, for this many k from this one on. Size:
/// shorter ones are for the search for departures; with polls of 16 s the longest are 9 to 18 hours.
pub const FIRST_WINDOW: u32 = 3;
pub const WINDOWS: usize = 9;

/// Within a window a server's systematic error changes by this fraction of its standard deviation. An assumption, which
/// no sweep has tested.
pub const STEADY_PART: f64 = 0.1;

/// Beside a server that left, the systematic errors of the others change by [`STEADY_PART`] of their standard deviation
/// in this time, as a random walk, s: a day. An assumption, which no sweep has tested.
pub const STEADY_FOR: f64 = 86_400.0;

/// Servers that left of which the last word is kept. Size. The nearest and the next.
pub const MOST_TESTIMONIES: usize = 2;

/// Movements of clocks can be one within this many standard deviations of each. False alarm: three.
pub const WITHIN_REACH: f64 = 3.0;

/// A server has crept away when its movement is this many standard deviations from that of the others. False alarm:
/// 6e-7 for each comparison that has nothing in common with the one before.
pub const CREPT: f64 = 5.0;
