//! Which reply belongs to which request of a connection: by their order, or by the numbers that they carry.

use super::StreamProtocol;
use super::found::StreamFault;
use super::messages::StreamMessage;
use std::collections::BTreeMap;

/// More open requests of a connection are not remembered.
pub(super) const OPEN_MAX: usize = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PairRule {
    /// The n-th reply belongs to the n-th request.
    Order,
    /// A number may be used again after its reply.
    Correlation,
    /// Numbers rise and are used once; a stream may have further headers after its reply.
    Stream,
}

/// The open requests of a connection. A reply may be read before its request, when segments came out of order.
#[derive(Debug)]
pub(super) struct Pairs {
    rule: PairRule,
    /// Requests and replies so far, which are their numbers where they carry none.
    asked: u64,
    answered: u64,
    /// The greatest number that a request carried.
    greatest: Option<u64>,
    /// Places of the requests, by number.
    open: BTreeMap<u64, usize>,
    /// Replies without a request so far.
    early: BTreeMap<u64, i64>,
    /// Replies for which there is no request.
    pub(super) unasked: u64,
}

impl Pairs {
    pub(super) fn new(protocol: StreamProtocol) -> Self {
        let rule = match protocol {
            StreamProtocol::Http2 => PairRule::Stream,
            StreamProtocol::Kafka => PairRule::Correlation,
            _ => PairRule::Order,
        };
        let (open, early) = (BTreeMap::new(), BTreeMap::new());
        Pairs { rule, asked: 0, answered: 0, greatest: None, open, early, unasked: 0 }
    }

    pub(super) fn are_closed(&self) -> bool {
        self.open.is_empty()
    }

    /// Replies that still wait for a request.
    pub(super) fn early(&self) -> u64 {
        self.early.len() as u64
    }

    /// The last of the messages is a request.
    pub(super) fn ask(&mut self, number: Option<u64>, messages: &mut [StreamMessage]) -> Result<(), StreamFault> {
        let place = messages.len().saturating_sub(1);
        let Some(last) = messages.last_mut() else { return Ok(()) };
        let number = number.unwrap_or(self.asked);
        self.asked += 1;
        self.greatest = self.greatest.max(Some(number));
        if let Some(at_ns) = self.early.remove(&number) {
            if at_ns >= last.sent_ns {
                last.perceived_ns = Some(at_ns);
                return Ok(());
            }
            self.unasked += 1;
            // The reply was that to another request, and so are all that follow.
            if self.rule == PairRule::Order {
                return Err(StreamFault::Unasked);
            }
        }
        if self.open.len() >= OPEN_MAX {
            self.forget()?;
        }
        self.open.insert(number, place);
        Ok(())
    }

    /// Half of the open requests, the older ones, stay without a reply.
    fn forget(&mut self) -> Result<(), StreamFault> {
        if self.rule == PairRule::Order {
            return Err(StreamFault::TooManyOpen);
        }
        let mut places: Vec<_> = self.open.values().copied().collect();
        let (_, &mut middle, _) = places.select_nth_unstable(OPEN_MAX / 2);
        self.open.retain(|_, place| *place >= middle);
        Ok(())
    }

    /// A reply has come.
    pub(super) fn answer(
        &mut self,
        number: Option<u64>,
        at_ns: i64,
        messages: &mut [StreamMessage],
    ) -> Result<(), StreamFault> {
        let number = number.unwrap_or(self.answered);
        self.answered += 1;
        if let Some(message) = self.open.remove(&number).and_then(|place| messages.get_mut(place)) {
            message.perceived_ns = Some(at_ns);
        } else if self.rule == PairRule::Stream && (Some(number) <= self.greatest || self.early.contains_key(&number)) {
            // Trailers.
        } else if self.early.len() >= OPEN_MAX {
            return Err(StreamFault::TooManyOpen);
        } else if self.early.insert(number, at_ns).is_some() {
            self.unasked += 1;
        }
        Ok(())
    }

    /// No reply will come to this request.
    pub(super) fn break_off(&mut self, number: u64) {
        self.open.remove(&number);
    }
}
