//! The datagrams of chrony's SOCK reference clock, as gpsd sends them (`struct sock_sample` of `refclock_sock.c`).
//!
//! ```text
//! octets   hold, in the order of the machine (64-bit Linux)
//! 0..8     seconds of the system clock when the sample was taken
//! 8..16    microseconds of it
//! 16..24   true time - system clock in seconds, as a float
//! 24..28   whether it is of a pulse: only the part below a second counts
//! 28..32   leap indicator
//! 32..36   nothing
//! 36..40   0x534f434b ("SOCK")
//! ```

use crate::sample::{ForeignSample, moment};
use ffclock_units::{Leap, Span};

/// The length of a datagram.
pub const SOCK_BYTES: usize = 40;
const MAGIC: u32 = 0x534f_434b;
/// A system clock that is wrong by more than this, some 30 years, has nothing to do with time.
const FURTHEST: f64 = 1e9;

/// What one datagram says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SockSample {
    /// The sample.
    pub sample: ForeignSample,
    /// Whether it is of a pulse.
    pub is_pulse: bool,
}

/// Why a datagram is no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SockRefused {
    /// It has another length.
    Length,
    /// It does not end as a sample does.
    Magic,
    /// It holds no time, or an offset that is none.
    NoTime,
    /// The sender says that it is not synchronised (leap indicator 3).
    Unsynchronised,
}

impl SockRefused {
    /// The name in counts.
    pub const fn name(self) -> &'static str {
        match self {
            SockRefused::Length => "length",
            SockRefused::Magic => "magic",
            SockRefused::NoTime => "no-time",
            SockRefused::Unsynchronised => "unsynchronised",
        }
    }
}

impl SockSample {
    /// Reads a datagram.
    ///
    /// # Errors
    /// It is none of these, or it holds no time.
    pub fn parse(datagram: &[u8]) -> Result<Self, SockRefused> {
        let bytes: &[u8; SOCK_BYTES] = datagram.try_into().map_err(|_| SockRefused::Length)?;
        let word = |place: usize| {
            u32::from_ne_bytes(core::array::from_fn(|byte| bytes.get(place + byte).copied().unwrap_or(0)))
        };
        let long = |place: usize| {
            i64::from_ne_bytes(core::array::from_fn(|byte| bytes.get(place + byte).copied().unwrap_or(0)))
        };
        if word(36) != MAGIC {
            return Err(SockRefused::Magic);
        }
        let micros = long(8).checked_mul(1000).ok_or(SockRefused::NoTime)?;
        let received = moment(long(0), micros).ok_or(SockRefused::NoTime)?;
        let offset = f64::from_bits(long(16).cast_unsigned());
        if offset.is_nan() || offset.abs() > FURTHEST {
            return Err(SockRefused::NoTime);
        }
        let leap = match word(28) {
            1 => Leap::Insert,
            2 => Leap::Delete,
            3 => return Err(SockRefused::Unsynchronised),
            _ => Leap::None,
        };
        let sample = ForeignSample { received, time: received + Span::from_seconds(offset), leap };
        Ok(SockSample { sample, is_pulse: word(24) != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Moment;

    fn datagram(seconds: i64, micros: i64, offset: f64) -> [u8; SOCK_BYTES] {
        let mut bytes = [0; SOCK_BYTES];
        bytes[..8].copy_from_slice(&seconds.to_ne_bytes());
        bytes[8..16].copy_from_slice(&micros.to_ne_bytes());
        bytes[16..24].copy_from_slice(&offset.to_ne_bytes());
        bytes[36..].copy_from_slice(&MAGIC.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_datagram_is_a_time_of_the_system_clock_and_what_to_add() {
        let read = SockSample::parse(&datagram(1_700_000_000, 500_000, 0.25)).unwrap();
        assert_eq!(read.sample.received, Moment::from_origin(Span::from_millis(1_700_000_000_500)));
        assert_eq!(read.sample.time, Moment::from_origin(Span::from_millis(1_700_000_000_750)));
        assert_eq!((read.is_pulse, read.sample.leap), (false, Leap::None));
        let mut pulse = datagram(1, 2, -1e-6);
        (pulse[24], pulse[28]) = (1, 1);
        if cfg!(target_endian = "little") {
            let read = SockSample::parse(&pulse).unwrap();
            assert_eq!((read.is_pulse, read.sample.leap), (true, Leap::Insert));
            pulse[28] = 3;
            assert_eq!(SockSample::parse(&pulse), Err(SockRefused::Unsynchronised));
        }
    }

    #[test]
    fn what_is_no_sample_is_refused() {
        let fine = datagram(1_700_000_000, 0, 0.0);
        assert_eq!(SockSample::parse(&fine[..39]), Err(SockRefused::Length));
        assert_eq!(SockSample::parse(&[0; 41]), Err(SockRefused::Length));
        assert_eq!(SockSample::parse(&[0; SOCK_BYTES]), Err(SockRefused::Magic));
        for (micros, offset) in
            [(-1, 0.0), (1_000_000, 0.0), (i64::MAX, 0.0), (0, f64::NAN), (0, f64::INFINITY), (0, 2e9)]
        {
            assert_eq!(SockSample::parse(&datagram(1, micros, offset)), Err(SockRefused::NoTime), "{micros} {offset}");
        }
    }
}
