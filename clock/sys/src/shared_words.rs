//! The files through which the daemon publishes: the page and, beside it, the history. Each is memory that one process
//! writes and others read.
//!
//! A restarted daemon goes on in the same file, never cut off and never replaced while it has the right size, so that
//! programs which mapped it before go on reading the same memory. No program depends on the history: without it, stamps
//! are converted by the page alone. What the words mean is the business of the crate page.

use crate::PageFileError;
use crate::mapping::{Access, Mapping};
use crate::shared_file::{self, FileIdentity, SharedFile, identity};
use core::sync::atomic::AtomicU64;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The words of a page, and of a history.
const PAGE_WORDS: usize = 512;
const HISTORY_WORDS: usize = 98_816;

/// How each begins is in docs/page.md.
const PAGE: SharedFile = SharedFile { kind: "clock page", mark: *b"ffclock\0", bytes: PAGE_WORDS * size_of::<u64>() };
const HISTORY: SharedFile =
    SharedFile { kind: "clock's history", mark: *b"ffchist\0", bytes: HISTORY_WORDS * size_of::<u64>() };

/// Such a file as its only writer has it. The file stays when this is dropped, for the readers and the next writer.
#[derive(Debug)]
pub struct SharedWords<const COUNT: usize> {
    mapping: Mapping<COUNT>,
    identity: FileIdentity,
    /// Keeps the lock.
    _file: File,
}

/// Such a file as a reader has it.
#[derive(Debug)]
pub struct SharedWordsReader<const COUNT: usize> {
    mapping: Mapping<COUNT>,
}

/// The page, for its writer.
pub type SharedPage = SharedWords<PAGE_WORDS>;
/// The page, for a reader.
pub type SharedPageReader = SharedWordsReader<PAGE_WORDS>;
/// The history, for its writer.
pub type SharedHistory = SharedWords<HISTORY_WORDS>;
/// The history, for a reader.
pub type SharedHistoryReader = SharedWordsReader<HISTORY_WORDS>;

/// Where the history of a page is: at the page's path with `.history` after it.
pub fn history_beside(page: &Path) -> PathBuf {
    let mut path = page.as_os_str().to_owned();
    path.push(".history");
    path.into()
}

/// What a file of another program's format is, of which a program of ours is the writer.
#[derive(Clone, Copy, Debug)]
pub struct ForeignFormat {
    /// What users call it.
    pub kind: &'static str,
    /// How it begins.
    pub mark: [u8; 8],
}

impl SharedPage {
    /// Opens the page at `path` for writing, going on in an existing file of the right size (mode 0644), or making a
    /// new one of zeros; missing directories are made too (mode 0755). A page of another size, or one that was cut off
    /// to nothing, is replaced.
    ///
    /// # Errors
    /// When another process writes it, when something stands there that is not a page, when there is no room for it,
    /// and whatever else the file system says.
    pub fn create(path: &Path) -> Result<Self, PageFileError> {
        make_directory(PAGE, path)?;
        Self::make(PAGE, path)
    }
}

impl SharedHistory {
    /// Opens the history at `path` for writing, as [`SharedPage::create`], in a directory that is there.
    ///
    /// # Errors
    /// As [`SharedPage::create`].
    pub fn create(path: &Path) -> Result<Self, PageFileError> {
        Self::make(HISTORY, path)
    }
}

impl SharedPageReader {
    /// Opens the page at `path` for reading.
    ///
    /// # Errors
    /// When it is missing, forbidden, not a regular file, of the wrong size or not stored in full.
    pub fn open(path: &Path) -> Result<Self, PageFileError> {
        Self::map(PAGE, path)
    }
}

impl SharedHistoryReader {
    /// Opens the history at `path` for reading.
    ///
    /// # Errors
    /// As [`SharedPageReader::open`].
    pub fn open(path: &Path) -> Result<Self, PageFileError> {
        Self::map(HISTORY, path)
    }
}

/// Makes the directory of the file at `path` (mode 0755).
fn make_directory(kind: SharedFile, path: &Path) -> Result<(), PageFileError> {
    let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(0o755).create(parent).map_err(|error| kind.error(path, error))
}

impl<const COUNT: usize> SharedWords<COUNT> {
    /// Opens a file of this format at `path` for writing, as [`SharedPage::create`]. It begins with zeros or, where a
    /// writer was there before, with its mark.
    ///
    /// # Errors
    /// As [`SharedPage::create`].
    pub fn create_as(format: ForeignFormat, path: &Path) -> Result<Self, PageFileError> {
        let kind = SharedFile { kind: format.kind, mark: format.mark, bytes: COUNT * size_of::<u64>() };
        make_directory(kind, path)?;
        Self::make(kind, path)
    }

    fn make(kind: SharedFile, path: &Path) -> Result<Self, PageFileError> {
        let wrap = |error| kind.error(path, error);
        let file = kind.create(path)?;
        let identity = identity(&file.metadata().map_err(wrap)?);
        let mapping = Mapping::new(&file, Access::ReadWrite).map_err(wrap)?;
        Ok(SharedWords { mapping, identity, _file: file })
    }

    /// The words.
    pub fn words(&self) -> &[AtomicU64; COUNT] {
        self.mapping.words()
    }

    /// Whether the file at `path` is this one, and whole. It is not when it was removed, replaced or cut off; the last
    /// would end this process at its next store.
    pub fn is_at(&self, path: &Path) -> bool {
        shared_file::is_at(path, self.identity, COUNT * size_of::<u64>())
    }
}

impl<const COUNT: usize> SharedWordsReader<COUNT> {
    fn map(kind: SharedFile, path: &Path) -> Result<Self, PageFileError> {
        let mapping = Mapping::new(&kind.open(path)?, Access::Read).map_err(|error| kind.error(path, error))?;
        Ok(SharedWordsReader { mapping })
    }

    /// The words: for loading only. The memory is mapped read-only, so a store ends the process.
    pub fn words(&self) -> &[AtomicU64; COUNT] {
        self.mapping.words()
    }
}

impl<const COUNT: usize> AsRef<[AtomicU64; COUNT]> for SharedWords<COUNT> {
    fn as_ref(&self) -> &[AtomicU64; COUNT] {
        self.words()
    }
}

impl<const COUNT: usize> AsRef<[AtomicU64; COUNT]> for SharedWordsReader<COUNT> {
    fn as_ref(&self) -> &[AtomicU64; COUNT] {
        self.words()
    }
}
