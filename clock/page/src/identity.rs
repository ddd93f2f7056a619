//! The name of a boot in a page.

/// One run of the machine from start to stop: counters of different runs have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BootId(u128);

impl BootId {
    /// From the 128 bits of an identifier; `None` for all ones, which a page uses for "not stated".
    pub const fn from_bits(bits: u128) -> Option<Self> {
        if bits == u128::MAX { None } else { Some(BootId(bits)) }
    }

    /// The 128 bits.
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// From the text of Linux's `/proc/sys/kernel/random/boot_id`: 32 hexadecimal digits with hyphens among them.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bits = 0u128;
        let mut digits = 0;
        for symbol in text.trim().chars().filter(|symbol| *symbol != '-') {
            bits = (bits << 4) | u128::from(symbol.to_digit(16)?);
            digits += 1;
        }
        if digits == 32 { Self::from_bits(bits) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_identifier_is_read_as_linux_writes_it() {
        let id = BootId::parse("01234567-89ab-cdef-0123-456789abcdef\n").unwrap();
        assert_eq!(id.bits(), 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        for wrong in ["", "0123", "x1234567-89ab-cdef-0123-456789abcdef", "ffffffff-ffff-ffff-ffff-ffffffffffff"] {
            assert_eq!(BootId::parse(wrong), None, "{wrong}");
        }
    }
}
