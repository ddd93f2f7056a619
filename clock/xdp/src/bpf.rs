//! The program in the driver, loaded and attached.

mod attach;
mod responder;
mod skeleton;
#[cfg(test)]
mod tests;

use crate::{FastCounts, FastPathError, FastPathPlace, Line, Rules, XdpHook};
use attach::XdpLink;
use responder::Responder;
use std::net::IpAddr;

/// The program at a device. Dropped, it is gone; so it is when the process ends.
#[derive(Debug)]
pub struct FastPath {
    // Dropped in this order: the place, and what was there.
    link: XdpLink,
    responder: Responder,
}

impl FastPath {
    /// Loads the program and attaches it. It serves nothing yet.
    ///
    /// # Errors
    /// [`FastPathError`]: no such device, another program there, no right, a kernel or a driver that has no XDP.
    pub fn open(place: &FastPathPlace) -> Result<Self, FastPathError> {
        let device =
            ffclock_sys::device_index(&place.device).ok_or_else(|| FastPathError::NoDevice(place.device.clone()))?;
        let responder = Responder::load(place)?;
        let link = XdpLink::new(&responder, device, place)?;
        Ok(FastPath { link, responder })
    }

    /// Where the program is: [`XdpHook::Native`] or [`XdpHook::Generic`].
    pub fn hook(&self) -> XdpHook {
        self.link.hook()
    }

    /// Serves these addresses, and no others.
    ///
    /// # Errors
    /// The kernel refuses, or there are too many.
    pub fn serve(&mut self, addresses: &[IpAddr]) -> Result<(), FastPathError> {
        self.responder.serve(addresses)
    }

    /// Answers by these rules. Of the networks, some may be judged by the old ones while this call lasts.
    ///
    /// # Errors
    /// The kernel refuses, or there are too many networks.
    pub fn rule(&mut self, rules: &Rules) -> Result<(), FastPathError> {
        self.responder.rule(rules)
    }

    /// Serves this line from now on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn publish(&mut self, line: &Line) -> Result<(), FastPathError> {
        self.responder.publish(&line.words())
    }

    /// Serves no line.
    ///
    /// # Errors
    /// The kernel refuses; the last line ends by itself.
    pub fn withdraw(&mut self) -> Result<(), FastPathError> {
        self.responder.withdraw()
    }

    /// The packets so far, by outcome.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn counts(&self) -> Result<FastCounts, FastPathError> {
        self.responder.counts()
    }
}
