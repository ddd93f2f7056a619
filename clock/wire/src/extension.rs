//! Extension fields of NTPv4 (RFC 7822): what follows the header of a packet.
//!
//! A field is its type (2 octets), its length with these four octets (2), and its body. Reading is total: it gives
//! fields until the end or until the first thing that is none. Lengths below the 16 octets that RFC 7822 asks for are
//! read as long as they are whole words: some clients send them.

/// Octets of a field before its body.
pub const EXTENSION_HEAD_BYTES: usize = 4;

/// One extension field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionField<'d> {
    /// Its type.
    pub kind: u16,
    /// Where it begins, in octets after the first one that was read.
    pub at: usize,
    /// What follows its type and length; a multiple of four octets.
    pub body: &'d [u8],
}

impl ExtensionField<'_> {
    /// Where the field ends, in octets after the first one that was read.
    pub const fn end(&self) -> usize {
        self.at + EXTENSION_HEAD_BYTES + self.body.len()
    }
}

/// The octets are no extension field: a length that is too short, too long, or no multiple of four; a MAC among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotExtension;

/// The fields in what follows a header, one after the other. After an error there is nothing more.
#[derive(Clone, Debug)]
pub struct ExtensionFields<'d> {
    octets: &'d [u8],
    at: usize,
}

impl<'d> ExtensionFields<'d> {
    /// The fields of a datagram, whose first `at` octets are read already.
    pub const fn after(octets: &'d [u8], at: usize) -> Self {
        ExtensionFields { octets, at }
    }

    fn read(&self) -> Option<ExtensionField<'d>> {
        let rest = self.octets.get(self.at..)?;
        let &[a, b, c, d] = rest.first_chunk()?;
        let length = usize::from(u16::from_be_bytes([c, d]));
        if !length.is_multiple_of(4) {
            return None;
        }
        let body = rest.get(EXTENSION_HEAD_BYTES..length)?;
        Some(ExtensionField { kind: u16::from_be_bytes([a, b]), at: self.at, body })
    }
}

impl<'d> Iterator for ExtensionFields<'d> {
    type Item = Result<ExtensionField<'d>, NotExtension>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.octets.len() {
            return None;
        }
        let field = self.read();
        self.at = field.map_or(usize::MAX, |field| field.end());
        Some(field.ok_or(NotExtension))
    }
}

/// Writes the type and the length of a field whose body has `body` octets to the beginning of `room`, and gives where
/// its body begins and the field ends. `None` if it does not fit, or if `body` is no multiple of four.
pub fn begin_extension(room: &mut [u8], kind: u16, body: usize) -> Option<&mut [u8]> {
    let length =
        u16::try_from(body.checked_add(EXTENSION_HEAD_BYTES)?).ok().filter(|length| length.is_multiple_of(4))?;
    let (head, rest) = room.split_first_chunk_mut::<EXTENSION_HEAD_BYTES>()?;
    let body = rest.get_mut(..body)?;
    let ([a, b], [c, d]) = (kind.to_be_bytes(), length.to_be_bytes());
    *head = [a, b, c, d];
    Some(body)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn fields_come_one_after_the_other_and_odd_ones_too() {
        let octets = [0xfe, 0xc2, 0, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 4, 0, 4];
        let fields: Vec<_> = ExtensionFields::after(&octets, 0).map(Result::unwrap).collect();
        assert_eq!(fields[0], ExtensionField { kind: 0xfec2, at: 0, body: &octets[4..16] });
        assert_eq!(fields[1], ExtensionField { kind: 0x0104, at: 16, body: &[] });
        assert_eq!(fields.len(), 2);
    }

    #[test]
    fn what_is_no_field_ends_the_reading() {
        for octets in [&[1, 4, 0, 3][..], &[1, 4, 0, 6, 0, 0], &[1, 4, 0, 8], &[1, 4, 0, 0], &[1], &[1, 4, 0xff, 0xfc]]
        {
            let mut fields = ExtensionFields::after(octets, 0);
            assert_eq!(fields.next(), Some(Err(NotExtension)), "{octets:?}");
            assert_eq!(fields.next(), None);
        }
        assert_eq!(ExtensionFields::after(&[1, 2], 9).next(), None);
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        let mut room = [7; 8];
        for body in [1, 2, 8, usize::MAX, 65_532] {
            assert!(begin_extension(&mut room, 1, body).is_none());
        }
        assert_eq!(room, [7; 8]);
        assert_eq!(begin_extension(&mut room, 0x0204, 4).unwrap(), [7; 4]);
        assert_eq!(room, [2, 4, 0, 8, 7, 7, 7, 7]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(kind: u16, body in prop::collection::vec(any::<[u8; 4]>(), 0..50)) {
            let body = body.concat();
            let mut room = [0; 256];
            begin_extension(&mut room, kind, body.len()).unwrap().copy_from_slice(&body);
            let end = EXTENSION_HEAD_BYTES + body.len();
            let field = ExtensionFields::after(&room[..end], 0).next().unwrap().unwrap();
            prop_assert_eq!((field.kind, field.body, field.end()), (kind, &body[..], end));
        }

        #[test]
        fn reading_ends_and_stays_inside(octets in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..400) {
            let mut last = at;
            for field in ExtensionFields::after(&octets, at).flatten() {
                prop_assert!(field.at == last && field.end() > last && field.end() <= octets.len());
                last = field.end();
            }
        }
    }
}
