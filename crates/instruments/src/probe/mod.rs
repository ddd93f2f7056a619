//! Where packets wait in the host: test packets stamped at every location, after "Probing the Latencies of Software Timestamping".
//!
//! Requests go to an echo server and come back. Each is stamped, on its way out and in, in user space, by the socket, by the packet tap and
//! by the kernel's tracing at the boundary to the driver: all of it with the same raw counter. What lies between the stamps is where
//! packets wait.

pub mod echo;
pub mod events;
pub mod findings;
pub mod pairs;
pub mod passages;
pub mod payload;
mod ring;
pub mod run;
pub mod site;
pub mod tap;
