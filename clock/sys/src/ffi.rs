//! The calls into libc, each behind a safe function. What the kernels do differently is below. Unsafe code is here,
//! in `mapping.rs` and in `system_v.rs`.

#[cfg(target_os = "linux")]
mod batch;
#[cfg(target_os = "freebsd")]
mod freebsd;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "freebsd")]
use freebsd as os;
#[cfg(target_os = "linux")]
use linux as os;

pub(crate) use os::{
    dropped_packets, hardware, mount_privately, own_thread, references, set_receive_buffer, timer_cancelled_on_set,
    user_of_peer,
};

#[cfg(target_os = "linux")]
pub(crate) use batch::{BATCH, BatchControl, BatchMemory, Outgoing, Taken, receive_batch, send_batch};
#[cfg(target_os = "linux")]
pub(crate) use linux::{
    adjust_realtime, bound_socket, drop_capabilities, empty_timex, inherited, join_device_group, set_group_option,
};

use crate::address::RawAddress;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Turns the result of a call into an error where it is negative.
fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// As [`checked`], for calls that return a size.
fn checked_size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Room for the control messages of one packet; the kernel's are aligned to eight bytes.
#[repr(C, align(8))]
pub(crate) struct ControlBuffer(pub(crate) [u8; 256]);

/// What `recvmsg` said about one packet, beside its bytes.
pub(crate) struct Message {
    /// Bytes written into the buffer.
    pub(crate) length: usize,
    /// `MSG_TRUNC`, `MSG_CTRUNC`, `MSG_ERRQUEUE`.
    pub(crate) flags: libc::c_int,
    /// The other side, as the kernel wrote it.
    pub(crate) address: RawAddress,
    /// Control messages, of which the first `control_length` bytes count.
    #[cfg_attr(target_os = "freebsd", expect(dead_code, reason = "no control messages are read there"))]
    pub(crate) control: ControlBuffer,
    /// Bytes of `control`.
    #[cfg_attr(target_os = "freebsd", expect(dead_code, reason = "no control messages are read there"))]
    pub(crate) control_length: usize,
}

/// One packet, or one entry of the error queue with `MSG_ERRQUEUE`.
pub(crate) fn receive_message(fd: BorrowedFd<'_>, buffer: &mut [u8], flags: libc::c_int) -> io::Result<Message> {
    let mut address = RawAddress::empty();
    let mut control = ControlBuffer([0; 256]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: a msghdr is made of integers and pointers, for which zero is a value.
    let mut header: libc::msghdr = unsafe { core::mem::zeroed() };
    header.msg_name = address.as_mut_ptr().cast();
    header.msg_namelen = RawAddress::CAPACITY as libc::socklen_t;
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = control.0.len() as _;
    // SAFETY: every pointer in the header points to memory of the stated size that outlives the call and that nothing
    // else uses.
    let length = checked_size(unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut header, flags) })?;
    address.set_length(header.msg_namelen as usize);
    Ok(Message { length, flags: header.msg_flags, address, control, control_length: header.msg_controllen as usize })
}

/// One packet, to `to` or to the address that the socket is connected to, with these control messages.
pub(crate) fn send_message(
    fd: BorrowedFd<'_>,
    bytes: &[u8],
    (to, control): (Option<&RawAddress>, &[u8]),
) -> io::Result<usize> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: a msghdr is made of integers and pointers, for which zero is a value.
    let mut header: libc::msghdr = unsafe { core::mem::zeroed() };
    if let Some(to) = to {
        header.msg_name = to.as_ptr().cast_mut().cast();
        header.msg_namelen = to.length() as libc::socklen_t;
    }
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    if !control.is_empty() {
        header.msg_control = control.as_ptr().cast_mut().cast();
        header.msg_controllen = control.len() as _;
    }
    // SAFETY: every pointer in the header points to memory of the stated size that outlives the call; sendmsg only
    // reads from it.
    checked_size(unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) })
}

/// Where the first hole of a file is: a part that is not stored and reads as zeros; at the end of the file where there
/// is none. A file system that does not know its holes has none to report.
pub(crate) fn first_hole(fd: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: the call takes no pointers.
    let place = unsafe { libc::lseek(fd.as_raw_fd(), 0, libc::SEEK_HOLE) };
    u64::try_from(place).map_err(|_| io::Error::last_os_error())
}

/// Sets an option of a socket whose value is an int.
pub(crate) fn set_option(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option is read from an int of the stated size that outlives the call.
    checked(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), size) }).map(drop)
}

/// An option of a socket whose value is an int.
pub(crate) fn option(fd: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes to `value`; both outlive the call.
    checked(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut size) })?;
    Ok(value)
}

/// Lets `waiting` connections wait until they are accepted; a socket that listens already gets the new length.
pub(crate) fn listen(fd: BorrowedFd<'_>, waiting: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes no pointers.
    checked(unsafe { libc::listen(fd.as_raw_fd(), waiting) }).map(drop)
}

/// Every address of this host's network devices, as (name of the device, address without its port).
pub(crate) fn device_addresses() -> io::Result<Vec<(String, RawAddress)>> {
    let mut first: *mut libc::ifaddrs = core::ptr::null_mut();
    // SAFETY: the call writes one pointer.
    checked(unsafe { libc::getifaddrs(&raw mut first) })?;
    let mut found = Vec::new();
    let mut next = first;
    // SAFETY: the list is what getifaddrs made, ends with a null pointer and stays until it is given back.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        if entry.ifa_addr.is_null() || entry.ifa_name.is_null() {
            continue;
        }
        // SAFETY: the name is a C string of that list, and the address is at least a family, which says how long it is.
        let (name, family) = unsafe { (core::ffi::CStr::from_ptr(entry.ifa_name), (*entry.ifa_addr).sa_family) };
        let length = match libc::c_int::from(family) {
            libc::AF_INET => size_of::<libc::sockaddr_in>(),
            libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
            _ => continue,
        };
        let mut address = RawAddress::empty();
        // SAFETY: an address of this family has this length, which a RawAddress has room for.
        unsafe { core::ptr::copy_nonoverlapping(entry.ifa_addr.cast(), address.as_mut_ptr(), length) };
        address.set_length(length);
        found.push((name.to_string_lossy().into_owned(), address));
    }
    // SAFETY: the list is what getifaddrs made, and nothing refers to it from here on.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// The number of a network device in the namespace of the calling thread.
pub(crate) fn device_index(name: &core::ffi::CStr) -> Option<u32> {
    // SAFETY: the name ends in a zero byte and outlives the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// The effective user of this process.
pub(crate) fn own_user() -> libc::uid_t {
    // SAFETY: the call takes no pointers and always succeeds.
    unsafe { libc::geteuid() }
}

/// Makes something whose file gets the mode 0600 at most. The mask is the whole process's: what another thread makes in
/// that moment is closed to others as well.
pub(crate) fn closed_to_others<T>(make: impl FnOnce() -> T) -> T {
    // SAFETY: the call takes no pointers and always succeeds.
    let usual = unsafe { libc::umask(0o177) };
    let made = make();
    // SAFETY: as above.
    unsafe { libc::umask(usual) };
    made
}

/// Whether this process, with its effective rights, may make files in a directory.
pub(crate) fn may_write_into(directory: &core::ffi::CStr) -> bool {
    let rights = libc::W_OK | libc::X_OK;
    // SAFETY: the name ends in a zero byte and outlives the call.
    unsafe { libc::faccessat(libc::AT_FDCWD, directory.as_ptr(), rights, libc::AT_EACCESS) == 0 }
}

/// Waits for one of `sources`; -1 ms waits without end.
pub(crate) fn poll(sources: &mut [libc::pollfd], timeout_ms: libc::c_int) -> io::Result<usize> {
    // SAFETY: the pointer and the length belong to one slice that nothing else uses during the call.
    let ready = checked(unsafe { libc::poll(sources.as_mut_ptr(), sources.len() as libc::nfds_t, timeout_ms) })?;
    Ok(ready as usize)
}

/// Takes over a descriptor that a call has just made.
fn owned(fd: RawFd) -> OwnedFd {
    // SAFETY: the callers pass a descriptor that the kernel gave them a moment ago and that has no other owner.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Reads into `buffer` through libc, so that what stands between sees it.
pub(crate) fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length belong to one slice that nothing else uses during the call.
    checked_size(unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) })
}

/// Fills `buffer` with random bytes.
pub(crate) fn fill_random(buffer: &mut [u8; 8]) -> io::Result<()> {
    // SAFETY: the pointer and the length belong to one array. Up to 256 bytes come whole.
    checked_size(unsafe { libc::getrandom(buffer.as_mut_ptr().cast(), buffer.len(), 0) }).map(drop)
}

/// Takes the exclusive lock of a file without waiting.
pub(crate) fn lock(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the call takes no pointers.
    checked(unsafe { libc::flock(fd.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }).map(drop)
}

/// A pipe, as (end to read, end to write), neither of which ever blocks.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends: [RawFd; 2] = [-1; 2];
    // SAFETY: the call writes two descriptors into an array of two.
    checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK | libc::O_CLOEXEC) })?;
    Ok((owned(ends[0]), owned(ends[1])))
}

/// Makes `handler` the handler of `signal`. System calls that the signal interrupts return early instead of going on,
/// so that [`poll`] is left at once.
///
/// The handler must do nothing but what a signal handler may: atomic operations, and calls that are safe there.
pub(crate) fn handle_signal(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    // SAFETY: a sigaction is made of integers and pointers, for which zero is a value: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    // SAFETY: the action outlives the call, and the handler is a function of the type that a handler without SA_SIGINFO
    // has.
    checked(unsafe { libc::sigaction(signal, &raw const action, core::ptr::null_mut()) }).map(drop)
}

/// Writes one byte from within a signal handler: keeps errno, and does not care whether the pipe is full.
pub(crate) fn write_from_handler(fd: RawFd) {
    // SAFETY: write(2) may be called in a signal handler, and reads one byte from a static; errno's place belongs to
    // this thread.
    unsafe {
        let errno = os::errno_place();
        let saved = *errno;
        libc::write(fd, [0_u8].as_ptr().cast(), 1);
        *errno = saved;
    }
}
