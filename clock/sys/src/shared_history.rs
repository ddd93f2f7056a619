//! The file in which the history is kept, beside the page: memory that the daemon writes and others read.
//!
//! Only the writer of the page may open it for writing, so it needs no lock of its own. Nobody depends on it: without
//! it, stamps are converted by the page alone. What the words mean is the business of the crate page.

use crate::mapping::{Access, Mapping};
use core::sync::atomic::AtomicU64;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The words of a history.
const WORDS: usize = 98_816;
/// The bytes of a history.
const BYTES: usize = WORDS * size_of::<u64>();
/// What is written at once.
const BLOCK: usize = 4096;

const _: () = assert!(BYTES.is_multiple_of(BLOCK));

/// Where the history of a page is: at the page's path with `.history` after it.
pub fn history_beside(page: &Path) -> PathBuf {
    let mut path = page.as_os_str().to_owned();
    path.push(".history");
    path.into()
}

/// The history as its only writer has it. The file stays when this is dropped, for the readers and the next writer.
#[derive(Debug)]
pub struct SharedHistory {
    mapping: Mapping<WORDS>,
}

/// The history as a reader has it.
#[derive(Debug)]
pub struct SharedHistoryReader {
    mapping: Mapping<WORDS>,
}

impl SharedHistory {
    /// Opens the history at `path` for writing, going on in an existing file of the right size, or making a new one of
    /// zeros (mode 0644).
    ///
    /// # Errors
    /// Whatever the file system says; among it that there is no room.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
        let file = match options.open(path) {
            Ok(file) if is_whole(&file)? => file,
            _ => make_new(path)?,
        };
        Ok(SharedHistory { mapping: Mapping::new(&file, Access::ReadWrite)? })
    }
}

impl AsRef<[AtomicU64; WORDS]> for SharedHistory {
    fn as_ref(&self) -> &[AtomicU64; WORDS] {
        self.mapping.words()
    }
}

impl SharedHistoryReader {
    /// Opens the history at `path` for reading.
    ///
    /// # Errors
    /// When it is missing, forbidden, not a regular file, of the wrong size or not stored in full.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        if !is_whole(&file)? {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(SharedHistoryReader { mapping: Mapping::new(&file, Access::Read)? })
    }

    /// The words of the history: for loading only. The memory is mapped read-only, so a store ends the process.
    pub fn words(&self) -> &[AtomicU64; WORDS] {
        self.mapping.words()
    }
}

/// Whether it is a file of a history's size, all of it stored: who touches a hole in a mapped file is killed where the
/// file system is full.
fn is_whole(file: &File) -> io::Result<bool> {
    const UNIT: u64 = 512;
    let found = file.metadata()?;
    Ok(found.is_file() && found.len() == BYTES as u64 && found.blocks() * UNIT >= BYTES as u64)
}

/// A file of zeros, all of them stored, whole before it gets its name.
fn make_new(path: &Path) -> io::Result<File> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let unfinished = path.with_file_name(name);
    // Left over from a process of the same number that was killed here.
    let _ = fs::remove_file(&unfinished);
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o644).open(&unfinished)?;
    let finish = || {
        (0..BYTES as u64).step_by(BLOCK).try_for_each(|offset| file.write_all_at(&[0; BLOCK], offset))?;
        fs::rename(&unfinished, path)
    };
    if let Err(error) = finish() {
        let _ = fs::remove_file(&unfinished);
        return Err(error);
    }
    Ok(file)
}
