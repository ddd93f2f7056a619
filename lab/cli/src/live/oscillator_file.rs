//! The raw counter of one program as a function of the host's clock, in the file that the interposer maps: a sampled
//! realisation of the simulator's oscillator.

use crate::failure::Failure;
use ffclock_sim::Oscillator;
use ffclock_units::Span;
use std::fs;
use std::path::Path;

const MAGIC: u64 = u64::from_le_bytes(*b"FFLIVEO1");
/// Magic number, origin, origin of the counter, interval, number of knots.
const HEADER: usize = 40;
/// Between two knots [ns]; in between the counter runs evenly.
const INTERVAL_NS: i64 = 250_000_000;

/// The oscillator, sampled.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SampledOscillator {
    origin_ns: i64,
    raw_origin_ns: i64,
    phase_ns: Vec<f64>,
}

/// Where an oscillator begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct OscillatorStart {
    /// The host's clock [ns].
    pub(super) host_ns: i64,
    /// The raw counter then [ns].
    pub(super) raw_ns: i64,
}

impl SampledOscillator {
    /// Looks at an oscillator from `start` on for as long as `length`.
    pub(super) fn sample(mut oscillator: Oscillator, start: OscillatorStart, length: Span) -> Self {
        let knots = (length.as_nanos() / i128::from(INTERVAL_NS) + 2).max(2);
        let phase_ns = (0..knots).map(|knot| oscillator.phase(Span::from_nanos(knot * i128::from(INTERVAL_NS))) * 1e9);
        SampledOscillator { origin_ns: start.host_ns, raw_origin_ns: start.raw_ns, phase_ns: phase_ns.collect() }
    }

    /// The raw counter [ns] when the host's clock shows `host_ns`; the interposer's `raw_at` is the same function.
    pub(super) fn raw_at(&self, host_ns: i64) -> i64 {
        let since = host_ns - self.origin_ns;
        let last = self.phase_ns.len().saturating_sub(2) as i64;
        let knot = (since / INTERVAL_NS).clamp(0, last);
        let part = (since - knot * INTERVAL_NS) as f64 / INTERVAL_NS as f64;
        let [begin, end] = [knot, knot + 1].map(|knot| self.phase_ns.get(knot as usize).copied().unwrap_or_default());
        self.raw_origin_ns + since + (begin + part * (end - begin)).round() as i64
    }

    /// Writes the file.
    pub(super) fn write(&self, path: &Path) -> Result<(), Failure> {
        let numbers = [self.origin_ns, self.raw_origin_ns, INTERVAL_NS, self.phase_ns.len() as i64];
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
        bytes.extend(self.phase_ns.iter().flat_map(|phase| phase.to_ne_bytes()));
        fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    /// Reads a file that was written.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        SampledOscillator::parse(&bytes).ok_or_else(|| format!("{}: not an oscillator file", path.display()).into())
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (header, knots) = bytes.split_at_checked(HEADER)?;
        let word = |index: usize| header.get(8 * index..8 * index + 8)?.try_into().ok().map(i64::from_ne_bytes);
        let count = usize::try_from(word(4)?).ok()?;
        if word(0)? as u64 != MAGIC || word(3)? != INTERVAL_NS || count < 2 || knots.len() != 8 * count {
            return None;
        }
        let phase_ns = knots.as_chunks::<8>().0.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect();
        Some(SampledOscillator { origin_ns: word(1)?, raw_origin_ns: word(2)?, phase_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_sim::scenario::{Fraction, OscillatorSpec};
    use ffclock_units::Rate;

    const START: OscillatorStart = OscillatorStart { host_ns: 1_700_000_000_000_000_000, raw_ns: 5_000_000_000 };

    fn fast() -> SampledOscillator {
        let spec = OscillatorSpec { skew: Fraction(Rate::from_ppm(40.0)), ..OscillatorSpec::silent() };
        SampledOscillator::sample(Oscillator::new(&spec, 1), START, Span::from_secs(100))
    }

    #[test]
    fn a_fast_oscillator_counts_more_also_beyond_its_knots() {
        let oscillator = fast();
        assert_eq!(oscillator.raw_at(START.host_ns), START.raw_ns);
        assert_eq!(oscillator.raw_at(START.host_ns + 10_000_000_000), START.raw_ns + 10_000_400_000);
        assert_eq!(oscillator.raw_at(START.host_ns + 1_000_000_000_000), START.raw_ns + 1_000_040_000_000);
    }

    #[test]
    fn a_file_comes_back_as_it_was_and_a_torn_one_not_at_all() {
        let path = std::env::temp_dir().join(format!("ffclock-live-oscillator-{}", std::process::id()));
        fast().write(&path).unwrap();
        assert_eq!(SampledOscillator::read(&path).unwrap(), fast());
        let bytes = fs::read(&path).unwrap();
        assert!((0..bytes.len()).step_by(7).all(|length| SampledOscillator::parse(&bytes[..length]).is_none()));
        fs::remove_file(&path).unwrap();
    }
}
