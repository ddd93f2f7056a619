//! The ring of memory in which the kernel hands over tapped packets (AF_PACKET, `TPACKET_V3`:
//! Documentation/networking/packet_mmap.rst). One of the files that may hold unsafe code (xtask/tidy.toml names them).

use crate::ffi::checked;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const BLOCK_BYTES: usize = 1 << 16;
const BLOCKS: usize = 64;
/// The word of a block by which it changes hands, and whose it is.
const STATUS_OFFSET: usize = 8;
const OF_KERNEL: u32 = 0;
const OF_USER: u32 = 1;
/// A block that is not full is handed over after this many milliseconds.
const PATIENCE_MS: u32 = 8;

/// One instruction of the classic packet filter (`struct sock_filter`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) code: u16,
    pub(crate) if_true: u8,
    pub(crate) if_false: u8,
    pub(crate) operand: u32,
}

/// What the kernel counted since it was asked before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RingCounts {
    pub(crate) seen: u64,
    pub(crate) dropped: u64,
}

/// A packet socket with its ring.
#[derive(Debug)]
pub(crate) struct Ring {
    socket: OwnedFd,
    start: NonNull<u8>,
    next: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and there is one owner at a time.
unsafe impl Send for Ring {}

impl Ring {
    /// Taps the device with this index: packets that pass `filter`, without their link header, both ways.
    pub(crate) fn open(device: u32, filter: &[Instruction]) -> io::Result<Self> {
        // Nothing is received before the filter is in place, and the socket bound: protocol 0.
        // SAFETY: the call takes no pointers.
        let fd = checked(unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
        // SAFETY: the kernel has just made this descriptor, and nothing else holds it.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        attach(&socket, filter)?;
        set(&socket, libc::PACKET_VERSION, &libc::tpacket_versions::TPACKET_V3)?;
        set(&socket, libc::PACKET_RX_RING, &request())?;
        let start = map(&socket)?;
        let ring = Ring { socket, start, next: 0 };
        bind(&ring.socket, device)?;
        Ok(ring)
    }

    /// Hands the next full block to `take`, and back to the kernel; false when there is none.
    pub(crate) fn take_block(&mut self, take: impl FnOnce(&[u8])) -> bool {
        let offset = self.next * BLOCK_BYTES;
        // SAFETY: the block lies inside the mapping, which is as long as `self` lives; its status is an aligned word
        // that the kernel changes at any time, which atomics allow.
        let status = unsafe { &*self.start.as_ptr().add(offset + STATUS_OFFSET).cast::<AtomicU32>() };
        if status.load(Ordering::Acquire) & OF_USER == 0 {
            return false;
        }
        // SAFETY: while the status says that the block is ours the kernel writes nothing into it, and the slice is gone
        // before it is handed back.
        take(unsafe { core::slice::from_raw_parts(self.start.as_ptr().add(offset), BLOCK_BYTES) });
        status.store(OF_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % BLOCKS;
        true
    }

    /// What the kernel counted since the last call.
    pub(crate) fn counts(&self) -> io::Result<RingCounts> {
        // `struct tpacket_stats_v3`: packets, drops, times that the queue was frozen.
        let mut counts = [0_u32; 3];
        let mut size = size_of_val(&counts) as libc::socklen_t;
        let place = counts.as_mut_ptr().cast();
        // SAFETY: the kernel writes at most `size` bytes to `counts`; both outlive the call.
        checked(unsafe {
            libc::getsockopt(self.socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, place, &raw mut size)
        })?;
        Ok(RingCounts { seen: counts[0].into(), dropped: counts[1].into() })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `map`, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), BLOCK_BYTES * BLOCKS) };
    }
}

fn request() -> libc::tpacket_req3 {
    libc::tpacket_req3 {
        tp_block_size: BLOCK_BYTES as u32,
        tp_block_nr: BLOCKS as u32,
        tp_frame_size: 2048,
        tp_frame_nr: (BLOCK_BYTES / 2048 * BLOCKS) as u32,
        tp_retire_blk_tov: PATIENCE_MS,
        tp_sizeof_priv: 0,
        tp_feature_req_word: 0,
    }
}

fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    let place = core::ptr::from_ref(value).cast();
    // SAFETY: the option is read from a value of the stated size that outlives the call.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, place, size) }).map(drop)
}

fn attach(socket: &OwnedFd, filter: &[Instruction]) -> io::Result<()> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut().cast() };
    let size = size_of::<libc::sock_fprog>() as libc::socklen_t;
    let place = (&raw const program).cast();
    // SAFETY: an Instruction has the layout of a sock_filter; the kernel copies the program during the call and checks
    // it.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, place, size) })
        .map(drop)
}

fn map(socket: &OwnedFd) -> io::Result<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let bytes = BLOCK_BYTES * BLOCKS;
    // SAFETY: the kernel chooses a free place, so no memory in use is touched.
    let start =
        unsafe { libc::mmap(core::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, socket.as_raw_fd(), 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

fn bind(socket: &OwnedFd, device: u32) -> io::Result<()> {
    // SAFETY: a sockaddr_ll is made of integers, for which zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { core::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = device as i32;
    let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address is of the stated size and outlives the call.
    checked(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) }).map(drop)
}

/// The index of the device with this name.
pub(crate) fn device_index(name: &str) -> io::Result<u32> {
    let name = std::ffi::CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the name is a C string that outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}
