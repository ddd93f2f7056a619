//! Calls that only Linux has, or has in another form.

pub(crate) mod hardware;
mod kernel_clock;
pub(crate) mod references;

pub(crate) use kernel_clock::{adjust_realtime, empty_timex};

use super::{checked, owned};
use crate::address::RawAddress;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Room for packets that wait, beyond the host's limit where that is permitted.
pub(crate) fn set_receive_buffer(fd: BorrowedFd<'_>, bytes: libc::c_int) -> io::Result<()> {
    let set = |name| super::set_option(fd, libc::SOL_SOCKET, name, bytes);
    // The first needs CAP_NET_ADMIN; the second is cut at net.core.rmem_max.
    set(libc::SO_RCVBUFFORCE).or_else(|_| set(libc::SO_RCVBUF))
}

/// How many packets the kernel has thrown away because the socket's buffer was full (`SO_MEMINFO`, `SK_MEMINFO_DROPS`),
/// modulo 2^32.
pub(crate) fn dropped_packets(fd: BorrowedFd<'_>) -> io::Result<u32> {
    /// `SK_MEMINFO_DROPS` and `SK_MEMINFO_VARS` of linux/sock_diag.h.
    const DROPS: usize = 8;
    let mut words = [0_u32; DROPS + 1];
    let mut size = size_of_val(&words) as libc::socklen_t;
    let place = words.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `size` bytes to `words`; both outlive the call.
    checked(unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, place, &raw mut size) })?;
    if size as usize == size_of_val(&words) { Ok(words[DROPS]) } else { Err(io::ErrorKind::Unsupported.into()) }
}

/// The effective user of the process that connected a UNIX socket, as it was then.
pub(crate) fn user_of_peer(fd: BorrowedFd<'_>) -> io::Result<libc::uid_t> {
    // What the kernel does not fill in stays an ID that no user has.
    let mut peer = libc::ucred { pid: 0, uid: libc::uid_t::MAX, gid: libc::gid_t::MAX };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    let place = (&raw mut peer).cast();
    // SAFETY: the kernel writes at most `size` bytes to `peer`; both outlive the call.
    checked(unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &raw mut size) })?;
    Ok(peer.uid)
}

/// The number of the calling thread.
pub(crate) fn own_thread() -> libc::pid_t {
    // SAFETY: the call takes no pointers and always succeeds.
    unsafe { libc::gettid() }
}

/// Where this thread's errno is.
pub(super) fn errno_place() -> *mut libc::c_int {
    // SAFETY: the call takes no pointers and always succeeds.
    unsafe { libc::__errno_location() }
}

/// A timer on the system clock that never expires but is cancelled whenever that clock is set.
pub(crate) fn timer_cancelled_on_set() -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointers.
    let timer =
        owned(checked(unsafe { libc::timerfd_create(libc::CLOCK_REALTIME, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) })?);
    let never = libc::timespec { tv_sec: i64::MAX, tv_nsec: 0 };
    let no_repeat = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let setting = libc::itimerspec { it_interval: no_repeat, it_value: never };
    let flags = libc::TFD_TIMER_ABSTIME | libc::TFD_TIMER_CANCEL_ON_SET;
    // SAFETY: the setting outlives the call, and the old one is not asked for.
    checked(unsafe { libc::timerfd_settime(timer.as_raw_fd(), flags, &raw const setting, core::ptr::null_mut()) })?;
    Ok(timer)
}

/// Mounts a file system of the kernel's own without giving it a place in the file tree; gone when the descriptor is
/// closed.
pub(crate) fn mount_privately(kind: &core::ffi::CStr) -> io::Result<OwnedFd> {
    /// `FSCONFIG_CMD_CREATE` of linux/mount.h.
    const CREATE: libc::c_uint = 6;
    const CLOSE_ON_EXEC: libc::c_uint = 1;
    let nothing = core::ptr::null::<libc::c_char>();
    // SAFETY: the name is a C string that outlives the call.
    let context = checked_descriptor(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), CLOSE_ON_EXEC) })?;
    // SAFETY: this command takes neither a key nor a value, and no pointers but null.
    let created = unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, nothing, nothing, 0) };
    if created < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call takes no pointers.
    checked_descriptor(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOSE_ON_EXEC, 0) })
}

/// A new descriptor from a call that libc has no function for.
fn checked_descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    RawFd::try_from(result).ok().filter(|fd| *fd >= 0).map(owned).ok_or_else(io::Error::last_os_error)
}

/// A socket for datagrams, of UDP or of frames, bound to `address`, with these options of the level `SOL_SOCKET` or
/// below it switched on before.
pub(crate) fn bound_socket(address: &RawAddress, options: &[(libc::c_int, libc::c_int)]) -> io::Result<OwnedFd> {
    let family = address.family().ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: the call takes no pointers.
    let socket = owned(checked(unsafe { libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?);
    for (level, name) in options {
        super::set_option(std::os::fd::AsFd::as_fd(&socket), *level, *name, 1)?;
    }
    let length = address.length() as libc::socklen_t;
    // SAFETY: the address is of the stated length and outlives the call.
    checked(unsafe { libc::bind(socket.as_raw_fd(), address.as_ptr().cast(), length) })?;
    Ok(socket)
}

/// An option about groups of IPv4 on a device: `IP_ADD_MEMBERSHIP` joins `group` there, `IP_MULTICAST_IF` sends there.
pub(crate) fn set_group_option(
    fd: BorrowedFd<'_>,
    name: libc::c_int,
    (group, device): (std::net::Ipv4Addr, libc::c_int),
) -> io::Result<()> {
    let group = libc::in_addr { s_addr: u32::from_ne_bytes(group.octets()) };
    let value = libc::ip_mreqn { imr_multiaddr: group, imr_address: libc::in_addr { s_addr: 0 }, imr_ifindex: device };
    let size = size_of_val(&value) as libc::socklen_t;
    let place = (&raw const value).cast();
    // SAFETY: the option is read from an ip_mreqn of the stated size that outlives the call.
    checked(unsafe { libc::setsockopt(fd.as_raw_fd(), libc::IPPROTO_IP, name, place, size) }).map(drop)
}

/// Joins a group of a network device for as long as the socket of its frames is open.
pub(crate) fn join_device_group(
    fd: BorrowedFd<'_>,
    (group, device): (crate::ethernet::DeviceAddress, libc::c_int),
) -> io::Result<()> {
    let [a, b, c, d, e, f] = group;
    let value = libc::packet_mreq {
        mr_ifindex: device,
        mr_type: libc::PACKET_MR_MULTICAST as libc::c_ushort,
        mr_alen: 6,
        mr_address: [a, b, c, d, e, f, 0, 0],
    };
    let (name, size) = (libc::PACKET_ADD_MEMBERSHIP, size_of_val(&value) as libc::socklen_t);
    let place = (&raw const value).cast();
    // SAFETY: the option is read from a packet_mreq of the stated size that outlives the call.
    checked(unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_PACKET, name, place, size) }).map(drop)
}

/// Takes over the descriptors `first` up to `end`, which the process was started with. Called once.
pub(crate) fn inherited(first: RawFd, end: RawFd) -> io::Result<Vec<OwnedFd>> {
    (first..end)
        .map(|fd| {
            // SAFETY: the call takes no pointers, and says whether there is such a descriptor.
            checked(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
            Ok(owned(fd))
        })
        .collect()
}

/// Gives up every capability of this thread and of all that it starts, and every way to gain one.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    /// `_LINUX_CAPABILITY_VERSION_3` of linux/capability.h.
    const VERSION: u32 = 0x2008_0522;
    // SAFETY: these options take numbers alone.
    unsafe {
        checked(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        checked(libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))?;
    }
    let header = [VERSION, 0];
    let none = [0_u32; 6];
    // SAFETY: the header is the version and the own thread, and version 3 reads six words; both outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
