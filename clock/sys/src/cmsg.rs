//! Control messages as the kernel writes them, decoded byte by byte: no pointer arithmetic, nothing read beyond what
//! was received.
//!
//! A message is its length (8 bytes, header included), level (4), type (4) and data; the next one begins at the next
//! multiple of 8.

use crate::address;
use ffclock_units::{Moment, Span, Utc};
use std::net::SocketAddr;

const HEADER: usize = 16;

/// What came beside a packet or in an entry of the error queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extras {
    /// The kernel's software stamp by the system clock.
    pub(crate) stamped: Option<Moment<Utc>>,
    /// Why the entry is in the error queue.
    pub(crate) error: Option<QueuedError>,
}

/// A `sock_extended_err` (linux/errqueue.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuedError {
    /// The errno: ENOMSG for a stamp, ECONNREFUSED and its like for an ICMP message.
    pub(crate) errno: i32,
    /// Who says so: `SO_EE_ORIGIN_*`.
    pub(crate) origin: u8,
    /// For a stamp: at which point of the way out it was taken, `SCM_TSTAMP_*`.
    pub(crate) info: u32,
    /// For a stamp: the number of the packet, counted by the socket.
    pub(crate) data: u32,
    /// The host that sent the ICMP message.
    pub(crate) offender: Option<SocketAddr>,
}

/// Reads the messages in `control`; what is cut off or unknown is left out.
pub(crate) fn parse(control: &[u8]) -> Extras {
    let mut extras = Extras::default();
    let mut rest = control;
    while let Some((level, kind, data, next)) = split(rest) {
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => extras.stamped = software_stamp(data),
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                extras.error = queued_error(data);
            }
            _ => {}
        }
        rest = next;
    }
    extras
}

/// The stamp of a packet by the system clock (`SO_TIMESTAMPNS`), in ns since 1970.
pub(crate) fn served_stamp(control: &[u8]) -> Option<i64> {
    let mut rest = control;
    while let Some((level, kind, data, next)) = split(rest) {
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            let seconds = i64::from_ne_bytes(*data.first_chunk()?);
            let nanos = i64::from_ne_bytes(*data.get(8..)?.first_chunk()?);
            return seconds.checked_mul(1_000_000_000)?.checked_add(nanos);
        }
        rest = next;
    }
    None
}

/// Where the message is that names our own address, as (beginning, length), made fit to be sent with the reply: the
/// device is left to the host's routes, but for an address that means nothing without it. (0, 0) where there is none.
pub(crate) fn own_address(control: &mut [u8]) -> (usize, usize) {
    let mut begin = 0;
    while let Some((level, kind, data, next)) = control.get(begin..).and_then(split) {
        let (length, whole) = (HEADER + data.len(), control.len());
        let after = whole - next.len();
        let device = match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => Some(0),
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => Some(16),
            _ => None,
        };
        if let Some(device) = device {
            let is_link_local = device == 16 && data.starts_with(&[0xfe, 0x80]);
            let place = begin + HEADER + device;
            if let Some(place) = control.get_mut(place..place + 4).filter(|_| !is_link_local) {
                place.fill(0);
            }
            return (begin, length);
        }
        if after <= begin {
            break;
        }
        begin = after;
    }
    (0, 0)
}

type Split<'a> = (libc::c_int, libc::c_int, &'a [u8], &'a [u8]);

/// The first message (level, type, data) and what follows it.
fn split(control: &[u8]) -> Option<Split<'_>> {
    let length = usize::from_ne_bytes(*control.first_chunk()?);
    let level = i32::from_ne_bytes(*control.get(8..)?.first_chunk()?);
    let kind = i32::from_ne_bytes(*control.get(12..)?.first_chunk()?);
    let data = control.get(HEADER..length)?;
    let next = control.get(length.next_multiple_of(8)..).unwrap_or(&[]);
    Some((level, kind, data, next))
}

/// The first of three timespecs: software, (formerly) hardware made comparable, raw hardware. All zero means that there
/// is none.
fn software_stamp(data: &[u8]) -> Option<Moment<Utc>> {
    let seconds = i64::from_ne_bytes(*data.first_chunk()?);
    let nanos = i64::from_ne_bytes(*data.get(8..)?.first_chunk()?);
    let in_range = (seconds, nanos) != (0, 0) && (0..1_000_000_000).contains(&nanos);
    in_range.then(|| Moment::from_origin(Span::from_secs(seconds) + Span::from_nanos(nanos.into())))
}

fn queued_error(data: &[u8]) -> Option<QueuedError> {
    Some(QueuedError {
        errno: i32::from_ne_bytes(*data.first_chunk()?),
        origin: *data.get(4)?,
        info: u32::from_ne_bytes(*data.get(8..)?.first_chunk()?),
        data: u32::from_ne_bytes(*data.get(12..)?.first_chunk()?),
        offender: data.get(16..).and_then(address::decode),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(level: libc::c_int, kind: libc::c_int, data: &[u8]) -> Vec<u8> {
        let mut bytes = (HEADER + data.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn timespecs(seconds: i64, nanos: i64) -> Vec<u8> {
        [seconds, nanos, 0, 0, 0, 0].iter().flat_map(|part| part.to_ne_bytes()).collect()
    }

    #[test]
    fn a_transmit_stamp_comes_with_its_number() {
        let mut control = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &timespecs(1_700_000_000, 5));
        let mut error = 42_i32.to_ne_bytes().to_vec();
        error.extend([4, 0, 0, 0]);
        error.extend(0_u32.to_ne_bytes());
        error.extend(7_u32.to_ne_bytes());
        control.extend(message(libc::IPPROTO_IP, libc::IP_RECVERR, &error));
        let extras = parse(&control);
        let moment = Moment::from_origin(Span::from_secs(1_700_000_000) + Span::from_nanos(5));
        assert_eq!(extras.stamped, Some(moment));
        let queued = extras.error.unwrap();
        assert_eq!((queued.errno, queued.origin, queued.data, queued.offender), (42, 4, 7, None));
    }

    #[test]
    fn three_zeros_are_no_stamp() {
        let control = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &timespecs(0, 0));
        assert_eq!(parse(&control), Extras::default());
        let absurd = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &timespecs(1, 1_000_000_000));
        assert_eq!(parse(&absurd), Extras::default());
    }

    #[test]
    fn unknown_messages_are_passed_over() {
        let mut control = message(libc::IPPROTO_IP, libc::IP_TTL, &[64, 0, 0, 0]);
        control.extend(message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &timespecs(3, 0)));
        assert!(parse(&control).stamped.is_some());
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic_or_loop(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            parse(&bytes);
        }

        #[test]
        fn a_message_cut_anywhere_gives_no_false_stamp(cut in 0_usize..64) {
            let whole = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &timespecs(1_700_000_000, 5));
            let cut_off = whole.get(..cut).unwrap();
            prop_assert_eq!(parse(cut_off).stamped.is_some(), cut == whole.len());
        }
    }
}
