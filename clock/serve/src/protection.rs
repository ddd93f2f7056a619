//! The protected requests of one batch (NTS): opened when they are judged, sealed when they are answered. It allocates
//! when it is made and never again.

use crate::establishment::random_nonces;
use crate::tally::Counted;
use ffclock_nts::NonceSource;
use ffclock_nts::{CookieKeys, OpenedRequest, Protection, RefusedRequest, ReplySealer, write_nak};
use ffclock_sys::PacketBatch;
use ffclock_wire::{HEADER_BYTES, PACKET_BYTES_MAX};
use std::io;

/// What a request turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// An ordinary one.
    Plain,
    /// An authentic one: its number among those of the batch.
    Protected(usize),
    /// None that is answered with the time; how it is counted.
    Refused(Counted),
}

/// The protected requests of the batch at hand, and the nonces of a thread.
pub(crate) struct ProtectedRequests {
    nonces: NonceSource,
    opened: Vec<OpenedRequest>,
    scratch: [u8; PACKET_BYTES_MAX],
    reply: [u8; PACKET_BYTES_MAX],
}

impl ProtectedRequests {
    /// # Errors
    /// There are no random numbers.
    pub(crate) fn new() -> io::Result<Self> {
        let (scratch, reply) = ([0; PACKET_BYTES_MAX], [0; PACKET_BYTES_MAX]);
        Ok(ProtectedRequests {
            nonces: random_nonces()?,
            opened: Vec::with_capacity(PacketBatch::CAPACITY),
            scratch,
            reply,
        })
    }

    /// A new batch begins.
    pub(crate) fn clear(&mut self) {
        self.opened.clear();
    }

    /// Opens a datagram. One that is refused but has an identifier gets `kiss` and that identifier as its answer, in
    /// [`ProtectedRequests::answer`].
    pub(crate) fn open(
        &mut self,
        datagram: &[u8],
        keys: &CookieKeys,
        kiss: &[u8; HEADER_BYTES],
    ) -> (Opened, Option<&[u8]>) {
        match Protection::of(datagram, keys, &mut self.scratch) {
            Protection::Plain => (Opened::Plain, None),
            Protection::Nts(request) => {
                self.opened.push(request);
                (Opened::Protected(self.opened.len() - 1), None)
            }
            Protection::Refused(why, identifier) => {
                let counted = match why {
                    RefusedRequest::Malformed => Counted::NtsMalformed,
                    RefusedRequest::Cookie => Counted::NtsCookie,
                    RefusedRequest::Authenticator => Counted::NtsUnauthentic,
                };
                let length = identifier.and_then(|identifier| write_nak(kiss, identifier, &mut self.reply));
                // A kiss is shorter than every request with a cookie; a request may still be of any form.
                let nak = length.filter(|length| *length <= datagram.len()).and_then(|length| self.reply.get(..length));
                (Opened::Refused(counted), nak)
            }
        }
    }

    /// The sealed reply to the protected request of this number, which came as `datagram`; `None` if it has no room
    /// for one.
    pub(crate) fn seal(
        &mut self,
        (number, datagram): (usize, &[u8]),
        keys: &CookieKeys,
        header: &[u8; HEADER_BYTES],
    ) -> Option<&[u8]> {
        let request = self.opened.get(number)?;
        let mut sealer = ReplySealer { keys, nonces: &mut self.nonces };
        let length = sealer.seal((request, datagram), header, &mut self.reply)?;
        self.reply.get(..length)
    }
}
