//! The VMClock of a virtual machine: a page that its host keeps up to date, at `/dev/vmclock0` or in a file of the same
//! form (UAPI `linux/vmclock-abi.h`; the device is ACPI `AMZNC10C`, `VMCLOCK`).
//!
//! Of all that it can show, only the disruption marker is read: another value means that the machine was restored from
//! a snapshot, migrated or copied, so that its counter may have jumped and its rate may be another.

use crate::mapping::{Access, Mapping};
use core::sync::atomic::Ordering;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The words of the mapping: one page of memory, which holds every version of the structure.
const WORDS: usize = 512;
/// "VCLK".
const MAGIC: u32 = 0x4b4c_4356;
/// The version of the structure.
const VERSION: u16 = 1;
/// Octets of the structure up to the end of the disruption marker.
const LEAST_SIZE: u32 = 24;
/// Where the marker is, in words.
const MARKER: usize = 2;

/// The VMClock of this machine, mapped.
#[derive(Debug)]
pub struct SharedVmClock {
    mapping: Mapping<WORDS>,
}

/// Why a VMClock cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VmClockError {
    /// There is none.
    #[error("{0} does not exist")]
    Missing(PathBuf),
    /// What is there is no VMClock of this version.
    #[error("{path} is no VMClock: {why}")]
    NotOne {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The system refuses.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl SharedVmClock {
    /// Maps the VMClock at `path`, a device or a file of at least one page that is stored in full.
    ///
    /// # Errors
    /// Where there is none, it may not be read, or it is something else.
    pub fn open(path: &Path) -> Result<Self, VmClockError> {
        let wrap = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => VmClockError::Missing(path.to_owned()),
            _ => VmClockError::Io { path: path.to_owned(), error },
        };
        let not_one = |why| VmClockError::NotOne { path: path.to_owned(), why };
        // Without O_NONBLOCK, opening a fifo would wait for its writer.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(wrap)?;
        let kind = file.metadata().map_err(wrap)?.file_type();
        if kind.is_file() {
            read_whole_page(&file).map_err(|_| not_one("it is shorter than a page of memory"))?;
        } else if !kind.is_char_device() {
            return Err(not_one("it is neither a device nor a file"));
        }
        let mapping = Mapping::<WORDS>::new(&file, Access::Read).map_err(wrap)?;
        let [first, second, ..] = mapping.words().each_ref().map(|word| u64::from_le(word.load(Ordering::Acquire)));
        if first as u32 != MAGIC {
            return Err(not_one("it does not begin with VCLK"));
        }
        if second as u16 != VERSION {
            return Err(not_one("its version is not 1"));
        }
        if ((first >> 32) as u32) < LEAST_SIZE {
            return Err(not_one("it says that it has no disruption marker"));
        }
        Ok(SharedVmClock { mapping })
    }

    /// The disruption marker. Load it after what is to be known as undisturbed: a machine that is restored continues
    /// between two instructions, so that whatever came before the load in the program came before the disruption too,
    /// where the marker is the old one.
    #[inline(always)]
    pub fn marker(&self) -> u64 {
        u64::from_le(self.mapping.words()[MARKER].load(Ordering::Acquire))
    }
}

/// A file with a hole could not be read through a mapping later.
fn read_whole_page(file: &File) -> io::Result<()> {
    file.read_exact_at(&mut [0; WORDS * size_of::<u64>()], 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn page(marker: u64) -> Vec<u8> {
        let mut bytes = vec![0; WORDS * 8];
        bytes[..4].copy_from_slice(b"VCLK");
        bytes[4..8].copy_from_slice(&112_u32.to_le_bytes());
        bytes[8] = 1;
        bytes[8 * MARKER..][..8].copy_from_slice(&marker.to_le_bytes());
        bytes
    }

    fn file_with(name: &str, bytes: &[u8]) -> PathBuf {
        let path = std::env::temp_dir().join(format!("ffclock-vmclock-{name}-{}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn the_marker_is_seen_as_soon_as_the_host_changes_it() {
        let path = file_with("marker", &page(7));
        let clock = SharedVmClock::open(&path).unwrap();
        assert_eq!(clock.marker(), 7);
        let host = OpenOptions::new().write(true).open(&path).unwrap();
        for marker in [8, u64::MAX, 0] {
            host.write_all_at(&marker.to_le_bytes(), 8 * MARKER as u64).unwrap();
            assert_eq!(clock.marker(), marker);
        }
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_no_vm_clock_is_refused_with_the_reason() {
        let mut other_version = page(1);
        other_version[8] = 2;
        let mut small = page(1);
        small[4] = 16;
        for (name, bytes, reason) in [
            ("empty", vec![], "shorter"),
            ("short", page(1)[..4095].to_vec(), "shorter"),
            ("zeros", vec![0; 4096], "VCLK"),
            ("version", other_version, "version"),
            ("small", small, "no disruption marker"),
        ] {
            let path = file_with(name, &bytes);
            let error = SharedVmClock::open(&path).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            fs::remove_file(path).unwrap();
        }
        let error = SharedVmClock::open(&std::env::temp_dir()).unwrap_err().to_string();
        assert!(error.contains("neither a device nor a file"), "{error}");
        assert!(matches!(SharedVmClock::open(Path::new("/no/such/clock")), Err(VmClockError::Missing(_))));
    }
}
