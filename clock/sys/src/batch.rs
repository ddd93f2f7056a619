//! UDP packets by the batch, for a server: taken over with the kernel's receive stamps, answered in place, sent from
//! the address that they came to.

use crate::address::RawAddress;
use crate::cmsg;
use crate::ffi::{self, BATCH, BatchMemory, Outgoing, Taken};
use crate::kernel_stamps::{self, SendReport};
use std::env;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

/// The longest packet that is taken over whole.
const ROOM: usize = 2048;
/// Room for packets that wait, where the host permits it.
const WAITING_BYTES: libc::c_int = 1 << 20;
/// The first descriptor that a service manager hands over (sd_listen_fds(3)).
const FIRST_INHERITED: RawFd = 3;

/// A UDP socket whose packets the kernel stamps on arrival.
#[derive(Debug)]
pub struct ServedSocket {
    socket: UdpSocket,
}

impl ServedSocket {
    /// Binds to `address`, which other sockets of this user may share: each then gets a part of the clients.
    ///
    /// # Errors
    /// The address is taken, not ours, or its port is for programs with more rights.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let mut options = vec![(libc::SOL_SOCKET, libc::SO_REUSEPORT)];
        if address.is_ipv6() {
            options.push((libc::IPPROTO_IPV6, libc::IPV6_V6ONLY));
        }
        Self::of(ffi::bound_socket(&RawAddress::encode(address), &options)?)
    }

    /// Takes over a socket that is bound.
    ///
    /// # Errors
    /// It is no UDP socket, or the kernel does not stamp its packets.
    pub fn of(socket: OwnedFd) -> io::Result<Self> {
        let kind = ffi::option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TYPE)?;
        let socket = UdpSocket::from(socket);
        let address = socket.local_addr()?;
        if kind != libc::SOCK_DGRAM {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a UDP socket"));
        }
        let fd = socket.as_fd();
        ffi::set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        // The host may permit less.
        let _ = ffi::set_receive_buffer(fd, WAITING_BYTES);
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => ffi::set_option(fd, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?,
            IpAddr::V6(ip) if ip.is_unspecified() => {
                ffi::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?
            }
            _ => {}
        }
        socket.set_nonblocking(false)?;
        Ok(ServedSocket { socket })
    }

    /// Lets [`PacketBatch::receive`] return after this time without a packet.
    ///
    /// # Errors
    /// The time is zero.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.socket.set_read_timeout(Some(patience))
    }

    /// From now on the kernel can stamp replies when they leave, those of [`PacketBatch::answer_stamped`]. It numbers
    /// them from 0, again after each call.
    ///
    /// # Errors
    /// The kernel does not stamp what is sent.
    pub fn stamp_departures(&self) -> io::Result<()> {
        let fd = self.socket.as_fd();
        kernel_stamps::number_chosen_packets(fd)?;
        // One stamp of what is received is enough.
        ffi::set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 0)
    }

    /// The next stamp of a reply that has left: its number, and when it passed to the driver by the system clock, in ns
    /// since 1970. `None` while none has come.
    pub fn next_departure(&self) -> Option<(u32, Option<i64>)> {
        loop {
            if let SendReport::Sent { number, stamped, .. } = kernel_stamps::next_entry(self.socket.as_fd())? {
                let nanos = stamped.and_then(|left| i64::try_from(left.since_origin().as_nanos()).ok());
                return Some((number, nanos));
            }
        }
    }

    /// A second handle of the same socket.
    ///
    /// # Errors
    /// There is no descriptor to be had.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.socket.try_clone().map(|socket| ServedSocket { socket })
    }

    /// Our own address.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// How many packets the kernel has thrown away because its buffer was full, modulo 2^32.
    ///
    /// # Errors
    /// When the kernel does not say (before Linux 4.12).
    pub fn dropped(&self) -> io::Result<u32> {
        ffi::dropped_packets(self.socket.as_fd())
    }
}

impl AsFd for ServedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The sockets that a service manager hands over to this process (`LISTEN_PID`, `LISTEN_FDS`); none where there is no
/// manager. Called once, before anything else opens descriptors.
///
/// # Errors
/// The manager names descriptors that are not there.
pub fn inherited_sockets() -> io::Result<Vec<OwnedFd>> {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Ok(Vec::new());
    }
    let count = number("LISTEN_FDS").and_then(|count| RawFd::try_from(count).ok()).unwrap_or_default().min(64);
    ffi::inherited(FIRST_INHERITED, FIRST_INHERITED + count)
}

/// One packet of a batch.
#[derive(Clone, Copy, Debug)]
pub struct ArrivedPacket<'a> {
    /// Its bytes; of one that is longer than 2048 bytes, the beginning.
    pub bytes: &'a [u8],
    /// Whether it was longer.
    pub is_truncated: bool,
    /// Whether it came to a group of hosts, by multicast or broadcast. A socket of one address gets none of these.
    pub is_to_group: bool,
    /// Who sent it.
    pub from: SocketAddr,
    /// When the kernel saw it first, by the system clock: ns since 1970.
    pub stamped_ns: Option<i64>,
}

/// The outcomes of the replies of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentBatch {
    /// How many the kernel took.
    pub sent: usize,
    /// How many it refused.
    pub failed: usize,
}

/// Up to 64 packets, and the replies that take their places.
pub struct PacketBatch {
    memory: BatchMemory<ROOM>,
    taken: [Taken; BATCH],
    count: usize,
    outgoing: [Outgoing; BATCH],
    answers: usize,
}

impl Default for PacketBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl PacketBatch {
    /// How many packets there is room for.
    pub const CAPACITY: usize = BATCH;

    /// An empty batch. It allocates here and never again.
    pub fn new() -> Self {
        PacketBatch {
            memory: BatchMemory {
                packets: Box::new([[0; ROOM]; BATCH]),
                addresses: Box::new([RawAddress::empty(); BATCH]),
                controls: Box::new([ffi::BatchControl([0; 128]); BATCH]),
            },
            taken: [Taken::default(); BATCH],
            count: 0,
            outgoing: [Outgoing::default(); BATCH],
            answers: 0,
        }
    }

    /// Waits for packets and takes them over in place of those before; how many.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when none came in time, [`io::ErrorKind::Interrupted`] after a signal; any other
    /// error of the socket.
    pub fn receive(&mut self, socket: &ServedSocket) -> io::Result<usize> {
        (self.count, self.answers) = (0, 0);
        self.count = ffi::receive_batch(socket.as_fd(), &mut self.memory, &mut self.taken)?;
        Ok(self.count)
    }

    /// The packet at `place`; `None` where there is none, or its sender is of no known family.
    pub fn packet(&self, place: usize) -> Option<ArrivedPacket<'_>> {
        let taken = self.taken.get(..self.count)?.get(place)?;
        let from = self.memory.addresses[place].decode()?;
        let bytes = self.memory.packets[place].get(..taken.length.min(ROOM))?;
        let is_truncated = taken.flags & libc::MSG_TRUNC != 0;
        let is_to_group = cmsg::came_to_group(self.control(place));
        Some(ArrivedPacket { bytes, is_truncated, is_to_group, from, stamped_ns: self.stamp(place) })
    }

    fn control(&self, place: usize) -> &[u8] {
        let length = self.taken[place].control_length;
        self.memory.controls[place].0.get(..length).unwrap_or_default()
    }

    fn stamp(&self, place: usize) -> Option<i64> {
        cmsg::served_stamp(self.control(place))
    }

    /// Sends `reply` to the sender of the packet at `place` with the batch, from the address that the packet came to.
    /// Only once for each packet; never more bytes than the packet had.
    pub fn answer(&mut self, place: usize, reply: &[u8]) {
        let is_fine = place < self.count && self.answers < BATCH && reply.len() <= self.taken[place].length.min(ROOM);
        debug_assert!(is_fine, "a reply belongs to a packet and is not longer");
        if !is_fine {
            return;
        }
        let length = self.taken[place].control_length;
        let controls = self.memory.controls[place].0.get_mut(..length).unwrap_or_default();
        let control = cmsg::own_address(controls);
        self.memory.packets[place][..reply.len()].copy_from_slice(reply);
        self.outgoing[self.answers] = Outgoing { place, length: reply.len(), control };
        self.answers += 1;
    }

    /// As [`PacketBatch::answer`], and the kernel is asked for a stamp when the reply leaves. Returns whether it could
    /// be asked.
    pub fn answer_stamped(&mut self, place: usize, reply: &[u8]) -> bool {
        let before = self.answers;
        self.answer(place, reply);
        let Some(outgoing) = self.outgoing.get_mut(before).filter(|_| self.answers > before) else { return false };
        let asked = cmsg::ask_for_departure(&mut self.memory.controls[place].0, outgoing.control);
        outgoing.control = asked.unwrap_or(outgoing.control);
        asked.is_some()
    }

    /// Sends the replies. One that the kernel refuses does not keep back those after it.
    pub fn send(&mut self, socket: &ServedSocket) -> SentBatch {
        let mut result = SentBatch::default();
        let mut begin = 0;
        while begin < self.answers {
            let rest = &self.outgoing[begin..self.answers];
            match ffi::send_batch(socket.as_fd(), &mut self.memory, rest) {
                Ok(sent) if sent > 0 => (begin, result.sent) = (begin + sent, result.sent + sent),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => (begin, result.failed) = (begin + 1, result.failed + 1),
            }
        }
        self.answers = 0;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(address: &str) -> (ServedSocket, UdpSocket) {
        let server = ServedSocket::bind(address.parse().unwrap()).unwrap();
        server.set_patience(Duration::from_secs(5)).unwrap();
        let port = server.local_address().unwrap().port();
        let to = if address.starts_with('[') { format!("[::1]:{port}") } else { format!("127.0.0.1:{port}") };
        let client = UdpSocket::bind(if address.starts_with('[') { "[::1]:0" } else { "127.0.0.1:0" }).unwrap();
        client.connect(to).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        (server, client)
    }

    #[test]
    fn every_packet_of_a_batch_gets_its_own_reply_from_the_address_it_was_sent_to() {
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            let (server, client) = pair(address);
            let mut batch = PacketBatch::new();
            for number in 0..5_u8 {
                client.send(&[number; 60]).unwrap();
            }
            let mut answered = 0;
            while answered < 5 {
                let count = batch.receive(&server).unwrap();
                for place in 0..count {
                    let packet = batch.packet(place).unwrap();
                    assert_eq!(packet.from, client.local_addr().unwrap());
                    assert!(packet.stamped_ns.is_some_and(|ns| ns > 1_500_000_000_000_000_000), "{address}");
                    let first = packet.bytes[0];
                    batch.answer(place, &[first; 48]);
                }
                assert_eq!(batch.send(&server), SentBatch { sent: count, failed: 0 });
                answered += count;
            }
            for number in 0..5_u8 {
                let mut reply = [0; 100];
                // The client is connected: from another address the reply would not arrive.
                assert_eq!(client.recv(&mut reply).unwrap(), 48, "{address}");
                assert_eq!(reply[47], number);
            }
        }
    }

    #[test]
    fn a_reply_is_stamped_when_it_leaves_if_that_is_wanted() {
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            let (server, client) = pair(address);
            server.stamp_departures().unwrap();
            let mut batch = PacketBatch::new();
            for (round, numbers) in [(0_u32, [0, 1]), (1, [2, 3])] {
                (0..3).for_each(|_| assert_eq!(client.send(&[7; 48]).unwrap(), 48));
                let mut last = None;
                let mut done = 0;
                while done < 3 {
                    let count = batch.receive(&server).unwrap();
                    for place in 0..count {
                        last = batch.packet(place).unwrap().stamped_ns;
                        // The middle one of each round is sent without a stamp.
                        if done + place == 1 {
                            batch.answer(place, &[1; 48]);
                        } else {
                            assert!(batch.answer_stamped(place, &[1; 48]));
                        }
                    }
                    done += count;
                    assert_eq!(batch.send(&server), SentBatch { sent: count, failed: 0 });
                }
                let mut reply = [0; 100];
                (0..3).for_each(|_| assert_eq!(client.recv(&mut reply).unwrap(), 48, "{address}"));
                let left: Vec<(u32, Option<i64>)> = std::iter::from_fn(|| server.next_departure()).collect();
                assert_eq!(left.iter().map(|one| one.0).collect::<Vec<_>>(), numbers, "{address} {round}");
                // The kernel begins to stamp what it receives a little after it was asked to.
                let delay = left[1].1.unwrap() - last.unwrap_or(left[0].1.unwrap());
                assert!((0..1_000_000_000).contains(&delay), "it left {delay} ns after the last request came");
            }
            server.stamp_departures().unwrap();
            client.send(&[7; 48]).unwrap();
            assert_eq!(batch.receive(&server).unwrap(), 1);
            assert!(batch.answer_stamped(0, &[1; 48]));
            batch.send(&server);
            assert_eq!(server.next_departure().map(|one| one.0), Some(0), "they are counted from 0 again");
        }
    }

    #[test]
    fn a_packet_to_all_hosts_is_known() {
        let (server, client) = pair("0.0.0.0:0");
        let port = server.local_address().unwrap().port();
        let everyone = UdpSocket::bind("127.0.0.1:0").unwrap();
        everyone.set_broadcast(true).unwrap();
        everyone.send_to(&[7; 48], ("127.255.255.255", port)).unwrap();
        client.send(&[8; 48]).unwrap();
        let (mut batch, mut found) = (PacketBatch::new(), Vec::new());
        while found.len() < 2 {
            let count = batch.receive(&server).unwrap();
            let packets = (0..count).map(|place| batch.packet(place).unwrap());
            found.extend(packets.map(|packet| (packet.bytes[0], packet.is_to_group)));
        }
        assert_eq!(found, [(7, true), (8, false)]);
    }

    #[test]
    fn without_packets_the_wait_ends() {
        let (server, _client) = pair("127.0.0.1:0");
        server.set_patience(Duration::from_millis(5)).unwrap();
        assert_eq!(PacketBatch::new().receive(&server).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
