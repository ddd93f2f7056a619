//! What a hardware clock that another program keeps on time shows, as a time.

use ffclock_units::{LeapTable, Moment, Phc, Span, Tai, Utc};

/// The scale that such a clock is kept on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardwareScale {
    /// TAI, as IEEE 1588 has it (section 7.2).
    Tai,
    /// UTC.
    Utc,
}

/// A reading of such a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HardwareTime(pub Moment<Phc>);

/// 2020-01-01: a clock that shows less counts from its own start, and no program keeps it on time.
const EARLIEST: Span = Span::from_secs(1_577_836_800);

impl HardwareTime {
    /// The time that the clock shows; `None` where it shows the time since its own start.
    pub fn tai(self, scale: HardwareScale, leaps: &LeapTable) -> Option<Moment<Tai>> {
        let shown = self.0.since_origin();
        (shown >= EARLIEST).then(|| match scale {
            HardwareScale::Tai => Moment::from_origin(shown),
            HardwareScale::Utc => leaps.tai_from_utc(Moment::<Utc>::from_origin(shown)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scales_are_37_seconds_apart_and_a_clock_since_start_is_none() {
        let shown = HardwareTime(Moment::from_origin(Span::from_secs(1_700_000_000)));
        let [tai, utc] = [HardwareScale::Tai, HardwareScale::Utc].map(|scale| shown.tai(scale, &LeapTable::built_in()));
        assert_eq!(utc.unwrap() - tai.unwrap(), Span::from_secs(37));
        let since_start = HardwareTime(Moment::from_origin(Span::from_secs(86_400)));
        assert_eq!(since_start.tai(HardwareScale::Tai, &LeapTable::built_in()), None);
    }
}
