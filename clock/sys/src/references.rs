//! Clocks at this host that show the time: pulses, hardware clocks, and what other programs write into shared memory.
//!
//! All are opened for reading alone. What they say is judged elsewhere (the crate reference); here it is only fetched.

use crate::ffi::references::{self as ffi, Segment};
use crate::ffi::{closed_to_others, own_user};
use crate::hardware::CardReader;
use core::sync::atomic::Ordering;
use ffclock_counter::CounterId;
use ffclock_phc::PhcReading;
use ffclock_units::{Moment, Period, Span, Utc};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// Which edge of a pulse begins the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PulseEdge {
    /// The one that the device calls assert, mostly the rising one.
    Assert,
    /// The one that it calls clear.
    Clear,
}

/// A pulse as the kernel recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenPulse {
    /// The kernel's count of these edges, modulo 2^32; 0 before the first.
    pub sequence: u32,
    /// What the system clock showed.
    pub shown: Moment<Utc>,
}

/// Where pulses come from: a device, or a test.
pub trait PulseSource: core::fmt::Debug {
    /// The latest pulse, without waiting for one.
    ///
    /// # Errors
    /// The device cannot be read any more.
    fn latest(&mut self) -> io::Result<SeenPulse>;
}

/// A PPS device of the kernel (RFC 2783), `/dev/ppsN`.
#[derive(Debug)]
pub struct PulseDevice {
    file: File,
    edge: PulseEdge,
}

impl PulseDevice {
    /// Opens a device whose kernel side records this edge.
    ///
    /// # Errors
    /// There is none, it may not be read, it is something else, or it does not record the edge.
    pub fn open(path: &Path, edge: PulseEdge) -> io::Result<Self> {
        let file = File::open(path)?;
        let abilities = ffi::pulse_abilities(file.as_fd())?;
        let wanted = match edge {
            PulseEdge::Assert => 1,
            PulseEdge::Clear => 2,
        };
        if abilities & wanted == 0 {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the device does not record this edge"));
        }
        Ok(PulseDevice { file, edge })
    }
}

impl PulseSource for PulseDevice {
    fn latest(&mut self) -> io::Result<SeenPulse> {
        let record = ffi::latest_pulses(self.file.as_fd())?;
        let ([assert, clear], [asserted, cleared]) = (record.sequences, record.times);
        let (sequence, time) = match self.edge {
            PulseEdge::Assert => (assert, asserted),
            PulseEdge::Clear => (clear, cleared),
        };
        let since = Span::from_secs(time.seconds) + Span::from_nanos(time.nanos.into());
        Ok(SeenPulse { sequence, shown: Moment::from_origin(since) })
    }
}

/// A clock that is read together with the raw counter: a hardware clock, or a test.
pub trait ClockSource: core::fmt::Debug {
    /// A series of readings; none where the kernel's clock was set meanwhile.
    ///
    /// # Errors
    /// The clock cannot be read (any more).
    fn read(&mut self) -> io::Result<Vec<PhcReading>>;
}

/// A PTP hardware clock, read together with the raw counter; never set or steered.
#[derive(Debug)]
pub struct HardwareClock(CardReader);

impl HardwareClock {
    /// Opens `/dev/ptpN` for reading, beside a counter of this nominal period.
    ///
    /// # Errors
    /// There is none, or it may not be read.
    pub fn open(number: u32, counter: CounterId, period: Period) -> io::Result<Self> {
        CardReader::open(number, counter, period).map(HardwareClock)
    }
}

impl ClockSource for HardwareClock {
    fn read(&mut self) -> io::Result<Vec<PhcReading>> {
        self.0.read()
    }
}

/// The words of a segment of ntpd's driver 28 (`struct shmTime`).
const SEGMENT_WORDS: usize = 24;
/// The key of unit 0: "NTP0".
const SEGMENT_KEY: i32 = 0x4e54_5030;

/// A segment of shared memory as ntpd's driver 28 has it, for reading.
#[derive(Debug)]
pub struct SharedTime {
    segment: Segment<SEGMENT_WORDS>,
    number: i32,
    key: i32,
}

/// Why a segment is of no use.
#[derive(Debug, thiserror::Error)]
pub enum SharedTimeError {
    /// No program has made it yet.
    #[error("there is no segment {0:#x} of shared memory yet")]
    Missing(i32),
    /// Others than root and the own user may write it.
    #[error(
        "the segment {key:#x} may be written by others (owner {owner}, mode {mode:03o}): any of them could set the time"
    )]
    Open {
        /// Its key.
        key: i32,
        /// The user it belongs to.
        owner: u32,
        /// Its rights.
        mode: u32,
    },
    /// The system refuses, or it is too small.
    #[error("the segment {0:#x} of shared memory: {1}")]
    Io(i32, io::Error),
}

impl SharedTime {
    /// Attaches the segment of a unit. It must belong to root or to our own user, and none else may write it.
    ///
    /// # Errors
    /// There is none, it is not safe to use, or it cannot be attached.
    pub fn attach(unit: u8) -> Result<Self, SharedTimeError> {
        Self::attach_key(SEGMENT_KEY + i32::from(unit))
    }

    fn attach_key(key: i32) -> Result<Self, SharedTimeError> {
        let wrap = |error| SharedTimeError::Io(key, error);
        let number = ffi::find_segment(key).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => SharedTimeError::Missing(key),
            _ => wrap(error),
        })?;
        let rights = ffi::segment_rights(number).map_err(wrap)?;
        let is_ours = |user| user == 0 || user == own_user();
        if !(is_ours(rights.owner) && is_ours(rights.creator) && rights.mode & 0o022 == 0) {
            return Err(SharedTimeError::Open { key, owner: rights.owner, mode: rights.mode });
        }
        Ok(SharedTime { segment: Segment::attach(number).map_err(wrap)?, number, key })
    }

    /// A copy of its words, each loaded once, in their order; everything in it was there before anything that is loaded
    /// later.
    pub fn copy(&self) -> [u32; SEGMENT_WORDS] {
        self.segment.words().each_ref().map(|word| word.load(Ordering::Acquire))
    }

    /// Whether it still is the segment of its unit: a writer may have removed it and made another.
    pub fn is_current(&self) -> bool {
        ffi::find_segment(self.key).is_ok_and(|number| number == self.number)
    }
}

/// A socket for datagrams at this path, of mode 0600 from its first moment: no other than root and the own user can
/// ever have connected to it. The system checks the mode at every connect, and at every send to the path; who has
/// connected is not checked again.
///
/// # Errors
/// The place is taken, or may not be written.
pub fn private_datagram_socket(path: &Path) -> io::Result<UnixDatagram> {
    let socket = closed_to_others(|| UnixDatagram::bind(path))?;
    // Where the directory has an access list of its own for new files, the mask says nothing.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_socket_is_made_closed_and_the_usual_mode_of_files_holds_again() {
        let directory = std::env::temp_dir().join(format!("ffclock-sys-private-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let [before, socket, after] = ["before", "socket", "after"].map(|name| directory.join(name));
        std::fs::write(&before, "").unwrap();
        let at_once = closed_to_others(|| UnixDatagram::bind(&socket).map(|_| mode(&socket))).unwrap();
        assert_eq!(at_once, 0o600);
        std::fs::remove_file(&socket).unwrap();
        let _held = private_datagram_socket(&socket).unwrap();
        assert_eq!(mode(&socket), 0o600);
        std::fs::write(&after, "").unwrap();
        assert_eq!(mode(&after), mode(&before));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// A segment of a test, under a key of its own.
    struct TestSegment(i32, i32);

    impl TestSegment {
        fn make(place: i32, bytes: usize, mode: i32) -> Self {
            let key = 0x6600_0000 + (std::process::id() as i32 & 0xffff) * 16 + place;
            TestSegment(key, ffi::make_segment(key, bytes, mode).unwrap())
        }
    }

    impl Drop for TestSegment {
        fn drop(&mut self) {
            ffi::remove_segment(self.1);
        }
    }

    #[test]
    fn a_segment_of_ours_is_read_and_known_until_it_is_removed() {
        let made = TestSegment::make(0, 96, 0o600);
        let shared = SharedTime::attach_key(made.0).unwrap();
        assert_eq!(shared.copy(), [0; SEGMENT_WORDS]);
        assert!(shared.is_current());
        drop(made);
        assert!(!shared.is_current());
        assert_eq!(shared.copy(), [0; SEGMENT_WORDS], "the memory stays while it is attached");
    }

    #[test]
    fn a_segment_that_others_may_write_or_that_is_too_small_is_refused() {
        let open = TestSegment::make(1, 96, 0o666);
        assert!(matches!(SharedTime::attach_key(open.0), Err(SharedTimeError::Open { mode: 0o666, .. })));
        let small = TestSegment::make(2, 80, 0o600);
        assert!(matches!(SharedTime::attach_key(small.0), Err(SharedTimeError::Io(..))));
        assert!(matches!(SharedTime::attach_key(0x6600_000f), Err(SharedTimeError::Missing(_))));
    }

    #[test]
    fn what_is_no_device_of_pulses_is_refused() {
        assert!(PulseDevice::open(Path::new("/dev/null"), PulseEdge::Assert).is_err());
        assert!(PulseDevice::open(Path::new("/no/such/device"), PulseEdge::Clear).is_err());
    }
}
