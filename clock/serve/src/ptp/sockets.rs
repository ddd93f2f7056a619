//! The two sockets of a port of the grandmaster, and the messages whose stamps have not come.

use ffclock_ptp::{Audience, Channel, NetworkAddress, PtpTicket, PtpTransmit};
use ffclock_sys::{AwaitedStamps, BestStamp, SocketEvent, StampMode, StampedSocket, Stamper, device_index};
use ffclock_units::{Moment, Mono};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd};

/// The ports of event and of general messages (IEEE 1588-2019, annexes C and D).
const PORTS: [u16; 2] = [319, 320];
/// The most messages that wait for a stamp.
const MOST_WAITING: usize = 256;
/// Room for messages that wait to be taken over, where the host permits it.
const WAITING_BYTES: usize = 1 << 20;

/// Where a port of the grandmaster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PtpPlace {
    pub(crate) device: String,
    /// The groups of all clocks and of the neighbour.
    pub(crate) groups: [IpAddr; 2],
}

impl PtpPlace {
    pub(crate) fn ipv4(device: &str) -> Self {
        let groups = [Ipv4Addr::new(224, 0, 1, 129), Ipv4Addr::new(224, 0, 0, 107)].map(IpAddr::V4);
        PtpPlace { device: device.to_owned(), groups }
    }

    /// With the group of all clocks in this scope.
    pub(crate) fn ipv6(device: &str, scope: u16) -> Self {
        let everyone = Ipv6Addr::new(0xff00 | scope & 15, 0, 0, 0, 0, 0, 0, 0x181);
        let neighbour = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x6b);
        PtpPlace { device: device.to_owned(), groups: [everyone, neighbour].map(IpAddr::V6) }
    }

    /// As status and metrics name it.
    pub(crate) fn name(&self) -> String {
        let family = if self.groups[0].is_ipv4() { "ipv4" } else { "ipv6" };
        format!("{}/{family}", self.device)
    }
}

/// Both sockets, open.
pub(crate) struct PtpSockets {
    event: StampedSocket,
    general: StampedSocket,
    device: u32,
    groups: [IpAddr; 2],
    waiting: AwaitedStamps<PtpTicket>,
}

impl PtpSockets {
    /// # Errors
    /// They cannot be had; the text says why and names the remedy.
    pub(crate) fn open(place: &PtpPlace) -> Result<Self, String> {
        let name = &place.device;
        let device = device_index(name).ok_or_else(|| format!("there is no network device {name}"))?;
        let opened = |port, mode| {
            let socket = StampedSocket::on_device((port, device), &place.groups, mode);
            socket.map_err(|error| explained(&error, (port, name)))
        };
        let event = opened(PORTS[0], StampMode::Kernel)?;
        // When these pass is of no importance.
        let general = opened(PORTS[1], StampMode::User)?;
        // The host may permit less.
        let _ = event.enlarge_receive_buffer(WAITING_BYTES);
        Ok(PtpSockets { event, general, device, groups: place.groups, waiting: AwaitedStamps::new(MOST_WAITING) })
    }

    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.event.as_fd(), self.general.as_fd()]
    }

    /// How many messages the kernel threw away because a socket was full.
    pub(crate) fn dropped(&self) -> u64 {
        [&self.event, &self.general].into_iter().filter_map(|socket| socket.dropped().ok()).map(u64::from).sum()
    }

    /// # Errors
    /// The socket itself fails.
    pub(crate) fn next_event(
        &mut self,
        channel: Channel,
        (buffer, stamper): (&mut [u8], &mut Stamper),
    ) -> io::Result<Option<SocketEvent>> {
        match channel {
            Channel::Event => self.event.next_event(buffer, stamper),
            Channel::General => self.general.next_event(buffer, stamper),
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
        let (socket, port) = match transmit.channel {
            Channel::Event => (&mut self.event, PORTS[0]),
            Channel::General => (&mut self.general, PORTS[1]),
        };
        let to = match transmit.audience {
            Audience::Everyone => SocketAddr::new(self.groups[0], port),
            Audience::Neighbour => SocketAddr::new(self.groups[1], port),
            Audience::One(NetworkAddress(octets)) => match Ipv6Addr::from(octets).to_canonical() {
                IpAddr::V6(ip) if ip.is_unicast_link_local() => SocketAddrV6::new(ip, port, 0, self.device).into(),
                ip => SocketAddr::new(ip, port),
            },
        };
        let sent = socket.send_to(transmit.octets.as_slice(), to, stamper)?;
        let Some(ticket) = transmit.ticket else { return Ok(None) };
        if let Some(best) = sent.best {
            return Ok(Some((ticket, best)));
        }
        self.waiting.push((sent, ticket), now);
        Ok(None)
    }

    /// The messages whose stamps have not come.
    pub(crate) fn waiting(&mut self) -> &mut AwaitedStamps<PtpTicket> {
        &mut self.waiting
    }

    /// When the next stamp will have been waited for long enough.
    pub(crate) fn deadline(&self) -> Option<Moment<Mono>> {
        self.waiting.deadline()
    }

    /// A message whose stamp has been waited for long enough, with the stamp of user space, which is before it left.
    pub(crate) fn overdue(&mut self, now: Moment<Mono>) -> Option<(PtpTicket, BestStamp)> {
        let (sent, ticket) = self.waiting.overdue(now)?;
        Some((ticket, self.event.give_up_sent(&sent)))
    }
}

/// The address of a host as the protocol knows it.
pub(crate) fn network_address(ip: IpAddr) -> NetworkAddress {
    match ip {
        IpAddr::V4(ip) => NetworkAddress(ip.to_ipv6_mapped().octets()),
        IpAddr::V6(ip) => NetworkAddress(ip.octets()),
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
        assert!(PtpSockets::open(&PtpPlace::ipv4("nowhere9")).is_err_and(|error| error.contains("nowhere9")));
    }

    #[test]
    fn a_place_has_its_name_and_its_groups() {
        assert_eq!(PtpPlace::ipv4("eth0").name(), "eth0/ipv4");
        let six = PtpPlace::ipv6("eth0", 5);
        assert_eq!((six.name().as_str(), six.groups[0]), ("eth0/ipv6", "ff05::181".parse().unwrap()));
    }
}
