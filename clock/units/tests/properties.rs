//! What must hold for any measure whatever.

use ffclock_units::{
    Bound, Counter, Estimate, GrowthRate, LeapAnnouncement, LeapTable, Moment, Period, Rate, Span, StandardUncertainty,
    Status, Ticks, Utc,
};
use proptest::prelude::*;

fn any_span() -> impl Strategy<Value = Span> {
    prop_oneof![any::<i128>().prop_map(Span::from_units), any::<i64>().prop_map(|n| Span::from_nanos(i128::from(n)))]
}

fn any_period() -> impl Strategy<Value = Period> {
    (1u64 << 63.., 0u8..60).prop_map(|(mantissa, shift)| Period::from_parts(mantissa, shift).expect("in range"))
}

proptest! {
    /// Exact: the product of the parts as whole numbers, rounded down once.
    #[test]
    fn ticks_become_time_exactly(period in any_period(), ticks in any::<i64>()) {
        let exact = (i128::from(ticks) * i128::from(period.mantissa())) >> period.shift();
        prop_assert_eq!(period * Ticks::from_raw(ticks), Span::from_units(exact));
    }

    /// In both directions from its reference, and across a turn of the counter: the time on the line to the last bit,
    /// the error figures as far from the reference as the line says.
    #[test]
    fn an_estimate_becomes_a_time_on_its_line(period in any_period(), counter in any::<u64>(), ticks in any::<i64>(), units in any::<u32>()) {
        let counter = Counter::from_raw(counter);
        let growth = GrowthRate::from_units(units.into());
        let estimate = Estimate {
            counter,
            time: Moment::from_origin(Span::from_secs(1_800_000_000)),
            period,
            uncertainty: StandardUncertainty::of(Span::from_micros(3)),
            noise: StandardUncertainty::ZERO,
            uncertainty_growth: GrowthRate::default(),
            bound: Bound::of(Span::from_micros(50)),
            bound_growth: growth,
            difference_period: period,
            difference_bound: GrowthRate::default(),
            difference_uncertainty: GrowthRate::default(),
            status: Status::WarmingUp,
        };
        let at = estimate.at(counter + Ticks::from_raw(ticks));
        let age = Span::from_units((i128::from(ticks) * i128::from(period.mantissa())) >> period.shift());
        prop_assert_eq!(at.time, estimate.time + age);
        prop_assert_eq!(at.bound, estimate.bound + growth.over(age));
        // The growth of nothing is rounded up to a unit.
        prop_assert_eq!(at.uncertainty.as_span(), Span::from_micros(3) + Span::from_units(1));
        prop_assert_eq!(at.status, Status::WarmingUp);
        let utc = at.to_utc(&LeapTable::built_in());
        prop_assert_eq!((utc.bound, utc.uncertainty, utc.status), (at.bound, at.uncertainty, at.status));
    }

    /// No time is lost or made when an interval is divided.
    #[test]
    fn parts_of_an_interval_add_up_to_a_rounding(period in any_period(), a in -(1i64 << 61)..(1 << 61), b in -(1i64 << 61)..(1 << 61)) {
        let whole = period * (Ticks::from_raw(a) + Ticks::from_raw(b));
        let parts = period * Ticks::from_raw(a) + period * Ticks::from_raw(b);
        prop_assert!((whole - parts).units().abs() <= 1);
    }

    #[test]
    fn a_counter_comes_back_after_a_round_trip(start in any::<u64>(), ticks in any::<i64>()) {
        let start = Counter::from_raw(start);
        let ticks = Ticks::from_raw(ticks);
        prop_assert_eq!((start + ticks) - start, ticks);
        prop_assert_eq!((start + ticks) - ticks, start);
    }

    #[test]
    fn a_period_survives_the_way_through_a_float(period in any_period()) {
        let back = Period::from_seconds(period.as_seconds()).unwrap_or(period);
        prop_assert!(back.relative_to(period).abs().as_fraction() < 3e-16);
    }

    /// The short way to a float gives the bits of the long one.
    #[test]
    fn seconds_are_rounded_once(units in any::<i128>(), shift in 0u32..127) {
        let units = units >> shift;
        prop_assert_eq!(Span::from_units(units).as_seconds().to_bits(), (units as f64 / 2f64.powi(64)).to_bits());
    }

    /// Never smaller, whatever the arguments; and not larger than a rounding makes it.
    #[test]
    fn growth_is_rounded_up(seconds in -1_000_000_000i64..1_000_000_000, units in any::<u64>()) {
        let grown = GrowthRate::from_units(units).over(Span::from_secs(seconds)).as_span().units();
        let exact = i128::from(seconds.unsigned_abs()) * i128::from(units);
        prop_assert!(grown >= exact && grown <= exact + 1);
    }

    #[test]
    fn a_bound_never_shrinks(a in any_span(), b in any_span(), growth in any::<f64>()) {
        let (a, b) = (Bound::of(a), Bound::of(b));
        prop_assert!(a + b >= a && a + b >= b);
        prop_assert!(a.halved() + a.halved() >= a);
        prop_assert!(a.grown(b.as_span(), GrowthRate::of(Rate::from_fraction(growth))) >= a);
        prop_assert!(!Bound::from_seconds(growth).as_span().is_negative());
    }

    #[test]
    fn arithmetic_never_panics(a in any_span(), b in any_span(), seconds in any::<f64>()) {
        let _ = (a + b, a - b, -a, a.halved(), a.abs(), a.as_nanos(), a.as_seconds(), Span::from_seconds(seconds));
        let moment = Moment::<Utc>::from_origin(a);
        let _ = (moment + b, moment - b, moment.midpoint(Moment::from_origin(b)), moment.whole_seconds());
        let _ = (a.to_string(), Bound::of(a).to_string(), Bound::of(a).as_nanos_up(), Rate::from_fraction(seconds).to_string());
        let _ = Period::from_seconds(seconds).map(|period| (period.as_hertz(), period.ticks_in(a)));
    }

    #[test]
    fn texts_are_refused_or_understood(text in ".{0,40}") {
        if let Ok(span) = text.parse::<Span>() {
            prop_assert!(span.abs() < Span::from_secs(i64::MAX));
        }
        let _ = (text.parse::<Bound>(), text.parse::<Rate>());
    }

    /// Away from a second that is repeated or left out, UTC and TAI name the same moments.
    #[test]
    fn utc_and_tai_agree_there_and_back(seconds in 0i64..4_000_000_000, nanos in 0i128..1_000_000_000, change in prop_oneof![Just(1i8), Just(-1)]) {
        let leap = LeapAnnouncement { utc_second: 1_900_000_800, change };
        let moment = Moment::<Utc>::from_origin(Span::from_secs(seconds) + Span::from_nanos(nanos));
        for table in [LeapTable::built_in(), LeapTable::with(leap)] {
            let back = table.utc_from_tai(table.tai_from_utc(moment));
            prop_assert!((back - moment).abs() <= Span::from_secs(1));
            let near_leap = (seconds - leap.utc_second).abs() <= 1;
            prop_assert!(near_leap || back == moment);
        }
    }
}
