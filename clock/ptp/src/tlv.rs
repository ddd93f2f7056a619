//! What may follow a message: fields of type, length and value (IEEE 1588-2019, clause 14), and those of unicast
//! negotiation (16.1).

use crate::octets::PtpOctets;
use crate::{ClockIdentity, NotPtp};

/// More TLVs than any message of a profile has; a message with more is not read.
pub const TLVS_MAX: usize = 16;

const REQUEST_UNICAST: u16 = 0x0004;
const GRANT_UNICAST: u16 = 0x0005;
const CANCEL_UNICAST: u16 = 0x0006;
const ACKNOWLEDGE_CANCEL: u16 = 0x0007;
const PATH_TRACE: u16 = 0x0008;

/// One field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlv<'d> {
    /// Its type (14.1.1, table 52).
    pub kind: u16,
    /// Its value, an even number of octets.
    pub value: &'d [u8],
}

impl Tlv<'_> {
    /// Whether it is the list of clocks that an Announce message has passed (16.2), with this one among them.
    pub(crate) fn has_passed(&self, clock: ClockIdentity) -> bool {
        self.kind == PATH_TRACE && self.value.as_chunks::<8>().0.contains(&clock.octets())
    }
}

/// The fields of a message, one after the other, [`TLVS_MAX`] at most. After an error there is nothing more.
#[derive(Clone, Debug)]
pub struct Tlvs<'d> {
    rest: &'d [u8],
    left: usize,
}

impl<'d> Tlvs<'d> {
    pub(crate) const fn of(octets: &'d [u8]) -> Self {
        Tlvs { rest: octets, left: TLVS_MAX }
    }

    fn read(&mut self) -> Option<Tlv<'d>> {
        self.left = self.left.checked_sub(1)?;
        let (&[a, b, c, d], rest) = self.rest.split_first_chunk()?;
        let length = usize::from(u16::from_be_bytes([c, d]));
        let (value, rest) = rest.split_at_checked(length).filter(|_| length.is_multiple_of(2))?;
        self.rest = rest;
        Some(Tlv { kind: u16::from_be_bytes([a, b]), value })
    }
}

impl<'d> Iterator for Tlvs<'d> {
    type Item = Result<Tlv<'d>, NotPtp>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let tlv = self.read();
        if tlv.is_none() {
            self.rest = &[];
        }
        Some(tlv.ok_or(NotPtp::Tlv))
    }
}

/// Messages that one clock sends to another on request (16.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnicastService {
    /// Announce.
    Announce,
    /// Sync, with its Follow_Up.
    Sync,
    /// Delay_Resp to each Delay_Req.
    DelayResp,
}

impl UnicastService {
    /// In the order in which they are asked for.
    pub const ALL: [UnicastService; 3] = [UnicastService::Announce, UnicastService::Sync, UnicastService::DelayResp];

    /// Its place in [`UnicastService::ALL`].
    pub const fn index(self) -> usize {
        match self {
            UnicastService::Announce => 0,
            UnicastService::Sync => 1,
            UnicastService::DelayResp => 2,
        }
    }

    const fn kind(self) -> u8 {
        match self {
            UnicastService::Announce => 0xb,
            UnicastService::Sync => 0x0,
            UnicastService::DelayResp => 0x9,
        }
    }

    fn of_octet(octet: u8) -> Option<Self> {
        UnicastService::ALL.into_iter().find(|service| service.kind() == octet >> 4)
    }
}

/// How often and how long messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnicastTerms {
    /// The time between two messages as the power of two of a second.
    pub log_interval: i8,
    /// For how long [s]; 0 refuses.
    pub seconds: u32,
}

/// A word of unicast negotiation (16.1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnicastWord {
    /// The sender would like these messages.
    Request(UnicastService, UnicastTerms),
    /// The sender will send them, or refuses.
    Grant(UnicastService, UnicastTerms),
    /// The sender will not send them, or does not want them, any longer.
    Cancel(UnicastService),
    /// The sender has seen the cancellation.
    AcknowledgeCancel(UnicastService),
}

impl UnicastWord {
    /// The word of a TLV; `None` of any other TLV, and of messages that are not negotiated here.
    pub fn read(tlv: &Tlv<'_>) -> Option<Self> {
        let &[octet, log_interval, ..] = tlv.value else { return None };
        let service = UnicastService::of_octet(octet)?;
        let terms = || {
            let &[_, _, a, b, c, d, ..] = tlv.value else { return None };
            Some(UnicastTerms { log_interval: log_interval.cast_signed(), seconds: u32::from_be_bytes([a, b, c, d]) })
        };
        Some(match tlv.kind {
            REQUEST_UNICAST => UnicastWord::Request(service, terms()?),
            GRANT_UNICAST => UnicastWord::Grant(service, terms()?),
            CANCEL_UNICAST => UnicastWord::Cancel(service),
            ACKNOWLEDGE_CANCEL => UnicastWord::AcknowledgeCancel(service),
            _ => return None,
        })
    }

    /// Appends the word to a Signaling message.
    pub(crate) fn write(self, octets: &mut PtpOctets) {
        let (kind, service, length) = match self {
            UnicastWord::Request(service, _) => (REQUEST_UNICAST, service, 6_u16),
            UnicastWord::Grant(service, _) => (GRANT_UNICAST, service, 8),
            UnicastWord::Cancel(service) => (CANCEL_UNICAST, service, 2),
            UnicastWord::AcknowledgeCancel(service) => (ACKNOWLEDGE_CANCEL, service, 2),
        };
        octets.put(&kind.to_be_bytes());
        octets.put(&length.to_be_bytes());
        octets.put(&[service.kind() << 4]);
        match self {
            UnicastWord::Request(_, terms) => write_terms(terms, octets),
            UnicastWord::Grant(_, terms) => {
                write_terms(terms, octets);
                // Asking again is welcome (16.1.4.2.5).
                octets.put(&[0, 1]);
            }
            UnicastWord::Cancel(_) | UnicastWord::AcknowledgeCancel(_) => octets.put(&[0]),
        }
        octets.state_length();
    }
}

fn write_terms(terms: UnicastTerms, octets: &mut PtpOctets) {
    octets.put(&terms.log_interval.to_be_bytes());
    octets.put(&terms.seconds.to_be_bytes());
}
