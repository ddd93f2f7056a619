//! What is in a test packet, so that it is recognised wherever it is seen.
//!
//! A request is 32 bytes of identity and padding up to a length that changes from packet to packet: events of the
//! kernel have the length of a packet but not its bytes, so the length is a second, shorter identity. Requests have
//! even lengths; the echo cuts one byte off, so that replies have odd ones.

pub use ffclock_units::Direction;

/// Bytes before the padding.
pub const HEADER_BYTES: usize = 32;
/// The number of lengths; after as many packets they repeat.
pub const LENGTHS: u64 = 128;
/// The longest payload that a packet carries on Ethernet, over IPv6.
pub const LONGEST: usize = 1452;
/// The longest of the shortest request's lengths.
pub const LARGEST_BASE: usize = LONGEST - 2 * LENGTHS as usize;

const MAGIC: u64 = u64::from_be_bytes(*b"ffprobe1");

/// A [`Direction`] in files: the request is `outgoing`, the reply `incoming`.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(remote = "Direction", rename_all = "lowercase")]
pub(super) enum DirectionInFiles {
    Outgoing,
    Incoming,
}

/// Which packet it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestPacketId {
    /// Which run it belongs to.
    pub run: u64,
    /// Its number, from 0.
    pub sequence: u64,
    /// Request or reply.
    pub direction: Direction,
}

/// How long requests are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    base: usize,
}

impl Lengths {
    /// Requests of `size` bytes and up to 254 more; a size that is too small or too large becomes the nearest possible
    /// one.
    pub fn from(size: usize) -> Self {
        Lengths { base: size.clamp(HEADER_BYTES + 2, LARGEST_BASE).next_multiple_of(2) }
    }

    /// The shortest packet (a reply) and the longest one (a request) [bytes].
    pub fn range(self) -> (usize, usize) {
        (self.base - 1, self.base + 2 * (LENGTHS as usize - 1))
    }

    /// The length of the request with this number [bytes].
    pub fn of(self, sequence: u64) -> usize {
        self.base + 2 * (sequence % LENGTHS) as usize
    }

    /// What a packet of this length can be: its direction, and its number modulo [`LENGTHS`].
    pub fn code(self, length: usize) -> Option<(Direction, u64)> {
        let direction = if length.is_multiple_of(2) { Direction::Outgoing } else { Direction::Incoming };
        let code = (length.checked_next_multiple_of(2)?.checked_sub(self.base)? / 2) as u64;
        (code < LENGTHS).then_some((direction, code))
    }
}

impl TestPacketId {
    /// Writes the request with this identity into `buffer` and returns its bytes.
    pub fn write(self, lengths: Lengths, buffer: &mut [u8; LONGEST]) -> &[u8] {
        buffer[..8].copy_from_slice(&MAGIC.to_be_bytes());
        buffer[8..16].copy_from_slice(&self.run.to_be_bytes());
        buffer[16..24].copy_from_slice(&self.sequence.to_be_bytes());
        buffer[24..HEADER_BYTES].fill(0);
        buffer[24] = mark(self.direction);
        let length = lengths.of(self.sequence);
        buffer[HEADER_BYTES..length].fill(0x5a);
        &buffer[..length]
    }

    /// Writes a request that wants no reply and gets none; it is none of the run's packets.
    pub fn write_unanswered(run: u64, sequence: u64, buffer: &mut [u8; LONGEST], lengths: Lengths) -> &[u8] {
        let length = TestPacketId { run, sequence, direction: Direction::Outgoing }.write(lengths, buffer).len();
        buffer[24] = UNANSWERED;
        &buffer[..length]
    }

    /// The identity of a packet, from its payload or the beginning of it; `None` where it is no test packet.
    pub fn read(payload: &[u8]) -> Option<Self> {
        let number = |at: usize| payload.get(at..)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        let direction = match (number(0)? == MAGIC, *payload.get(24)?) {
            (true, 0) => Direction::Outgoing,
            (true, 1) => Direction::Incoming,
            _ => return None,
        };
        Some(TestPacketId { run: number(8)?, sequence: number(16)?, direction })
    }
}

/// Turns a request into its reply; `None` where it is no request.
pub fn reply(request: &mut [u8]) -> Option<&[u8]> {
    let identity = TestPacketId::read(request).filter(|identity| identity.direction == Direction::Outgoing)?;
    // A server that answered anything else could be abused to send packets to others. A reply is never longer than its
    // request.
    let last = request.len().checked_sub(1).filter(|last| *last >= HEADER_BYTES)?;
    debug_assert_eq!(identity.direction, Direction::Outgoing);
    request[24] = mark(Direction::Incoming);
    Some(&request[..last])
}

/// Neither request nor reply.
const UNANSWERED: u8 = 2;

const fn mark(direction: Direction) -> u8 {
    match direction {
        Direction::Outgoing => 0,
        Direction::Incoming => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_and_its_reply_are_recognised_by_bytes_and_by_length() {
        let lengths = Lengths::from(64);
        for sequence in [0, 1, 127, 128, 100_000] {
            let mut buffer = [0; LONGEST];
            let sent = TestPacketId { run: 7, sequence, direction: Direction::Outgoing };
            let mut request = sent.write(lengths, &mut buffer).to_vec();
            assert_eq!(TestPacketId::read(&request), Some(sent));
            assert_eq!(lengths.code(request.len()), Some((Direction::Outgoing, sequence % LENGTHS)));
            let reply = reply(&mut request).expect("it is a request");
            assert_eq!(TestPacketId::read(reply), Some(TestPacketId { direction: Direction::Incoming, ..sent }));
            assert_eq!(lengths.code(reply.len()), Some((Direction::Incoming, sequence % LENGTHS)));
        }
    }

    #[test]
    fn replies_and_strangers_are_not_answered() {
        let mut buffer = [0; LONGEST];
        let identity = TestPacketId { run: 7, sequence: 1, direction: Direction::Incoming };
        let mut bytes = identity.write(Lengths::from(64), &mut buffer).to_vec();
        assert_eq!(reply(&mut bytes), None);
        assert_eq!(reply(&mut [0x23; 48]), None);
        assert_eq!(reply(&mut bytes[..24]), None);
        assert_eq!(TestPacketId::read(&[]), None);
    }

    #[test]
    fn a_packet_that_wants_no_reply_gets_none() {
        let mut buffer = [0; LONGEST];
        let mut bytes = TestPacketId::write_unanswered(7, 3, &mut buffer, Lengths::from(64)).to_vec();
        assert_eq!(bytes.len(), Lengths::from(64).of(3));
        assert_eq!((TestPacketId::read(&bytes), reply(&mut bytes)), (None, None));
    }

    #[test]
    fn every_size_gives_lengths_that_fit() {
        for size in [0, 33, 64, 65, 1200, 100_000] {
            let lengths = Lengths::from(size);
            let (shortest, longest) = lengths.range();
            assert!(shortest > HEADER_BYTES && longest <= LONGEST, "{size}: {shortest} to {longest}");
            assert_eq!(lengths.code(shortest), Some((Direction::Incoming, 0)));
            assert_eq!(lengths.code(shortest - 1), None);
            assert_eq!(lengths.code(longest + 1), None);
            assert_eq!(lengths.code(usize::MAX), None);
        }
    }
}
