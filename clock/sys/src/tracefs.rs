//! Events of the kernel, stamped with the raw counter by the kernel's own tracing on a stock kernel.
//!
//! A tracing instance of our own (Documentation/trace/ftrace.rst, "Instances") does not disturb others that trace at
//! the same time. Its clock is the raw counter (`x86-tsc`) or the kernel's raw clock (`mono_raw`), so that a stamp
//! needs no mapping. Nothing is mounted: where tracefs is not mounted, a private mount without a place in the file tree
//! serves.

mod buffer;
mod format;
mod instance;

pub use buffer::{BufferPage, Lost};
pub use format::{EventFormat, Field, FormatError};
pub use instance::{TraceEvent, TraceInstance, TraceUnavailable, thread_in_events};
