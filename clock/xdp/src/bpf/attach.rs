//! The program's place at a device: a link, which ends with the process that holds it in every case. One of the files
//! that may hold unsafe code.

use super::responder::Responder;
use crate::{FastPathError, FastPathPlace, XdpHook};
use libbpf_rs::{Xdp, XdpFlags, libbpf_sys};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A program at a device; taken away when dropped.
#[derive(Debug)]
pub(super) struct XdpLink {
    _link: OwnedFd,
    hook: XdpHook,
}

impl XdpLink {
    /// Attaches the program. With [`XdpHook::Auto`], what the driver refuses becomes generic.
    pub(super) fn new(responder: &Responder, device: u32, place: &FastPathPlace) -> Result<Self, FastPathError> {
        let program = responder.program();
        let hooks: &[XdpHook] = match place.hook {
            XdpHook::Auto => &[XdpHook::Native, XdpHook::Generic],
            XdpHook::Native => &[XdpHook::Native],
            XdpHook::Generic => &[XdpHook::Generic],
        };
        let mut refusal = io::Error::from(io::ErrorKind::Unsupported);
        for hook in hooks {
            match link(program, device, *hook) {
                Ok(link) => return Ok(XdpLink { _link: link, hook: *hook }),
                Err(error) => refusal = error,
            }
            if let Some(other) = program_at(program, device) {
                return Err(FastPathError::Occupied { device: place.device.clone(), program: other });
            }
        }
        Err(FastPathError::Refused(format!("{}: {}", place.device, explained(&refusal, place.hook))))
    }

    pub(super) fn hook(&self) -> XdpHook {
        self.hook
    }
}

fn explained(error: &io::Error, hook: XdpHook) -> String {
    match (error.kind(), hook) {
        (io::ErrorKind::PermissionDenied, _) => format!("{error} (it takes CAP_NET_ADMIN and CAP_BPF)"),
        (io::ErrorKind::Unsupported, XdpHook::Native) => {
            format!("{error} (the driver has no XDP; `generic` needs none)")
        }
        (io::ErrorKind::InvalidInput, XdpHook::Native) => {
            format!("{error} (the driver refuses: too large an MTU, or too few queues; `generic` needs neither)")
        }
        _ => error.to_string(),
    }
}

fn link(program: BorrowedFd<'_>, device: u32, hook: XdpHook) -> io::Result<OwnedFd> {
    let flags = if hook == XdpHook::Native { XdpFlags::DRV_MODE } else { XdpFlags::SKB_MODE };
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
        flags: flags.bits(),
        ..Default::default()
    };
    // SAFETY: `options` has the size that it states and outlives the call; the rest are numbers.
    let fd = unsafe {
        libbpf_sys::bpf_link_create(program.as_raw_fd(), device as i32, libbpf_sys::BPF_XDP, &raw const options)
    };
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel has just made this descriptor, and nothing else holds it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The number of the program that is at the device, if there is one.
fn program_at(program: BorrowedFd<'_>, device: u32) -> Option<u32> {
    let query = Xdp::new(program.as_fd()).query(device as i32, XdpFlags::empty()).ok()?;
    let ids = [query.prog_id, query.drv_prog_id, query.skb_prog_id, query.hw_prog_id];
    ids.into_iter().find(|id| *id != 0)
}
