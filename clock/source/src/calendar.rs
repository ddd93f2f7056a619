//! The end of a month, where leap seconds happen.

use ffclock_units::{Moment, Server, Span};

const DAY_SECONDS: i64 = 86_400;
/// From 1 March of the year 0 of the Gregorian calendar to 1 January 1970.
const DAYS_TO_1970: i64 = 719_468;
/// The calendar repeats after 400 years.
const CYCLE_DAYS: i64 = 146_097;

/// The midnight at the end of the month of `moment`, by the Gregorian calendar: a leap second announced at `moment`
/// will happen there (ITU-R TF.460).
pub fn month_end(moment: Moment<Server>) -> Moment<Server> {
    let day = moment.whole_seconds().div_euclid(DAY_SECONDS) + DAYS_TO_1970;
    let (cycle, day_of_cycle) = (day.div_euclid(CYCLE_DAYS), day.rem_euclid(CYCLE_DAYS));
    let end = cycle * CYCLE_DAYS + month_end_within_cycle(day_of_cycle) - DAYS_TO_1970;
    Moment::from_origin(Span::from_secs(end.saturating_mul(DAY_SECONDS)))
}

/// Years begin on 1 March here, so that the day which is sometimes missing is the last one.
fn month_end_within_cycle(day: i64) -> i64 {
    // Never too small, since no year has less than 365 days; at most one too large, since a cycle has 97 days more
    // than that.
    debug_assert!((0..CYCLE_DAYS).contains(&day), "a day of the cycle");
    let guess = day / 365;
    let year = if year_begin(guess) > day { guess - 1 } else { guess };
    let first = year_begin(year);
    debug_assert!((first..year_begin(year + 1)).contains(&day), "the year that the day is in");
    // Months from March on have 31 30 31 30 31 days, twice, and then 31 and what the year leaves.
    let end = (1..12).map(|months| first + month_begin(months)).find(|&begin| begin > day);
    end.unwrap_or_else(|| year_begin(year + 1))
}

/// The first day of the year that begins `years` after the first of the cycle.
const fn year_begin(years: i64) -> i64 {
    365 * years + years / 4 - years / 100 + years / 400
}

/// Days before the month that begins `months` after 1 March: five months have 153 days.
const fn month_begin(months: i64) -> i64 {
    (153 * months + 2) / 5
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(day: i64) -> Moment<Server> {
        Moment::from_origin(Span::from_secs(day * DAY_SECONDS))
    }

    #[test]
    fn known_leaps_happened_at_the_end_of_their_month() {
        for (within, midnight) in [
            (1_483_228_799, 1_483_228_800), // 2016-12-31
            (1_433_116_800, 1_435_708_800), // 2015-06
            (1_341_000_000, 1_341_100_800), // 2012-06-29
            (1_483_228_800, 1_485_907_200), // 2017-01-01: the end of January
        ] {
            let moment = Moment::from_origin(Span::from_secs(within) + Span::from_millis(999));
            assert_eq!(month_end(moment).whole_seconds(), midnight);
        }
    }

    /// Walks through 1600..2800 month by month with the rule of the Gregorian calendar.
    #[test]
    fn twelve_centuries_day_by_day() {
        let leap_year = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let mut first = -135_140; // 1600-01-01
        for year in 1600..2800 {
            let february = if leap_year(year) { 29 } else { 28 };
            for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
                for day in first..first + length {
                    assert_eq!(month_end(days(day)), days(first + length), "{year}, day {day}");
                }
                first += length;
            }
            if year == 1969 {
                assert_eq!(first, 0);
            }
        }
    }

    #[test]
    fn the_ends_of_the_scale_do_not_panic() {
        for units in [i128::MIN, i128::MAX] {
            let end = month_end(Moment::from_origin(Span::from_units(units)));
            assert_eq!(end.since_origin().is_negative(), units < 0);
        }
    }
}
