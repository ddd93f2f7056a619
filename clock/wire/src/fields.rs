//! The small fields of the header, each with a type of its own.

use core::fmt;
use ffclock_units::{Bound, Leap, Span};

/// The leap indicator (RFC 5905, figure 9). Its fourth value says that the server's clock is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum LeapIndicator {
    /// No leap second is ahead.
    #[default]
    None,
    /// The last minute of this month has 61 seconds.
    Insert,
    /// The last minute of this month has 59 seconds.
    Delete,
    /// The server's clock is not synchronised.
    Unsynchronised,
}

impl LeapIndicator {
    /// From the low two bits.
    pub(crate) const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => LeapIndicator::None,
            1 => LeapIndicator::Insert,
            2 => LeapIndicator::Delete,
            _ => LeapIndicator::Unsynchronised,
        }
    }

    pub(crate) const fn bits(self) -> u8 {
        match self {
            LeapIndicator::None => 0,
            LeapIndicator::Insert => 1,
            LeapIndicator::Delete => 2,
            LeapIndicator::Unsynchronised => 3,
        }
    }

    /// The server's announcement; `None` when its clock is not synchronised.
    pub const fn announced(self) -> Option<Leap> {
        match self {
            LeapIndicator::None => Some(Leap::None),
            LeapIndicator::Insert => Some(Leap::Insert),
            LeapIndicator::Delete => Some(Leap::Delete),
            LeapIndicator::Unsynchronised => None,
        }
    }
}

impl From<Leap> for LeapIndicator {
    fn from(leap: Leap) -> Self {
        match leap {
            Leap::None => LeapIndicator::None,
            Leap::Insert => LeapIndicator::Insert,
            Leap::Delete => LeapIndicator::Delete,
        }
    }
}

/// The versions of the protocol whose header this crate reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Version {
    /// NTPv3 (RFC 1305); its header has the same form.
    V3,
    /// NTPv4 (RFC 5905).
    #[default]
    V4,
}

impl Version {
    /// From the low three bits.
    pub(crate) const fn from_bits(bits: u8) -> Option<Self> {
        match bits & 7 {
            3 => Some(Version::V3),
            4 => Some(Version::V4),
            _ => None,
        }
    }

    pub(crate) const fn bits(self) -> u8 {
        match self {
            Version::V3 => 3,
            Version::V4 => 4,
        }
    }
}

/// The role of the sender (RFC 5905, figure 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Mode 0: reserved.
    Reserved,
    /// Mode 1: a peer that speaks first.
    SymmetricActive,
    /// Mode 2: a peer that answers.
    SymmetricPassive,
    /// Mode 3: a request.
    Client,
    /// Mode 4: a reply.
    Server,
    /// Mode 5: a broadcast.
    Broadcast,
    /// Mode 6: a control message.
    Control,
    /// Mode 7: private use.
    Private,
}

impl Mode {
    /// From the low three bits.
    pub(crate) const fn from_bits(bits: u8) -> Self {
        match bits & 7 {
            0 => Mode::Reserved,
            1 => Mode::SymmetricActive,
            2 => Mode::SymmetricPassive,
            3 => Mode::Client,
            4 => Mode::Server,
            5 => Mode::Broadcast,
            6 => Mode::Control,
            _ => Mode::Private,
        }
    }

    pub(crate) const fn bits(self) -> u8 {
        match self {
            Mode::Reserved => 0,
            Mode::SymmetricActive => 1,
            Mode::SymmetricPassive => 2,
            Mode::Client => 3,
            Mode::Server => 4,
            Mode::Broadcast => 5,
            Mode::Control => 6,
            Mode::Private => 7,
        }
    }
}

/// A length of time as the power of two of a second that is nearest: the fields poll and precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LogSeconds(i8);

impl LogSeconds {
    /// The finest power that a span can hold.
    const FINEST: i8 = -64;
    /// The coarsest power that a span can hold.
    const COARSEST: i8 = 62;

    /// From the exponent: -20 stands for about a microsecond.
    pub const fn from_exponent(exponent: i8) -> Self {
        LogSeconds(exponent)
    }

    /// The exponent.
    pub const fn exponent(self) -> i8 {
        self.0
    }

    /// The length as a bound: below 2^-64 s it is one unit, above 2^62 s it is unknown.
    pub const fn as_bound(self) -> Bound {
        if self.0 > Self::COARSEST {
            return Bound::UNKNOWN;
        }
        let exponent = if self.0 < Self::FINEST { Self::FINEST } else { self.0 };
        debug_assert!(exponent >= Self::FINEST && exponent - Self::FINEST < 127, "both ends were cut off");
        Bound::of(Span::from_units(1 << (exponent - Self::FINEST)))
    }
}

/// The four letters of a refusal (RFC 5905, section 7.4), in the place of the reference identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KissCode([u8; 4]);

impl KissCode {
    /// Access denied: stop asking.
    pub const DENY: KissCode = KissCode(*b"DENY");
    /// Access denied by policy: stop asking.
    pub const RSTR: KissCode = KissCode(*b"RSTR");
    /// Asked too often: ask less often.
    pub const RATE: KissCode = KissCode(*b"RATE");
    /// A cookie or an authenticator that the server does not accept: establish keys again (RFC 8915, section 5.7).
    pub const NTSN: KissCode = KissCode(*b"NTSN");

    /// From the bytes of the packet.
    pub const fn from_bytes(letters: [u8; 4]) -> Self {
        KissCode(letters)
    }

    /// As the bytes of the packet.
    pub const fn bytes(self) -> [u8; 4] {
        self.0
    }
}

impl fmt::Display for KissCode {
    /// The letters. Bytes that do not print are escaped, because they come from the network.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_bit_pattern_has_its_meaning_and_returns() {
        for bits in 0..4 {
            assert_eq!(LeapIndicator::from_bits(bits).bits(), bits);
        }
        for bits in 0..8 {
            assert_eq!(Mode::from_bits(bits).bits(), bits);
            assert_eq!(Version::from_bits(bits).map(Version::bits), (bits == 3 || bits == 4).then_some(bits));
        }
    }

    #[test]
    fn precision_becomes_a_bound_at_every_exponent() {
        assert_eq!(LogSeconds::from_exponent(0).as_bound(), Bound::of(Span::from_secs(1)));
        assert_eq!(LogSeconds::from_exponent(-2).as_bound(), Bound::of(Span::from_millis(250)));
        assert_eq!(LogSeconds::from_exponent(-128).as_bound(), Bound::of(Span::from_units(1)));
        assert_eq!(LogSeconds::from_exponent(62).as_bound(), Bound::of(Span::from_secs(1 << 62)));
        assert_eq!(LogSeconds::from_exponent(63).as_bound(), Bound::UNKNOWN);
        for exponent in i8::MIN..i8::MAX {
            let here = LogSeconds::from_exponent(exponent);
            assert!(here.as_bound() <= LogSeconds::from_exponent(exponent + 1).as_bound());
        }
    }

    #[test]
    fn an_unsynchronised_server_announces_nothing() {
        assert_eq!(LeapIndicator::Unsynchronised.announced(), None);
        for leap in [Leap::None, Leap::Insert, Leap::Delete] {
            assert_eq!(LeapIndicator::from(leap).announced(), Some(leap));
        }
    }

    #[test]
    fn codes_print_without_trusting_the_network() {
        assert_eq!(KissCode::RATE.to_string(), "RATE");
        assert_eq!(KissCode::from_bytes([b'A', 0, 27, 255]).to_string(), "A\\x00\\x1b\\xff");
    }
}
