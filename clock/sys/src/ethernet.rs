//! Sockets for frames of Ethernet without IP, as PTP uses them (IEEE 1588-2019, annex E), stamped as UDP's are.
//!
//! A socket hears the frames of one protocol (EtherType) on one device: those to this host, to all and to the groups
//! that it joined; never those that this host sends. The kernel makes and takes away the header of a frame, so no
//! parser of ours stands before that of the protocol. Short frames come with the padding that Ethernet adds. Linux
//! alone has these sockets, and they take the capability CAP_NET_RAW.

#[cfg(target_os = "linux")]
use crate::address::RawAddress;
#[cfg(target_os = "linux")]
use crate::ffi;
use crate::{Sent, StampMode, StampedSocket, Stamper};
use std::io;

/// The address of a network device.
pub type DeviceAddress = [u8; 6];

/// The frames of one protocol on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameKind {
    /// The protocol: the EtherType.
    pub protocol: u16,
    /// The number of the device.
    pub device: u32,
}

#[cfg(not(target_os = "linux"))]
impl StampedSocket {
    /// There are no such sockets here.
    ///
    /// # Errors
    /// Always.
    pub fn of_frames(_: FrameKind, _: &[DeviceAddress], _: StampMode) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// There are no such sockets here.
    ///
    /// # Errors
    /// Always.
    pub fn send_frame(&mut self, _: &[u8], _: (FrameKind, DeviceAddress), _: &mut Stamper) -> io::Result<Sent> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(target_os = "linux")]
impl StampedSocket {
    /// A socket that hears the frames of this kind that are addressed to the device or to one of `groups`.
    ///
    /// # Errors
    /// The capability CAP_NET_RAW is missing, or there is no such device.
    pub fn of_frames(kind: FrameKind, groups: &[DeviceAddress], mode: StampMode) -> io::Result<Self> {
        let number = libc::c_int::try_from(kind.device).map_err(|_| io::ErrorKind::InvalidInput)?;
        let socket = ffi::bound_socket(&RawAddress::encode_frames(kind, [0; 6]), &[])?;
        for group in groups {
            ffi::join_device_group(std::os::fd::AsFd::as_fd(&socket), (*group, number))?;
        }
        Self::of(socket.into(), None, mode)
    }

    /// Sends what a frame of this kind carries to a device or to a group.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_frame(
        &mut self,
        bytes: &[u8],
        (kind, to): (FrameKind, DeviceAddress),
        stamper: &mut Stamper,
    ) -> io::Result<Sent> {
        self.hand_over(bytes, (Some(&RawAddress::encode_frames(kind, to)), &[]), stamper)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::{SocketEvent, device_index};
    use ffclock_counter::CounterId;
    use ffclock_units::Period;
    use std::time::Duration;

    /// IEEE Std 802: for experiments.
    const EXPERIMENTAL: u16 = 0x88b5;

    #[test]
    fn frames_are_heard_and_stamped_on_the_way_out() {
        let kind = FrameKind { protocol: EXPERIMENTAL, device: device_index("lo").unwrap() };
        let mut stamper = Stamper::new(CounterId::MonotonicRaw, Period::from_hertz(1e9).unwrap());
        let group = [1, 0x80, 0xc2, 0, 0, 0x0e];
        let opened = StampedSocket::of_frames(kind, &[group], StampMode::Kernel);
        let mut socket = match opened {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                println!("SKIP: no frames without CAP_NET_RAW: {error}");
                return;
            }
            opened => opened.unwrap(),
        };
        assert_eq!(socket.mode(), StampMode::Kernel);
        let sent = socket.send_frame(&[7; 44], (kind, [0; 6]), &mut stamper).unwrap();
        let (mut lengths, mut stamps, mut buffer) = (Vec::new(), Vec::new(), [0; 64]);
        for _ in 0..200 {
            match socket.next_event(&mut buffer, &mut stamper).unwrap() {
                Some(SocketEvent::Received(received)) => lengths.push((received.length, received.device)),
                Some(SocketEvent::Transmitted(transmitted)) => stamps.push(transmitted),
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        assert_eq!(lengths, [(44, Some([0; 6]))], "what comes back on the loopback device comes from its address");
        let [transmitted] = stamps[..] else { panic!("{stamps:?}") };
        assert_eq!(transmitted.id, sent.id);
        assert!(transmitted.stamp.is_ok(), "{transmitted:?}");
        let nowhere = FrameKind { device: 0x7fff_fff0, ..kind };
        assert!(StampedSocket::of_frames(nowhere, &[], StampMode::User).is_err());
    }
}
