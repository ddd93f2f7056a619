//! The short format: 16 bits of seconds, 16 bits of fraction, unsigned (RFC 5905, section 6).

use ffclock_units::{Bound, Span};

/// From steps of 2^-16 s, the unit of a short value, to steps of 2^-64 s, the unit of a span.
const SHIFT: u32 = 48;

/// The span of a short value. The conversion is exact.
pub(crate) const fn to_span(short: u32) -> Span {
    Span::from_units((short as i128) << SHIFT)
}

/// The bound of a short value. The conversion is exact.
pub(crate) const fn to_bound(short: u32) -> Bound {
    Bound::of(to_span(short))
}

/// The short value of a span. It is rounded up, because it limits an error; a negative span becomes zero and a span
/// that is too long becomes the largest value.
pub(crate) const fn from_span(span: Span) -> u32 {
    let units = span.units();
    if units <= 0 {
        return 0;
    }
    let steps = ((units - 1) >> SHIFT) + 1;
    if steps > u32::MAX as i128 { u32::MAX } else { steps as u32 }
}

/// The short value of a bound, rounded up.
pub(crate) const fn from_bound(bound: Bound) -> u32 {
    from_span(bound.as_span())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_second_is_65536_steps() {
        assert_eq!(to_span(0x0001_8000), Span::from_millis(1500));
        assert_eq!(from_span(Span::from_millis(1500)), 0x0001_8000);
    }

    #[test]
    fn what_does_not_fit_rounds_up() {
        assert_eq!(from_bound(Bound::of(Span::from_units(1))), 1);
        assert_eq!(from_span(to_span(7) + Span::from_units(1)), 8);
        assert_eq!(from_bound(Bound::UNKNOWN), u32::MAX);
        assert_eq!(from_span(Span::from_secs(-1)), 0);
        assert_eq!(from_span(Span::ZERO), 0);
    }
}
