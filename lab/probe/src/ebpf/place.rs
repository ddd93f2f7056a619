//! Decodes what the programs hand over, by its generated type: which packet passed which site. One of the files of
//! this crate that may hold unsafe code.

use super::skeleton::types::{known as KnownBy, passage as HandedOver, place as Place};
use super::{Known, SitePassage};
use crate::payload::Lengths;
use crate::site::Site;
use ffclock_units::{Moment, Span};
use std::collections::BTreeMap;

/// Packets on their way through the driver at a time, far more than queues hold.
const MOST_ON_THE_WAY: usize = 1 << 14;

/// Turns what the programs hand over into passages.
#[derive(Debug)]
pub(super) struct PassageDecoder {
    lengths: Lengths,
    /// How far `CLOCK_MONOTONIC` of this process is ahead of the kernel's: a time namespace shifts it.
    shift: Span,
    /// By the address of a packet's buffer in the kernel: which packet was handed to the driver there.
    on_the_way: BTreeMap<u64, Known>,
}

impl PassageDecoder {
    pub(super) fn new(lengths: Lengths) -> Self {
        let text = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        PassageDecoder { lengths, shift: monotonic_shift(&text), on_the_way: BTreeMap::new() }
    }

    /// `None` where the packet cannot be ours.
    pub(super) fn decode(&mut self, handed_over: &HandedOver) -> Option<SitePassage> {
        let HandedOver { time_ns, number, buffer, place, known } = *handed_over;
        let site = site_of(place)?;
        let known = match known {
            KnownBy::KNOWN_IDENTITY => Known::Sequence(number),
            KnownBy::KNOWN_LENGTH => {
                let (direction, code) = self.lengths.code(usize::try_from(number).ok()?)?;
                (direction == site.direction()).then_some(Known::Code(code))?
            }
            KnownBy::KNOWN_BUFFER => self.on_the_way.remove(&buffer)?,
            _ => return None,
        };
        if site == Site::DriverOut {
            // At the limit all entries go, also those of packets that never leave the driver.
            if self.on_the_way.len() >= MOST_ON_THE_WAY {
                self.on_the_way.clear();
            }
            self.on_the_way.insert(buffer, known);
        }
        let stamped = Moment::from_origin(Span::from_nanos(time_ns.into())) + self.shift;
        Some(SitePassage { site, stamped, known })
    }
}

/// The passage in the bytes of the kernel's buffer; `None` where they are too few.
pub(super) fn read(bytes: &[u8]) -> Option<HandedOver> {
    if bytes.len() < size_of::<HandedOver>() {
        return None;
    }
    // SAFETY: there are enough bytes, which need not be aligned, and it is made of integers, for which every bit
    // pattern is a value (the generator makes a transparent integer of an enum).
    Some(unsafe { bytes.as_ptr().cast::<HandedOver>().read_unaligned() })
}

fn site_of(place: Place) -> Option<Site> {
    Some(match place {
        Place::PLACE_QUEUE => Site::QueueOut,
        Place::PLACE_START => Site::DriverOut,
        Place::PLACE_DONE => Site::DoneOut,
        Place::PLACE_GRO | Place::PLACE_RX | Place::PLACE_RECEIVE_ENTRY => Site::DriverIn,
        Place::PLACE_RECEIVE => Site::StackIn,
        Place::PLACE_SOCKET_QUEUE => Site::QueueIn,
        Place::PLACE_COPY => Site::CopyIn,
        Place::PLACE_READ => Site::ReadIn,
        Place::PLACE_TC_OUT => Site::TcOut,
        Place::PLACE_TC_IN => Site::TcIn,
        Place::PLACE_XDP => Site::XdpIn,
        _ => return None,
    })
}

/// A line "monotonic SECONDS NANOSECONDS" of time_namespaces(7).
fn monotonic_shift(text: &str) -> Span {
    let line = text.lines().find(|line| line.starts_with("monotonic"));
    let mut numbers =
        line.into_iter().flat_map(str::split_whitespace).skip(1).map(|word| word.parse::<i128>().unwrap_or(0));
    let (seconds, nanos) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    Span::from_nanos(seconds * 1_000_000_000 + nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handed_over(time_ns: u64, number: u64, place: Place, known: KnownBy) -> HandedOver {
        HandedOver { time_ns, number, buffer: 0xffff_8881, place, known }
    }

    fn decoder() -> PassageDecoder {
        PassageDecoder { lengths: Lengths::from(64), shift: Span::ZERO, on_the_way: BTreeMap::new() }
    }

    #[test]
    fn a_packet_is_known_by_identity_by_length_and_by_its_buffer() {
        let mut decoder = decoder();
        let known = |decoder: &mut PassageDecoder, passage| decoder.decode(&passage).map(|passage| passage.known);
        let done = handed_over(9, 0, Place::PLACE_DONE, KnownBy::KNOWN_BUFFER);
        assert_eq!(known(&mut decoder, done), None, "nothing was handed to the driver there");
        let start = handed_over(7, 1234, Place::PLACE_START, KnownBy::KNOWN_IDENTITY);
        let start = decoder.decode(&start).expect("a passage");
        assert_eq!((start.site, start.known), (Site::DriverOut, Known::Sequence(1234)));
        assert_eq!(start.stamped, Moment::from_origin(Span::from_nanos(7)));
        assert_eq!(known(&mut decoder, done), Some(Known::Sequence(1234)));
        assert_eq!(known(&mut decoder, done), None, "it came out of the driver once");
        let by_length = |length, place| handed_over(9, length, place, KnownBy::KNOWN_LENGTH);
        let reply = by_length(65, Place::PLACE_READ);
        assert_eq!(known(&mut decoder, reply), Some(Known::Code(1)), "a reply of 65 bytes");
        assert_eq!(known(&mut decoder, by_length(66, Place::PLACE_READ)), None, "no reply has an even length");
        let request = by_length(66, Place::PLACE_QUEUE);
        assert_eq!(known(&mut decoder, request), Some(Known::Code(1)), "a request of 66 bytes");
    }

    #[test]
    fn what_is_no_passage_is_left_out() {
        let mut decoder = decoder();
        assert_eq!(decoder.decode(&handed_over(1, 1, Place(13), KnownBy::KNOWN_IDENTITY)), None);
        assert_eq!(decoder.decode(&handed_over(1, 1, Place::PLACE_START, KnownBy(3))), None);
        assert!(read(&[0; size_of::<HandedOver>() - 1]).is_none());
    }

    #[test]
    fn a_passage_is_read_wherever_its_bytes_lie() {
        let bytes: Vec<u8> = (0..=size_of::<HandedOver>() as u8).collect();
        let read = read(&bytes[1..]).expect("there are enough bytes");
        let first: [u8; 8] = core::array::from_fn(|place| place as u8 + 1);
        assert_eq!(read.time_ns, u64::from_ne_bytes(first));
        assert_eq!(read.number, u64::from_ne_bytes(first.map(|byte| byte + 8)));
    }

    #[test]
    fn a_time_namespace_shifts_the_clock_of_this_process() {
        let text = "monotonic        86400     500000000\nboottime             7         0\n";
        assert_eq!(monotonic_shift(text), Span::from_millis(86_400_500));
        assert_eq!(monotonic_shift(""), Span::ZERO);
    }
}
