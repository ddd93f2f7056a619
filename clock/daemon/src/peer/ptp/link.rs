//! The sockets of a server of PTP, two over UDP and one over Ethernet, and the messages whose stamps have not come.

use crate::config::{DelayChoice, EVENT_PORT, GENERAL_PORT, PtpPlace, ServerConfig, StampChoice};
use ffclock_ptp::{Audience, Channel, NetworkAddress, Passage, PtpTicket, PtpTransmit};
use ffclock_sys::{
    AwaitedStamps, BestStamp, CardUse, DeviceAddress, FrameKind, Received, Sent, SocketEvent, StampDiscarded,
    StampMode, StampQuality, StampShifts, StampedPackets, StampedSocket, Stamper, Transmitted,
};
use ffclock_units::{Exchange, Moment, Mono};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd};

/// The most messages that wait for a stamp: the follower's own, and sixteen responses to neighbours.
const MOST_WAITING: usize = 32;

/// The EtherType of PTP, and the groups for all clocks and for the neighbour on the link (annex E).
const FRAMES: u16 = 0x88f7;
const EVERYONE: DeviceAddress = [0x01, 0x1b, 0x19, 0, 0, 0];
const NEIGHBOUR: DeviceAddress = [0x01, 0x80, 0xc2, 0, 0, 0x0e];

/// Whither messages go.
#[derive(Clone, Copy)]
enum Way {
    /// To these groups, for all clocks and for the neighbour, or to one host, on the device of this number.
    Groups([IpAddr; 2], u32),
    /// In frames of this kind.
    Frames(FrameKind),
    /// To the peer of the sockets.
    Master,
}

/// The sockets, open.
pub(super) struct PtpLink {
    event: StampedSocket,
    /// None over Ethernet, where one socket has all messages.
    general: Option<StampedSocket>,
    place: String,
    local: Option<IpAddr>,
    /// The device that is configured; none where a host is asked by unicast.
    device: Option<String>,
    way: Way,
    waiting: AwaitedStamps<PtpTicket>,
}

impl PtpLink {
    /// The sockets where the server is heard.
    ///
    /// # Errors
    /// They cannot be had; the text says why and names the remedy.
    pub(super) fn open(server: &ServerConfig, stamps: StampChoice) -> Result<Self, String> {
        let device = server.ptp.interface.as_str();
        let way = way_of(server).map_err(|error| error.to_string())?;
        let opened = |port, mode| open_one(server, (way, port), mode).map_err(|error| explained(&error, (way, port)));
        let event = opened(EVENT_PORT, mode_of(stamps, way))?;
        // When these pass is of no importance.
        let general = || opened(GENERAL_PORT, StampMode::User);
        let general = if matches!(way, Way::Frames(_)) { None } else { Some(general()?) };
        let (place, local) = match server.ptp_place() {
            PtpPlace::Group(group) => {
                let local = ffclock_sys::addresses_of(device).into_iter().find(|ip| ip.is_ipv4() == group.is_ipv4());
                (format!("{group} on {device}"), local)
            }
            PtpPlace::Frames => (format!("Ethernet on {device}"), None),
            PtpPlace::Master(master) => (master.to_string(), event.local_address().ok().map(|address| address.ip())),
        };
        let device = (!matches!(way, Way::Master)).then(|| device.to_owned());
        Ok(PtpLink { event, general, place, local, device, way, waiting: AwaitedStamps::new(MOST_WAITING) })
    }

    /// Where masters are heard.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// The address that messages leave from.
    pub(super) fn local_address(&self) -> Option<IpAddr> {
        self.local
    }

    /// The device that messages pass, where it is known, and how they pass it.
    pub(super) fn device(&self) -> (Option<String>, StampedPackets) {
        let packets = match self.way {
            Way::Frames(_) => StampedPackets::PtpInFrames,
            Way::Groups(..) | Way::Master => StampedPackets::PtpOverUdp,
        };
        (self.device.clone().or_else(|| self.local.and_then(ffclock_sys::device_with)), packets)
    }

    /// Takes the stamps of this network card from now on.
    pub(super) fn use_hardware(&mut self, card: Option<CardUse>) {
        self.event.use_hardware(card);
    }

    /// Whether a network card is asked for stamps.
    pub(super) fn is_in_hardware(&self) -> bool {
        self.event.mode() == StampMode::Hardware
    }

    /// Takes the host's own delays off the stamps from now on.
    pub(super) fn calibrate(&mut self, shifts: StampShifts) {
        self.event.shift(shifts);
    }

    pub(super) fn descriptors(&self) -> [Option<BorrowedFd<'_>>; 2] {
        [Some(self.event.as_fd()), self.general.as_ref().map(AsFd::as_fd)]
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
        match (channel, &mut self.general) {
            (Channel::Event, _) => self.event.next_event(buffer, stamper),
            (Channel::General, Some(general)) => general.next_event(buffer, stamper),
            (Channel::General, None) => Ok(None),
        }
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
        let sent = self.send_on_its_way(&transmit, stamper)?;
        let Some(ticket) = transmit.ticket else { return Ok(None) };
        if let Some(best) = sent.best {
            return Ok(Some((ticket, best)));
        }
        self.waiting.push((sent, ticket), now);
        Ok(None)
    }

    /// The ticket of the message that this stamp is of.
    pub(super) fn redeem(&mut self, transmitted: &Transmitted) -> Option<PtpTicket> {
        self.waiting.redeem(transmitted)
    }

    /// A message whose stamp has been waited for long enough, with the stamp that serves.
    pub(super) fn overdue(&mut self, now: Moment<Mono>) -> Option<(PtpTicket, BestStamp)> {
        let (sent, ticket) = self.waiting.overdue(now)?;
        Some((ticket, self.event.give_up_sent(&sent)))
    }

    /// When the next one will be.
    pub(super) fn deadline(&self) -> Option<Moment<Mono>> {
        self.waiting.deadline()
    }

    fn send_on_its_way(&mut self, transmit: &PtpTransmit, stamper: &mut Stamper) -> io::Result<Sent> {
        let octets = transmit.octets.as_slice();
        let (socket, port) = match (transmit.channel, &mut self.general) {
            (Channel::General, Some(general)) => (general, GENERAL_PORT),
            (Channel::General, None) | (Channel::Event, _) => (&mut self.event, EVENT_PORT),
        };
        match self.way {
            Way::Groups([everyone, neighbour], device) => {
                let to = match transmit.audience {
                    Audience::Everyone => SocketAddr::new(everyone, port),
                    Audience::Neighbour => SocketAddr::new(neighbour, port),
                    Audience::One(address) => host_of(address, (device, port)),
                };
                socket.send_to(octets, to, stamper)
            }
            Way::Frames(kind) => {
                let to = match transmit.audience {
                    Audience::Everyone => EVERYONE,
                    Audience::Neighbour => NEIGHBOUR,
                    Audience::One(NetworkAddress([.., a, b, c, d, e, f])) => [a, b, c, d, e, f],
                };
                socket.send_frame(octets, (kind, to), stamper)
            }
            Way::Master => socket.send(octets, stamper),
        }
    }
}

/// How a message came, in the form of the protocol. A frame comes from the link in any case.
pub(super) fn passage(received: &Received) -> Passage {
    let from = match received.device {
        Some([a, b, c, d, e, f]) => NetworkAddress([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d, e, f]),
        None => address_of(received.from.ip()),
    };
    Passage { from, to: received.to.filter(|to| !to.is_multicast()).map(address_of) }
}

fn address_of(ip: IpAddr) -> NetworkAddress {
    match ip {
        IpAddr::V4(ip) => NetworkAddress(ip.to_ipv6_mapped().octets()),
        IpAddr::V6(ip) => NetworkAddress(ip.octets()),
    }
}

fn host_of(NetworkAddress(octets): NetworkAddress, (device, port): (u32, u16)) -> SocketAddr {
    match Ipv6Addr::from(octets).to_canonical() {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => SocketAddrV6::new(ip, port, 0, device).into(),
        ip => SocketAddr::new(ip, port),
    }
}

/// Who stamps. The kernel module knows UDP ports and not frames, so that its stamp of a packet of NTP might be taken
/// for that of a frame.
fn mode_of(stamps: StampChoice, way: Way) -> StampMode {
    match (stamps, way) {
        (StampChoice::User, _) | (StampChoice::Module, Way::Frames(_)) => StampMode::User,
        (StampChoice::Hardware, _) => StampMode::Hardware,
        (StampChoice::Kernel | StampChoice::Trace | StampChoice::Module, _) => StampMode::Kernel,
    }
}

fn way_of(server: &ServerConfig) -> io::Result<Way> {
    let device = || {
        let name = server.ptp.interface.as_str();
        ffclock_sys::device_index(name).ok_or_else(|| missing(name))
    };
    Ok(match server.ptp_place() {
        PtpPlace::Group(everyone @ IpAddr::V4(_)) => {
            Way::Groups([everyone, Ipv4Addr::new(224, 0, 0, 107).into()], device()?)
        }
        PtpPlace::Group(everyone @ IpAddr::V6(_)) => {
            Way::Groups([everyone, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x6b).into()], device()?)
        }
        PtpPlace::Frames => Way::Frames(FrameKind { protocol: FRAMES, device: device()? }),
        PtpPlace::Master(_) => Way::Master,
    })
}

fn missing(device: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("there is no network device {device}"))
}

fn open_one(server: &ServerConfig, (way, port): (Way, u16), mode: StampMode) -> io::Result<StampedSocket> {
    let mechanism = server.ptp.delay_mechanism;
    match way {
        Way::Groups([everyone, _], device) if mechanism == DelayChoice::EndToEnd => {
            StampedSocket::in_group(SocketAddr::new(everyone, port), device, mode)
        }
        // Answers come by unicast, or in the group of neighbours.
        Way::Groups(groups, device) => {
            let groups = if mechanism == DelayChoice::Peer { &groups[..] } else { &groups[..1] };
            StampedSocket::on_device((port, device), groups, mode)
        }
        Way::Frames(kind) if mechanism == DelayChoice::Peer => {
            StampedSocket::of_frames(kind, &[EVERYONE, NEIGHBOUR], mode)
        }
        Way::Frames(kind) => StampedSocket::of_frames(kind, &[EVERYONE], mode),
        Way::Master => {
            let master = server.ptp_master(port).ok_or_else(|| missing(server.address.address.as_str()))?;
            StampedSocket::towards(master, mode)
        }
    }
}

/// Why there is no socket, and the remedy where there is one.
fn explained(error: &io::Error, (way, port): (Way, u16)) -> String {
    match (way, error.kind()) {
        (Way::Frames(_), io::ErrorKind::PermissionDenied) => format!(
            "PTP over Ethernet takes the capability CAP_NET_RAW, which ffclockd does not have \
             (packaging/systemd/ffclockd-ptp-ethernet.conf gives it): {error}"
        ),
        (Way::Frames(_), _) => format!(
            "PTP over Ethernet: {error} (in the shipped unit packaging/systemd/ffclockd-ptp-ethernet.conf permits its sockets)"
        ),
        (_, io::ErrorKind::PermissionDenied) => {
            format!("UDP port {port} takes the capability CAP_NET_BIND_SERVICE, which ffclockd does not have: {error}")
        }
        (_, io::ErrorKind::AddrInUse) => format!("another program keeps UDP port {port} to itself: {error}"),
        _ => format!("UDP port {port}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_is_named() {
        let text = explained(&io::ErrorKind::PermissionDenied.into(), (Way::Master, 319));
        assert!(text.starts_with("UDP port 319 takes the capability CAP_NET_BIND_SERVICE"), "{text}");
        assert!(explained(&io::ErrorKind::AddrInUse.into(), (Way::Master, 320)).contains("UDP port 320 to itself"));
        let frames = Way::Frames(FrameKind { protocol: FRAMES, device: 1 });
        let text = explained(&io::ErrorKind::PermissionDenied.into(), (frames, 319));
        assert!(text.starts_with("PTP over Ethernet takes the capability CAP_NET_RAW"), "{text}");
    }

    #[test]
    fn a_host_is_found_at_the_address_that_its_messages_came_from() {
        for text in ["192.0.2.7:319", "[2001:db8::7]:320", "[fe80::7%5]:319"] {
            let from: SocketAddr = text.parse().unwrap();
            assert_eq!(host_of(address_of(from.ip()), (5, from.port())), from);
        }
    }

    #[test]
    fn frames_have_no_stamps_of_the_module() {
        let frames = Way::Frames(FrameKind { protocol: FRAMES, device: 1 });
        assert_eq!(mode_of(StampChoice::Module, frames), StampMode::User);
        assert_eq!(mode_of(StampChoice::Module, Way::Master), StampMode::Kernel);
        assert_eq!(mode_of(StampChoice::Trace, frames), StampMode::Kernel);
        assert_eq!(mode_of(StampChoice::Hardware, frames), StampMode::Hardware);
    }
}
