//! (init, k) on the wire: 24 bytes, big endian: a mark, the number of the run, the sender, the round.

/// What every packet begins with.
const MARK: u32 = 0x7468_6531;
/// Length of a packet.
pub(super) const LENGTH: usize = 24;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    /// Of the run: packets of another one are not ours.
    pub(super) run: u64,
    /// The rank.
    pub(super) sender: u32,
    /// k.
    pub(super) round: u64,
}

impl Packet {
    pub(super) fn encode(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&MARK.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.sender.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.run.to_be_bytes());
        bytes[16..].copy_from_slice(&self.round.to_be_bytes());
        bytes
    }

    /// The message in a packet, if it is one.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        let [mark, sender] = [0, 4].map(|at| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes")));
        let [run, round] = [8, 16].map(|at| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes")));
        (mark == MARK && round > 0).then_some(Packet { run, sender, round })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_sent_is_read(run: u64, sender: u32, round in 1u64..) {
            let packet = Packet { run, sender, round };
            prop_assert_eq!(Packet::decode(&packet.encode()), Some(packet));
        }

        #[test]
        fn anything_else_is_no_message(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let has_mark = bytes.len() == LENGTH && bytes.starts_with(&MARK.to_be_bytes());
            prop_assert!(has_mark || Packet::decode(&bytes).is_none());
        }
    }
}
