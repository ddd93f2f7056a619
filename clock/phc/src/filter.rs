//! A Kalman filter of two states, the offset and the rate of a clock against the counter.
//!
//! The noise of a reading is not known in advance and is learned from what the readings say against each other: of a
//! reading within a narrow bracket most is a side that all of them share, which no average takes away and which is kept
//! apart, and a wide bracket is one that an interrupt came into. That of the oscillators is physics: white frequency
//! noise and a random walk of the frequency, as quartz has them.

/// White frequency noise of both oscillators [s^2/s]: 1 ns after 1 s.
const WHITE: f64 = 1e-18;
/// Random walk of the frequency [(s/s)^2/s]: 1e-9 after 1 s, which is a room whose temperature changes fast.
const WANDER: f64 = 1e-18;
/// What is assumed of a rate of which nothing is known yet [(s/s)^2]: 500 ppm.
const RATE_UNKNOWN: f64 = 500e-6 * 500e-6;
/// What is assumed of the noise of a reading, until readings say more [s^2]: 100 ns.
const NOISE_UNKNOWN: f64 = 1e-14;
/// The least noise of a reading [s^2]: clocks are read in whole nanoseconds.
const NOISE_LEAST: f64 = 0.3e-9 * 0.3e-9;
/// The noise is the average over this number of readings.
const NOISE_OVER: f64 = 64.0;
/// Readings that lie on one side of the line: the average of what they are away from it, each in its own standard
/// deviations, over this number of readings.
const LEAN_OVER: f64 = 8.0;
/// A line that fits has an average of standard deviation 1/sqrt(15); four of these make one reading in 16,000 suspect.
const LEAN_MOST: f64 = 1.03;
/// A series of readings has some ten: this part of the gap before is kept with each.
const GAP_KEPT: f64 = 0.9;
/// A reading is off the line where it is further away than its bracket and this number of standard deviations.
const OFF_LINE: f64 = 6.0;

/// Offset and rate, and how well they are known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filter {
    /// The rate against the nominal one [s/s].
    pub(crate) rate: f64,
    /// Variances of the offset [s^2] and of the rate, and their covariance [s].
    offset_variance: f64,
    covariance: f64,
    rate_variance: f64,
    /// The most that the brackets' unknown sides can have moved the offset [s].
    bracket: f64,
    /// Half the width of the brackets that are not disturbed [s].
    narrow: f64,
    /// The variance of a reading in such a bracket [s^2].
    noise: f64,
    readings: f64,
    lean: f64,
    /// The time between the latest readings that are not of one series [s]: a change of rate shows after it.
    gap: f64,
}

/// What a reading is against the line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fit {
    /// On the line; this is added to the offset [s].
    Fits(f64),
    /// On the line, but the readings before it lie on the same side; this is added to the offset [s].
    Leans(f64),
    /// Off the line.
    Off,
}

/// A reading against what the filter expects of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Innovation {
    /// What the clock shows more than expected [s].
    pub(crate) more: f64,
    /// Half the width of its bracket [s].
    pub(crate) half_width: f64,
}

impl Filter {
    /// A filter of which the first reading has this half width [s].
    pub(crate) fn new(half_width: f64) -> Self {
        let mut filter = Filter {
            rate: 0.0,
            offset_variance: 0.0,
            covariance: 0.0,
            rate_variance: RATE_UNKNOWN,
            bracket: half_width,
            narrow: half_width,
            noise: NOISE_UNKNOWN,
            readings: 1.0,
            lean: 0.0,
            gap: 0.0,
        };
        filter.begin_offset(half_width);
        filter
    }

    fn begin_offset(&mut self, half_width: f64) {
        self.offset_variance = self.reading_variance(half_width);
        self.covariance = 0.0;
        self.bracket = half_width;
        self.lean = 0.0;
    }

    /// Begins again at a reading that was off the line. The jump may have been a step, or a steered rate since the
    /// reading before.
    pub(crate) fn begin_again(&mut self, off: &Innovation) {
        self.begin_offset(off.half_width);
        self.doubt_rate(off);
    }

    fn doubt_rate(&mut self, off: &Innovation) {
        let steered = off.more / self.gap.max(1e-6);
        self.rate_variance = (self.rate_variance + steered * steered).min(RATE_UNKNOWN);
    }

    /// Goes on by this time [s].
    pub(crate) fn advance(&mut self, passed: f64) {
        let (offset, both) = self.after(passed);
        self.offset_variance = offset;
        self.covariance = both;
        self.rate_variance += WANDER * passed.abs();
        self.gap = passed.max(GAP_KEPT * self.gap);
    }

    fn after(&self, passed: f64) -> (f64, f64) {
        let size = passed.abs();
        let offset = self.offset_variance + 2.0 * passed * self.covariance + passed * passed * self.rate_variance;
        let walked = WHITE * size + WANDER * size * size * size / 3.0;
        (offset.max(0.0) + walked, self.covariance + passed * self.rate_variance + WANDER * passed * size / 2.0)
    }

    /// Takes a reading; [`advance`](Self::advance) was called before.
    pub(crate) fn take(&mut self, reading: &Innovation) -> Fit {
        self.narrow += ((reading.half_width - self.narrow) / NOISE_OVER).min(0.01 * self.narrow);
        self.narrow = self.narrow.min(reading.half_width);
        let variance = self.offset_variance + self.reading_variance(reading.half_width);
        let deviation = libm::sqrt(variance);
        if reading.more.abs() > reading.half_width + self.bracket + OFF_LINE * deviation {
            return Fit::Off;
        }
        self.lean += (reading.more / deviation - self.lean) / LEAN_OVER;
        let leans = self.lean.abs() > LEAN_MOST;
        if leans {
            self.lean = 0.0;
            self.offset_variance += reading.more * reading.more;
            self.doubt_rate(reading);
        } else {
            self.learn_noise(reading.more * reading.more - (variance - self.noise));
        }
        let added = self.correct(reading);
        if leans { Fit::Leans(added) } else { Fit::Fits(added) }
    }

    /// From a reading that the filter expected well: after a long time without readings most of what is seen is the
    /// way of the clock.
    fn learn_noise(&mut self, seen: f64) {
        if self.offset_variance > self.noise {
            return;
        }
        self.readings = (self.readings + 1.0).min(NOISE_OVER);
        self.noise = (self.noise + (seen - self.noise) / self.readings).max(NOISE_LEAST);
    }

    fn reading_variance(&self, half_width: f64) -> f64 {
        let beyond = (half_width - 2.0 * self.narrow).max(0.0);
        self.noise + beyond * beyond
    }

    fn correct(&mut self, reading: &Innovation) -> f64 {
        let variance = self.offset_variance + self.reading_variance(reading.half_width);
        let (to_offset, to_rate) = (self.offset_variance / variance, self.covariance / variance);
        self.rate += to_rate * reading.more;
        self.rate_variance = (self.rate_variance - to_rate * self.covariance).max(0.0);
        self.covariance *= 1.0 - to_offset;
        self.offset_variance *= 1.0 - to_offset;
        self.bracket += to_offset * (reading.half_width - self.bracket);
        to_offset * reading.more
    }

    /// The most that a stamp may be away from the line which was given this time [s] after the latest reading: three
    /// standard deviations of the line and of the stamp itself, and the side of the brackets.
    pub(crate) fn error_after(&self, passed: f64) -> f64 {
        self.bracket + 3.0 * libm::sqrt(self.after(passed).0 + self.noise)
    }

    /// The standard deviation of the rate [s/s].
    pub(crate) fn rate_deviation(&self) -> f64 {
        libm::sqrt(self.rate_variance)
    }

    /// The standard deviation of one reading [s].
    pub(crate) fn noise_deviation(&self) -> f64 {
        libm::sqrt(self.noise)
    }
}
