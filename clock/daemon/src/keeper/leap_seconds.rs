//! What the log says about leap seconds.

use super::Keeper;
use crate::journal::{Entry, Weight};
use ffclock_units::{LeapAnnouncement, Moment, Span, Utc};

impl Keeper<'_> {
    /// Logs which leap second is announced, if that has changed. If the journal holds the entry back because it wrote
    /// one of the kind a moment ago, a later publication logs it, so that the newest entry in the log is always true.
    pub(super) fn log_leap(&mut self) {
        let announced = self.leaps.announced();
        if announced == self.logged_leap {
            return;
        }
        let detail = announced.map_or_else(String::new, in_words);
        let entry = if announced.is_some() {
            let kind = "a leap second is announced";
            Entry { weight: Weight::Notice, source: None, kind, detail: &detail }
        } else {
            let kind = "the announcement of a leap second was withdrawn";
            Entry { weight: Weight::Notice, source: None, kind, detail: &detail }
        };
        if self.context.journal.log_state(&entry) {
            self.logged_leap = announced;
        }
    }
}

fn in_words(leap: LeapAnnouncement) -> String {
    let (year, month, day) = Moment::<Utc>::from_origin(Span::from_secs(leap.utc_second)).civil_date();
    format!("{:+} s before {year:04}-{month:02}-{day:02} 00:00:00 UTC", leap.change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leap_second_has_a_date() {
        let leap = LeapAnnouncement { utc_second: 1_483_228_800, change: 1 };
        assert_eq!(in_words(leap), "+1 s before 2017-01-01 00:00:00 UTC");
    }
}
