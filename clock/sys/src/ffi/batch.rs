//! Many packets in one call: recvmmsg(2) and sendmmsg(2).

use crate::address::RawAddress;
use core::mem::MaybeUninit;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// How many packets a batch has room for. Beyond 64 nothing is gained.
pub(crate) const BATCH: usize = 64;

/// Room for the control messages of a packet that is served: a stamp (three times, 64 bytes with its head) and our own
/// address.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct BatchControl(pub(crate) [u8; 128]);

/// Where the packets of a batch lie. Replies take the place of the requests.
pub(crate) struct BatchMemory<const ROOM: usize> {
    pub(crate) packets: Box<[[u8; ROOM]; BATCH]>,
    pub(crate) addresses: Box<[RawAddress; BATCH]>,
    pub(crate) controls: Box<[BatchControl; BATCH]>,
}

/// What the kernel said about one packet.
#[derive(Clone, Copy, Default)]
pub(crate) struct Taken {
    pub(crate) length: usize,
    pub(crate) flags: libc::c_int,
    pub(crate) control_length: usize,
}

/// One packet to send: to the address at `place`, from its memory.
#[derive(Clone, Copy, Default)]
pub(crate) struct Outgoing {
    pub(crate) place: usize,
    pub(crate) length: usize,
    /// Where the control message begins that names our address, and how long it is; 0 for none.
    pub(crate) control: (usize, usize),
}

/// Waits for a packet and takes over all that are there. How many.
pub(crate) fn receive_batch<const ROOM: usize>(
    fd: BorrowedFd<'_>,
    memory: &mut BatchMemory<ROOM>,
    taken: &mut [Taken; BATCH],
) -> io::Result<usize> {
    // SAFETY: an iovec and a mmsghdr are made of integers and pointers, for which zero is a value.
    let (mut parts, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) = unsafe { core::mem::zeroed() };
    let places = memory.packets.iter_mut().zip(memory.addresses.iter_mut()).zip(memory.controls.iter_mut());
    for (((packet, address), control), (part, header)) in places.zip(parts.iter_mut().zip(headers.iter_mut())) {
        part.iov_base = packet.as_mut_ptr().cast();
        part.iov_len = ROOM;
        let header = &mut header.msg_hdr;
        header.msg_name = address.as_mut_ptr().cast();
        header.msg_namelen = RawAddress::CAPACITY as libc::socklen_t;
        header.msg_iov = part;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = control.0.len() as _;
    }
    // The flags are signed in one C library and unsigned in another.
    let (count, flags) = (BATCH as libc::c_uint, libc::MSG_WAITFORONE as _);
    // SAFETY: every pointer in the headers points to memory of the stated size that outlives the call and that nothing
    // else uses; there are `count` headers.
    let received = unsafe { libc::recvmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), count, flags, core::ptr::null_mut()) };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    for ((header, taken), address) in
        headers.iter().zip(taken.iter_mut()).zip(memory.addresses.iter_mut()).take(received)
    {
        address.set_length(header.msg_hdr.msg_namelen as usize);
        *taken = Taken {
            length: header.msg_len as usize,
            flags: header.msg_hdr.msg_flags,
            control_length: header.msg_hdr.msg_controllen as _,
        };
    }
    Ok(received)
}

/// Sends packets in their order, without waiting, and says how many the kernel took. An error is about the first.
pub(crate) fn send_batch<const ROOM: usize>(
    fd: BorrowedFd<'_>,
    memory: &mut BatchMemory<ROOM>,
    outgoing: &[Outgoing],
) -> io::Result<usize> {
    // Only what is used is written: a server that slept would fetch 5 kB between the time of leaving and the leaving.
    let mut parts = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH];
    let mut count = 0;
    for (packet, (part, header)) in outgoing.iter().zip(parts.iter_mut().zip(headers.iter_mut())) {
        // SAFETY: an iovec and a mmsghdr are made of integers and pointers, for which zero is a value.
        let (part, header) = unsafe { (part.write(core::mem::zeroed()), header.write(core::mem::zeroed())) };
        let (begin, length) = packet.control;
        let bytes = memory.packets[packet.place].get_mut(..packet.length).ok_or(io::ErrorKind::InvalidInput)?;
        let control =
            memory.controls[packet.place].0.get_mut(begin..begin + length).ok_or(io::ErrorKind::InvalidInput)?;
        part.iov_base = bytes.as_mut_ptr().cast();
        part.iov_len = bytes.len();
        let address = &mut memory.addresses[packet.place];
        let header = &mut header.msg_hdr;
        header.msg_name = address.as_mut_ptr().cast();
        header.msg_namelen = address.length() as libc::socklen_t;
        header.msg_iov = part;
        header.msg_iovlen = 1;
        if length > 0 {
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = length as _;
        }
        count += 1;
    }
    let flags = (libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) as _;
    // SAFETY: the first `count` headers are written, and every pointer in them points to memory of the stated size that
    // outlives the call; sendmmsg reads from it alone, and writes to the headers.
    let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), headers.as_mut_ptr().cast(), count, flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}
