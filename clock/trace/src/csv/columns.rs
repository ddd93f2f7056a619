//! The columns that a CSV trace may have.

use crate::error::Fault;

/// A column with a meaning; anything else is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Sequence,
    Server,
    Epoch,
    Sent,
    ServerIn,
    ServerOut,
    Received,
    SentWidth,
    ReceivedWidth,
    Stratum,
    ReferenceId,
    Leap,
    RootDistance,
    RootDelay,
    RootDispersion,
    TrueSend,
    TrueReceive,
}

/// How many there are.
pub(super) const COUNT: usize = 17;

impl Column {
    /// All of them, in the order in which the writer puts them.
    pub(super) const ALL: [Column; COUNT] = [
        Column::Sequence,
        Column::Server,
        Column::Epoch,
        Column::Sent,
        Column::ServerIn,
        Column::ServerOut,
        Column::Received,
        Column::SentWidth,
        Column::ReceivedWidth,
        Column::Stratum,
        Column::ReferenceId,
        Column::Leap,
        Column::RootDistance,
        Column::RootDelay,
        Column::RootDispersion,
        Column::TrueSend,
        Column::TrueReceive,
    ];

    /// The name in a header.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Column::Sequence => "seq",
            Column::Server => "server",
            Column::Epoch => "epoch",
            Column::Sent => "Ta",
            Column::ServerIn => "Tb",
            Column::ServerOut => "Te",
            Column::Received => "Tf",
            Column::SentWidth => "Ta_width",
            Column::ReceivedWidth => "Tf_width",
            Column::Stratum => "stratum",
            Column::ReferenceId => "refid",
            Column::Leap => "leap",
            Column::RootDistance => "root_distance",
            Column::RootDelay => "root_delay",
            Column::RootDispersion => "root_dispersion",
            Column::TrueSend => "true_send",
            Column::TrueReceive => "true_recv",
        }
    }

    fn named(name: &str) -> Option<Column> {
        Column::ALL.into_iter().find(|column| column.name().eq_ignore_ascii_case(name))
    }

    /// Whether the column holds a time, which may be given as integer nanoseconds under the name with `_ns` behind it.
    const fn is_time(self) -> bool {
        matches!(self, Column::ServerIn | Column::ServerOut | Column::TrueSend | Column::TrueReceive)
    }
}

const REQUIRED: [Column; 4] = [Column::Sent, Column::ServerIn, Column::ServerOut, Column::Received];

/// The order of the columns in a file.
#[derive(Debug)]
pub(super) struct Columns {
    /// The column at each place, in order.
    pub(super) places: Vec<Option<Column>>,
    /// Which columns are in nanoseconds, by the number of the column.
    pub(super) nanoseconds: [bool; COUNT],
    /// The names without a meaning.
    pub(super) ignored: Vec<String>,
}

impl Columns {
    /// Reads the header; case and blanks around the names do not matter.
    pub(super) fn of_header(header: &[u8]) -> Result<Self, Fault> {
        let mut columns = Columns { places: Vec::new(), nanoseconds: [false; COUNT], ignored: Vec::new() };
        for cell in header.split(|byte| *byte == b',') {
            let name = String::from_utf8_lossy(cell);
            let name = name.trim().trim_matches('"').trim();
            columns.add(name)?;
        }
        match REQUIRED.iter().find(|column| !columns.has(**column)) {
            Some(missing) => Err(Fault::NoColumn(missing.name())),
            None => Ok(columns),
        }
    }

    fn add(&mut self, name: &str) -> Result<(), Fault> {
        let stem = name.len().checked_sub(3).filter(|at| name.is_char_boundary(*at)).map(|at| name.split_at(at));
        let plain = Column::named(name);
        let scaled = stem
            .filter(|(_, suffix)| suffix.eq_ignore_ascii_case("_ns"))
            .and_then(|(stem, _)| Column::named(stem).filter(|column| column.is_time()));
        let found = plain.or(scaled);
        if let Some(column) = found {
            if self.has(column) {
                return Err(Fault::ColumnTwice(column.name()));
            }
            self.nanoseconds[column as usize] = plain.is_none();
        } else {
            self.ignored.push(crate::error::shortened(name.as_bytes()));
        }
        self.places.push(found);
        Ok(())
    }

    /// Whether a column is there.
    pub(super) fn has(&self, column: Column) -> bool {
        self.places.contains(&Some(column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_found_by_its_name() {
        for (number, column) in Column::ALL.into_iter().enumerate() {
            assert_eq!(column as usize, number);
        }
        let names: Vec<&str> = Column::ALL.iter().map(|column| column.name()).collect();
        let columns = Columns::of_header(names.join(",").as_bytes()).unwrap();
        assert_eq!(columns.places, Column::ALL.map(Some));
    }

    #[test]
    fn names_may_differ_in_case_and_carry_their_unit() {
        let columns = Columns::of_header(b" ta ,TB_ns,\"Te\",tf,true_recv_NS,temperature,Ta_ns").unwrap();
        assert_eq!(columns.places[1], Some(Column::ServerIn));
        assert!(columns.nanoseconds[Column::ServerIn as usize] && !columns.nanoseconds[Column::ServerOut as usize]);
        assert_eq!(columns.ignored, ["temperature", "Ta_ns"]);
    }

    #[test]
    fn a_header_must_be_complete_and_unambiguous() {
        assert_eq!(Columns::of_header(b"Ta,Tb,Tf").unwrap_err(), Fault::NoColumn("Te"));
        assert_eq!(Columns::of_header(b"Ta,Tb,Te,Tf,Tb_ns").unwrap_err(), Fault::ColumnTwice("Tb"));
        assert!(Columns::of_header("Ta,Tb,Te,Tf,\u{e9}_ns,n\u{20ac}".as_bytes()).is_ok());
    }
}
