//! Which lines of a list were left out, and why.

use super::PassedOver;
use serde::Serialize;

/// Why a line is left out of a log, which is partial for that. The names are those of the counts, [`PassedOver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineFault {
    /// It is no message.
    Malformed,
    /// From a sender that was not named.
    Strangers,
    /// From a sender that had been heard with this id.
    Repeated,
    /// Perceived earlier than the line before.
    OutOfOrder,
    /// It took longer than messages may.
    TooLong,
    /// A time of it is more than 50 days from those of the others.
    Remote,
}

/// A line that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FaultyLine {
    /// Its place in the list: the line of a text, whose header is line 1, or the row of a table, from 1 on.
    pub line: u64,
    /// Why it is left out.
    pub reason: LineFault,
}

impl FaultyLine {
    /// At most this number of them is named; all are counted.
    pub const NAMED_MAX: usize = 10;
}

impl PassedOver {
    /// Why the line that was taken since `before` was left out, if it should not have been.
    pub(super) const fn fault_since(&self, before: &PassedOver) -> Option<LineFault> {
        if self.strangers > before.strangers {
            Some(LineFault::Strangers)
        } else if self.repeated > before.repeated {
            Some(LineFault::Repeated)
        } else if self.out_of_order > before.out_of_order {
            Some(LineFault::OutOfOrder)
        } else if self.too_long > before.too_long {
            Some(LineFault::TooLong)
        } else if self.remote > before.remote {
            Some(LineFault::Remote)
        } else {
            None
        }
    }
}

/// The first lines, by their place, that are left out.
#[derive(Debug, Default)]
pub(super) struct FaultyLines(Vec<FaultyLine>);

impl FaultyLines {
    /// Lines come in the order of their perception, which is not that of their places.
    pub(super) fn note(&mut self, line: u64, reason: LineFault) {
        let faulty = FaultyLine { line, reason };
        let place = self.0.partition_point(|known| *known <= faulty);
        if place < FaultyLine::NAMED_MAX {
            self.0.insert(place, faulty);
            self.0.truncate(FaultyLine::NAMED_MAX);
        }
    }

    pub(super) fn first(self) -> Vec<FaultyLine> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_places_are_named_in_whatever_order_they_come() {
        let mut lines = FaultyLines::default();
        (0..100).map(|number| 2 + number * 37 % 100).for_each(|line| lines.note(line, LineFault::Repeated));
        let named: Vec<u64> = lines.first().iter().map(|faulty| faulty.line).collect();
        assert_eq!(named, (2..2 + FaultyLine::NAMED_MAX as u64).collect::<Vec<_>>());
    }
}
