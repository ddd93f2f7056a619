//! Redis: commands and replies in RESP 2 and 3, and inline commands. A reply for each command, in order.

use super::found::{Found, FoundAt, MESSAGE_BYTES_MAX, StreamFault};

/// As much of a line is kept: numbers and names of commands are shorter.
const LINE_BYTES: usize = 64;
/// As much of an argument is kept: names of commands are shorter.
const WORD_BYTES: usize = 16;
/// A server refuses commands with more arguments.
const ARGUMENTS_MAX: i64 = 1 << 20;
/// Replies are not nested deeper.
const DEPTH_MAX: usize = 64;

/// Commands after which a connection no longer has one reply for each command.
const OTHER_MODES: [&[u8]; 9] = [
    b"SUBSCRIBE",
    b"PSUBSCRIBE",
    b"SSUBSCRIBE",
    b"UNSUBSCRIBE",
    b"PUNSUBSCRIBE",
    b"SUNSUBSCRIBE",
    b"MONITOR",
    b"SYNC",
    b"PSYNC",
];

/// A line that may come in parts. Of a long one the begin is kept.
#[derive(Debug, Default)]
struct Line {
    kept: Vec<u8>,
    is_begun: bool,
    is_longer: bool,
}

impl Line {
    /// Takes bytes up to the end of the line. Whether it is whole.
    fn take(&mut self, bytes: &mut &[u8]) -> bool {
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let (part, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        let room = LINE_BYTES.saturating_sub(self.kept.len());
        self.is_longer |= part.len() > room;
        self.kept.extend_from_slice(&part[..part.len().min(room)]);
        self.is_begun = true;
        *bytes = rest;
        end.is_some()
    }

    fn text(&self) -> &[u8] {
        self.kept.trim_ascii_end()
    }

    /// The number behind the first byte.
    fn number(&self) -> Result<i64, StreamFault> {
        let digits = self.text().get(1..).filter(|_| !self.is_longer);
        let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        number.ok_or(StreamFault::NotUnderstood)
    }

    fn clear(&mut self) {
        self.kept.clear();
        (self.is_begun, self.is_longer) = (false, false);
    }
}

/// How many bytes a string of this length takes with the end of its line; `None` for one that is null.
fn string_bytes(length: i64) -> Result<Option<u64>, StreamFault> {
    match u64::try_from(length) {
        Ok(length) if length <= MESSAGE_BYTES_MAX => Ok(Some(length + 2)),
        Err(_) if length == -1 => Ok(None),
        _ => Err(StreamFault::NotUnderstood),
    }
}

/// Reads what a client sends.
#[derive(Debug, Default)]
pub(super) struct RedisCommands {
    line: Line,
    /// As many arguments of the command are still to come.
    arguments: i64,
    /// The number of the argument that is read: 1 for the name of the command.
    argument: usize,
    /// As many bytes of it are still to come, with the end of its line.
    body: u64,
    /// The first two.
    words: [Vec<u8>; 2],
    begun_ns: i64,
}

impl RedisCommands {
    pub(super) fn read(&mut self, mut bytes: &[u8], at_ns: i64, found: &mut Vec<FoundAt>) -> Result<(), StreamFault> {
        while !bytes.is_empty() {
            if self.body > 0 {
                self.argument(&mut bytes, found)?;
                continue;
            }
            if self.arguments == 0 && !self.line.is_begun {
                self.begun_ns = at_ns;
            }
            if self.line.take(&mut bytes) {
                self.line(found)?;
                self.line.clear();
            }
        }
        Ok(())
    }

    /// Bytes that are missing do no harm inside an argument, other than the first two.
    pub(super) fn miss(&mut self, missing: u64) -> Result<(), StreamFault> {
        let left = self.body.checked_sub(missing).filter(|&left| left >= 2 && self.argument > self.words.len());
        self.body = left.ok_or(StreamFault::Gap)?;
        Ok(())
    }

    fn line(&mut self, found: &mut Vec<FoundAt>) -> Result<(), StreamFault> {
        if self.arguments > 0 {
            if self.line.kept.first() != Some(&b'$') {
                return Err(StreamFault::NotUnderstood);
            }
            self.body = string_bytes(self.line.number()?)?.ok_or(StreamFault::NotUnderstood)?;
            self.argument += 1;
            return Ok(());
        }
        self.words = Default::default();
        self.argument = 0;
        if self.line.kept.first() == Some(&b'*') {
            let arguments = self.line.number()?;
            if arguments > ARGUMENTS_MAX {
                return Err(StreamFault::NotUnderstood);
            }
            // A command without a name gets no reply.
            self.arguments = arguments.max(0);
            return Ok(());
        }
        let text = self.line.text();
        if !text.iter().all(|&byte| byte == b'\t' || (b' '..=b'~').contains(&byte)) {
            return Err(StreamFault::NotUnderstood);
        }
        let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        for (kept, word) in self.words.iter_mut().zip(words) {
            kept.extend_from_slice(word);
        }
        if self.words[0].is_empty() { Ok(()) } else { self.whole(found) }
    }

    fn argument(&mut self, bytes: &mut &[u8], found: &mut Vec<FoundAt>) -> Result<(), StreamFault> {
        let (part, rest) = bytes.split_at(usize::try_from(self.body).unwrap_or(usize::MAX).min(bytes.len()));
        if let Some(word) = self.argument.checked_sub(1).and_then(|number| self.words.get_mut(number)) {
            // The last two bytes end the line.
            let content = usize::try_from(self.body.saturating_sub(2)).unwrap_or(usize::MAX).min(part.len());
            word.extend(part[..content].iter().take(WORD_BYTES.saturating_sub(word.len())));
        }
        *bytes = rest;
        self.body -= part.len() as u64;
        if self.body > 0 {
            return Ok(());
        }
        self.arguments -= 1;
        if self.arguments == 0 { self.whole(found) } else { Ok(()) }
    }

    fn whole(&mut self, found: &mut Vec<FoundAt>) -> Result<(), StreamFault> {
        let [name, second] = &self.words;
        let is = |word: &[u8], name: &[u8]| word.eq_ignore_ascii_case(name);
        if OTHER_MODES.iter().any(|mode| is(name, mode)) || is(name, b"CLIENT") && is(second, b"REPLY") {
            return Err(StreamFault::OtherMode);
        }
        found.push((Found::Next, self.begun_ns));
        Ok(())
    }
}

/// What is made of a value when it is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    Plain,
    /// Says something about the value that follows.
    Attribute,
    /// No reply.
    Push,
}

/// Reads what a server sends.
#[derive(Debug, Default)]
pub(super) struct RedisReplies {
    line: Line,
    /// Values that are not whole, from the outside in, with the number of values that each still needs.
    nested: Vec<(u64, ValueKind)>,
    /// As many bytes of a string are still to come, with the end of its line.
    body: u64,
    /// When the first byte of the reply was seen.
    begun_ns: Option<i64>,
}

impl RedisReplies {
    pub(super) fn read(&mut self, mut bytes: &[u8], at_ns: i64, found: &mut Vec<FoundAt>) -> Result<(), StreamFault> {
        while !bytes.is_empty() {
            self.begun_ns.get_or_insert(at_ns);
            if self.body > 0 {
                let skipped = usize::try_from(self.body).unwrap_or(usize::MAX).min(bytes.len());
                self.body -= skipped as u64;
                bytes = &bytes[skipped..];
                if self.body == 0 {
                    self.whole(found);
                }
            } else if self.line.take(&mut bytes) {
                self.line(found)?;
                self.line.clear();
            }
        }
        Ok(())
    }

    /// Bytes that are missing do no harm inside a string.
    pub(super) fn miss(&mut self, missing: u64) -> Result<(), StreamFault> {
        self.body = self.body.checked_sub(missing).filter(|&left| left > 0).ok_or(StreamFault::Gap)?;
        Ok(())
    }

    fn line(&mut self, found: &mut Vec<FoundAt>) -> Result<(), StreamFault> {
        let Some(&kind) = self.line.kept.first() else { return Err(StreamFault::NotUnderstood) };
        match kind {
            b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => self.whole(found),
            b'$' | b'=' | b'!' => match string_bytes(self.line.number()?)? {
                Some(bytes) => self.body = bytes,
                None => self.whole(found),
            },
            b'*' | b'~' => self.nest(ValueKind::Plain, 1, found)?,
            b'%' => self.nest(ValueKind::Plain, 2, found)?,
            b'|' => self.nest(ValueKind::Attribute, 2, found)?,
            b'>' if self.nested.is_empty() => self.nest(ValueKind::Push, 1, found)?,
            _ => return Err(StreamFault::NotUnderstood),
        }
        Ok(())
    }

    /// A value made of values, or of pairs of them.
    fn nest(&mut self, kind: ValueKind, each: u64, found: &mut Vec<FoundAt>) -> Result<(), StreamFault> {
        let values = match self.line.number()? {
            -1 => 0,
            number => u64::try_from(number).map_err(|_| StreamFault::NotUnderstood)?,
        };
        if values > MESSAGE_BYTES_MAX || self.nested.len() >= DEPTH_MAX {
            return Err(StreamFault::NotUnderstood);
        }
        if values > 0 {
            self.nested.push((values * each, kind));
        } else {
            self.whole_of(kind, found);
        }
        Ok(())
    }

    fn whole(&mut self, found: &mut Vec<FoundAt>) {
        self.whole_of(ValueKind::Plain, found);
    }

    /// A value is whole, and maybe those in which it stands.
    fn whole_of(&mut self, mut kind: ValueKind, found: &mut Vec<FoundAt>) {
        while kind != ValueKind::Attribute {
            let Some((left, outer)) = self.nested.last_mut() else {
                let what = if kind == ValueKind::Push { Found::Pushed } else { Found::Next };
                found.extend(self.begun_ns.take().map(|begun_ns| (what, begun_ns)));
                return;
            };
            *left -= 1;
            if *left > 0 {
                return;
            }
            kind = *outer;
            self.nested.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replies(text: &str) -> Result<Vec<Found>, StreamFault> {
        // In one piece, and byte by byte.
        let (mut whole, mut cut) = (vec![], vec![]);
        RedisReplies::default().read(text.as_bytes(), 7, &mut whole)?;
        let mut parser = RedisReplies::default();
        for byte in text.bytes() {
            parser.read(&[byte], 7, &mut cut)?;
        }
        assert_eq!(whole, cut);
        Ok(whole.into_iter().map(|(found, _)| found).collect())
    }

    #[test]
    fn replies_of_every_type_are_one_each() {
        let one = [
            "+OK\r\n",
            "-ERR no\r\n",
            ":1\r\n",
            "$-1\r\n",
            "$0\r\n\r\n",
            "$4\r\na\r\nb\r\n",
            "*-1\r\n",
            "*0\r\n",
            "*2\r\n*1\r\n:1\r\n$1\r\nx\r\n",
            "_\r\n",
            "#t\r\n",
            ",1.5\r\n",
            "(12\r\n",
            "=5\r\ntxt:a\r\n",
            "%1\r\n+a\r\n*1\r\n:1\r\n",
            "~1\r\n:1\r\n",
            "|1\r\n+ttl\r\n:3\r\n+value\r\n",
            "*1\r\n|1\r\n+ttl\r\n:3\r\n+value\r\n",
        ];
        for text in one {
            assert_eq!(replies(text), Ok(vec![Found::Next]), "{text:?}");
        }
        assert_eq!(replies(&one.concat()).map(|found| found.len()), Ok(one.len()));
        assert_eq!(replies(">2\r\n+a\r\n:1\r\n+OK\r\n"), Ok(vec![Found::Pushed, Found::Next]));
        for text in
            ["\u{16}\u{3}\r\n", "$x\r\n", "$-2\r\n", "*1\r\n>1\r\n", "HTTP/1.1 200 OK\r\n", "\r\n", "$99999999999\r\n"]
        {
            assert_eq!(replies(text), Err(StreamFault::NotUnderstood), "{text:?}");
        }
        assert_eq!(replies(&"*1\r\n".repeat(1000)), Err(StreamFault::NotUnderstood));
    }

    #[test]
    fn commands_are_counted_until_there_is_no_longer_a_reply_for_each() {
        let commands = |text: &str| {
            let mut found = vec![];
            let mut parser = RedisCommands::default();
            let end = text.bytes().try_for_each(|byte| parser.read(&[byte], 7, &mut found));
            (found.len(), end)
        };
        assert_eq!(commands("PING\r\n\r\n*0\r\n*2\r\n$3\r\nGET\r\n$1\r\nx\r\nset a b\n"), (3, Ok(())));
        assert_eq!(commands("PING\r\n*2\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n"), (1, Err(StreamFault::OtherMode)));
        assert_eq!(commands("client reply off\r\n"), (0, Err(StreamFault::OtherMode)));
        assert_eq!(commands("CLIENT ID\r\n"), (1, Ok(())));
        assert_eq!(commands("\u{16}\u{3}\u{1}\n"), (0, Err(StreamFault::NotUnderstood)));
        assert_eq!(commands("*1\r\n:5\r\n"), (0, Err(StreamFault::NotUnderstood)));
    }

    #[test]
    fn missing_bytes_do_no_harm_inside_a_string_only() {
        let mut found = vec![];
        let mut parser = RedisReplies::default();
        parser.read(b"$100\r\nabc", 1, &mut found).expect("a string");
        parser.miss(97).expect("inside");
        parser.read(b"\r\n+OK\r\n", 2, &mut found).expect("its end");
        assert_eq!(found, [(Found::Next, 1), (Found::Next, 2)]);
        assert_eq!(parser.miss(1), Err(StreamFault::Gap));
        let mut parser = RedisCommands::default();
        parser.read(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$9\r\n", 1, &mut found).expect("a command");
        parser.miss(9).expect("inside");
        parser.read(b"\r\n", 1, &mut found).expect("its end");
        parser.read(b"*1\r\n$9\r\n", 1, &mut found).expect("a command");
        assert_eq!((found.len(), parser.miss(2)), (3, Err(StreamFault::Gap)), "its name is not known");
    }
}
