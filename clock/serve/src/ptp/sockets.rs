//! The sockets of a port of the grandmaster, two over UDP and one over Ethernet, and the messages whose stamps have not
//! come.

use ffclock_ptp::{Audience, Channel, NetworkAddress, Passage, PtpTicket, PtpTransmit};
use ffclock_sys::{
    AwaitedStamps, BestStamp, CardId, DeviceAddress, DeviceSetup, FrameKind, HardwareUnavailable, Received, Sent,
    SocketEvent, StampMode, StampedPackets, StampedSocket, Stamper, device_index, switch_on_stamps,
};
use ffclock_units::{Moment, Mono};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd};

/// The ports of event and of general messages (IEEE 1588-2019, annexes C and D).
const PORTS: [u16; 2] = [319, 320];
/// The EtherType of PTP, and the groups of all clocks and of the neighbour in frames (annex E).
const FRAMES: u16 = 0x88f7;
const FRAME_GROUPS: [DeviceAddress; 2] = [[0x01, 0x1b, 0x19, 0, 0, 0], [0x01, 0x80, 0xc2, 0, 0, 0x0e]];
/// The most messages that wait for a stamp.
const MOST_WAITING: usize = 256;
/// Room for messages that wait to be taken over, where the host permits it.
const WAITING_BYTES: usize = 1 << 20;

/// Where a port of the grandmaster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PtpPlace {
    pub(crate) device: String,
    pub(crate) way: PtpWay,
}

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PtpWay {
    /// Over UDP, to these groups of all clocks and of the neighbour or to one host.
    Udp([IpAddr; 2]),
    /// In frames.
    Ethernet,
}

impl PtpPlace {
    pub(crate) fn ipv4(device: &str) -> Self {
        let groups = [Ipv4Addr::new(224, 0, 1, 129), Ipv4Addr::new(224, 0, 0, 107)].map(IpAddr::V4);
        PtpPlace { device: device.to_owned(), way: PtpWay::Udp(groups) }
    }

    /// With the group of all clocks in this scope.
    pub(crate) fn ipv6(device: &str, scope: u16) -> Self {
        let everyone = Ipv6Addr::new(0xff00 | scope & 15, 0, 0, 0, 0, 0, 0, 0x181);
        let neighbour = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x6b);
        PtpPlace { device: device.to_owned(), way: PtpWay::Udp([everyone, neighbour].map(IpAddr::V6)) }
    }

    pub(crate) fn ethernet(device: &str) -> Self {
        PtpPlace { device: device.to_owned(), way: PtpWay::Ethernet }
    }

    /// As status and metrics name it.
    pub(crate) fn name(&self) -> String {
        let way = match self.way {
            PtpWay::Udp([everyone, _]) if everyone.is_ipv4() => "ipv4",
            PtpWay::Udp(_) => "ipv6",
            PtpWay::Ethernet => "ethernet",
        };
        format!("{}/{way}", self.device)
    }
}

/// The sockets, open.
pub(crate) struct PtpSockets {
    event: StampedSocket,
    /// None over Ethernet, where one socket has all messages.
    general: Option<StampedSocket>,
    device: u32,
    /// The device whose card stamps.
    stamped_by: Option<String>,
    way: PtpWay,
    waiting: AwaitedStamps<PtpTicket>,
}

impl PtpSockets {
    /// With `hardware` the card's stamps are switched on where that is permitted, and then asked for; where there are
    /// none, those of the kernel serve.
    ///
    /// # Errors
    /// They cannot be had; the text says why and names the remedy.
    pub(crate) fn open(place: &PtpPlace, hardware: Option<DeviceSetup>) -> Result<Self, String> {
        let PtpPlace { device: name, way } = place;
        let stamped_by = hardware.and_then(|setup| match switch_on_stamps(name, packets(*way), setup) {
            Ok(_) => Some(name.clone()),
            Err(error) => {
                tracing::warn!(port = place.name(), %error, "{NO_CARD}");
                None
            }
        });
        let mode = if stamped_by.is_some() { StampMode::Hardware } else { StampMode::Kernel };
        let device = device_index(name).ok_or_else(|| format!("there is no network device {name}"))?;
        let (event, general) = match way {
            PtpWay::Udp(groups) => {
                let opened = |port, mode| {
                    let socket = StampedSocket::on_device((port, device), groups, mode);
                    socket.map_err(|error| explained(&error, (port, name)))
                };
                // When general messages pass is of no importance.
                (opened(PORTS[0], mode)?, Some(opened(PORTS[1], StampMode::User)?))
            }
            PtpWay::Ethernet => {
                let kind = FrameKind { protocol: FRAMES, device };
                let socket = StampedSocket::of_frames(kind, &FRAME_GROUPS, mode);
                (socket.map_err(|error| frames_explained(&error, name))?, None)
            }
        };
        // The host may permit less.
        let _ = event.enlarge_receive_buffer(WAITING_BYTES);
        Ok(PtpSockets { event, general, device, stamped_by, way: *way, waiting: AwaitedStamps::new(MOST_WAITING) })
    }

    /// Sockets of loopback at ports of their own, where user space alone stamps, as on a host whose kernel refuses.
    #[cfg(test)]
    pub(super) fn unstamped() -> Self {
        let PtpPlace { way, .. } = PtpPlace::ipv4("lo");
        let PtpWay::Udp(groups) = way else { unreachable!("it is over UDP") };
        let device = device_index("lo").expect("loopback");
        let opened = || StampedSocket::on_device((0, device), &groups, StampMode::User).expect("a socket");
        let waiting = AwaitedStamps::new(MOST_WAITING);
        PtpSockets { event: opened(), general: Some(opened()), device, stamped_by: None, way, waiting }
    }

    /// Takes the stamps of the network card, if those are wanted, by this stamper; the card where there is one.
    ///
    /// # Errors
    /// Its clock cannot be read, or its stamps were switched off since: those of the kernel serve.
    pub(crate) fn use_card(&mut self, stamper: &mut Stamper) -> Result<Option<CardId>, HardwareUnavailable> {
        let Some(device) = &self.stamped_by else { return Ok(None) };
        let found = stamper.use_hardware((device, packets(self.way)), DeviceSetup::Leave);
        self.event.use_hardware(found.as_ref().ok().copied());
        found.map(|used| Some(used.card()))
    }

    /// Whether a network card is asked for stamps.
    pub(crate) fn is_in_hardware(&self) -> bool {
        self.event.mode() == StampMode::Hardware
    }

    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.event.as_fd(), self.general.as_ref().unwrap_or(&self.event).as_fd()]
    }

    /// How many messages the kernel threw away because a socket was full.
    pub(crate) fn dropped(&self) -> u64 {
        let sockets = [Some(&self.event), self.general.as_ref()].into_iter().flatten();
        sockets.filter_map(|socket| socket.dropped().ok()).map(u64::from).sum()
    }

    /// # Errors
    /// The socket itself fails.
    pub(crate) fn next_event(
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

    /// Sends a message. If the kernel stamps it, the stamp comes later, by [`PtpSockets::waiting`] or
    /// [`PtpSockets::overdue`]; otherwise it is returned at once.
    ///
    /// # Errors
    /// The kernel refuses the message, which counts as lost.
    pub(crate) fn send(
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

    fn send_on_its_way(&mut self, transmit: &PtpTransmit, stamper: &mut Stamper) -> io::Result<Sent> {
        let octets = transmit.octets.as_slice();
        let (socket, port) = match (transmit.channel, &mut self.general) {
            (Channel::General, Some(general)) => (general, PORTS[1]),
            (Channel::General, None) | (Channel::Event, _) => (&mut self.event, PORTS[0]),
        };
        match self.way {
            PtpWay::Udp(groups) => {
                let to = match transmit.audience {
                    Audience::Everyone => SocketAddr::new(groups[0], port),
                    Audience::Neighbour => SocketAddr::new(groups[1], port),
                    Audience::One(address) => host_of(address, (self.device, port)),
                };
                match transmit.from {
                    Some(NetworkAddress(own)) => {
                        socket.send_between(octets, (Ipv6Addr::from(own).to_canonical(), to), stamper)
                    }
                    None => socket.send_to(octets, to, stamper),
                }
            }
            PtpWay::Ethernet => {
                let to = match transmit.audience {
                    Audience::Everyone => FRAME_GROUPS[0],
                    Audience::Neighbour => FRAME_GROUPS[1],
                    Audience::One(NetworkAddress([.., a, b, c, d, e, f])) => [a, b, c, d, e, f],
                };
                socket.send_frame(octets, (FrameKind { protocol: FRAMES, device: self.device }, to), stamper)
            }
        }
    }

    /// The messages whose stamps have not come.
    pub(crate) fn waiting(&mut self) -> &mut AwaitedStamps<PtpTicket> {
        &mut self.waiting
    }

    /// When the next stamp will have been waited for long enough.
    pub(crate) fn deadline(&self) -> Option<Moment<Mono>> {
        self.waiting.deadline()
    }

    /// A message whose stamp has been waited for long enough, with that of the kernel, or of user space, which is
    /// before it left.
    pub(crate) fn overdue(&mut self, now: Moment<Mono>) -> Option<(PtpTicket, BestStamp)> {
        let (sent, ticket) = self.waiting.overdue(now)?;
        Some((ticket, self.event.give_up_sent(&sent)))
    }
}

/// What is said where no card stamps.
pub(crate) const NO_CARD: &str = "the network card gives no stamps: those of the kernel serve";

fn packets(way: PtpWay) -> StampedPackets {
    match way {
        PtpWay::Udp(_) => StampedPackets::PtpOverUdp,
        PtpWay::Ethernet => StampedPackets::PtpInFrames,
    }
}

/// Who sent a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PtpSender {
    Host(IpAddr),
    /// The sender of a frame.
    Device(DeviceAddress),
}

impl PtpSender {
    pub(crate) fn of(received: &Received) -> Self {
        received.device.map_or(PtpSender::Host(received.from.ip()), PtpSender::Device)
    }

    /// As the protocol knows it.
    fn address(self) -> NetworkAddress {
        match self {
            PtpSender::Host(ip) => address_of(ip),
            PtpSender::Device([a, b, c, d, e, f]) => NetworkAddress([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d, e, f]),
        }
    }
}

/// How a message came, as the protocol knows it. A frame comes from the link in any case.
pub(crate) fn passage_of(received: &Received) -> Passage {
    let to = received.to.filter(|to| !to.is_multicast()).map(address_of);
    Passage { from: PtpSender::of(received).address(), to }
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

/// Why there is no socket of frames, and the remedy.
fn frames_explained(error: &io::Error, device: &str) -> String {
    let remedy = "packaging/systemd/ffclock-serve-ptp-ethernet.conf";
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("PTP over Ethernet on {device} takes the capability CAP_NET_RAW ({remedy} gives it): {error}")
        }
        _ => format!("PTP over Ethernet on {device}: {error} (in the shipped unit {remedy} permits its sockets)"),
    }
}

/// Why there is no socket at this port, and the remedy where there is one.
fn explained(error: &io::Error, (port, device): (u16, &str)) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("UDP port {port} on {device} takes the capability CAP_NET_BIND_SERVICE: {error}")
        }
        io::ErrorKind::AddrInUse => format!("another program keeps UDP port {port} to itself: {error}"),
        _ => format!("UDP port {port} on {device}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_is_named() {
        let text = explained(&io::ErrorKind::PermissionDenied.into(), (319, "eth0"));
        assert!(text.starts_with("UDP port 319 on eth0 takes the capability CAP_NET_BIND_SERVICE"), "{text}");
        let text = frames_explained(&io::ErrorKind::PermissionDenied.into(), "eth0");
        assert!(text.starts_with("PTP over Ethernet on eth0 takes the capability CAP_NET_RAW"), "{text}");
        for place in [PtpPlace::ipv4("nowhere9"), PtpPlace::ethernet("nowhere9")] {
            assert!(PtpSockets::open(&place, Some(DeviceSetup::Leave)).is_err_and(|error| error.contains("nowhere9")));
        }
    }

    #[test]
    fn a_message_to_a_group_is_to_no_address_of_ours() {
        use ffclock_units::{Counter, Stamp, StampLocation, Ticks};
        let user = Stamp { counter: Counter::from_raw(1), width: Ticks::ZERO, location: StampLocation::User };
        let passage = |to: &str| {
            let (from, to) = ("192.0.2.7:320".parse().unwrap(), Some(to.parse().unwrap()));
            let best = BestStamp { stamp: user, shortfall: None };
            passage_of(&Received {
                length: 1,
                is_truncated: false,
                from,
                to,
                device: None,
                user,
                kernel: Ok(user),
                best,
            })
        };
        let host = |ip: &str| address_of(ip.parse().unwrap());
        assert_eq!(passage("192.0.2.1"), Passage::to_us(host("192.0.2.7"), host("192.0.2.1")));
        for group in ["224.0.1.129", "ff0e::181"] {
            assert_eq!(passage(group), Passage::to_group(host("192.0.2.7")));
        }
    }

    #[test]
    fn a_place_has_its_name_and_its_groups() {
        assert_eq!(PtpPlace::ipv4("eth0").name(), "eth0/ipv4");
        let six = PtpPlace::ipv6("eth0", 5);
        assert_eq!(six.name(), "eth0/ipv6");
        assert!(matches!(six.way, PtpWay::Udp([everyone, _]) if everyone.to_string() == "ff05::181"));
        assert_eq!(PtpPlace::ethernet("eth0").name(), "eth0/ethernet");
    }
}
