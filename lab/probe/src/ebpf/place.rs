//! What the programs hand over, and what it says.

use super::{Known, Passage};
use crate::payload::Lengths;
use crate::site::Site;
use ffclock_units::{Moment, Span};
use std::collections::BTreeMap;

/// Bytes of a `struct passage`.
const BYTES: usize = 32;
/// Packets on their way through the driver at a time, far more than queues hold.
const MOST_ON_THE_WAY: usize = 1 << 14;
/// By the program's numbers (`enum place`): where.
const SITES: [Site; 13] = [
    Site::QueueOut,
    Site::DriverOut,
    Site::DoneOut,
    Site::DriverIn,
    Site::DriverIn,
    Site::DriverIn,
    Site::StackIn,
    Site::QueueIn,
    Site::CopyIn,
    Site::ReadIn,
    Site::TcOut,
    Site::TcIn,
    Site::XdpIn,
];
/// `enum known`.
const BY_IDENTITY: u32 = 0;
const BY_LENGTH: u32 = 1;
const BY_BUFFER: u32 = 2;

/// Makes passages of what the programs hand over.
#[derive(Debug)]
pub(super) struct Decoder {
    lengths: Lengths,
    /// What `CLOCK_MONOTONIC` of this process is ahead of the kernel's: a time namespace shifts it.
    shift: Span,
    /// By the address of a packet's buffer in the kernel: which packet was handed to the driver there.
    on_the_way: BTreeMap<u64, Known>,
}

impl Decoder {
    pub(super) fn new(lengths: Lengths) -> Self {
        let text = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        Decoder { lengths, shift: monotonic_shift(&text), on_the_way: BTreeMap::new() }
    }

    /// `None` where the packet cannot be ours.
    pub(super) fn decode(&mut self, bytes: &[u8; BYTES]) -> Option<Passage> {
        let long = |at: usize| bytes[at..].first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
        let short = |at: usize| bytes[at..].first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        let (time, number, buffer) = (long(0)?, long(8)?, long(16)?);
        let site = *SITES.get(short(24)? as usize)?;
        let known = match short(28)? {
            BY_IDENTITY => Known::Sequence(number),
            BY_LENGTH => {
                let (direction, code) = self.lengths.code(usize::try_from(number).ok()?)?;
                (direction == site.direction()).then_some(Known::Code(code))?
            }
            BY_BUFFER => self.on_the_way.remove(&buffer)?,
            _ => return None,
        };
        if site == Site::DriverOut {
            // What never comes out of the driver is forgotten with everything else.
            if self.on_the_way.len() >= MOST_ON_THE_WAY {
                self.on_the_way.clear();
            }
            self.on_the_way.insert(buffer, known);
        }
        let stamped = Moment::from_origin(Span::from_nanos(time.into())) + self.shift;
        Some(Passage { site, stamped, known })
    }

    /// The bytes that the buffer gives, where they are a passage.
    pub(super) fn passage(bytes: &[u8]) -> Option<[u8; BYTES]> {
        bytes.first_chunk().copied()
    }
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

    const SOURCE: &str = include_str!("stamps.bpf.c");

    fn bytes(time: u64, number: u64, place: u32, known: u32) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&time.to_ne_bytes());
        bytes[8..16].copy_from_slice(&number.to_ne_bytes());
        bytes[16..24].copy_from_slice(&0xffff_8881_u64.to_ne_bytes());
        bytes[24..28].copy_from_slice(&place.to_ne_bytes());
        bytes[28..].copy_from_slice(&known.to_ne_bytes());
        bytes
    }

    fn decoder() -> Decoder {
        Decoder { lengths: Lengths::from(64), shift: Span::ZERO, on_the_way: BTreeMap::new() }
    }

    /// The names of an enum of the C program, in its order.
    fn names(of: &str) -> Vec<&'static str> {
        let body = SOURCE.split(of).nth(1).and_then(|rest| rest.split('}').next()).expect("the enum is there");
        body.lines().filter_map(|line| line.trim().strip_suffix(',')).collect()
    }

    #[test]
    fn places_have_the_numbers_of_the_program() {
        let places = names("enum place {");
        assert_eq!(places.len(), SITES.len());
        let site_of = |name: &str| SITES[places.iter().position(|place| *place == name).expect("it is there")];
        assert_eq!(site_of("PLACE_QUEUE"), Site::QueueOut);
        assert_eq!(site_of("PLACE_START"), Site::DriverOut);
        assert_eq!(site_of("PLACE_DONE"), Site::DoneOut);
        assert_eq!(site_of("PLACE_GRO"), Site::DriverIn);
        assert_eq!(site_of("PLACE_RECEIVE"), Site::StackIn);
        assert_eq!(site_of("PLACE_SOCKET_QUEUE"), Site::QueueIn);
        assert_eq!(site_of("PLACE_COPY"), Site::CopyIn);
        assert_eq!(site_of("PLACE_READ"), Site::ReadIn);
        assert_eq!(site_of("PLACE_TC_OUT"), Site::TcOut);
        assert_eq!(site_of("PLACE_TC_IN"), Site::TcIn);
        assert_eq!(site_of("PLACE_XDP"), Site::XdpIn);
        let known: Vec<_> = names("enum known {").into_iter().filter(|line| line.starts_with("KNOWN")).collect();
        assert_eq!(known, ["KNOWN_IDENTITY", "KNOWN_LENGTH", "KNOWN_BUFFER"]);
    }

    #[test]
    fn a_packet_is_known_by_identity_by_length_and_by_its_buffer() {
        let mut decoder = decoder();
        let known = |decoder: &mut Decoder, bytes| decoder.decode(&bytes).map(|passage| passage.known);
        assert_eq!(known(&mut decoder, bytes(5, 0, 2, BY_BUFFER)), None, "nothing was handed to the driver there");
        let start = decoder.decode(&bytes(7, 1234, 1, BY_IDENTITY)).expect("a passage");
        assert_eq!((start.site, start.known), (Site::DriverOut, Known::Sequence(1234)));
        assert_eq!(start.stamped, Moment::from_origin(Span::from_nanos(7)));
        assert_eq!(known(&mut decoder, bytes(9, 0, 2, BY_BUFFER)), Some(Known::Sequence(1234)));
        assert_eq!(known(&mut decoder, bytes(9, 0, 2, BY_BUFFER)), None, "it came out of the driver once");
        assert_eq!(known(&mut decoder, bytes(9, 65, 9, BY_LENGTH)), Some(Known::Code(1)), "a reply of 65 bytes");
        assert_eq!(known(&mut decoder, bytes(9, 66, 9, BY_LENGTH)), None, "no reply has an even length");
        assert_eq!(known(&mut decoder, bytes(9, 66, 0, BY_LENGTH)), Some(Known::Code(1)), "a request of 66 bytes");
    }

    #[test]
    fn what_is_no_passage_is_left_out() {
        let mut decoder = decoder();
        assert_eq!(decoder.decode(&bytes(1, 1, 13, BY_IDENTITY)), None);
        assert_eq!(decoder.decode(&bytes(1, 1, 1, 3)), None);
        assert_eq!(Decoder::passage(&[0; 31]), None);
    }

    #[test]
    fn a_time_namespace_shifts_the_clock_of_this_process() {
        let text = "monotonic        86400     500000000\nboottime             7         0\n";
        assert_eq!(monotonic_shift(text), Span::from_millis(86_400_500));
        assert_eq!(monotonic_shift(""), Span::ZERO);
    }
}
