//! Messages that are in transit, by number: an event of the calendar names its message by it.

use super::SimulationError;
use super::calendar::MESSAGES_MAX;

/// What a message carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) sender: u32,
    pub(super) round: u64,
}

#[derive(Clone, Copy)]
struct SentMessage {
    content: Content,
    /// How many copies have not been taken yet, and one while the message is being sent.
    holders: u32,
}

/// All messages that are still held.
pub(super) struct Messages {
    messages: Vec<SentMessage>,
    free: Vec<u32>,
}

impl Messages {
    /// No messages. Numbers below `reserved` are never given out.
    pub(super) fn new(reserved: usize) -> Self {
        let content = Content { sender: 0, round: 0 };
        Messages { messages: vec![SentMessage { content, holders: 0 }; reserved], free: Vec::new() }
    }

    /// Adds a message, held once, and gives its number.
    pub(super) fn add(&mut self, content: Content) -> Result<u32, SimulationError> {
        let message = SentMessage { content, holders: 1 };
        if let Some(number) = self.free.pop() {
            self.messages[number as usize] = message;
            return Ok(number);
        }
        if self.messages.len() >= MESSAGES_MAX {
            return Err(SimulationError::TooManyMessages { most: MESSAGES_MAX });
        }
        self.messages.push(message);
        Ok(self.messages.len() as u32 - 1)
    }

    #[inline]
    pub(super) fn content(&self, number: u32) -> Content {
        self.messages[number as usize].content
    }

    /// Holds a message once more.
    #[inline]
    pub(super) fn hold(&mut self, number: u32) {
        self.messages[number as usize].holders += 1;
    }

    /// Lets go of a message. Its number is free again when it is held no more.
    #[inline]
    pub(super) fn release(&mut self, number: u32) {
        let message = &mut self.messages[number as usize];
        debug_assert!(message.holders > 0, "a message is released as often as it is held");
        message.holders -= 1;
        if message.holders == 0 {
            self.free.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_free_again_when_the_last_holder_lets_go() {
        let mut messages = Messages::new(2);
        let content = |round| Content { sender: 1, round };
        let first = messages.add(content(1)).unwrap();
        assert_eq!((first, messages.content(first)), (2, content(1)));
        messages.hold(first);
        messages.release(first);
        assert_eq!(messages.add(content(2)).unwrap(), 3);
        messages.release(first);
        assert_eq!(messages.add(content(3)).unwrap(), first);
    }
}
