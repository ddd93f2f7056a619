//! Lines of text to messages: total and bounded, for input of any length.

use super::{FaultyLine, MessageError};

/// A longer line is passed over.
const LINE_BYTES_MAX: usize = 4096;

/// The unit of the times in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
}

impl TimeUnit {
    const fn nanos(self) -> i64 {
        match self {
            TimeUnit::Nanoseconds => 1,
            TimeUnit::Microseconds => 1_000,
            TimeUnit::Milliseconds => 1_000_000,
            TimeUnit::Seconds => 1_000_000_000,
        }
    }

    /// A decimal number of this unit in nanoseconds; what is finer is cut off. `None` for what is no such number.
    pub fn parse_ns(self, text: &str) -> Option<i64> {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if !whole.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        let mut nanos = whole.parse::<i64>().ok()?.checked_mul(self.nanos())?;
        let mut place = self.nanos();
        for digit in fraction.bytes() {
            place /= 10;
            let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
            nanos = nanos.checked_add(digit * place)?;
        }
        Some(sign * nanos)
    }
}

/// A message as a line says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageLine<'a> {
    /// Its place in the list: the line of a text, whose header is line 1, or the row of a table, from 1 on.
    pub number: u64,
    /// Who sent it.
    pub sender: &'a str,
    /// Who perceived it.
    pub receiver: &'a str,
    /// What it belongs to.
    pub id: &'a str,
    /// When it was sent, in nanoseconds since any origin.
    pub sent_ns: i64,
    /// When its processing was complete; `None` if it got lost.
    pub perceived_ns: Option<i64>,
}

/// The columns, in the order of their places here.
const COLUMNS: [&str; 5] = ["sender", "receiver", "id", "sent", "perceived"];

/// Where the columns are in a line.
#[derive(Clone, Debug)]
struct LineForm {
    separator: char,
    /// For each column of the file which of [`COLUMNS`] it is.
    columns: Vec<Option<usize>>,
}

impl LineForm {
    fn of(header: &str) -> Result<Self, MessageError> {
        let separator = [',', '\t', ';'].into_iter().find(|&separator| header.contains(separator)).unwrap_or(',');
        let known = |name: &str| COLUMNS.iter().position(|column| *column == bare(name).to_ascii_lowercase());
        // Some programs begin a text with a mark of its encoding.
        let header = header.strip_prefix('\u{feff}').unwrap_or(header);
        let columns: Vec<_> = header.split(separator).map(known).collect();
        let is_doubled = |column: &usize| columns.iter().filter(|known| **known == Some(*column)).count() > 1;
        if let Some(doubled) = (0..COLUMNS.len()).find(is_doubled) {
            return Err(MessageError::Doubled(COLUMNS[doubled]));
        }
        match (0..COLUMNS.len()).find(|column| !columns.contains(&Some(*column))) {
            Some(missing) => Err(MessageError::Header(COLUMNS[missing])),
            None => Ok(LineForm { separator, columns }),
        }
    }

    fn message<'a>(&self, line: &'a str, (number, unit): (u64, TimeUnit)) -> Option<MessageLine<'a>> {
        let mut fields = [None; COLUMNS.len()];
        for (field, column) in line.split(self.separator).zip(&self.columns) {
            if let Some(column) = column {
                fields[*column] = Some(bare(field));
            }
        }
        let [Some(sender), Some(receiver), Some(id), Some(sent), Some(perceived)] = fields else { return None };
        let perceived_ns = if perceived.is_empty() { None } else { Some(unit.parse_ns(perceived)?) };
        if sender.is_empty() || receiver.is_empty() || id.is_empty() {
            return None;
        }
        Some(MessageLine { number, sender, receiver, id, sent_ns: unit.parse_ns(sent)?, perceived_ns })
    }
}

/// Without blanks and quotes around it.
fn bare(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|field| field.strip_suffix('"')).unwrap_or(field)
}

/// Cuts bytes into lines and lines into messages. The first line names the columns; commas, tabs or semicolons stand
/// between them.
#[derive(Debug)]
pub struct MessageLines {
    unit: TimeUnit,
    form: Option<LineForm>,
    /// The begin of a line whose end has not come.
    begun: Vec<u8>,
    /// Lines so far.
    number: u64,
    /// Lines that are no messages.
    pub malformed: u64,
    /// The first of them.
    pub(crate) malformed_at: Vec<u64>,
}

impl MessageLines {
    /// Before the first line.
    pub fn new(unit: TimeUnit) -> Self {
        MessageLines { unit, form: None, begun: vec![], number: 0, malformed: 0, malformed_at: vec![] }
    }

    /// Takes the next bytes, and hands over each message whose line ends in them.
    ///
    /// # Errors
    /// [`MessageError::Header`], and what `take` returns.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        take: &mut dyn FnMut(&MessageLine<'_>) -> Result<(), MessageError>,
    ) -> Result<(), MessageError> {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if self.begun.is_empty() {
                self.line(line, take)?;
            } else {
                self.keep(line);
                let whole = std::mem::take(&mut self.begun);
                self.line(&whole, take)?;
                self.begun = whole;
                self.begun.clear();
            }
        }
        self.keep(bytes);
        Ok(())
    }

    /// Takes a last line without an end.
    ///
    /// # Errors
    /// As [`MessageLines::push`].
    pub fn finish(
        &mut self,
        take: &mut dyn FnMut(&MessageLine<'_>) -> Result<(), MessageError>,
    ) -> Result<(), MessageError> {
        if self.begun.is_empty() && self.form.is_some() { Ok(()) } else { self.push(b"\n", take) }
    }

    /// One byte more than a line may have is enough to refuse it.
    fn keep(&mut self, bytes: &[u8]) {
        let room = (LINE_BYTES_MAX + 1).saturating_sub(self.begun.len());
        self.begun.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn line(
        &mut self,
        line: &[u8],
        take: &mut dyn FnMut(&MessageLine<'_>) -> Result<(), MessageError>,
    ) -> Result<(), MessageError> {
        self.number += 1;
        let text = std::str::from_utf8(line).ok().filter(|line| line.len() <= LINE_BYTES_MAX);
        let Some(form) = &self.form else {
            self.form = Some(LineForm::of(text.unwrap_or_default())?);
            return Ok(());
        };
        match text.and_then(|text| form.message(text, (self.number, self.unit))) {
            Some(message) => take(&message),
            None => {
                // An empty line, as at the end of many files, hides nothing.
                if !line.trim_ascii().is_empty() {
                    self.malformed += 1;
                    if self.malformed_at.len() < FaultyLine::NAMED_MAX {
                        self.malformed_at.push(self.number);
                    }
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Result<(Vec<String>, u64), MessageError> {
        let mut lines = MessageLines::new(TimeUnit::Microseconds);
        let mut seen = vec![];
        let mut take = |message: &MessageLine<'_>| {
            seen.push(format!("{message:?}"));
            Ok(())
        };
        for chunk in chunks {
            lines.push(chunk, &mut take)?;
        }
        lines.finish(&mut take)?;
        Ok((seen, lines.malformed))
    }

    #[test]
    fn times_are_exact() {
        let parsed = ["1700000000.123456789", "-0.5", "7", "", ".5", "1e3", "99999999999", "1.x"];
        let nanos = parsed.map(|text| TimeUnit::Seconds.parse_ns(text));
        let expected = [Some(1_700_000_000_123_456_789), Some(-500_000_000), Some(7_000_000_000)];
        assert_eq!(nanos[..3], expected);
        assert!(nanos[3..].iter().all(Option::is_none), "{nanos:?}");
        assert_eq!(TimeUnit::Nanoseconds.parse_ns("12.7"), Some(12));
    }

    #[test]
    fn lines_may_be_cut_anywhere() {
        let text =
            "extra;perceived;sent;id;receiver;sender\nx;12.5;10;7;\"r\";s\n;;8;lost;r;s\r\n\nno message\n;3;2;9;r;s";
        let whole = read(&[text.as_bytes()]).expect("a header");
        assert_eq!((whole.0.len(), whole.1), (3, 1), "{whole:?}");
        assert!(whole.0[0].contains("sent_ns: 10000, perceived_ns: Some(12500)"), "{whole:?}");
        assert!(whole.0[1].contains("perceived_ns: None"), "{whole:?}");
        for cut in 0..text.len() {
            assert_eq!(read(&[&text.as_bytes()[..cut], &text.as_bytes()[cut..]]).expect("a header"), whole, "{cut}");
        }
    }

    #[test]
    fn a_mark_of_the_encoding_belongs_to_no_name() {
        let (seen, malformed) =
            read(&["\u{feff}sender,receiver,id,sent,perceived\ns,r,1,1,2".as_bytes()]).expect("a header");
        assert_eq!((seen.len(), malformed), (1, 0));
    }

    #[test]
    fn what_is_no_list_is_refused_or_counted() {
        assert!(matches!(read(&[b"a,b,c\n"]), Err(MessageError::Header("sender"))));
        assert!(matches!(read(&[b""]), Err(MessageError::Header("sender"))));
        let doubled = read(&[b"sender,receiver,id,sent,perceived,Sent\n"]);
        assert!(matches!(doubled, Err(MessageError::Doubled("sent"))), "{doubled:?}");
        let long = [b"sender,receiver,id,sent,perceived\n".as_slice(), &vec![b'x'; 1 << 20], b"\ns,r,1,1,2\n"].concat();
        let (seen, malformed) = read(&long.chunks(1000).collect::<Vec<_>>()).expect("a header");
        assert_eq!((seen.len(), malformed), (1, 1));
    }
}
