//! Reads the native format.

use super::{MAGIC, PREFIX, TEXT_MAX, check, record};
use crate::error::{Fault, TraceError, TracePlace, shortened};
use crate::{TraceHeader, TraceRow};
use std::io::{self, BufRead, Read};

/// Hands out the records of a native trace.
pub(crate) struct NativeReader<R> {
    input: R,
    record: usize,
    number: u64,
    cut: usize,
}

impl<R: BufRead> NativeReader<R> {
    /// Reads the header; the records follow.
    pub(crate) fn new(mut input: R) -> Result<(Self, TraceHeader), TraceError> {
        let (record, header) = read_header(&mut input)?;
        Ok((NativeReader { input, record, number: 0, cut: 0 }, header))
    }

    /// The number of bytes of an incomplete record at the end, known after the last record.
    pub(crate) fn cut(&self) -> usize {
        self.cut
    }

    /// The next record; `None` at the end. An incomplete record at the end means that the recording was cut. This is no
    /// error.
    #[inline]
    pub(crate) fn next_row(&mut self) -> Option<Result<TraceRow, TraceError>> {
        let place = TracePlace::Record(self.number + 1);
        let outcome = match self.input.fill_buf() {
            Ok(buffer) if buffer.len() >= self.record => {
                let decoded = record::decode(buffer.get(..self.record).unwrap_or(&[]));
                self.input.consume(self.record);
                decoded
            }
            Ok(_) => match self.gather() {
                Ok(gathered) => gathered?,
                Err(source) => return Some(Err(TraceError::Read { place, source })),
            },
            Err(source) => return Some(Err(TraceError::Read { place, source })),
        };
        self.number += 1;
        Some(outcome.map_err(|fault| TraceError::Row { place, fault }))
    }

    /// A record that lies across the end of the buffer.
    #[cold]
    fn gather(&mut self) -> io::Result<Option<Result<TraceRow, Fault>>> {
        let mut bytes = Vec::with_capacity(self.record);
        self.input.by_ref().take(self.record as u64).read_to_end(&mut bytes)?;
        if bytes.len() < self.record {
            self.cut = bytes.len();
            return Ok(None);
        }
        Ok(Some(record::decode(&bytes)))
    }
}

/// Reads a header: the size of a record, and the header itself.
fn read_header(input: &mut dyn Read) -> Result<(usize, TraceHeader), TraceError> {
    let damaged = |why: &str| TraceError::File(Fault::Header(why.to_owned()));
    let mut prefix = [0; PREFIX];
    let read = |input: &mut dyn Read, into: &mut [u8]| match input.read_exact(into) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(damaged("it is cut short")),
        other => other.map_err(|source| TraceError::Read { place: TracePlace::Header, source }),
    };
    read(input, &mut prefix)?;
    let Some(([magic, numbers], _)) = prefix.as_chunks::<16>().0.split_first_chunk::<2>() else {
        return Err(damaged("it is cut short"));
    };
    if magic != MAGIC {
        return Err(TraceError::File(Fault::Version(shortened(magic.get(b"ffclock trace ".len()..).unwrap_or(&[])))));
    }
    let numbers = u128::from_le_bytes(*numbers);
    let (record, length, stated) = (numbers as u32 as usize, (numbers >> 32) as u32 as usize, (numbers >> 64) as u64);
    if !matches!(record, record::PLAIN | record::WITH_TRUTH) || length > TEXT_MAX || length % 8 != 0 {
        return Err(damaged("impossible sizes"));
    }
    let mut text = vec![0; length];
    read(input, &mut text)?;
    if check(&text) != stated {
        return Err(damaged("its check does not match"));
    }
    let text = String::from_utf8(text).map_err(|_| damaged("it is not text"))?;
    let mut header = TraceHeader::default();
    for line in text.lines().filter(|line| !line.is_empty()) {
        header.read_line(line).map_err(TraceError::File)?;
    }
    header.truth = record == record::WITH_TRUTH;
    Ok((record, header))
}
