//! Bytes to messages and back (IEEE 1588-2019, clause 13).
//!
//! Decoding is total: any bytes give a message or a reason. What follows a message inside its datagram is padding.

use crate::octets::{PtpOctets, Reader};
use crate::tlv::Tlvs;
use crate::{Announcement, Correction, PortIdentity, PtpTimestamp};
use core::fmt;

/// The longest datagram that is read.
pub const MESSAGE_BYTES_MAX: usize = 2048;
/// The common header (13.3).
pub(crate) const HEADER_BYTES: usize = 34;
/// The period field of a message that has no period, or is sent to one address (table 42).
pub const LOG_INTERVAL_NONE: i8 = 0x7f;

/// Bits of the flag field, its first octet in the upper half (13.3.2.8, table 37).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PtpFlags(pub u16);

impl PtpFlags {
    /// The sender is not the master of this path now.
    pub const ALTERNATE_MASTER: PtpFlags = PtpFlags(0x0100);
    /// A Follow_Up says when this message left.
    pub const TWO_STEP: PtpFlags = PtpFlags(0x0200);
    /// The message was sent to one address.
    pub const UNICAST: PtpFlags = PtpFlags(0x0400);
    /// The last minute of this day has 61 seconds.
    pub const LEAP_61: PtpFlags = PtpFlags(0x0001);
    /// The last minute of this day has 59 seconds.
    pub const LEAP_59: PtpFlags = PtpFlags(0x0002);
    /// TAI - UTC of the Announce message is right.
    pub const UTC_OFFSET_VALID: PtpFlags = PtpFlags(0x0004);
    /// Times are TAI; otherwise the scale is arbitrary.
    pub const PTP_TIMESCALE: PtpFlags = PtpFlags(0x0008);
    /// The time is traceable to a primary reference.
    pub const TIME_TRACEABLE: PtpFlags = PtpFlags(0x0010);
    /// The rate is traceable to a primary reference.
    pub const FREQUENCY_TRACEABLE: PtpFlags = PtpFlags(0x0020);
    /// The sender is not sure of its time at present.
    pub const UNCERTAIN: PtpFlags = PtpFlags(0x0040);

    /// Whether all bits of `other` are set.
    pub const fn has(self, other: PtpFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of both.
    #[must_use]
    pub const fn and(self, other: PtpFlags) -> PtpFlags {
        PtpFlags(self.0 | other.0)
    }

    /// These bits but for those of `other`.
    #[must_use]
    pub(crate) const fn without(self, other: PtpFlags) -> PtpFlags {
        PtpFlags(self.0 & !other.0)
    }
}

/// What a message says, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtpBody {
    /// Sync (13.6): when it left, exactly or about.
    Sync(PtpTimestamp),
    /// Delay_Req (13.6): when it left, about; 0 from us.
    DelayReq(PtpTimestamp),
    /// Pdelay_Req (13.9): when it left, about; 0 from us.
    PdelayReq(PtpTimestamp),
    /// Pdelay_Resp (13.10): when the request arrived, or 0, and whose it is.
    PdelayResp(PtpTimestamp, PortIdentity),
    /// Follow_Up (13.7): when the Sync left.
    FollowUp(PtpTimestamp),
    /// Delay_Resp (13.8): when the request arrived, and whose it is.
    DelayResp(PtpTimestamp, PortIdentity),
    /// Pdelay_Resp_Follow_Up (13.11): when the response left, or 0, and whose request it is.
    PdelayRespFollowUp(PtpTimestamp, PortIdentity),
    /// Announce (13.5).
    Announce(Announcement),
    /// Signaling (13.12): for which port. What it says is in its TLVs.
    Signaling(PortIdentity),
    /// Management (clause 15), which is not read.
    Management,
}

/// A message without its TLVs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PtpMessage {
    /// The kind and what it says.
    pub body: PtpBody,
    /// The organisation whose profile this is, 12 bits (7.1.4); 0 is IEEE 1588 itself.
    pub sdo: u16,
    /// The domain: clocks of other domains do not concern each other (7.1).
    pub domain: u8,
    /// Flags.
    pub flags: PtpFlags,
    /// How long switches held the message up, and fractions of nanoseconds.
    pub correction: Correction,
    /// Who sends it.
    pub source: PortIdentity,
    /// Its number among those of its kind, or that of the message which it belongs to.
    pub sequence: u16,
    /// The time between two messages of this kind, as the power of two of a second.
    pub log_interval: i8,
}

/// Why bytes are no message that this crate reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPtp {
    /// Shorter than its kind, or than it says.
    Truncated,
    /// Longer than [`MESSAGE_BYTES_MAX`].
    TooLong,
    /// This version, which is not 2.
    Version(u8),
    /// This kind, which is reserved.
    Kind(u8),
    /// What follows the message is no list of TLVs, or a longer one than is read.
    Tlv,
}

impl fmt::Display for NotPtp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotPtp::Truncated => write!(f, "shorter than a message of its kind, or than it says"),
            NotPtp::TooLong => write!(f, "longer than {MESSAGE_BYTES_MAX} bytes"),
            NotPtp::Version(version) => write!(f, "PTP version {version}, not 2"),
            NotPtp::Kind(kind) => write!(f, "message type {kind:x}, which is reserved"),
            NotPtp::Tlv => write!(f, "no list of TLVs, or one that is too long"),
        }
    }
}

impl core::error::Error for NotPtp {}

impl PtpMessage {
    /// Reads the message at the beginning of a datagram, and gives its TLVs unread.
    ///
    /// # Errors
    /// A datagram that is too short or too long, of another version or of a reserved kind.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Tlvs<'_>), NotPtp> {
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(NotPtp::TooLong);
        }
        let &[first, second, length_high, length_low, ..] = bytes else { return Err(NotPtp::Truncated) };
        if second & 0xf != 2 {
            return Err(NotPtp::Version(second & 0xf));
        }
        let length = usize::from(u16::from_be_bytes([length_high, length_low]));
        let mut reader = Reader::of(bytes.get(..length).ok_or(NotPtp::Truncated)?);
        let [_, _, _, _, domain, minor_sdo, flags_high, flags_low] = reader.take()?;
        let correction = Correction::from_raw(i64::from_be_bytes(reader.take()?));
        let _specific: [u8; 4] = reader.take()?;
        let source = PortIdentity::from_octets(reader.take()?);
        let sequence = u16::from_be_bytes(reader.take()?);
        let [_control, log_interval] = reader.take()?;
        let flags = PtpFlags(u16::from_be_bytes([flags_high, flags_low]));
        let body = PtpBody::read(first & 0xf, &mut reader, flags)?;
        let tlvs = if body == PtpBody::Management { Tlvs::of(&[]) } else { Tlvs::of(reader.rest()) };
        let sdo = u16::from(first >> 4) << 8 | u16::from(minor_sdo);
        let log_interval = log_interval.cast_signed();
        Ok((PtpMessage { body, sdo, domain, flags, correction, source, sequence, log_interval }, tlvs))
    }

    /// The message as bytes, ready for TLVs to follow. A Management message has its header alone.
    pub fn encode(&self) -> PtpOctets {
        let [major_sdo, minor_sdo] = self.sdo.to_be_bytes();
        let [flags_high, flags_low] = (self.flags.0 | self.body.own_flags().0).to_be_bytes();
        let mut octets = PtpOctets::default();
        octets.put(&[major_sdo << 4 | self.body.kind(), 2, 0, 0, self.domain, minor_sdo, flags_high, flags_low]);
        octets.put(&self.correction.raw().to_be_bytes());
        octets.put(&[0; 4]);
        octets.put(&self.source.octets());
        octets.put(&self.sequence.to_be_bytes());
        octets.put(&[self.body.control(), self.log_interval.cast_unsigned()]);
        debug_assert!(octets.as_slice().len() == HEADER_BYTES, "the header is complete");
        self.body.write(&mut octets);
        octets.state_length();
        octets
    }

    /// A message of this port with nothing but its body; profile 0, sequence 0, no period.
    pub(crate) const fn plain(source: PortIdentity, domain: u8, body: PtpBody) -> Self {
        let (flags, correction) = (PtpFlags(0), Correction::ZERO);
        PtpMessage { body, sdo: 0, domain, flags, correction, source, sequence: 0, log_interval: LOG_INTERVAL_NONE }
    }
}

impl PtpBody {
    /// The four bits of the header (13.3.2.3, table 36).
    pub const fn kind(&self) -> u8 {
        match self {
            PtpBody::Sync(_) => 0x0,
            PtpBody::DelayReq(_) => 0x1,
            PtpBody::PdelayReq(_) => 0x2,
            PtpBody::PdelayResp(..) => 0x3,
            PtpBody::FollowUp(_) => 0x8,
            PtpBody::DelayResp(..) => 0x9,
            PtpBody::PdelayRespFollowUp(..) => 0xa,
            PtpBody::Announce(_) => 0xb,
            PtpBody::Signaling(_) => 0xc,
            PtpBody::Management => 0xd,
        }
    }

    /// A field of version 1 that nothing reads any more (13.3.2.13, table 42).
    const fn control(&self) -> u8 {
        match self {
            PtpBody::Sync(_) => 0,
            PtpBody::DelayReq(_) => 1,
            PtpBody::FollowUp(_) => 2,
            PtpBody::DelayResp(..) => 3,
            PtpBody::Management => 4,
            _ => 5,
        }
    }

    /// The flags that an Announce message holds as part of what it says.
    const fn own_flags(&self) -> PtpFlags {
        match self {
            PtpBody::Announce(announcement) => announcement.flags,
            _ => PtpFlags(0),
        }
    }

    fn read(kind: u8, reader: &mut Reader<'_>, flags: PtpFlags) -> Result<Self, NotPtp> {
        if kind == 0xc {
            return Ok(PtpBody::Signaling(PortIdentity::from_octets(reader.take()?)));
        }
        if kind == 0xd {
            return Ok(PtpBody::Management);
        }
        if !matches!(kind, 0..=3 | 8..=0xb) {
            return Err(NotPtp::Kind(kind));
        }
        let stamp = PtpTimestamp::from_octets(reader.take()?);
        Ok(match kind {
            0x0 => PtpBody::Sync(stamp),
            0x1 => PtpBody::DelayReq(stamp),
            0x2 => {
                let _reserved: [u8; 10] = reader.take()?;
                PtpBody::PdelayReq(stamp)
            }
            0x3 => PtpBody::PdelayResp(stamp, PortIdentity::from_octets(reader.take()?)),
            0x8 => PtpBody::FollowUp(stamp),
            0x9 => PtpBody::DelayResp(stamp, PortIdentity::from_octets(reader.take()?)),
            0xa => PtpBody::PdelayRespFollowUp(stamp, PortIdentity::from_octets(reader.take()?)),
            _ => PtpBody::Announce(Announcement::from_octets(reader.take()?, flags)),
        })
    }

    fn write(&self, octets: &mut PtpOctets) {
        match self {
            PtpBody::Sync(stamp) | PtpBody::DelayReq(stamp) | PtpBody::FollowUp(stamp) => octets.put(&stamp.octets()),
            PtpBody::PdelayReq(stamp) => {
                octets.put(&stamp.octets());
                octets.put(&[0; 10]);
            }
            PtpBody::PdelayResp(stamp, requester)
            | PtpBody::DelayResp(stamp, requester)
            | PtpBody::PdelayRespFollowUp(stamp, requester) => {
                octets.put(&stamp.octets());
                octets.put(&requester.octets());
            }
            PtpBody::Announce(announcement) => {
                octets.put(&[0; 10]);
                octets.put(&announcement.octets());
            }
            PtpBody::Signaling(target) => octets.put(&target.octets()),
            PtpBody::Management => {}
        }
    }
}
