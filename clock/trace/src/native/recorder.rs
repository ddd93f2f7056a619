//! Writes the native format.

use super::{MAGIC, PREFIX, TEXT_MAX, check, record};
use crate::{TraceHeader, TraceRow};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Records exchanges. Records are buffered; [`flush`](Recorder::flush) hands them to the system, and so does dropping
/// the recorder.
///
/// After the first error (a full disk) nothing more is written and every call reports an error, so that a daemon can
/// report it once, drop the recorder and continue to keep time. Earlier records stay readable: the reader skips an
/// incomplete last record.
pub struct Recorder<W: Write = File> {
    output: Option<BufWriter<W>>,
    record: usize,
}

impl Recorder<File> {
    /// Begins a new trace.
    ///
    /// # Errors
    /// The file exists already (no recording is ever overwritten) or cannot be written.
    pub fn create(path: impl AsRef<Path>, header: &TraceHeader) -> io::Result<Self> {
        let file = File::create_new(path)?;
        Self::to_writer(file, header)
    }

    /// Hands all buffered records to the system and waits until they are on the disk.
    ///
    /// # Errors
    /// An error of the system; the recorder is then finished.
    pub fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        self.guarded(|output| output.get_ref().sync_data())
    }
}

impl<W: Write> Recorder<W> {
    /// Begins a trace on any writer.
    ///
    /// # Errors
    /// An error of the writer; a header whose text is longer than 64 KiB.
    pub fn to_writer(output: W, header: &TraceHeader) -> io::Result<Self> {
        let record = if header.truth { record::WITH_TRUTH } else { record::PLAIN };
        let mut text = header.lines().into_bytes();
        text.resize(text.len().next_multiple_of(8), b'\n');
        if text.len() > TEXT_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the header of the trace is longer than 64 KiB"));
        }
        let mut bytes = Vec::with_capacity(PREFIX + text.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&(record as u32).to_le_bytes());
        bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&check(&text).to_le_bytes());
        bytes.extend_from_slice(&text);
        let mut recorder = Recorder { output: Some(BufWriter::new(output)), record };
        recorder.guarded(|output| output.write_all(&bytes))?;
        recorder.flush()?;
        Ok(recorder)
    }

    /// Adds one row. Reference times are dropped if the header has no room for them.
    ///
    /// # Errors
    /// An error of the writer; the recorder is then finished.
    pub fn append(&mut self, row: &TraceRow) -> io::Result<()> {
        let bytes = record::encode(row, self.record);
        let record = self.record;
        self.guarded(|output| output.write_all(bytes.get(..record).unwrap_or(&bytes)))
    }

    /// Hands all buffered records to the system.
    ///
    /// # Errors
    /// An error of the writer; the recorder is then finished.
    pub fn flush(&mut self) -> io::Result<()> {
        self.guarded(|output| output.flush())
    }

    /// Whether an error has ended the recording.
    pub fn is_finished(&self) -> bool {
        self.output.is_none()
    }

    /// Performs one action on the output. The first error closes it, without a second attempt to write the bytes that
    /// did not fit.
    fn guarded(&mut self, action: impl FnOnce(&mut BufWriter<W>) -> io::Result<()>) -> io::Result<()> {
        let Some(output) = &mut self.output else {
            return Err(io::Error::other("the recording has ended with an error"));
        };
        let outcome = action(output);
        if outcome.is_err() {
            let _ = self.output.take().map(BufWriter::into_parts);
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TraceReader;
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use record::tests::any_row;
    use std::io::Cursor;

    fn recorded(header: &TraceHeader, rows: &[TraceRow]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut recorder = Recorder::to_writer(&mut bytes, header).unwrap();
        rows.iter().for_each(|row| recorder.append(row).unwrap());
        drop(recorder);
        bytes
    }

    fn read(bytes: Vec<u8>) -> (TraceHeader, Vec<Result<TraceRow, String>>) {
        let reader = TraceReader::from_reader(Box::new(Cursor::new(bytes))).unwrap();
        let header = reader.header().clone();
        (header, reader.map(|row| row.map_err(|error| error.to_string())).collect())
    }

    fn header() -> TraceHeader {
        TraceHeader { counter: Some("tsc".into()), truth: true, ..TraceHeader::default() }
    }

    fn rows() -> Vec<TraceRow> {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let strategy = proptest::collection::vec(any_row(), 5);
        strategy.new_tree(&mut runner).unwrap().current()
    }

    proptest! {
        #[test]
        fn recorded_rows_are_read_back(rows in proptest::collection::vec(any_row(), 0..20)) {
            let (back, read) = read(recorded(&header(), &rows));
            prop_assert_eq!(back, header());
            prop_assert_eq!(read, rows.into_iter().map(Ok).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_cut_anywhere_loses_only_the_last_record() {
        let rows = rows();
        let whole = recorded(&header(), &rows);
        let start = whole.len() - rows.len() * record::WITH_TRUTH;
        for length in start..whole.len() {
            let (_, read) = read(whole[..length].to_vec());
            assert_eq!(read.len(), (length - start) / record::WITH_TRUTH);
            assert!(read.iter().zip(&rows).all(|(read, row)| read.as_ref() == Ok(row)));
        }
    }

    #[test]
    fn damage_costs_one_record_and_names_it() {
        let rows = rows();
        let mut bytes = recorded(&header(), &rows);
        let second = bytes.len() - 4 * record::WITH_TRUTH;
        bytes[second + 50] ^= 0x10;
        let (_, read) = read(bytes);
        assert_eq!(read[1], Err("record 2: the record is damaged (its check does not match)".into()));
        assert_eq!((read.len(), &read[2]), (5, &Ok(rows[2])));
    }

    #[test]
    fn a_damaged_header_is_refused() {
        let bytes = recorded(&header(), &rows());
        for at in [16, 20, 24, 33] {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x40;
            let error = TraceReader::from_reader(Box::new(Cursor::new(bytes))).err().unwrap().to_string();
            assert!(error.contains("header"), "{error}");
        }
        let mut later = bytes;
        later[14] = b'2';
        let error = TraceReader::from_reader(Box::new(Cursor::new(later))).err().unwrap().to_string();
        assert!(error.contains("version \"2\""), "{error}");
    }

    /// Takes `left` bytes, then is full.
    struct FullDisk {
        left: usize,
        taken: Vec<u8>,
    }

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let length = bytes.len().min(self.left);
            if length == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.left -= length;
            self.taken.extend_from_slice(&bytes[..length]);
            Ok(length)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_ends_the_recording_and_nothing_else() {
        let mut disk = FullDisk { left: 500, taken: Vec::new() };
        let mut recorder = Recorder::to_writer(&mut disk, &header()).unwrap();
        let outcome: Vec<bool> =
            rows().iter().map(|row| recorder.append(row).and_then(|()| recorder.flush()).is_ok()).collect();
        assert!(recorder.is_finished());
        drop(recorder);
        assert_eq!(outcome, [true, true, true, false, false]);
        let (_, read) = read(disk.taken);
        assert_eq!(read.into_iter().collect::<Result<Vec<_>, _>>().unwrap(), rows()[..3]);
    }

    #[test]
    fn no_recording_is_overwritten() {
        let directory = std::env::temp_dir().join(format!("ffclock-trace-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("site.trace");
        let mut first = Recorder::create(&path, &header()).unwrap();
        first.append(&rows()[0]).unwrap();
        first.sync().unwrap();
        let second = Recorder::create(&path, &header());
        let read: Vec<TraceRow> = TraceReader::open(&path).unwrap().collect::<Result<_, _>>().unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(second.err().map(|error| error.kind()), Some(io::ErrorKind::AlreadyExists));
        assert_eq!(read, rows()[..1]);
    }
}
