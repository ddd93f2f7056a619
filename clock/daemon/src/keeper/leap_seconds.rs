//! What the log says about leap seconds.

use super::Keeper;
use crate::journal::{Entry, Weight};
use ffclock_units::{LeapAnnouncement, Moment, Span, Utc};

impl Keeper<'_> {
    /// Tells which leap second is announced, if that has changed. What the journal holds back now, because it wrote the
    /// like a moment ago, comes with a later publication: the last word in the log is true.
    pub(super) fn tell_leap(&mut self) {
        let announced = self.leaps.announced();
        if announced == self.told_leap {
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
            self.told_leap = announced;
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
