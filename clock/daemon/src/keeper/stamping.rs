//! The stamper of packets in addition to the sockets.

use super::Keeper;
use crate::config::StampChoice;
use ffclock_sys::{DriverStamps, Stamper};

impl Keeper<'_> {
    /// Makes a stamper for the counter in use, with stamps at the driver's boundary if they are configured. Without
    /// them the clock works as with `stamps = "kernel"`, and the journal has the reason.
    pub(super) fn renew_stamper(&mut self) {
        let (kind, period) = (self.host_counter.kind(), self.host_counter.nominal.period);
        // The old stamper is dropped first: it may own what the new one needs.
        self.context.stamper = Stamper::new(kind, period);
        let ports: Vec<u16> = self.peers.iter().map(|peer| peer.config().address.port).collect();
        let made = match self.config.stamps {
            StampChoice::Kernel | StampChoice::User => return,
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
}
