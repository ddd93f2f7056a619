//! A program at tc. One of the files of this crate that may hold unsafe code.
//!
//! Since Linux 6.6 a program at tc is a link (TCX), which ends with its owner in every case. On older kernels it is a
//! filter of the device's `clsact` queueing discipline, which stays until it is removed: here when it is dropped.

use crate::payload::Direction;
use libbpf_rs::{ErrorKind, TC_EGRESS, TC_INGRESS, TcHook, TcHookBuilder, libbpf_sys};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A program at tc; taken away when dropped.
#[derive(Debug)]
pub(super) enum AtTc {
    Link(#[expect(dead_code, reason = "held for what closing it does")] OwnedFd),
    Filter(#[expect(dead_code, reason = "held for what dropping it does")] TcFilter),
}

/// A filter of `clsact`.
#[derive(Debug)]
pub(super) struct TcFilter(TcHook);

impl Drop for TcFilter {
    fn drop(&mut self) {
        // A device that is gone took its filters along. The queueing discipline stays: another program may use it by
        // now, and an empty one does nothing.
        let _ = self.0.detach();
    }
}

/// Attaches a program to a device.
pub(super) fn attach(program: BorrowedFd<'_>, device: u32, direction: Direction) -> Result<AtTc, String> {
    match link(program, device, direction) {
        Ok(link) => Ok(AtTc::Link(link)),
        // Kernels before 6.6 know no such link.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => filter(program, device, direction),
        Err(error) => Err(error.to_string()),
    }
}

fn link(program: BorrowedFd<'_>, device: u32, direction: Direction) -> io::Result<OwnedFd> {
    let kind = match direction {
        Direction::Outgoing => libbpf_sys::BPF_TCX_EGRESS,
        Direction::Incoming => libbpf_sys::BPF_TCX_INGRESS,
    };
    // SAFETY: the call takes numbers, and no options.
    let fd = unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), device as i32, kind, core::ptr::null()) };
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel has just made this descriptor, and nothing else holds it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn filter(program: BorrowedFd<'_>, device: u32, direction: Direction) -> Result<AtTc, String> {
    let point = match direction {
        Direction::Outgoing => TC_EGRESS,
        Direction::Incoming => TC_INGRESS,
    };
    let mut hook = TcHookBuilder::new(program.as_fd()).ifindex(device as i32).hook(point);
    let attached = hook.create().and_then(|mut hook| hook.attach());
    attached.map(|hook| AtTc::Filter(TcFilter(hook))).map_err(|error| match error.kind() {
        ErrorKind::NotFound => "the kernel has no clsact (module sch_ingress)".to_owned(),
        _ => error.to_string(),
    })
}
