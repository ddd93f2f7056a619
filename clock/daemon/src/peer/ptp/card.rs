//! The network card that stamps a server's messages, and what becomes of messages that it does not stamp.

use super::link::PtpLink;
use super::{Note, Ptp};
use crate::config::StampChoice;
use crate::peer::stamping::{card_fault, card_of};
use ffclock_ptp::PtpTicket;
use ffclock_sys::{BestStamp, StampDiscarded, StampQuality, Stamper};
use ffclock_units::Exchange;

impl Ptp {
    /// Takes the stamps of the network card that messages pass, if those are wanted. Why there is none is said once.
    pub(super) fn use_hardware(&mut self, link: &mut PtpLink, stamper: &mut Stamper) {
        if self.stamps != StampChoice::Hardware {
            return;
        }
        let (device, packets) = link.device();
        let card = match card_of((device.as_deref(), packets), self.device_stamps, stamper) {
            Ok(card) => {
                self.card_missing = None;
                Some(card)
            }
            Err(why) => {
                if self.card_missing.as_ref() != Some(&why) {
                    let kind = "the network card gives no stamps: those of the kernel serve";
                    self.notes.push(Note::warning(kind, &why));
                    self.card_missing = Some(why);
                }
                None
            }
        };
        link.use_hardware(card);
    }

    /// A message left.
    pub(super) fn note_sent(&mut self, (ticket, best): (PtpTicket, BestStamp)) {
        self.note_shortfall(best.shortfall);
        self.follower.handle_sent(ticket, best.stamp);
    }

    /// A message whose time counts was stamped less well than it should be. Where no stamp of the card serves, one
    /// event has said so.
    pub(super) fn note_shortfall(&mut self, shortfall: Option<StampDiscarded>) {
        let is_expected =
            |link: &PtpLink| link.is_in_hardware() && !matches!(link.quality(), StampQuality::CardMissing(_));
        if let Some(reason) = shortfall.filter(|_| self.link.as_ref().is_some_and(is_expected)) {
            self.notes.push(Note::notice(card_fault(reason), ""));
        }
    }

    /// Says so once the stamps that should come do not.
    pub(super) fn note_stamps(&mut self, exchange: &Exchange) {
        let Some(link) = &mut self.link else { return };
        let kind = if link.is_in_hardware() {
            "no usable stamps come from the network card: those of the kernel serve"
        } else {
            "no usable stamps come from the kernel: those of user space serve"
        };
        if let Some(reason) = link.note(exchange) {
            self.notes.push(Note::notice(kind, reason));
        }
    }
}

/// Whether it counts when a message passed: of an event message, by its type (IEEE 1588-2019, 13.3.2.3).
pub(super) fn is_timed(octets: &[u8]) -> bool {
    octets.first().is_some_and(|first| first & 0x0f < 8)
}
