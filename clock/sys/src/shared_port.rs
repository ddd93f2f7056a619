//! Sockets at ports that are fixed by a protocol, as those of PTP are (319 and 320), and that several sockets of this
//! host have: for each of them the kernel picks out what is its own.
//!
//! A socket in a group hears that group on its own device alone; a socket towards a host hears that host alone. Neither
//! hears what another socket of this host sends. Linux alone has all that this takes. A packet received is never taken
//! for the answer to one sent: messages of such protocols come unasked.

#[cfg(target_os = "linux")]
use crate::address::RawAddress;
#[cfg(target_os = "linux")]
use crate::cmsg;
#[cfg(target_os = "linux")]
use crate::ffi;
use crate::{Sent, StampMode, StampedSocket, Stamper};
use std::io;
use std::net::SocketAddr;
#[cfg(target_os = "linux")]
use std::net::{IpAddr, SocketAddrV6, UdpSocket};
#[cfg(target_os = "linux")]
use std::os::fd::AsFd;

/// `IPV6_MULTICAST_ALL` of linux/in6.h.
#[cfg(target_os = "linux")]
const IPV6_MULTICAST_ALL: libc::c_int = 29;

/// `SO_BINDTOIFINDEX` of asm-generic/socket.h (Linux 5.0).
#[cfg(target_os = "linux")]
const SO_BINDTOIFINDEX: libc::c_int = 62;

#[cfg(not(target_os = "linux"))]
impl StampedSocket {
    /// There are no such sockets here.
    ///
    /// # Errors
    /// Always.
    pub fn in_group(_: SocketAddr, _: u32, _: StampMode) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// There are no such sockets here.
    ///
    /// # Errors
    /// Always.
    pub fn on_device(_: (u16, u32), _: &[std::net::IpAddr], _: StampMode) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// There are no such sockets here.
    ///
    /// # Errors
    /// Always.
    pub fn towards(_: SocketAddr, _: StampMode) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// There are no such sockets here.
    ///
    /// # Errors
    /// Always.
    pub fn send_between(&mut self, _: &[u8], _: (std::net::IpAddr, SocketAddr), _: &mut Stamper) -> io::Result<Sent> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(target_os = "linux")]
impl StampedSocket {
    /// A socket that hears this group and port on the device of this number, and sends to it there
    /// ([`send_to`](Self::send_to)), at most to the next router.
    ///
    /// # Errors
    /// The port is for programs with more rights, or another program keeps it to itself; there is no such device, or
    /// it knows no groups.
    pub fn in_group(group: SocketAddr, device: u32, mode: StampMode) -> io::Result<Self> {
        let number = libc::c_int::try_from(device).map_err(|_| io::ErrorKind::InvalidInput)?;
        // Groups of a narrow scope are bound to with the device that they are on.
        let at = match group {
            SocketAddr::V4(_) => group,
            SocketAddr::V6(group) => SocketAddrV6::new(*group.ip(), group.port(), 0, device).into(),
        };
        let socket = shared(at)?;
        speak_on(&socket, group.ip(), number)?;
        join(&socket, group.ip(), number)?;
        if group.is_ipv4() {
            return Self::of(socket, None, mode);
        }
        // Of IPv6 the kernel hands over what came to the group on any device on which some socket joined it.
        state_destinations(&socket, group.ip())?;
        Ok(Self::of(socket, None, mode)?.on_device_alone(device))
    }

    /// A socket that hears all that comes to this port on the device of this number, addressed to it or to one of the
    /// groups, and sends there alone ([`send_to`](Self::send_to)), to groups at most to the next router. All groups are
    /// of one family, which is that of the socket.
    ///
    /// # Errors
    /// As [`in_group`](Self::in_group); or no group is named, or the kernel is older than Linux 5.7 and the right
    /// CAP_NET_RAW is missing.
    pub fn on_device((port, device): (u16, u32), groups: &[IpAddr], mode: StampMode) -> io::Result<Self> {
        let number = libc::c_int::try_from(device).map_err(|_| io::ErrorKind::InvalidInput)?;
        let first = groups.first().ok_or(io::ErrorKind::InvalidInput)?;
        let any: IpAddr = match first {
            IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = shared(SocketAddr::new(any, port))?;
        ffi::set_option(socket.as_fd(), libc::SOL_SOCKET, SO_BINDTOIFINDEX, number)?;
        speak_on(&socket, *first, number)?;
        for group in groups {
            join(&socket, *group, number)?;
        }
        state_destinations(&socket, *first)?;
        Self::of(socket, None, mode)
    }

    /// Sends a packet from one of our addresses, such as the one that a request came to
    /// ([`Received::to`](crate::Received::to)).
    ///
    /// # Errors
    /// As [`send`](Self::send); or the address is not ours.
    pub fn send_between(
        &mut self,
        bytes: &[u8],
        (from, to): (IpAddr, SocketAddr),
        stamper: &mut Stamper,
    ) -> io::Result<Sent> {
        let (control, length) = cmsg::leave_from(from);
        let control = control.get(..length).unwrap_or_default();
        self.hand_over(bytes, (Some(&RawAddress::encode(to)), control), stamper)
    }

    /// A socket that talks to `peer` alone ([`send`](Self::send)), from the port that the peer has too.
    ///
    /// # Errors
    /// The port is for programs with more rights, or another program keeps it to itself; there is no way to the peer.
    pub fn towards(peer: SocketAddr, mode: StampMode) -> io::Result<Self> {
        let any: IpAddr = match peer {
            SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = shared(SocketAddr::new(any, peer.port()))?;
        socket.connect(peer)?;
        Self::of(socket, None, mode)
    }
}

/// Packets to groups of this family leave by this device, and none comes back to this host.
#[cfg(target_os = "linux")]
fn speak_on(socket: &UdpSocket, family: IpAddr, number: libc::c_int) -> io::Result<()> {
    let fd = socket.as_fd();
    let set = |level, name, value| ffi::set_option(fd, level, name, value);
    match family {
        IpAddr::V4(ip) => {
            ffi::set_group_option(fd, libc::IP_MULTICAST_IF, (ip, number))?;
            set(libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP, 0)?;
            set(libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0)
        }
        IpAddr::V6(_) => {
            set(libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_IF, number)?;
            set(libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_LOOP, 0)?;
            set(libc::IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0)
        }
    }
}

/// With each packet comes the address that it was sent to.
#[cfg(target_os = "linux")]
fn state_destinations(socket: &UdpSocket, family: IpAddr) -> io::Result<()> {
    match family {
        IpAddr::V4(_) => ffi::set_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_PKTINFO, 1),
        IpAddr::V6(_) => ffi::set_option(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1),
    }
}

/// The socket hears this group on this device.
#[cfg(target_os = "linux")]
fn join(socket: &UdpSocket, group: IpAddr, number: libc::c_int) -> io::Result<()> {
    match group {
        IpAddr::V4(ip) => ffi::set_group_option(socket.as_fd(), libc::IP_ADD_MEMBERSHIP, (ip, number)),
        IpAddr::V6(ip) => socket.join_multicast_v6(&ip, number.cast_unsigned()),
    }
}

/// A socket at an address that others may have too.
#[cfg(target_os = "linux")]
fn shared(address: SocketAddr) -> io::Result<UdpSocket> {
    let mut options = vec![(libc::SOL_SOCKET, libc::SO_REUSEADDR)];
    if address.is_ipv6() {
        options.push((libc::IPPROTO_IPV6, libc::IPV6_V6ONLY));
    }
    ffi::bound_socket(&RawAddress::encode(address), &options).map(UdpSocket::from)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::{SocketEvent, Stamper, device_index};
    use ffclock_counter::CounterId;
    use ffclock_units::Period;
    use std::time::Duration;

    fn stamper() -> Stamper {
        Stamper::new(CounterId::MonotonicRaw, Period::from_hertz(1e9).unwrap())
    }

    /// The lengths of the packets that come within a while.
    fn heard(socket: &mut StampedSocket, stamper: &mut Stamper) -> Vec<usize> {
        let mut lengths = Vec::new();
        let mut buffer = [0; 64];
        for _ in 0..50 {
            while let Some(event) = socket.next_event(&mut buffer, stamper).unwrap() {
                if let SocketEvent::Received(received) = event {
                    lengths.push(received.length);
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        lengths
    }

    fn port() -> u16 {
        UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    #[test]
    fn a_group_is_heard_by_all_who_joined_it_and_by_no_one_else() {
        let (lo, mut stamper) = (device_index("lo").unwrap(), stamper());
        let has_ipv6 = UdpSocket::bind("[::1]:0").is_ok();
        let groups = [("239.255.81.81", "239.255.81.82"), ("ff11::8181", "ff11::8182"), ("ff12::8181", "ff12::8182")];
        for (group, other) in groups {
            let at = port();
            let [group, other]: [SocketAddr; 2] = [group, other].map(|ip| SocketAddr::new(ip.parse().unwrap(), at));
            if group.is_ipv6() && !has_ipv6 {
                println!("SKIP: this host has no IPv6, so no group {group}");
                continue;
            }
            let mut one = StampedSocket::in_group(group, lo, StampMode::Kernel).unwrap();
            let mut two = StampedSocket::in_group(group, lo, StampMode::Kernel).unwrap();
            let mut apart = StampedSocket::in_group(other, lo, StampMode::Kernel).unwrap();
            // On the loopback device everything comes back, so one socket can speak to the others.
            match one.send_to(&[1; 5], group, &mut stamper) {
                Err(error) if group.is_ipv6() && error.kind() == io::ErrorKind::NetworkUnreachable => {
                    println!(
                        "SKIP: the loopback device has no route to IPv6 groups: {group} was joined, and not heard"
                    );
                    continue;
                }
                sent => drop(sent.unwrap()),
            }
            assert_eq!(heard(&mut two, &mut stamper), [5], "{group}");
            assert_eq!(heard(&mut apart, &mut stamper), [0; 0], "{group}");
            two.send_to(&[1; 6], other, &mut stamper).unwrap();
            assert_eq!(heard(&mut apart, &mut stamper), [6], "{group}");
        }
    }

    #[test]
    fn a_socket_on_a_device_hears_its_groups_and_what_is_addressed_to_it() {
        let (lo, mut stamper, at) = (device_index("lo").unwrap(), stamper(), port());
        let groups: [IpAddr; 2] = ["239.255.81.83", "239.255.81.84"].map(|group| group.parse().unwrap());
        let mut served = StampedSocket::on_device((at, lo), &groups, StampMode::Kernel).unwrap();
        let mut speaker = StampedSocket::in_group(SocketAddr::new(groups[0], at), lo, StampMode::User).unwrap();
        let own = SocketAddr::new("127.0.0.1".parse().unwrap(), at);
        let [first, second] = groups.map(|group| SocketAddr::new(group, at));
        for (to, length) in
            [(first, 3), (second, 4), ("239.255.81.85".parse().map(|ip| SocketAddr::new(ip, at)).unwrap(), 5)]
        {
            speaker.send_to(&vec![0; length], to, &mut stamper).unwrap();
        }
        let by_unicast = UdpSocket::bind("127.0.0.1:0").unwrap();
        by_unicast.send_to(&[0; 6], own).unwrap();
        assert_eq!(heard(&mut served, &mut stamper), [3, 4, 6]);
        let next_heard = |served: &mut StampedSocket, stamper: &mut Stamper| {
            for _ in 0..5000 {
                if let Some(SocketEvent::Received(received)) = served.next_event(&mut [0; 64], stamper).unwrap() {
                    return (received.to.unwrap(), received.from);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            panic!("nothing is heard");
        };
        speaker.send_to(&[0; 3], first, &mut stamper).unwrap();
        assert_eq!(next_heard(&mut served, &mut stamper).0, groups[0]);
        let host: IpAddr = "127.0.81.7".parse().unwrap();
        by_unicast.send_to(&[0; 6], SocketAddr::new(host, at)).unwrap();
        let (asked, client) = next_heard(&mut served, &mut stamper);
        assert_eq!(asked, host);
        // From where it was asked, and from nowhere else: the client is connected to that.
        by_unicast.connect(SocketAddr::new(host, at)).unwrap();
        by_unicast.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        served.send_to(&[0; 4], client, &mut stamper).unwrap();
        served.send_between(&[0; 9], (asked, client), &mut stamper).unwrap();
        assert_eq!(by_unicast.recv(&mut [0; 20]).unwrap(), 9);
        assert!(served.send_between(&[0; 9], ("192.0.2.1".parse().unwrap(), client), &mut stamper).is_err());
        assert!(StampedSocket::on_device((at, lo), &[], StampMode::User).is_err());
    }

    #[test]
    fn two_sockets_at_one_port_hear_each_its_own_peer() {
        let mut stamper = stamper();
        let at = port();
        let [one, two] = ["127.0.81.1", "127.0.81.2"].map(|ip| SocketAddr::new(ip.parse().unwrap(), at));
        let [mut to_one, mut to_two] = [one, two].map(|peer| StampedSocket::towards(peer, StampMode::User).unwrap());
        for (peer, length) in [(one, 3), (two, 4)] {
            let speaker = UdpSocket::from(
                ffi::bound_socket(&RawAddress::encode(peer), &[(libc::SOL_SOCKET, libc::SO_REUSEADDR)]).unwrap(),
            );
            let to = if peer == one { &to_one } else { &to_two };
            speaker.send_to(&vec![0; length], to.local_address().unwrap()).unwrap();
        }
        assert_eq!(heard(&mut to_one, &mut stamper), [3]);
        assert_eq!(heard(&mut to_two, &mut stamper), [4]);
    }

    #[test]
    fn a_stamp_that_does_not_come_is_replaced_by_that_of_user_space() {
        let mut stamper = stamper();
        let peer = SocketAddr::new("127.0.81.3".parse().unwrap(), port());
        let mut socket = StampedSocket::towards(peer, StampMode::Kernel).unwrap();
        let sent = socket.send(&[0; 44], &mut stamper).unwrap();
        assert_eq!(sent.best, None, "the kernel's is waited for");
        let best = socket.give_up_sent(&sent);
        assert_eq!((best.stamp, best.shortfall), (sent.user, Some(crate::StampDiscarded::Missing)));
        // The kernel's stamp, which is there by now, belongs to no packet any more.
        let mut buffer = [0; 64];
        while let Some(event) = socket.next_event(&mut buffer, &mut stamper).unwrap() {
            assert!(!matches!(event, SocketEvent::Transmitted(_)), "{event:?}");
        }
    }
}
