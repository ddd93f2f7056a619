//! Where a server's packets are stamped, and why no better.

use super::{Context, Link, Peer};
use crate::config::{DeviceStamps, StampChoice};
use crate::journal::Weight;
use ffclock_sys::{CardUse, StampDiscarded, StampQuality, StampedPackets, Stamper};
use ffclock_units::Exchange;

impl Peer {
    /// A new link may use another device.
    pub(super) fn calibrate(&mut self, context: &mut Context) {
        self.use_hardware(context);
        self.know_own_references();
        let Some(link) = &mut self.link else { return };
        match context.calibrator.shifts(link.local_address()) {
            Ok(shifts) => link.calibrate(shifts),
            Err(reason) => self.log(context, Weight::Warning, "the host's delays are not known", &reason),
        }
    }

    /// Takes the stamps of the network card that the link's packets pass, if those are wanted.
    pub(super) fn use_hardware(&mut self, context: &mut Context) {
        if self.environment.stamps != StampChoice::Hardware || self.link.is_none() {
            return;
        }
        let card = match self.find_card(context) {
            Ok(card) => Some(card),
            Err(why) => {
                let kind = "the network card gives no stamps: those of the kernel serve";
                self.log(context, Weight::Warning, kind, &why);
                None
            }
        };
        if let Some(link) = &mut self.link {
            link.use_hardware(card);
        }
    }

    fn find_card(&self, context: &mut Context) -> Result<CardUse, String> {
        let local = self.link.as_ref().and_then(Link::local_address);
        let device = local.and_then(ffclock_sys::device_with);
        let packets = (device.as_deref(), StampedPackets::Ntp);
        card_of(packets, self.environment.device_stamps, &mut context.stamper)
    }

    /// A packet was stamped less well than it should be, for this reason. That the kernel gives no stamp is worth a
    /// word only as a rule ([`Peer::note_stamps`]); a network card that fails has a fault.
    pub(super) fn note_shortfall(&self, shortfall: Option<StampDiscarded>, context: &mut Context) {
        let Some(reason) = shortfall else { return };
        // Where none of them serves, one event has said so.
        let is_expected =
            |link: &Link| link.is_in_hardware() && !matches!(link.quality(), StampQuality::CardMissing(_));
        if self.link.as_ref().is_some_and(is_expected) {
            self.log(context, Weight::Notice, card_fault(reason), "");
        }
    }

    /// Says so once the stamps that should come do not.
    pub(super) fn note_stamps(&mut self, exchange: &Exchange, context: &mut Context) {
        let Some(link) = &mut self.link else { return };
        if let Some(reason) = link.note(exchange) {
            let kind = if link.is_in_hardware() {
                "no usable stamps come from the network card: those of the kernel serve"
            } else {
                "no usable stamps come from the kernel: those of user space serve"
            };
            self.log(context, Weight::Notice, kind, &reason.to_string());
        }
    }
}

/// The card of the device that such packets pass.
pub(super) fn card_of(
    (device, packets): (Option<&str>, StampedPackets),
    device_stamps: DeviceStamps,
    stamper: &mut Stamper,
) -> Result<CardUse, String> {
    let device = device.ok_or("the device of the packets cannot be found out")?;
    stamper.use_hardware((device, packets), device_stamps.into()).map_err(|error| error.to_string())
}

/// The event of a packet whose stamp by the network card does not serve: one kind for each reason.
pub(super) fn card_fault(reason: StampDiscarded) -> &'static str {
    match reason {
        StampDiscarded::CardMissing => "a stamp of the network card is missing: the kernel's serves",
        StampDiscarded::Repeated => "a stamp of the network card is that of another packet: the kernel's serves",
        StampDiscarded::BeforeReading | StampDiscarded::BeforeRequest | StampDiscarded::LongBefore => {
            "a stamp of the network card is older than the packet: the kernel's serves"
        }
        StampDiscarded::AfterReading => "a stamp of the network card lies in the future: the kernel's serves",
        StampDiscarded::RequestContradicted => {
            "a stamp of the network card follows one that is out of order: the kernel's serves"
        }
        StampDiscarded::OtherCard => "a stamp is of another network card: the kernel's serves",
        StampDiscarded::CardStepped => {
            "the clock of the network card was stepped at a packet: the kernel's stamp serves"
        }
        StampDiscarded::CardUnreadable => "the clock of the network card cannot be read: the kernel's stamps serve",
        StampDiscarded::TooOld => "a stamp of the network card is too far from the present: the kernel's serves",
        StampDiscarded::Missing | StampDiscarded::ClockStepped => {
            "a packet has neither the card's nor the kernel's stamp"
        }
    }
}
