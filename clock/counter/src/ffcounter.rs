//! The kernel module `ffcounter` (see docs/kernel.md): 64-bit cumulative counters over the hardware counters of the
//! machine, read through `/dev/ffcounter`.
//!
//! On FreeBSD the kernel itself has one such counter, that of its feed-forward clock: it is [`ModuleCounter::Active`]
//! there.
//!
//! Every reading is of an epoch. Within one epoch values never go backwards and never wrap, whatever the width of the
//! hardware; a suspend, another clocksource under [`ModuleCounter::Active`], or a tick that came too late begins a new
//! one.

mod device;
#[cfg(target_os = "freebsd")]
pub(crate) mod freebsd;
pub mod layout;
#[cfg(target_os = "linux")]
pub(crate) mod shared;

pub use ffclock_units::ModuleCounter;
#[cfg(target_os = "freebsd")]
pub(crate) use freebsd as shared;
pub use layout::{KernelLatency, PacketStamp, PairedSample, Sample};

use crate::cpu;
use ffclock_units::{Counter, CounterId};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// Where the module's device is.
pub const DEVICE: &str = "/dev/ffcounter";

const _: () = assert!(ModuleCounter::ALL.len() == layout::COUNT as usize);

/// Why the module cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FfcounterError {
    /// The device is not there.
    #[error("{0} is not there: load the kernel module ffcounter (docs/kernel.md says how to build and load it)")]
    Missing(PathBuf),
    /// The device may not be opened.
    #[error("{0} may not be opened: run as root or as a member of the group that owns it (see docs/kernel.md)")]
    Permission(PathBuf),
    /// Another version of the interface.
    #[error(
        "{path} speaks version {found} of its interface, not {}: build module and program from the same source",
        layout::VERSION
    )]
    Version {
        /// The device.
        path: PathBuf,
        /// What it speaks.
        found: u32,
    },
    /// The machine has no such counter, or the module cannot identify it.
    #[error(
        "this machine has no counter {0} that the module can read (`ffclock-lab counters` lists those that it has)"
    )]
    NoCounter(ModuleCounter),
    /// The counter is that of another kind of machine.
    #[error("machines of this kind have no counter {0}")]
    Foreign(CounterId),
    /// The machine is being put to sleep or woken up.
    #[error("the counter {0} is asleep: a suspend is under way, and a new epoch follows it")]
    Asleep(ModuleCounter),
    /// Packets may not be stamped.
    #[error("stamping packets needs the capability CAP_NET_RAW")]
    StampingDenied,
    /// Anything else.
    #[error("{path}: {error}")]
    Io {
        /// The device.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
}

#[cfg(target_os = "linux")]
impl FfcounterError {
    /// A copy, which `io::Error` does not offer.
    fn repeated(&self) -> Self {
        match self {
            FfcounterError::Missing(path) => FfcounterError::Missing(path.clone()),
            FfcounterError::Permission(path) => FfcounterError::Permission(path.clone()),
            FfcounterError::Version { path, found } => FfcounterError::Version { path: path.clone(), found: *found },
            FfcounterError::NoCounter(counter) => FfcounterError::NoCounter(*counter),
            FfcounterError::Foreign(counter) => FfcounterError::Foreign(*counter),
            FfcounterError::Asleep(counter) => FfcounterError::Asleep(*counter),
            FfcounterError::StampingDenied => FfcounterError::StampingDenied,
            FfcounterError::Io { path, error } => {
                let same = error.raw_os_error().map(io::Error::from_raw_os_error);
                let error = same.unwrap_or_else(|| io::Error::new(error.kind(), error.to_string()));
                FfcounterError::Io { path: path.clone(), error }
            }
        }
    }
}

/// The open device. It can be shared between threads.
#[derive(Debug)]
pub struct Ffcounter {
    file: File,
    path: PathBuf,
}

impl Ffcounter {
    /// Opens `/dev/ffcounter`.
    ///
    /// # Errors
    /// It is not there, forbidden, or speaks another version.
    pub fn open() -> Result<Self, FfcounterError> {
        Self::open_at(Path::new(DEVICE))
    }

    /// Opens the device at `path`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_at(path: &Path) -> Result<Self, FfcounterError> {
        let file = File::open(path).map_err(|error| of_opening(path, error))?;
        let path = path.to_owned();
        match device::ask::<u32>(&file, layout::GET_VERSION) {
            Ok(layout::VERSION) => Ok(Ffcounter { file, path }),
            Ok(found) => Err(FfcounterError::Version { path, found }),
            Err(error) => Err(FfcounterError::Io { path, error }),
        }
    }

    /// Reads a counter, with what is known of it.
    ///
    /// # Errors
    /// The machine has no such counter, or is being put to sleep.
    #[inline]
    pub fn read(&self, counter: ModuleCounter) -> Result<Sample, FfcounterError> {
        device::ask(&self.file, layout::read_request(counter.code())).map_err(|error| self.of_reading(counter, error))
    }

    /// Reads a counter together with two clocks of the kernel.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_paired(&self, counter: ModuleCounter) -> Result<PairedSample, FfcounterError> {
        device::ask(&self.file, layout::pair_request(counter.code())).map_err(|error| self.of_reading(counter, error))
    }

    /// Measures once what a reading costs within the kernel.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn measure_latency(&self, counter: ModuleCounter) -> Result<KernelLatency, FfcounterError> {
        let request = layout::latency_request(counter.code());
        device::ask(&self.file, request).map_err(|error| self.of_reading(counter, error))
    }

    /// The counters that this machine has, each with a reading; those that cannot be read just now are left out.
    pub fn counters(&self) -> Vec<(ModuleCounter, Sample)> {
        ModuleCounter::ALL.into_iter().filter_map(|counter| Some((counter, self.read(counter).ok()?))).collect()
    }

    /// Maps the page of a counter that can be read without a system call.
    ///
    /// # Errors
    /// The counter has no page (see [`layout::PAGE`]), or cannot be mapped.
    pub fn page(&self, counter: ModuleCounter) -> Result<CounterPage, FfcounterError> {
        let mapped = device::Mapped::new(&self.file, counter.code());
        Ok(CounterPage { mapped: mapped.map_err(|error| self.of_reading(counter, error))? })
    }

    /// Stamps every UDP packet from or to one of `ports` (at most [`layout::PORTS_MAX`]; none ends it) with `counter`
    /// from now on.
    ///
    /// # Errors
    /// Not permitted, too many ports, or no such counter.
    pub fn stamp_ports(&self, counter: ModuleCounter, ports: &[u16]) -> Result<(), FfcounterError> {
        let mut stamping = layout::Stamping { id: counter.code().into(), ..layout::Stamping::default() };
        let Some(room) = stamping.ports.get_mut(..ports.len()) else {
            return Err(self.of_reading(counter, io::ErrorKind::InvalidInput.into()));
        };
        room.copy_from_slice(ports);
        stamping.count = ports.len() as u32;
        device::set_stamping(&self.file, &stamping).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => FfcounterError::StampingDenied,
            _ => self.of_reading(counter, error),
        })
    }

    /// The stamps that have come since the last call, oldest first, at most as many as `room` holds; never waits.
    ///
    /// # Errors
    /// The device itself fails.
    pub fn read_stamps<'a>(&self, room: &'a mut [PacketStamp]) -> Result<&'a [PacketStamp], FfcounterError> {
        match device::read_stamps(&self.file, room) {
            Ok(count) => Ok(room.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(&[]),
            Err(error) => Err(FfcounterError::Io { path: self.path.clone(), error }),
        }
    }

    fn of_reading(&self, counter: ModuleCounter, error: io::Error) -> FfcounterError {
        match error.raw_os_error() {
            Some(libc::ENODEV) => FfcounterError::NoCounter(counter),
            Some(libc::EAGAIN) => FfcounterError::Asleep(counter),
            _ => FfcounterError::Io { path: self.path.clone(), error },
        }
    }
}

impl AsFd for Ffcounter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl PacketStamp {
    /// Room for a stamp that is to be read.
    pub const EMPTY: PacketStamp = device::EMPTY_STAMP;
}

fn of_opening(path: &Path, error: io::Error) -> FfcounterError {
    let path = path.to_owned();
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => FfcounterError::Missing(path),
        Some(libc::EACCES | libc::EPERM) => FfcounterError::Permission(path),
        _ => FfcounterError::Io { path, error },
    }
}

/// A counter that is read without a system call.
#[derive(Debug)]
pub struct CounterPage {
    mapped: device::Mapped,
}

/// A reading without a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageReading {
    /// The cumulative value.
    pub counter: Counter,
    /// Its epoch.
    pub epoch: u32,
}

impl CounterPage {
    /// Reads the counter after everything that the program loaded before. `None` where it must be read through the
    /// device now: the counter is another, or asleep.
    #[inline]
    pub fn read(&self) -> Option<PageReading> {
        let sequence = self.mapped.word(layout::page::SEQUENCE);
        let (state, epoch) = (self.mapped.word(layout::page::STATE), self.mapped.word(layout::page::EPOCH));
        let counter = cpu::read_ordered();
        // A reader that was interrupted between these lines looks again: no later load passes an interrupt.
        let is_whole = sequence.is_multiple_of(2) && self.mapped.word(layout::page::SEQUENCE) == sequence;
        (is_whole && state == layout::page::STATE_TSC).then_some(PageReading { counter, epoch })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_module_the_remedy_is_named() {
        let error = Ffcounter::open_at(Path::new("/nonexistent/ffcounter")).unwrap_err();
        assert!(error.to_string().contains("load the kernel module"), "{error}");
    }

    #[test]
    fn a_file_that_is_not_the_device_is_refused() {
        for path in ["/dev/null", "/proc/self/exe", "/"] {
            let error = Ffcounter::open_at(Path::new(path)).unwrap_err();
            assert!(matches!(error, FfcounterError::Io { .. }), "{path}: {error}");
        }
    }

    #[test]
    fn errors_of_the_module_are_distinguished() {
        let device = Ffcounter { file: File::open("/dev/null").unwrap(), path: PathBuf::from(DEVICE) };
        let error = |errno| device.of_reading(ModuleCounter::Hpet, io::Error::from_raw_os_error(errno));
        assert!(matches!(error(libc::ENODEV), FfcounterError::NoCounter(ModuleCounter::Hpet)));
        assert!(matches!(error(libc::EAGAIN), FfcounterError::Asleep(ModuleCounter::Hpet)));
        assert!(device.stamp_ports(ModuleCounter::Tsc, &[1; layout::PORTS_MAX + 1]).is_err());
        assert!(device.counters().is_empty());
    }
}
