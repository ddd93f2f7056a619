//! Calendar dates as POSIX seconds.

/// Seconds of a day.
pub(super) const DAY: i64 = 86_400;
/// The Modified Julian Day of 1970-01-01.
const MJD_OF_1970: i64 = 40_587;

/// The POSIX second at which a Modified Julian Day begins.
pub(super) fn second_of_mjd(day: i64) -> i64 {
    (day - MJD_OF_1970) * DAY
}

/// The POSIX second at which a day of the Gregorian calendar begins; `None` for a day that does not exist or a year
/// past 9999.
pub(super) fn second_of_date(year: u64, month: u64, day: u64) -> Option<i64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let lengths = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let index = usize::try_from(month.checked_sub(1)?).ok()?;
    let length = *lengths.get(index)?;
    if !(1..=length).contains(&day) || !(1..=9999).contains(&year) {
        return None;
    }
    let years = year as i64 - 1;
    let before_year = years * 365 + years / 4 - years / 100 + years / 400;
    let before_month: u64 = lengths.iter().take(index).sum();
    const DAYS_TO_1970: i64 = 719_162;
    Some((before_year - DAYS_TO_1970 + (before_month + day - 1) as i64) * DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values: `date -u -d ... +%s`.
    #[test]
    fn dates_match_the_calendar() {
        for ((year, month, day), second) in [
            ((1970, 1, 1), 0),
            ((2000, 2, 29), 951_782_400),
            ((2016, 11, 9), 1_478_649_600),
            ((1900, 3, 1), -2_203_891_200),
            ((2100, 12, 31), 4_133_894_400),
        ] {
            assert_eq!(second_of_date(year, month, day), Some(second));
        }
        assert_eq!(second_of_mjd(59_786), 1_658_793_600);
    }

    #[test]
    fn days_that_do_not_exist_are_refused() {
        for (year, month, day) in
            [(2023, 2, 29), (2024, 13, 1), (2024, 0, 1), (2024, 1, 0), (2024, 4, 31), (0, 1, 1), (u64::MAX, 1, 1)]
        {
            assert_eq!(second_of_date(year, month, day), None);
        }
    }
}
