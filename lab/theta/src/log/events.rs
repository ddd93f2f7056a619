//! Event files.

use super::LogError;
use super::columns::EventColumns;
use super::table::{self, RowGroup};
use crate::record::Event;
use parquet::basic::{Compression, Encoding};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SCHEMA: &str = "message event {
    required int32 kind;
    required int32 process;
    required int32 peer;
    required int64 round (INTEGER(64,false));
    required int64 at (INTEGER(64,false));
    optional int64 from_round (INTEGER(64,false));
    optional int64 decided (INTEGER(64,false));
    optional int64 kernel (INTEGER(64,false));
    optional int64 received (INTEGER(64,false));
}";

/// Rows of a row group that we write.
pub(super) const GROUP_ROWS: usize = 1 << 17;
/// Rows that are read at once, whatever the size of the row groups.
const BATCH_ROWS: usize = 1 << 15;

fn properties() -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    // Counters and rounds grow by little: their differences need a few bits. Dictionaries suit the few processes.
    for name in ["round", "at", "from_round", "decided", "kernel", "received"] {
        let path = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

pub(super) fn create(path: &Path) -> Result<SerializedFileWriter<File>, LogError> {
    let file = File::create_new(path).map_err(LogError::io(path))?;
    let schema = parse_message_type(SCHEMA).map_err(LogError::parquet(path))?;
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties())).map_err(LogError::parquet(path))
}

pub(super) fn write_group(file: &mut SerializedFileWriter<File>, batch: &EventColumns) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for ints in [&batch.kind, &batch.process, &batch.peer] {
        table::write_column::<Int32Type>(&mut group, ints, None)?;
    }
    for longs in [&batch.round, &batch.at] {
        table::write_column::<Int64Type>(&mut group, longs, None)?;
    }
    for optional in [&batch.from_round, &batch.decided, &batch.kernel, &batch.received] {
        table::write_column::<Int64Type>(&mut group, &optional.values, Some(&optional.present))?;
    }
    group.close().map(|_| ())
}

/// Reads one event file, a batch of at most 32768 events at a time.
pub struct EventReader {
    path: PathBuf,
    file: SerializedFileReader<File>,
    next_group: usize,
    group: Option<EventGroup>,
    with_way_in: WayInColumns,
    rows_before: u64,
}

/// Whether the stamps on the way in of a message are read. The analysis of delays does not need them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayInColumns {
    /// Every column.
    Read,
    /// All columns but `kernel` and `received`.
    Skip,
}

type IntReader = ColumnReaderImpl<Int32Type>;
type LongReader = ColumnReaderImpl<Int64Type>;

/// The columns of the row group that is being read.
struct EventGroup {
    kind: IntReader,
    process: IntReader,
    peer: IntReader,
    round: LongReader,
    at: LongReader,
    from_round: Option<LongReader>,
    decided: Option<LongReader>,
    kernel: Option<LongReader>,
    received: Option<LongReader>,
}

impl EventReader {
    /// Opens the file.
    ///
    /// # Errors
    /// [`LogError::Io`] or [`LogError::Parquet`].
    pub fn open(path: &Path, with_way_in: WayInColumns) -> Result<Self, LogError> {
        let file = table::open(path)?;
        Ok(EventReader { path: path.to_owned(), file, next_group: 0, group: None, with_way_in, rows_before: 0 })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of events, as the file states it.
    pub fn rows(&self) -> u64 {
        u64::try_from(self.file.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// The number of row groups.
    pub fn groups(&self) -> usize {
        self.file.num_row_groups()
    }

    /// Goes on with that row group. Rows are no longer counted from the start of the file then.
    pub fn skip_to_group(&mut self, group: usize) {
        self.next_group = group;
        self.group = None;
    }

    /// The number of rows before the batch that was read last.
    pub fn rows_before_batch(&self, batch: &EventColumns) -> u64 {
        self.rows_before - batch.len() as u64
    }

    /// Replaces `batch` by the next events; false at the end.
    ///
    /// # Errors
    /// [`LogError::Parquet`] for damaged pages, [`LogError::Column`] for a column that is missing.
    pub fn next_batch(&mut self, batch: &mut EventColumns) -> Result<bool, LogError> {
        batch.clear();
        loop {
            if self.group.is_none() {
                if self.next_group >= self.file.num_row_groups() {
                    return Ok(false);
                }
                self.group = Some(self.open_group(self.next_group)?);
                self.next_group += 1;
            }
            let group = self.group.as_mut().expect("just opened");
            let rows = group.read(batch).map_err(LogError::parquet(&self.path))?;
            self.rows_before += rows as u64;
            if rows > 0 {
                return Ok(true);
            }
            self.group = None;
        }
    }

    /// Each event of `batch`, which this reader has just filled.
    pub fn events<'a>(&'a self, batch: &'a EventColumns) -> impl Iterator<Item = Result<Event, LogError>> + 'a {
        let first = self.rows_before_batch(batch) + 1;
        batch
            .events()
            .zip(first..)
            .map(|(event, row)| event.map_err(|fault| LogError::Row { path: self.path.clone(), row, fault }))
    }

    fn open_group(&self, number: usize) -> Result<EventGroup, LogError> {
        let group = RowGroup { path: &self.path, file: &self.file, number };
        let on_way_in = |name| if self.with_way_in == WayInColumns::Read { group.optional(name) } else { Ok(None) };
        Ok(EventGroup {
            kind: group.required("kind")?,
            process: group.required("process")?,
            peer: group.required("peer")?,
            round: group.required("round")?,
            at: group.required("at")?,
            from_round: group.optional("from_round")?,
            decided: group.optional("decided")?,
            kernel: on_way_in("kernel")?,
            received: on_way_in("received")?,
        })
    }
}

impl EventGroup {
    fn read(&mut self, batch: &mut EventColumns) -> Result<usize, ParquetError> {
        let rows = table::read_dense(&mut self.kind, BATCH_ROWS, &mut batch.kind)?;
        let same = |read: usize| if read == rows { Ok(()) } else { Err(table::uneven()) };
        same(table::read_dense(&mut self.process, rows, &mut batch.process)?)?;
        same(table::read_dense(&mut self.peer, rows, &mut batch.peer)?)?;
        same(table::read_dense(&mut self.round, rows, &mut batch.round)?)?;
        same(table::read_dense(&mut self.at, rows, &mut batch.at)?)?;
        let optionals = [
            (&mut self.from_round, &mut batch.from_round),
            (&mut self.decided, &mut batch.decided),
            (&mut self.kernel, &mut batch.kernel),
            (&mut self.received, &mut batch.received),
        ];
        for (reader, column) in optionals {
            if let Some(reader) = reader {
                same(table::read_optional(reader, rows, column)?)?;
            }
        }
        Ok(rows)
    }
}
