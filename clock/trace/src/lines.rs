//! Lines of bounded length, numbered.

use crate::error::{Fault, TraceError, TracePlace, shortened};
use std::io::{BufRead, Read};

/// The longest line that is accepted [bytes], with its end.
pub(crate) const LINE_MAX: usize = 64 * 1024;

/// Hands out one line at a time. A line that is too long is skipped in pieces, so memory stays bounded.
pub(crate) struct LineReader<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> LineReader<R> {
    pub(crate) fn new(input: R) -> Self {
        LineReader { input, line: Vec::with_capacity(512), number: 0 }
    }

    /// The number of the latest line, from 1.
    pub(crate) fn place(&self) -> TracePlace {
        TracePlace::Line(self.number)
    }

    /// Reads the next line; `false` at the end of the file.
    pub(crate) fn advance(&mut self) -> Result<bool, TraceError> {
        self.line.clear();
        let place = TracePlace::Line(self.number + 1);
        let mut bounded = self.input.by_ref().take(LINE_MAX as u64);
        let length = bounded.read_until(b'\n', &mut self.line).map_err(|source| TraceError::Read { place, source })?;
        if length == 0 {
            return Ok(false);
        }
        self.number += 1;
        if length == LINE_MAX && self.line.last() != Some(&b'\n') {
            self.input.skip_until(b'\n').map_err(|source| TraceError::Read { place, source })?;
            return Err(TraceError::Row { place, fault: Fault::LongLine(shortened(&self.line)) });
        }
        Ok(true)
    }

    /// The latest line without its end and without blanks around it.
    #[inline]
    pub(crate) fn line(&self) -> &[u8] {
        self.line.trim_ascii()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_trimmed() {
        let mut lines = LineReader::new(&b"one\r\n\n three"[..]);
        for (number, text) in [(1, &b"one"[..]), (2, b""), (3, b"three")] {
            assert!(lines.advance().unwrap());
            assert_eq!((lines.place(), lines.line()), (TracePlace::Line(number), text));
        }
        assert!(!lines.advance().unwrap());
    }

    #[test]
    fn an_endless_line_is_refused_once_and_passed_over() {
        let mut text = vec![b'x'; 5 * LINE_MAX];
        text.extend_from_slice(b"\nnext\n");
        let mut lines = LineReader::new(&text[..]);
        assert!(matches!(
            lines.advance(),
            Err(TraceError::Row { place: TracePlace::Line(1), fault: Fault::LongLine(_) })
        ));
        assert!(lines.advance().unwrap());
        assert_eq!((lines.place(), lines.line()), (TracePlace::Line(2), &b"next"[..]));
        assert!(lines.line.capacity() <= 2 * LINE_MAX);
    }
}
