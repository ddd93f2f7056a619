//! The calls on `/dev/ffcounter`, each behind a safe function. One of the files that may hold unsafe code.

use super::layout::{self, KernelLatency, PacketStamp, PairedSample, Sample, Stamping};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// An answer of the module: made of integers alone, for which every pattern of bits is a value.
pub(super) trait DeviceAnswer: Copy + Default {}
impl DeviceAnswer for u32 {}
impl DeviceAnswer for Sample {}
impl DeviceAnswer for PairedSample {}
impl DeviceAnswer for KernelLatency {}

/// Asks `file` for an `A`; `request` must be one whose answer is an `A`, which its size shows.
#[inline]
pub(super) fn ask<A: DeviceAnswer>(file: &File, request: u32) -> io::Result<A> {
    debug_assert_eq!((request >> 16) as usize & 0x3fff, size_of::<A>());
    let mut answer = A::default();
    // SAFETY: the module writes the bytes that the request states, which are those of `answer`; a file that is not the
    // module's refuses a request that it does not know.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request as _, &raw mut answer) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// Says which packets to stamp.
pub(super) fn set_stamping(file: &File, stamping: &Stamping) -> io::Result<()> {
    // SAFETY: the module reads one `Stamping` that outlives the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), layout::SET_STAMPING as _, core::ptr::from_ref(stamping)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Room for one packet's stamp before it is read.
pub(super) const EMPTY_STAMP: PacketStamp = PacketStamp {
    value: 0,
    epoch: 0,
    lost: 0,
    ifindex: 0,
    id: 0,
    direction: 0,
    family: 0,
    length: 0,
    head_length: 0,
    source_port: 0,
    destination_port: 0,
    source: [0; 16],
    destination: [0; 16],
    head: [0; layout::HEAD_BYTES],
};

/// Reads as many stamps as there are and `room` holds; returns how many.
pub(super) fn read_stamps(file: &File, room: &mut [PacketStamp]) -> io::Result<usize> {
    // SAFETY: the pointer and the length belong to one slice that nothing else uses during the call; a stamp is made of
    // integers, for which every pattern of bits is a value.
    let bytes = unsafe { libc::read(file.as_raw_fd(), room.as_mut_ptr().cast(), size_of_val(room)) };
    let bytes = usize::try_from(bytes).map_err(|_| io::Error::last_os_error())?;
    whole_stamps(bytes, size_of_val(room))
}

/// How many stamps `bytes` are. A call that claims to have given more than there was room for is an error.
fn whole_stamps(bytes: usize, room: usize) -> io::Result<usize> {
    if bytes > room {
        return Err(io::Error::other(format!("it claims to have given {bytes} bytes where there was room for {room}")));
    }
    Ok(bytes / size_of::<PacketStamp>())
}

/// The bytes that are mapped. A kernel with larger pages gives one of its pages.
fn page_bytes() -> usize {
    // SAFETY: the call takes no pointers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// The page of one counter, mapped for reading; unmapped when dropped.
#[derive(Debug)]
pub(super) struct Mapped {
    words: NonNull<AtomicU32>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is read through atomic words only.
unsafe impl Send for Mapped {}
// SAFETY: as above: shared use is use of atomics.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps the page of counter `id`.
    pub(super) fn new(file: &File, id: u16) -> io::Result<Self> {
        let bytes = page_bytes();
        let offset = libc::off_t::from(id) * bytes as libc::off_t;
        // SAFETY: the kernel chooses a free place, so no memory in use is touched; the descriptor is open during the
        // call.
        let start = unsafe {
            libc::mmap(core::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), offset)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let words = NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Mapped { words, bytes })
    }

    /// The word at `offset` bytes, one of those in [`layout::page`].
    #[inline]
    pub(super) fn word(&self, offset: usize) -> u32 {
        debug_assert!(offset.is_multiple_of(4) && offset < 24);
        // SAFETY: the offset lies within the mapping, which is aligned, readable and in place until `self` is dropped;
        // the module changes it at any time, which atomics allow.
        unsafe { self.words.byte_add(offset).as_ref() }.load(Ordering::Acquire)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `new`, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.words.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_was_room_for_is_refused() {
        let size = size_of::<PacketStamp>();
        assert_eq!(whole_stamps(3 * size, 4 * size).ok(), Some(3));
        // -EAGAIN as an unsigned number of 32 bits.
        assert!(whole_stamps(4_294_967_285, 4 * size).is_err());
    }
}
