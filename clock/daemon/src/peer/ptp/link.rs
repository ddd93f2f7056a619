//! The two sockets of a server of PTP, and the messages whose stamps have not come.

use crate::config::{DeviceName, EVENT_PORT, GENERAL_PORT, PtpPlace, ServerConfig, StampChoice};
use ffclock_ptp::{Channel, PtpTicket, PtpTransmit};
use ffclock_sys::{
    BestStamp, Sent, SocketEvent, StampDiscarded, StampMode, StampQuality, StampShifts, StampedSocket, Stamper,
    Transmitted,
};
use ffclock_units::{Exchange, Moment, Mono, Span};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// How long the kernel's stamp of a message is waited for; that of user space serves then.
const STAMP_PATIENCE: Span = Span::from_millis(50);
/// The most messages that wait for a stamp.
const MOST_WAITING: usize = 16;

/// A message whose stamp has not come.
struct Waiting {
    sent: Sent,
    ticket: PtpTicket,
    until: Moment<Mono>,
}

/// Both sockets, open.
pub(super) struct PtpLink {
    event: StampedSocket,
    general: StampedSocket,
    place: String,
    local: Option<IpAddr>,
    /// The group to send to; `None` where the sockets have one peer.
    group: Option<IpAddr>,
    waiting: VecDeque<Waiting>,
}

impl PtpLink {
    /// The sockets where the server is heard.
    ///
    /// # Errors
    /// They cannot be had; the text says why and names the remedy.
    pub(super) fn open(server: &ServerConfig, stamps: StampChoice) -> Result<Self, String> {
        // Network cards are not asked: see docs/ptp.md.
        let mode = if stamps.is_in_kernel() { StampMode::Kernel } else { StampMode::User };
        let opened = |port, mode| open_one(server, port, mode).map_err(|error| explained(&error, port));
        let event = opened(EVENT_PORT, mode)?;
        // When these pass is of no importance.
        let general = opened(GENERAL_PORT, StampMode::User)?;
        let device = server.ptp.interface.as_str();
        let (group, place, local) = match server.ptp_place() {
            PtpPlace::Group(group) => {
                let local = ffclock_sys::addresses_of(device).into_iter().find(|ip| ip.is_ipv4() == group.is_ipv4());
                (Some(group), format!("{group} on {device}"), local)
            }
            PtpPlace::Master(master) => {
                (None, master.to_string(), event.local_address().ok().map(|address| address.ip()))
            }
        };
        Ok(PtpLink { event, general, place, local, group, waiting: VecDeque::new() })
    }

    /// Where masters are heard.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// The address that messages leave from.
    pub(super) fn local_address(&self) -> Option<IpAddr> {
        self.local
    }

    /// Takes the host's own delays off the stamps from now on.
    pub(super) fn calibrate(&mut self, shifts: StampShifts) {
        self.event.shift(shifts);
    }

    pub(super) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.event.as_fd(), self.general.as_fd()]
    }

    /// Where messages are stamped, beside what is to be had.
    pub(super) fn quality(&self) -> StampQuality {
        self.event.quality()
    }

    /// Records how an exchange was stamped. Returns the reason if, with it, the kernel's stamps count as missing.
    pub(super) fn note(&mut self, exchange: &Exchange) -> Option<StampDiscarded> {
        self.event.note_exchange(&exchange.sent, &exchange.received)
    }

    /// The next event of one of the sockets.
    ///
    /// # Errors
    /// The socket itself fails.
    pub(super) fn next_event(
        &mut self,
        channel: Channel,
        (buffer, stamper): (&mut [u8], &mut Stamper),
    ) -> io::Result<Option<SocketEvent>> {
        self.socket(channel).next_event(buffer, stamper)
    }

    /// Sends a message. If the kernel stamps, its stamp comes later, by [`PtpLink::redeem`] or [`PtpLink::overdue`];
    /// otherwise it is returned at once.
    ///
    /// # Errors
    /// The kernel refuses the message, which counts as lost.
    pub(super) fn send(
        &mut self,
        transmit: PtpTransmit,
        (stamper, now): (&mut Stamper, Moment<Mono>),
    ) -> io::Result<Option<(PtpTicket, BestStamp)>> {
        let (octets, group) = (transmit.octets.as_slice(), self.group);
        let port = match transmit.channel {
            Channel::Event => EVENT_PORT,
            Channel::General => GENERAL_PORT,
        };
        let socket = self.socket(transmit.channel);
        let sent = match group {
            Some(group) => socket.send_to(octets, SocketAddr::new(group, port), stamper)?,
            None => socket.send(octets, stamper)?,
        };
        let Some(ticket) = transmit.ticket else { return Ok(None) };
        if let Some(best) = sent.best {
            return Ok(Some((ticket, best)));
        }
        if self.waiting.len() == MOST_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Waiting { sent, ticket, until: now + STAMP_PATIENCE });
        Ok(None)
    }

    /// The ticket of the message that this stamp is of.
    pub(super) fn redeem(&mut self, transmitted: &Transmitted) -> Option<PtpTicket> {
        let place = self.waiting.iter().position(|waiting| waiting.sent.id == transmitted.id)?;
        self.waiting.remove(place).map(|waiting| waiting.ticket)
    }

    /// A message whose stamp has been waited for long enough, with the stamp that serves.
    pub(super) fn overdue(&mut self, now: Moment<Mono>) -> Option<(PtpTicket, BestStamp)> {
        self.deadline().filter(|until| *until <= now)?;
        let first = self.waiting.pop_front()?;
        Some((first.ticket, self.event.give_up_sent(&first.sent)))
    }

    /// When the next one will be.
    pub(super) fn deadline(&self) -> Option<Moment<Mono>> {
        self.waiting.front().map(|waiting| waiting.until)
    }

    fn socket(&mut self, channel: Channel) -> &mut StampedSocket {
        match channel {
            Channel::Event => &mut self.event,
            Channel::General => &mut self.general,
        }
    }
}

fn open_one(server: &ServerConfig, port: u16, mode: StampMode) -> io::Result<StampedSocket> {
    let missing =
        |device: &str| io::Error::new(io::ErrorKind::NotFound, format!("there is no network device {device}"));
    match server.ptp_place() {
        PtpPlace::Group(group) => {
            let device: &DeviceName = &server.ptp.interface;
            let number = ffclock_sys::device_index(device.as_str()).ok_or_else(|| missing(device.as_str()))?;
            StampedSocket::in_group(SocketAddr::new(group, port), number, mode)
        }
        PtpPlace::Master(_) => {
            let master = server.ptp_master(port).ok_or_else(|| missing(server.address.address.as_str()))?;
            StampedSocket::towards(master, mode)
        }
    }
}

/// Why there is no socket at this port, and the remedy where there is one.
fn explained(error: &io::Error, port: u16) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("UDP port {port} takes the capability CAP_NET_BIND_SERVICE, which ffclockd does not have: {error}")
        }
        io::ErrorKind::AddrInUse => format!("another program keeps UDP port {port} to itself: {error}"),
        _ => format!("UDP port {port}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_is_named() {
        let text = explained(&io::ErrorKind::PermissionDenied.into(), 319);
        assert!(text.starts_with("UDP port 319 takes the capability CAP_NET_BIND_SERVICE"), "{text}");
        assert!(explained(&io::ErrorKind::AddrInUse.into(), 320).contains("UDP port 320 to itself"));
    }
}
