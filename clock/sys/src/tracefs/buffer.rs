//! The pages of the kernel's tracing buffer, as `trace_pipe_raw` gives them (Documentation/trace/ring-buffer-map.rst
//! and `events/header_page`, `events/header_event`).
//!
//! A page is the time of its first entry (8 bytes), how many bytes of entries follow (8 bytes, with two flags), and the
//! entries. Each begins with a word of 32 bits: a length code of 5 bits and the time since the entry before of 27 bits.
//! What does not fit is cut short: nothing here can fail or read beyond the page.

/// Bytes before the first entry.
const HEADER: usize = 16;
/// Flags in the count of bytes: events were lost before this page; and how many stands behind the entries.
const LOST: u64 = 1 << 31;
const LOST_COUNTED: u64 = 1 << 30;
const COUNT: u64 = LOST_COUNTED - 1;
/// Length codes that are none.
const PADDING: u32 = 29;
const TIME_EXTENSION: u32 = 30;
const ABSOLUTE_TIME: u32 = 31;
/// The part of a time that an absolute time entry does not hold.
const UPPER_TIME: u64 = 0xf8 << 56;

/// Events that the kernel could not keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// No event was lost.
    None,
    /// The kernel counted this many.
    Counted(u64),
    /// At least one; the kernel did not count them.
    Some,
}

impl Lost {
    /// How many; one where the kernel did not count them.
    pub fn at_least(self) -> u64 {
        match self {
            Lost::None => 0,
            Lost::Some => 1,
            Lost::Counted(count) => count,
        }
    }
}

/// One page; iterates over its events as (time by the trace clock, bytes of the event).
#[derive(Clone, Debug)]
pub struct BufferPage<'a> {
    rest: &'a [u8],
    time: u64,
    lost: Lost,
}

impl<'a> BufferPage<'a> {
    /// Looks at the bytes of one page; `None` where there is not even a header.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let time = u64::from_ne_bytes(*bytes.first_chunk()?);
        let commit = u64::from_ne_bytes(*bytes.get(8..)?.first_chunk()?);
        let entries = bytes.get(HEADER..)?;
        let end = usize::try_from(commit & COUNT).unwrap_or(usize::MAX).min(entries.len());
        let (rest, behind) = entries.split_at(end);
        let count = behind.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
        let lost = match (commit & LOST != 0, commit & LOST_COUNTED != 0, count) {
            (false, _, _) => Lost::None,
            (true, true, Some(count)) => Lost::Counted(count),
            _ => Lost::Some,
        };
        Some(BufferPage { rest, time, lost })
    }

    /// Events that the kernel lost before this page.
    pub fn lost(&self) -> Lost {
        self.lost
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn take_word(&mut self) -> Option<u32> {
        self.take(4).and_then(|bytes| bytes.first_chunk()).map(|bytes| u32::from_ne_bytes(*bytes))
    }

    /// The bytes of an entry whose length stands in a word before them, that word included.
    fn take_long(&mut self) -> Option<&'a [u8]> {
        let length = self.take_word()? as usize;
        self.take(length.checked_sub(4)?)
    }
}

impl<'a> Iterator for BufferPage<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let word = self.take_word()?;
            // Bit fields begin at the lower end on little-endian machines and at the upper end on the others.
            let (code, delta) =
                if cfg!(target_endian = "little") { (word & 31, word >> 5) } else { (word >> 27, word & 0x7ff_ffff) };
            let delta = u64::from(delta);
            match code {
                ABSOLUTE_TIME => {
                    let upper = u64::from(self.take_word()?) << 27;
                    self.time = (self.time & UPPER_TIME) | upper | delta;
                }
                TIME_EXTENSION => {
                    let upper = u64::from(self.take_word()?) << 27;
                    self.time = self.time.wrapping_add(upper | delta);
                }
                // Padding without a time fills the page to its end.
                PADDING if delta == 0 => return None,
                PADDING => {
                    self.take_long()?;
                    self.time = self.time.wrapping_add(delta);
                }
                0 => {
                    self.time = self.time.wrapping_add(delta);
                    return Some((self.time, self.take_long()?));
                }
                words => {
                    self.time = self.time.wrapping_add(delta);
                    return Some((self.time, self.take(4 * words as usize)?));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(code: u32, delta: u32) -> [u8; 4] {
        if cfg!(target_endian = "little") {
            (code | (delta << 5)).to_ne_bytes()
        } else {
            ((code << 27) | delta).to_ne_bytes()
        }
    }

    fn page(time: u64, flags: u64, entries: &[&[u8]], behind: &[u8]) -> Vec<u8> {
        let entries = entries.concat();
        let mut bytes = time.to_ne_bytes().to_vec();
        bytes.extend((entries.len() as u64 | flags).to_ne_bytes());
        bytes.extend(entries);
        bytes.extend(behind);
        bytes
    }

    #[test]
    fn times_add_up_over_every_kind_of_entry() {
        let long = [&word(0, 7)[..], &12_u32.to_ne_bytes(), b"eight by"].concat();
        let padding = [&word(PADDING, 5)[..], &8_u32.to_ne_bytes(), b"gone"].concat();
        let extension = [word(TIME_EXTENSION, 1), 2_u32.to_ne_bytes()].concat();
        let absolute = [word(ABSOLUTE_TIME, 9), 1_u32.to_ne_bytes()].concat();
        let short = [&word(1, 3)[..], b"four"].concat();
        let bytes = page(1000, 0, &[&short, &padding, &long, &extension, &short, &absolute, &short], &[0xff; 40]);
        let events: Vec<_> = BufferPage::new(&bytes).expect("a page").collect();
        let extended = 1015 + (2 << 27) + 1 + 3;
        let expected: [(u64, &[u8]); 4] =
            [(1003, b"four"), (1015, b"eight by"), (extended, b"four"), ((1 << 27) + 12, b"four")];
        assert_eq!(events, expected);
    }

    #[test]
    fn an_absolute_time_keeps_the_upper_bits() {
        let time = (0xa8 << 56) | 77;
        let absolute = [word(ABSOLUTE_TIME, 9), 1_u32.to_ne_bytes()].concat();
        let bytes = page(time, 0, &[&absolute, &word(1, 0), b"four"], &[]);
        let events: Vec<_> = BufferPage::new(&bytes).expect("a page").collect();
        assert_eq!(events[0].0, (0xa8 << 56) | (1 << 27) | 9);
    }

    #[test]
    fn lost_events_are_reported() {
        let lost = |flags, behind: &[u8]| BufferPage::new(&page(0, flags, &[], behind)).expect("a page").lost();
        assert_eq!(lost(0, &[]), Lost::None);
        assert_eq!(lost(LOST, &[]), Lost::Some);
        assert_eq!(lost(LOST | LOST_COUNTED, &7_u64.to_ne_bytes()), Lost::Counted(7));
        assert_eq!(lost(LOST | LOST_COUNTED, &[1, 2]), Lost::Some);
    }

    #[test]
    fn what_is_cut_off_ends_the_page() {
        let short = [&word(2, 3)[..], b"eightbyt"].concat();
        let whole = page(0, 0, &[&short, &short], &[]);
        for length in 0..whole.len() {
            let count = BufferPage::new(&whole[..length]).map_or(0, Iterator::count);
            assert!(count <= 1, "{length} bytes hold at most one whole event");
        }
        assert_eq!(BufferPage::new(&whole).expect("a page").count(), 2);
        let nonsense = page(0, 0, &[&word(0, 1), &3_u32.to_ne_bytes()], &[]);
        assert_eq!(BufferPage::new(&nonsense).expect("a page").count(), 0, "a length below its own word");
    }

    #[test]
    fn no_bytes_make_it_fail() {
        proptest::proptest!(|(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..600))| {
            let events = BufferPage::new(&bytes).into_iter().flatten().count();
            assert!(events <= bytes.len() / 4);
        });
    }
}
