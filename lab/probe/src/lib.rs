//! Where packets wait in the host: test packets stamped at every location, after "Probing the Latencies of Software
//! Timestamping".
//!
//! Requests go to an echo server and come back. Each is stamped on its way out and in: in user space, by the socket, by
//! the packet tap and by the kernel's tracing at the boundary to the driver, always with the same raw counter. Packets
//! wait between two stamps.
//!
//! All of it only reads: nothing here sets or steers a clock, or prints.
#![deny(missing_docs)]

pub mod advice;
pub mod agreement;
mod collect;
pub mod digest;
pub mod distances;
pub mod ebpf;
pub mod echo;
pub mod effect;
pub mod error;
pub mod events;
mod ffi;
pub mod findings;
mod hardware;
pub mod kind;
pub mod outcome;
pub mod own;
pub mod pairs;
pub mod paper;
pub mod passages;
pub mod payload;
pub mod plan;
pub mod record;
mod ring;
pub mod run;
pub mod site;
pub mod tap;
pub mod timeline;
pub mod watch;

/// Moves the calling thread, and threads that it starts later, into a network namespace of their own; it ends with
/// them.
///
/// # Errors
/// The right to (`CAP_SYS_ADMIN`) is missing.
pub fn enter_own_network() -> std::io::Result<()> {
    ffi::leave_network()
}
