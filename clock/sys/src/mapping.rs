//! A file of words in memory, shared with other processes. One of the files of this crate that may hold unsafe code.

use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// What the mapping may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    ReadWrite,
}

/// A mapped file of this number of words; unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping<const COUNT: usize> {
    words: NonNull<[AtomicU64; COUNT]>,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is used through atomic words only.
unsafe impl<const COUNT: usize> Send for Mapping<COUNT> {}
// SAFETY: as above: shared use is use of atomics.
unsafe impl<const COUNT: usize> Sync for Mapping<COUNT> {}

impl<const COUNT: usize> Mapping<COUNT> {
    /// The length of the mapping.
    const LENGTH: usize = COUNT * size_of::<u64>();

    /// Maps the first words of `file`, which the caller has found to be long enough and opened for this access. A
    /// process that may write the file can also truncate it later, which ends this process at its next access;
    /// therefore only the daemon may write it.
    pub(crate) fn new(file: &File, access: Access) -> io::Result<Self> {
        let protection = match access {
            Access::Read => libc::PROT_READ,
            Access::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        };
        // SAFETY: the kernel chooses a free place, so no memory in use is touched; the descriptor is open during the
        // call.
        let start = unsafe {
            libc::mmap(core::ptr::null_mut(), Self::LENGTH, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(start.cast()).map(|words| Mapping { words }).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    /// The words. Where the file was mapped for reading, storing into one ends the process.
    pub(crate) fn words(&self) -> &[AtomicU64; COUNT] {
        // SAFETY: the mapping is of this size, aligned to a page, readable and in place until `self` is dropped; other
        // processes change it at any time, which atomics allow.
        unsafe { self.words.as_ref() }
    }
}

impl<const COUNT: usize> Drop for Mapping<COUNT> {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `new`, and no reference into it outlives `self`. It cannot fail for a
        // valid mapping.
        unsafe { libc::munmap(self.words.as_ptr().cast(), Self::LENGTH) };
    }
}
