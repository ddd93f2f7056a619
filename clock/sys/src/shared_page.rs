//! The file in which the page is published: memory that one process writes and others read.
//!
//! A restarted daemon goes on in the same file, never cut off and never replaced while it has the right size, so that
//! programs which mapped it before go on reading the same memory. What the words mean is the business of the crate
//! page.

use crate::PageFileError;
use crate::mapping::{Access, BYTES, Mapping, WORDS};
use crate::shared_file::{FileIdentity, SharedFile, identity};
use core::sync::atomic::AtomicU64;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// "ffclock" and a zero byte (docs/page.md).
const PAGE: SharedFile = SharedFile { kind: "clock page", mark: *b"ffclock\0", bytes: BYTES };

/// The page as its only writer has it. The file stays when this is dropped, for the readers and the next writer.
#[derive(Debug)]
pub struct SharedPage {
    mapping: Mapping,
    identity: FileIdentity,
    /// Keeps the lock.
    _file: File,
}

/// The page as a reader has it.
#[derive(Debug)]
pub struct SharedPageReader {
    mapping: Mapping,
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
        let wrap = |error| PAGE.error(path, error);
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o755).create(parent).map_err(wrap)?;
        }
        let file = PAGE.create(path)?;
        let identity = identity(&file.metadata().map_err(wrap)?);
        let mapping = Mapping::new(&file, Access::ReadWrite).map_err(wrap)?;
        Ok(SharedPage { mapping, identity, _file: file })
    }

    /// Whether the file at `path` is this page, and whole. It is not when it was removed, replaced or cut off; the last
    /// would end this process at its next store.
    pub fn is_at(&self, path: &Path) -> bool {
        PAGE.is_at(path, self.identity)
    }

    /// The words of the page.
    pub fn words(&self) -> &[AtomicU64; WORDS] {
        self.mapping.words()
    }
}

impl AsRef<[AtomicU64; WORDS]> for SharedPage {
    fn as_ref(&self) -> &[AtomicU64; WORDS] {
        self.words()
    }
}

impl SharedPageReader {
    /// Opens the page at `path` for reading.
    ///
    /// # Errors
    /// When it is missing, forbidden, not a regular file, of the wrong size or not stored in full.
    pub fn open(path: &Path) -> Result<Self, PageFileError> {
        let mapping = Mapping::new(&PAGE.open(path)?, Access::Read).map_err(|error| PAGE.error(path, error))?;
        Ok(SharedPageReader { mapping })
    }

    /// The words of the page: for loading only. The memory is mapped read-only, so a store ends the process.
    pub fn words(&self) -> &[AtomicU64; WORDS] {
        self.mapping.words()
    }
}

impl AsRef<[AtomicU64; WORDS]> for SharedPageReader {
    fn as_ref(&self) -> &[AtomicU64; WORDS] {
        self.words()
    }
}
