//! What Linux gives to a clock: sockets whose packets are stamped, the way from the kernel's stamps to the raw counter,
//! a page of shared memory, and the few calls that a daemon of one thread around `poll(2)` needs.
//!
//! Packets, clocks and waiting go through libc's own functions, so that a simulator or a fault injector which stands
//! between a program and its libc drives the unmodified daemon. Nothing here sets or steers a clock but
//! `kernel_clock.rs`, for ffclock-steer alone.
//!
//! The kernel stamps packets with the system clock, which may be stepped or slewed. [`Stamper`] turns such a stamp into
//! a reading of the counter with the help of pairs (counter, system clock) taken around it, widens it by all that the
//! system clock may have done in between, and discards it where the clock was stepped. From there on the system clock
//! plays no part. A network card stamps packets by a clock of its own, whose line over the counter is estimated, and
//! which is never set either. [`StampedSocket`] says which stamp of a packet is the best, and why no better one serves.
//!
//! Unsafe code is in `ffi/` (calls into libc), `mapping.rs` and `system_v.rs` (shared memory) only.
#![deny(missing_docs)]

mod address;
mod awaited;
#[cfg(target_os = "linux")]
mod batch;
mod best;
#[cfg(target_os = "linux")]
mod cmsg;
mod credentials;
mod devices;
mod driver;
mod ethernet;
mod ffi;
mod hardware;
#[cfg(target_os = "linux")]
mod kernel_clock;
mod kernel_stamps;
mod ledger;
mod mapper;
mod mapping;
mod notify;
mod pairs;
pub mod places;
mod poll;
#[cfg(target_os = "linux")]
mod privilege;
mod references;
mod shared_file;
mod shared_port;
mod shared_words;
mod signals;
mod socket;
mod stamper;
mod stream;
mod system_v;
mod time;
mod timer;
mod tracefs;
mod vm_clock;

pub use awaited::AwaitedStamps;
#[cfg(target_os = "linux")]
pub use batch::{ArrivedPacket, PacketBatch, SentBatch, ServedSocket, inherited_sockets};
pub use best::{BestStamp, StampDiscarded, StampQuality, StampShifts};
pub use credentials::is_own_or_root;
pub use devices::{addresses_of, device_index, device_with, hardware_address, own_addresses};
pub use driver::{DriverStamps, DriverTally};
pub use ethernet::{DeviceAddress, FrameKind};
pub use hardware::{CardChange, CardId, CardUse, DeviceSetup, HardwareUnavailable, StampedPackets, switch_on_stamps};
#[cfg(target_os = "linux")]
pub use kernel_clock::{
    KernelClockChange, KernelClockState, KernelFlags, KernelFrequency, change_kernel_clock, kernel_clock_state,
    step_kernel_clock, take_kernel_clock,
};
pub use ledger::SendId;
pub use notify::{Notice, notify, watchdog_interval};
pub use pairs::{Pair, PairReader, SystemPairs, Watch};
pub use poll::{Interest, poll};
#[cfg(target_os = "linux")]
pub use privilege::drop_privileges;
pub use references::{
    ClockSource, HardwareClock, PulseDevice, PulseEdge, PulseSource, SeenPulse, SharedTime, SharedTimeError,
    private_datagram_socket,
};
pub use shared_file::PageFileError;
pub use shared_words::{
    ForeignFormat, SharedHistory, SharedHistoryReader, SharedPage, SharedPageReader, SharedWords, SharedWordsReader,
    history_beside,
};
pub use signals::{Signal, Signals};
pub use socket::{PeerError, Received, Sent, SocketEvent, StampMode, StampedSocket, Transmitted};
pub use stamper::Stamper;
pub use stream::{give_up_silent_peer, lengthen_queue};
pub use system_v::{SystemVError, SystemVWords};
pub use time::{mono_now, random_nonce, system_utc_now};
pub use timer::CancelOnSetTimer;
pub use tracefs::{
    BufferPage, EventFormat, Field, FormatError, Lost, TraceEvent, TraceInstance, TraceUnavailable, thread_in_events,
};
pub use vm_clock::{SharedVmClock, VmClockError, VmClockFile, VmClockLeap, VmClockLine, VmClockRefused, VmClockWords};
