//! Control messages as the kernel writes them, decoded byte by byte: no pointer arithmetic, nothing read beyond what
//! was received.
//!
//! A message is its length (8 bytes, header included), level (4), type (4) and data; the next one begins at the next
//! multiple of 8.

use crate::address;
use crate::hardware::{CardPassage, CardStamp};
use ffclock_units::{Moment, Phc, Span, Utc};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const HEADER: usize = 16;
/// `SCM_TIMESTAMPING_PKTINFO` of asm-generic/socket.h.
const PACKET_INFORMATION: libc::c_int = 58;
/// `SOL_PACKET` of linux/socket.h and `PACKET_TX_TIMESTAMP` of linux/if_packet.h: sockets of frames say so what others
/// say with `IP_RECVERR`.
const SOL_PACKET: libc::c_int = 263;
const PACKET_TX_TIMESTAMP: libc::c_int = 16;

/// What came beside a packet or in an entry of the error queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extras {
    /// The kernel's software stamp by the system clock.
    pub(crate) stamped: Option<Moment<Utc>>,
    /// The stamp of the network card by its own clock.
    pub(crate) by_card: Option<CardStamp>,
    /// The address that the packet was sent to, and the number of the device on which it came.
    pub(crate) to: Option<(IpAddr, u32)>,
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
    let (mut shown, mut passage) = (None, None);
    let mut rest = control;
    while let Some((level, kind, data, next)) = split(rest) {
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                extras.stamped = software_stamp(data);
                shown = hardware_stamp(data);
            }
            (libc::SOL_SOCKET, PACKET_INFORMATION) => passage = passage_of(data),
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => extras.to = ipv4_destination(data),
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => extras.to = ipv6_destination(data),
            (libc::IPPROTO_IP, libc::IP_RECVERR)
            | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
            | (SOL_PACKET, PACKET_TX_TIMESTAMP) => {
                extras.error = queued_error(data);
            }
            _ => {}
        }
        rest = next;
    }
    extras.by_card = shown.map(|shown| CardStamp { shown, passage });
    extras
}

/// The stamp of a packet by the system clock (`SO_TIMESTAMPNS`, or `SO_TIMESTAMPING`), in ns since 1970.
pub(crate) fn served_stamp(control: &[u8]) -> Option<i64> {
    let mut rest = control;
    while let Some((level, kind, data, next)) = split(rest) {
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            let seconds = i64::from_ne_bytes(*data.first_chunk()?);
            let nanos = i64::from_ne_bytes(*data.get(8..)?.first_chunk()?);
            return seconds.checked_mul(1_000_000_000)?.checked_add(nanos);
        }
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) {
            return i64::try_from(software_stamp(data)?.since_origin().as_nanos()).ok();
        }
        rest = next;
    }
    None
}

/// Adds to the message at `own`, as (beginning, length), one that asks for a stamp when the packet leaves. Both are at
/// the place that is returned; `None` where there is no room.
pub(crate) fn ask_for_departure(control: &mut [u8], own: (usize, usize)) -> Option<(usize, usize)> {
    let (begin, length) = own;
    let place = length.next_multiple_of(8);
    let end = place + (HEADER + 4).next_multiple_of(8);
    if control.len() < end || begin + length > control.len() {
        return None;
    }
    control.copy_within(begin..begin + length, 0);
    let added = control.get_mut(length..end)?;
    added.fill(0);
    let message = added.get_mut(place - length..)?;
    message.get_mut(..8)?.copy_from_slice(&(HEADER + 4).to_ne_bytes());
    message.get_mut(8..12)?.copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
    message.get_mut(12..16)?.copy_from_slice(&libc::SO_TIMESTAMPING.to_ne_bytes());
    message.get_mut(16..20)?.copy_from_slice(&libc::SOF_TIMESTAMPING_TX_SOFTWARE.to_ne_bytes());
    Some((0, end))
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

/// An `in_pktinfo`: the device, the address of ours that an answer leaves from, and the one in the packet.
fn ipv4_destination(data: &[u8]) -> Option<(IpAddr, u32)> {
    let device = u32::from_ne_bytes(*data.first_chunk()?);
    let octets: [u8; 4] = *data.get(8..)?.first_chunk()?;
    Some((Ipv4Addr::from(octets).into(), device))
}

/// An `in6_pktinfo`: the address in the packet, and the device.
fn ipv6_destination(data: &[u8]) -> Option<(IpAddr, u32)> {
    let octets: [u8; 16] = *data.first_chunk()?;
    let device = u32::from_ne_bytes(*data.get(16..)?.first_chunk()?);
    Some((Ipv6Addr::from(octets).into(), device))
}

/// A message that lets a packet leave from this address of ours, and how many of the bytes it is.
pub(crate) fn leave_from(own: IpAddr) -> ([u8; 40], usize) {
    let mut message = [0; 40];
    let (level, kind, place, length) = match own {
        IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_PKTINFO, HEADER + 4, HEADER + 12),
        IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, HEADER, HEADER + 20),
    };
    message[..8].copy_from_slice(&length.to_ne_bytes());
    message[8..12].copy_from_slice(&level.to_ne_bytes());
    message[12..16].copy_from_slice(&kind.to_ne_bytes());
    match own {
        IpAddr::V4(ip) => message[place..place + 4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => message[place..place + 16].copy_from_slice(&ip.octets()),
    }
    (message, length.next_multiple_of(8))
}

/// Whether the packet came to a group of hosts, by multicast or broadcast. The kernel then names an address to answer
/// from that is not the one in its header (IPv4), or there is none (IPv6).
pub(crate) fn came_to_group(control: &[u8]) -> bool {
    let mut rest = control;
    while let Some((level, kind, data, next)) = split(rest) {
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => return data.get(4..8) != data.get(8..12),
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => return data.starts_with(&[0xff]),
            _ => rest = next,
        }
    }
    false
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
    timespec(data).map(Moment::from_origin)
}

/// The third of them.
fn hardware_stamp(data: &[u8]) -> Option<Moment<Phc>> {
    timespec(data.get(32..)?).map(Moment::from_origin)
}

fn timespec(data: &[u8]) -> Option<Span> {
    let seconds = i64::from_ne_bytes(*data.first_chunk()?);
    let nanos = i64::from_ne_bytes(*data.get(8..)?.first_chunk()?);
    let in_range = (seconds, nanos) != (0, 0) && (0..1_000_000_000).contains(&nanos);
    in_range.then(|| Span::from_secs(seconds) + Span::from_nanos(nanos.into()))
}

/// A `scm_ts_pktinfo`: the device, where 0 means that it is not known, and the length of the frame.
fn passage_of(data: &[u8]) -> Option<CardPassage> {
    let device = u32::from_ne_bytes(*data.first_chunk()?);
    let frame_bytes = u32::from_ne_bytes(*data.get(4..)?.first_chunk()?);
    (device != 0).then_some(CardPassage { device, frame_bytes })
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
        let control = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &timespecs(1_700_000_000, 5));
        let mut error = 42_i32.to_ne_bytes().to_vec();
        error.extend([4, 0, 0, 0]);
        error.extend(0_u32.to_ne_bytes());
        error.extend(7_u32.to_ne_bytes());
        for (level, kind) in [(libc::IPPROTO_IP, libc::IP_RECVERR), (SOL_PACKET, PACKET_TX_TIMESTAMP)] {
            let mut control = control.clone();
            control.extend(message(level, kind, &error));
            let extras = parse(&control);
            let moment = Moment::from_origin(Span::from_secs(1_700_000_000) + Span::from_nanos(5));
            assert_eq!(extras.stamped, Some(moment));
            let queued = extras.error.unwrap();
            assert_eq!((queued.errno, queued.origin, queued.data, queued.offender), (42, 4, 7, None));
        }
    }

    #[test]
    fn the_stamp_of_a_card_comes_with_its_device() {
        let parts = [5_i64, 6, 0, 0, 7, 8].iter().flat_map(|part| part.to_ne_bytes()).collect::<Vec<_>>();
        let mut control =
            message(libc::SOL_SOCKET, PACKET_INFORMATION, &[3, 0, 0, 0, 90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        control.extend(message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &parts));
        let extras = parse(&control);
        let at = |seconds, nanos| Span::from_secs(seconds) + Span::from_nanos(nanos);
        assert_eq!(extras.stamped, Some(Moment::from_origin(at(5, 6))));
        let stamp = CardStamp {
            shown: Moment::from_origin(at(7, 8)),
            passage: Some(CardPassage { device: 3, frame_bytes: 90 }),
        };
        assert_eq!(extras.by_card, Some(stamp));
        let unknown = message(libc::SOL_SOCKET, PACKET_INFORMATION, &[0; 16]);
        assert_eq!(parse(&unknown), Extras::default());
        let software = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &timespecs(5, 6));
        assert_eq!(parse(&software).by_card, None);
    }

    #[test]
    fn three_zeros_are_no_stamp() {
        let control = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &timespecs(0, 0));
        assert_eq!(parse(&control), Extras::default());
        let absurd = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &timespecs(1, 1_000_000_000));
        assert_eq!(parse(&absurd), Extras::default());
    }

    #[test]
    fn a_wish_for_a_stamp_stands_behind_our_address() {
        let address = message(libc::IPPROTO_IP, libc::IP_PKTINFO, &[1; 12]);
        let length = 28;
        for begin in [0, 8, 64] {
            let mut control = vec![0xff; 128];
            control[begin..begin + address.len()].copy_from_slice(&address);
            let (at, whole) = ask_for_departure(&mut control, (begin, length)).unwrap();
            let Some((level, kind, data, rest)) = split(&control[at..at + whole]) else { panic!() };
            assert_eq!((level, kind, data), (libc::IPPROTO_IP, libc::IP_PKTINFO, &[1_u8; 12][..]));
            let Some((level, kind, data, _)) = split(rest) else { panic!() };
            assert_eq!((level, kind), (libc::SOL_SOCKET, libc::SO_TIMESTAMPING));
            assert_eq!(data, libc::SOF_TIMESTAMPING_TX_SOFTWARE.to_ne_bytes());
        }
        assert_eq!(ask_for_departure(&mut [0; 32], (0, 16)), None);
        assert_eq!(ask_for_departure(&mut [0; 24], (0, 0)), Some((0, 24)));
    }

    #[test]
    fn a_packet_to_a_group_is_known_by_its_address() {
        let stamp = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &timespecs(3, 0));
        let four = |own: [u8; 4], target: [u8; 4]| {
            message(libc::IPPROTO_IP, libc::IP_PKTINFO, &[[2, 0, 0, 0], own, target].concat())
        };
        let six = |first: u8| {
            let mut data = [0; 20];
            (data[0], data[16]) = (first, 2);
            message(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &data)
        };
        for (message, is_group) in [
            (four([192, 0, 2, 1], [192, 0, 2, 1]), false),
            (four([192, 0, 2, 1], [192, 0, 2, 255]), true),
            (four([192, 0, 2, 1], [224, 0, 1, 1]), true),
            (six(0x20), false),
            (six(0xff), true),
        ] {
            assert_eq!(came_to_group(&[&stamp[..], &message].concat()), is_group, "{message:?}");
        }
        assert!(!came_to_group(&stamp));
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
            came_to_group(&bytes);
        }

        #[test]
        fn a_message_cut_anywhere_gives_no_false_stamp(cut in 0_usize..64) {
            let whole = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &timespecs(1_700_000_000, 5));
            let cut_off = whole.get(..cut).unwrap();
            prop_assert_eq!(parse(cut_off).stamped.is_some(), cut == whole.len());
        }
    }
}
