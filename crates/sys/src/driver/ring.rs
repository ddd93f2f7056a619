//! The pages of the kernel's trace buffer, as `trace_pipe_raw` gives them, and the text that says what an event's bytes mean.
//!
//! A page is a time (8 bytes), the length of what follows with flags in its upper bits (8 bytes), and events. An event begins with a word of
//! 5 bits of type and 27 bits of time since the one before (`events/header_event` of tracefs). The parser accepts any bytes: what makes no
//! sense ends the page.

/// Bytes before the first event.
const HEADER: usize = 16;
/// Below the flags that tell of lost events.
const LENGTH_MASK: u64 = (1 << 20) - 1;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;

/// One event: when it happened by the clock of the trace, and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawEvent<'a> {
    /// The clock of the trace.
    pub time: u64,
    /// The fields, as the event's format says.
    pub fields: &'a [u8],
}

/// The events of one page, in order.
#[derive(Clone, Debug)]
pub struct RawEvents<'a> {
    rest: &'a [u8],
    time: u64,
}

/// The events of a page; none where it is not one.
pub fn raw_events(page: &[u8]) -> RawEvents<'_> {
    let nothing = RawEvents { rest: &[], time: 0 };
    let (Some(time), Some(length)) = (u64_at(page, 0), u64_at(page, 8)) else { return nothing };
    let Some(data) = page.get(HEADER..) else { return nothing };
    let length = usize::try_from(length & LENGTH_MASK).unwrap_or(usize::MAX).min(data.len());
    RawEvents { rest: data.get(..length).unwrap_or_default(), time }
}

impl<'a> RawEvents<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn take_word(&mut self) -> Option<u32> {
        u32_at(self.take(4)?, 0)
    }

    /// The length of the fields of an event of this type, which the next word may hold. (The length counts that word as well.)
    fn length_of(&mut self, kind: u32) -> Option<usize> {
        if kind != 0 {
            return usize::try_from(kind * 4).ok();
        }
        let length = usize::try_from(self.take_word()?).ok()?;
        length.checked_sub(4)?.checked_next_multiple_of(4)
    }

    fn step(&mut self) -> Option<Option<RawEvent<'a>>> {
        let word = self.take_word()?;
        let (kind, delta) = (word & 0x1f, u64::from(word >> 5));
        match kind {
            PADDING if delta == 0 => None,
            PADDING => {
                self.time = self.time.wrapping_add(delta);
                let length = self.length_of(0)?;
                self.take(length)?;
                Some(None)
            }
            TIME_EXTEND => {
                let more = u64::from(self.take_word()?) << DELTA_BITS;
                self.time = self.time.wrapping_add(more.wrapping_add(delta));
                Some(None)
            }
            TIME_STAMP => {
                // Absolute, but for the upper 5 bits, for which there is no room.
                let lower = (u64::from(self.take_word()?) << DELTA_BITS) + delta;
                self.time = (self.time & !((1 << 59) - 1)) | lower;
                Some(None)
            }
            _ => {
                self.time = self.time.wrapping_add(delta);
                let length = self.length_of(kind)?;
                Some(Some(RawEvent { time: self.time, fields: self.take(length)? }))
            }
        }
    }
}

impl<'a> Iterator for RawEvents<'a> {
    type Item = RawEvent<'a>;

    fn next(&mut self) -> Option<RawEvent<'a>> {
        loop {
            match self.step() {
                Some(Some(event)) => return Some(event),
                Some(None) => {}
                None => {
                    self.rest = &[];
                    return None;
                }
            }
        }
    }
}

/// Where a field of an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    offset: usize,
    size: usize,
}

/// What is known of a kind of event from its `format` file: its number, and where a field called `len` stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventFormat {
    id: u64,
    kind: Place,
    length: Place,
}

impl EventFormat {
    /// Reads a `format` file; `None` where it does not say what is needed.
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        Some(EventFormat { id, kind: place_of(text, "common_type")?, length: place_of(text, "len")? })
    }

    /// The field `len` of an event, if the event is of this kind.
    pub fn length_in(&self, fields: &[u8]) -> Option<u64> {
        let is_mine = number_at(fields, self.kind)? == self.id;
        if is_mine { number_at(fields, self.length) } else { None }
    }
}

/// A line such as `field:unsigned int len; offset:36; size:4; signed:0;`, with tabs between the parts.
fn place_of(format: &str, name: &str) -> Option<Place> {
    format.lines().find_map(|line| {
        let mut parts = line.trim().split(';').map(str::trim);
        let declared = parts.next()?.strip_prefix("field:")?;
        if declared.rsplit(' ').next()? != name {
            return None;
        }
        let offset = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
        let size = parts.next()?.strip_prefix("size:")?.parse().ok()?;
        Some(Place { offset, size })
    })
}

fn number_at(fields: &[u8], place: Place) -> Option<u64> {
    let end = place.offset.checked_add(place.size)?;
    let bytes = fields.get(place.offset..end)?;
    let mut word = [0; 8];
    word.get_mut(..place.size)?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(word))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FORMAT: &str = "name: netif_receive_skb\nID: 2303\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:void * skbaddr;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int len;\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:__data_loc char[] name;\toffset:20;\tsize:4;\tsigned:0;\n";

    fn page(time: u64, words: &[u32]) -> Vec<u8> {
        let mut bytes = time.to_le_bytes().to_vec();
        // With the flag that events were lost before.
        bytes.extend_from_slice(&((words.len() as u64 * 4) | (1 << 31)).to_le_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(4096, 0xee);
        bytes
    }

    #[test]
    fn times_add_up_over_every_kind_of_entry() {
        let words = [
            (5 << 5) | 1,
            0xabcd,
            (7 << 5) | TIME_EXTEND,
            1,
            (1 << 5) | PADDING,
            12,
            0,
            0,
            (2 << 5),
            12,
            1,
            2,
            (9 << 5) | TIME_STAMP,
            3,
            1,
            0xffff,
        ];
        let found: Vec<(u64, usize)> =
            raw_events(&page(1_000, &words)).map(|event| (event.time, event.fields.len())).collect();
        let after = 1_005 + (1 << 27) + 7 + 1 + 2;
        assert_eq!(found, [(1_005, 4), (after, 8), ((3 << 27) + 9, 4)]);
    }

    #[test]
    fn a_page_that_breaks_off_ends() {
        assert_eq!(raw_events(&[]).count(), 0);
        assert_eq!(raw_events(&page(1, &[(5 << 5) | 4, 1, 2])).count(), 0);
        assert_eq!(raw_events(&page(1, &[PADDING, 1, 2])).count(), 0);
        assert_eq!(raw_events(&page(1, &[5 << 5, 3])).count(), 0, "a length shorter than itself");
    }

    #[test]
    fn a_format_says_where_the_length_is() {
        let format = EventFormat::parse(FORMAT).unwrap();
        let mut fields = [0_u8; 24];
        fields[..2].copy_from_slice(&2303_u16.to_le_bytes());
        fields[16] = 76;
        assert_eq!(format.length_in(&fields), Some(76));
        fields[0] = 1;
        assert_eq!(format.length_in(&fields), None);
        assert_eq!(EventFormat::parse("ID: 7\n"), None);
        assert_eq!(EventFormat::parse(&FORMAT.replace("size:4", "size:9")).unwrap().length_in(&[0xff; 64]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_page(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let total: usize = raw_events(&bytes).map(|event| event.fields.len()).sum();
            prop_assert!(total <= bytes.len());
        }

        #[test]
        fn any_text_is_a_format(text in ".{0,200}", fields in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Some(format) = EventFormat::parse(&format!("{FORMAT}{text}")) {
                let _ = format.length_in(&fields);
            }
        }
    }
}
