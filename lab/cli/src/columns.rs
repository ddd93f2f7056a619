//! The tables of an answer for people.

use crate::text::{self, Align};
use ffclock_units::Direction;

/// Rows below a heading with the names of the columns, separated by bars. A `>` before a name sets the cells of its
/// column at the right, as numbers stand.
pub(crate) fn table(heading: &str, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let column = |name| <str>::strip_prefix(name, '>').map_or((name, Align::Left), |number| (number, Align::Right));
    let columns: Vec<(&str, Align)> = heading.split('|').map(column).collect();
    text::table(&columns, &rows.into_iter().collect::<Vec<_>>())
}

/// Those of the counts that are above zero, with their words, each after a comma.
pub(crate) fn counted<const N: usize>(counts: [(u64, &str); N]) -> String {
    let above_zero = counts.into_iter().filter(|(count, _)| *count > 0);
    above_zero.map(|(count, what)| format!(", {count} {what}")).collect()
}

/// Nanoseconds, shown as microseconds.
pub(crate) fn us(ns: f64) -> String {
    format!("{:.2}", ns / 1e3)
}

/// The way of a packet as a cell.
pub(crate) fn way(direction: Direction) -> String {
    match direction {
        Direction::Outgoing => "out".to_owned(),
        Direction::Incoming => "in".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_with_a_mark_is_set_right() {
        let rows = [["tsc", "7"], ["raw", "1234"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table("COUNTER|>N", rows), "COUNTER     N\ntsc         7\nraw      1234\n");
    }
}
