//! (init, k) and its reply on the wire: 40 bytes, big endian: a mark, the number of the run, the sender, the round,
//! and two numbers of ticks that only a reply has. Both have the same size, as in the paper, so that both ways of a
//! round trip cost the same.

use ffclock_theta::record::{ProcessId, Round};

/// What a message begins with.
const MESSAGE: u32 = 0x7468_6532;
/// What a reply begins with.
const REPLY: u32 = 0x7468_7232;
/// Length of a packet.
pub(super) const LENGTH: usize = 40;

/// A message or a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WirePacket {
    /// Of the run: packets of another one are not ours.
    pub(super) run: u64,
    /// The rank that sent it.
    pub(super) sender: u32,
    /// k.
    pub(super) round: u64,
    /// For a reply to the receiver's (init, k).
    pub(super) reply: Option<Stay>,
}

/// How long a message stayed with its receiver before the reply was sent, in ticks of the receiver's counter since the
/// kernel's receive stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stay {
    /// Until it was perceived.
    pub(super) perceived: u64,
    /// Until the reply was handed over.
    pub(super) replied: u64,
}

impl WirePacket {
    pub(super) fn encode(self) -> [u8; LENGTH] {
        let mark = if self.reply.is_some() { REPLY } else { MESSAGE };
        let stay = self.reply.map_or([0, 0], |stay| [stay.perceived, stay.replied]);
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&mark.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.sender.to_be_bytes());
        for (place, word) in [self.run, self.round, stay[0], stay[1]].into_iter().enumerate() {
            bytes[8 + 8 * place..16 + 8 * place].copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// The message in a packet, if it is one.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        let [mark, sender] = [0, 4].map(|at| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes")));
        let [run, round, perceived, replied] =
            [8, 16, 24, 32].map(|at| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes")));
        let reply = (mark == REPLY).then_some(Stay { perceived, replied });
        ([MESSAGE, REPLY].contains(&mark) && round > 0).then_some(WirePacket { run, sender, round, reply })
    }
}

/// A message of a live run, as a capture shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedMessage {
    /// The number of its run.
    pub run: u64,
    /// Its sender.
    pub sender: ProcessId,
    /// Its round.
    pub round: Round,
}

/// The message that a datagram carries; `None` if it is none, or a reply.
pub fn captured_message(content: &[u8]) -> Option<CapturedMessage> {
    let WirePacket { run, sender, round, .. } = WirePacket::decode(content).filter(|packet| packet.reply.is_none())?;
    Some(CapturedMessage { run, sender: ProcessId(sender), round: Round(round) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_sent_is_read(run: u64, sender: u32, round in 1u64.., stay: Option<(u64, u64)>) {
            let reply = stay.map(|(perceived, replied)| Stay { perceived, replied });
            let packet = WirePacket { run, sender, round, reply };
            prop_assert_eq!(WirePacket::decode(&packet.encode()), Some(packet));
            let captured = CapturedMessage { run, sender: ProcessId(sender), round: Round(round) };
            prop_assert_eq!(captured_message(&packet.encode()), reply.is_none().then_some(captured));
        }

        #[test]
        fn anything_else_is_no_message(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let marks = [MESSAGE, REPLY].map(u32::to_be_bytes);
            let has_mark = bytes.len() == LENGTH && marks.iter().any(|mark| bytes.starts_with(mark));
            prop_assert!(has_mark || WirePacket::decode(&bytes).is_none());
        }
    }
}
