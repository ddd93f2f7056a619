//! The file in which the page is published: memory that one process writes and others read.
//!
//! A restarted daemon goes on in the same file, never cut off and never replaced while it has the right size, so that
//! programs which mapped it before go on reading the same memory. What the words mean is the business of the crate
//! page.
//!
//! A file may be longer than what is stored of it: it then has a hole, and a process that touches a hole through a
//! mapping is killed (SIGBUS) where the file system has no room left to fill it. So the writer has every byte stored
//! before it maps the file, and readers map no file with a hole.

use crate::ffi;
use crate::mapping::{Access, BYTES, Mapping, WORDS};
use core::sync::atomic::AtomicU64;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Why there is no page to be had.
#[derive(Debug, thiserror::Error)]
pub enum PageFileError {
    /// There is no such file: most likely the daemon never ran.
    #[error("{0} does not exist: is the clock daemon running?")]
    Missing(PathBuf),
    /// The file may not be opened by this user.
    #[error("{0} may not be opened by this user")]
    Permission(PathBuf),
    /// It is a directory, a device, a link or something else.
    #[error("{0} is not a regular file")]
    NotAFile(PathBuf),
    /// It is not of a page's size.
    #[error("{path} has {found} bytes instead of {BYTES}")]
    Size {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        found: u64,
    },
    /// It has a page's size, but not all of it is stored: its writer found no room for it.
    #[error("{0} is not stored in full: its file system was full when it was made")]
    Hole(PathBuf),
    /// Something else is there that would be lost if a page took its place.
    #[error("{0} is there already and is not a clock page: it is left alone")]
    Foreign(PathBuf),
    /// The file system has no room for it.
    #[error("{0} needs {BYTES} bytes, and its file system is full")]
    NoSpace(PathBuf),
    /// Another process writes it.
    #[error("{0} is being written by another daemon")]
    Busy(PathBuf),
    /// Anything else.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl PageFileError {
    fn new(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::NotFound, _) => PageFileError::Missing(path),
            (io::ErrorKind::PermissionDenied, _) => PageFileError::Permission(path),
            (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded, _) => PageFileError::NoSpace(path),
            // A link that must not be followed; a directory opened for writing; a socket or a device without a driver.
            (_, Some(libc::ELOOP | libc::EISDIR | libc::ENXIO)) => PageFileError::NotAFile(path),
            _ => PageFileError::Io { path, error },
        }
    }
}

/// The page as its only writer has it. The file stays when this is dropped, for the readers and the next writer.
#[derive(Debug)]
pub struct SharedPage {
    mapping: Mapping,
    /// Which file it is: its device and its number there.
    identity: (u64, u64),
    /// Keeps the lock.
    _file: File,
}

/// How the file of every page begins ("ffclock" and a zero byte; docs/page.md).
const MARK: [u8; 8] = *b"ffclock\0";

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
        let wrap = |error| PageFileError::new(path, error);
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o755).create(parent).map_err(wrap)?;
        }
        let file = match open_existing(path) {
            Err(PageFileError::Missing(_)) => make_new(path)?,
            Err(PageFileError::Size { .. }) if was_page(path).map_err(wrap)? => make_new(path)?,
            Err(PageFileError::Size { .. }) => return Err(PageFileError::Foreign(path.to_owned())),
            result => result?,
        };
        lock(path, &file)?;
        store_in_full(&file).map_err(wrap)?;
        file.set_permissions(Permissions::from_mode(0o644)).map_err(wrap)?;
        let identity = identity(&file.metadata().map_err(wrap)?);
        let mapping = Mapping::new(&file, Access::ReadWrite).map_err(wrap)?;
        Ok(SharedPage { mapping, identity, _file: file })
    }

    /// Whether the file at `path` is this page, and whole. It is not when it was removed, replaced or cut off; the last
    /// would end this process at its next store.
    pub fn is_at(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|found| identity(&found) == self.identity && found.len() == BYTES as u64)
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
        let mut options = OpenOptions::new();
        // Without O_NONBLOCK, opening a fifo would wait for its writer.
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let file = open_checked(path, &options)?;
        let hole = ffi::first_hole(file.as_fd()).map_err(|error| PageFileError::new(path, error))?;
        if hole < BYTES as u64 {
            return Err(PageFileError::Hole(path.to_owned()));
        }
        let mapping = Mapping::new(&file, Access::Read).map_err(|error| PageFileError::new(path, error))?;
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

fn open_existing(path: &Path) -> Result<File, PageFileError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
    open_checked(path, &options)
}

/// Opens a file and looks at what was opened, not at what the name stands for a moment later.
fn open_checked(path: &Path, options: &OpenOptions) -> Result<File, PageFileError> {
    let wrap = |error| PageFileError::new(path, error);
    let file = options.open(path).map_err(wrap)?;
    let found = file.metadata().map_err(wrap)?;
    if !found.is_file() {
        return Err(PageFileError::NotAFile(path.to_owned()));
    }
    if found.len() != BYTES as u64 {
        return Err(PageFileError::Size { path: path.to_owned(), found: found.len() });
    }
    Ok(file)
}

/// Whether nothing is lost with the file at `path`, whose size is not a page's: it is empty, or begins as a page does.
fn was_page(path: &Path) -> io::Result<bool> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path)?;
    let mut begin = [0; MARK.len()];
    match file.read_at(&mut begin, 0)? {
        0 => Ok(true),
        length => Ok(length == MARK.len() && begin == MARK),
    }
}

/// Has the file system store every byte of a page, by writing back what it reads: a hole reads as zeros. Readers that
/// have mapped the file see no change, and the caller's lock keeps other writers away.
fn store_in_full(file: &File) -> io::Result<()> {
    let mut bytes = [0; BYTES];
    file.read_exact_at(&mut bytes, 0)?;
    file.write_all_at(&bytes, 0)
}

fn identity(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// A file of zeros, whole before it gets its name.
fn make_new(path: &Path) -> Result<File, PageFileError> {
    let wrap = |error| PageFileError::new(path, error);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let unfinished = path.with_file_name(name);
    // Left over from a process of the same number that was killed here.
    let _ = fs::remove_file(&unfinished);
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o644).open(&unfinished).map_err(wrap)?;
    let finish = || {
        file.write_all_at(&[0; BYTES], 0)?;
        fs::rename(&unfinished, path)
    };
    finish().map_err(|error| {
        let _ = fs::remove_file(&unfinished);
        wrap(error)
    })?;
    Ok(file)
}

fn lock(path: &Path, file: &File) -> Result<(), PageFileError> {
    ffi::lock(file.as_fd()).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => PageFileError::Busy(path.to_owned()),
        _ => PageFileError::new(path, error),
    })
}
