//! What the parsers of the protocols find, and why they stop.

/// Longer messages are none: the largest that any of the protocols permits by default.
pub(super) const MESSAGE_BYTES_MAX: u64 = 1 << 29;

/// Which way the bytes of a connection go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// From the client.
    Requests,
    /// To it.
    Replies,
}

/// What was found in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The next message: replies come in the order of their requests.
    Next,
    /// A message that carries this number.
    Numbered(u64),
    /// The exchange of this number was broken off.
    BrokenOff(u64),
    /// Something that the server sent without being asked, as the protocol permits.
    Pushed,
}

/// What was found, and when its first byte was seen.
pub(super) type FoundAt = (Found, i64);

/// Why the rest of a stream cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamFault {
    /// It was not seen from its begin on.
    BegunBefore,
    /// Bytes are missing where a message begins.
    Gap,
    /// It is not the protocol.
    NotUnderstood,
    /// The connection is no longer one of requests and replies.
    OtherMode,
    /// A reply came before any request that it could answer.
    Unasked,
    /// More requests are open than are remembered.
    TooManyOpen,
}
