//! The rows of a batch as events of the run.

use crate::analysis::AnalysisError;
use crate::log::{EventColumns, Optional, kind};

/// The fields of an event whose process belongs to the run.
#[derive(Clone, Copy)]
pub(super) struct EventRow {
    pub(super) process: usize,
    pub(super) peer: usize,
    pub(super) round: u64,
}

/// A row other than a perception or a transmission.
#[derive(Clone, Copy)]
pub(super) struct RareRow {
    /// Its place in the batch.
    pub(super) number: usize,
    pub(super) kind: i32,
    pub(super) row: EventRow,
    pub(super) time_ps: i64,
}

/// A column in which only switches have values, read from switch to switch.
struct SwitchColumn<'a> {
    column: &'a Optional,
    /// Whether there are as many values as switches. Then each switch takes the next value, if it has one.
    is_regular: bool,
    row: usize,
    values_before: usize,
}

impl<'a> SwitchColumn<'a> {
    fn new(column: &'a Optional, switches: usize) -> Self {
        let is_regular = column.values.len() == switches;
        SwitchColumn { column, is_regular, row: 0, values_before: 0 }
    }

    /// The value of a switch in `row`; rows rise.
    fn at(&mut self, row: usize) -> Option<i64> {
        let present = *self.column.present.get(row)? != 0;
        if !self.is_regular {
            debug_assert!(self.row <= row, "rows rise");
            let between = self.column.present.get(self.row..row)?;
            self.values_before += between.iter().filter(|&&present| present != 0).count();
            self.row = row;
        }
        let value = self.column.values.get(self.values_before).copied().filter(|_| present);
        self.values_before += usize::from(self.is_regular);
        value
    }
}

/// The columns that only switches have.
pub(super) struct SwitchColumns<'a> {
    from: SwitchColumn<'a>,
    decided: SwitchColumn<'a>,
}

/// What only switches have: the round they leave, and the counter when they were decided.
pub(super) struct SwitchFields {
    pub(super) from: i64,
    pub(super) decided: i64,
}

impl<'a> SwitchColumns<'a> {
    pub(super) fn of(batch: &'a EventColumns) -> Self {
        let is_switch = |&&kind: &&i32| kind == kind::ADVANCE || kind == kind::CATCH_UP;
        let switches = batch.kind.iter().filter(is_switch).count();
        SwitchColumns {
            from: SwitchColumn::new(&batch.from_round, switches),
            decided: SwitchColumn::new(&batch.decided, switches),
        }
    }

    /// The fields of the switch in row `number`; rows rise.
    pub(super) fn at(&mut self, number: usize) -> Result<SwitchFields, AnalysisError> {
        match (self.from.at(number), self.decided.at(number)) {
            (Some(from), Some(decided)) => Ok(SwitchFields { from, decided }),
            _ => Err(fault(number, "a switch needs from_round and decided".to_owned())),
        }
    }
}

/// An impossible event in row `number` of the batch.
pub(super) fn fault(number: usize, fault: String) -> AnalysisError {
    AnalysisError::Event { row: number + 1, fault }
}

/// An event of a process that the run does not have.
pub(super) fn no_process(number: usize, process: i32) -> AnalysisError {
    fault(number, format!("{process} is no process of this run"))
}
