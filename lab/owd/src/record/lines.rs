//! A record as CSV.

use super::{COLUMNS, Cells, FORMAT, OwdRecord, OwdRow, ROWS_MAX, RecordFault};
use crate::judge::PacketFate;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufWriter, Read, Write};

/// No line of a record is longer.
const LINE_BYTES_MAX: u64 = 1 << 16;

/// Writes CSV.
pub struct LineWriter(BufWriter<File>);

fn header() -> String {
    format!("fate,{}", COLUMNS.join(","))
}

impl LineWriter {
    pub(super) fn begin(file: File, about: &Value) -> Result<Self, RecordFault> {
        let mut output = BufWriter::with_capacity(1 << 18, file);
        writeln!(output, "# {FORMAT} {about}\n{}", header())?;
        Ok(LineWriter(output))
    }

    pub(super) fn append(&mut self, row: &OwdRow) -> Result<(), RecordFault> {
        write!(self.0, "{}", row.fate.name())?;
        for cell in row.cells() {
            match cell {
                Some(number) => write!(self.0, ",{number}")?,
                None => write!(self.0, ",")?,
            }
        }
        Ok(writeln!(self.0)?)
    }

    pub(super) fn finish(mut self) -> Result<(), RecordFault> {
        Ok(self.0.flush()?)
    }
}

pub(super) fn read(mut input: impl BufRead) -> Result<OwdRecord, RecordFault> {
    let mut line = String::new();
    let foreign = |reason: &str| RecordFault::Foreign(reason.to_owned());
    next_line(&mut input, &mut line)?;
    let about = line.strip_prefix("# ").and_then(|line| line.strip_prefix(FORMAT));
    let about = about.ok_or_else(|| foreign("it does not begin with its format"))?;
    let about = serde_json::from_str(about).map_err(|error| foreign(&error.to_string()))?;
    next_line(&mut input, &mut line)?;
    if line != header() {
        return Err(foreign("it has other columns"));
    }
    let mut rows = Vec::new();
    while next_line(&mut input, &mut line)? {
        let wrong = |reason: String| RecordFault::Line { line: rows.len() + 3, reason };
        if rows.len() == ROWS_MAX {
            return Err(wrong("there are too many".to_owned()));
        }
        rows.push(row(&line).map_err(wrong)?);
    }
    Ok(OwdRecord { about, rows })
}

/// The next line without its end; whether there is one.
fn next_line(input: &mut impl BufRead, line: &mut String) -> Result<bool, RecordFault> {
    line.clear();
    let read = input.by_ref().take(LINE_BYTES_MAX).read_line(line);
    let read = read.map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => RecordFault::Foreign("it is no text".to_owned()),
        _ => error.into(),
    })?;
    if read as u64 == LINE_BYTES_MAX {
        return Err(RecordFault::Foreign("it has a line without end".to_owned()));
    }
    line.truncate(line.trim_end().len());
    Ok(read > 0)
}

fn row(line: &str) -> Result<OwdRow, String> {
    let mut fields = line.split(',');
    let fate = fields.next().and_then(PacketFate::from_name).ok_or("it begins with no fate")?;
    let mut cells = Cells::default();
    for (cell, name) in cells.iter_mut().zip(COLUMNS) {
        let field = fields.next().ok_or_else(|| format!("it ends before {name}"))?;
        let number = || field.parse().map_err(|_| format!("{name} is no whole number"));
        *cell = if field.is_empty() { None } else { Some(number()?) };
    }
    match fields.next() {
        Some(_) => Err("it has too many fields".to_owned()),
        None => OwdRow::of(fate, &cells).ok_or_else(|| "it has no number or no time".to_owned()),
    }
}
