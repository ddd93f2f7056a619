//! The file in which the history is kept, beside the page: memory that the daemon writes and others read.
//!
//! No program depends on it: without it, stamps are converted by the page alone. What the words mean is the business of
//! the crate page.

use crate::PageFileError;
use crate::mapping::{Access, Mapping};
use crate::shared_file::{FileIdentity, SharedFile, identity};
use core::sync::atomic::AtomicU64;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The words of a history.
const WORDS: usize = 98_816;
/// "ffchist" and a zero byte (docs/page.md).
const HISTORY: SharedFile =
    SharedFile { kind: "clock's history", mark: *b"ffchist\0", bytes: WORDS * size_of::<u64>() };

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
    identity: FileIdentity,
    /// Keeps the lock.
    _file: File,
}

/// The history as a reader has it.
#[derive(Debug)]
pub struct SharedHistoryReader {
    mapping: Mapping<WORDS>,
}

impl SharedHistory {
    /// Opens the history at `path` for writing, going on in an existing file of the right size (mode 0644), or making a
    /// new one of zeros. A history of another size, or one that was cut off to nothing, is replaced.
    ///
    /// # Errors
    /// When another process writes it, when something stands there that is not a history, when there is no room for it,
    /// and whatever else the file system says.
    pub fn create(path: &Path) -> Result<Self, PageFileError> {
        let wrap = |error| HISTORY.error(path, error);
        let file = HISTORY.create(path)?;
        let identity = identity(&file.metadata().map_err(wrap)?);
        let mapping = Mapping::new(&file, Access::ReadWrite).map_err(wrap)?;
        Ok(SharedHistory { mapping, identity, _file: file })
    }

    /// Whether the file at `path` is this history, and whole: as [`SharedPage::is_at`](crate::SharedPage::is_at).
    pub fn is_at(&self, path: &Path) -> bool {
        HISTORY.is_at(path, self.identity)
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
    pub fn open(path: &Path) -> Result<Self, PageFileError> {
        let mapping = Mapping::new(&HISTORY.open(path)?, Access::Read).map_err(|error| HISTORY.error(path, error))?;
        Ok(SharedHistoryReader { mapping })
    }

    /// The words of the history: for loading only. The memory is mapped read-only, so a store ends the process.
    pub fn words(&self) -> &[AtomicU64; WORDS] {
        self.mapping.words()
    }
}
