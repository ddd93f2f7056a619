//! The VMClock of a virtual machine: a page that its host keeps up to date, at `/dev/vmclock0` or in a file of the same
//! form (UAPI `linux/vmclock-abi.h`; the device is ACPI `AMZNC10C`, `VMCLOCK`), for its readers, and for a host that
//! keeps one in a file.
//!
//! Another value of the disruption marker means that the machine was restored from a snapshot, migrated or copied, so
//! that its counter may have jumped and its rate may be another. The generation counter, where the host keeps one,
//! changes when the machine was loaded from a saved state; a host may count that as no disruption (UAPI.13, section "VM
//! Generation Count"), so both are watched. The line that a page may hold beside them gives the time of the host by the
//! counter that both share.
//!
//! The writer makes the sequence odd, stores what is new and makes it even again; each store is a release, so who sees
//! a new word sees the odd sequence too. The reader loads with acquire, and looks at the sequence before and after.

mod format;

use crate::ffi::{first_hole, own_user};
use crate::mapping::{Access, Mapping};
use crate::shared_file::{self, FileIdentity, identity};
use crate::{ForeignFormat, PageFileError, SharedWords};
use core::sync::atomic::{AtomicU64, Ordering};
use ffclock_units::MachineMark;
use format::{FLAGS, GENERATION, GUARDED, MAGIC, MARKER, SEQUENCE, USED, VERSION};
pub use format::{VmClockLeap, VmClockLine, VmClockRefused, VmClockWords};
use std::fs::{Metadata, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The words of the mapping: one page of memory, which holds every version of the structure.
const WORDS: usize = 512;
/// Its octets.
const BYTES: usize = WORDS * size_of::<u64>();
/// Octets of the structure up to the end of the disruption marker.
const LEAST_SIZE: u32 = 24;
/// Looks at a page that is being written, before it is left for later.
const LOOKS: usize = 100;

/// The VMClock of this machine, mapped.
#[derive(Debug)]
pub struct SharedVmClock {
    mapping: Mapping<WORDS>,
    found: Metadata,
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
    /// Others than root and the own user may write it.
    #[error("{path} may be written by others (owner {owner}, mode {mode:03o}): any of them could set the time")]
    Open {
        /// The file.
        path: PathBuf,
        /// The user it belongs to.
        owner: u32,
        /// Its rights.
        mode: u32,
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
        let found = file.metadata().map_err(wrap)?;
        let kind = found.file_type();
        if kind.is_file() {
            // A file with a hole could not be read through a mapping later. The memory of a PCI device has none, and
            // its file in sysfs knows of no holes.
            let stored = first_hole(file.as_fd()).unwrap_or(found.len());
            if found.len().min(stored) < BYTES as u64 {
                return Err(not_one("it is shorter than a page of memory"));
            }
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
        Ok(SharedVmClock { mapping, found })
    }

    /// The same where time is to be taken from it: a file must belong to root or to our own user, and none else may
    /// write it.
    ///
    /// # Errors
    /// As [`open`](Self::open), and where others could set the time.
    pub fn open_for_time(path: &Path) -> Result<Self, VmClockError> {
        let clock = Self::open(path)?;
        let (owner, mode) = (clock.found.uid(), clock.found.mode() & 0o777);
        let is_safe = !clock.found.is_file() || (owner == 0 || owner == own_user()) && mode & 0o022 == 0;
        if is_safe { Ok(clock) } else { Err(VmClockError::Open { path: path.to_owned(), owner, mode }) }
    }

    /// Whether it still is what is at `path`. A device stays the same.
    pub fn is_at(&self, path: &Path) -> bool {
        !self.found.is_file() || shared_file::is_at(path, self.identity(), BYTES)
    }

    fn identity(&self) -> FileIdentity {
        identity(&self.found)
    }

    /// The line of time that the page gives, and its sequence, which another line has another one of.
    ///
    /// # Errors
    /// It gives none.
    pub fn line(&self) -> Result<(u32, VmClockLine), VmClockRefused> {
        let (sequence, words) = copy(self.mapping.words()).ok_or(VmClockRefused::Torn)?;
        words.line().map(|line| (sequence, line))
    }

    /// The words of disruption marker and generation counter, whether or not the page says that it has the second: what
    /// changes in no case needs no further look. Load them after what is to be known as undisturbed: a machine that is
    /// restored continues between two instructions, so that whatever came before the load in the program came before
    /// the disruption too, where the words are the old ones.
    #[inline(always)]
    pub fn watched_words(&self) -> [u64; 2] {
        let words = self.mapping.words();
        let [marker, generation] = [&words[MARKER], &words[GENERATION]];
        [u64::from_le(marker.load(Ordering::Acquire)), u64::from_le(generation.load(Ordering::Acquire))]
    }

    /// What these words mean in this page.
    pub fn mark_of(&self, watched: [u64; 2]) -> MachineMark {
        let words = self.mapping.words();
        format::mark_of(load(words, 0), load(words, FLAGS), watched)
    }

    /// What the page shows of the machine's past.
    pub fn mark(&self) -> MachineMark {
        self.mark_of(self.watched_words())
    }
}

/// The page in a file, for the host that keeps it; readers that have it mapped go on when this is dropped.
#[derive(Debug)]
pub struct VmClockFile {
    memory: SharedWords<WORDS>,
    path: PathBuf,
}

impl VmClockFile {
    /// Opens the file at `path` for writing, going on in an existing VMClock or making a new file of one page (mode
    /// 0644), which becomes a VMClock with the first line.
    ///
    /// # Errors
    /// When another process writes it, when something else is there, and whatever the file system says.
    pub fn create(path: &Path) -> Result<Self, PageFileError> {
        let [a, b, c, d] = MAGIC.to_le_bytes();
        let [e, f, g, h] = (BYTES as u32).to_le_bytes();
        let format = ForeignFormat { kind: "VMClock", mark: [a, b, c, d, e, f, g, h] };
        Ok(VmClockFile { memory: SharedWords::create_as(format, path)?, path: path.to_owned() })
    }

    /// Whether the file is in its place, and whole. Where it is not, the next store may end the process.
    pub fn is_in_place(&self) -> bool {
        self.memory.is_at(&self.path)
    }

    /// What stands in the file, for a writer that goes on: the disruption marker, and the last line, also where it was
    /// withheld. `None` in a new file.
    pub fn last(&self) -> Option<(u64, Option<VmClockLine>)> {
        let words = VmClockWords(core::array::from_fn(|place| load(self.memory.words(), place)));
        (words.0[0] != 0).then(|| (words.0[MARKER], words.with_time().line().ok()))
    }

    /// Gives a line of time; `false` where a page cannot hold it.
    pub fn give(&self, line: &VmClockLine) -> bool {
        let Some(words) = VmClockWords::of(line) else { return false };
        write(self.memory.words(), &words);
        true
    }

    /// What was given is not to be relied upon any longer.
    pub fn withhold(&self) {
        let words = VmClockWords(core::array::from_fn(|place| load(self.memory.words(), place)));
        // In a new file there is nothing to take back, and it is no VMClock yet.
        if words.0[0] != 0 {
            write(self.memory.words(), &words.without_time());
        }
    }
}

fn load(memory: &[AtomicU64; WORDS], place: usize) -> u64 {
    memory.get(place).map_or(0, |word| u64::from_le(word.load(Ordering::Acquire)))
}

fn store(memory: &[AtomicU64; WORDS], place: usize, value: u64) {
    if let Some(word) = memory.get(place) {
        word.store(value.to_le(), Ordering::Release);
    }
}

const fn sequence_of(word: u64) -> u32 {
    (word >> 32) as u32
}

/// A copy of the words from between two writes, with its sequence.
fn copy(memory: &[AtomicU64; WORDS]) -> Option<(u32, VmClockWords)> {
    for _ in 0..LOOKS {
        let before = sequence_of(load(memory, SEQUENCE));
        let words = VmClockWords(core::array::from_fn::<u64, USED, _>(|place| load(memory, place)));
        if before & 1 == 0 && before == sequence_of(load(memory, SEQUENCE)) {
            return Some((before, words));
        }
        core::hint::spin_loop();
    }
    None
}

/// Goes on from the sequence that is there; an odd one is of a writer that died at its work.
fn write(memory: &[AtomicU64; WORDS], words: &VmClockWords) {
    let odd = sequence_of(load(memory, SEQUENCE)) | 1;
    let with = |sequence: u32| words.0[SEQUENCE] & u64::from(u32::MAX) | u64::from(sequence) << 32;
    store(memory, SEQUENCE, with(odd));
    for (place, word) in words.0.iter().enumerate().skip(GUARDED) {
        store(memory, place, *word);
    }
    // A reader takes the page for a VMClock from here on.
    store(memory, 0, words.0[0]);
    store(memory, SEQUENCE, with(odd.wrapping_add(1)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicBool;
    use ffclock_units::{Bound, Counter, Span, Ticks};
    use std::fs;
    use std::os::unix::fs::{FileExt, PermissionsExt};

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
        assert_eq!(clock.mark(), MachineMark::of_disruption(7));
        let host = OpenOptions::new().write(true).open(&path).unwrap();
        for marker in [8, u64::MAX, 0] {
            host.write_all_at(&marker.to_le_bytes(), 8 * MARKER as u64).unwrap();
            assert_eq!(clock.mark(), MachineMark::of_disruption(marker));
        }
        fs::remove_file(path).unwrap();
    }

    /// Offsets and values of `linux/vmclock-abi.h`: the generation counter at 0x68, its flag bit 8.
    #[test]
    fn the_generation_counter_counts_where_size_and_flag_state_it() {
        let (size, flags, generation) = (4, 0x18, 0x68);
        let path = file_with("generation", &page(7));
        let clock = SharedVmClock::open(&path).unwrap();
        let host = OpenOptions::new().write(true).open(&path).unwrap();
        let write = |word: u64, at: u64| host.write_all_at(&word.to_le_bytes(), at).unwrap();
        write(3, generation);
        assert_eq!(clock.mark(), MachineMark::of_disruption(7), "no flag");
        for flag in [7, 8] {
            write(1 << flag, flags);
            assert_eq!(clock.mark(), MachineMark { disruption: 7, generation: Some(3) }, "bit {flag}");
        }
        for count in [4, u64::MAX, 0] {
            write(count, generation);
            assert_eq!(clock.mark().generation, Some(count));
        }
        for flag in (0..7).chain(9..64) {
            write(1 << flag, flags);
            assert_eq!(clock.mark().generation, None, "bit {flag}");
        }
        write(1 << 8, flags);
        for (octets, stated) in [(111_u32, None), (112, Some(0)), (4096, Some(0)), (u32::MAX, Some(0))] {
            host.write_all_at(&octets.to_le_bytes(), size).unwrap();
            assert_eq!(clock.mark().generation, stated, "{octets} octets");
            assert!(SharedVmClock::open(&path).is_ok(), "{octets} octets");
        }
        fs::remove_file(path).unwrap();
    }

    /// Both halves of a write, from before the highest sequence and from that of a writer that died there.
    #[test]
    fn the_sequence_turns_over() {
        let path = file_with("turns", &page(1));
        fs::remove_file(&path).unwrap();
        let file = VmClockFile::create(&path).unwrap();
        assert!(file.give(&line_of(1)));
        let clock = SharedVmClock::open_for_time(&path).unwrap();
        let kind = load(file.memory.words(), SEQUENCE) & u64::from(u32::MAX);
        for (found, number) in [(u32::MAX - 1, 2), (u32::MAX, 3)] {
            store(file.memory.words(), SEQUENCE, kind | u64::from(found) << 32);
            let before = clock.line().map(|(sequence, _)| sequence);
            assert_eq!(before, if found & 1 == 0 { Ok(found) } else { Err(VmClockRefused::Torn) });
            assert!(file.give(&line_of(number)));
            let (sequence, line) = clock.line().unwrap();
            assert_eq!((sequence, line.counter.raw()), (0, number), "after {found}");
        }
        fs::remove_file(path).unwrap();
    }

    /// One word changes in all lines that are written, and all others follow from it.
    fn line_of(number: u64) -> VmClockLine {
        let line = format::tests::line();
        let counter = Counter::from_raw(number);
        let bound = (Bound::of(Span::from_nanos((number % 1_000_000).into())), line.bound.1);
        VmClockLine {
            marker: number / 1000,
            counter,
            time: line.time + line.period * Ticks::from_raw(number as i64),
            bound,
            ..line
        }
    }

    fn is_of_one_write(line: &VmClockLine) -> bool {
        let whole = line_of(line.counter.raw());
        line.bound.0 >= whole.bound.0
            && VmClockLine { uncertainty: whole.uncertainty, bound: whole.bound, ..*line } == whole
    }

    #[test]
    fn a_reader_beside_a_busy_writer_finds_whole_lines_alone() {
        const READINGS: usize = 50_000;
        let path = file_with("busy", &[]);
        fs::remove_file(&path).unwrap();
        let file = VmClockFile::create(&path).unwrap();
        assert!(SharedVmClock::open(&path).is_err(), "no VMClock before the first line");
        assert!(file.give(&line_of(0)));
        let clock = SharedVmClock::open_for_time(&path).unwrap();
        let ended = AtomicBool::new(false);
        let (mut seen, mut last) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1.. {
                    file.give(&line_of(number * 7));
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
            while seen < READINGS {
                let Ok((_, line)) = clock.line() else { continue };
                let order = (is_of_one_write(&line), line.counter.raw() >= last);
                (seen, last) = (seen + 1, line.counter.raw());
                if order != (true, true) {
                    ended.store(true, Ordering::Relaxed);
                    panic!("{order:?}: {line:?}");
                }
            }
            ended.store(true, Ordering::Relaxed);
        });
        file.withhold();
        assert_eq!(clock.line(), Err(VmClockRefused::Unsynchronised));
        fs::remove_file(&path).unwrap();
        assert!(!file.is_in_place() && !clock.is_at(&path));
    }

    #[test]
    fn a_page_that_is_half_written_is_torn_and_its_next_writer_goes_on() {
        let path = file_with("half", &page(1));
        fs::remove_file(&path).unwrap();
        let file = VmClockFile::create(&path).unwrap();
        assert!(file.give(&line_of(5)));
        let clock = SharedVmClock::open_for_time(&path).unwrap();
        let (before, _) = clock.line().unwrap();
        let odd = load(file.memory.words(), SEQUENCE) + (1 << 32);
        store(file.memory.words(), SEQUENCE, odd);
        store(file.memory.words(), MARKER, 99);
        assert_eq!(clock.line(), Err(VmClockRefused::Torn));
        assert!(VmClockFile::create(&path).is_err(), "it has a writer");
        drop(file);
        let file = VmClockFile::create(&path).unwrap();
        assert!(file.give(&line_of(6)));
        let (after, line) = clock.line().unwrap();
        assert_eq!((after, line.counter.raw()), (before + 2, 6));
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_page_that_others_may_write_gives_no_time() {
        let path = file_with("open", &page(1));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o646)).unwrap();
        assert!(matches!(SharedVmClock::open_for_time(&path), Err(VmClockError::Open { mode: 0o646, .. })));
        assert!(SharedVmClock::open(&path).is_ok(), "its marker can do no harm but to end an epoch");
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
