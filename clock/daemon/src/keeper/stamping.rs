//! The stamper of packets in addition to the sockets, and what becomes of the clocks of network cards.

use super::Keeper;
use crate::config::StampChoice;
use ffclock_phc::PhcChange;
use ffclock_sys::{CardChange, DriverStamps, Stamper};

impl Keeper<'_> {
    /// Makes a stamper for the counter in use, with stamps at the driver's boundary if they are configured. Without
    /// them the clock works as with `stamps = "kernel"`, and the journal has the reason.
    pub(super) fn renew_stamper(&mut self) {
        let (kind, period) = (self.host_counter.kind(), self.host_counter.nominal.period);
        // The old stamper is dropped first: it may own what the new one needs.
        self.context.stamper = Stamper::new(kind, period);
        let ports: Vec<u16> = self.peers.iter().map(|peer| peer.config().stamped_port()).collect();
        let made = match self.config.stamps {
            StampChoice::Kernel | StampChoice::User | StampChoice::Hardware => return,
            StampChoice::Trace => DriverStamps::trace(kind, period.as_hertz()),
            StampChoice::Module => DriverStamps::module(kind, &ports, period.as_hertz()),
        };
        match made {
            Ok(driver) => self.context.stamper.refine_with(driver),
            Err(error) => {
                let text = format!("stamps = \"{}\": {error}", self.config.stamps);
                self.context.journal.warn("no stamps at the driver's boundary: those of the sockets serve", &text);
            }
        }
    }

    /// Logs what other programs did to the clocks of network cards: the stamps serve on, by a new line.
    pub(super) fn log_card_changes(&mut self) {
        for CardChange { card, change } in self.context.stamper.take_card_changes() {
            let (kind, detail) = match change {
                PhcChange::Stepped(by) => (
                    "the clock of a network card was stepped by another program",
                    format!("{card} by {:+.3e} s", by.as_seconds()),
                ),
                PhcChange::Steered(by) => (
                    "the clock of a network card was steered by another program",
                    format!("{card} by {:+.1} ppb", by.as_ppb()),
                ),
            };
            self.context.journal.warn(kind, &detail);
        }
    }
}
